"""What the known traps are tried on: every way to run a program, and an empty graph of 8 tiles."""

import pytest

import popcore as pc
from tests.cases.bench import Bench


@pytest.fixture(params=["reference", "compiled", "interpreted"])
def any_engine(request, monkeypatch):
    """The class of an engine: the reference, compiled codelets, or codelets run as plain Python. All give the same bits."""
    if request.param == "interpreted":
        monkeypatch.setenv("POPCORE_INTERPRET", "1")
    return pc.ReferenceEngine if request.param == "reference" else pc.Engine


@pytest.fixture
def bench(graph):
    """An empty graph on one IPU of 8 tiles, and a compute set."""
    return Bench(graph)
