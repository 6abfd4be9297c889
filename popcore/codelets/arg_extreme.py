"""Where the extreme of a row is, of a part of a row, and of the parts of a row."""

# mypy: disable-error-code="assignment"
# A store converts to the element type of its field.

from __future__ import annotations

from typing import Any, Generic, TypeVar

from popcore.codelet import Input, Output, Vector, Vertex
from popcore.types import BOOL, UNSIGNED_INT

T = TypeVar("T", bound=float)


class ArgMaxRow(Vertex, Generic[T]):
    """The first of the greatest elements, and that element. Needs: at least one.

    A NaN counts only if it comes first, and that only in a part that is the ``leading`` one of its row.
    """

    x: Input[Vector[T]]
    leading: Input[BOOL]
    index: Output[UNSIGNED_INT]
    value: Output[T]

    def compute(self) -> None:
        best = 0
        for i in range(1, len(self.x)):
            if self.better(self.x[i], self.x[best]) or (self.x[best] != self.x[best] and not self.leading):
                best = i
        self.index = best
        self.value = self.x[best]

    def cycles(self) -> int:
        return 20 + 5 * len(self.x)

    @staticmethod
    def better(x: Any, y: Any) -> Any:
        return x > y


class ArgMinRow(ArgMaxRow[T]):
    """The same for the least."""

    @staticmethod
    def better(x: Any, y: Any) -> Any:
        return x < y


class ArgMaxParts(Vertex, Generic[T]):
    """The same for a row of parts of ``length`` elements: from the value and index of each part, the index in the row."""

    values: Input[Vector[T]]
    indices: Input[Vector[UNSIGNED_INT]]
    length: Input[UNSIGNED_INT]
    index: Output[UNSIGNED_INT]
    value: Output[T]

    def compute(self) -> None:
        best = 0
        for i in range(1, len(self.values)):
            if self.better(self.values[i], self.values[best]):
                best = i
        self.index = best * self.length + self.indices[best]
        self.value = self.values[best]

    def cycles(self) -> int:
        return 24 + 5 * len(self.values)

    @staticmethod
    def better(x: Any, y: Any) -> Any:
        return x > y


class ArgMinParts(ArgMaxParts[T]):
    """The same for the least."""

    @staticmethod
    def better(x: Any, y: Any) -> Any:
        return x < y
