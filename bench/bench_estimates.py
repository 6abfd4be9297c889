"""What automatic estimates cost: a run whose codelets count what data decides, beside the same with cycles that were given; and forming them.

What is timed: steps in a Repeat on one thread, vectors of 1,000 floats that stay in a core's caches; and the estimate of a codelet in Python
from its lowered code. Not timed: compiling. What both runs compute is checked to be equal, bit for bit. Codelets whose cycles sizes decide
have no counters in Python, and in C++ their counters leave their loops.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Any

import numpy as np

import popcore as pc
from bench.harness import Goal, Row, check_equal, compared, interleave, measure
from popcore import FLOAT, InOut, Input, Vector, Vertex, program
from popcore.codelet import codelet_of
from popcore.dialect import lower
from popcore.estimate.walk import estimate_python

SOURCE = """
#include <poplar/Vertex.hpp>
using namespace poplar;

struct Axpy : Vertex {
  Input<Vector<float>> x;
  InOut<Vector<float>> y;
  void compute() {
    for (unsigned i = 0; i < y.size(); ++i)
      y[i] += 0.5f * x[i];
  }
};

struct Clip : Vertex {
  Input<Vector<float>> x;
  InOut<Vector<float>> y;
  void compute() {
    for (unsigned i = 0; i < y.size(); ++i)
      if (x[i] > 0.5f)
        y[i] = x[i];
  }
};

struct Settle : Vertex {
  Input<Vector<float>> x;
  InOut<Vector<float>> y;
  void compute() {
    for (unsigned i = 0; i < y.size(); ++i) {
      float z = 4.0f + x[i];
      while (z > 1.0f)
        z = z * 0.5f;
      y[i] = z;
    }
  }
};
"""


class Axpy(Vertex):
    x: Input[Vector[FLOAT]]
    y: InOut[Vector[FLOAT]]

    def compute(self):
        for i in range(len(self.y)):
            self.y[i] += 0.5 * self.x[i]


class Clip(Vertex):
    x: Input[Vector[FLOAT]]
    y: InOut[Vector[FLOAT]]

    def compute(self):
        for i in range(len(self.y)):
            if self.x[i] > 0.5:
                self.y[i] = self.x[i]


class Settle(Vertex):
    x: Input[Vector[FLOAT]]
    y: InOut[Vector[FLOAT]]

    def compute(self):
        for i in range(len(self.y)):
            z = 4.0 + self.x[i]
            while z > 1.0:
                z = z * 0.5
            self.y[i] = z


NOT_SLOWER = Goal(1 / 1.3, 1, more_is_better=True)
FORMING = Goal(10, 2)  # ms; compiling a codelet takes 60
TILES, ELEMENTS = 4, 1000
LAYOUTS = 3  # engines of each kind, of which the fastest counts: where memory happens to lie shows


def rows(smoke: bool) -> Iterator[Row]:
    rounds = 1 if smoke else 20
    for language in ("Python", "C++"):
        for codelet in (Axpy, Clip, Settle):
            chosen = codelet if language == "Python" else codelet.__name__
            engines = [_engine(chosen, estimated, rounds) for estimated in (True, False) for _ in range(LAYOUTS)]
            check_equal(codelet.__name__, engines[0].read_tensor("y"), engines[-1].read_tensor("y"))
            times = interleave([engine.run for engine in engines], smoke)
            counted, given = (min(times[i : i + LAYOUTS], key=statistics.median) for i in (0, LAYOUTS))
            name = f"estimates/{codelet.__name__.lower()} in {language}, automatic, given"
            yield compared(name, counted, given, unit="ns", per=rounds * TILES * ELEMENTS, goal=NOT_SLOWER)
    lowered = lower(codelet_of(Settle))
    yield measure("estimates/forming one", lambda: estimate_python(lowered), unit="ms", goal=FORMING, smoke=smoke)


def _engine(codelet: Any, estimated: bool, rounds: int) -> pc.Engine:
    device = pc.Device("M2000", num_ipus=1, tiles_per_ipu=TILES)
    graph = pc.Graph(device.target)
    if isinstance(codelet, str):
        graph.add_codelets(SOURCE)
    step = graph.add_compute_set("step")
    x, y = (graph.add_variable(FLOAT, (TILES, ELEMENTS), name=name) for name in "xy")
    for tile in range(TILES):
        for t in (x, y):
            graph.set_tile_mapping(t[tile], tile)
        vertex = graph.add_vertex(step, codelet, {"x": x[tile], "y": y[tile]}, tile=tile)
        if not estimated:
            graph.set_perf_estimate(vertex, 1)
    values = np.random.default_rng(1).standard_normal((TILES, ELEMENTS)).astype(np.float32)
    graph.set_initial_value(x, values)
    graph.set_initial_value(y, values[::-1].copy())
    graph.create_host_read("y", y)
    engine = pc.Engine(graph, program.Repeat(rounds, program.Execute(step)), device=device, options={"engine.threads": 1})
    engine.run()
    return engine
