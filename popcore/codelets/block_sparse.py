"""Softmax over rows of a block-sparse matrix, and its gradient. A vertex has the blocks of one row of blocks, one after the other."""

# mypy: disable-error-code="assignment"
# A store converts to the element type of its field.

from __future__ import annotations

import math
from typing import Generic, TypeVar

from popcore.codelet import Input, MultiVertex, Output, Vector
from popcore.types import UNSIGNED_INT

T = TypeVar("T", bound=float)
WORKERS = MultiVertex.NUM_WORKERS
ALL, NOT_ABOVE, NOT_BELOW = 0, 1, 2
"""Which elements count: all; none whose column is above its row; none below."""


def _counts(row: int, column: int, rule: int) -> bool:
    return rule == ALL or (rule == NOT_ABOVE and column <= row) or (rule == NOT_BELOW and column >= row)


class BlockSoftmax(MultiVertex, Generic[T]):
    """Softmax over the elements that count of each row, less their maximum; 0 for the others."""

    x: Input[Vector[T]]
    columns: Input[Vector[UNSIGNED_INT]]  # that blocks begin at
    row: Input[UNSIGNED_INT]  # that the row of blocks begins at
    height: Input[UNSIGNED_INT]
    width: Input[UNSIGNED_INT]
    rule: Input[UNSIGNED_INT]
    out: Output[Vector[T]]

    def compute(self, worker: int) -> None:
        height, width, rule = self.height, self.width, self.rule
        for i in range(worker, height, WORKERS):
            top = -math.inf
            for b in range(len(self.columns)):
                for j in range(width):
                    if _counts(self.row + i, self.columns[b] + j, rule):
                        top = max(top, float(self.x[(b * height + i) * width + j]))
            total = 0.0
            for b in range(len(self.columns)):
                for j in range(width):
                    if _counts(self.row + i, self.columns[b] + j, rule):
                        total += math.exp(float(self.x[(b * height + i) * width + j]) - top)
            for b in range(len(self.columns)):
                for j in range(width):
                    at = (b * height + i) * width + j
                    if _counts(self.row + i, self.columns[b] + j, rule):
                        self.out[at] = math.exp(float(self.x[at]) - top) / total
                    else:
                        self.out[at] = 0.0


class BlockSoftmaxGrad(MultiVertex, Generic[T]):
    """``out * (grad - sum of out * grad over the row)``"""

    out: Input[Vector[T]]
    grad: Input[Vector[T]]
    height: Input[UNSIGNED_INT]
    width: Input[UNSIGNED_INT]
    result: Output[Vector[T]]

    def compute(self, worker: int) -> None:
        height, width = self.height, self.width
        blocks = len(self.out) // (height * width)
        for i in range(worker, height, WORKERS):
            total = 0.0
            for b in range(blocks):
                for j in range(width):
                    at = (b * height + i) * width + j
                    total += float(self.out[at]) * float(self.grad[at])
            for b in range(blocks):
                for j in range(width):
                    at = (b * height + i) * width + j
                    self.result[at] = float(self.out[at]) * (float(self.grad[at]) - total)


for _each in (BlockSoftmax, BlockSoftmaxGrad):
    _each.__name__ = f"popsparse::{_each.__name__}"  # a name that no class of the user has
