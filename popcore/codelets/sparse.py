"""Products of sparse and dense matrices: parts of a sparse matrix with a known pattern, and buckets whose pattern arrives at run time.

Sums are made in FLOAT, a row's entries in order of their columns. The dense operand comes as the rows that the part needs.
"""

# mypy: disable-error-code="assignment"
# A store converts to the element type of its field.

from __future__ import annotations

from typing import Any, Generic, TypeVar

from popcore.codelet import InOut, Input, Matrix, MultiVertex, Output, Vector
from popcore.types import FLOAT, UNSIGNED_INT

T = TypeVar("T", bound=float)
WORKERS = MultiVertex.NUM_WORKERS
ROW_BITS = 16
"""An entry of a bucket is a word: its row, in blocks and within the part, above so many bits, its column below."""
COLUMN = (1 << ROW_BITS) - 1
_WORD = 0xFFFFFFFF


def _axpy(v: float, x: Any, out: Any) -> None:
    """out += v * x"""
    for j in range(len(out)):
        out[j] += v * float(x[j])


def _row(values: Any, words: Any, skip: int, mask: int, at: int, end: int, x: Any, out: Any) -> None:
    """out = the sum of values[e] * x[c] for e from ``at`` to ``end``, c the column in ``words[skip + e]``, under a mask: eight columns at a time, whose sums stay in registers."""
    j = 0
    while j + 8 <= len(out):
        t0 = t1 = t2 = t3 = t4 = t5 = t6 = t7 = 0.0
        for e in range(at, end):
            v = float(values[e])
            line = x[words[skip + e] & mask]
            t0 += v * float(line[j])
            t1 += v * float(line[j + 1])
            t2 += v * float(line[j + 2])
            t3 += v * float(line[j + 3])
            t4 += v * float(line[j + 4])
            t5 += v * float(line[j + 5])
            t6 += v * float(line[j + 6])
            t7 += v * float(line[j + 7])
        out[j] = t0
        out[j + 1] = t1
        out[j + 2] = t2
        out[j + 3] = t3
        out[j + 4] = t4
        out[j + 5] = t5
        out[j + 6] = t6
        out[j + 7] = t7
        j += 8
    while j < len(out):
        total = 0.0
        for e in range(at, end):
            total += float(values[e]) * float(x[words[skip + e] & mask, j])
        out[j] = total
        j += 1


def _dot(a: Any, b: Any) -> float:
    """The product of two vectors, in four interleaved sums."""
    n = len(a)
    t0 = t1 = t2 = t3 = 0.0
    i = 0
    while i + 4 <= n:
        t0 += float(a[i]) * float(b[i])
        t1 += float(a[i + 1]) * float(b[i + 1])
        t2 += float(a[i + 2]) * float(b[i + 2])
        t3 += float(a[i + 3]) * float(b[i + 3])
        i += 4
    while i < n:
        t0 += float(a[i]) * float(b[i])
        i += 1
    return (t0 + t1) + (t2 + t3)


class SparseElements(MultiVertex, Generic[T]):
    """y = s @ x for rows of a sparse matrix of elements: ``starts[r]`` to ``starts[r + 1]`` are the entries of row r."""

    starts: Input[Vector[UNSIGNED_INT]]
    columns: Input[Vector[UNSIGNED_INT]]
    values: Input[Vector[T]]
    x: Input[Matrix[T]]
    y: Output[Matrix[FLOAT]]

    def compute(self, worker: int) -> None:
        for r in range(worker, len(self.y), WORKERS):
            _row(self.values, self.columns, 0, _WORD, self.starts[r], self.starts[r + 1], self.x, self.y[r])


class SparseElementsVector(MultiVertex, Generic[T]):
    """The same where x and y have one column."""

    starts: Input[Vector[UNSIGNED_INT]]
    columns: Input[Vector[UNSIGNED_INT]]
    values: Input[Vector[T]]
    x: Input[Vector[T]]
    y: Output[Vector[FLOAT]]

    def compute(self, worker: int) -> None:
        columns, values, x = self.columns, self.values, self.x
        share = (len(self.y) + WORKERS - 1) // WORKERS
        for r in range(worker * share, min(len(self.y), (worker + 1) * share)):
            total = 0.0
            for e in range(self.starts[r], self.starts[r + 1]):
                total += float(values[e]) * float(x[columns[e]])
            self.y[r] = total


class SparseBlocks(MultiVertex, Generic[T]):
    """The same for rows of blocks of ``height`` times ``width``; element (i, j) of a block is its value ``i * down + j * right``."""

    starts: Input[Vector[UNSIGNED_INT]]
    columns: Input[Vector[UNSIGNED_INT]]
    values: Input[Vector[T]]
    height: Input[UNSIGNED_INT]
    width: Input[UNSIGNED_INT]
    down: Input[UNSIGNED_INT]
    right: Input[UNSIGNED_INT]
    x: Input[Matrix[T]]
    y: Output[Matrix[FLOAT]]

    def compute(self, worker: int) -> None:
        height, width, down, right, x, y = self.height, self.width, self.down, self.right, self.x, self.y
        for r in range(worker, len(self.starts) - 1, WORKERS):
            for i in range(height):
                out = y[r * height + i]
                for j in range(len(out)):
                    out[j] = 0.0
                for at in range(self.starts[r], self.starts[r + 1]):
                    first = at * height * width + i * down
                    line = self.columns[at] * width
                    for k in range(width):
                        _axpy(float(self.values[first + k * right]), x[line + k], out)


