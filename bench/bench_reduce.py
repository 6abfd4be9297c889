"""Sums over rows, over columns and over all elements by popops.reduce on all tiles of one IPU, against numpy.sum, each on one thread.

What is timed: the steps of the reduction, exchange included, the data on the tiles. What is not: building, compiling, the host.
NumPy's sums of half are of float32 too, as ours are. Over columns the time goes to the exchange: rows are mapped to tiles one after the other, so
each of 1,472 tiles has a part of every column and sends each other one a message of some 24 bytes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import popcore as pc
from bench.harness import Goal, Row, WrongAnswer, compare
from popcore import program
from popcore.ops import popops, poputil

TILES = 1472
SHAPE = (8192, 8192)
GOAL = Goal(0.2, 1.0, more_is_better=True)
CASES = {"rows": (1,), "columns": (0,), "all": (0, 1)}
"""The dimensions that are summed over."""


def rows(smoke: bool) -> Iterator[Row]:
    for dtype in ("float32", "float16"):
        for name, dims in CASES.items():
            yield _row(f"reduce/{name}{' half' if dtype == 'float16' else ''}", np.dtype(dtype), dims, smoke)


def _row(name: str, dtype: np.dtype, dims: tuple[int, ...], smoke: bool) -> Row:
    shape = (96, 80) if smoke else SHAPE
    device = pc.Device("M2000", num_ipus=1, tiles_per_ipu=8 if smoke else TILES)
    graph, prog = pc.Graph(device.target), program.Sequence()
    data = graph.add_variable(dtype, shape, name="data")
    poputil.map_tensor_linearly(graph, data)
    graph.create_host_write("data", data)
    graph.create_host_read("sums", popops.reduce(graph, data, dims, popops.Operation.ADD, prog, out_type="float"))
    engine = pc.Engine(graph, prog, device=device, options={"engine.threads": 1})
    values = np.random.default_rng(0).random(shape, np.float32).astype(dtype)
    engine.write_tensor("data", values)
    engine.run()
    out = np.zeros([n for d, n in enumerate(shape) if d not in dims], np.float32)
    if not np.allclose(engine.read_tensor("sums"), np.sum(values, axis=dims, dtype=np.float64), rtol=1e-4):
        raise WrongAnswer(name)
    return compare(name, engine.run, lambda: np.sum(values, axis=dims, dtype=np.float32, out=out), unit="ns", per=values.size, goal=GOAL, smoke=smoke)
