"""Compute sets for a ReferenceEngine: every vertex with its fields, run one after the other on copies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from popcore.codelet import Codelet, Field
from popcore.dialect import Lowered, interpret, lower, make_view
from popcore.errors import GraphConnectionError
from popcore.graph.columns import EXTRA, UNCONNECTED, Column
from popcore.graph.regions import SHIFT, Regions, one_run
from popcore.graph.vertex import ComputeSet, VertexGroup
from popcore.program.printing import Place, print_line, site_exception, vertex_fault
from popcore.reference.memory import Memory
from popcore.reference.races import check_races
from popcore.types import Array


@dataclass(frozen=True)
class BoundField:
    """What one field of one vertex is connected to: the elements of each piece. Only list fields have more than one."""

    field: Field
    pieces: tuple[Regions, ...]
    rows: int  # of a matrix

    def read(self, memory: Memory) -> list[Array]:
        """Copies of the pieces, ``[replicas, elements]`` each."""
        return [memory.read(piece, self.field.dtype) for piece in self.pieces]

    def of_replica(self, values: list[Array], replica: int) -> Any:
        """The array, or list of arrays, that a view of the field looks at; it shares memory with ``values``."""
        if self.field.shape == "list":
            return [v[replica] for v in values]
        array = values[0][replica]
        if self.field.shape == "matrix":
            return array.reshape((self.rows, array.size // self.rows if self.rows else 0))
        return array.reshape(()) if self.field.shape == "scalar" else array


@dataclass(frozen=True)
class BoundVertex:
    """One vertex."""

    codelet: Codelet
    index: int  # among those of its codelet in the compute set
    tile: int
    lowered: Lowered
    compute: Callable[..., None]
    fields: dict[str, BoundField]

    @property
    def label(self) -> str:
        return f"vertex {self.index} of codelet {self.codelet.name} on tile {self.tile}"


class BoundComputeSet:
    """The vertices of a compute set as they are now, in the order they run: by tile, then by codelet, then as added.

    Raises:
        GraphConnectionError: a field is not connected.
        RaceError: two vertices meet in an element, and one of them writes it.
    """

    def __init__(self, compute_set: ComputeSet, tiles_per_ipu: int, codelets: dict[Codelet, Lowered]) -> None:
        self.name, self._tiles_per_ipu = compute_set.name, tiles_per_ipu
        vertices: list[BoundVertex] = []
        for codelet, group in compute_set.groups.items():
            if codelet not in codelets:
                codelets[codelet] = lower(codelet, checks=True)
            vertices += _bind(codelets[codelet], group)
        self._vertices = sorted(vertices, key=lambda v: v.tile)
        check_races(compute_set, [(v.label, [(f.field, f.pieces) for f in v.fields.values()]) for v in self._vertices])

    def execute(self, memory: Memory, prints: list[str]) -> None:
        """Run every vertex on the memory as it is, then write what they wrote; what codelets print is appended as lines.

        Raises: VertexError: one raised; the memory is then as it was.
        """
        written: list[tuple[BoundField, list[Array]]] = []
        for vertex in self._vertices:
            values = {name: bound.read(memory) for name, bound in vertex.fields.items()}
            for replica in range(memory.replicas):
                self._run(vertex, values, replica, prints)
            written += [(bound, values[name]) for name, bound in vertex.fields.items() if bound.field.writes]
        for bound, pieces in written:
            for piece, array in zip(bound.pieces, pieces, strict=True):
                memory.write(piece, bound.field.dtype, array)

    def _run(self, vertex: BoundVertex, values: Mapping[str, list[Array]], replica: int, prints: list[str]) -> None:
        arrays = {name: bound.of_replica(values[name], replica) for name, bound in vertex.fields.items()}
        views = {name: make_view(bound.field, arrays[name]) for name, bound in vertex.fields.items()}
        if vertex.codelet.workers == 1:
            vertex.compute(views, _Context(self, vertex, 0, prints), None)
            return
        for worker in reversed(range(vertex.codelet.workers)):
            vertex.compute(views, _Context(self, vertex, worker, prints), worker)

    def place(self, tile: int) -> tuple[int, int]:
        """IPU, and tile within it."""
        return divmod(tile, self._tiles_per_ipu)


class _Context:
    """What a codelet is told to tell: its faults and prints."""

    def __init__(self, owner: BoundComputeSet, vertex: BoundVertex, worker: int, prints: list[str]) -> None:
        self._owner, self._vertex, self._worker, self._prints = owner, vertex, worker, prints

    def fail(self, site: int, values: Sequence[Any]) -> Any:
        vertex, found = self._vertex, self._vertex.lowered.sites[site]
        place = Place(vertex.codelet.name, vertex.index, vertex.tile, self._owner.name, self._worker if vertex.codelet.workers > 1 else None)
        raise vertex_fault(place, site_exception(found, values), found.file, found.line, values)

    def print(self, site: int, values: Sequence[Any]) -> None:
        text = self._vertex.lowered.sites[site].message(values)
        self._prints.append(print_line(*self._owner.place(self._vertex.tile), self._worker, text))


def _bind(lowered: Lowered, group: VertexGroup) -> list[BoundVertex]:
    compute, tiles = interpret(lowered), group.tile
    fields = {name: _bind_field(group, name, column) for name, column in group.columns.items()}
    return [
        BoundVertex(group.codelet, index, int(tiles[index]), lowered, compute, {name: bound[index] for name, bound in fields.items()})
        for index in range(group.count)
    ]


def _bind_field(group: VertexGroup, name: str, column: Column) -> list[BoundField]:
    """One field of every vertex of a group."""
    field, made = column.field, []
    variables, starts, lengths = column.var.tolist(), column.start.tolist(), column.length.tolist()
    rows = column.rows.tolist() if field.shape == "matrix" else [0] * group.count
    for index, variable in enumerate(variables):
        if variable == UNCONNECTED:
            raise GraphConnectionError(f"{group.label(index, name)} is connected to nothing", f"graph.connect(v[{name!r}], tensor) before the engine is made")
        pieces = column.pieces(index) if field.shape == "list" or variable == EXTRA else [one_run((variable << SHIFT) + starts[index], lengths[index])]
        made.append(BoundField(field, tuple(pieces), rows[index]))
    return made
