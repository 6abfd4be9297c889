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


def _axpy(v: float, x: Any, out: Any) -> None:
    """out += v * x"""
    for j in range(len(out)):
        out[j] += v * float(x[j])


def _axpy_four(v: Any, at: int, x: Any, columns: Any, out: Any) -> None:
    """The next four entries of a row at once, each sum in order: a row of ``out`` is loaded and stored once."""
    v0, v1, v2, v3 = float(v[at]), float(v[at + 1]), float(v[at + 2]), float(v[at + 3])
    x0 = x[columns[at]]
    x1 = x[columns[at + 1]]
    x2 = x[columns[at + 2]]
    x3 = x[columns[at + 3]]
    for j in range(len(out)):
        out[j] = out[j] + v0 * float(x0[j]) + v1 * float(x1[j]) + v2 * float(x2[j]) + v3 * float(x3[j])


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
        starts, columns, values, x, y = self.starts, self.columns, self.values, self.x, self.y
        for r in range(worker, len(y), WORKERS):
            out = y[r]
            at = starts[r]
            end = starts[r + 1]
            if len(out) == 1:
                total = 0.0
                while at < end:
                    total += float(values[at]) * float(x[columns[at], 0])
                    at += 1
                out[0] = total
            else:
                for j in range(len(out)):
                    out[j] = 0.0
                while at + 4 <= end:
                    _axpy_four(values, at, x, columns, out)
                    at += 4
                while at < end:
                    _axpy(float(values[at]), x[columns[at]], out)
                    at += 1


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


def _add_bucket(entries: Any, values: Any, side: int, transposed: int, x: Any, y: Any) -> None:
    """y += s @ x, or y += s.T @ x, for the entries of a bucket; ``entries[0]`` says how many there are."""
    for e in range(entries[0]):
        word = entries[1 + e]
        row = word >> ROW_BITS
        column = word & ((1 << ROW_BITS) - 1)
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
                column = (word & ((1 << ROW_BITS) - 1)) * side
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
                column = (word & ((1 << ROW_BITS) - 1)) * side
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
                column = (word & ((1 << ROW_BITS) - 1)) * side
                for i in range(len(indices)):
                    if row <= indices[i] and indices[i] < row + side:
                        for k in range(side):
                            at = (e * side + indices[i] - row) * side + k
                            self.values[at] = float(self.values[at]) + self.scale * float(self.slices[i, column + k])


for _each in (SparseElements, SparseBlocks, SparseBucket, SparseBucketGradW, SparseBucketSlice, SparseBucketUpdateAdd):
    _each.__name__ = f"popsparse::{_each.__name__}"  # a name that no class of the user has
