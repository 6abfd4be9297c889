"""Compiling: a codelet into a cold cache, and a graph of 94,208 tiles and 565,248 vertices.

Numba costs a fixed time for the first thing that it compiles in a process: the machine's and the first codelet's rows hold it,
the row of a codelet does not. The large graph has one exchange between all tiles and one compute set.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator

from bench.harness import Goal, Row, run_program

GIBIBYTE = 1 << 30


def rows(smoke: bool) -> Iterator[Row]:
    yield from _codelets(smoke)
    yield from _large_graph(smoke)


def _codelets(smoke: bool) -> Iterator[Row]:
    found = []
    for _ in range(1 if smoke else 3):
        with tempfile.TemporaryDirectory() as cache:
            found.append(run_program("cold_codelets", "2" if smoke else "10", cache=cache).json)
    yield Row("compile/start of Numba and the machine", statistics.median(f["machine"] for f in found), "s")
    yield Row("compile/first codelet", statistics.median(f["codelets"][0] for f in found), "s")
    yield Row("compile/codelet", statistics.median(statistics.mean(f["codelets"][1:]) for f in found), "s", goal=Goal(0.35, 0.15))


def _large_graph(smoke: bool) -> Iterator[Row]:
    run_program("large_graph", "bulk", "4", "run")  # that the graph is right
    tiles = 4 if smoke else 1472
    found = [run_program("large_graph", "bulk", str(tiles), "compile").json for _ in range(1 if smoke else 3)]
    yield Row("compile/565,248 vertices", statistics.median(f["compile_seconds"] for f in found), "s", goal=Goal(10))
    yield Row("compile/565,248 vertices, memory", statistics.median(f["peak_bytes"] for f in found) / GIBIBYTE, "GiB", goal=Goal(2))
