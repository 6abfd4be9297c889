"""Exchanges between replicas: nothing is computed, only moved."""

from __future__ import annotations

from popcore.debug import user_site
from popcore.errors import ShapeError
from popcore.executable.schedules import CollectiveOperator
from popcore.graph import Graph, Tensor
from popcore.ops.gcl.options import method_of
from popcore.ops.gcl.reduce import ALL, Options
from popcore.program import Sequence
from popcore.program.collectives import Collective, CommGroup


def all_gather_cross_replica(graph: Graph, data: Tensor, program: Sequence, group: CommGroup = ALL, name: str = "", options: Options = None) -> Tensor:
    """A new tensor with one dimension more in front: ``result[i]`` is the data of rank i of the group."""
    size = group.size_of(graph.replication_factor, user_site())
    result = graph.clone_n(data, size, name=f"{name or 'all_gather'}/result")
    program.add(Collective("all_gather", data, result, CollectiveOperator.LOCAL, group, method_of(options), name=name))
    return result


def all_to_all_cross_replica(graph: Graph, data: Tensor, program: Sequence, group: CommGroup = ALL, name: str = "", options: Options = None) -> Tensor:
    """A new tensor like ``data``, whose first dimension is the replicas of a group: rank i gets ``data[i]`` of rank j as ``result[j]``.

    Raises: ShapeError: the first dimension is another.
    """
    size = group.size_of(graph.replication_factor, user_site())
    if data.rank == 0 or data.shape[0] != size:
        raise ShapeError(f"all_to_all of {data!r} in groups of {size} replicas", f"a tensor of shape ({size}, ...): one part for each")
    result = graph.clone(data, name=f"{name or 'all_to_all'}/result")
    program.add(Collective("all_to_all", data, result, CollectiveOperator.LOCAL, group, method_of(options), name=name))
    return result


def broadcast_cross_replica(
    graph: Graph, data: Tensor, program: Sequence, group: CommGroup = ALL, root: int = 0, name: str = "", options: Options = None
) -> Tensor:
    """A new tensor like ``data``: that of rank ``root`` of each group."""
    result = graph.clone(data, name=f"{name or 'broadcast'}/result")
    program.add(Collective("broadcast", data, result, CollectiveOperator.LOCAL, group, method_of(options), root=root, name=name))
    return result
