"""debug.check.collect: does a run go on after each kind of finding, as documented, and tell all of them?"""

import numpy as np
import pytest

import popcore as pc
from popcore import FLOAT, HALF, INT, InOut, Input, Matrix, MultiVertex, Output, Vector, VectorList, Vertex, errors, program
from popcore.engine.findings import LIMIT

COLLECT = {"debug.check": "full", "debug.check.collect": True}


class Shift(Vertex):
    """Reads ``by`` further than it writes."""

    x: Input[Vector[FLOAT]]
    y: InOut[Vector[FLOAT]]
    by: Input[INT]

    def compute(self):
        for i in range(len(self.y)):
            self.y[i] = self.x[i + self.by]


class Scatter(Vertex):
    """Writes at what ``at`` says."""

    at: Input[Vector[INT]]
    y: InOut[Vector[FLOAT]]
    m: InOut[Matrix[HALF]]
    parts: InOut[VectorList[FLOAT]]

    def compute(self):
        for i in range(len(self.at)):
            k = self.at[i]
            self.y[k] = 7.0
            self.m[k, 0] = 7.0
            self.parts[k][0] = 7.0
            self.y[0] += self.m[0, k] + self.parts[k][0] + self.y[k]


class Neighbours(MultiVertex):
    y: InOut[Vector[FLOAT]]

    def compute(self, worker):
        if worker > 3:
            self.y[0] = 1.0
        else:
            self.y[worker + 1] = self.y[0]


class Stops(Vertex):
    x: Input[Vector[FLOAT]]
    y: Output[FLOAT]

    def compute(self):
        self.y = self.x[9]
        assert self.y > 0.0


@pytest.fixture(autouse=True, params=["compiled", "interpreted"])
def mode(request, monkeypatch):
    """Codelets as machine code, and as Python: the same findings."""
    monkeypatch.setenv("POPCORE_INTERPRET", str(int(request.param == "interpreted")))


def variable(graph, name, dtype, shape, value=None, tile=0):
    made = graph.add_variable(dtype, shape, name=name, tile=tile)
    graph.create_host_read(name, made)
    if value is not None:
        graph.set_initial_value(made, np.broadcast_to(np.asarray(value, dtype.numpy), shape))
    return made


def vertex(graph, codelet, tile=0, cs=None, **fields):
    cs = graph.add_compute_set("work") if cs is None else cs
    graph.add_vertex(cs, codelet, fields, tile=tile)
    return program.Execute(cs)


def collected(engine, index=0):
    with pytest.raises(errors.FindingsError) as caught:
        engine.run(index)
    return caught.value


@pytest.mark.parametrize("check", ["bounds", "full"])
def test_reads_outside_give_zero(graph, check):
    """
    And the vertex goes on; the finding has all the indices and how often, and the lines of the same in other vertices stay apart.
    """
    x, y = variable(graph, "x", FLOAT, (6,), np.arange(1, 7)), variable(graph, "y", FLOAT, (6,), 9)
    by = variable(graph, "by", INT, (), 3)
    engine = pc.Engine(graph, program.Repeat(2, vertex(graph, Shift, x=x, y=y, by=by)), options={**COLLECT, "debug.check": check})
    (found,) = collected(engine).findings
    assert (type(found), found.code, found.indices, found.times, found.worker) == (errors.VertexError, "out-of-bounds", (6, 8), 6, None)
    assert (found.variable, found.elements) == ("x", (0, 5))
    assert "x is elements 0 to 5 of 'x' (test_findings.py:" in str(found)
    assert engine.read_tensor("y").tolist() == [4, 5, 6, 0, 0, 0]


def test_undefined_elements_are_told_as_a_range(graph):
    """
    With the variable's name, though the vertex reads a copy of it; what lies there is read.
    """
    x, y = variable(graph, "x", FLOAT, (8,), tile=2), variable(graph, "y", FLOAT, (4,), 0)
    graph.set_initial_value(x[:2], np.ones(2, np.float32))
    by = variable(graph, "by", INT, (), 1)
    engine = pc.Engine(graph, vertex(graph, Shift, x=x, y=y, by=by), options=COLLECT)
    (found,) = collected(engine).findings
    assert (found.code, found.variable, found.elements, found.times) == ("uninitialised-read", "x", (2, 4), 3)
    assert "reads elements 2 to 4 of 'x' (test_findings.py:" in str(found)
    assert engine.read_tensor("y").tolist() == [1, 0, 0, 0]


def test_writes_outside_do_not_happen(graph):
    """
    To a vector, a matrix and a part of a list; what is read there is zero, of a list a view of nothing.
    """
    at = variable(graph, "at", INT, (3,), [1, 5, -9])
    y, m, parts = variable(graph, "y", FLOAT, (3,), 1), variable(graph, "m", HALF, (3, 3), 1), variable(graph, "parts", FLOAT, (2, 2), 1)
    engine = pc.Engine(graph, vertex(graph, Scatter, at=at, y=y, m=m, parts=parts), options=COLLECT)
    found = collected(engine).findings
    assert [each.code for each in found] == ["out-of-bounds"] * len(found)
    assert len({(each.line, str(each.__cause__).partition("]")[0]) for each in found}) == len(found) == 8
    assert all(each.indices in ((-9, 5), (0, 0)) for each in found)
    assert engine.read_tensor("y").tolist() == [16, 7, 1]
    assert engine.read_tensor("m").tolist() == [[1, 1, 1], [7, 1, 1], [1, 1, 1]]
    assert engine.read_tensor("parts").tolist() == [[1, 1], [7, 1]]


