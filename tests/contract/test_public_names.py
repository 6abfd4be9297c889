"""What ``import popcore`` offers: the names of ``__all__``, all of them and no others, at little cost."""

import os
import subprocess
import sys
import types
from pathlib import Path

import pytest

import popcore

# Modules of the package that Python puts there when something imports them; reached by their own names.
SUBMODULES = {p.stem for p in Path(popcore.__file__).parent.iterdir()}


def python(*arguments):
    """Run Python with the popcore that this process has, wherever it is."""
    where = str(Path(popcore.__file__).parents[1])
    done = subprocess.run([sys.executable, "-P", *arguments], env={**os.environ, "PYTHONPATH": where}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", popcore.__all__)
def test_every_name_is_there(name):
    """
    Names that are looked up on first use exist too.
    """
    assert getattr(popcore, name) is not None
    assert name in dir(popcore)


def test_no_name_is_forgotten_or_left_over():
    """
    Whatever is public in the module is listed, once.
    """
    assert len(set(popcore.__all__)) == len(popcore.__all__)
    hidden = {"TYPE_CHECKING", "Any", "annotations", "importlib"} | SUBMODULES
    assert {n for n in vars(popcore) if not n.startswith("_")} - hidden <= set(popcore.__all__)
    assert set(popcore._HOMES) | set(popcore._MODULES) <= set(popcore.__all__)


def test_modules_are_modules():
    """
    ``pc.program`` and ``pc.poputil`` are namespaces of their own; ``pc.options`` is a function.
    """
    assert all(isinstance(getattr(popcore, n), types.ModuleType) for n in ("errors", "poputil", "program"))
    assert callable(popcore.options)


def test_an_unknown_name_is_refused():
    """
    A misspelt name fails as in any module.
    """
    with pytest.raises(AttributeError, match="Grpah"):
        popcore.Grpah  # noqa: B018


def test_import_loads_no_compiler():
    """
    Neither Numba nor LLVM is loaded by importing popcore, nor by building a graph with a codelet.
    """
    heavy = "[m for m in ('numba', 'llvmlite') if m in sys.modules]"
    assert python("-c", f"import sys, popcore; print({heavy})").strip() == "[]"
    assert python("-c", f"import sys, popcore.cli, popcore as pc; pc.Graph(pc.Device('C2').target); print({heavy})").strip() == "[]"
