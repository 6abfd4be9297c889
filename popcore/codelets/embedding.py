"""Look-ups in a table that is spread over tiles by rows and columns: picking what concerns a tile, and bringing it there and back.

A list names at most so many look-ups as it is long, the rest of it being ``NONE``; what did not fit waits for the next round.
"""

# mypy: disable-error-code="assignment"
# A store converts to the element type of its field, whatever a type variable stands for.

from __future__ import annotations

from typing import Any, Generic, TypeVar

from popcore.codelet import InOut, Input, Matrix, MultiVertex, Output, Vector, Vertex
from popcore.codelets.slices import PADDING, REMAP, MultiUpdateAdd, MultiUpdateMax, MultiUpdateMul
from popcore.types import BOOL, FLOAT, UNSIGNED_INT

T = TypeVar("T", bound=float)

NONE = 0xFFFFFFFF
_WORKERS = MultiVertex.NUM_WORKERS


class RouteCheck(Vertex):
    """The run stops at an index that is not below ``limit``."""

    indices: Input[Vector[UNSIGNED_INT]]
    limit: Input[UNSIGNED_INT]
    entries: Input[UNSIGNED_INT]

    def compute(self) -> None:
        for i in range(len(self.indices)):
            if self.indices[i] >= self.limit:
                raise IndexError("look-up of row", self.indices[i], "of a table of rows:", self.entries)

    def cycles(self) -> int:
        return 14 + 4 * len(self.indices)


class RouteList(Vertex):
    """Lists the look-ups from ``cursor`` on whose row is among the ``count`` from ``first`` on: their rows there, and their numbers.

    ``cursor`` then names the next such look-up, which ``pending`` says is there. ``rule`` is that of the codelets of ``slices``.
    """

    indices: Input[Vector[UNSIGNED_INT]]
    first: Input[UNSIGNED_INT]
    count: Input[UNSIGNED_INT]
    entries: Input[UNSIGNED_INT]
    rule: Input[UNSIGNED_INT]
    cursor: InOut[UNSIGNED_INT]
    pending: Output[BOOL]
    rows: Output[Vector[UNSIGNED_INT]]
    slots: Output[Vector[UNSIGNED_INT]]

    def compute(self) -> None:
        indices = self.indices
        rows = self.rows
        slots = self.slots
        first = self.first
        count = self.count
        remap = self.rule & REMAP
        found = 0
        i = self.cursor
        while i < len(indices):
            index = indices[i]
            if remap:
                index = self.remapped(index)
            row = index - first
            if row >= 0 and row < count:
                if found == len(rows):
                    break
                rows[found] = row
                slots[found] = i
                found += 1
            i += 1
        self.cursor = i
        self.pending = i < len(indices)
        for k in range(found, len(rows)):
            rows[k] = NONE
            slots[k] = NONE

    def remapped(self, index: int) -> int:
        if index < self.entries or (self.rule & PADDING and index == self.entries):
            return index
        return 0

    def cycles(self) -> int:
        """After PopLibs' multiSlice: 8 for an offset out of range, 19 in range."""
        return 30 + 8 * len(self.indices) + 19 * len(self.rows)


class RouteRead(MultiVertex, Generic[T]):
    """Row ``rows[k]`` of ``table`` goes to ``out``: its first ``width`` elements as block k, the next ones as block ``len(rows) + k``, ..."""

    rows: Input[Vector[UNSIGNED_INT]]
    width: Input[UNSIGNED_INT]
    table: Input[Matrix[T]]
    out: Output[Vector[T]]

    def compute(self, worker: int) -> None:
        rows = self.rows
        width = self.width
        share = _share(len(rows))
        begin = worker * share
        for k in range(begin, min(begin + share, len(rows))):
            if rows[k] != NONE:
                row = self.table[rows[k]]
                for first in range(0, len(row), width):
                    to = first * len(rows) + k * width
                    for x in range(width):
                        self.out[to + x] = row[first + x]

    def cycles(self) -> float:
        return read_cycles(len(self.rows), 4 * self.table.shape[1])


