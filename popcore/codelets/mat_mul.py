"""Products of blocks of matrices, and sums of partial products.

``c[i, j]`` is summed over k = 0, 1, 2, ... in FLOAT, whatever the blocking: four rows and four k at a time keep a row of ``b``
in registers for four uses, and the loop over j becomes vector instructions. Of HALF it is eight rows and three k.
"""

# mypy: disable-error-code="assignment"
# A store converts to the element type of its field, whatever a type variable stands for.

from __future__ import annotations

from typing import Any, Generic, TypeVar

from popcore.codelet import InOut, Input, Matrix, MultiVertex, Output, Vector
from popcore.types import FLOAT, HALF

P = TypeVar("P", bound=float)
T = TypeVar("T", bound=float)
K = TypeVar("K", bound=float)


def zero(c: Any) -> None:
    """Of a matrix: every element."""
    for i in range(len(c)):
        row = c[i]
        for j in range(len(row)):
            row[j] = 0.0


def one_row(a: Any, hop: int, b: Any, first: int, depth: int, out: Any) -> None:
    """out += a[0], a[hop], ... @ b[first : first + depth]"""
    k = 0
    while k + 4 <= depth:
        x0 = float(a[k * hop])
        x1 = float(a[(k + 1) * hop])
        x2 = float(a[(k + 2) * hop])
        x3 = float(a[(k + 3) * hop])
        b0 = b[first + k]
        b1 = b[first + k + 1]
        b2 = b[first + k + 2]
        b3 = b[first + k + 3]
        for j in range(len(out)):
            out[j] = out[j] + x0 * float(b0[j]) + x1 * float(b1[j]) + x2 * float(b2[j]) + x3 * float(b3[j])
        k += 4
    while k < depth:
        x = float(a[k * hop])
        row = b[first + k]
        for j in range(len(out)):
            out[j] += x * float(row[j])
        k += 1


def four_rows(a0: Any, a1: Any, a2: Any, a3: Any, hop: int, b: Any, first: int, depth: int, o0: Any, o1: Any, o2: Any, o3: Any) -> None:
    """``one_row`` for four of them."""
    k = 0
    while k + 4 <= depth:
        x00 = float(a0[k * hop])
        x01 = float(a0[(k + 1) * hop])
        x02 = float(a0[(k + 2) * hop])
        x03 = float(a0[(k + 3) * hop])
        x10 = float(a1[k * hop])
        x11 = float(a1[(k + 1) * hop])
        x12 = float(a1[(k + 2) * hop])
        x13 = float(a1[(k + 3) * hop])
        x20 = float(a2[k * hop])
        x21 = float(a2[(k + 1) * hop])
        x22 = float(a2[(k + 2) * hop])
        x23 = float(a2[(k + 3) * hop])
        x30 = float(a3[k * hop])
        x31 = float(a3[(k + 1) * hop])
        x32 = float(a3[(k + 2) * hop])
        x33 = float(a3[(k + 3) * hop])
        b0 = b[first + k]
        b1 = b[first + k + 1]
        b2 = b[first + k + 2]
        b3 = b[first + k + 3]
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
    while k < depth:
        x0 = float(a0[k * hop])
        x1 = float(a1[k * hop])
        x2 = float(a2[k * hop])
        x3 = float(a3[k * hop])
        row = b[first + k]
        for j in range(len(o0)):
            y = float(row[j])
            o0[j] = o0[j] + x0 * y
            o1[j] = o1[j] + x1 * y
            o2[j] = o2[j] + x2 * y
            o3[j] = o3[j] + x3 * y
        k += 1


