"""Put everything together: addresses into code, copies and tables into phases, cycles beside instructions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from popcore.codelet import Codelet
from popcore.compiler.collectives import CollectiveCost, collective_cost
from popcore.compiler.copies import CopyTables
from popcore.compiler.ir import Code, ComputeStep, HostStep, Layout, MemoryPlan, Moves, StepPlan
from popcore.compiler.passes.batch_vertices import VertexTables
from popcore.compiler.passes.count import count
from popcore.compiler.passes.lower_replicas import result_offset
from popcore.compiler.passes.price import price
from popcore.compiler.placing import byte_runs, element_addresses
from popcore.compiler.shadow import make_shadow
from popcore.executable import CollectiveCall, Executable, Handle, MemoryMap, Shadow, Yield
from popcore.executable.executable import PLANES
from popcore.executable.opcodes import Batch, Op, PhaseFlag
from popcore.graph import Graph, Tensor
from popcore.graph.regions import PLACE, SHIFT, Regions, coalesce
from popcore.program.collectives import Collective
from popcore.types import Array


def emit(
    graph: Graph,
    code: Code,
    layout: Layout,
    plans: Sequence[StepPlan],
    memory: MemoryPlan,
    codelets: Sequence[Codelet],
    tables: VertexTables,
    ranges: Sequence[tuple[int, int]],
    options: dict[str, Any],
) -> Executable:
    """Make the Executable of the results of all other passes. Every step is one phase, or two where vertices have written to exchange buffers."""
    batches, tiles, rows, vertex_ids = tables.finish()
    shadow = make_shadow(graph, code, layout, memory, options)
    table = _phases(code, plans, memory, batches, ranges, shadow.distance)
    instructions, moved = _expand_runs(code, table.of_step, memory, layout)
    reads, writes = _handles(graph, code, table.of_step)
    links = [collective_cost(node) for node in code.collectives]
    collectives, spans = _collectives(code, links, layout, memory)
    initial, initial_bytes = _initial_image(graph, layout, memory)
    costs, counted = price(code, plans, layout, codelets, moved, graph.target, graph.replication_factor, links)
    return Executable(
        target=graph.target,
        options=options,
        code=instructions,
        entries=moved[code.entries],
        switches=_moved_switches(code, moved),
        loop_slots=code.loop_slots,
        call_depth=code.call_depth,
        phases=table.phases,
        groups=table.groups,
        words=table.words,
        spans=table.spans,
        batches=batches,
        tiles=tiles,
        rows=rows,
        vertex_ids=vertex_ids,
        phase_names=table.names,
        codelets=tuple(codelets),
        memory=_memory_map(memory, shadow),
        initial=initial,
        initial_bytes=initial_bytes,
        reads=reads,
        writes=writes,
        streams=tuple(graph.streams.values()),
        remotes=tuple(graph.remotes.values()),
        yields=_placed_yields(code, layout, memory),
        streams_of=code.streams_of,
        costs=costs,
        statistics=_statistics(graph, code, plans, layout),
        replicas=graph.replication_factor,
        decisions=tuple(replace(d, instruction=int(moved[d.instruction])) for d in code.decisions),
        replica_index=_replica_words(graph, layout, memory),
        collectives=collectives,
        collective_spans=spans,
        shadow=shadow,
        counting=count(counted, table.of_step, ranges, batches, vertex_ids),
    )


def _memory_map(memory: MemoryPlan, shadow: Shadow) -> MemoryMap:
    arena_bytes = PLANES * shadow.distance or memory.arena_bytes
    return MemoryMap(memory.tile_base, memory.tile_bytes, int(memory.address[-1]), memory.staging_bytes, arena_bytes, memory.by_category)


def _placed_yields(code: Code, layout: Layout, memory: MemoryPlan) -> tuple[Yield, ...]:
    """Requests to the host; those that look at what is tested get its address."""
    if not any(request.kind == "defined" for request in code.yields):
        return code.yields
    at = element_addresses(code.predicates, layout, memory)
    return tuple(replace(r, offset=int(at[r.index])) if r.kind == "defined" else r for r in code.yields)


@dataclass(frozen=True)
class _Phases:
    """The phases of all steps, and the copies they make."""

    phases: Array
    names: tuple[str, ...]
    of_step: tuple[tuple[int, ...], ...]
    groups: Array
    words: Array
    spans: Array


def _phases(code: Code, plans: Sequence[StepPlan], memory: MemoryPlan, batches: Array, ranges: Sequence[tuple[int, int]], shadow: int) -> _Phases:
    """``shadow``: bytes from memory to its shadow, which each copy moves too; 0: there is none."""
    copies = CopyTables()
    phases: list[list[int]] = []
    names: list[str] = []
    of_step: list[tuple[int, ...]] = []
    for step, plan, (first, last) in zip(code.steps, plans, ranges, strict=True):
        work = int((batches[first:last, Batch.WORK] * batches[first:last, Batch.TILES_COUNT]).sum())
        parts = [(plan.before, first, last, work)] + ([(plan.after, 0, 0, 0)] if len(plan.after) else [])
        of_step.append(tuple(range(len(phases), len(phases) + len(parts))))
        for moves, begin, end, field_bytes in parts:
            source, target, nbytes = _addresses(moves, memory)
            groups = copies.add(source, target, nbytes)
            if shadow:
                groups = groups[0], copies.add(source + shadow, target + shadow, nbytes)[1]
            # Nothing a vertex writes is read by a copy of its phase: another reader would be a race, and buffers are read by the next phase.
            phases.append([*groups, begin, end, field_bytes + int(moves.nbytes.sum()), PhaseFlag.FUSABLE if begin < end and not shadow else 0])
            names.append(step.name)
    return _Phases(np.array(phases, np.int64).reshape(-1, 6), tuple(names), tuple(of_step), *copies.finish())


def _addresses(moves: Moves, memory: MemoryPlan) -> tuple[Array, Array, Array]:
    return memory.address[moves.source] + moves.source_offset, memory.address[moves.target] + moves.target_offset, moves.nbytes


def _expand_runs(code: Code, phases_of: Sequence[Sequence[int]], memory: MemoryPlan, layout: Layout) -> tuple[Array, Array]:
    """Replace steps by phases and predicates by addresses.

    Returns: the instructions, and where each old instruction went, int64[n + 1].
    """
    old = code.instructions
    is_run = old[:, 0] == Op.RUN
    per_step = np.array([len(p) for p in phases_of] or [0], np.int64)
    width = np.where(is_run, per_step[np.where(is_run, old[:, 1], 0)], 1)
    moved = np.concatenate([[0], np.cumsum(width)]).astype(np.int64)
    new = np.repeat(old, width, axis=0)
    first_phase = np.array([p[0] for p in phases_of] or [0], np.int64)
    within = np.arange(len(new)) - np.repeat(moved[:-1], width)
    runs = new[:, 0] == Op.RUN
    new[runs, 1] = first_phase[new[runs, 1]] + within[runs]
    for op, column in ((Op.REPEAT, 3), (Op.END, 2), (Op.BRANCH, 3), (Op.JUMP, 1), (Op.CALL, 1)):
        which = new[:, 0] == op
        new[which, column] = moved[new[which, column]]
    tested = (new[:, 0] == Op.BRANCH) | (new[:, 0] == Op.SWITCH)
    if tested.any():
        new[tested, 1] = element_addresses(code.predicates, layout, memory)[new[tested, 1]]
    return new, moved


def _moved_switches(code: Code, moved: Array) -> Array:
    switches = code.switches.copy()
    if len(switches):
        switches[:, 1] = moved[switches[:, 1]]
    return switches


def _handles(graph: Graph, code: Code, phases_of: Sequence[Sequence[int]]) -> tuple[tuple[Handle, ...], tuple[Handle, ...]]:
    def handle(name: str, tensor: Tensor, step: int) -> Handle:
        return Handle(name, tensor.name, tensor.dtype, tuple(tensor.shape), phases_of[step][0])

    return (
        tuple(handle(name, tensor, code.reads[name]) for name, tensor in graph.host_reads.items()),
        tuple(handle(name, tensor, code.writes[name]) for name, tensor in graph.host_writes.items()),
    )


def _initial_image(graph: Graph, layout: Layout, memory: MemoryPlan) -> tuple[Array, Array]:
    """Where the bytes of constants and initial values go. Returns int64[k, 3] and uint8."""
    rows: list[Array] = []
    blobs: list[Array] = []
    size = 0
    for number in np.unique(layout.slab_variable).tolist():
        variable = graph.variables[number]
        if variable.initial is None:
            continue
        ids, length = np.array([variable.base]), np.array([variable.numel])
        if variable.has_initial is not None:  # only some elements have one
            places = np.flatnonzero(variable.has_initial)
            runs = coalesce(variable.base + places, np.ones(len(places), np.int64))
            ids, length = runs.ids, runs.length
        run, places_of = layout.locate(Regions(ids, length))
        width = variable.dtype.nbytes
        element = (ids - variable.base)[run] * width
        within = np.cumsum(places_of.nbytes) - places_of.nbytes
        begins = np.concatenate([[0], np.cumsum(length * width)[:-1]])
        element = element + within - begins[run]
        rows.append(np.stack([memory.address[places_of.slab] + places_of.offset, size + element, places_of.nbytes], 1))
        blob = np.ascontiguousarray(variable.initial).view(np.uint8)
        blobs.append(blob)
        size += len(blob)
    return np.concatenate([np.zeros((0, 3), np.int64), *rows]), np.concatenate([np.zeros(0, np.uint8), *blobs])


def _replica_words(graph: Graph, layout: Layout, memory: MemoryPlan) -> Array:
    """Arena bytes of the words that hold a replica's number, of those in use."""
    used = set(layout.slab_variable.tolist())
    ids = [t.regions().element_ids() for t in graph.replica_indices if t.variable is not None and t.variable.id in used]
    elements = np.concatenate([np.zeros(0, np.int64), *ids])
    return element_addresses(np.stack((elements >> SHIFT, elements & PLACE), axis=1), layout, memory)


