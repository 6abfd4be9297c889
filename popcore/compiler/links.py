"""The timing model of traffic between IPUs: flows over routes, each link bundle as busy as what crosses it.

Constants come from published measurements of a Mk1 machine; each names its row of the figures listed in docs/model.md.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from popcore.target import Target
from popcore.topology import Link, bytes_per_second, route, rungs_from_first

FIRST_HOP_SECONDS = 0.54e-6  # along a rail: J-HOP-0-2
NEXT_HOP_SECONDS = 0.16e-6  # each rung further: J-HOP-0-4 to 0-14
CROSS_SECONDS = 0.235e-6  # when a rung is crossed as well: J-HOP-0-3 to 0-15
RUNG_SECONDS = 0.63e-6  # to the partner on the rung alone: J-HOP-0-1
GATEWAY_SECONDS = 2e-6  # over 100 GbE, one way: no figure is public, taken as usual for such a network
TURN_SECONDS = 1.9e-9  # of one tile at a bundle: PC-1, what 1,202 tiles that send at once add to each of its 16 steps (see ``compiler.collectives``)


class Flow(NamedTuple):
    """What goes from one IPU to others, all of which receive the same: bytes, and the tiles that send them."""

    source: int
    receivers: tuple[int, ...]
    nbytes: float
    senders: int = 1


def latency_seconds(links: Sequence[Link]) -> float:
    """From the first byte sent to the first byte there, from the first rung or to it."""
    kinds = [link.kind for link in links]
    rails, crosses = kinds.count("rail"), kinds.count("cross")
    seconds = GATEWAY_SECONDS * kinds.count("gateway out") + RUNG_SECONDS * kinds.count("rung") + CROSS_SECONDS * crosses
    return seconds + (FIRST_HOP_SECONDS + NEXT_HOP_SECONDS * (rails - 1) if rails else 0.0)


def barrier_lag_seconds(target: Target, source: int, to: int) -> float:
    """What the barrier adds to the latency: it comes from the first IPU and is answered there, a hop a rung (PL: global sync latency; HC33).

    The rungs between ``source`` and ``to`` are in the latency, which was measured from the first IPU.
    """
    return 2 * target.chip.sync_seconds_per_hop * min(rungs_from_first(target, source), rungs_from_first(target, to))


def longest_delay(target: Target, routes: Mapping[tuple[int, int], Sequence[Link]], turns: Mapping[Link, int]) -> float:
    """Seconds until the last tile's first byte is there: latency, and at each bundle of the route the turns of all other tiles.

    routes: by source and receiver; turns: of each bundle, the tiles whose messages cross it.
    """

    def seconds(ends: tuple[int, int], links: Sequence[Link]) -> float:
        return latency_seconds(links) + barrier_lag_seconds(target, *ends) + TURN_SECONDS * sum(turns[link] - 1 for link in links)

    return max((seconds(ends, links) for ends, links in routes.items() if links), default=0.0)


def link_loads(target: Target, flows: Iterable[Flow], one_tile_receives: bool = False) -> tuple[float, dict[Link, float]]:
    """``longest_delay`` of flows that go at once, and the bytes that cross each bundle.

    What several IPUs receive crosses each bundle once, and parts where their routes do. Where a single tile receives everything, flows from
    different IPUs do not wait for each other: its words are already one behind the other.

    ``target``: with all IPUs that the flows are between.
    """
    load: dict[Link, float] = defaultdict(float)
    turns: dict[Link, int] = defaultdict(int)
    routes: dict[tuple[int, int], tuple[Link, ...]] = {}
    for flow in flows:
        ways = {(flow.source, to): route(target, flow.source, to) for to in flow.receivers}
        routes |= ways
        for link in dict.fromkeys(link for links in ways.values() for link in links):
            load[link] += flow.nbytes
            turns[link] = max(turns[link], flow.senders) if one_tile_receives else turns[link] + flow.senders
    return longest_delay(target, routes, turns), load


def busiest_seconds(target: Target, load: Mapping[Link, float]) -> float:
    """Bytes over bandwidth, of the bundle for which it is most."""
    return max((nbytes / bytes_per_second(target, link) for link, nbytes in load.items()), default=0.0)
