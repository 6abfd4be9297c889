"""Counts of elements between levels, and runs of rows copied from one table to another."""

# mypy: disable-error-code="assignment"
# A store converts to the element type of its field.

from __future__ import annotations

from typing import Generic, TypeVar

from popcore.codelet import InOut, Input, Output, Vector, VectorList, Vertex
from popcore.types import BOOL, UNSIGNED_INT

T = TypeVar("T", bound=float)


class Histogram(Vertex, Generic[T]):
    """``counts[i]`` becomes how many elements of ``data``, or of their absolute values, are at or above i of ``levels``, which ascend, and no more."""

    data: Input[Vector[T]]
    levels: Input[Vector[T]]
    absolute: Input[BOOL]
    counts: Output[Vector[UNSIGNED_INT]]

    def compute(self) -> None:
        levels = self.levels
        for k in range(len(self.counts)):
            self.counts[k] = 0
        for i in range(len(self.data)):
            x = self.data[i]
            if self.absolute:
                x = abs(x)
            low = 0
            high = len(levels)
            while low < high:
                middle = (low + high) // 2
                if x >= levels[middle]:
                    low = middle + 1
                else:
                    high = middle
            self.counts[low] += 1

    def cycles(self) -> float:
        """A search of 6 a step; PopLibs compares with each level, 2 a vector."""
        return 30 + len(self.data) * (8 + 6 * len(self.levels).bit_length()) + 2 * len(self.counts)


class SequenceSlice(Vertex, Generic[T]):
    """Rows ``source_at[i]`` and on, ``count[i]`` of them, of ``source`` become rows ``target_at[i]`` and on of ``data``; what leaves either is skipped."""

    count: Input[Vector[UNSIGNED_INT]]
    source_at: Input[Vector[UNSIGNED_INT]]
    target_at: Input[Vector[UNSIGNED_INT]]
    zero_unused: Input[BOOL]
    source: Input[VectorList[T]]
    data: InOut[VectorList[T]]

    def compute(self) -> None:
        if self.zero_unused:
            for r in range(len(self.data)):
                for c in range(len(self.data[r])):
                    self.data[r][c] = 0
        for i in range(len(self.count)):
            for r in range(self.count[i]):
                here = self.source_at[i] + r
                there = self.target_at[i] + r
                if here < len(self.source) and there < len(self.data):
                    for c in range(len(self.data[there])):
                        self.data[there][c] = self.source[here][c]

    def cycles(self) -> float:
        rows = min(len(self.source), len(self.data))
        return 60 + 60 * len(self.count) + rows * 2 * -(-len(self.data[0]) // 2)


Histogram.__name__, SequenceSlice.__name__ = "popops::Histogram", "popops::SequenceSlice"  # names that no class of the user has
