"""The progress bar: one line for a long compile on a terminal, nothing else anywhere."""

import io

import pytest

import popcore as pc
from popcore import FLOAT, program
from popcore.compiler import PASSES, progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def small(graph):
    """A graph with one copy."""
    a, b = (graph.add_variable(FLOAT, (4,), name=n, tile=0) for n in "ab")
    return graph, program.Copy(a, b)


@pytest.mark.parametrize(("stream", "patience", "shown"), [(Terminal, -1.0, True), (Terminal, 60.0, False), (io.StringIO, -1.0, False)])
def test_a_bar_shows_only_on_a_terminal_and_only_when_it_takes_long(small, monkeypatch, stream, patience, shown):
    """
    A pipe gets nothing, and neither does a terminal while a compile is short.
    """
    out = stream()
    monkeypatch.setattr("sys.stderr", out)
    monkeypatch.setattr(progress, "PATIENCE_SECONDS", patience)
    pc.compile_graph(*small)
    assert ("compiling" in out.getvalue()) is shown


def test_the_bar_can_be_turned_off(small, monkeypatch):
    """
    With ``engine.progress`` off a terminal gets nothing either.
    """
    out = Terminal()
    monkeypatch.setattr("sys.stderr", out)
    monkeypatch.setattr(progress, "PATIENCE_SECONDS", -1.0)
    pc.compile_graph(*small, options={"engine.progress": False})
    assert out.getvalue() == ""


def test_a_callback_hears_of_every_pass(small):
    """
    By name, number and count, in order.
    """
    heard = []
    pc.compile_graph(*small, progress=lambda *what: heard.append(what))
    assert heard == [(name, i, len(PASSES)) for i, name in enumerate(PASSES)]
