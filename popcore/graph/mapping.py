"""Tile mapping: which tile holds each element of a variable."""

from __future__ import annotations

from array import array

import numpy as np

from popcore.graph.regions import expand
from popcore.types import Array

_Mapped = tuple[Array, Array, Array]
_NOTHING: _Mapped = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int32))


class TileMapping:
    """Elements of one variable to tiles; the last assignment wins.

    Assignments are written down as they come and put in order when somebody asks.
    """

    __slots__ = ("_chunks", "_known", "_length", "_start", "_tile")

    def __init__(self) -> None:
        self._known = _NOTHING
        self._start, self._length, self._tile = array("q"), array("q"), array("i")
        self._chunks: list[_Mapped] = []

    def assign_one(self, start: int, length: int, tile: int) -> None:
        """Map elements ``start`` to ``start + length`` to ``tile``. Costs: three appends."""
        self._start.append(start)
        self._length.append(length)
        self._tile.append(tile)

    def assign(self, start: Array, length: Array, tile: Array | int) -> None:
        """The same for many runs; where two meet, the later one wins. A tile of -1 unmaps."""
        self._keep_single()
        start = np.array(start, np.int64)
        self._chunks.append((start, start + np.asarray(length, np.int64), np.array(np.broadcast_to(np.asarray(tile, np.int32), start.shape))))

    def clear(self) -> None:
        """Map nothing."""
        self._keep_single()
        self._chunks.clear()
        self._known = _NOTHING

    def intervals(self) -> _Mapped:
        """(starts int64[k], ends int64[k], tiles int32[k]): sorted, disjoint, maximal; unmapped elements are in none."""
        self._keep_single()
        if self._chunks:
            parts = [self._known, *self._chunks]
            self._chunks.clear()
            start, end, tile = (np.concatenate(column) for column in zip(*parts, strict=True))
            self._known = _last_wins(start, end, tile)
        return self._known

    def lookup(self, begin: Array, end: Array) -> tuple[Array, Array, Array, Array]:
        """The mapped parts of ranges of elements.

        begin, end  int64[m]  in, begin <= end

        Returns: begin, end, tile, owner, [k] each: the parts of range 0, then those of range 1, ...; owner is the range.
        """
        starts, ends, tiles = self.intervals()
        first = np.searchsorted(ends, begin, "right")
        count = np.maximum(np.searchsorted(starts, end, "left") - first, 0)
        owner = np.repeat(np.arange(begin.size), count)
        which = expand(first, count)
        return np.maximum(starts[which], begin[owner]), np.minimum(ends[which], end[owner]), tiles[which], owner

    def _keep_single(self) -> None:
        if self._start:
            start = np.array(self._start, np.int64)
            self._chunks.append((start, start + np.array(self._length, np.int64), np.array(self._tile, np.int32)))
            del self._start[:], self._length[:], self._tile[:]


def _last_wins(start: Array, end: Array, tile: Array) -> _Mapped:
    """Put intervals, given in the order of their assignment, in order of place."""
    if not np.all(end > start):
        keep = end > start
        start, end, tile = start[keep], end[keep], tile[keep]
    if start.size == 0:
        return _NOTHING
    if not np.all(start[1:] >= end[:-1]):
        order = np.argsort(start, kind="stable")
        if np.all(start[order][1:] >= end[order][:-1]):
            start, end, tile = start[order], end[order], tile[order]
        else:
            start, end, tile = _paint(start, end, tile)
    mapped = tile >= 0
    if not mapped.all():
        start, end, tile = start[mapped], end[mapped], tile[mapped]
    if start.size == 0:
        return _NOTHING
    heads = np.concatenate(([0], np.flatnonzero((start[1:] != end[:-1]) | (tile[1:] != tile[:-1])) + 1))
    tails = np.concatenate((heads[1:], [start.size])) - 1
    return start[heads], end[tails], tile[heads]


def _paint(start: Array, end: Array, tile: Array) -> _Mapped:
    """The same for intervals that meet.

    Between two neighbouring cuts one interval is on top: the last that covers them. An interval of cuts [a, b) is
    two overlapping blocks of 2**level cuts; a block hands what it knows down to its two halves, level by level.
    """
    cuts = np.unique(np.concatenate((start, end)))
    a, b = np.searchsorted(cuts, start), np.searchsorted(cuts, end)
    level = np.frexp((b - a).astype(float))[1] - 1
    top = np.full(cuts.size, -1, np.int64)
    for k in range(int(level.max()), -1, -1):
        mine = np.flatnonzero(level == k)
        np.maximum.at(top, a[mine], mine)
        np.maximum.at(top, b[mine] - (1 << k), mine)
        if k:
            half = 1 << (k - 1)
            handed = top[:-half].copy()
            np.maximum(top[half:], handed, out=top[half:])
    seen = np.flatnonzero(top >= 0)
    return cuts[seen], cuts[seen + 1], tile[top[seen]]
