"""The timing model of traffic between IPUs: flows over routes, each link bundle as busy as what crosses it.

Constants come from published measurements of a Mk1 machine; each names its row of the figures listed in docs/model.md.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from popcore.target import Target
from popcore.topology import Link, bytes_per_second, route

FIRST_HOP_SECONDS = 0.54e-6  # along a rail: J-HOP-0-2
NEXT_HOP_SECONDS = 0.16e-6  # each rung further: J-HOP-0-4 to 0-14
CROSS_SECONDS = 0.235e-6  # when a rung is crossed as well: J-HOP-0-3 to 0-15
RUNG_SECONDS = 0.63e-6  # to the partner on the rung alone: J-HOP-0-1
GATEWAY_SECONDS = 2e-6  # over 100 GbE, one way: no figure is public, taken as usual for such a network

Flow = tuple[int, tuple[int, ...], float]
"""Source IPU, the IPUs that all receive the same from it, bytes of that."""


def latency_seconds(links: Sequence[Link]) -> float:
    """From the first byte sent to the first byte there."""
    kinds = [link.kind for link in links]
    rails, crosses = kinds.count("rail"), kinds.count("cross")
    seconds = GATEWAY_SECONDS * kinds.count("gateway out") + RUNG_SECONDS * kinds.count("rung") + CROSS_SECONDS * crosses
    return seconds + (FIRST_HOP_SECONDS + NEXT_HOP_SECONDS * (rails - 1) if rails else 0.0)


def link_loads(target: Target, flows: Iterable[Flow]) -> tuple[float, dict[Link, float]]:
    """The longest latency of flows that go at once, and the bytes that cross each bundle.

    What several IPUs receive crosses each bundle once, and parts where their routes do.

    ``target``: with all IPUs that the flows are between.
    """
    load: dict[Link, float] = defaultdict(float)
    latency = 0.0
    for source, receivers, nbytes in flows:
        routes = [route(target, source, to) for to in receivers]
        latency = max(latency, *map(latency_seconds, routes))
        for link in dict.fromkeys(link for links in routes for link in links):
            load[link] += nbytes
    return latency, load


def busiest_seconds(target: Target, load: Mapping[Link, float]) -> float:
    """Bytes over bandwidth, of the bundle for which it is most."""
    return max((nbytes / bytes_per_second(target, link) for link, nbytes in load.items()), default=0.0)
