"""Products of blocks of matrices, and sums of partial products.

``c[i, j]`` is summed over k = 0, 1, 2, ... in FLOAT, whatever the blocking: four rows and four k at a time keep a row of ``b``
in registers for four uses, and the loop over j becomes vector instructions. Of HALF it is eight rows and three k: an element of ``b`` is
converted for eight uses.
"""

# mypy: disable-error-code="assignment"
# A store converts to the element type of its field, whatever a type variable stands for.

from __future__ import annotations

from typing import Any, Generic, TypeVar

from popcore.codelet import InOut, Input, Matrix, MultiVertex, Output, Vector
from popcore.types import FLOAT

T = TypeVar("T", bound=float)
K = TypeVar("K", bound=float)


def _one_row(a: Any, b: Any, out: Any, i: int, k: int) -> None:
    """out += a[i, k:] @ b[k:]"""
    depth = len(b)
    while k + 4 <= depth:
        x0 = float(a[i, k])
        x1 = float(a[i, k + 1])
        x2 = float(a[i, k + 2])
        x3 = float(a[i, k + 3])
        b0 = b[k]
        b1 = b[k + 1]
        b2 = b[k + 2]
        b3 = b[k + 3]
        for j in range(len(out)):
            out[j] = out[j] + x0 * float(b0[j]) + x1 * float(b1[j]) + x2 * float(b2[j]) + x3 * float(b3[j])
        k += 4
    while k < depth:
        x = float(a[i, k])
        row = b[k]
        for j in range(len(out)):
            out[j] += x * float(row[j])
        k += 1


def _four_rows(a: Any, b: Any, c: Any, i: int) -> None:
    """c[i : i + 4] += a[i : i + 4] @ b"""
    o0 = c[i]
    o1 = c[i + 1]
    o2 = c[i + 2]
    o3 = c[i + 3]
    depth = len(b)
    k = 0
    while k + 4 <= depth:
        x00 = float(a[i, k])
        x01 = float(a[i, k + 1])
        x02 = float(a[i, k + 2])
        x03 = float(a[i, k + 3])
        x10 = float(a[i + 1, k])
        x11 = float(a[i + 1, k + 1])
        x12 = float(a[i + 1, k + 2])
        x13 = float(a[i + 1, k + 3])
        x20 = float(a[i + 2, k])
        x21 = float(a[i + 2, k + 1])
        x22 = float(a[i + 2, k + 2])
        x23 = float(a[i + 2, k + 3])
        x30 = float(a[i + 3, k])
        x31 = float(a[i + 3, k + 1])
        x32 = float(a[i + 3, k + 2])
        x33 = float(a[i + 3, k + 3])
        b0 = b[k]
        b1 = b[k + 1]
        b2 = b[k + 2]
        b3 = b[k + 3]
        for j in range(len(o0)):
            y0 = float(b0[j])
            y1 = float(b1[j])
            y2 = float(b2[j])
            y3 = float(b3[j])
            o0[j] = o0[j] + x00 * y0 + x01 * y1 + x02 * y2 + x03 * y3
            o1[j] = o1[j] + x10 * y0 + x11 * y1 + x12 * y2 + x13 * y3
            o2[j] = o2[j] + x20 * y0 + x21 * y1 + x22 * y2 + x23 * y3
            o3[j] = o3[j] + x30 * y0 + x31 * y1 + x32 * y2 + x33 * y3
        k += 4
    for r in range(i, i + 4):
        _one_row(a, b, c[r], r, k)


def _eight_rows(a: Any, b: Any, c: Any, i: int) -> None:
    """c[i : i + 8] += a[i : i + 8] @ b"""
    o0 = c[i]
    o1 = c[i + 1]
    o2 = c[i + 2]
    o3 = c[i + 3]
    o4 = c[i + 4]
    o5 = c[i + 5]
    o6 = c[i + 6]
    o7 = c[i + 7]
    depth = len(b)
    k = 0
    while k + 3 <= depth:
        x00 = float(a[i, k])
        x01 = float(a[i, k + 1])
        x02 = float(a[i, k + 2])
        x10 = float(a[i + 1, k])
        x11 = float(a[i + 1, k + 1])
        x12 = float(a[i + 1, k + 2])
        x20 = float(a[i + 2, k])
        x21 = float(a[i + 2, k + 1])
        x22 = float(a[i + 2, k + 2])
        x30 = float(a[i + 3, k])
        x31 = float(a[i + 3, k + 1])
        x32 = float(a[i + 3, k + 2])
        x40 = float(a[i + 4, k])
        x41 = float(a[i + 4, k + 1])
        x42 = float(a[i + 4, k + 2])
        x50 = float(a[i + 5, k])
        x51 = float(a[i + 5, k + 1])
        x52 = float(a[i + 5, k + 2])
        x60 = float(a[i + 6, k])
        x61 = float(a[i + 6, k + 1])
        x62 = float(a[i + 6, k + 2])
        x70 = float(a[i + 7, k])
        x71 = float(a[i + 7, k + 1])
        x72 = float(a[i + 7, k + 2])
        b0 = b[k]
        b1 = b[k + 1]
        b2 = b[k + 2]
        for j in range(len(o0)):
            y0 = float(b0[j])
            y1 = float(b1[j])
            y2 = float(b2[j])
            o0[j] = o0[j] + x00 * y0 + x01 * y1 + x02 * y2
            o1[j] = o1[j] + x10 * y0 + x11 * y1 + x12 * y2
            o2[j] = o2[j] + x20 * y0 + x21 * y1 + x22 * y2
            o3[j] = o3[j] + x30 * y0 + x31 * y1 + x32 * y2
            o4[j] = o4[j] + x40 * y0 + x41 * y1 + x42 * y2
            o5[j] = o5[j] + x50 * y0 + x51 * y1 + x52 * y2
            o6[j] = o6[j] + x60 * y0 + x61 * y1 + x62 * y2
            o7[j] = o7[j] + x70 * y0 + x71 * y1 + x72 * y2
        k += 3
    for r in range(i, i + 8):
        _one_row(a, b, c[r], r, k)


