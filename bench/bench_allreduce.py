"""What an all-reduce costs: replicas of a tensor, summed in the ring's order, on one thread.

What is timed: a run of a program that holds the collective and nothing else. Compared with copying the data once, and with NumPy's
sum over the replicas and writing it back to each. Of 4 and 16 replicas only the first: the ratio stays where the cost is linear.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import popcore as pc
from bench.harness import Goal, Row, check_equal, compare
from popcore import FLOAT, program
from popcore.ops import gcl

REPLICAS = 64
FEWER = (4, 16)


def rows(smoke: bool) -> Iterator[Row]:
    elements = 1 << (10 if smoke else 20)
    for replicas in FEWER:
        yield _against_copy(replicas, elements, *_engine(replicas, elements), None, smoke)
    engine, data = _engine(REPLICAS, elements)
    yield _against_copy(REPLICAS, elements, engine, data, Goal(0.5, 0.77, more_is_better=True), smoke)
    copy, name = data.copy(), _name(REPLICAS, elements)
    baseline = lambda: np.copyto(copy, data.sum(axis=0))  # noqa: E731  # two of a kind
    yield compare(f"{name} vs sum and broadcast", engine.run, baseline, unit="ms", goal=Goal(1.1, 1.7, more_is_better=True), smoke=smoke)


def _name(replicas: int, elements: int) -> str:
    return f"allreduce/{replicas} x {elements:,} floats"


def _against_copy(replicas: int, elements: int, engine: pc.Engine, data: np.ndarray, goal: Goal | None, smoke: bool) -> Row:
    copy = data.copy()
    return compare(f"{_name(replicas, elements)} vs memcpy", engine.run, lambda: np.copyto(copy, data), unit="ms", goal=goal, smoke=smoke)


def _engine(replicas: int, elements: int) -> tuple[pc.Engine, np.ndarray]:
    device = pc.Device("POD64", num_ipus=replicas)
    graph, prog = pc.Graph(device, replication_factor=replicas), program.Sequence()
    x = graph.add_variable(FLOAT, (elements,), mapping="linear", name="x")
    graph.create_host_write("x", x)
    graph.create_host_read("x", x)
    gcl.all_reduce_in_place_cross_replica(graph, x, gcl.CollectiveOperator.ADD, prog, options={"method": "ring"})
    engine = pc.Engine(graph, prog, device=device, options={"engine.threads": 1})
    data = np.random.default_rng(0).integers(-9, 9, (replicas, elements)).astype(np.float32)
    engine.write_tensor("x", data)
    engine.run()
    check_equal("all-reduce", engine.read_tensor("x"), np.tile(data.sum(axis=0), (replicas, 1)))
    engine.write_tensor("x", np.zeros(elements, np.float32))  # sums of sums would overflow
    return engine, data