def _eight_columns(a0: Any, a1: Any, a2: Any, a3: Any, hop: int, b: Any, first: int, depth: int, o0: Any, o1: Any, o2: Any, o3: Any, j: int) -> None:
    """``four_rows`` for columns j to j + 7, whose sums stay in registers: much faster than a loop over so few, but for HALF."""
    t00, t01, t02, t03, t04, t05, t06, t07 = o0[j], o0[j + 1], o0[j + 2], o0[j + 3], o0[j + 4], o0[j + 5], o0[j + 6], o0[j + 7]
    t10, t11, t12, t13, t14, t15, t16, t17 = o1[j], o1[j + 1], o1[j + 2], o1[j + 3], o1[j + 4], o1[j + 5], o1[j + 6], o1[j + 7]
    t20, t21, t22, t23, t24, t25, t26, t27 = o2[j], o2[j + 1], o2[j + 2], o2[j + 3], o2[j + 4], o2[j + 5], o2[j + 6], o2[j + 7]
    t30, t31, t32, t33, t34, t35, t36, t37 = o3[j], o3[j + 1], o3[j + 2], o3[j + 3], o3[j + 4], o3[j + 5], o3[j + 6], o3[j + 7]
    for k in range(depth):
        row = b[first + k]
        x0, x1, x2, x3 = a0[k * hop], a1[k * hop], a2[k * hop], a3[k * hop]
        y0, y1, y2, y3, y4, y5, y6, y7 = row[j], row[j + 1], row[j + 2], row[j + 3], row[j + 4], row[j + 5], row[j + 6], row[j + 7]
        t00, t01, t02, t03, t04, t05, t06, t07 = (
            t00 + x0 * y0,
            t01 + x0 * y1,
            t02 + x0 * y2,
            t03 + x0 * y3,
            t04 + x0 * y4,
            t05 + x0 * y5,
            t06 + x0 * y6,
            t07 + x0 * y7,
        )
        t10, t11, t12, t13, t14, t15, t16, t17 = (
            t10 + x1 * y0,
            t11 + x1 * y1,
            t12 + x1 * y2,
            t13 + x1 * y3,
            t14 + x1 * y4,
            t15 + x1 * y5,
            t16 + x1 * y6,
            t17 + x1 * y7,
        )
        t20, t21, t22, t23, t24, t25, t26, t27 = (
            t20 + x2 * y0,
            t21 + x2 * y1,
            t22 + x2 * y2,
            t23 + x2 * y3,
            t24 + x2 * y4,
            t25 + x2 * y5,
            t26 + x2 * y6,
            t27 + x2 * y7,
        )
        t30, t31, t32, t33, t34, t35, t36, t37 = (
            t30 + x3 * y0,
            t31 + x3 * y1,
            t32 + x3 * y2,
            t33 + x3 * y3,
            t34 + x3 * y4,
            t35 + x3 * y5,
            t36 + x3 * y6,
            t37 + x3 * y7,
        )
    o0[j], o0[j + 1], o0[j + 2], o0[j + 3], o0[j + 4], o0[j + 5], o0[j + 6], o0[j + 7] = t00, t01, t02, t03, t04, t05, t06, t07
    o1[j], o1[j + 1], o1[j + 2], o1[j + 3], o1[j + 4], o1[j + 5], o1[j + 6], o1[j + 7] = t10, t11, t12, t13, t14, t15, t16, t17
    o2[j], o2[j + 1], o2[j + 2], o2[j + 3], o2[j + 4], o2[j + 5], o2[j + 6], o2[j + 7] = t20, t21, t22, t23, t24, t25, t26, t27
    o3[j], o3[j + 1], o3[j + 2], o3[j + 3], o3[j + 4], o3[j + 5], o3[j + 6], o3[j + 7] = t30, t31, t32, t33, t34, t35, t36, t37


def four_float_rows(a0: Any, a1: Any, a2: Any, a3: Any, hop: int, b: Any, first: int, depth: int, o0: Any, o1: Any, o2: Any, o3: Any) -> None:
    """``four_rows`` of FLOAT."""
    if len(o0) == 8 or len(o0) == 16:
        for j in range(0, len(o0), 8):
            _eight_columns(a0, a1, a2, a3, hop, b, first, depth, o0, o1, o2, o3, j)
    else:
        four_rows(a0, a1, a2, a3, hop, b, first, depth, o0, o1, o2, o3)