def _add_product(a: Any, b: Any, c: Any) -> None:
    """c += a @ b"""
    _add_from_row(a, b, c, 0)


def _add_half_product(a: Any, b: Any, c: Any) -> None:
    """The same for HALF."""
    i = 0
    while i + 8 <= len(c):
        _eight_rows(a, b, c, i)
        i += 8
    _add_from_row(a, b, c, i)


def _add_from_row(a: Any, b: Any, c: Any, i: int) -> None:
    """c[i:] += a[i:] @ b"""
    rows = len(c)
    while i + 4 <= rows:
        _four_rows(a, b, c, i)
        i += 4
    while i < rows:
        _one_row(a, b, c[i], i, 0)
        i += 1


class MatMulBlock(MultiVertex, Generic[T]):
    """c = a @ b. The product unit of a tile is one for all its workers: worker 0 stands for it."""

    a: Input[Matrix[T]]
    b: Input[Matrix[T]]
    c: Output[Matrix[FLOAT]]

    add_product = staticmethod(_add_product)

    def compute(self, worker: int) -> None:
        if worker == 0:
            c = self.c
            for i in range(len(c)):
                row = c[i]
                for j in range(len(row)):
                    row[j] = 0.0
            self.add_product(self.a, self.b, c)


class MatMulAddBlock(MultiVertex, Generic[T]):
    """c += a @ b"""

    a: Input[Matrix[T]]
    b: Input[Matrix[T]]
    c: InOut[Matrix[FLOAT]]

    add_product = staticmethod(_add_product)

    def compute(self, worker: int) -> None:
        if worker == 0:
            self.add_product(self.a, self.b, self.c)


class MatMulHalfBlock(MatMulBlock[T]):
    """The same, faster where T is HALF."""

    add_product = staticmethod(_add_half_product)


class MatMulHalfAddBlock(MatMulAddBlock[T]):
    """The same, faster where T is HALF."""

    add_product = staticmethod(_add_half_product)


_WORKERS = MultiVertex.NUM_WORKERS
_WIDTH = 8  # sums that a processor does at once


def _share(n: int) -> int:
    """Elements of each worker: whole vectors of _WIDTH, so that no two of them write one word."""
    return (n + _WORKERS * _WIDTH - 1) // (_WORKERS * _WIDTH) * _WIDTH


def _one_sum(parts: Any, i: int) -> float:
    total = 0.0
    for r in range(len(parts)):
        total += parts[r, i]
    return total


def _bundles(rows: int, n: int) -> float:
    """Of a worker: the prologue, then a vector of two a cycle for each row, and to store: as PopLibs' reductions."""
    return 30 + (rows + 1) * _share(n) / 2


class MatMulSumParts(MultiVertex, Generic[T]):
    """out[i] = parts[0, i] + parts[1, i] + ..., rounded once."""

    parts: Input[Matrix[FLOAT]]
    out: Output[Vector[T]]

    def compute(self, worker: int) -> None:
        parts, out = self.parts, self.out
        i = worker * _share(len(out))
        end = min(len(out), i + _share(len(out)))
        while i + _WIDTH <= end:
            t0 = t1 = t2 = t3 = t4 = t5 = t6 = t7 = 0.0
            for r in range(len(parts)):
                row = parts[r]
                t0 += row[i]
                t1 += row[i + 1]
                t2 += row[i + 2]
                t3 += row[i + 3]
                t4 += row[i + 4]
                t5 += row[i + 5]
                t6 += row[i + 6]
                t7 += row[i + 7]
            out[i] = t0
            out[i + 1] = t1
            out[i + 2] = t2
            out[i + 3] = t3
            out[i + 4] = t4
            out[i + 5] = t5
            out[i + 6] = t6
            out[i + 7] = t7
            i += _WIDTH
        while i < end:
            out[i] = _one_sum(parts, i)
            i += 1

    def cycles(self) -> float:
        return _bundles(*self.parts.shape)


class MatMulAddParts(MultiVertex, Generic[T, K]):
    """out[i] += k * (parts[0, i] + parts[1, i] + ...), rounded once."""

    parts: Input[Matrix[FLOAT]]
    k: Input[K]
    out: InOut[Vector[T]]

    def compute(self, worker: int) -> None:
        parts, out = self.parts, self.out
        k = float(self.k)
        first = worker * _share(len(out))
        for i in range(first, min(len(out), first + _share(len(out)))):
            out[i] = float(out[i]) + k * _one_sum(parts, i)

    def cycles(self) -> float:
        return _bundles(*self.parts.shape) + _share(len(self.out))


class MatMulZero(MultiVertex, Generic[T]):
    """out = 0: a product of matrices that have no k."""

    out: Output[Vector[T]]

    def compute(self, worker: int) -> None:
        first = worker * _share(len(self.out))
        for i in range(first, min(len(self.out), first + _share(len(self.out)))):
            self.out[i] = 0.0

    def cycles(self) -> float:
        return 30 + _share(len(self.out)) / 2