def _spans(node: Collective, layout: Layout, memory: MemoryPlan) -> Array:
    """The runs of bytes of what an all-reduce combines, in view order: int64[k, 2]."""
    return byte_runs(node.dst.regions(), layout, memory) if node.kind == "all_reduce" else np.zeros((0, 2), np.int64)


def _collectives(code: Code, costs: Sequence[CollectiveCost], layout: Layout, memory: MemoryPlan) -> tuple[tuple[CollectiveCall, ...], Array]:
    """The collectives, and all their spans one after another."""
    spans = [_spans(node, layout, memory) for node in code.collectives]
    ends = np.cumsum([0, *(len(each) for each in spans)]).tolist()
    calls = tuple(_collective(*each) for each in zip(code.collectives, costs, ends[:-1], ends[1:], strict=True))
    return calls, np.concatenate([np.zeros((0, 2), np.int64), *spans])


def _collective(node: Collective, cost: CollectiveCost, span_begin: int, span_end: int) -> CollectiveCall:
    rings, inner = node.rings()
    return CollectiveCall(
        name=node.name,
        kind=node.kind,
        operator=node.operator.value,
        method=node.method,
        dtype=node.src.dtype,
        elements=node.src.num_elements,
        result_elements=node.dst.num_elements,
        result_offset=result_offset(node),
        group_type=node.group.type.value,
        group_size=node.group_size,
        root=node.root,
        rings=rings,
        inner=inner,
        partials=node.partials,
        span_begin=span_begin,
        span_end=span_end,
        steps=cost.steps,
        bytes_on_links=cost.bytes_on_links,
        cycles=cost.cycles,
    )


def _statistics(graph: Graph, code: Code, plans: Sequence[StepPlan], layout: Layout) -> dict[str, int]:
    gathered = sum(len(plan.before) for step, plan in zip(code.steps, plans, strict=True) if isinstance(step, ComputeStep))
    vertices = sum(len(group.tile) for plan in plans for group in plan.groups)
    return {
        "tiles": graph.target.num_tiles,
        "variables": len(np.unique(layout.slab_variable)),
        "vertices": vertices,
        "compute sets": sum(isinstance(s, ComputeStep) for s in code.steps),
        "copies": sum(not isinstance(s, (ComputeStep, HostStep)) for s in code.steps),
        "field gathers": gathered,
        "instructions": len(code.instructions),
    }
