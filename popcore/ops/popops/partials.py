"""The parts of a reduction as arrays: which elements, of which outputs, on which tile."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from popcore.graph.regions import expand
from popcore.types import Array


@dataclass(frozen=True, eq=False)
class Matrices:
    """Matrices in a flat tensor that are to be reduced, each on a tile.

    start, rows, columns  int64[m]  where each begins, row-major
    out                   int64[m]  its first output
    tile                  int32[m]
    along_rows            bool      each row becomes an output; else each column
    """

    start: Array
    rows: Array
    columns: Array
    out: Array
    tile: Array
    along_rows: bool

    @property
    def outputs(self) -> Array:
        """int64[m]: how many outputs each matrix has."""
        return self.rows if self.along_rows else self.columns

    @property
    def trivial(self) -> bool:
        """Whether every matrix is its own result."""
        return bool(np.all((self.columns if self.along_rows else self.rows) == 1))


Ranges = tuple[Array, Array]
"""(begin, length) of parts of a flat tensor: one after the other they make up the one that matrices are in."""


def inner(begin: Array, length: Array, tile: Array, reduced: int) -> tuple[Ranges, Matrices]:
    """Of outputs with ``reduced`` elements each, next to each other, that lie on tiles in runs."""
    begin, length, tile = _cut_rows(begin, length, tile, reduced)
    whole = length >= reduced
    rows, columns = np.where(whole, length // reduced, 1), np.where(whole, reduced, length)
    return (begin, length), Matrices(np.cumsum(length) - length, rows, columns, begin // reduced, tile, True)


def outer(begin: Array, length: Array, tile: Array, reduced: int, kept: int) -> tuple[Ranges, Matrices]:
    """Of matrices of ``reduced`` rows and ``kept`` columns, one after the other; each column of each becomes an output.

    What a tile has of the same columns becomes one matrix, wherever it lies.
    """
    span = reduced * kept
    first = -(-begin // span)
    begin, length, tile = _cut_at(begin, length, tile, expand(first, np.maximum((begin + length - 1) // span - first + 1, 0)) * span)
    begin, length, tile = _cut_rows(begin, length, tile, kept)
    rows, columns, out = np.maximum(length // kept, 1), np.minimum(length, kept), begin // span * kept + begin % kept
    order = np.lexsort((begin, columns, out, tile))
    begin, length, rows, columns, out, tile = (a[order] for a in (begin, length, rows, columns, out, tile))
    same = (tile[1:] == tile[:-1]) & (out[1:] == out[:-1]) & (columns[1:] == columns[:-1])
    heads = np.concatenate(([0], np.flatnonzero(~same) + 1))
    start = np.cumsum(length) - length
    return (begin, length), Matrices(start[heads], np.add.reduceat(rows, heads), columns[heads], out[heads], tile[heads], False)


def _cut_rows(begin: Array, length: Array, tile: Array, row: int) -> tuple[Array, Array, Array]:
    """Runs of a row-major matrix cut into part of a row, whole rows, part of a row."""
    end = begin + length
    first, last = -(-begin // row) * row, end // row * row  # where whole rows begin and end
    return _cut_at(begin, length, tile, np.concatenate([first[first < end], last[last > begin]]))


def _cut_at(begin: Array, length: Array, tile: Array, cuts: Array) -> tuple[Array, Array, Array]:
    """Runs, in order and without gaps, cut at places that lie in them."""
    points = np.unique(np.concatenate([begin, cuts]))
    points = points[points < begin[-1] + length[-1]]
    owner = np.searchsorted(begin, points, "right") - 1
    return points, np.diff(points, append=begin[-1] + length[-1]), tile[owner]


@dataclass(frozen=True, eq=False)
class Segments:
    """Stretches of outputs that the same partial results cover.

    first, size   int64[s]  the outputs
    count         int64[s]  how many partial results each has
    ranges        those results, segment by segment, as parts of the tensor that holds them: each segment is a matrix
    """

    first: Array
    size: Array
    count: Array
    ranges: Ranges


def segments(start: Array, out: Array, size: Array, cuts: Array) -> Segments:
    """Cut outputs where partial results begin or end, and at ``cuts``.

    start, out, size  int64[n]  where each stretch of results is, its first output, its length
    """
    points = np.unique(np.concatenate([out, out + size, cuts]))
    low, high = np.searchsorted(points, out), np.searchsorted(points, out + size)
    segment = expand(low, high - low)
    owner = np.repeat(np.arange(out.size), high - low)
    order = np.argsort(segment, kind="stable")
    segment, owner = segment[order], owner[order]
    widths = np.diff(points)
    ranges = start[owner] + points[segment] - out[owner], widths[segment]
    return Segments(points[:-1], widths, np.bincount(segment, minlength=widths.size), ranges)