def _put_rows(entries: Any, values: Any, x: Any, y: Any) -> None:
    """y = s @ x for a bucket of elements, sorted by row; rows of y without any are left alone."""
    count = entries[0]
    at = 0
    while at < count:
        row = entries[1 + at] >> ROW_BITS
        end = at + 1
        while end < count and entries[1 + end] >> ROW_BITS == row:
            end += 1
        _row(values, entries, 1, COLUMN, at, end, x, y[row])
        at = end


def _add_bucket(entries: Any, values: Any, side: int, transposed: int, x: Any, y: Any) -> None:
    """y += s @ x, or y += s.T @ x, for the entries of a bucket; ``entries[0]`` says how many there are."""
    for e in range(entries[0]):
        word = entries[1 + e]
        row = word >> ROW_BITS
        column = word & COLUMN
        first = e * side * side
        for i in range(side):
            for k in range(side):
                v = float(values[first + i * side + k])
                if transposed != 0:
                    _axpy(v, x[row * side + i], y[column * side + k])
                else:
                    _axpy(v, x[column * side + k], y[row * side + i])


class SparseBucket(MultiVertex, Generic[T]):
    """y = s @ x, or y = s.T @ x, for the entries of a bucket. All workers share the loop: worker 0 stands for them."""

    entries: Input[Vector[UNSIGNED_INT]]
    values: Input[Vector[T]]
    side: Input[UNSIGNED_INT]
    transposed: Input[UNSIGNED_INT]
    x: Input[Matrix[T]]
    y: Output[Matrix[FLOAT]]

    def compute(self, worker: int) -> None:
        if worker == 0:
            for r in range(len(self.y)):
                out = self.y[r]
                for j in range(len(out)):
                    out[j] = 0.0
            if self.side == 1 and self.transposed == 0:
                _put_rows(self.entries, self.values, self.x, self.y)
            else:
                _add_bucket(self.entries, self.values, self.side, self.transposed, self.x, self.y)


class SparseBucketGradW(MultiVertex, Generic[T]):
    """For each entry (row, column) of a bucket the product of row ``row`` of dy and row ``column`` of x; 0 beyond them."""

    entries: Input[Vector[UNSIGNED_INT]]
    side: Input[UNSIGNED_INT]
    dy: Input[Matrix[T]]
    x: Input[Matrix[T]]
    dw: Output[Vector[FLOAT]]

    def compute(self, worker: int) -> None:
        if worker == 0:
            side, dy, x = self.side, self.dy, self.x
            for e in range(self.entries[0]):
                word = self.entries[1 + e]
                row = (word >> ROW_BITS) * side
                column = (word & COLUMN) * side
                for i in range(side):
                    for k in range(side):
                        self.dw[(e * side + i) * side + k] = _dot(dy[row + i], x[column + k])
            for i in range(self.entries[0] * side * side, len(self.dw)):
                self.dw[i] = 0.0


class SparseBucketSlice(MultiVertex, Generic[T]):
    """Row i of ``out`` becomes the part of row ``indices[i]`` of a sparse matrix that a bucket holds, ``first`` the number of its first row; 0 elsewhere."""

    entries: Input[Vector[UNSIGNED_INT]]
    values: Input[Vector[T]]
    indices: Input[Vector[UNSIGNED_INT]]
    side: Input[UNSIGNED_INT]
    first: Input[UNSIGNED_INT]
    out: Output[Matrix[FLOAT]]

    def compute(self, worker: int) -> None:
        if worker == 0:
            side, indices, out = self.side, self.indices, self.out
            for i in range(len(out)):
                for j in range(len(out[i])):
                    out[i, j] = 0.0
            for e in range(self.entries[0]):
                word = self.entries[1 + e]
                row = self.first + (word >> ROW_BITS) * side
                column = (word & COLUMN) * side
                for i in range(len(indices)):
                    if row <= indices[i] and indices[i] < row + side:
                        for k in range(side):
                            out[i, column + k] = float(self.values[(e * side + indices[i] - row) * side + k])


class SparseBucketUpdateAdd(MultiVertex, Generic[T]):
    """``scale`` times row i of ``slices`` is added to row ``indices[i]`` of a sparse matrix, where it has entries in this bucket."""

    entries: Input[Vector[UNSIGNED_INT]]
    indices: Input[Vector[UNSIGNED_INT]]
    side: Input[UNSIGNED_INT]
    first: Input[UNSIGNED_INT]
    scale: Input[FLOAT]
    slices: Input[Matrix[T]]
    values: InOut[Vector[T]]

    def compute(self, worker: int) -> None:
        if worker == 0:
            side, indices = self.side, self.indices
            for e in range(self.entries[0]):
                word = self.entries[1 + e]
                row = self.first + (word >> ROW_BITS) * side
                column = (word & COLUMN) * side
                for i in range(len(indices)):
                    if row <= indices[i] and indices[i] < row + side:
                        for k in range(side):
                            at = (e * side + indices[i] - row) * side + k
                            self.values[at] = float(self.values[at]) + self.scale * float(self.slices[i, column + k])


for _each in (SparseElements, SparseElementsVector, SparseBlocks, SparseBucket, SparseBucketGradW, SparseBucketSlice, SparseBucketUpdateAdd):
    _each.__name__ = f"popsparse::{_each.__name__}"  # a name that no class of the user has
