"""Building a graph: 565,248 vertices of three fields on 94,208 tiles, one by one and in bulk. Time and memory.

What is timed: ``add_vertex`` with its three slices, or one ``add_vertices``. What is not: making and mapping variables.
Each runs in a process of its own, since memory that was used before hides what is used now.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from bench.harness import Goal, Row, run_program

MEGABYTE = 1e6
GOALS = {"one by one": (Goal(4, 2.5), Goal(60, 35)), "bulk": (Goal(0.3, 0.1), None)}


def rows(smoke: bool) -> Iterator[Row]:
    tiles = 4 if smoke else 1472  # of each of 64 IPUs
    for how, (seconds_goal, bytes_goal) in GOALS.items():
        run_program("large_graph", how, "4", "run")  # that the graph is right
        found = [run_program("large_graph", how, str(tiles), "build").json for _ in range(1 if smoke else 3)]
        yield Row(f"build/{how}", statistics.median(f["build_seconds"] for f in found), "s", goal=seconds_goal)
        yield Row(f"build/{how}, memory", statistics.median(f["build_bytes"] for f in found) / MEGABYTE, "MB", goal=bytes_goal)
