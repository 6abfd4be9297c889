"""Exchanges between replicas: nothing is computed, only moved."""

from __future__ import annotations

from collections.abc import Sequence as Items
from typing import overload

from popcore.debug import user_site
from popcore.errors import ShapeError
from popcore.executable.schedules import CollectiveOperator
from popcore.graph import Graph, Tensor
from popcore.ops.gcl.buckets import Tensors, by_type, joined, like, listed, pairs
from popcore.ops.gcl.options import Options, read_options
from popcore.ops.gcl.reduce import ALL
from popcore.program import Sequence
from popcore.program.collectives import Collective, CommGroup


@overload
def all_gather_cross_replica(graph: Graph, data: Tensor, program: Sequence, group: CommGroup = ..., name: str = ..., options: Options = ...) -> Tensor: ...
@overload
def all_gather_cross_replica(
    graph: Graph, data: Items[Tensor], program: Sequence, group: CommGroup = ..., name: str = ..., options: Options = ...
) -> list[Tensor]: ...
def all_gather_cross_replica(
    graph: Graph, data: Tensors, program: Sequence, group: CommGroup = ALL, name: str = "", options: Options = None
) -> Tensor | list[Tensor]:
    """A new tensor with one dimension more in front: ``result[i]`` is the data of rank i of the group. Several tensors go as one."""
    size = group.size_of(graph.replication_factor, user_site())
    results = [graph.clone_n(each, size, name=f"{name or 'all_gather'}/result") for each in listed("all_gather", data)]
    all_gather_to_destination_cross_replica(graph, data, results, program, group, name, options)
    return like(data, results)


def all_gather_to_destination_cross_replica(
    graph: Graph, data: Tensors, destination: Tensors, program: Sequence, group: CommGroup = ALL, name: str = "", options: Options = None
) -> None:
    """``all_gather_cross_replica`` into a tensor, or tensors, that are there already."""
    size = group.size_of(graph.replication_factor, user_site())
    for each in by_type(pairs("all_gather", data, destination)):
        for source, target in each:
            if target.num_elements != size * source.num_elements:
                raise ShapeError(f"all_gather ({user_site()}) of {source!r} over {size} replicas to {target!r}", f"{size * source.num_elements:,} elements")
        _add("all_gather", joined([s for s, _ in each]), joined([t for _, t in each], size), program, group, name, options)


def all_to_all_cross_replica(graph: Graph, data: Tensor, program: Sequence, group: CommGroup = ALL, name: str = "", options: Options = None) -> Tensor:
    """A new tensor like ``data``, whose first dimension is the replicas of a group: rank i gets ``data[i]`` of rank j as ``result[j]``.

    Raises: ShapeError: the first dimension is another.
    """
    size = group.size_of(graph.replication_factor, user_site())
    if data.rank == 0 or data.shape[0] != size:
        raise ShapeError(f"all_to_all of {data!r} in groups of {size} replicas", f"a tensor of shape ({size}, ...): one part for each")
    result = graph.clone(data, name=f"{name or 'all_to_all'}/result")
    _add("all_to_all", data, result, program, group, name, options)
    return result


def broadcast_cross_replica(
    graph: Graph, data: Tensor, program: Sequence, group: CommGroup = ALL, root: int = 0, name: str = "", options: Options = None
) -> Tensor:
    """A new tensor like ``data``: that of rank ``root`` of each group."""
    result = graph.clone(data, name=f"{name or 'broadcast'}/result")
    _add("broadcast", data, result, program, group, name, options, root)
    return result


def _add(kind: str, source: Tensor, target: Tensor, program: Sequence, group: CommGroup, name: str, options: Options, root: int = 0) -> None:
    method = read_options(options)["method"]
    program.add(Collective(kind, source, target, CollectiveOperator.LOCAL, group, method, root=root, name=name))
