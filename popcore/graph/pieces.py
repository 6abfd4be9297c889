"""What vertices are connected to where that is not one run of neighbours: strided runs, in columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from popcore.graph.numbers import Numbers
from popcore.graph.regions import Regions, expand
from popcore.graph.tensor import Tensor
from popcore.types import Array


@dataclass(frozen=True)
class Edges:
    """Edges of vertices as runs of neighbours, coalesced within each edge. A vector is one edge, a list field one for each vector.

    vertex       int64[e]  ascending; which vertex, as a position in the order asked for
    runs         the runs of edge 0, then those of edge 1, ...; an edge without elements may have none
    edge_of_run  int64[r]  ascending
    """

    vertex: Array
    runs: Regions
    edge_of_run: Array


class Pieces:
    """Grows by ``add``: one edge of a vertex, number ``row`` of it."""

    def __init__(self) -> None:
        self._vertex, self._row, self._runs = Numbers("q"), Numbers("q"), Numbers("q")  # an edge: its vertex, place and number of runs
        self._first, self._count, self._stride = Numbers("q"), Numbers("q"), Numbers("q")  # a run: first id, elements, ids between elements
        self._order: tuple[Array, Array, Array] | None = None

    def __len__(self) -> int:
        return len(self._vertex)

    def add(self, vertex: int, row: int, tensor: Tensor) -> None:
        """Costs: one entry for a vector of any stride, one a row for a matrix."""
        runs = 0
        variable, shape = tensor.variable, tensor.shape
        if not tensor.num_elements:
            pass
        elif variable is not None and len(shape) <= 2:
            n, step = (shape[-1], tensor.strides[-1]) if shape else (1, 1)
            for r in range(shape[0] if len(shape) == 2 else 1):
                self._add_run(variable.base + tensor.offset + (r * tensor.strides[0] if len(shape) == 2 else 0), n, step)
                runs += 1
        else:
            regions = tensor.regions()
            for first, n in zip(regions.ids.tolist(), regions.length.tolist(), strict=True):
                self._add_run(first, n, 1)
            runs = len(regions)
        self._vertex.append(vertex)
        self._row.append(row)
        self._runs.append(runs)
        self._order = None

    def add_many(self, vertices: Array, runs: Array, first: Array, count: Array) -> None:
        """One edge, number 0, of each vertex: of so many runs of neighbours each, whose first ids and lengths follow in order."""
        self._vertex.extend(vertices)
        self._row.extend(np.zeros_like(vertices))
        self._runs.extend(runs)
        self._first.extend(first)
        self._count.extend(count)
        self._stride.extend(np.ones_like(first))
        self._order = None

    def extend(self, other: Pieces, shift: int) -> None:
        """All of ``other``, whose vertices are ``shift`` further on here."""
        self._vertex.extend(other._vertex.array() + shift)
        for mine, theirs in (
            (self._row, other._row),
            (self._runs, other._runs),
            (self._first, other._first),
            (self._count, other._count),
            (self._stride, other._stride),
        ):
            mine.extend(theirs.array())
        self._order = None

    def was_added(self, vertex: int, row: int) -> bool:
        """Whether the edges that came last, as far as they are of ``vertex``, have this one."""
        k = len(self._vertex) - 1
        while k >= 0 and self._vertex[k] == vertex:
            if self._row[k] == row:
                return True
            k -= 1
        return False

    def drop_from(self, vertex: int) -> None:
        """Take back the edges of vertices from ``vertex`` on, which were the last to come."""
        n = len(self._vertex)
        while n and self._vertex[n - 1] >= vertex:
            n -= 1
            runs = len(self._first) - self._runs[n]
            for numbers in (self._first, self._count, self._stride):
                numbers.truncate(runs)
            for numbers in (self._vertex, self._row, self._runs):
                numbers.truncate(n)
            self._order = None

    def counts(self, vertices: int) -> tuple[Array, Array | None]:
        """How many different edges each vertex has, int64[vertices]; and the first edge (vertex, row) that was added twice."""
        _, vertex, row = self._sorted()
        twice = (vertex[1:] == vertex[:-1]) & (row[1:] == row[:-1])
        again = np.flatnonzero(twice)
        count = np.bincount(vertex, minlength=vertices) - np.bincount(vertex[1:][twice], minlength=vertices)
        return count, np.array([vertex[again[0]], row[again[0]]]) if again.size else None

    def edges(self, order: Array) -> Edges:
        """The edges of the vertices ``order``, int64[n]. Costs: linear in ``order`` and the runs of the result."""
        by_vertex, vertex, _ = self._sorted()
        low, high = np.searchsorted(vertex, order, "left"), np.searchsorted(vertex, order, "right")
        edge = by_vertex[expand(low, high - low)]
        position = np.repeat(np.arange(order.size), high - low)
        runs_of = self._runs.array()
        begin = np.cumsum(runs_of) - runs_of
        run = expand(begin[edge], runs_of[edge])
        owner = np.repeat(np.arange(edge.size), runs_of[edge])
        first, count, stride = (c.array()[run] for c in (self._first, self._count, self._stride))
        split = (stride != 1) & (count > 1)
        if split.any():
            times = np.where(split, count, 1)
            which = np.repeat(np.arange(run.size), times)
            first = first[which] + expand(np.zeros_like(times), times) * np.where(split, stride, 0)[which]
            count, owner = np.where(split, 1, count)[which], owner[which]
        return Edges(position, *_coalesced(first, count, owner))

    def _add_run(self, first: int, count: int, stride: int) -> None:
        self._first.append(first)
        self._count.append(count)
        self._stride.append(stride)

    def _sorted(self) -> tuple[Array, Array, Array]:
        """Edges by vertex and row: their numbers, vertices and rows."""
        if self._order is None or self._order[0].size != len(self._vertex):
            vertex, row = self._vertex.array(), self._row.array()
            order = np.lexsort((row, vertex))
            self._order = order, vertex[order], row[order]
        return self._order


def _coalesced(first: Array, count: Array, owner: Array) -> tuple[Regions, Array]:
    if first.size > 1:
        heads = np.concatenate(([0], np.flatnonzero((first[1:] != first[:-1] + count[:-1]) | (owner[1:] != owner[:-1])) + 1))
        if heads.size < first.size:
            first, count, owner = first[heads], np.add.reduceat(count, heads), owner[heads]
    return Regions(first, count), owner
