"""Estimates in closed form: what sizes decide is known before anything runs."""

import math

import numpy as np
import pytest

import popcore as pc
from popcore import FLOAT, HALF, INT, InOut, Input, Matrix, MultiVertex, Output, Vector, VectorList, Vertex, program
from popcore.codelet import codelet_of
from popcore.dialect import lower
from popcore.estimate import estimate_of
from popcore.estimate.walk import estimate_python


class _Size:
    def __init__(self, *shape, parts=()):
        self.shape, self.parts = shape, parts

    def __getitem__(self, index):
        return self.parts[index]


def _fixed(codelet, **sizes):
    """Worker cycles of a codelet of which nothing is counted."""
    made = codelet_of(codelet)
    estimate = estimate_of(made)
    assert estimate is not None
    assert not estimate.counted
    return estimate.fixed({name: size if isinstance(size, _Size) else _Size(*size) for name, size in sizes.items()}, made.workers)


class Triangle(Vertex):
    m: InOut[Matrix[FLOAT]]

    def compute(self):
        for r in range(self.m.shape[0]):
            for c in range(r):
                self.m[r, c] = self.m[r, c] * 0.5


def test_a_loop_inside_of_another_may_depend_on_it():
    """
    Rounds of a triangle: the sum over its rows, each in pairs of elements.
    """
    per_row = [_fixed(Triangle, m=(n, 64)) for n in range(60)]
    steps = np.diff(np.diff(per_row))
    assert set(steps) <= {0.0, 2.0}
    assert steps.sum() == pytest.approx(2 * 58 / 2, abs=2)


class Pieces(Vertex):
    x: Input[VectorList[FLOAT]]
    out: Output[Vector[FLOAT]]

    def compute(self):
        for i in range(len(self.x)):
            total = 0.0
            for j in range(len(self.x[i])):
                total += self.x[i][j]
            self.out[i] = total


def test_pieces_of_a_list_have_sizes_of_their_own():
    """
    A piece of twenty more elements takes ten more cycles.
    """

    def cycles(*lengths):
        parts = [_Size(n) for n in lengths]
        return _fixed(Pieces, x=_Size(len(parts), parts=parts), out=(len(parts),))

    assert cycles(40, 20, 20) - cycles(20, 20, 20) == 10


class Shared(MultiVertex):
    x: InOut[Vector[FLOAT]]

    def compute(self, worker):
        for i in range(worker, len(self.x), 6):
            self.x[i] = self.x[i] + 1.0


def test_six_workers_share_what_there_is():
    """
    The slowest has a sixth of it, rounded up: a load and a store for each, whose neighbours another worker has.
    """
    assert _fixed(Shared, x=(601,)) - _fixed(Shared, x=(1,)) == 2 * (math.ceil(601 / 6) - 1)


class Edges(Vertex):
    x: InOut[Vector[FLOAT]]

    def compute(self):
        for i in range(len(self.x)):
            if i == 0 or i == len(self.x) - 1:
                self.x[i] = 0.0
            else:
                self.x[i] = math.sqrt(self.x[i])


def test_a_branch_that_sizes_decide_is_not_counted():
    """
    Two elements are at an edge, whatever the size; a square root takes five.
    """
    per_element = _fixed(Edges, x=(101,)) - _fixed(Edges, x=(100,))
    at_edges = _fixed(Edges, x=(2,)) - _fixed(Edges, x=(1,))
    assert per_element - at_edges == 1 + 5


class Invariant(Vertex):
    x: InOut[Vector[FLOAT]]
    k: Input[FLOAT]

    def compute(self):
        for i in range(len(self.x)):
            self.x[i] = self.x[i] * (math.exp(self.k) + 1.0)


class Hoisted(Vertex):
    x: InOut[Vector[FLOAT]]
    k: Input[FLOAT]

    def compute(self):
        factor = math.exp(self.k) + 1.0
        for i in range(len(self.x)):
            self.x[i] = self.x[i] * factor


def test_what_a_loop_does_not_change_is_computed_once():
    """
    Written inside or outside, it takes the same.
    """
    assert _fixed(Invariant, x=(256,), k=()) == _fixed(Hoisted, x=(256,), k=())


class Prefix(Vertex):
    x: InOut[Vector[FLOAT]]

    def compute(self):
        for i in range(1, len(self.x)):
            self.x[i] = self.x[i] + self.x[i - 1]


class Shift(Vertex):
    x: Input[Vector[HALF]]
    y: Output[Vector[HALF]]

    def compute(self):
        for i in range(len(self.y)):
            self.y[i] = self.x[i + 4]


def test_what_the_next_round_needs_is_not_done_at_once():
    """
    A running sum goes one by one; a copy from four halves away goes by four.
    """
    assert _fixed(Prefix, x=(201,)) - _fixed(Prefix, x=(101,)) >= 2 * 100
    assert _fixed(Shift, x=(404,), y=(400,)) - _fixed(Shift, x=(204,), y=(200,)) == 2 * 200 / 4


class Untold(Vertex):
    x: InOut[Vector[FLOAT]]

    def compute(self):
        for i in range(len(self.x)):
            self.x[i] += 1.0
        else:
            self.x[0] = 0.0


def test_what_is_not_understood_says_so():
    """
    Its cycles are of its size alone, and the profile says that.
    """
    assert estimate_python(lower(codelet_of(Untold))) is None
    graph = pc.Graph(pc.Device("M2000", num_ipus=1, tiles_per_ipu=1).target)
    x = graph.add_variable(FLOAT, (100,), name="x")
    graph.set_tile_mapping(x, 0)
    compute = graph.add_compute_set("untold")
    graph.add_vertex(compute, Untold, {"x": x}, 0)
    engine = pc.Engine(graph, program.Execute(compute))
    engine.run()
    profile = engine.profile()
    assert profile.codelets["Untold"].cycles_from == {"stopgap": 1}
    assert "by size alone" in profile.summary()


class Says(Vertex):
    x: InOut[Vector[INT]]

    def compute(self):
        for i in range(len(self.x)):
            if self.x[i] > 3:
                self.x[i] = 3

    def cycles(self):
        return 77


def test_a_formula_wins():
    """
    ``cycles(self)`` is asked before the code is, and nothing is counted.
    """
    graph = pc.Graph(pc.Device("M2000", num_ipus=1, tiles_per_ipu=1).target)
    x = graph.add_variable(INT, (100,), name="x")
    graph.set_tile_mapping(x, 0)
    compute = graph.add_compute_set("says")
    graph.add_vertex(compute, Says, {"x": x}, 0)
    engine = pc.Engine(graph, program.Execute(compute))
    engine.run()
    found = engine.profile().codelets["Says"]
    assert (found.worker_cycles, found.cycles_from, found.counted) == (77, {"formula": 1}, False)