def test_both_sites_of_a_race_are_told(graph):
    """
    Workers, and the line of each of them.
    """
    y = variable(graph, "y", FLOAT, (6,), 0)
    found = collected(pc.Engine(graph, vertex(graph, Neighbours, y=y), options=COLLECT)).findings
    assert [(f.worker, f.other_worker, f.elements) for f in found] == [(4, 5, (0, 0)), *[(w, 4, (0, 0)) for w in (3, 2, 1, 0)]]
    assert {f.line - found[0].line for f in found[1:]} == {2}
    assert {f.other_line for f in found} == {found[0].line}
    assert str(found[1]).count("test_findings.py:") == 3


def test_tests_and_host_reads_go_on(graph):
    """
    A branch takes the way that memory says, a host read gives what lies there; outside of runs it is kept for later.
    """
    flag, x = variable(graph, "flag", INT, ()), variable(graph, "x", FLOAT, (2,))
    branch = program.If(flag, program.Sequence(), program.Copy(graph.add_constant(FLOAT, (1,), 1, tile=0), x[:1]))
    engine = pc.Engine(graph, program.Repeat(3, branch), options=COLLECT)
    (found,) = collected(engine).findings
    assert (found.code, found.times) == ("uninitialised-read", 3)
    assert engine.read_tensor("x").tolist() == [1, 0]
    assert [each.elements for each in engine.findings] == [(0, 0), (1, 1)]
    engine.load()
    assert engine.findings == ()


def test_no_more_than_the_limit_is_kept(graph):
    """
    What had no room is counted; the message stays short.
    """
    x, y = variable(graph, "x", FLOAT, (LIMIT + 7,)), variable(graph, "y", FLOAT, (LIMIT + 7,), 0)
    by, cs = variable(graph, "by", INT, (), 0), graph.add_compute_set("work")
    for i in range(LIMIT + 7):
        work = vertex(graph, Shift, cs=cs, x=x[i : i + 1], y=y[i : i + 1], by=by)
    error = collected(pc.Engine(graph, work, options={**COLLECT, "engine.threads": 1}))
    assert (len(error.findings), error.lost) == (LIMIT, 7)
    assert [f.vertex for f in error.findings] == list(range(LIMIT))
    assert len(str(error).splitlines()) <= 12


def test_an_error_that_ends_the_run_carries_what_was_found(graph):
    """
    As a note; the findings are the engine's.
    """
    x, y = variable(graph, "x", FLOAT, (2,), 1), variable(graph, "y", FLOAT, ())
    engine = pc.Engine(graph, vertex(graph, Stops, x=x, y=y), options=COLLECT)
    with pytest.raises(errors.VertexError, match="AssertionError") as caught:
        engine.run()
    assert "x[9]" in "".join(caught.value.__notes__)
    assert [each.code for each in engine.findings] == ["out-of-bounds"]


def test_threads_and_replicas_find_the_same(device, mode):
    """
    Each replica's own, in order, whatever thread ran it.
    """
    seen = []
    for threads in (1, 2):
        graph = pc.Graph(pc.Device("M2000", num_ipus=4, tiles_per_ipu=8).target, replication_factor=4)
        cs = graph.add_compute_set("work")
        x, by = graph.add_variable(FLOAT, (8, 4000), name="x"), variable(graph, "by", INT, (), 0)
        y = graph.add_variable(FLOAT, (8, 4000), name="y")
        graph.set_initial_value(y, np.zeros((8, 4000), np.float32))
        graph.set_initial_value(x[1:], np.zeros((7, 4000), np.float32))
        for tile in range(8):
            for each in (x, y):
                graph.set_tile_mapping(each[tile], tile)
            vertex(graph, Shift, cs=cs, tile=tile, x=x[tile, :40], y=y[tile, :40], by=by)
        engine = pc.Engine(graph, program.Execute(cs), options={**COLLECT, "engine.threads": threads})
        found = collected(engine).findings
        seen.append([(f.code, f.tile, f.elements, str(f).partition("replica ")[2][:1]) for f in found])
    assert seen[0] == seen[1] == [("uninitialised-read", 0, (0, 39), str(replica)) for replica in range(4)]


def test_collect_without_a_check_changes_nothing(graph):
    """
    There is nothing to collect.
    """
    x, y, by = variable(graph, "x", FLOAT, (4,)), variable(graph, "y", FLOAT, (4,), 0), variable(graph, "by", INT, (), 0)
    engine = pc.Engine(graph, vertex(graph, Shift, x=x, y=y, by=by), options={"debug.check.collect": True})
    engine.run()
    assert engine.findings == ()
