"""``import popcore`` against ``import numpy``, which it contains: whole processes, in turn."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial

from bench.harness import Row, WrongAnswer, compare, run_python

LOADED = "import sys, popcore; print([m for m in ('numba', 'llvmlite') if m in sys.modules])"


def rows(smoke: bool) -> Iterator[Row]:
    if (loaded := run_python(["-c", LOADED]).output.strip()) != "[]":
        raise WrongAnswer(f"import popcore loads {loaded}")
    with tempfile.TemporaryDirectory() as cache:
        ours, numpy = (partial(run_python, ["-c", f"import {name}"], cache) for name in ("popcore", "numpy"))
        ours(), numpy()  # so that their bytecode is there
        yield compare("import/popcore against NumPy", ours, numpy, unit="s", smoke=smoke)
