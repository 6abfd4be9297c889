"""Columns: what the vertices of a group are connected to, as growing arrays of numbers."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np

from popcore.codelet import Field
from popcore.graph.numbers import Numbers
from popcore.graph.pieces import Edges, Pieces
from popcore.graph.regions import PLACE, SHIFT, Regions, expand
from popcore.types import Array

UNCONNECTED = -1  # what Column.var says of a field that nothing is connected to
EXTRA = -2  # ... and of one whose elements are not one run: see Column.extra
HELD = -3  # inside only: a literal, which finalise turns into a hidden constant
OPEN = -4  # inside only: a list field of which single vectors were connected


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
    ``rows`` of matrices and lists; for lists ``length`` is of one row and ``stride`` lies between rows. Where ``var`` is EXTRA
    the elements are not one run (of a list: not rows of one length and stride); ``edges`` and ``pieces`` have them in any case.
    State fields and literals have no elements before ``Graph.finalise``.
    """

    def __init__(self, field: Field) -> None:
        self.field = field
        self.rank = field.rank
        self.ids = Numbers("q")
        self.lengths = Numbers("q") if self.rank else None
        self.row_counts = Numbers("i") if self.rank == 2 else None
        self.strides = Numbers("q") if field.shape == "list" else None
        self.numbers = tuple(n for n in (self.ids, self.lengths, self.row_counts, self.strides) if n is not None)
        self.extra = Pieces()
        self.values = Log(field.dtype.numpy)  # initial values and literals
        self.sizes = Log(np.dtype(np.int64))  # what set_field_size said
        self.last_literal: tuple[Any, Any] = (None, None)  # as given, as elements
        self.settled: tuple[Array, Array] | None = None  # ids and lengths after finalise

    @property
    def var(self) -> Array:
        """int32[n]"""
        ids = self._ids()
        made = np.where(ids >= 0, ids >> SHIFT, np.where((ids == EXTRA) | (ids == OPEN), EXTRA, UNCONNECTED)).astype(np.int32)
        if self.row_counts is not None and (single := ids == OPEN).any():
            made[single & (self.extra.counts(ids.size)[0] != self.row_counts.array())] = UNCONNECTED  # a vector of the list is missing
        return made

    @property
    def start(self) -> Array:
        """int64[n]; 0 where ``var`` is negative."""
        ids = self._ids()
        return np.where(ids >= 0, ids & PLACE, 0)

    @property
    def length(self) -> Array:
        """int64[n]: elements; of a list field, those of one row."""
        return self._lengths().copy()

    @property
    def rows(self) -> Array:
        """int32[n]: rows of a matrix or a list of equal rows; else 0."""
        return self._of(self.row_counts, np.int32).copy()

    @property
    def stride(self) -> Array:
        """int64[n]: elements from one row's begin to the next, for list fields; else 0."""
        return self._of(self.strides, np.int64).copy()

    def pieces(self, i: int) -> list[Regions]:
        """What vertex ``i`` is connected to: the regions of each vector of a list field, or of the whole of another."""
        made = self.edges(np.array([i]))
        cuts = np.searchsorted(made.edge_of_run, np.arange(made.vertex.size + 1))
        return [Regions(made.runs.ids[a:b], made.runs.length[a:b]) for a, b in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True)]

    def edges(self, order: Array) -> Edges:
        """What the vertices ``order``, int64[n], are connected to, as arrays; nothing for those that are not connected."""
        order = np.asarray(order, np.int64)
        ids, length = self._ids()[order], self._lengths()[order]
        times = self._of(self.row_counts, np.int32)[order].astype(np.int64) if self.field.shape == "list" else np.ones(order.size, np.int64)
        times = np.where(ids >= 0, times, 0)
        vertex = np.repeat(np.arange(order.size), times)
        step = self._of(self.strides, np.int64)[order]
        first, count = ids[vertex] + expand(np.zeros_like(times), times) * step[vertex], length[vertex]
        some = count > 0
        plain = Edges(vertex, Regions(first[some], count[some]), np.flatnonzero(some))
        odd = np.flatnonzero((ids == EXTRA) | (ids == OPEN))
        return _merged(plain, self.extra.edges(order[odd]), odd) if odd.size else plain

    def put(self, i: int, first: int, length: int = 0, rows: int = 0, stride: int = 0) -> None:
        """Write the entry of vertex ``i``, or append it where ``i`` is the next."""
        values = (first, length, rows, stride)
        if i == len(self.ids):
            for n, value in zip(self.numbers, values, strict=False):
                n.append(value)
        else:
            for n, value in zip(self.numbers, values, strict=False):
                n[i] = value
        self.settled = None

    def row_count(self, i: int) -> int:
        """Rows of vertex ``i``'s list or matrix."""
        return self.row_counts[i] if self.row_counts is not None else 0

    def is_free(self, i: int) -> bool:
        return i == len(self.ids) or self.ids[i] == UNCONNECTED

    def truncate(self, n: int) -> None:
        """Take back vertices from ``n`` on, added one by one."""
        for numbers in self.numbers:
            numbers.truncate(n)
        self.extra.drop_from(n)
        self.values.drop_from(n)

    def _ids(self) -> Array:
        settled = self._settled()
        return settled[0] if settled is not None else self.ids.array()

    def _lengths(self) -> Array:
        settled = self._settled()
        if settled is not None:
            return settled[1]
        return self.lengths.array() if self.lengths is not None else np.broadcast_to(np.int64(1), (len(self.ids),))

    def _of(self, numbers: Numbers | None, kind: type[np.integer[Any]]) -> Array:
        """A column as it is kept; zeros where the field has none."""
        return numbers.array() if numbers is not None else np.broadcast_to(kind(0), (self._ids().size,))

    def _settled(self) -> tuple[Array, Array] | None:
        """What finalise left, unless vertices were added since."""
        if self.settled is None or (self.field.direction != "state" and self.settled[0].size != len(self.ids)):
            return None
        return self.settled


def _merged(plain: Edges, extra: Edges, odd: Array) -> Edges:
    """Both in order of their vertices; ``odd`` says which those of ``extra`` are."""
    vertex = np.concatenate((plain.vertex, odd[extra.vertex]))
    order = np.argsort(vertex, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    edge = place[np.concatenate((plain.edge_of_run, extra.edge_of_run + plain.vertex.size))]
    by_edge = np.argsort(edge, kind="stable")
    ids, length = (np.concatenate((a, b))[by_edge] for a, b in ((plain.runs.ids, extra.runs.ids), (plain.runs.length, extra.runs.length)))
    return Edges(vertex[order], Regions(ids, length), edge[by_edge])
