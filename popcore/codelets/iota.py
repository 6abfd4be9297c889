"""Ascending numbers."""

from __future__ import annotations

from typing import Generic, TypeVar

from popcore.codelet import Input, Output, Vector, Vertex

T = TypeVar("T")


class Iota(Vertex, Generic[T]):
    """``out[i]`` becomes ``start + i``."""

    start: Input[T]
    out: Output[Vector[T]]

    def compute(self) -> None:
        start = self.start
        for i in range(len(self.out)):
            self.out[i] = start + i  # type: ignore[assignment, operator]  # a store converts

    def cycles(self) -> int:
        return 14 + 3 * len(self.out)


Iota.__name__ = "popops::Iota"  # a name that no class of the user has
