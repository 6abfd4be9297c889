"""All-reduce over replicas of one IPU each: by bytes, and by how many take part."""

from __future__ import annotations

from popcore.graph import Graph
from popcore.microbench.programs import modelled
from popcore.microbench.sweep import Sweep, powers, room
from popcore.ops import gcl
from popcore.program import Sequence
from popcore.target import Target
from popcore.types import FLOAT

_LARGE = 1 << 24  # bytes of each replica, or what fits


def _seconds(target: Target, replicas: int, nbytes: int) -> float:
    graph, steps = Graph(target.with_ipus(replicas), replication_factor=replicas), Sequence()
    data = graph.add_variable(FLOAT, (nbytes // 4,), mapping="linear", name="data")
    gcl.all_reduce_in_place_cross_replica(graph, data, gcl.CollectiveOperator.ADD, steps)
    return modelled(graph, steps).device_seconds


def by_bytes(target: Target, nbytes: int) -> float:
    """us over all IPUs of the target."""
    return _seconds(target, target.num_ipus, nbytes) * 1e6


def by_replicas(target: Target, replicas: int) -> float:
    """GB/s: what a replica has by the time."""
    nbytes = room(target, _LARGE)
    return nbytes / _seconds(target, replicas, nbytes) / 1e9


SWEEPS = (
    Sweep("all-reduce by bytes", "bytes a replica", "us", lambda target: powers(1 << 10, room(target, _LARGE)) if target.num_ipus > 1 else [], by_bytes),
    Sweep("all-reduce by replicas", "replicas", "GB/s", lambda target: powers(2, target.num_ipus, 2), by_replicas),
)
