"""What debug.check costs: codelets in Python and C++ with checks, beside the same without.

What is timed: steps in a Repeat on one thread, vectors of 4,096 floats that stay in a core's caches. Not timed: compiling. What the
plain and the checked run compute is checked to be equal, bit for bit. A ratio of 0.2 is five times the time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import popcore as pc
from bench.harness import Goal, Row, check_equal, compared, interleave
from popcore import FLOAT, InOut, Input, Vector, Vertex, program

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

struct Stencil : Vertex {
  Input<Vector<float>> x;
  InOut<Vector<float>> y;
  void compute() {
    for (unsigned i = 1; i + 1 < x.size(); ++i)
      y[i] = 0.25f * (x[i - 1] + 2.0f * x[i] + x[i + 1]);
  }
};

struct Reduce : Vertex {
  Input<Vector<float>> x;
  InOut<Vector<float>> y;
  void compute() {
    float total = 0;
    for (unsigned i = 0; i < x.size(); ++i)
      total += x[i];
    y[0] = total;
  }
};

struct Dot : Vertex {
  Input<Vector<float>> x;
  InOut<Vector<float>> y;
  void compute() {
    float total = 0;
    for (unsigned i = 1; i < x.size(); ++i)
      total += x[i] * y[i];
    y[0] = total;
  }
};
"""


class Axpy(Vertex):
    x: Input[Vector[FLOAT]]
    y: InOut[Vector[FLOAT]]

    def compute(self):
        for i in range(len(self.y)):
            self.y[i] += 0.5 * self.x[i]


class Stencil(Vertex):
    x: Input[Vector[FLOAT]]
    y: InOut[Vector[FLOAT]]

    def compute(self):
        for i in range(1, len(self.x) - 1):
            self.y[i] = 0.25 * (self.x[i - 1] + 2.0 * self.x[i] + self.x[i + 1])


class Reduce(Vertex):
    x: Input[Vector[FLOAT]]
    y: InOut[Vector[FLOAT]]

    def compute(self):
        total = 0.0
        for i in range(len(self.x)):
            total += self.x[i]
        self.y[0] = total


class Dot(Vertex):
    x: Input[Vector[FLOAT]]
    y: InOut[Vector[FLOAT]]

    def compute(self):
        total = 0.0
        for i in range(1, len(self.x)):
            total += self.x[i] * self.y[i]
        self.y[0] = total


GOALS = {"bounds": Goal(1 / 5, 1 / 2, more_is_better=True), "full": Goal(1 / 80, 1 / 20, more_is_better=True)}
TILES, ELEMENTS = 4, 4096


def rows(smoke: bool) -> Iterator[Row]:
    rounds = 1 if smoke else 20
    for language in ("Python", "C++"):
        for codelet in (Axpy, Stencil, Reduce, Dot):
            engines = {check: _engine(codelet if language == "Python" else codelet.__name__, check, rounds) for check in ("off", *GOALS)}
            for check in GOALS:
                check_equal(f"{codelet.__name__}, {check}", engines[check].read_tensor("y"), engines["off"].read_tensor("y"))
            off, *checked = interleave([engine.run for engine in engines.values()], smoke)
            for check, times in zip(GOALS, checked, strict=True):
                name = f"sanitizer/{codelet.__name__.lower()} in {language}, {check}, off"
                yield compared(name, times, off, unit="ns", per=rounds * TILES * ELEMENTS, goal=GOALS[check])


def _engine(codelet: Any, check: str, rounds: int) -> pc.Engine:
    device = pc.Device("M2000", num_ipus=1, tiles_per_ipu=TILES)
    graph = pc.Graph(device.target)
    if isinstance(codelet, str):
        graph.add_codelets(SOURCE)
    step = graph.add_compute_set("step")
    x, y = (graph.add_variable(FLOAT, (TILES, ELEMENTS), name=name) for name in "xy")
    for tile in range(TILES):
        for t in (x, y):
            graph.set_tile_mapping(t[tile], tile)
        graph.add_vertex(step, codelet, {"x": x[tile], "y": y[tile]}, tile=tile)
    values = np.random.default_rng(1).standard_normal((TILES, ELEMENTS)).astype(np.float32)
    graph.set_initial_value(x, values)
    graph.set_initial_value(y, values[::-1].copy())
    graph.create_host_read("y", y)
    engine = pc.Engine(graph, program.Repeat(rounds, program.Execute(step)), device=device, options={"engine.threads": 1, "debug.check": check})
    engine.run()
    return engine