class RoutePlace(Vertex, Generic[T]):
    """Block k of ``values`` becomes row ``slots[k]`` of ``slices``."""

    slots: Input[Vector[UNSIGNED_INT]]
    values: Input[Vector[T]]
    slices: InOut[Matrix[T]]

    def compute(self) -> None:
        _, width = self.slices.shape
        for k in range(len(self.slots)):
            if self.slots[k] != NONE:
                row = self.slices[self.slots[k]]
                for x in range(width):
                    row[x] = self.values[k * width + x]

    def cycles(self) -> float:
        return move_cycles(len(self.slots), self.slices.shape[0], 4 * self.slices.shape[1])


class RoutePick(Vertex, Generic[T]):
    """Row ``slots[k]`` of ``slices`` becomes block k of ``out``."""

    slots: Input[Vector[UNSIGNED_INT]]
    slices: Input[Matrix[T]]
    out: Output[Vector[T]]

    def compute(self) -> None:
        _, width = self.slices.shape
        for k in range(len(self.slots)):
            if self.slots[k] != NONE:
                row = self.slices[self.slots[k]]
                for x in range(width):
                    self.out[k * width + x] = row[x]

    def cycles(self) -> float:
        return move_cycles(len(self.slots), self.slices.shape[0], 4 * self.slices.shape[1])


class RouteUpdate(MultiVertex, Generic[T]):
    """Values, in blocks as ``RouteRead`` gives them, are joined with rows ``rows[k]`` of ``table``, k ascending. Each worker has rows of its own."""

    rows: Input[Vector[UNSIGNED_INT]]
    width: Input[UNSIGNED_INT]
    scale: Input[FLOAT]
    values: Input[Vector[T]]
    table: InOut[Matrix[T]]

    def compute(self, worker: int) -> None:
        rows = self.rows
        width = self.width
        scale = self.scale
        share = (len(self.table) + _WORKERS * 4 - 1) // (_WORKERS * 4) * 4  # rows: whole words
        begin = worker * share
        for k in range(len(rows)):
            if rows[k] >= begin and rows[k] < begin + share and rows[k] != NONE:
                row = self.table[rows[k]]
                for first in range(0, len(row), width):
                    at = first * len(rows) + k * width
                    for x in range(width):
                        row[first + x] = self.join(row[first + x], self.values[at + x], scale)

    def cycles(self) -> float:
        return update_cycles(len(self.rows), 4 * self.table.shape[1])

    @staticmethod
    def join(_old: Any, new: Any, _scale: Any) -> Any:
        return new


class RouteUpdateAdd(RouteUpdate[T]):
    """Adds the value times ``scale``."""

    join = staticmethod(MultiUpdateAdd.join)


class RouteUpdateMax(RouteUpdate[T]):
    """Keeps the greater."""

    join = staticmethod(MultiUpdateMax.join)


class RouteUpdateMul(RouteUpdate[T]):
    """Multiplies."""

    join = staticmethod(MultiUpdateMul.join)


def read_cycles(rows: int, row_bytes: int) -> int:
    """Worker cycles of ``RouteRead``, after PopLibs' multiSlice: 19 for an offset, 2 for a vector of 8 bytes."""
    return 30 + _share(rows) * (19 + 2 * -(-row_bytes // 8))


def move_cycles(slots: int, slices: int, row_bytes: int) -> int:
    """Worker cycles of ``RoutePlace`` and ``RoutePick``, after the same: 8 for an offset out of range, 19 in range."""
    return 30 + slots * 8 + min(slots, slices) * (11 + 2 * -(-row_bytes // 8))


def update_cycles(rows: int, row_bytes: int) -> int:
    """Worker cycles of ``RouteUpdate``, after PopLibs' multiUpdateAdd: 5 for an offset out of range, 11 in range, 3 for 4 bytes.

    Rows are taken to be spread over workers.
    """
    return 30 + 5 * rows + -(-rows // _WORKERS) * (11 + 3 * -(-row_bytes // 4))


def _share(n: int) -> int:
    """Elements of each worker: whole eights, so that no two of them write one word."""
    return (n + _WORKERS * 8 - 1) // (_WORKERS * 8) * 8


for _each in (RouteCheck, RouteList, RouteRead, RoutePlace, RoutePick, RouteUpdate, RouteUpdateAdd, RouteUpdateMax, RouteUpdateMul):
    _each.__name__ = f"popops::{_each.__name__}"  # a name that no class of the user has
