"""Products of blocks of matrices, and sums of partial products.

``c[i, j]`` is summed over k = 0, 1, 2, ... in FLOAT, whatever the blocking: four rows and four k at a time keep a row of ``b``
in registers for four uses, and the loop over j becomes vector instructions.
"""

# mypy: disable-error-code="assignment"
# A store converts to the element type of its field, whatever a type variable stands for.

from __future__ import annotations

from typing import Any, Generic, TypeVar

from popcore.codelet import InOut, Input, Matrix, MultiVertex, Output, Vector, Vertex
from popcore.types import FLOAT

T = TypeVar("T", bound=float)
K = TypeVar("K", bound=float)


def _one_row(a: Any, b: Any, out: Any, i: int) -> None:
    """out += a[i] @ b"""
    depth = len(b)
    k = 0
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
    while k < depth:
        x0 = float(a[i, k])
        x1 = float(a[i + 1, k])
        x2 = float(a[i + 2, k])
        x3 = float(a[i + 3, k])
        row = b[k]
        for j in range(len(o0)):
            y = float(row[j])
            o0[j] = o0[j] + x0 * y
            o1[j] = o1[j] + x1 * y
            o2[j] = o2[j] + x2 * y
            o3[j] = o3[j] + x3 * y
        k += 1


def _add_product(a: Any, b: Any, c: Any) -> None:
    """c += a @ b"""
    rows = len(c)
    i = 0
    while i + 4 <= rows:
        _four_rows(a, b, c, i)
        i += 4
    while i < rows:
        _one_row(a, b, c[i], i)
        i += 1


class MatMulBlock(MultiVertex, Generic[T]):
    """c = a @ b. The product unit of a tile is one for all its workers: worker 0 stands for it."""

    a: Input[Matrix[T]]
    b: Input[Matrix[T]]
    c: Output[Matrix[FLOAT]]

    def compute(self, worker: int) -> None:
        if worker == 0:
            c = self.c
            for i in range(len(c)):
                row = c[i]
                for j in range(len(row)):
                    row[j] = 0.0
            _add_product(self.a, self.b, c)


class MatMulAddBlock(MultiVertex, Generic[T]):
    """c += a @ b"""

    a: Input[Matrix[T]]
    b: Input[Matrix[T]]
    c: InOut[Matrix[FLOAT]]

    def compute(self, worker: int) -> None:
        if worker == 0:
            _add_product(self.a, self.b, self.c)


def _sum_bundles(parts: Any) -> float:
    """One vector of two a cycle and row, and one to store: the loops of PopLibs' reductions, with their prologue."""
    rows, n = parts.shape
    return float(30 + (rows + 1) * n / 2)


class MatMulSumParts(Vertex, Generic[T]):
    """out[i] = parts[0, i] + parts[1, i] + ..., rounded once."""

    parts: Input[Matrix[FLOAT]]
    out: Output[Vector[T]]

    def compute(self) -> None:
        parts, out = self.parts, self.out
        rows = len(parts)
        for i in range(len(out)):
            total = 0.0
            for r in range(rows):
                total += parts[r, i]
            out[i] = total

    def cycles(self) -> float:
        return _sum_bundles(self.parts)


class MatMulAddParts(Vertex, Generic[T, K]):
    """out[i] += k * (parts[0, i] + parts[1, i] + ...), rounded once."""

    parts: Input[Matrix[FLOAT]]
    k: Input[K]
    out: InOut[Vector[T]]

    def compute(self) -> None:
        parts, out = self.parts, self.out
        rows = len(parts)
        k = float(self.k)
        for i in range(len(out)):
            total = 0.0
            for r in range(rows):
                total += parts[r, i]
            out[i] = float(out[i]) + k * total

    def cycles(self) -> float:
        return _sum_bundles(self.parts) + len(self.out)


class MatMulZero(Vertex, Generic[T]):
    """out = 0: a product of matrices that have no k."""

    out: Output[Vector[T]]

    def compute(self) -> None:
        for i in range(len(self.out)):
            self.out[i] = 0.0
