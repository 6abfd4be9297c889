"""C++ codelets: what binding a vertex costs, a stencil beside the same in Python, compiling and loading.

What is timed: steps in a Repeat, on one thread; ``open``, ``find`` and ``driver`` of a tutorial-sized file, cold and warm.
Not timed: building graphs, Python's start. Both stencils are checked against each other.
"""

from __future__ import annotations

import os
import resource
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import popcore as pc
from bench.harness import Goal, Row, check_equal, compare, measure
from popcore import FLOAT, UNSIGNED_INT, Input, Output, Vector, Vertex, program

SOURCE = """
#include <poplar/HalfFloat.hpp>
#include <poplar/Vertex.hpp>

using namespace poplar;

class Bump : public Vertex {
public:
  InOut<Vector<float>> x;
  bool compute() {
    for (unsigned i = 0; i < x.size(); ++i)
      x[i] += 1.0f;
    return true;
  }
};

class Axpy : public Vertex {
public:
  InOut<Vector<float>> x;
  Input<Vector<float>> y;
  Input<float> k;
  bool compute() {
    for (unsigned i = 0; i < x.size(); ++i)
      x[i] += *k * y[i];
    return true;
  }
};

struct Grid : public Vertex {
  Input<Vector<float, VectorLayout::ONE_PTR>> north, here, south;
  Output<Vector<float, VectorLayout::ONE_PTR>> out;
  unsigned width;
  unsigned height;
};

class Stencil : public Grid {
public:
  bool compute() {
    for (unsigned r = 0; r < height; ++r) {
      const float *up = r ? &here[(r - 1) * width] : &north[0], *down = r + 1 < height ? &here[(r + 1) * width] : &south[0];
      const float *row = &here[r * width];
      float *to = &out[r * width];
      for (unsigned c = 1; c + 1 < width; ++c)
        to[c] = 0.25f * (up[c] + down[c] + row[c - 1] + row[c + 1]);
    }
    return true;
  }
};

// Sums of unsigned numbers as indices: g++ does not vectorise this, since they might wrap.
class IndexedStencil : public Grid {
public:
  bool compute() {
    for (unsigned r = 0; r < height; ++r)
      for (unsigned c = 1; c + 1 < width; ++c) {
        const float up = r ? here[(r - 1) * width + c] : north[c], down = r + 1 < height ? here[(r + 1) * width + c] : south[c];
        out[r * width + c] = 0.25f * (up + down + here[r * width + c - 1] + here[r * width + c + 1]);
      }
    return true;
  }
};
"""


class Stencil(Vertex):
    """The same in Python."""

    north: Input[Vector[FLOAT]]
    here: Input[Vector[FLOAT]]
    south: Input[Vector[FLOAT]]
    out: Output[Vector[FLOAT]]
    width: UNSIGNED_INT
    height: UNSIGNED_INT

    def compute(self):
        w = self.width
        for r in range(self.height):
            up = self.north
            if r > 0:
                up = self.here[(r - 1) * w : r * w]
            down = self.south
            if r + 1 < self.height:
                down = self.here[(r + 1) * w : (r + 2) * w]
            row = self.here[r * w : (r + 1) * w]
            to = self.out[r * w : (r + 1) * w]
            for c in range(1, w - 1):
                to[c] = 0.25 * (up[c] + down[c] + row[c - 1] + row[c + 1])


def rows(smoke: bool) -> Iterator[Row]:
    tiles, rounds = (8, 2) if smoke else (1472, 50)
    for name, goal in (("Bump", Goal(20, 10)), ("Axpy", Goal(20, 10))):
        engine = _vertices(tiles, 6, 2, rounds, name)
        yield measure(f"cpp/{name} of 2 elements", engine.run, unit="ns", per=6 * tiles * rounds, goal=goal, smoke=smoke)
    python = _stencil(tiles, rounds, Stencil, "Stencil")
    for name, label, of_python in (
        ("Stencil", "stencil by rows", Goal(1 / 1.2, 1.0, more_is_better=True)),
        ("IndexedStencil", "stencil by unsigned indices", None),
    ):
        ours = _stencil(tiles, rounds, SOURCE, name)
        check_equal("stencil", ours.read_tensor("out"), python.read_tensor("out"))
        yield compare(f"cpp/{label}, Python", ours.run, python.run, unit="us", per=rounds, goal=of_python, smoke=smoke)
    yield from _compile_times()


