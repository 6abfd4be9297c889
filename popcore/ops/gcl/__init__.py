"""gcl: collectives over the replicas of a graph. After Graphcore's communication library, in snake_case."""

from popcore.executable.schedules import ALGORITHMS, CollectiveOperator, CommGroupType
from popcore.ops.gcl.exchange import (
    all_gather_cross_replica,
    all_gather_to_destination_cross_replica,
    all_to_all_cross_replica,
    broadcast_cross_replica,
)
from popcore.ops.gcl.reduce import (
    all_reduce_cross_replica,
    all_reduce_in_place_cross_replica,
    all_reduce_to_destination_cross_replica,
    reduce_scatter_cross_replica,
    reduce_scatter_to_destination_cross_replica,
)
from popcore.program.collectives import CommGroup

__all__ = [
    "ALGORITHMS",
    "CollectiveOperator",
    "CommGroup",
    "CommGroupType",
    "all_gather_cross_replica",
    "all_gather_to_destination_cross_replica",
    "all_reduce_cross_replica",
    "all_reduce_in_place_cross_replica",
    "all_reduce_to_destination_cross_replica",
    "all_to_all_cross_replica",
    "broadcast_cross_replica",
    "reduce_scatter_cross_replica",
    "reduce_scatter_to_destination_cross_replica",
]
