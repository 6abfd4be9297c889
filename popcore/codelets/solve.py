"""Blocks of triangular systems and of Cholesky factors: what one vertex does of them."""

# mypy: disable-error-code="assignment"
# A store converts to the element type of its field.

from __future__ import annotations

import math
from typing import Any, Generic, TypeVar

from popcore.codelet import InOut, Input, Matrix, Vertex
from popcore.types import BOOL

T = TypeVar("T", bound=float)


def _less_products(total: Any, a: Any, b: Any, count: int) -> Any:
    """total - a[0] b[0] - a[1] b[1] - ... in FLOAT."""
    for k in range(count):
        total -= float(a[k]) * float(b[k])
    return total


class SolveRows(Vertex, Generic[T]):
    """Each row x of ``x`` becomes y with ``a y = x``, for the lower triangle of ``a``; its diagonal is read as 1 if ``unit``."""

    a: Input[Matrix[T]]
    unit: Input[BOOL]
    x: InOut[Matrix[T]]

    def compute(self) -> None:
        for i in range(len(self.x)):
            row = self.x[i]
            for r in range(len(row)):
                total = _less_products(float(row[r]), self.a[r], row, r)
                if not self.unit:
                    total /= float(self.a[r, r])
                row[r] = total


class CholeskyBlock(Vertex, Generic[T]):
    """The lower triangle of ``a`` becomes that of L with ``L L^T = a``; the rest stays. NaN where ``a`` is not positive definite."""

    a: InOut[Matrix[T]]

    def compute(self) -> None:
        a = self.a
        for r in range(len(a)):
            row = a[r]
            for c in range(r):
                row[c] = _less_products(float(row[c]), row, a[c], c) / float(a[c, c])
            total = _less_products(float(row[r]), row, row, r)
            row[r] = math.sqrt(total)
