"""Tile mappings of views: from a tensor's elements to the variables behind them, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from popcore.errors import TileMappingError
from popcore.graph.regions import PLACE, SHIFT, expand
from popcore.graph.tensor import Tensor
from popcore.graph.variable import Variables
from popcore.types import Array

Mapped = tuple[Array, Array, Array]


def assign_tile(tensor: Tensor, tile: int) -> None:
    """Map all of a view to one tile."""
    variable = tensor.variable
    if variable is not None and (simple := tensor.simple) is not None:
        variable.mapping.assign_one(simple[1], simple[2], tile)
        return
    r = tensor.regions()
    _assign(tensor._variables(), r.ids, r.length, np.full(len(r), tile, np.int32))


def assign_intervals(tensor: Tensor, begin: Array, length: Array, tile: Array) -> None:
    """Map parts of the flattened view. Needs: parts within the view, of at least one element."""
    if begin.size:
        ids, lengths, owner = tensor.regions().pieces(begin, length)
        _assign(tensor._variables(), ids, lengths, tile[owner])


def tile_intervals(tensor: Tensor) -> Mapped:
    """(begin int64[k], end int64[k], tile int32[k]): the mapped parts of the flattened view, in order, maximal."""
    r = tensor.regions()
    table = tensor._variables()
    columns: list[Mapped] = []
    for variable, which in _by_variable(r.ids):
        begin, end, tile, owner = table[variable].mapping.lookup(r.start[which], r.start[which] + r.length[which])
        shift = (r.begins[which] - r.start[which])[owner]
        columns.append((begin + shift, end + shift, tile))
    if not columns:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int32)
    begin, end, tile = (np.concatenate(c) for c in zip(*columns, strict=True))
    if len(columns) > 1:
        order = np.argsort(begin, kind="stable")
        begin, end, tile = begin[order], end[order], tile[order]
    if begin.size > 1:
        heads = np.concatenate(([0], np.flatnonzero((begin[1:] != end[:-1]) | (tile[1:] != tile[:-1])) + 1))
        begin, end, tile = begin[heads], end[np.concatenate((heads[1:], [begin.size])) - 1], tile[heads]
    return begin, end, tile


def read_lists(tensor: Tensor, per_tile: Sequence[Any], num_tiles: int) -> Mapped:
    """A mapping as users write it, a list of (begin, end) for each tile, as begin, length, tile.

    Raises: TileMappingError: more lists than tiles, an interval outside of the tensor, or elements missing or twice.
    """
    if len(per_tile) > num_tiles and any(len(p) for p in per_tile[num_tiles:]):
        raise TileMappingError(f"a mapping of {tensor!r} lists {len(per_tile)} tiles, the target has {num_tiles}")
    try:
        flat = np.array([bound for intervals in per_tile for interval in intervals for bound in interval], np.int64).reshape(-1, 2)
        tile = np.repeat(np.arange(len(per_tile), dtype=np.int32), [len(p) for p in per_tile])
    except (TypeError, ValueError):
        raise TileMappingError(f"this is no mapping of {tensor!r}: {per_tile!r:.80}", "a tile, or for each tile a list of (begin, end)") from None
    if flat.shape[0] != tile.size:
        raise TileMappingError(f"this is no mapping of {tensor!r}: {per_tile!r:.80}", "pairs (begin, end)")
    begin, end = flat[:, 0], flat[:, 1]
    bad = (begin < 0) | (end < begin) | (end > tensor.num_elements)
    if bad.any():
        i = int(np.argmax(bad))
        raise TileMappingError(
            f"interval [{begin[i]}, {end[i]}) on tile {tile[i]} is not within {tensor!r}, which has {tensor.num_elements} elements",
            "intervals of the flattened tensor",
        )
    keep = end > begin
    begin, length, tile = begin[keep], (end - begin)[keep], tile[keep]
    order = np.argsort(begin, kind="stable")
    twice = np.flatnonzero(begin[order][1:] < (begin + length)[order][:-1])
    if twice.size:
        raise TileMappingError(f"element {begin[order][twice[0] + 1]} of {tensor!r} is mapped twice by one mapping", "each element once")
    if int(length.sum()) != tensor.num_elements:
        raise TileMappingError(
            f"the mapping covers {int(length.sum())} elements, {tensor!r} has {tensor.num_elements}", "map every element; map slices to leave some out"
        )
    return begin, length, tile


def as_lists(begin: Array, end: Array, tile: Array, num_tiles: int) -> list[list[tuple[int, int]]]:
    """For each tile the list of its (begin, end)."""
    made: list[list[tuple[int, int]]] = [[] for _ in range(num_tiles)]
    for b, e, t in zip(begin.tolist(), end.tolist(), tile.tolist(), strict=True):
        made[t].append((b, e))
    return made


def linear_intervals(numel: int, num_tiles: int, min_elements: int, grain: int) -> Mapped:
    """``numel`` elements in order over tiles 0, 1, ...: begin, length, tile.

    Each tile but the last used gets whole grains, at least ``min_elements``, as equally as grains allow; no more
    tiles are used than the fullest tile makes necessary.
    """
    grains = -(-numel // grain)
    per_tile = -(-grains // num_tiles)
    if min_elements:
        per_tile = max(per_tile, -(-grains // max(1, grains // -(-min_elements // grain))))
    used = -(-grains // per_tile) if grains else 0
    cuts = np.minimum(np.arange(used + 1, dtype=np.int64) * grains // max(1, used) * grain, numel)
    return cuts[:-1], np.diff(cuts), np.arange(used, dtype=np.int32)


def _assign(table: Variables, ids: Array, length: Array, tile: Array) -> None:
    for variable, which in _by_variable(ids):
        table[variable].mapping.assign(ids[which] & PLACE, length[which], tile[which])


def _by_variable(ids: Array) -> list[tuple[int, Array]]:
    """(variable, indices into ``ids`` in their order) for each variable, ascending."""
    if not ids.size:
        return []
    variable = ids >> SHIFT
    if variable[0] == variable[-1] and np.all(variable == variable[0]):
        return [(int(variable[0]), np.arange(ids.size))]
    order = np.argsort(variable, kind="stable")
    heads = np.concatenate(([0], np.flatnonzero(np.diff(variable[order])) + 1))
    tails = np.concatenate((heads[1:], [ids.size]))
    return [(int(variable[order[h]]), order[h:t]) for h, t in zip(heads.tolist(), tails.tolist(), strict=True)]


def each_element(begin: Array, end: Array, tile: Array, numel: int) -> Array:
    """int32[numel]: the tile of every element of a view, -1 where there is none."""
    made = np.full(numel, -1, np.int32)
    made[expand(begin, end - begin)] = np.repeat(tile, end - begin)
    return made
