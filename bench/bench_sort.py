"""popops.sort and top_k over all tiles of an IPU against NumPy, on one thread.

What is timed: the run, with the numbers on the tiles. What is not: building, compiling, the host.

Below 0.2 of NumPy are the sorts, for two reasons. What is sent where is fixed when the graph is built, so they are Batcher's network: with
1,472 blocks every number is merged up to 66 times. And NumPy compares with vector instructions, which a merge on a tile has no use for;
that is what rows show which one tile sorts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

import popcore as pc
from bench.harness import Goal, Row, check_equal, compare
from popcore import FLOAT, HALF, UNSIGNED_INT, program
from popcore.ops import popops
from popcore.ops.popops import SortOrder, TopKParams

TOP_K_GOAL = Goal(0.2, 1.0, True)
ONE_OF_MANY = 100  # wanted by top_k


def rows(smoke: bool) -> Iterator[Row]:
    size, tiles = (1000, 8) if smoke else (1 << 20, 1472)
    for dtype in (FLOAT, UNSIGNED_INT, HALF):
        yield _row(f"sort/{size} of {dtype!r}", (size,), tiles, dtype, _sort, lambda x: np.sort(x), None, smoke)
    few = (8, 64) if smoke else (1472, 512)
    yield _row(f"sort/{few[0]} rows of {few[1]}", few, tiles, FLOAT, _sort, lambda x: np.sort(x, axis=-1), None, smoke)
    k = 5 if smoke else ONE_OF_MANY
    yield _row(f"top_k/{k} of {size}", (size,), tiles, FLOAT, _top_k(k), lambda x: -np.sort(np.partition(-x, k)[:k]), TOP_K_GOAL, smoke)


def _sort(graph: pc.Graph, t: pc.Tensor, step: program.Sequence) -> pc.Tensor:
    return popops.sort(graph, t, t.rank - 1, step)


def _top_k(k: int) -> Callable[..., pc.Tensor]:
    return lambda graph, t, step: popops.top_k(graph, step, t, TopKParams(k, True, SortOrder.DESCENDING))


def _row(
    name: str, shape: tuple[int, ...], tiles: int, dtype: object, make: Callable[..., pc.Tensor], by_numpy: Callable, goal: Goal | None, smoke: bool
) -> Row:
    graph, step = pc.Graph(pc.Device("M2000", num_ipus=1, tiles_per_ipu=tiles).target), program.Sequence()
    t = graph.add_variable(dtype, shape, "linear", name="t")
    graph.create_host_write("t", t)
    graph.create_host_read("out", make(graph, t, step))
    engine = pc.Engine(graph, step, options={"engine.threads": 1})
    rng = np.random.default_rng(0)
    x = (rng.normal(size=shape) if dtype is not UNSIGNED_INT else rng.integers(0, 1 << 32, shape, np.uint32)).astype(t.dtype.numpy)
    engine.write_tensor("t", x)
    engine.run()
    check_equal(name, engine.read_tensor("out"), by_numpy(x))
    return compare(name, engine.run, lambda: by_numpy(x), unit="ms", goal=goal, smoke=smoke)