def eight_half_rows(
    a0: Any,
    a1: Any,
    a2: Any,
    a3: Any,
    a4: Any,
    a5: Any,
    a6: Any,
    a7: Any,
    hop: int,
    b: Any,
    first: int,
    depth: int,
    o0: Any,
    o1: Any,
    o2: Any,
    o3: Any,
    o4: Any,
    o5: Any,
    o6: Any,
    o7: Any,
) -> None:
    """``one_row`` for eight of HALF, three k at a time: an element of ``b`` is converted for eight uses."""
    k = 0
    while k + 3 <= depth:
        x00, x01, x02 = float(a0[k * hop]), float(a0[(k + 1) * hop]), float(a0[(k + 2) * hop])
        x10, x11, x12 = float(a1[k * hop]), float(a1[(k + 1) * hop]), float(a1[(k + 2) * hop])
        x20, x21, x22 = float(a2[k * hop]), float(a2[(k + 1) * hop]), float(a2[(k + 2) * hop])
        x30, x31, x32 = float(a3[k * hop]), float(a3[(k + 1) * hop]), float(a3[(k + 2) * hop])
        x40, x41, x42 = float(a4[k * hop]), float(a4[(k + 1) * hop]), float(a4[(k + 2) * hop])
        x50, x51, x52 = float(a5[k * hop]), float(a5[(k + 1) * hop]), float(a5[(k + 2) * hop])
        x60, x61, x62 = float(a6[k * hop]), float(a6[(k + 1) * hop]), float(a6[(k + 2) * hop])
        x70, x71, x72 = float(a7[k * hop]), float(a7[(k + 1) * hop]), float(a7[(k + 2) * hop])
        b0, b1, b2 = b[first + k], b[first + k + 1], b[first + k + 2]
        for j in range(len(o0)):
            y0, y1, y2 = float(b0[j]), float(b1[j]), float(b2[j])
            o0[j] = o0[j] + x00 * y0 + x01 * y1 + x02 * y2
            o1[j] = o1[j] + x10 * y0 + x11 * y1 + x12 * y2
            o2[j] = o2[j] + x20 * y0 + x21 * y1 + x22 * y2
            o3[j] = o3[j] + x30 * y0 + x31 * y1 + x32 * y2
            o4[j] = o4[j] + x40 * y0 + x41 * y1 + x42 * y2
            o5[j] = o5[j] + x50 * y0 + x51 * y1 + x52 * y2
            o6[j] = o6[j] + x60 * y0 + x61 * y1 + x62 * y2
            o7[j] = o7[j] + x70 * y0 + x71 * y1 + x72 * y2
        k += 3
    if k < depth:
        one_row(a0[k * hop :], hop, b, first + k, depth - k, o0)
        one_row(a1[k * hop :], hop, b, first + k, depth - k, o1)
        one_row(a2[k * hop :], hop, b, first + k, depth - k, o2)
        one_row(a3[k * hop :], hop, b, first + k, depth - k, o3)
        one_row(a4[k * hop :], hop, b, first + k, depth - k, o4)
        one_row(a5[k * hop :], hop, b, first + k, depth - k, o5)
        one_row(a6[k * hop :], hop, b, first + k, depth - k, o6)
        one_row(a7[k * hop :], hop, b, first + k, depth - k, o7)


def _add_half_product(a: Any, b: Any, c: Any) -> None:
    """c += a @ b of HALF."""
    i = 0
    while i + 8 <= len(c):
        eight_half_rows(
            a[i],
            a[i + 1],
            a[i + 2],
            a[i + 3],
            a[i + 4],
            a[i + 5],
            a[i + 6],
            a[i + 7],
            1,
            b,
            0,
            len(b),
            c[i],
            c[i + 1],
            c[i + 2],
            c[i + 3],
            c[i + 4],
            c[i + 5],
            c[i + 6],
            c[i + 7],
        )
        i += 8
    while i + 4 <= len(c):
        four_rows(a[i], a[i + 1], a[i + 2], a[i + 3], 1, b, 0, len(b), c[i], c[i + 1], c[i + 2], c[i + 3])
        i += 4
    while i < len(c):
        one_row(a[i], 1, b, 0, len(b), c[i])
        i += 1


