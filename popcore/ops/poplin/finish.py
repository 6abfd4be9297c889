"""The last step of a product: partial products are summed where the result lives, rounded to its type and put or added there."""

from __future__ import annotations

from typing import Any

import numpy as np

from popcore.errors import TileMappingError
from popcore.graph import ComputeSet, Graph, Tensor
from popcore.graph.regions import Regions, coalesce
from popcore.graph.tensor import from_regions
from popcore.ops.poplin.cost import sum_cycles
from popcore.program import Execute, Sequence
from popcore.types import Array


def add_sums(graph: Graph, step: ComputeSet, codelet: Any, parts: Tensor | None, count: int, out: Tensor, **fields: Any) -> None:
    """The vertices of ``finish``, for a compute set that more may be done in."""
    order, begin, length, tile = _shares(graph, out)
    there = from_regions(out._variables(), out.dtype, out.shape, out.regions().select(order.ids, order.length), out)
    connections: dict[str, Any] = {"out": (there, begin, length), **fields}
    cycles = None
    if parts is not None:
        connections["parts"] = (_gathered(parts, count, order, begin, length), begin * count, np.full(begin.size, count), length)
        cycles = -(-sum_cycles(graph.target, count, length, parts.dtype, out.dtype) // graph.target.num_worker_contexts)
    graph.add_vertices(step, codelet, connections, tile, cycles)


def finish(graph: Graph, codelet: Any, parts: Tensor | None, count: int, out: Tensor, prog: Sequence, name: str, **fields: Any) -> None:
    """Add a compute set in which ``codelet`` sums ``parts`` into ``out``.

    Args:
        parts: A vector: ``count`` times the elements of ``out``, in its order; None if the codelet has no such field.
        out: A vector of at least one element.
        fields: What else every vertex is connected to.

    Raises: TileMappingError: elements of ``out`` are on no tile.
    """
    step = graph.add_compute_set(name)
    add_sums(graph, step, codelet, parts, count, out, **fields)
    prog.add(Execute(step))


def _shares(graph: Graph, out: Tensor) -> tuple[Regions, Array, Array, Array]:
    """``out`` in an order in which what each tile holds is one range: that of a vertex there.

    Returns: the order, as runs of positions in ``out``; and of each vertex begin and length in that order, and its tile.
    """
    begin, end, tile = graph.tile_intervals(out)
    length = end - begin
    missing = out.num_elements - int(length.sum())
    if missing:
        raise TileMappingError(f"{missing} of {out.num_elements} elements of the result {out!r} are on no tile of this graph", "map all of it first")
    by_tile = np.argsort(tile, kind="stable")
    begin, length, tile = begin[by_tile], length[by_tile], tile[by_tile]
    heads = np.concatenate(([0], np.flatnonzero(np.diff(tile)) + 1))
    held = np.add.reduceat(length, heads)
    first = np.cumsum(held) - held
    return Regions(begin, length), first, held, tile[heads]


def _gathered(parts: Tensor, count: int, order: Regions, begin: Array, length: Array) -> Tensor:
    """``parts`` so that each vertex's matrix, its share of each part in turn, is one range."""
    numel = parts.num_elements // count
    position, size, vertex = order.pieces(begin, length)
    if count > 1:
        piece = np.tile(np.arange(position.size), count)
        part = np.repeat(np.arange(count), position.size)
        sorting = np.lexsort((piece, part, vertex[piece]))
        piece, part = piece[sorting], part[sorting]
        position, size = position[piece] + part * numel, size[piece]
    made = parts.regions().select(position, size)
    return from_regions(parts._variables(), parts.dtype, parts.shape, coalesce(made.ids, made.length), parts)
