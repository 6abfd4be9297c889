"""Reductions over replicas: everybody gets all of the result, or each a share of it."""

from __future__ import annotations

from collections.abc import Sequence as Items
from typing import overload

from popcore.debug import user_site
from popcore.executable.schedules import CollectiveOperator, chunk_elements
from popcore.graph import Graph, Tensor, concat
from popcore.ops.gcl.buckets import Tensors, by_type, joined, like, listed, pairs
from popcore.ops.gcl.options import Options, read_options
from popcore.program import Sequence
from popcore.program.collectives import Collective, CommGroup

ALL = CommGroup()


@overload
def all_reduce_cross_replica(
    graph: Graph, data: Tensor, operator: CollectiveOperator, program: Sequence, group: CommGroup = ..., name: str = ..., options: Options = ...
) -> Tensor: ...
@overload
def all_reduce_cross_replica(
    graph: Graph, data: Items[Tensor], operator: CollectiveOperator, program: Sequence, group: CommGroup = ..., name: str = ..., options: Options = ...
) -> list[Tensor]: ...
def all_reduce_cross_replica(
    graph: Graph, data: Tensors, operator: CollectiveOperator, program: Sequence, group: CommGroup = ALL, name: str = "", options: Options = None
) -> Tensor | list[Tensor]:
    """A new tensor like ``data``: all replicas' of each group combined.

    Args:
        data: A tensor; or several, which are reduced as one, those of each element type in one collective.
        program: What the collective is added to.
        group: Which replicas; all by default.
        options: {"method": "ring", "partialsType": "float"}, see ``popcore.ops.gcl.options.KNOWN``.

    Raises: see ``popcore.program.collectives.Collective``.
    """
    results = [graph.clone(each, name=f"{name or 'all_reduce'}/result") for each in listed("all_reduce", data)]
    all_reduce_to_destination_cross_replica(graph, data, results, operator, program, group, name, options)
    return like(data, results)


def all_reduce_to_destination_cross_replica(
    graph: Graph,
    data: Tensors,
    destination: Tensors,
    operator: CollectiveOperator,
    program: Sequence,
    group: CommGroup = ALL,
    name: str = "",
    options: Options = None,
) -> None:
    """``all_reduce_cross_replica`` into a tensor, or tensors, that are there already."""
    for each in by_type(pairs("all_reduce", data, destination)):
        sources, targets = joined([s for s, _ in each]), joined([t for _, t in each])
        program.add(Collective("all_reduce", sources, targets, operator, group, **read_options(options), name=name))


def all_reduce_in_place_cross_replica(
    graph: Graph, data: Tensors, operator: CollectiveOperator, program: Sequence, group: CommGroup = ALL, name: str = "", options: Options = None
) -> None:
    """``all_reduce_cross_replica`` into ``data`` itself."""
    for each in by_type(pairs("all_reduce", data, data)):
        flat = joined([s for s, _ in each])
        program.add(Collective("all_reduce", flat, flat, operator, group, **read_options(options), name=name))


@overload
def reduce_scatter_cross_replica(
    graph: Graph, data: Tensor, operator: CollectiveOperator, program: Sequence, group: CommGroup = ..., name: str = ..., options: Options = ...
) -> Tensor: ...
@overload
def reduce_scatter_cross_replica(
    graph: Graph, data: Items[Tensor], operator: CollectiveOperator, program: Sequence, group: CommGroup = ..., name: str = ..., options: Options = ...
) -> list[Tensor]: ...
def reduce_scatter_cross_replica(
    graph: Graph, data: Tensors, operator: CollectiveOperator, program: Sequence, group: CommGroup = ALL, name: str = "", options: Options = None
) -> Tensor | list[Tensor]:
    """A new flat tensor of ``ceil(n / p)`` elements: of p replicas in a group, that of rank i gets chunk i of the combined data.

    The last chunks end in zeros, or are all zeros, where p does not divide n. Several tensors are cut into chunks each.
    """
    size = group.size_of(graph.replication_factor, user_site())
    label = f"{name or 'reduce_scatter'}/result"
    results = [
        graph.add_variable(each.dtype, (chunk_elements(each.num_elements, size),), mapping="linear", name=label) for each in listed("reduce_scatter", data)
    ]
    reduce_scatter_to_destination_cross_replica(graph, data, results, operator, program, group, name, options)
    return like(data, results)


def reduce_scatter_to_destination_cross_replica(
    graph: Graph,
    data: Tensors,
    destination: Tensors,
    operator: CollectiveOperator,
    program: Sequence,
    group: CommGroup = ALL,
    name: str = "",
    options: Options = None,
) -> None:
    """``reduce_scatter_cross_replica`` into a tensor, or tensors, that are there already."""
    size = group.size_of(graph.replication_factor, user_site())
    for each in by_type(pairs("reduce_scatter", data, destination)):
        sources = [s if len(each) == 1 else _filled(graph, s, size) for s, _ in each]
        target = joined([t for _, t in each])
        program.add(Collective("reduce_scatter", joined(sources, size), target, operator, group, **read_options(options), name=name))


def _filled(graph: Graph, data: Tensor, size: int) -> Tensor:
    """Flat, with zeros behind it so that the chunks are equally long."""
    missing = chunk_elements(data.num_elements, size) * size - data.num_elements
    zeros = graph.add_constant(data.dtype, (missing,), 0, name=f"{data.name}/fill", tile=0)
    return concat([data.flatten(), zeros])
