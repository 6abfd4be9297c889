"""debug.first_nan: is the vertex that made the first number that is none told, with its line and its inputs, and no other?"""

import linecache

import numpy as np
import pytest

import popcore as pc
from popcore import FLOAT, HALF, INT, InOut, Input, Matrix, MultiVertex, Output, Vector, VectorList, Vertex, errors, program

SOURCE = """
#include <poplar/Vertex.hpp>
using namespace poplar;
struct Inverse : Vertex {
  Input<Vector<float>> x;
  Output<Vector<float>> y;
  void compute() {
    for (unsigned i = 0; i < y.size(); ++i)
      y[i] = 1.0f / x[i];
  }
};
"""


class Inverse(Vertex):
    x: Input[Vector[FLOAT]]
    y: Output[Vector[FLOAT]]

    def compute(self):
        for i in range(len(self.y)):
            if i % 2 == 0:
                self.y[i] = self.x[i]
            else:
                self.y[i] = 1.0 / self.x[i]  # here


class Grow(MultiVertex):
    m: InOut[Matrix[FLOAT]]
    h: InOut[VectorList[HALF]]
    by: Input[FLOAT]

    def compute(self, worker):
        if worker < len(self.m):
            self.m[worker, 1] = self.m[worker, 1] * self.by
        for i in range(len(self.h[0])):
            if i == worker:
                self.h[1][i] *= HALF(self.by)


class Copies(Vertex):
    x: Input[Vector[FLOAT]]
    y: InOut[Vector[FLOAT]]
    n: Input[INT]

    def compute(self):
        for i in range(self.n):
            self.y[i] = self.x[i]


@pytest.fixture(params=["compiled", "interpreted"])
def mode(request, monkeypatch):
    """Codelets as machine code, and as Python: the same finding."""
    monkeypatch.setenv("POPCORE_INTERPRET", str(int(request.param == "interpreted")))


def variable(graph, name, dtype, value, tile=0):
    values = np.asarray(value, dtype.numpy)
    made = graph.add_variable(dtype, values.shape, name=name, tile=tile)
    graph.set_initial_value(made, values)
    graph.create_host_read(name, made)
    return made


def vertex(graph, codelet, tile=0, name="work", **fields):
    cs = graph.add_compute_set(name)
    graph.add_vertex(cs, codelet, fields, tile=tile)
    return program.Execute(cs)


def found(graph, made, **options):
    engine = pc.Engine(graph, made, options={"debug.first_nan": True, **options})
    with pytest.raises(errors.NonFiniteError, match=r"(?s)codelet .*try:") as caught:
        engine.run()
    return caught.value, engine


@pytest.mark.parametrize("seed", [0, 5])
def test_the_first_vertex_is_named(graph, mode, seed):
    """
    With element, tile, compute set and the line of the statement; later ones, on this tile and others, are not. What ran before can be read.
    """
    fine = variable(graph, "fine", FLOAT, [1, 2, 3, 4])
    x, y = variable(graph, "x", FLOAT, [1, 0, 2, 0], tile=1), variable(graph, "y", FLOAT, np.zeros(4), tile=2)
    cs = graph.add_compute_set("inverse")
    for tile, at in ((6, y), (3, fine)):
        graph.add_vertex(cs, Inverse, {"x": fine if at is fine else x, "y": variable(graph, f"out {tile}", FLOAT, np.zeros(4), tile=tile)}, tile=tile)
    graph.add_vertex(cs, Inverse, {"x": x, "y": y}, tile=4)
    steps = program.Sequence(vertex(graph, Inverse, x=fine, y=variable(graph, "before", FLOAT, np.zeros(4))), program.Execute(cs))
    error, engine = found(graph, steps, **{"debug.schedule_seed": seed})
    assert (error.code, error.codelet, error.tile, error.vertex, error.compute_set) == ("infinity", "Inverse", 4, 2, "inverse")
    assert (error.field, error.element, error.value, error.variable, error.elements) == ("y", 1, np.inf, "y", (1, 1))
    assert "# here" in linecache.getline(error.file, error.line)
    assert "its inputs were finite" in str(error)
    assert engine.read_tensor("before").tolist() == [1, 0.5, 3, 0.25]


