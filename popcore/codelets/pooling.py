"""Pooling: what a window shows of each channel, summed or compared.

``work`` is the list of a convolution in which each channel is by itself (``popcore.ops.poplin.conv_work``): row ``out`` of a result meets the
elements of ``data`` from ``data`` on, ``data + hop``, ... , ``depth`` times. Tensors are FLOAT or HALF, sums are FLOAT.
"""

# mypy: disable-error-code="assignment"
# A store converts to the element type of its field, whatever a type variable stands for.

from __future__ import annotations

from typing import Any, Generic, TypeVar

from popcore.codelet import Input, Matrix, MultiVertex, Output, Vector
from popcore.codelets.mat_mul import zero
from popcore.types import FLOAT, INT

T = TypeVar("T", bound=float)

_FIELDS = 8


class PoolSum(MultiVertex, Generic[T]):
    """out[o] is the sum of the rows of ``data`` that o meets. Worker 0 works for all of them here; cycles are those of six."""

    data: Input[Vector[T]]
    work: Input[Vector[INT]]
    out: Output[Matrix[FLOAT]]

    def compute(self, worker: int) -> None:
        if worker == 0:
            work, data = self.work, self.data
            zero(self.out)
            for e in range(0, len(work), _FIELDS):
                for r in range(work[e + 3]):
                    row = self.out[work[e] + r * work[e + 5]]
                    for d in range(work[e + 4]):
                        there = data[work[e + 1] + r * work[e + 6] + d * work[e + 7] :]
                        for j in range(len(row)):
                            row[j] = row[j] + float(there[j])


class PoolMax(MultiVertex, Generic[T]):
    """out[o] is the largest of the rows of ``data`` that o meets, and of ``least``."""

    data: Input[Vector[T]]
    least: Input[T]
    work: Input[Vector[INT]]
    out: Output[Matrix[T]]

    def compute(self, worker: int) -> None:
        if worker == 0:
            work, data, out = self.work, self.data, self.out
            for o in range(len(out)):
                row = out[o]
                for j in range(len(row)):
                    row[j] = self.least
            for e in range(0, len(work), _FIELDS):
                for r in range(work[e + 3]):
                    row = out[work[e] + r * work[e + 5]]
                    for d in range(work[e + 4]):
                        there = data[work[e + 1] + r * work[e + 6] + d * work[e + 7] :]
                        for j in range(len(row)):
                            row[j] = there[j] if there[j] > row[j] else row[j]


class PoolMaxGradient(MultiVertex, Generic[T]):
    """out[o] is the sum of the rows of ``data``, gradients, that o meets, of those channels whose ``pooled`` is ``acts[o]``."""

    data: Input[Vector[T]]
    pooled: Input[Vector[T]]
    acts: Input[Matrix[T]]
    work: Input[Vector[INT]]
    out: Output[Matrix[FLOAT]]

    def compute(self, worker: int) -> None:
        if worker == 0:
            work = self.work
            zero(self.out)
            for e in range(0, len(work), _FIELDS):
                for r in range(work[e + 3]):
                    o = work[e] + r * work[e + 5]
                    row, act = self.out[o], self.acts[o]
                    for d in range(work[e + 4]):
                        at = work[e + 1] + r * work[e + 6] + d * work[e + 7]
                        _add_where_equal(row, self.data[at:], self.pooled[at:], act)


class PoolMaxMatches(MultiVertex, Generic[T]):
    """out[o] counts the rows of ``data`` that o meets, of those channels that are ``pooled[o]``."""

    data: Input[Vector[T]]
    pooled: Input[Matrix[T]]
    work: Input[Vector[INT]]
    out: Output[Matrix[FLOAT]]

    def compute(self, worker: int) -> None:
        if worker == 0:
            work = self.work
            zero(self.out)
            for e in range(0, len(work), _FIELDS):
                for r in range(work[e + 3]):
                    o = work[e] + r * work[e + 5]
                    row, largest = self.out[o], self.pooled[o]
                    for d in range(work[e + 4]):
                        there = self.data[work[e + 1] + r * work[e + 6] + d * work[e + 7] :]
                        for j in range(len(row)):
                            row[j] = row[j] + (1.0 if there[j] == largest[j] else 0.0)


def _add_where_equal(row: Any, data: Any, a: Any, b: Any) -> None:
    for j in range(len(row)):
        row[j] = row[j] + (float(data[j]) if a[j] == b[j] else 0.0)
