"""The timing model of collectives: what each step of a schedule sends to a neighbour, and how long all of them take."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from popcore.compiler.links import RUNG_SECONDS, Flow, busiest_seconds, longest_delay
from popcore.executable.schedules import ALGORITHMS, REDUCING, CollectiveOperator, chunk_elements
from popcore.program.collectives import Collective
from popcore.target import Target
from popcore.topology import Link, route

STEP_SECONDS = 3.36e-6
"""Of one step besides its bytes and turns: slice, combine, loop, barriers and one link. PopLibs commit d3f278d8 (2020) lists all-reduces of 1 to 128 KB
over 16 IPUs, before and after it, 16 steps each: the mean of all eight, less bytes, barrier lag and the turns of their few tiles. Row PC-1, of August 2020
too, has 16 such steps of 375 kB from 1,202 tiles, and what is left of them is ``links.TURN_SECONDS``."""
TILE_BYTES = 128  # PopLibs (allReduceReorder): a fragment is spread over the tiles that hold data, but not thinner than this


@dataclass(frozen=True)
class CollectiveCost:
    """One execution: steps, bytes that all replicas send, cycles that each of them takes, bytes of every link bundle that is used."""

    steps: int
    bytes_on_links: int
    cycles: int
    links: Mapping[Link, float] = field(default_factory=dict)


@dataclass(frozen=True)
class _Stage:
    """Steps that send over the same links.

    active: Of them, those in which each lane sends.
    flows: Of each lane, the pairs of IPUs; one fragment is shared by ``ipus`` of them.
    fragment, mean: Bytes of the longest fragment, and of one on average.
    """

    steps: int
    active: tuple[int, ...]
    flows: tuple[tuple[tuple[int, int], ...], ...]
    fragment: float
    mean: float


def collective_cost(node: Collective) -> CollectiveCost:
    """Cost of a collective. It grows with the members of the rings, not with their square: thousands of IPUs take less than a second."""
    graph, p, elements = node.src.graph, node.group_size, node.src.num_elements
    if p == 1 or elements == 0 or (node.kind in REDUCING and node.operator is CollectiveOperator.LOCAL):
        return CollectiveCost(0, 0, 0)
    whole = graph.target.with_ipus(graph.target.num_ipus * graph.replication_factor)
    seconds = 0.0
    links: dict[Link, float] = defaultdict(float)
    stages = list(_stages(node))
    tiles = _tiles_of_an_ipu(node)
    for stage in stages:
        taken, by_link = _run(whole, stage, graph.target.num_ipus, tiles)
        seconds += taken
        for link, nbytes in by_link.items():
            links[link] += nbytes
    groups = graph.replication_factor // p
    return CollectiveCost(sum(s.steps for s in stages), groups * _sent(node), int(np.ceil(seconds * graph.target.clock_hz)), links)


def _tiles_of_an_ipu(node: Collective) -> int:
    """The most tiles of one IPU that hold a part of the source."""
    tiles = np.unique(node.src.graph.tile_intervals(node.src)[2])
    return int(np.bincount(tiles // node.src.graph.target.tiles_per_ipu).max())


def _sent(node: Collective) -> int:
    """Bytes that the replicas of one group send to each other."""
    p, elements, width = node.group_size, node.src.num_elements, node.src.dtype.nbytes
    return {
        "all_reduce": (p - 1) * elements * (node.partials.nbytes + width),
        "reduce_scatter": (p - 1) * elements * node.partials.nbytes,
        "all_gather": (p - 1) * p * elements * width,
        "all_to_all": p * (p - 1) * elements * width // 2,  # handed on along the ring, less at every step
        "broadcast": (p - 1) * elements * width,
    }[node.kind]


def _stages(node: Collective) -> Iterator[_Stage]:
    """A reduce-scatter goes around the sets, then from set to set; an all-gather is the same backwards, and an all-reduce both."""
    p, elements, width = node.group_size, node.src.num_elements, node.src.dtype.nbytes
    chunk, mean = chunk_elements(elements, p), elements / p
    match node.kind:
        case "all_reduce":
            yield from _levels(node, chunk * node.partials.nbytes, mean * node.partials.nbytes)
            yield from _levels(node, chunk * width, mean * width)
        case "reduce_scatter":
            yield from _levels(node, chunk * node.partials.nbytes, mean * node.partials.nbytes)
        case "all_gather":
            yield from _levels(node, elements * width, elements * width)
        case "all_to_all":
            lanes = len(ALGORITHMS[node.method].lanes)
            yield _Stage(p - 1, (p - 1,) * lanes, _hops(node, p, p), chunk * p // 2 * width / lanes, elements * width / 2 / lanes)
        case _:  # a broadcast: in p fragments, one behind the other
            lanes = len(ALGORITHMS[node.method].lanes)
            yield _Stage(2 * (p - 1), (p - 1,) * lanes, _hops(node, p, p), chunk * width / lanes, mean * width / lanes)


def _levels(node: Collective, chunk: float, mean: float) -> Iterator[_Stage]:
    """The stages in which every chunk of so many bytes goes past everybody."""
    algorithm, p, (_, inner) = ALGORITHMS[node.method], node.group_size, node.rings()
    if algorithm.meets:
        yield _Stage(p // 2, (p // 2, (p - 1) // 2), _hops(node, p, p), chunk, mean)
        return
    lanes, sets = len(algorithm.lanes), p // inner
    if inner > 1:
        yield _Stage(inner - 1, (inner - 1,) * lanes, _hops(node, inner, inner), chunk * sets / lanes, mean * sets / lanes)
    if sets > 1:
        yield _Stage(sets - 1, (sets - 1,) * lanes, _hops(node, p, inner), chunk / lanes, mean / lanes)


def _hops(node: Collective, span: int, inner: int) -> tuple[tuple[tuple[int, int], ...], ...]:
    """For each lane who sends to whom in one step, all groups at once: IPU j of a replica to IPU j of the next.

    span, inner    the next is one position on within ``inner`` (equal to ``span``), or ``inner`` positions on within ``span``
    """
    ipus, p = node.src.graph.target.num_ipus, node.group_size
    stride = 1 if span == inner else inner
    members = node.members()
    found = []
    for lane, ring in zip(ALGORITHMS[node.method].lanes, node.rings()[0], strict=True):
        after = [i - i % span + (i % span + lane.way * stride) % span for i in range(p)]
        pairs = [(ring[i], ring[k]) for i, k in enumerate(after)]
        found.append(tuple((group[a] * ipus + j, group[b] * ipus + j) for group in members for a, b in pairs for j in range(ipus)))
    return tuple(found)


def _run(whole: Target, stage: _Stage, ipus: int, tiles: int) -> tuple[float, dict[Link, float]]:
    """Seconds of a stage, and the bytes that it sends over every bundle. ``tiles``: of an IPU, that hold data."""
    senders = min(tiles, max(1, int(-(-stage.fragment // (ipus * TILE_BYTES)))))
    once: dict[Link, float] = defaultdict(float)
    turns: dict[Link, int] = defaultdict(int)
    links: dict[Link, float] = defaultdict(float)
    every: dict[tuple[int, int], tuple[Link, ...]] = {}
    for lane, active in zip(stage.flows, stage.active, strict=True):
        routes = {ends: route(whole, *ends) for ends in lane}
        every |= routes
        for link, flows in Counter(link for links_of in routes.values() for link in links_of).items():
            once[link] += flows * stage.fragment / ipus
            turns[link] += flows * senders
            links[link] += flows * active * stage.mean / ipus
    seconds = stage.steps * (busiest_seconds(whole, once) + STEP_SECONDS + max(longest_delay(whole, every, turns) - RUNG_SECONDS, 0.0))
    return seconds, links


def cross_copy_flows(ipus: int, senders: Sequence[int], nbytes: int, tiles: int = 1) -> Iterator[Flow]:
    """What a CrossReplicaCopy sends. ``senders``: of each replica the one that it gets data from; ``tiles``: of an IPU, that send."""
    for receiver, sender in enumerate(senders):
        if receiver != sender:
            for j in range(ipus):
                yield Flow(sender * ipus + j, (receiver * ipus + j,), nbytes / ipus, tiles)
