"""The machine: an instruction, a small step, a fork and join of two threads, and a million copies.

What is timed: ``engine.run`` of loops long enough that the call costs nothing. What is not: compiling, loading.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator

import numpy as np

import popcore as pc
from bench.harness import UNITS, Goal, Row, check_equal, interleave, measure
from bench.programs.codelets import First
from popcore import FLOAT, program

DEVICE = pc.Device("M2000", num_ipus=1)
LARGE = 64 << 10  # bytes a vertex is connected to: so much that its phase is given to all threads


def rows(smoke: bool) -> Iterator[Row]:
    yield _instruction(10 if smoke else 1000, smoke)
    yield _small_step(10 if smoke else 1000, smoke)
    yield _fork_join(10 if smoke else 100, smoke)
    yield _copies(10 if smoke else 1000, smoke)


def _instruction(count: int, smoke: bool) -> Row:
    """Barriers of the model: on this machine they are instructions that do nothing."""
    graph = pc.Graph(DEVICE.target)
    nothing = program.Sequence([program.Sync(program.SyncType.INTERNAL) for _ in range(count)])
    engine = pc.Engine(graph, program.Repeat(count, nothing), device=DEVICE, options={"engine.threads": 1})
    engine.run()
    executed = count * (count + 1)
    check_equal("syncs and rounds that the profile counted", executed <= engine.profile().total_cycles, True)
    return measure("vm/instruction", engine.run, unit="ns", per=executed, goal=Goal(10, 3), smoke=smoke)


def _stepping(rounds: int, vertices: int, elements: int, threads: int) -> pc.Engine:
    """An engine that runs ``rounds`` steps of one vertex on each of ``vertices`` tiles; each adds 1 to an element."""
    graph = pc.Graph(DEVICE.target)
    x = graph.add_variable(FLOAT, (vertices, elements), name="x")
    step = graph.add_compute_set("step")
    for tile in range(vertices):
        graph.set_tile_mapping(x[tile], tile)
        graph.add_vertex(step, First, {"x": x[tile]}, tile=tile)
    graph.create_host_read("x", x)
    engine = pc.Engine(graph, program.Repeat(rounds, program.Execute(step)), device=DEVICE, options={"engine.threads": threads})
    engine.run()
    expected = np.zeros((vertices, elements), np.float32)
    expected[:, 0] = rounds
    check_equal(f"{rounds} steps on {threads} threads", engine.read_tensor("x"), expected)
    return engine


def _small_step(count: int, smoke: bool) -> Row:
    engine = _stepping(count * 100, 1, 1, 1)
    return measure("vm/small step", engine.run, unit="ns", per=count * 100, goal=Goal(100, 25), smoke=smoke)


def _fork_join(count: int, smoke: bool) -> Row:
    """What a step costs more on two threads than on one, where each has one tiny vertex to run.

    The runs are short: where other programs take a processor away, that spoils few of them.
    """
    alone, both = _stepping(count, 2, LARGE // 4, 1), _stepping(count, 2, LARGE // 4, 2)
    one, two = interleave([alone.run, both.run], smoke, one_by_one=True)
    seconds = statistics.median(b - a for a, b in zip(one, two, strict=True)) / count
    return Row("vm/fork and join, 2 threads", seconds * UNITS["us"], "us", goal=Goal(3, 0.8))


def _copies(count: int, smoke: bool) -> Row:
    """A Repeat of ``count`` rounds over ``count`` different Copy steps on one tile."""
    graph = pc.Graph(DEVICE.target)
    source = graph.add_variable(FLOAT, (count, 4), name="source", tile=0)
    target = graph.add_variable(FLOAT, (count, 4), name="target", tile=0)
    graph.create_host_write("source", source)
    graph.create_host_read("target", target)
    body = program.Sequence([program.Copy(source[i], target[count - 1 - i]) for i in range(count)])
    engine = pc.Engine(graph, program.Repeat(count, body), device=DEVICE, options={"engine.threads": 1})
    data = np.random.default_rng(0).standard_normal((count, 4), np.float32)
    engine.write_tensor("source", data)
    engine.run()
    check_equal("copies", engine.read_tensor("target"), data[::-1])
    return measure(f"vm/{count * count:,} copies of 16 B", engine.run, unit="s", goal=Goal(0.1), smoke=smoke)
