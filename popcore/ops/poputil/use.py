"""TensorUseTracker: map data to the tiles that use it. After ``poputil/TileMapping.hpp``."""

from __future__ import annotations

import numpy as np

from popcore.graph import Graph, Tensor
from popcore.graph.regions import PLACE, SHIFT, expand
from popcore.graph.tiles import linear_intervals
from popcore.types import Array


class TensorUseTracker:
    """Collects which tile uses which elements; then maps each element to one of the tiles that use it."""

    def __init__(self, num_tiles: int) -> None:
        self.num_tiles = num_tiles
        self._ids: list[Array] = []
        self._length: list[Array] = []
        self._tile: list[Array] = []

    def add(self, graph: Graph, tile: int, t: Tensor) -> None:
        """``tile`` (of ``graph``) uses ``t``."""
        r = t.regions()
        self._ids.append(r.ids)
        self._length.append(r.length)
        self._tile.append(np.full(len(r), graph.tile_of(tile, t)))

    @property
    def empty(self) -> bool:
        return not self._ids

    def map_tensors_by_use(self, graph: Graph, grain_size: int = 1, min_elements_per_tile: int = 0) -> None:
        """Set the tile mapping of all elements that were added.

        Neighbours used by the same tiles are shared out to those tiles in order, in whole grains of at least ``min_elements_per_tile``.
        """
        if self.empty:
            return
        for begin, end, users in _segments(np.concatenate(self._ids), np.concatenate(self._length), np.concatenate(self._tile)):
            first, length, which = linear_intervals(end - begin, users.size, min_elements_per_tile, grain_size)
            variable = graph.variables[begin >> SHIFT]
            variable.mapping.assign((begin & PLACE) + first, length, users[which])


def _segments(ids: Array, length: Array, tile: Array) -> list[tuple[int, int, Array]]:
    """(first id, end, tiles ascending) of the longest stretches that the same tiles use."""
    cuts = np.unique(np.concatenate((ids, ids + length)))
    a, b = np.searchsorted(cuts, ids), np.searchsorted(cuts, ids + length)
    cell = expand(a, b - a)
    pairs = np.unique(np.stack((cell, np.repeat(tile, b - a)), axis=1), axis=0)
    heads = np.concatenate(([0], np.flatnonzero(np.diff(pairs[:, 0])) + 1, [len(pairs)]))
    made: list[tuple[int, int, Array]] = []
    for low, high in zip(heads[:-1].tolist(), heads[1:].tolist(), strict=True):
        at, users = int(pairs[low, 0]), pairs[low:high, 1]
        begin, end = int(cuts[at]), int(cuts[at + 1])
        if made and made[-1][1] == begin and begin & PLACE and np.array_equal(made[-1][2], users):
            made[-1] = made[-1][0], end, users
        else:
            made.append((begin, end, users))
    return made
