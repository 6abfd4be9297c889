"""Reductions of matrices: rows to one element each, or columns.

Each class is generic in element types: T of the data, A in which it accumulates, and O of what it writes where that may
differ. Subclasses for each operation are in ``CODELETS``, by operation and shape.
"""

# mypy: disable-error-code="misc, valid-type"
# In a codelet a type variable is also what converts to the type it stands for.

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from popcore.codelet import Input, Matrix, MultiVertex, Output, Vector, Vertex
from popcore.codelets.functions import log_add

T = TypeVar("T")
A = TypeVar("A")
O = TypeVar("O")  # noqa: E741

_WIDTH = 8  # rows are added up in so many parts, which a processor can do at once


class Rows(Vertex, Generic[T, A, O]):
    """Row r of ``data`` becomes ``out[r]``.

    Long rows accumulate element i in part ``i % 8``; then the parts are joined pairwise. The order is fixed, so results repeat.
    """

    data: Input[Matrix[T]]
    out: Output[Vector[O]]

    def compute(self) -> None:
        rows, columns = self.data.shape
        for r in range(rows):
            if columns < _WIDTH:
                total = self.first(A(self.data[r, 0]))
                for c in range(1, columns):
                    total = self.join(total, self.first(A(self.data[r, c])))
                self.out[r] = total
            else:
                self.out[r] = self.long_row(r, columns)

    def long_row(self, r: int, columns: int) -> Any:
        row = self.data[r]
        a = self.first(A(row[0]))
        b = self.first(A(row[1]))
        c = self.first(A(row[2]))
        d = self.first(A(row[3]))
        e = self.first(A(row[4]))
        f = self.first(A(row[5]))
        g = self.first(A(row[6]))
        h = self.first(A(row[7]))
        for k in range(1, columns // _WIDTH):
            i = k * _WIDTH
            a = self.join(a, self.first(A(row[i])))
            b = self.join(b, self.first(A(row[i + 1])))
            c = self.join(c, self.first(A(row[i + 2])))
            d = self.join(d, self.first(A(row[i + 3])))
            e = self.join(e, self.first(A(row[i + 4])))
            f = self.join(f, self.first(A(row[i + 5])))
            g = self.join(g, self.first(A(row[i + 6])))
            h = self.join(h, self.first(A(row[i + 7])))
        for i in range(columns - columns % _WIDTH, columns):
            a = self.join(a, self.first(A(row[i])))
        return self.join(self.join(self.join(a, b), self.join(c, d)), self.join(self.join(e, f), self.join(g, h)))

    def cycles(self) -> int:
        rows, columns = self.data.shape
        return 26 + rows * (9 + 2 * -(-columns // 4))

    @staticmethod
    def first(x: Any) -> Any:
        return x

    @staticmethod
    def join(x: Any, y: Any) -> Any:
        return x


class Columns(Vertex, Generic[T, A]):
    """Column c of ``data`` becomes ``out[c]``; one worker does all of them."""

    data: Input[Matrix[T]]
    out: Output[Vector[A]]

    def compute(self) -> None:
        rows, columns = self.data.shape
        for c in range(columns):
            self.out[c] = self.first(A(self.data[0, c]))
        for r in range(1, rows):
            for c in range(columns):
                self.out[c] = self.join(self.out[c], self.first(A(self.data[r, c])))

    def cycles(self) -> int:
        rows, columns = self.data.shape
        return 26 + -(-columns // 4) * (6 + 2 * rows)

    @staticmethod
    def first(x: Any) -> Any:
        return x

    @staticmethod
    def join(x: Any, y: Any) -> Any:
        return x


class SharedColumns(MultiVertex, Generic[T, A]):
    """The same; each worker does a share of the columns, in whole fours so that no two write to one word."""

    data: Input[Matrix[T]]
    out: Output[Vector[A]]

    def compute(self, worker: int) -> None:
        rows, columns = self.data.shape
        share = (columns + 23) // 24 * 4
        begin = min(worker * share, columns)
        end = min(begin + share, columns)
        for c in range(begin, end):
            self.out[c] = self.first(A(self.data[0, c]))
        for r in range(1, rows):
            for c in range(begin, end):
                self.out[c] = self.join(self.out[c], self.first(A(self.data[r, c])))

    def cycles(self) -> int:
        rows, columns = self.data.shape
        return 26 + -(-columns // 24) * (6 + 2 * rows)

    @staticmethod
    def first(x: Any) -> Any:
        return x

    @staticmethod
    def join(x: Any, y: Any) -> Any:
        return x


class ConvertedColumns(MultiVertex, Generic[T, A, O]):
    """The same where ``out`` is of another type than the sums: each is kept until it is done, and converted once."""

    data: Input[Matrix[T]]
    out: Output[Vector[O]]

    def compute(self, worker: int) -> None:
        rows, columns = self.data.shape
        share = (columns + 23) // 24 * 4
        begin = min(worker * share, columns)
        for c in range(begin, min(begin + share, columns)):
            total = self.first(A(self.data[0, c]))
            for r in range(1, rows):
                total = self.join(total, self.first(A(self.data[r, c])))
            self.out[c] = total

    def cycles(self) -> int:
        rows, columns = self.data.shape
        return 26 + -(-columns // 24) * (6 + 2 * rows)

    @staticmethod
    def first(x: Any) -> Any:
        return x

    @staticmethod
    def join(x: Any, y: Any) -> Any:
        return x


class Add:
    """Sums."""

    @staticmethod
    def join(x: Any, y: Any) -> Any:
        return x + y


class SquareAdd(Add):
    """Sums of squares."""

    @staticmethod
    def first(x: Any) -> Any:
        return x * x


class Mul:
    """Products."""

    @staticmethod
    def join(x: Any, y: Any) -> Any:
        return x * y


class Min:
    """The least; NaN only if it comes first in a part."""

    @staticmethod
    def join(x: Any, y: Any) -> Any:
        return min(x, y)


class Max:
    """The greatest; NaN only if it comes first in a part."""

    @staticmethod
    def join(x: Any, y: Any) -> Any:
        return max(x, y)


class LogicalAnd:
    """Whether all are true."""

    @staticmethod
    def join(x: Any, y: Any) -> Any:
        return x & y


class LogicalOr:
    """Whether any is true."""

    @staticmethod
    def join(x: Any, y: Any) -> Any:
        return x | y


class LogAdd:
    """The logarithm of the sum of what they are logarithms of."""

    @staticmethod
    def join(x: Any, y: Any) -> Any:
        return log_add(x, y)


_OPERATIONS = (Add, SquareAdd, Mul, Min, Max, LogicalAnd, LogicalOr, LogAdd)
_SHAPES: Mapping[str, Any] = {"rows": Rows[T, A, O], "columns": Columns[T, A], "shared": SharedColumns[T, A], "converted": ConvertedColumns[T, A, O]}

CODELETS: Mapping[tuple[str, str], Any] = {
    (operation.__name__, shape): types.new_class(
        f"popops::Reduce{shape.capitalize()}{operation.__name__}", (operation, base), {}, lambda ns: ns.update(__module__=__name__)
    )
    for operation in _OPERATIONS
    for shape, base in _SHAPES.items()
}
"""By operation, as its class here is called, and shape: "rows", "columns", "shared" or "converted"."""
