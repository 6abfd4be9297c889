"""Reductions over replicas: everybody gets all of the result, or each a share of it."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence as Items
from typing import Any

from popcore.debug import user_site
from popcore.errors import GraphError
from popcore.executable.schedules import CollectiveOperator, chunk_elements
from popcore.graph import Graph, Tensor, concat
from popcore.ops.gcl.options import method_of
from popcore.program import Sequence
from popcore.program.collectives import Collective, CommGroup

Options = Mapping[str, Any] | None
Tensors = Tensor | Items[Tensor]
ALL = CommGroup()


def all_reduce_cross_replica(
    graph: Graph, data: Tensor, operator: CollectiveOperator, program: Sequence, group: CommGroup = ALL, name: str = "", options: Options = None
) -> Tensor:
    """A new tensor like ``data``: all replicas' of each group combined. Each hop rounds to the element type, HALF too.

    Args:
        program: What the collective is added to.
        group: Which replicas; all by default.
        options: {"method": "ring"}; by default it is chosen by size, see ``popcore.executable.schedules.choose``.

    Raises: see ``popcore.program.collectives.Collective``.
    """
    result = graph.clone(data, name=f"{name or 'all_reduce'}/result")
    program.add(Collective("all_reduce", data, result, operator, group, method_of(options), name=name))
    return result


def all_reduce_to_destination_cross_replica(
    graph: Graph,
    data: Tensor,
    destination: Tensor,
    operator: CollectiveOperator,
    program: Sequence,
    group: CommGroup = ALL,
    name: str = "",
    options: Options = None,
) -> None:
    """``all_reduce_cross_replica`` into a tensor that is there already."""
    program.add(Collective("all_reduce", data, destination, operator, group, method_of(options), name=name))


def all_reduce_in_place_cross_replica(
    graph: Graph, data: Tensors, operator: CollectiveOperator, program: Sequence, group: CommGroup = ALL, name: str = "", options: Options = None
) -> None:
    """``all_reduce_cross_replica`` into ``data`` itself. Several tensors of one element type are reduced as one, in one collective."""
    flat = data if isinstance(data, Tensor) else _bucket(data)
    program.add(Collective("all_reduce", flat, flat, operator, group, method_of(options), name=name))


def reduce_scatter_cross_replica(
    graph: Graph, data: Tensor, operator: CollectiveOperator, program: Sequence, group: CommGroup = ALL, name: str = "", options: Options = None
) -> Tensor:
    """A new flat tensor of ``ceil(n / p)`` elements: of p replicas in a group, that of rank i gets chunk i of the combined data.

    The last chunks end in zeros, or are all zeros, where p does not divide n.
    """
    size = group.size_of(graph.replication_factor, user_site())
    label = f"{name or 'reduce_scatter'}/result"
    result = graph.add_variable(data.dtype, (chunk_elements(data.num_elements, size),), mapping="linear", name=label)
    program.add(Collective("reduce_scatter", data, result, operator, group, method_of(options), name=name))
    return result


def _bucket(data: Items[Tensor]) -> Tensor:
    if not data:
        raise GraphError(f"a collective ({user_site()}) is given no tensor", "a tensor, or a list of at least one")
    return concat([each.flatten() for each in data])
