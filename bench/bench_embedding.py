"""Look-ups in a table of a million rows of 64 over the tiles of an IPU, and updates of it, against NumPy, on one thread.

What is timed: the run, with table, indices and slices on the tiles. What is not: building, compiling, the host.

Which row a look-up wants is known at run time, and what is sent where is not: every part of the table goes through all indices, and lists
as long as the longest are sent in full. NumPy follows a pointer instead, so that look-ups alone are far below its speed.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import popcore as pc
from bench.harness import Goal, Row, WrongAnswer, check_equal, compare
from popcore import FLOAT, program
from popcore.ops import popops

UPDATE_GOAL = Goal(0.2, 1.0, True)


def rows(smoke: bool) -> Iterator[Row]:
    entries, columns, lookups, tiles = (3000, 8, 200, 16) if smoke else (1_000_000, 64, 1 << 16, 1472)
    graph = pc.Graph(pc.Device("M2000", num_ipus=1, tiles_per_ipu=tiles).target)
    plan = popops.embedding.plan(graph, FLOAT, entries, columns, [lookups], {})
    t = popops.create_sliceable_tensor(graph, FLOAT, (entries, columns), [0], [1], plan)
    indices = popops.create_indices_tensor(graph, [0], lookups, plan)
    s = popops.create_slice_tensor(graph, FLOAT, (entries, columns), [0], [1], lookups, plan)
    look_up, update = program.Sequence(), program.Sequence()
    out = popops.multi_slice(graph, t, indices, [0], [1], look_up, plan)
    popops.multi_update_add(graph, t, s, indices, 1.0, [0], [1], update, plan)
    for name, each in (("t", t), ("indices", indices), ("s", s)):
        graph.create_host_write(name, each)
    for name, each in (("out", out), ("table", t)):
        graph.create_host_read(name, each)
    engine = pc.Engine(graph, [look_up, update], options={"engine.threads": 1})
    yield from _compared(engine, entries, columns, lookups, smoke)


def _compared(engine: pc.Engine, entries: int, columns: int, lookups: int, smoke: bool) -> Iterator[Row]:
    rng = np.random.default_rng(0)
    table, new = (rng.standard_normal((n, columns), np.float32) for n in (entries, lookups))
    at = rng.integers(0, entries, lookups)
    engine.write_tensor("t", table)
    engine.write_tensor("indices", at.astype(np.uint32)[:, None])
    engine.write_tensor("s", new[:, None])
    name = f"embedding/{lookups} of {entries}x{columns}"
    engine.run(0)
    check_equal(name, engine.read_tensor("out")[:, 0], table[at])
    engine.run(1)
    np.add.at(table, at, new)
    if not np.allclose(engine.read_tensor("table"), table, rtol=1e-5, atol=1e-5):
        raise WrongAnswer(f"{name}: the updated table")
    yield compare(f"{name} slice", lambda: engine.run(0), lambda: np.take(table, at, axis=0), unit="ms", smoke=smoke)
    yield compare(f"{name} update_add", lambda: engine.run(1), lambda: np.add.at(table, at, new), unit="ms", goal=UPDATE_GOAL, smoke=smoke)
