"""gcl: collectives over the replicas of a graph, and over the IPUs of one. After Graphcore's communication library, in snake_case."""

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
from popcore.ops.gcl.within import (
    Chunk,
    Chunks,
    all_gather_to_destination_within_replica,
    all_gather_within_replica,
    all_reduce_in_place_within_replica,
    all_reduce_to_destination_within_replica,
    all_reduce_within_replica,
    concat_chunks,
    reduce_scatter_within_replica,
)
from popcore.program.collectives import CommGroup

__all__ = [
    "ALGORITHMS",
    "Chunk",
    "Chunks",
    "CollectiveOperator",
    "CommGroup",
    "CommGroupType",
    "all_gather_cross_replica",
    "all_gather_to_destination_cross_replica",
    "all_gather_to_destination_within_replica",
    "all_gather_within_replica",
    "all_reduce_cross_replica",
    "all_reduce_in_place_cross_replica",
    "all_reduce_in_place_within_replica",
    "all_reduce_to_destination_cross_replica",
    "all_reduce_to_destination_within_replica",
    "all_reduce_within_replica",
    "all_to_all_cross_replica",
    "broadcast_cross_replica",
    "concat_chunks",
    "reduce_scatter_cross_replica",
    "reduce_scatter_to_destination_cross_replica",
    "reduce_scatter_within_replica",
]
