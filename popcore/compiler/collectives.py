"""The timing model of collectives: what each step of a schedule sends to a neighbour, and how long all of them take."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from popcore.compiler.links import RUNG_SECONDS, Flow, flow_seconds
from popcore.executable.schedules import ALGORITHMS, REDUCING, CollectiveOperator, chunk_elements
from popcore.program.collectives import Collective

STEP_SECONDS = 3.6e-6  # of one step besides its bytes: slice, combine, loop, two barriers and one link; PC-1 (6 MB over 16 IPUs, two ways round)


@dataclass(frozen=True)
class CollectiveCost:
    """One execution: steps, bytes that all replicas send, cycles that each of them takes."""

    steps: int
    bytes_on_links: int
    cycles: int


def collective_cost(node: Collective) -> CollectiveCost:
    """Cost of a collective. It grows with the members of the rings, not with their square: thousands of IPUs take less than a second."""
    graph, p = node.src.graph, node.group_size
    elements, width = node.src.num_elements, node.src.dtype.nbytes
    if p == 1 or elements == 0 or (node.kind in REDUCING and node.operator is CollectiveOperator.LOCAL):
        return CollectiveCost(0, 0, 0)
    algorithm = ALGORITHMS[node.method]
    chunk, once = width * chunk_elements(elements, p), algorithm.steps(p)
    # By kind: steps, bytes of the longest fragment of one, bytes that one group sends.
    steps, fragment, sent = {
        "all_reduce": (2 * once, chunk, 2 * (p - 1) * elements * width),
        "reduce_scatter": (once, chunk, (p - 1) * elements * width),
        "all_gather": (once, elements * width, (p - 1) * p * elements * width),
        "all_to_all": (p - 1, chunk * p // 2, p * (p - 1) * elements * width // 2),  # handed on along the ring, less at every step
        "broadcast": (2 * (p - 1), chunk, (p - 1) * elements * width),  # in p fragments, one behind the other
    }[node.kind]
    whole = graph.target.with_ipus(graph.target.num_ipus * graph.replication_factor)
    latency, busiest = flow_seconds(whole, _step_flows(node, fragment / algorithm.parts, algorithm.directions))
    seconds = steps * (busiest + STEP_SECONDS + max(latency - RUNG_SECONDS, 0.0))
    groups = graph.replication_factor // p
    return CollectiveCost(steps, groups * sent, int(np.ceil(seconds * graph.target.clock_hz)))


def _step_flows(node: Collective, fragment: float, directions: tuple[int, ...]) -> Iterator[Flow]:
    """What all groups send in one step. IPU j of a replica sends its share to IPU j of the next."""
    ipus, ring = node.src.graph.target.num_ipus, node.ring()
    for members in node.members():
        for position, rank in enumerate(ring):
            for way in directions:
                to = members[ring[(position + way) % len(ring)]]
                for j in range(ipus):
                    yield members[rank] * ipus + j, to * ipus + j, fragment / ipus


def cross_copy_flows(ipus: int, senders: tuple[int, ...], nbytes: int) -> Iterator[Flow]:
    """What a CrossReplicaCopy sends."""
    for receiver, sender in enumerate(senders):
        if receiver != sender:
            for j in range(ipus):
                yield sender * ipus + j, receiver * ipus + j, nbytes / ipus
