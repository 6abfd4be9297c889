"""Compute sets for a ReferenceEngine: every vertex with its fields, run one after the other on copies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from popcore import native
from popcore.codelet import Codelet, Field, NativeCodelet
from popcore.dialect import interpret, lower, make_view, rounding
from popcore.errors import GraphConnectionError
from popcore.graph.columns import EXTRA, UNCONNECTED, Column
from popcore.graph.regions import SHIFT, Regions, one_run
from popcore.graph.vertex import ComputeSet, VertexGroup
from popcore.kernels.behaviour import TRAP_KINDS
from popcore.kernels.randomness import key_of_call
from popcore.program.printing import Place, floating_point_fault, native_fault, print_line, site_exception, vertex_fault
from popcore.reference.machine import Machine
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
    runner: Runner
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

    def __init__(self, compute_set: ComputeSet, tiles_per_ipu: int, ipus: int, codelets: Mapping[Codelet, Runner]) -> None:
        self.name, self._tiles_per_ipu, self._ipus = compute_set.name, tiles_per_ipu, ipus
        self._replica = 0  # that runs
        self.machine: Machine  # that it runs on
        self._replicas = compute_set.graph.replication_factor
        vertices: list[BoundVertex] = []
        for codelet, group in compute_set.groups.items():
            vertices += _bind(codelets[codelet], group)
        self._vertices = sorted(vertices, key=lambda v: v.tile)
        check_races(compute_set, [(v.label, [(f.field, f.pieces) for f in v.fields.values()]) for v in self._vertices])

    def execute(self, memory: Memory, machine: Machine, prints: list[str]) -> None:
        """Run every vertex on the memory as it is, then write what they wrote; what codelets print is appended as lines.

        Raises: VertexError: one raised; the memory is then as it was.
        """
        self.machine = machine
        machine.phase += bool(self._vertices)
        read = [{name: bound.read(memory) for name, bound in vertex.fields.items()} for vertex in self._vertices]
        for self._replica in range(memory.replicas):
            for vertex, values in zip(self._vertices, read, strict=True):
                arrays = {name: bound.of_replica(values[name], self._replica) for name, bound in vertex.fields.items()}
                with machine.computing():
                    vertex.runner.run(self, vertex, arrays, prints)
        for vertex, values in zip(self._vertices, read, strict=True):
            for name, bound in vertex.fields.items():
                for piece, array in zip(bound.pieces, values[name] if bound.field.writes else (), strict=bound.field.writes):
                    memory.write(piece, bound.field.dtype, array)

    @property
    def replica(self) -> int | None:
        """The replica that runs, where there are several."""
        return self._replica if self._replicas > 1 else None

    def vertex_place(self, vertex: BoundVertex, worker: int) -> Place:
        """A vertex as messages name it."""
        return Place(vertex.codelet.name, vertex.index, vertex.tile, self.name, worker if vertex.codelet.workers > 1 else None, self.replica)

    def place(self, tile: int) -> tuple[int, int]:
        """IPU, counted over all replicas, and tile within it."""
        ipu, within = divmod(tile, self._tiles_per_ipu)
        return self._replica * self._ipus + ipu, within


class Runner(Protocol):
    """Runs single vertices of one codelet on arrays, which it changes in place."""

    def run(self, owner: BoundComputeSet, vertex: BoundVertex, arrays: Mapping[str, Any], prints: list[str]) -> None: ...

    def restart(self) -> None:
        """Variables outside of vertices have their first values again."""


class _Interpreted:
    """A codelet in Python, as Python, with its indices checked."""

    def __init__(self, codelet: Codelet) -> None:
        self.lowered = lower(codelet, checks=True)
        self._compute = interpret(self.lowered)

    def restart(self) -> None:
        """In Python there are none such."""

    def run(self, owner: BoundComputeSet, vertex: BoundVertex, arrays: Mapping[str, Any], prints: list[str]) -> None:
        views = {name: make_view(bound.field, arrays[name]) for name, bound in vertex.fields.items()}
        machine, several = owner.machine, vertex.codelet.workers > 1
        for worker in reversed(range(vertex.codelet.workers)):
            replica = owner.replica or 0
            rounding.begin(key_of_call(machine.seed, self.lowered.identity, machine.phase, replica, vertex.tile, vertex.index, worker))
            try:
                self._compute(views, _Context(self, owner, vertex, worker, prints), worker if several else None)
            except rounding.Trap as trap:
                raise floating_point_fault(owner.vertex_place(vertex, worker), trap.kind, trap.values) from trap


class _Compiled:
    """A codelet in C++: the driver that engines use, one vertex at a time."""

    def __init__(self, codelet: NativeCodelet) -> None:
        from popcore.bindings.calls import Call, Caller  # most graphs have none

        self._caller, self._call = Caller(codelet.native), Call
        self.restart()

    def restart(self) -> None:
        """Give variables outside of vertices their first values, on all tiles."""
        self._caller.forget()

    def run(self, owner: BoundComputeSet, vertex: BoundVertex, arrays: Mapping[str, Any], prints: list[str]) -> None:
        machine = owner.machine
        call = self._call(vertex.tile, vertex.index, machine.phase, owner.replica or 0, machine.seed, native.rules_of(machine.arithmetic))
        fault, lines = self._caller.run([arrays[f.name] for f in vertex.codelet.fields], call)
        prints += [print_line(*owner.place(vertex.tile), worker, text) for worker, text in lines]
        if fault is not None and (kind := TRAP_KINDS.get(fault.site - (1 << 64))) is not None:
            raise floating_point_fault(owner.vertex_place(vertex, fault.worker), kind, ())
        if fault is not None:
            raise native_fault(owner.vertex_place(vertex, fault.worker), fault, vertex.codelet.site)


def runners_of(codelets: Iterable[Codelet]) -> dict[Codelet, Runner]:
    """What runs each codelet. Those in C++ are compiled together, since they may share variables outside of vertices."""
    every = list(dict.fromkeys(codelets))
    if compiled := [c.native for c in every if isinstance(c, NativeCodelet)]:
        from popcore.bindings.unit import compile_all  # most graphs have none

        compile_all(compiled)
    return {c: _Compiled(c) if isinstance(c, NativeCodelet) else _Interpreted(c) for c in every}


class _Context:
    """What a codelet is told to tell: its faults and prints."""

    def __init__(self, runner: _Interpreted, owner: BoundComputeSet, vertex: BoundVertex, worker: int, prints: list[str]) -> None:
        self._sites, self._owner, self._vertex, self._worker, self._prints = runner.lowered.sites, owner, vertex, worker, prints

    def fail(self, site: int, values: Sequence[Any]) -> Any:
        found = self._sites[site]
        raise vertex_fault(self._owner.vertex_place(self._vertex, self._worker), site_exception(found, values), found.file, found.line, values)

    def print(self, site: int, values: Sequence[Any]) -> None:
        text = self._sites[site].message(values)
        self._prints.append(print_line(*self._owner.place(self._vertex.tile), self._worker, text))


def _bind(runner: Runner, group: VertexGroup) -> list[BoundVertex]:
    tiles = group.tile
    fields = {name: _bind_field(group, name, column) for name, column in group.columns.items()}
    return [
        BoundVertex(group.codelet, index, int(tiles[index]), runner, {name: bound[index] for name, bound in fields.items()}) for index in range(group.count)
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
