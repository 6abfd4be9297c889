"""Large systems before they compute: compiling for 94,208 tiles, planning collectives of 4,096 IPUs, a Pod256 that is idle.

What is timed: ``compile_graph`` of a model that is spread over 64 IPUs and moves on by one, with three element-wise functions; making and
costing three collectives; the steps of an all-reduce over all tiles of 64 IPUs. Memory is what the process holds beyond what it held before.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from bench.harness import Goal, Row, run_program

MEBIBYTE, GIBIBYTE = 1 << 20, 1 << 30


def rows(smoke: bool) -> Iterator[Row]:
    run_program("scale", "element-wise", "4")  # that it is right
    found = [run_program("scale", "element-wise", "4" if smoke else "1472").json for _ in range(1 if smoke else 3)]
    yield Row("scale/element-wise model of 94,208 tiles, compile", statistics.median(f["seconds"] for f in found), "s", goal=Goal(15))
    yield Row("scale/element-wise model of 94,208 tiles, memory", statistics.median(f["bytes"] for f in found) / GIBIBYTE, "GiB", goal=Goal(3))
    within = run_program("scale", "within", "4" if smoke else "1472").json
    yield Row("scale/all-reduce over 64 IPUs of one replica, compile", within["seconds"], "s", goal=Goal(15))
    plan = run_program("scale", "plan", "256" if smoke else "4096").json
    yield Row("scale/collectives of 4,096 IPUs, plan", plan["seconds"], "s", goal=Goal(5))
    idle = run_program("scale", "idle").json
    yield Row("scale/idle Pod256, memory", idle["bytes"] / MEBIBYTE, "MiB", goal=Goal(128))
    yield Row("scale/idle Pod256, addresses", idle["addresses"] / GIBIBYTE, "GiB")
    yield Row("scale/Pod256 with an element written on each, memory", idle["touched_bytes"] / MEBIBYTE, "MiB")
