"""Where the extreme of a row is."""

# mypy: disable-error-code="assignment"
# A store converts to the element type of its field.

from __future__ import annotations

from typing import Generic, TypeVar

from popcore.codelet import Input, Output, Vector, Vertex
from popcore.types import UNSIGNED_INT

T = TypeVar("T", bound=float)


class ArgMaxRow(Vertex, Generic[T]):
    """The first of the greatest elements, and that element. Needs: at least one. A NaN counts only if it comes first."""

    x: Input[Vector[T]]
    index: Output[UNSIGNED_INT]
    value: Output[T]

    def compute(self) -> None:
        best = 0
        for i in range(1, len(self.x)):
            if self.x[i] > self.x[best]:
                best = i
        self.index = best
        self.value = self.x[best]

    def cycles(self) -> int:
        return 20 + 5 * len(self.x)


class ArgMinRow(Vertex, Generic[T]):
    """The same for the least."""

    x: Input[Vector[T]]
    index: Output[UNSIGNED_INT]
    value: Output[T]

    def compute(self) -> None:
        best = 0
        for i in range(1, len(self.x)):
            if self.x[i] < self.x[best]:
                best = i
        self.index = best
        self.value = self.x[best]

    def cycles(self) -> int:
        return 20 + 5 * len(self.x)