def _add_float_product(a: Any, b: Any, c: Any) -> None:
    """c += a @ b of FLOAT."""
    i = 0
    while i + 4 <= len(c):
        four_float_rows(a[i], a[i + 1], a[i + 2], a[i + 3], 1, b, 0, len(b), c[i], c[i + 1], c[i + 2], c[i + 3])
        i += 4
    while i < len(c):
        one_row(a[i], 1, b, 0, len(b), c[i])
        i += 1


class MatMulBlock(MultiVertex):
    """c = a @ b. The product unit of a tile is one for all its workers: worker 0 stands for it."""

    a: Input[Matrix[FLOAT]]
    b: Input[Matrix[FLOAT]]
    c: Output[Matrix[FLOAT]]

    def compute(self, worker: int) -> None:
        if worker == 0:
            zero(self.c)
            _add_float_product(self.a, self.b, self.c)


class MatMulHalfBlock(MultiVertex):
    """The same of HALF."""

    a: Input[Matrix[HALF]]
    b: Input[Matrix[HALF]]
    c: Output[Matrix[FLOAT]]

    def compute(self, worker: int) -> None:
        if worker == 0:
            zero(self.c)
            _add_half_product(self.a, self.b, self.c)


class MatMulAddBlock(MultiVertex):
    """c += a @ b"""

    a: Input[Matrix[FLOAT]]
    b: Input[Matrix[FLOAT]]
    c: InOut[Matrix[FLOAT]]

    def compute(self, worker: int) -> None:
        if worker == 0:
            _add_float_product(self.a, self.b, self.c)


class MatMulAddHalfBlock(MultiVertex):
    """The same of HALF."""

    a: Input[Matrix[HALF]]
    b: Input[Matrix[HALF]]
    c: InOut[Matrix[FLOAT]]

    def compute(self, worker: int) -> None:
        if worker == 0:
            _add_half_product(self.a, self.b, self.c)


_WORKERS = MultiVertex.NUM_WORKERS
_WIDTH = 8  # sums that a processor does at once


def _share(n: int) -> int:
    """Elements of each worker: whole vectors of _WIDTH, so that no two of them write one word."""
    return (n + _WORKERS * _WIDTH - 1) // (_WORKERS * _WIDTH) * _WIDTH


def _one_sum(parts: Any, i: int) -> float:
    total = 0.0
    for r in range(len(parts)):
        total += float(parts[r, i])
    return total


class MatMulSumParts(MultiVertex, Generic[P, T]):
    """out[i] = parts[0, i] + parts[1, i] + ..., in FLOAT, rounded once. What it takes is given with its vertices."""

    parts: Input[Matrix[P]]
    out: Output[Vector[T]]

    def compute(self, worker: int) -> None:
        parts, out = self.parts, self.out
        i = worker * _share(len(out))
        end = min(len(out), i + _share(len(out)))
        while i + _WIDTH <= end:
            t0 = t1 = t2 = t3 = t4 = t5 = t6 = t7 = 0.0
            for r in range(len(parts)):
                row = parts[r]
                t0 += float(row[i])
                t1 += float(row[i + 1])
                t2 += float(row[i + 2])
                t3 += float(row[i + 3])
                t4 += float(row[i + 4])
                t5 += float(row[i + 5])
                t6 += float(row[i + 6])
                t7 += float(row[i + 7])
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


class MatMulAddParts(MultiVertex, Generic[P, T, K]):
    """out[i] += k * (parts[0, i] + parts[1, i] + ...), in FLOAT, rounded once. What it takes is given with its vertices."""

    parts: Input[Matrix[P]]
    k: Input[K]
    out: InOut[Vector[T]]

    def compute(self, worker: int) -> None:
        parts, out = self.parts, self.out
        k = float(self.k)
        first = worker * _share(len(out))
        for i in range(first, min(len(out), first + _share(len(out)))):
            out[i] = float(out[i]) + k * _one_sum(parts, i)


class MatMulZero(MultiVertex, Generic[T]):
    """out = 0: a product of matrices that have no k."""

    out: Output[Vector[T]]

    def compute(self, worker: int) -> None:
        first = worker * _share(len(self.out))
        for i in range(first, min(len(self.out), first + _share(len(self.out)))):
            self.out[i] = 0.0

    def cycles(self) -> float:
        return 30 + _share(len(self.out)) / 2
