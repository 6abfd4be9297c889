"""What a vertex costs: ``x += k * y`` on all tiles of one IPU, its data in the cache, on one thread.

What is timed: the step, in a Repeat long enough that the machine costs nothing. What is not: compiling, loading.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import popcore as pc
from bench.harness import Goal, Row, check_equal, measure
from bench.programs.codelets import Axpy
from popcore import FLOAT, program

VERTICES = 6  # on each tile
GOALS = {4: Goal(15, 6), 16: None, 64: None}


def rows(smoke: bool) -> Iterator[Row]:
    tiles, rounds = (8, 2) if smoke else (1472, 50)
    for elements, goal in GOALS.items():
        engine = _engine(tiles, elements, rounds)
        yield measure(f"vertex/{elements} elements", engine.run, unit="ns", per=tiles * VERTICES * rounds, goal=goal, smoke=smoke)


def _engine(tiles: int, elements: int, rounds: int) -> pc.Engine:
    device = pc.Device("M2000", num_ipus=1, tiles_per_ipu=tiles)
    graph, count = pc.Graph(device.target), tiles * VERTICES
    x = graph.add_variable(FLOAT, (tiles, VERTICES * elements), name="x")
    y = graph.add_variable(FLOAT, (tiles, VERTICES * elements), name="y")
    k = graph.add_variable(FLOAT, (tiles, VERTICES), name="k")
    for tile in range(tiles):
        for each in (x, y, k):
            graph.set_tile_mapping(each[tile], tile)
    step = graph.add_compute_set("axpy")
    fields = {"x": x.reshape(count, elements), "y": y.reshape(count, elements), "k": k.flatten()}
    graph.add_vertices(step, Axpy, fields, tiles=np.repeat(np.arange(tiles), VERTICES))
    graph.create_host_write("y", fields["y"])
    graph.create_host_write("k", fields["k"])
    graph.create_host_read("x", fields["x"])
    engine = pc.Engine(graph, program.Repeat(rounds, program.Execute(step)), device=device, options={"engine.threads": 1})
    rng = np.random.default_rng(0)
    factors, addend = rng.standard_normal(count, np.float32), rng.standard_normal((count, elements), np.float32)
    engine.write_tensor("k", factors)
    engine.write_tensor("y", addend)
    engine.run()
    expected = np.zeros((count, elements), np.float32)
    for _ in range(rounds):
        expected += factors[:, None] * addend
    check_equal(f"vertices of {elements} elements", engine.read_tensor("x"), expected)
    return engine
