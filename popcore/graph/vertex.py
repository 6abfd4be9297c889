"""Compute sets and their vertices, kept as columns; VertexRef and FieldRef are light handles into them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from popcore.codelet import Codelet
from popcore.debug import Site
from popcore.errors import GraphConnectionError, UnknownNameError
from popcore.graph import connect
from popcore.graph.columns import UNCONNECTED, Column
from popcore.graph.numbers import Numbers
from popcore.graph.tensor import Tensor
from popcore.graph.variable import Variables
from popcore.types import Array

UNMAPPED = -1


class ComputeSet:
    """Vertices that one BSP step runs. Made by ``Graph.add_compute_set``."""

    __slots__ = ("graph", "groups", "id", "name", "plans", "site")

    def __init__(self, graph: Any, identity: int, name: str, site: Site) -> None:
        self.graph = graph
        self.id = identity
        self.name = name
        self.site = site
        self.groups: dict[Codelet, VertexGroup] = {}  # in order of their first vertex
        self.plans: dict[Any, VertexGroup] = {}  # by whatever add_vertex was called with

    @property
    def num_vertices(self) -> int:
        return sum(g.count for g in self.groups.values())

    def __repr__(self) -> str:
        return f"<compute set {self.name!r}, {self.num_vertices} vertices of {len(self.groups)} codelets>"


class VertexGroup:
    """The vertices of one codelet in one compute set.

    Public: ``codelet``, ``count``, ``columns`` (a Column for each field), and over the vertices ``tile`` int32
    (-1: unmapped), ``cycles`` and ``flops`` int64 (-1: no estimate).
    """

    __slots__ = ("_estimates", "_plan", "_tiles", "codelet", "columns", "compute_set", "count", "home", "site")

    def __init__(self, compute_set: ComputeSet, codelet: Codelet, home: Variables, site: Site) -> None:
        self.compute_set = compute_set
        self.codelet = codelet
        self.home = home
        self.site = site  # where its first vertex was added
        self.count = 0
        self.columns = {f.name: Column(f) for f in codelet.fields}
        self._tiles = Numbers("i")
        self._estimates = Numbers("q"), Numbers("q"), Numbers("q")  # vertex, cycles, flops
        self._plan = tuple(
            (f.name, f.dtype, c.rank, f.writes, c.ids.append, c.lengths.append if c.lengths is not None else c.ids.append, c)
            for f, c in zip(codelet.fields, self.columns.values(), strict=True)
            if f.direction != "state"
        )

    @property
    def tile(self) -> Array:
        return self._tiles.array().copy()

    @property
    def cycles(self) -> Array:
        return self._estimate(1)

    @property
    def flops(self) -> Array:
        return self._estimate(2)

    def add(self, connections: Mapping[str, Any] | None, tile: int) -> VertexRef:
        """Append one vertex. Needs: ``tile`` is one of the target's, or -1. Costs: under 3 us for three fields that are slices.

        Raises: what ``connect.connect`` raises; the group is then as it was.
        """
        if connections is None:
            connections = {}
        index, home, used = self.count, self.home, 0
        try:
            for name, dtype, rank, writes, add_id, add_length, column in self._plan:
                t = connections.get(name)
                if t.__class__ is Tensor and t.dtype is dtype:
                    variable = t.variable
                    # the common cases; everything else, mistakes too, goes the long way
                    if variable is not None and variable.home is home and not (writes and variable.constant):
                        shape = t.shape
                        if rank == 1 == len(shape) and t.strides[0] == 1:
                            add_id(variable.base + t.offset)
                            add_length(shape[0])
                            used += 1
                            continue
                        if rank == 0 and not shape:
                            add_id(variable.base + t.offset)
                            used += 1
                            continue
                if t is None:
                    column.put(index, UNCONNECTED)
                    used += name in connections
                else:
                    connect.connect(column, index, t, home, self.label)
                    used += 1
            if used != len(connections):
                self._rest(connections, index)
        except BaseException:
            for column in self.columns.values():
                column.truncate(index)
            raise
        self._tiles.append(tile)
        self.count = index + 1
        made = _new(VertexRef)
        made.group, made.index = self, index
        return made

    def label(self, index: int, field: str = "") -> str:
        """A vertex, or a field of it, for messages."""
        of = f"{self.codelet.name}.{field} of vertex" if field else f"{self.codelet.name} vertex"
        return f"{of} {index} in compute set {self.compute_set.name!r}"

    def column(self, name: str) -> Column:
        """Raises: UnknownNameError, with the fields there are."""
        found = self.columns.get(name)
        if found is None:
            raise connect.unknown_field(self.codelet, name)
        return found

    def set_tile(self, index: int, tile: int) -> None:
        self._tiles[index] = tile

    def set_estimate(self, index: int, cycles: int, flops: int = 0) -> None:
        for log, value in zip(self._estimates, (index, cycles, flops), strict=True):
            log.append(value)

    def set_estimates(self, first: int, cycles: Array) -> None:
        for log, values in zip(self._estimates, (np.arange(first, first + cycles.size), cycles, np.zeros(cycles.size, np.int64)), strict=True):
            log.extend(values)

    def extend_tiles(self, tiles: Array) -> None:
        self._tiles.extend(tiles)
        self.count += tiles.size

    def _rest(self, connections: Mapping[str, Any], index: int) -> None:
        """State fields given a value, and names that are no fields."""
        for name, value in connections.items():
            column = self.column(name)
            if column.field.direction == "state" and value is not None:
                if isinstance(value, Tensor):
                    raise GraphConnectionError(
                        f"{self.label(index, name)} is state and has no edge to connect {value!r} to", f"declare {name} as Input, Output or InOut"
                    )
                connect.set_value(column, index, value, self.label)

    def _estimate(self, which: int) -> Array:
        made = np.full(self.count, -1, np.int64)
        made[self._estimates[0].array()] = self._estimates[which].array()
        return made

    def __repr__(self) -> str:
        return f"<{self.count} vertices of {self.codelet.name} in {self.compute_set.name!r}>"


class VertexRef:
    """One vertex: ``v["field"]`` is a field of it."""

    __slots__ = ("group", "index")

    group: VertexGroup
    index: int

    @property
    def codelet(self) -> Codelet:
        return self.group.codelet

    @property
    def tile(self) -> int:
        """-1 where the vertex is not mapped."""
        return self.group._tiles[self.index]

    def __getitem__(self, field: str) -> FieldRef:
        self.group.column(field)
        return FieldRef(self, field)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VertexRef) and (self.group, self.index) == (other.group, other.index)

    def __hash__(self) -> int:
        return hash((id(self.group), self.index))

    def __repr__(self) -> str:
        return f"<{self.group.label(self.index)}>"


class FieldRef:
    """One field of one vertex; of a list field, ``v["f"][i]`` is one of its vectors."""

    __slots__ = ("field", "row", "vertex")

    def __init__(self, vertex: VertexRef, field: str, row: int | None = None) -> None:
        self.vertex = vertex
        self.field = field
        self.row = row

    @property
    def column(self) -> Column:
        return self.vertex.group.columns[self.field]

    def __getitem__(self, row: int) -> FieldRef:
        if self.row is not None or self.column.field.shape != "list":
            raise UnknownNameError(f"{self!r} has no elements to connect", "index list fields only, and once")
        return FieldRef(self.vertex, self.field, row)

    def __repr__(self) -> str:
        row = "" if self.row is None else f"[{self.row}]"
        return f"<{self.vertex.group.label(self.vertex.index, self.field + row)}>"


class VertexRange:
    """The vertices that one ``add_vertices`` call made: ``len``, ``vertices[i]``, iteration."""

    __slots__ = ("count", "first", "group")

    def __init__(self, group: VertexGroup, first: int, count: int) -> None:
        self.group, self.first, self.count = group, first, count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, i: int) -> VertexRef:
        if not -self.count <= i < self.count:
            raise IndexError(f"vertex {i} of {self.count}")
        return vertex_ref(self.group, self.first + i % self.count)

    def __iter__(self) -> Iterator[VertexRef]:
        return (self[i] for i in range(self.count))

    def __repr__(self) -> str:
        return f"<vertices {self.first} to {self.first + self.count - 1} of {self.group!r}>"


_new = object.__new__


def vertex_ref(group: VertexGroup, index: int) -> VertexRef:
    made = _new(VertexRef)
    made.group, made.index = group, index
    return made
