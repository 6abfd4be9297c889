"""Rows of a table that are chosen at run time: copied out, copied in, joined."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from popcore.codelet import InOut, Input, Output, Vector, VectorList, Vertex
from popcore.types import FLOAT, UNSIGNED_INT

T = TypeVar("T")

VALIDATE, REMAP, PADDING = 1, 2, 4
"""Bits of a rule for an index outside of the table: the run stops; it is taken for 0, which wins; the one just behind the end is a row of
zeros all the same. Others are skipped, and look-ups of them give zeros."""


class DynamicSlice(Vertex, Generic[T]):
    """Rows ``offset``, ``offset + 1``, ... of ``data``, around its end, become those of ``out``; none where ``offset`` is no row."""

    offset: Input[UNSIGNED_INT]
    rule: Input[UNSIGNED_INT]
    data: Input[VectorList[T]]
    out: Output[VectorList[T]]

    def compute(self) -> None:
        n = len(self.data)
        offset = _resolved(self.offset, 1, n, self.rule)
        if offset == n and self.rule & PADDING:
            for r in range(len(self.out)):
                for c in range(len(self.out[r])):
                    self.out[r][c] = 0  # type: ignore[assignment]  # a store converts
        elif offset < n:
            for r in range(len(self.out)):
                at = offset + r
                if at >= n:
                    at = at - n
                for c in range(len(self.out[r])):
                    self.out[r][c] = self.data[at][c]

    def cycles(self) -> int:
        return 30 + len(self.out) * (12 + -(-len(self.out[0]) // 2))


class DynamicUpdate(Vertex, Generic[T]):
    """Rows of ``part`` go to rows ``offset``, ``offset + 1``, ... of ``data``, around its end; none where ``offset`` is no row."""

    offset: Input[UNSIGNED_INT]
    rule: Input[UNSIGNED_INT]
    part: Input[VectorList[T]]
    data: InOut[VectorList[T]]

    def compute(self) -> None:
        n = len(self.data)
        offset = _resolved(self.offset, 1, n, self.rule)
        if offset < n:
            for r in range(len(self.part)):
                at = offset + r
                if at >= n:
                    at = at - n
                for c in range(len(self.part[r])):
                    self.data[at][c] = self.part[r][c]

    def cycles(self) -> int:
        return 30 + len(self.part) * (12 + -(-len(self.part[0]) // 2))


class MultiSlice(Vertex, Generic[T]):
    """For each index i its row, and those after it as far as a slice goes, to the next rows of ``out``; zeros where they are not all in ``data``."""

    indices: Input[Vector[UNSIGNED_INT]]
    rule: Input[UNSIGNED_INT]
    data: Input[VectorList[T]]
    out: Output[VectorList[T]]

    def compute(self) -> None:
        n = len(self.data)
        count = len(self.indices)
        size = len(self.out) // count
        for i in range(count):
            first = _resolved(self.indices[i], size, n, self.rule)
            for r in range(size):
                to = i * size + r
                for c in range(len(self.out[to])):
                    if first + size > n:
                        self.out[to][c] = 0  # type: ignore[assignment]  # a store converts
                    else:
                        self.out[to][c] = self.data[first + r][c]

    def cycles(self) -> int:
        return 30 + len(self.out) * (14 + -(-len(self.out[0]) // 2))


class MultiUpdate(Vertex, Generic[T]):
    """Rows of ``part`` are joined with the rows of ``data`` that ``indices`` name, one after the other; those not in ``data`` are skipped."""

    indices: Input[Vector[UNSIGNED_INT]]
    rule: Input[UNSIGNED_INT]
    scale: Input[FLOAT]
    part: Input[VectorList[T]]
    data: InOut[VectorList[T]]

    def compute(self) -> None:
        n = len(self.data)
        count = len(self.indices)
        size = len(self.part) // count
        for i in range(count):
            first = _resolved(self.indices[i], size, n, self.rule)
            if first + size <= n:
                for r in range(size):
                    for c in range(len(self.part[i * size + r])):
                        self.data[first + r][c] = self.join(self.data[first + r][c], self.part[i * size + r][c], self.scale)

    def cycles(self) -> int:
        return 30 + len(self.part) * (16 + 2 * -(-len(self.part[0]) // 2))

    @staticmethod
    def join(_old: Any, new: Any, _scale: Any) -> Any:
        return new


class MultiUpdateAdd(MultiUpdate[T]):
    """Adds the part times ``scale``."""

    @staticmethod
    def join(old: Any, new: Any, scale: Any) -> Any:
        return old + scale * new


class MultiUpdateMax(MultiUpdate[T]):
    """Keeps the greater."""

    @staticmethod
    def join(old: Any, new: Any, _scale: Any) -> Any:
        return max(old, new)


class MultiUpdateMul(MultiUpdate[T]):
    """Multiplies."""

    @staticmethod
    def join(old: Any, new: Any, _scale: Any) -> Any:
        return old * new


def _resolved(first: int, size: int, n: int, rule: int) -> int:
    """The row that ``size`` rows from ``first`` on begin at, of a table of ``n``; n if there is none."""
    if first + size <= n:
        return first
    if rule & PADDING and first == n:
        return n
    if rule & REMAP:
        return 0
    if rule & VALIDATE:
        raise IndexError("rows from", first, "of a table of rows:", n)
    return n


for _each in (DynamicSlice, DynamicUpdate, MultiSlice, MultiUpdate, MultiUpdateAdd, MultiUpdateMax, MultiUpdateMul):
    _each.__name__ = f"popops::{_each.__name__}"  # a name that no class of the user has
