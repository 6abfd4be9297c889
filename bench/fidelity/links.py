"""IPU-Links: latency from IPU to IPU, and collectives over replicas."""

from __future__ import annotations

import re

import popcore as pc
from bench.fidelity.figures import Family, Figure
from bench.fidelity.programs import graph_of, microseconds, modelled
from popcore import FLOAT, program
from popcore.microbench.programs import spread
from popcore.ops import gcl


def hop(figure: Figure) -> float:
    """us of one word from one IPU of 16 to another."""
    ends = [int(number) for number in re.findall(r"\d+", figure.id)]
    graph = graph_of(figure, 16)
    tiles = graph.target.tiles_per_ipu
    source, target = (spread(graph, name, [ipu * tiles], 1) for name, ipu in zip(("source", "target"), ends, strict=True))
    return microseconds(graph, program.Copy(source, target))


def _all_reduce_cycles(system: str, replicas: int, megabytes: int, method: str, fragments: int = 0) -> int:
    """``fragments``: how many each replica's data is cut into, of which two are sliced in each step; none if they are sliced on their tiles."""
    graph = pc.Graph(pc.Device(system, num_ipus=replicas).target, replication_factor=replicas)
    data, prog = graph.add_variable(FLOAT, (megabytes * 250_000,), mapping="linear", name="data"), program.Sequence()
    gcl.all_reduce_in_place_cross_replica(graph, data, gcl.CollectiveOperator.ADD, prog, options={"method": method})
    profile = modelled(graph, prog)
    if not fragments:
        return profile.total_cycles
    size = data.num_elements // fragments
    sliced = [program.Copy(data[i * size : (i + 1) * size], graph.add_variable(FLOAT, (size,), mapping="linear", name="buffer")) for i in range(2)]
    return profile.total_cycles + modelled(graph, program.Repeat(profile.collectives[0].steps, program.Sequence(*sliced))).total_cycles


def all_reduce(figure: Figure) -> float:
    """Cycles of an all-reduce over the IPUs that a row names, by the method that PopLibs picks."""
    megabytes, ipus = (int(found) for found in re.search(r"(\d+) MB over (\d+) IPUs", figure.benchmark).groups())  # type: ignore[union-attr]
    return _all_reduce_cycles("C2", ipus, megabytes, "auto")


def meet_in_middle(figure: Figure) -> float:
    """By how many per cent a ring that meets in the middle is shorter than one that runs both ways.

    The row is of 5 August 2020. Before PopLibs commit c866d315 (25 August) a fragment was a stretch of the data, so it lay on few tiles, and every
    step sliced one for either direction into a buffer on all tiles.
    """
    megabytes, ipus = figure.number(r"(\d+) MB", 40), figure.number(r"(\d+) IPUs")
    methods = {"bidirectional_ring_pair": 2 * ipus, "meet_in_middle_ring": ipus}
    pair, middle = (_all_reduce_cycles("POD64", ipus, megabytes, method, fragments) for method, fragments in methods.items())
    return 100 * (1 - middle / pair)


FAMILIES = (
    Family("inter-IPU latency", r"J-HOP-\d+-\d+", hop),
    Family("all-reduce", r"PC-1", all_reduce),
    Family("all-reduce", r"PC-2", meet_in_middle),
)
