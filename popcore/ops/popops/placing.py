"""Element-wise vertices over the tiles: each tile computes the elements it holds, shared out to its workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from popcore.codelet import Vertex
from popcore.errors import TileMappingError
from popcore.graph import ComputeSet, Graph, Tensor
from popcore.graph.regions import expand
from popcore.ops.poputil import map_tensor_linearly
from popcore.types import Array, DTypeLike

_PIECES_PER_WORKER = 8  # with more runs than this a vertex gets its elements gathered rather than a vertex a run


def spread(
    graph: Graph,
    compute_set: ComputeSet,
    cls: type[Vertex],
    out: Tensor,
    inputs: Mapping[str, Tensor],
    scalars: Mapping[str, Any],
    cost: tuple[int, int, int] | None = None,
) -> None:
    """Add vertices of ``cls`` that together compute all of ``out``, each where its part of ``out`` is.

    Args:
        cost: Cycles of a vertex to begin, and then so many for each so many elements; None: as ``cls`` says.

    Needs: fields ``out``, a vector; of each of ``inputs``, tensors of as many elements, a vector; of each of ``scalars``, one element or number.
    Raises: TileMappingError where ``out`` is not wholly mapped.
    Costs: array operations, whatever the number of vertices; more where a part of an operand is not one run.
    """
    flat, others = graph.reorder_to_simplify(out, list(inputs.values()))
    begin, length, tile = mapped_runs(graph, flat)
    start, size, where = share_out(begin, length, tile, graph.target.num_worker_contexts, graph.target.get_vector_width(out.dtype))
    if start.size > _PIECES_PER_WORKER * graph.target.num_worker_contexts * np.unique(tile).size:
        order = np.argsort(tile, kind="stable")
        flat, *others = (gathered(t, begin[order], length[order]) for t in (flat, *others))
        begin, length, tile = by_tile(length[order], tile[order])
        start, size, where = share_out(begin, length, tile, graph.target.num_worker_contexts, graph.target.get_vector_width(out.dtype))
    if start.size:
        vectors = {name: (t, start, size) for name, t in zip(("out", *inputs), (flat, *others), strict=True)}
        cycles = None if cost is None else cost[0] + cost[1] * -(-size // cost[2])
        graph.add_vertices(compute_set, cls, {**vectors, **scalars}, where, cycles)


def mapped_runs(graph: Graph, flat: Tensor) -> tuple[Array, Array, Array]:
    """(begin, length, tile): the runs of ``flat`` that one tile holds next to each other in memory.

    Raises: TileMappingError where elements are on no tile.
    """
    begin, end, tile = graph.tile_intervals(flat)
    missing = flat.num_elements - int((end - begin).sum())
    if missing:
        raise TileMappingError(f"{missing} of {flat.num_elements} elements of {flat!r} are on no tile", "map it before an operation writes it")
    cuts = flat.regions().ends[:-1]
    if not cuts.size:
        return begin, end - begin, tile
    points = np.unique(np.concatenate([begin, cuts]))
    owner = np.searchsorted(begin, points, "right") - 1
    return points, np.diff(points, append=flat.num_elements), tile[owner]


def share_out(begin: Array, length: Array, tile: Array, workers: int, grain: int) -> tuple[Array, Array, Array]:
    """Cut runs so that the workers of each tile get equal shares, in whole grains where the runs allow.

    begin, length, tile  int[n]

    Returns: begin, length, tile of the parts, tiles ascending.
    """
    if not begin.size:
        return begin, length, tile
    order = np.argsort(tile, kind="stable")
    begin, length, tile = begin[order], length[order], tile[order]
    heads = np.flatnonzero(np.diff(tile, prepend=-1))
    totals = np.add.reduceat(length, heads)
    owner = np.repeat(np.arange(heads.size), np.diff(np.append(heads, tile.size)))
    quota = (-(-totals // (grain * workers)) * grain)[owner]
    place = np.cumsum(length) - length  # within the tile
    place -= place[heads][owner]
    first = place // quota
    parts = (place + length - 1) // quota - first + 1
    of = np.repeat(np.arange(begin.size), parts)
    worker = expand(first, parts)
    low = np.maximum(place[of], worker * quota[of])
    high = np.minimum((place + length)[of], (worker + 1) * quota[of])
    return begin[of] + low - place[of], high - low, tile[of]


def by_tile(length: Array, tile: Array) -> tuple[Array, Array, Array]:
    """Runs that follow each other, tiles ascending, as one for each tile: (begin, length, tile)."""
    heads = np.flatnonzero(np.diff(tile, prepend=-1))
    totals = np.add.reduceat(length, heads)
    return np.cumsum(totals) - totals, totals, tile[heads]


def gathered(t: Tensor, begin: Array, length: Array) -> Tensor:
    """Parts of the flattened ``t`` one after the other."""
    ids = expand(begin, length)
    return t.flatten().select(ids)


def output_like(graph: Graph, operands: Sequence[Tensor], shape: tuple[int, ...], dtype: DTypeLike, name: str) -> Tensor:
    """A new tensor for the result of an element-wise operation, each element where an operand has it.

    It is laid out like the operand of that shape, wholly mapped and without aliases, whose fullest tile holds least;
    constants only if there is no other. Without such an operand it is mapped linearly.
    """
    best: tuple[bool, int] | None = None
    chosen: Tensor | None = None
    for t in operands:
        if t.shape != shape or t.contains_aliases:
            continue
        begin, end, tile = graph.tile_intervals(t)
        if int((end - begin).sum()) != t.num_elements or not begin.size:
            continue
        found = t.contains_constant, int(np.bincount(tile, (end - begin).astype(float)).max())
        if best is None or found < best:
            best, chosen = found, t
    if chosen is not None:
        return graph.clone(chosen, name, dtype=dtype)
    made = graph.add_variable(dtype, shape, name=name)
    map_tensor_linearly(graph, made)
    return made
