"""Automatic estimates held against cycles that were derived by hand, or published: within 25 %."""

import re
import shutil
import subprocess

import numpy as np
import pytest

import popcore as pc
from popcore import FLOAT, program
from tests.estimate import corpus

NEAR = 0.25


def _profile(cpp: bool, interpret: bool = False):
    """What all codelets of the corpus took, each on a tile of its own."""
    graph = pc.Graph(pc.Device("M2000", num_ipus=1).target)
    compute = graph.add_compute_set("all")
    if cpp:
        graph.add_codelets(corpus.CPP)
    for tile, case in enumerate(corpus.CASES):
        fields = {}
        for name, (dtype, shape) in case.fields.items():
            flat = shape if not cpp or len(shape) < 2 else (int(np.prod(shape)),)
            fields[name] = graph.add_variable(dtype, flat, name=f"{case.codelet.__name__}.{name}")
            graph.set_tile_mapping(fields[name], tile)
            values = corpus.ESCAPES if case.codelet is corpus.Escape and dtype is FLOAT else np.ones(flat)
            graph.set_initial_value(fields[name], values)
        vertex = graph.add_vertex(compute, case.codelet.__name__ if cpp else case.codelet, fields, tile)
        for name, value in case.state.items() if cpp else ():
            graph.set_initial_value(vertex[name], value)
    engine = pc.Engine(graph, program.Execute(compute))
    engine.run()
    return engine.profile()


def _clang():
    """A clang++ that C++ codelets can be compiled with; None if there is none."""
    for name in ("clang++", *(f"clang++-{version}" for version in range(16, 30))):
        if (found := shutil.which(name)) is not None:
            said = subprocess.run([found, "--version"], capture_output=True, text=True, check=False, timeout=60).stdout
            version = re.search(r"clang version (\d+)", said)
            if version is not None and int(version[1]) >= 16:
                return found
    return None


@pytest.fixture(scope="module", params=["Python", "C++", "clang++"])
def codelets(request):
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "clang++":
            found = _clang()
            if found is None:
                pytest.skip("no clang++ of version 16 or later is installed")
            patch.setenv("CXX", found)
        return _profile(request.param != "Python").codelets


@pytest.mark.parametrize("case", corpus.CASES, ids=lambda case: case.codelet.__name__)
def test_it_is_near_what_was_derived_by_hand(codelets, case):
    """
    Not a number was written by hand for the estimate, in either language.
    """
    found = codelets[case.codelet.__name__]
    assert found.cycles_from == {"automatic": 1}
    assert abs(found.worker_cycles / case.hand - 1) <= NEAR, (found.worker_cycles, case.hand)


def test_interpreted_codelets_take_the_same(monkeypatch):
    """
    What is counted does not depend on what counts.
    """
    compiled = _profile(cpp=False).total_cycles
    monkeypatch.setenv("POPCORE_INTERPRET", "1")
    assert _profile(cpp=False).total_cycles == compiled
