"""Find every mistake in a graph and its programs before anything is planned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from popcore.codelet import Field
from popcore.compiler.edges import field_edges
from popcore.errors import CompileError, ControlProgramError, GraphConnectionError, PopcoreError, RaceError, TileMappingError, UnmappedError, VerifyError
from popcore.graph import Graph, Tensor
from popcore.graph.regions import SHIFT
from popcore.graph.vertex import ComputeSet, VertexGroup
from popcore.program import copies, nodes
from popcore.program.behaviour import ModifyFloatingPointBehaviour, RestoreFloatingPointBehaviour
from popcore.program.collectives import Collective
from popcore.program.walk import check_acyclic, walk
from popcore.types import Array


def verify(graph: Graph, programs: Sequence[nodes.Program]) -> Array:
    """Check what can only be known once the graph is complete.

    Needs:  ``graph.finalise()`` has run.
    Gives:  bool[variables]: those that a program or a host handle uses. Afterwards programs contain no cycle, every
            used element lives on a tile, every field is connected, no two edges of a compute set race.
    Raises: the error, if there is one kind of mistake; else VerifyError, with all of them.
    """
    check_acyclic(*programs)
    tensors: list[Tensor] = [*graph.host_reads.values(), *graph.host_writes.values()]
    sets: dict[int, ComputeSet] = {}
    errors: list[PopcoreError] = []
    for program in walk(*programs):
        if isinstance(program, nodes.Execute):
            sets[program.compute_set.id] = program.compute_set
        tensors += _tensors(program)
        errors += _handles(graph, program)
    used = np.zeros(len(graph.variables), bool)
    for tensor in {id(t): t for t in tensors}.values():
        used[tensor.regions().var] = True
    for cs in sets.values():
        found = list(_connections(cs))
        errors += found
        if not found:
            edges = _Edges.of(cs)
            used[edges.ids >> SHIFT] = True
            errors += _races(graph, cs, edges)
    errors += _unmapped(graph, used)
    errors += _remote_room(graph)
    _raise_all(errors)
    return used


def _tensors(program: nodes.Program) -> list[Tensor]:
    """The tensors a node touches by itself."""
    match program:
        case copies.Copy():
            return [t for t in (program.src, program.dst, program.rows) if isinstance(t, Tensor)]
        case nodes.RepeatWhile() | nodes.If() | nodes.AbortOnCondition():
            return [program.predicate]
        case nodes.Switch():
            return [program.control]
        case nodes.WriteUndef() | nodes.PrintTensor() | nodes.AssumeEqualAcrossReplicas():
            return [program.tensor]
        case nodes.ErrorProgram():
            return [program.tensor] if program.tensor is not None else []
        case nodes.CrossReplicaCopy() | Collective():
            return [program.src, program.dst]
        case nodes.CycleCount():
            return [program.counter]
        case ModifyFloatingPointBehaviour():
            return [] if program.before is None else [program.before]
        case RestoreFloatingPointBehaviour():
            return [program.state]
    return []


def _remote_room(graph: Graph) -> Iterator[PopcoreError]:
    """Remote buffers of all replicas against the Streaming Memory of the machines they are on."""
    system, replicas = graph.target.system, graph.replication_factor
    sizes = {name: r.elements * r.repeats * r.dtype.nbytes for name, r in graph.remotes.items()}
    machines = -(-graph.target.num_ipus * replicas // system.ipus_per_machine)
    needed, room = sum(sizes.values()) * replicas, machines * system.streaming_bytes
    if system.streaming_bytes and needed > room:
        largest = max(sizes, key=lambda name: sizes[name])
        yield CompileError(
            f"remote buffers of {replicas} replicas need {needed:,} B, and {machines} machines of {system.name} have {room:,} B of Streaming Memory;\n"
            f"the largest is {largest!r} with {sizes[largest]:,} B on each replica",
            "fewer rows, or a device of more machines",
        )


def _handles(graph: Graph, program: nodes.Program) -> Iterator[PopcoreError]:
    """Ends of copies that belong to another graph."""
    if not isinstance(program, copies.Copy) or program.kind == "tensor":
        return
    end, known = (program.stream, graph.streams) if program.kind.startswith("stream") else (program.remote, graph.remotes)
    if known.get(end.name) is not end:
        yield ControlProgramError(
            f"Copy ({program.site}) uses {end.name!r}, which this graph does not have", "use the object that this graph's add_... returned"
        )


def _unmapped(graph: Graph, used: Array) -> Iterator[PopcoreError]:
    lines: list[str] = []
    for number in np.flatnonzero(used).tolist():
        variable = graph.variables[number]
        starts, ends, tiles = variable.mapping.intervals()
        mapped = int((ends - starts).sum())
        if mapped < variable.numel:
            lines.append(f"variable {variable}: {variable.numel - mapped:,} of {variable.numel:,} elements are mapped to no tile")
        elif len(tiles) and int(tiles.max()) >= graph.target.num_tiles:
            yield TileMappingError(f"variable {variable} is mapped to tile {int(tiles.max())}, and there are {graph.target.num_tiles}")
    if lines:
        more = f"\n... and {len(lines) - 6} more" if len(lines) > 6 else ""
        yield UnmappedError("\n".join(lines[:6]) + more)


def _connections(cs: ComputeSet) -> Iterator[PopcoreError]:
    for group in cs.groups.values():
        where = f"of codelet {group.codelet.name} in compute set {cs.name!r} ({cs.site})"
        unplaced = np.flatnonzero(np.asarray(group.tile) < 0)
        if len(unplaced):
            yield UnmappedError(f"{len(unplaced)} vertices {where} are mapped to no tile, the first is vertex {unplaced[0]}", "add_vertex(..., tile=n)")
        for f in group.codelet.fields:
            missing = np.flatnonzero(np.asarray(group.columns[f.name].var) == -1)
            if len(missing):
                yield GraphConnectionError(f"field {f.name!r} {where} is not connected for {len(missing)} vertices, the first is vertex {missing[0]}")


@dataclass(frozen=True)
class _Edges:
    """All edges of a compute set as runs of elements."""

    ids: Array  # int64[r]
    length: Array  # int64[r]
    writes: Array  # bool[r]
    owner: Array  # int32[r]: row of ``owners``
    vertex: Array  # int64[r]
    owners: tuple[tuple[VertexGroup, Field], ...]

    def group_of(self, edge: Array) -> Array:
        """A number for the group of each edge."""
        groups = {id(group): i for i, (group, _) in enumerate(self.owners)}
        number = np.array([groups[id(group)] for group, _ in self.owners], np.int64)
        found: Array = number[self.owner[edge]]
        return found

    @staticmethod
    def of(cs: ComputeSet) -> _Edges:
        owners: list[tuple[VertexGroup, Field]] = []
        rows: list[tuple[Array, Array, bool, Array]] = []
        for group in cs.groups.values():
            for f in group.codelet.fields:
                owners.append((group, f))
                edges = field_edges(group, f, np.arange(group.count))
                rows.append((edges.runs.ids, edges.runs.length, f.writes, edges.vertex[edges.edge_of_run]))
        if not rows:
            none = np.zeros(0, np.int64)
            return _Edges(none, none, none.astype(bool), none.astype(np.int32), none, ())
        return _Edges(
            np.concatenate([r[0] for r in rows]),
            np.concatenate([r[1] for r in rows]),
            np.concatenate([np.full(len(r[0]), r[2]) for r in rows]),
            np.concatenate([np.full(len(r[0]), i, np.int32) for i, r in enumerate(rows)]),
            np.concatenate([r[3] for r in rows]),
            tuple(owners),
        )


def _races(graph: Graph, cs: ComputeSet, edges: _Edges) -> Iterator[PopcoreError]:
    """Elements that one edge writes and another writes too, or one of another vertex reads. Costs a sort of the runs."""
    some = edges.length > 0
    writers = np.flatnonzero(edges.writes & some)
    if not len(writers):
        return
    writers = writers[np.argsort(edges.ids[writers], kind="stable")]
    begin, end = edges.ids[writers], edges.ids[writers] + edges.length[writers]
    reach = np.maximum.accumulate(end)
    clash = np.flatnonzero(begin[1:] < reach[:-1])
    if len(clash):
        second = int(clash[0]) + 1
        first = int(np.flatnonzero(end[:second] > begin[second])[-1])
        yield _race(graph, cs, edges, int(writers[first]), int(writers[second]))
        return
    readers = np.flatnonzero(~edges.writes & some)
    if not len(readers):
        return
    # A reader may meet several written runs; its own vertex's are allowed (they are read as they were before).
    low = np.searchsorted(end, edges.ids[readers], "right")
    high = np.searchsorted(begin, edges.ids[readers] + edges.length[readers], "left")
    count = np.maximum(high - low, 0)
    reader = np.repeat(readers, count)
    writer = writers[np.arange(len(reader)) + np.repeat(low - (np.cumsum(count) - count), count)]
    same = edges.group_of(reader) == edges.group_of(writer)
    hit = np.flatnonzero(~(same & (edges.vertex[reader] == edges.vertex[writer])))
    if len(hit):
        yield _race(graph, cs, edges, int(writer[hit[0]]), int(reader[hit[0]]))


def _race(graph: Graph, cs: ComputeSet, edges: _Edges, writer: int, other: int) -> RaceError:
    begin = int(max(edges.ids[writer], edges.ids[other]))
    end = int(min(edges.ids[writer] + edges.length[writer], edges.ids[other] + edges.length[other]))
    variable = graph.variables[begin >> SHIFT]
    element = begin - (variable.id << SHIFT)

    def describe(edge: int) -> str:
        group, f = edges.owners[edges.owner[edge]]
        vertex = int(edges.vertex[edge])
        tile = int(np.asarray(group.tile)[vertex])
        return f"{'written' if f.writes else 'read'} by field {f.name!r} of {group.codelet.name} (vertex {vertex}, tile {tile})"

    return RaceError(
        f"elements {element} to {element + end - begin - 1} of {variable} race in compute set {cs.name!r} ({cs.site}): they are\n"
        f"  {describe(writer)} and\n  {describe(other)}",
        variable=variable.name, compute_set=cs.name, element=element, count=end - begin,
    )  # fmt: skip


def _raise_all(errors: list[PopcoreError]) -> None:
    if not errors:
        return
    kinds = {type(e) for e in errors}
    if len(errors) == 1:
        raise errors[0]
    if len(kinds) == 1:
        kind = kinds.pop()
        more = f"\n... and {len(errors) - 4} more" if len(errors) > 4 else ""
        raise kind("\n".join(e.message for e in errors[:4]) + more, errors[0].hint, errors=tuple(errors))
    raise VerifyError(errors)