def test_a_number_that_was_none_before_is_told_as_an_input(graph, mode):
    """
    Which element of which field, and what it was.
    """
    x, y = variable(graph, "x", FLOAT, [1, 2, np.nan, 4]), variable(graph, "y", FLOAT, np.zeros(4))
    error, _ = found(graph, vertex(graph, Inverse, x=x, y=y))
    assert (error.code, error.element) == ("nan", 2)
    assert "its inputs: x[2] was nan" in str(error)


@pytest.mark.parametrize(("factor", "start", "code", "field", "worker"), [(1e30, 0, "infinity", "m", 1), (16, 1000, "saturated", "h", 1)])
def test_matrices_lists_and_workers(graph, mode, factor, start, code, field, worker):
    """
    In the second round of a loop, by the worker that did it; the half is told to be saturated, since a tile has no infinity of them.
    """
    m, h = variable(graph, "m", FLOAT, [[0, 0], [0, 1]]), variable(graph, "h", HALF, [[0, 0], [0, start]])
    by = variable(graph, "by", FLOAT, factor)
    work = vertex(graph, Grow, m=m, h=h, by=by)
    error, engine = found(graph, program.Repeat(5, work))
    assert (error.code, error.field, error.worker, error.variable) == (code, field, worker, field)
    assert ("self.m[worker, 1] =" if field == "m" else "self.h[1][i] *=") in linecache.getline(error.file, error.line)
    assert engine.read_tensor("m")[0].tolist() == [0, 0]
    assert engine.profile().runs == 0


def test_what_an_inout_held_is_not_new(graph, mode):
    """
    A NaN that the host wrote and a vertex leaves alone is nobody's; one that it copies is.
    """
    x, y = variable(graph, "x", FLOAT, [1, 2, np.inf]), variable(graph, "y", FLOAT, [np.nan, np.nan, 0])
    engine = pc.Engine(graph, vertex(graph, Copies, x=x, y=y, n=variable(graph, "n", INT, 2)), options={"debug.first_nan": True})
    engine.run()
    np.testing.assert_array_equal(engine.read_tensor("y"), [1, 2, 0])
    error, _ = found(graph, vertex(graph, Copies, x=x, y=y, n=variable(graph, "all", INT, 3)))
    assert (error.element, error.value) == (2, np.inf)


def test_an_executable_that_was_compiled_without(graph):
    """
    It has no names of variables; the field is told.
    """
    x, y = variable(graph, "x", FLOAT, [1, 0]), variable(graph, "y", FLOAT, [0, 0])
    made = pc.Engine(graph, vertex(graph, Inverse, x=x, y=y)).executable
    with pytest.raises(errors.NonFiniteError, match=r"wrote inf to y\[1\]: the first") as caught:
        pc.Engine(made, options={"debug.first_nan": True}).run()
    assert "here" in linecache.getline(caught.value.file, caught.value.line)


def test_codelets_in_cpp(graph):
    """
    The line is that of the class.
    """
    graph.add_codelets(SOURCE)
    x, y = variable(graph, "x", FLOAT, [1, 2, 0, 4]), variable(graph, "y", FLOAT, np.zeros(4))
    error, _ = found(graph, vertex(graph, "Inverse", x=x, y=y))
    assert (error.element, error.line) == (2, 4)


def test_replicas(mode):
    """
    The one is told; loops, branches, prints and host reads are as ever.
    """
    graph = pc.Graph(pc.Device("M2000", num_ipus=2, tiles_per_ipu=8).target, replication_factor=2)
    x, y = variable(graph, "x", FLOAT, [1, 2, 3, 4]), variable(graph, "y", FLOAT, np.zeros(4))
    graph.create_host_write("x in", x)
    engine = pc.Engine(graph, program.Repeat(2, vertex(graph, Inverse, x=x, y=y)), options={"debug.first_nan": True})
    engine.write_tensor("x in", np.array([[1, 2, 3, 4], [1, 0, 1, 0]], np.float32))
    with pytest.raises(errors.NonFiniteError, match=r"replica 1.*'work'"):
        engine.run()
    engine.write_tensor("x in", np.array([1, 2, 3, 4], np.float32))
    engine.run()
    assert engine.read_tensor("y")[1].tolist() == [1, 0.5, 3, 0.25]
    assert engine.profile().runs == 1