def _device(tiles: int) -> pc.Device:
    return pc.Device("M2000", num_ipus=1, tiles_per_ipu=tiles)


def _vertices(tiles: int, each: int, elements: int, rounds: int, name: str) -> pc.Engine:
    device = _device(tiles)
    graph, count = pc.Graph(device.target), tiles * each
    graph.add_codelets(SOURCE)
    step = graph.add_compute_set(name)
    fields: dict[str, Any] = {}
    for field, shape in {"x": (tiles, each * elements), "y": (tiles, each * elements), "k": (tiles, each)}.items():
        if name == "Bump" and field != "x":
            continue
        t = graph.add_variable(FLOAT, shape, name=field)
        for tile in range(tiles):
            graph.set_tile_mapping(t[tile], tile)
        graph.set_initial_value(t, np.ones(shape, np.float32))
        fields[field] = t.flatten() if field == "k" else t.reshape((count, elements))
    graph.add_vertices(step, name, fields, tiles=np.repeat(np.arange(tiles), each))
    return pc.Engine(graph, program.Repeat(rounds, program.Execute(step)), device=device, options={"engine.threads": 1})


def _stencil(tiles: int, rounds: int, codelets: Any, name: str, height: int = 8, width: int = 64) -> pc.Engine:
    device = _device(tiles)
    graph = pc.Graph(device.target)
    graph.add_codelets(codelets)
    grid = graph.add_variable(FLOAT, (tiles * height, width), name="grid")
    out = graph.add_variable(FLOAT, (tiles * height, width), name="out")
    edge = graph.add_variable(FLOAT, (width,), name="edge", tile=0)
    graph.set_initial_value(grid, np.random.default_rng(1).standard_normal(grid.shape).astype(np.float32))
    graph.set_initial_value(out, np.zeros(out.shape, np.float32))
    graph.set_initial_value(edge, np.zeros(width, np.float32))
    step = graph.add_compute_set("stencil")
    for tile in range(tiles):
        first, last = tile * height, (tile + 1) * height
        for t in (grid, out):
            graph.set_tile_mapping(t[first:last], tile)
        fields = {
            "north": grid[first - 1] if first else edge, "here": grid[first:last].flatten(), "out": out[first:last].flatten(),
            "south": grid[last] if last < grid.shape[0] else edge, "width": width, "height": height,
        }  # fmt: skip
        graph.add_vertex(step, name, fields, tile=tile)
    graph.create_host_read("out", out)
    engine = pc.Engine(graph, program.Repeat(rounds, program.Execute(step)), device=device, options={"engine.threads": 1})
    engine.run()
    return engine


def _processor_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def _compile_times() -> Iterator[Row]:
    from popcore.bindings.unit import open_unit

    with tempfile.TemporaryDirectory() as folder:
        before = os.environ.get("POPCORE_CACHE_DIR")
        os.environ["POPCORE_CACHE_DIR"] = folder
        try:
            start = _processor_seconds()
            open_unit(SOURCE).find("Stencil").driver()  # type: ignore[union-attr]  # it is there
            yield Row("cpp/compile a file, processor time", _processor_seconds() - start, "s", goal=Goal(1.5, 0.9))
            took = []
            for _ in range(5):
                began = time.perf_counter()
                open_unit(SOURCE).find("Stencil").driver()  # type: ignore[union-attr]
                took.append(time.perf_counter() - began)
            yield Row("cpp/find it again, warm", 1e3 * sorted(took)[2], "ms", goal=Goal(5, 2))
        finally:
            if before is None:
                del os.environ["POPCORE_CACHE_DIR"]
            else:
                os.environ["POPCORE_CACHE_DIR"] = before
