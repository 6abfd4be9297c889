# make demo, make test: each makes $(VENV) once, installs popcore there as a wheel, and runs.

PYTHON ?= python3
VENV ?= .venv
EXTRAS ?= test,demo
JOBS ?= 2

PY := $(abspath $(VENV))/bin/python
SOURCES := pyproject.toml setup.py $(shell find -P popcore kernels bindings -type f -not -name '*.pyc')

.PHONY: demo test

demo: $(VENV)/.installed
	$(PY) examples/digits_pod64.py

# -P and importlib: what is tested is what was installed, not this folder.
test: $(VENV)/.installed
	POPCORE_WHEEL=$$(echo $(abspath $(VENV))/wheel/popcore-*.whl) $(PY) -P -m pytest --import-mode=importlib -n $(JOBS) $(PYTEST_ARGS)

$(VENV)/.installed: $(VENV)/.dependencies $(SOURCES)
	rm -rf $(VENV)/wheel
	$(PY) -m pip wheel --quiet --no-deps --wheel-dir $(VENV)/wheel .
	$(PY) -m pip install --quiet --no-deps --force-reinstall $(VENV)/wheel/popcore-*.whl
	touch $@

$(VENV)/.dependencies: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet '.[$(EXTRAS)]'
	touch $@
