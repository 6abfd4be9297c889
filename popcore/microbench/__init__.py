"""Microbenchmarks of the modelled machine: memory, exchange, IPU-Links, host, products and collectives, on any system.

    results = microbench.run(pc.Device("BOW-2000"), "exchange")
    results.of("gather")  # {tiles: microseconds}

All numbers come from modelled cycles, so they are the same on every computer and say what an IPU would take. ``docs/model.md`` says how good they are.
"""

from __future__ import annotations

from collections.abc import Callable

from popcore.errors import UnknownNameError, near_matches
from popcore.microbench import collectives, exchange, host, links, memory, products
from popcore.microbench.sweep import Point, Results, Sweep
from popcore.target import Device

__all__ = ["SUITES", "Point", "Results", "Sweep", "run"]

SUITES: dict[str, tuple[Sweep, ...]] = {
    "memory": memory.SWEEPS,
    "exchange": exchange.SWEEPS,
    "links": links.SWEEPS,
    "host": host.SWEEPS,
    "products": products.SWEEPS,
    "collectives": collectives.SWEEPS,
}
"""By name: benchmarks that belong together."""


def run(device: Device, *suites: str, report: Callable[[str], None] | None = None) -> Results:
    """Run suites, all of them unless some are named.

    Args:
        device: One IPU of it is measured, all of them by "links" and "collectives". What it lacks is left out: links of one IPU, Streaming Memory of a C2.
        report: Called with the name of each benchmark before it runs.

    Raises:
        UnknownNameError: no suite is called so.
    """
    for name in suites:
        if name not in SUITES:
            raise UnknownNameError(f"there is no suite {name!r}", near_matches(name, SUITES, f"one of {', '.join(SUITES)}"))
    points = []
    for name in suites or SUITES:
        for sweep in SUITES[name]:
            if report is not None:
                report(f"{name}: {sweep.name}")
            points += [Point(name, sweep.name, sweep.over, x, sweep.measure(device.target, x), sweep.unit) for x in sweep.values(device.target)]
    return Results(device.target, points)
