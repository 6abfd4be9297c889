"""Columns: what the vertices of a group are connected to, as growing arrays of numbers."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

import numpy as np

from popcore.codelet import Field
from popcore.graph.regions import PLACE, SHIFT, Regions
from popcore.graph.tensor import Tensor
from popcore.types import Array

UNCONNECTED = -1  # what Column.var says of a field that nothing is connected to
EXTRA = -2  # ... and of one whose elements are not one run: see Column.extra
HELD = -3  # inside only: a literal, which finalise turns into a hidden constant


class Numbers:
    """An int column that grows by ``append`` (one) and ``extend`` (an array)."""

    __slots__ = ("_chunks", "_done", "_tail", "append")

    append: Callable[[int], None]

    def __init__(self, code: str) -> None:
        self._tail = array(code)
        self.append = self._tail.append  # bound once: the hottest call of a graph's construction
        self._chunks: list[Array] = []
        self._done = 0

    def __len__(self) -> int:
        return self._done + len(self._tail)

    def extend(self, values: Array) -> None:
        self._flush()
        self._chunks.append(values)
        self._done += values.size

    def array(self) -> Array:
        """All of it. Later appends do not change what was returned; ``__setitem__`` does."""
        self._flush()
        if len(self._chunks) != 1:
            self._chunks = [np.concatenate(self._chunks) if self._chunks else np.empty(0, self._tail.typecode)]
        return self._chunks[0]

    def __getitem__(self, i: int) -> int:
        return int(self._tail[i - self._done]) if i >= self._done else int(self.array()[i])

    def __setitem__(self, i: int, value: int) -> None:
        if i >= self._done:
            self._tail[i - self._done] = value
        else:
            self.array()[i] = value

    def truncate(self, n: int) -> None:
        """Take back what was appended one by one after the first ``n``."""
        del self._tail[max(0, n - self._done) :]

    def _flush(self) -> None:
        if self._tail:
            self._chunks.append(np.array(self._tail, self._tail.typecode))
            self._done += len(self._tail)
            del self._tail[:]


class Log:
    """Values given to some vertices' fields: (vertex, how many, which); of two for one vertex the later counts."""

    __slots__ = ("_bytes", "_dtype", "at", "count")

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self._dtype = dtype
        self.at, self.count = array("q"), array("q")
        self._bytes = bytearray()

    def __len__(self) -> int:
        return len(self.at)

    def add(self, vertex: int, values: Array) -> None:
        self.at.append(vertex)
        self.count.append(values.size)
        self._bytes += values.tobytes()

    def extend(self, vertices: Array, values: Array) -> None:
        """One value for each of many vertices."""
        self.at.extend(vertices.tolist())
        self.count.extend([1] * vertices.size)
        self._bytes += values.tobytes()

    def drop_from(self, vertex: int) -> None:
        """Take back the values of vertices from ``vertex`` on, which were the last to come."""
        while self.at and self.at[-1] >= vertex:
            size = self.count.pop() * self._dtype.itemsize
            self.at.pop()
            if size:
                del self._bytes[-size:]

    def entries(self) -> tuple[Array, Array, Array, Array]:
        """vertex, count and first value of each entry, one entry a vertex in their order; and all values."""
        at, count = np.array(self.at, np.int64), np.array(self.count, np.int64)
        first = np.cumsum(count) - count
        vertices, back = np.unique(at[::-1], return_index=True)
        last = at.size - 1 - back
        return vertices, count[last], first[last], np.frombuffer(bytes(self._bytes), self._dtype)


class Column:
    """One field of every vertex of a group.

    Public, as arrays over the vertices: ``var`` (UNCONNECTED or EXTRA where negative), ``start``, ``length``;
    ``rows`` of matrices and lists; for lists ``length`` is of one row and ``stride`` lies between rows. ``extra`` has
    what is connected where that is not one run: a Tensor, or a list of them for a list field.
    State fields and literals have no elements before ``Graph.finalise``.
    """

    def __init__(self, field: Field) -> None:
        self.field = field
        self.rank = field.rank
        self.ids = Numbers("q")
        self.lengths = Numbers("q") if self.rank else None
        self.row_counts = Numbers("i") if self.rank == 2 else None
        self.strides = Numbers("q") if field.shape == "list" else None
        self.extra: dict[int, Any] = {}
        self.values = Log(field.dtype.numpy)  # initial values and literals
        self.sizes = Log(np.dtype(np.int64))  # what set_field_size said
        self.settled: tuple[Array, Array] | None = None  # ids and lengths after finalise

    @property
    def numbers(self) -> list[Numbers]:
        return [n for n in (self.ids, self.lengths, self.row_counts, self.strides) if n is not None]

    @property
    def var(self) -> Array:
        """int32[n]"""
        ids = self._ids()
        return np.where(ids >= 0, ids >> SHIFT, np.where(ids == EXTRA, EXTRA, UNCONNECTED)).astype(np.int32)

    @property
    def start(self) -> Array:
        """int64[n]; 0 where ``var`` is negative."""
        ids = self._ids()
        return np.where(ids >= 0, ids & PLACE, 0)

    @property
    def length(self) -> Array:
        """int64[n]: elements; of a list field, those of one row."""
        if (settled := self._settled()) is not None:
            return settled[1]
        return self.lengths.array() if self.lengths is not None else np.broadcast_to(np.int64(1), (len(self.ids),))

    @property
    def rows(self) -> Array:
        """int32[n]: rows of a matrix or a list of equal rows; else 0."""
        return self.row_counts.array() if self.row_counts is not None else np.broadcast_to(np.int32(0), (len(self.ids),))

    @property
    def stride(self) -> Array:
        """int64[n]: elements from one row's begin to the next, for list fields; else 0."""
        return self.strides.array() if self.strides is not None else np.broadcast_to(np.int64(0), (len(self.ids),))

    def pieces(self, i: int) -> list[Regions]:
        """What vertex ``i`` is connected to: the regions of each row of a list field, or of the whole of another."""
        ids = self._ids()
        if (what := self.extra.get(i)) is not None and ids[i] == EXTRA:
            if isinstance(what, Tensor) and self.field.shape != "list":
                return [what.regions()]
            return [t.regions() for t in what]
        if ids[i] < 0:
            return []
        n = int(self.length[i])
        rows = int(self.rows[i]) if self.field.shape == "list" else 1
        step = int(self.stride[i])
        return [Regions(ids[i : i + 1] + r * step, np.array([n], np.int64)) if n else Regions(ids[:0], ids[:0]) for r in range(rows)]

    def put(self, i: int, first: int, length: int = 0, rows: int = 0, stride: int = 0) -> None:
        """Write the entry of vertex ``i``, or append it where ``i`` is the next."""
        numbers = self.numbers
        for n, value in zip(numbers, (first, length, rows, stride), strict=False):
            if i == len(n):
                n.append(value)
            else:
                n[i] = value
        self.settled = None

    def is_free(self, i: int) -> bool:
        return i == len(self.ids) or self.ids[i] == UNCONNECTED

    def truncate(self, n: int) -> None:
        """Take back vertices from ``n`` on, added one by one."""
        for numbers in self.numbers:
            numbers.truncate(n)
        self.extra.pop(n, None)
        self.values.drop_from(n)

    def _ids(self) -> Array:
        settled = self._settled()
        return settled[0] if settled is not None else self.ids.array()

    def _settled(self) -> tuple[Array, Array] | None:
        """What finalise left, unless vertices were added since."""
        if self.settled is None or (self.field.direction != "state" and self.settled[0].size != len(self.ids)):
            return None
        return self.settled
