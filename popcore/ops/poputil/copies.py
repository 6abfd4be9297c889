"""Copies of tensors: duplicates, and clones on another IPU or graph. After ``poputil/Util.hpp`` and ``TileMapping.hpp``."""

from __future__ import annotations

import numpy as np

from popcore.errors import TileMappingError
from popcore.graph import CloneMethod, Graph, Tensor
from popcore.ops.poputil.mapping import calc_linear_tile_mapping_and_new_offset
from popcore.program import Copy, Sequence

_UNLESS = CloneMethod.PRESERVE_ORDER_UNLESS_ALIASES


def duplicate(graph: Graph, t: Tensor, prog: Sequence, name: str = "", method: CloneMethod | str = _UNLESS) -> Tensor:
    """A clone of ``t``, and a step of ``prog`` that copies its values there. An alias that the clone keeps is copied once."""
    made = graph.clone(t, name, method)
    source, target = _each_once(t, made)
    prog.add(Copy(source, target, name=name))
    return made


def clone_n(graph: Graph, t: Tensor, n: int, name: str = "", method: CloneMethod | str = _UNLESS) -> Tensor:
    """``n`` clones as one tensor whose first dimension is ``n``."""
    return graph.clone_n(t, n, name, method)


def clone_to_ipu(graph: Graph, t: Tensor, ipu: int, name: str = "", method: CloneMethod | str = _UNLESS) -> Tensor:
    """A clone on the same tiles of another IPU."""
    if not 0 <= ipu < graph.target.num_ipus:
        raise TileMappingError(f"{t!r} to IPU {ipu}, the target has {graph.target.num_ipus}", f"0 to {graph.target.num_ipus - 1}")
    made = graph.clone(t, name, method)
    begin, end, tile = graph.tile_intervals(t)
    per_ipu = graph.target.tiles_per_ipu
    graph.map_intervals(made, begin, end - begin, ipu * per_ipu + tile % per_ipu)
    return made


def clone_to_graph(source: Graph, target: Graph, t: Tensor, name: str = "", method: CloneMethod | str = _UNLESS) -> Tensor:
    """A clone on the tiles of ``target`` that have the numbers which ``t``'s have in ``source``; both are views of one graph."""
    begin, end, tile = source.tile_intervals(t)
    if tile.size and int(tile.max()) >= target.target.num_tiles:
        raise TileMappingError(f"{t!r} uses tile {int(tile.max())}, the graph it is cloned to has {target.target.num_tiles} tiles")
    made = target.clone(t, name, method)
    target.map_intervals(made, begin, end - begin, tile)
    return made


def copy_to_ipu(graph: Graph, t: Tensor, prog: Sequence, ipu: int, name: str = "", method: CloneMethod | str = _UNLESS) -> Tensor:
    """``clone_to_ipu``, and a step of ``prog`` that copies the values."""
    made, source, target = create_ipu_copy(graph, t, ipu, name, method)
    prog.add(Copy(source, target, name=name))
    return made


def create_ipu_copy(
    graph: Graph, t: Tensor, ipu: int, name: str = "", method: CloneMethod | str = CloneMethod.PRESERVE_ORDER_AND_ALIASES
) -> tuple[Tensor, Tensor, Tensor]:
    """``clone_to_ipu``; returns the clone and what to copy: (clone, source, target)."""
    made = clone_to_ipu(graph, t, ipu, name, method)
    return made, *_each_once(t, made)


def clone_and_expand_aliasing(graph: Graph, t: Tensor, offset: int = 0, name: str = "") -> tuple[Tensor, int]:
    """A clone in which no element appears twice; those that did in ``t`` are spread linearly from tile ``offset`` on.

    Returns: the clone, and the tile after the last one so used.
    """
    made = graph.clone(t, name)
    if not t.contains_aliases:
        return made, offset
    ids = t.regions().element_ids()
    _, first = np.unique(ids, return_index=True)
    again = np.setdiff1d(np.arange(ids.size), first)
    spare = graph.add_variable(t.dtype, (again.size,))  # only to have its linear mapping
    mapping, following = calc_linear_tile_mapping_and_new_offset(graph, spare, offset)
    for tile, intervals in enumerate(mapping):
        for begin, end in intervals:
            graph.map_intervals(made, again[begin:end], np.ones(end - begin, np.int64), np.full(end - begin, tile))
    return made, following


def _each_once(t: Tensor, made: Tensor) -> tuple[Tensor, Tensor]:
    """What to copy so that ``made`` gets ``t``'s values and no element is written twice."""
    if not made.contains_aliases:
        return t, made
    ids = made.regions().element_ids()
    _, first = np.unique(ids, return_index=True)
    return t.select(first), made.select(first)
