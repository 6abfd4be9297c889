"""One step of a whole POD64 against flat NumPy: 565,248 vertices of ``x += k * y`` on 94,208 tiles, on one thread.

What is timed: one run of the step, and the same arithmetic on flat arrays with a buffer that is there already.
What is not: compiling, loading, moving data between host and tiles.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import popcore as pc
from bench.harness import Goal, Row, check_equal, compare
from bench.programs.codelets import Axpy
from popcore import FLOAT, program

VERTICES = 6  # on each tile
K = np.float32(0.37)
GOAL = Goal(1.0, 1.25, more_is_better=True)
GOALS = {4: None, 16: None, 64: GOAL, 200: GOAL}


def rows(smoke: bool) -> Iterator[Row]:
    for elements, goal in GOALS.items():
        yield _row(elements, goal, smoke)


def _row(elements: int, goal: Goal | None, smoke: bool) -> Row:
    device = pc.Device("POD64", tiles_per_ipu=2) if smoke else pc.Device("POD64")
    count = device.target.num_tiles * VERTICES
    x, y = (np.random.default_rng(seed).standard_normal((count, elements), np.float32) for seed in range(2))
    engine = _engine(device, count, elements, x, y)
    product = np.empty_like(x)

    def flat() -> None:
        np.multiply(y, K, out=product)
        np.add(x, product, out=x)

    engine.run()
    flat()
    check_equal(f"{count:,} vertices of {elements} elements", engine.read_tensor("x"), x)
    return compare(f"pod64_step/{elements} elements", engine.run, flat, unit="ms", goal=goal, smoke=smoke)


def _engine(device: pc.Device, count: int, elements: int, x_data: np.ndarray, y_data: np.ndarray) -> pc.Engine:
    graph, tiles = pc.Graph(device.target), np.arange(device.target.num_tiles)
    x = graph.add_variable(FLOAT, (count, elements), name="x")
    y = graph.add_variable(FLOAT, (count, elements), name="y")
    k = graph.add_variable(FLOAT, (count,), name="k")
    for tensor, width in ((x, elements), (y, elements), (k, 1)):
        each = VERTICES * width
        graph.map_intervals(tensor, tiles * each, np.full(len(tiles), each), tiles)
    step = graph.add_compute_set("axpy")
    graph.add_vertices(step, Axpy, {"x": x, "y": y, "k": k}, tiles=np.repeat(tiles, VERTICES))
    for name, tensor in (("x", x), ("y", y), ("k", k)):
        graph.create_host_write(name, tensor)
    graph.create_host_read("x", x)
    engine = pc.Engine(graph, program.Execute(step), device=device, options={"engine.threads": 1})
    engine.write_tensor("x", x_data)
    engine.write_tensor("y", y_data)
    engine.write_tensor("k", np.full(count, K))
    return engine
