"""Check that the tables of an Executable stay inside each other, before one from a file is believed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from popcore.errors import ExecutableFileError
from popcore.executable.executable import MODIFY, ORIGINS, PLANES, RESTORE, Executable
from popcore.executable.opcodes import ROW_WORDS, Batch, Group, GroupKind, Op, Phase
from popcore.executable.schedules import ALGORITHMS, KINDS, CollectiveOperator, CommGroupType, result_elements
from popcore.topology import LINK_KINDS
from popcore.types import FLOAT, HALF, Array, ElementType

_LIMIT = 1 << 48  # bytes: no arena is larger, and sums of three stay within 64 bits

_TYPED = ("cross_copy", "cycles_end", "defined", "equal", "error_if", "print", "remote_in", "remote_out", "stream_in", "stream_out", RESTORE)
_UNTYPED = ("collective", "cycles_begin", "error", "undefine", MODIFY)
"""Requests to the host that come with a type, and those that need none."""


def check_tables(executable: Executable, path: str) -> None:
    """Raise ExecutableFileError where an index leads out of its table, or an address out of the arena.

    Gives: the machine may run it: every copy stays within the arena, every field within its tile.
    """
    for step in (
        _check_target,
        _check_shapes,
        _check_memory,
        _check_code,
        _check_copies,
        _check_batches,
        _check_host,
        _check_kinds,
        _check_replicas,
        _check_costs,
        _check_counting,
    ):
        for what, fine in step(executable):  # a step may rely on what those before it found
            if not fine:
                raise ExecutableFileError(f"{path!r} is damaged: {what}")


def _within(values: Array, low: int, high: int) -> bool:
    """Whether all of ``values`` lie in [low, high)."""
    return not len(values) or bool(values.min() >= low and values.max() < high)


def _shape(array: Array, kind: str, columns: int | None) -> bool:
    return bool(array.dtype == np.dtype(kind)) and (array.ndim == 1 if columns is None else array.ndim == 2 and array.shape[1] == columns)


def _check_target(e: Executable) -> list[tuple[str, bool]]:
    """Numbers of a machine that could be one, so that what is computed with them stays within 64 bits."""
    waiting: list[Any] = [e.target.to_dict()]
    sane = True
    while waiting:
        match waiting.pop():
            case dict() as each:
                waiting.extend(each.values())
            case list() | tuple() as each:
                waiting.extend(each)
            case int() | float() as number:
                sane = sane and 0 <= number < _LIMIT
    return [("its target is no machine", sane)]


def _check_shapes(e: Executable) -> list[tuple[str, bool]]:
    costs = e.costs
    tables = (
        ("code", e.code, "int64", 4), ("entries", e.entries, "int64", None), ("switches", e.switches, "int64", 2), ("phases", e.phases, "int64", 6),
        ("groups", e.groups, "int64", 12), ("words", e.words, "uint32", None), ("spans", e.spans, "int64", 3), ("batches", e.batches, "int64", 8),
        ("tiles", e.tiles, "int32", None), ("rows", e.rows, "int32", None), ("vertex_ids", e.vertex_ids, "int32", None), ("initial", e.initial, "int64", 3), ("initial_bytes", e.initial_bytes, "uint8", None),
        ("replica_index", e.replica_index, "int64", None), ("collective_spans", e.collective_spans, "int64", 2),
        ("tile_base", e.memory.tile_base, "int64", None), ("tile_bytes", e.memory.tile_bytes, "int64", None),
        ("cycles", costs.cycles, "int64", 5), ("labels", costs.label, "int32", None), ("heads", costs.head, "bool", None), ("worker cycles", costs.worker_codelet, "int64", 4),
        ("links", costs.links, "int64", 6), ("bytes on links", costs.link_bytes, "int64", None), ("bytes exchanged", costs.exchange_bytes, "int64", None),
        ("bytes of the host", costs.host_bytes, "int64", None), ("remote bytes", costs.remote_bytes, "int64", None),
        ("origins", costs.origins, "int64", len(ORIGINS)), ("counted steps", e.counting.steps, "int64", 5),
        ("counted vertices", e.counting.vertices, "int64", 3), ("counted workers", e.counting.workers, "int64", None),
        ("places of the shadow", e.shadow.places, "int64", 5), ("ends of the shadow", e.shadow.ended, "int64", 3),
        *((f"memory of {name}", array, "int64", None) for name, array in e.memory.by_category.items()),
    )  # fmt: skip
    return [(f"table {name} has the wrong shape or type", _shape(array, kind, columns)) for name, array, kind, columns in tables]


def _check_memory(e: Executable) -> list[tuple[str, bool]]:
    m, tiles = e.memory, e.target.num_tiles
    sizes = len(m.tile_base) == len(m.tile_bytes) == tiles and all(len(a) == tiles for a in m.by_category.values())
    if not sizes or not 0 <= m.arena_bytes < _LIMIT or not _within(m.tile_base, 0, _LIMIT) or not _within(m.tile_bytes, 0, _LIMIT):
        return [("the memory map is not one of the target", False)]
    distance, room = e.shadow.distance, e.shadow.distance or m.arena_bytes  # what lies behind the room is shadow
    initial = e.initial
    small = all(_within(initial[:, c], 0, _LIMIT) for c in range(3))
    ends = initial[:, [0, 1]] + initial[:, [2, 2]] if small else np.zeros((0, 2), np.int64)
    return [
        ("tiles overlap or leave the arena", bool((m.tile_base[1:] >= m.tile_base[:-1] + m.tile_bytes[:-1]).all() and (m.tile_base + m.tile_bytes <= room).all())),
        ("the shadow does not fit the arena", distance == 0 or (distance > 0 and PLANES * distance == m.arena_bytes)),
        ("the shadow has places of no variable", _within(e.shadow.places[:, 2], 0, len(e.shadow.variables)) and _within(e.shadow.places[:, 4], 1, _LIMIT)),
        ("the staging area leaves the arena", 0 <= m.staging <= room and 0 <= m.staging_bytes <= room - m.staging),
        ("initial values lie outside the arena", small and _within(ends[:, 0], 0, room + 1) and _within(ends[:, 1], 0, len(e.initial_bytes) + 1)),
        ("a host handle has no phase", _within(np.array([h.phase for h in (*e.reads, *e.writes)], np.int64), 0, len(e.phases))),
    ]  # fmt: skip


def _check_code(e: Executable) -> list[tuple[str, bool]]:
    code, count = e.code, len(e.code)
    op = code[:, 0]

    def operand(ops: tuple[Op, ...], column: int) -> Array:
        found: Array = code[np.isin(op, ops), column]
        return found

    cases = operand((Op.SWITCH,), 3)
    in_table = _within(cases, 0, len(e.switches)) and _within(e.switches[:, 1], 0, max(count, 1))
    enough = in_table and all(0 <= e.switches[c, 0] < len(e.switches) - c for c in cases.tolist())
    width = np.abs(operand((Op.BRANCH, Op.SWITCH), 2))
    address = operand((Op.BRANCH, Op.SWITCH), 1)
    return [
        ("an instruction is unknown", _within(op, 0, len(Op))),
        ("a program begins nowhere", _within(e.entries, 0, count) and len(e.streams_of) == len(e.entries)),
        ("the code does not end", bool(count and op[-1] in (Op.HALT, Op.RETURN, Op.JUMP))),
        ("a phase does not exist", _within(operand((Op.RUN,), 1), 0, len(e.phases))),
        ("a loop slot does not exist", _within(operand((Op.REPEAT, Op.END), 1), 0, max(e.loop_slots, 0)) and e.loop_slots < _LIMIT),
        ("a jump leads out of the code", all(_within(operand(*where), 0, count) for where in (((Op.REPEAT, Op.BRANCH), 3), ((Op.END,), 2), ((Op.JUMP, Op.CALL), 1)))),
        ("a switch leads out of its table", enough),
        ("a predicate lies outside the arena", bool(np.isin(width, (1, 2, 4, 8)).all()) and _within(address, 0, max(e.memory.arena_bytes - 7, 0))),
        ("a request to the host does not exist", _within(operand((Op.YIELD,), 1), 0, len(e.yields))),
        ("the call depth is absurd", 0 <= e.call_depth < _LIMIT),
    ]  # fmt: skip


def _check_copies(e: Executable) -> list[tuple[str, bool]]:
    groups, kind, arena = e.groups, e.groups[:, Group.KIND], e.memory.arena_bytes
    begin, count, width = groups[:, Group.BEGIN], groups[:, Group.COUNT], groups[:, Group.WIDTH]
    found = [
        ("phases lead out of the tables", all(
            _within(e.phases[:, c], 0, n + 1) for c, n in ((Phase.COPY_BEGIN, len(groups)), (Phase.COPY_END, len(groups)), (Phase.BATCH_BEGIN, len(e.batches)), (Phase.BATCH_END, len(e.batches)))
        ) and len(e.phase_names) == len(e.phases)),
        ("a group of copies is of no kind", _within(kind, 0, len(GroupKind))),
        ("a group of copies has absurd numbers", _within(groups[:, Group.BEGIN : Group.RESERVED].ravel(), -_LIMIT, _LIMIT)),
        ("a group of copies is negative", _within(begin, 0, _LIMIT) and _within(count, 0, _LIMIT) and _within(width, 0, _LIMIT)),
    ]  # fmt: skip
    if not all(fine for _, fine in found):
        return found
    pairs, spans, nested = (np.flatnonzero(kind == k) for k in (GroupKind.WORDS, GroupKind.SPANS, GroupKind.STRIDED))
    found.append(
        ("copies lead out of their table", _within((begin + count)[pairs], 0, len(e.words) // 2 + 1) and _within((begin + count)[spans], 0, len(e.spans) + 1))
    )
    if not found[-1][1]:
        return found
    top = [
        int(e.words[2 * b : 2 * (b + n)].max(initial=0)) + w
        for b, n, w in zip(begin[pairs].tolist(), count[pairs].tolist(), width[pairs].tolist(), strict=True)
        if n
    ]
    found.append(("a copy leaves the arena", max(top, default=0) * 4 <= arena))
    s = e.spans
    small = all(_within(s[:, c], 0, _LIMIT) for c in range(3))
    found.append(("a copy leaves the arena", small and _within(s[:, 0] + s[:, 2], 0, arena + 1) and _within(s[:, 1] + s[:, 2], 0, arena + 1)))
    found.append(("a copy leaves the arena", all(_nest_fits(groups[i].tolist(), arena) for i in nested.tolist())))
    return found


def _nest_fits(g: list[int], arena: int) -> bool:
    """Whether a nest of copies stays in the arena; in Python's integers, which do not wrap."""
    if g[Group.COUNT] < 1 or g[Group.COUNT1] < 1:
        return False
    for first, step1, step2 in ((Group.SOURCE, Group.SOURCE1, Group.SOURCE2), (Group.TARGET, Group.TARGET1, Group.TARGET2)):
        ends = [a * (g[Group.COUNT1] - 1) * g[step1] + b * (g[Group.COUNT] - 1) * g[step2] for a in (0, 1) for b in (0, 1)]
        if g[first] + min(ends) < 0 or 4 * (g[first] + max(ends) + g[Group.WIDTH]) > arena:
            return False
    return True


def _check_batches(e: Executable) -> list[tuple[str, bool]]:
    b = e.batches
    begin, tiles, rows_at, rows = (b[:, c] for c in (Batch.TILES_BEGIN, Batch.TILES_COUNT, Batch.ROWS_BEGIN, Batch.ROWS_COUNT))
    found = [
        ("a batch is of no codelet", _within(b[:, Batch.CODELET], 0, len(e.codelets))),
        ("a batch has absurd numbers", all(_within(column, 0, _LIMIT) for column in (begin, tiles, rows_at, rows))),
        ("a vertex is on no tile", _within(e.tiles, 0, e.target.num_tiles)),
        ("a vertex has no number", len(e.vertex_ids) == sum(t * r for t, r in zip(tiles.tolist(), rows.tolist(), strict=True))),
    ]
    if not all(fine for _, fine in found):
        return found
    found.append(("a batch leads out of its tiles", _within(begin + tiles, 0, len(e.tiles) + 1)))
    if found[-1][1]:
        found += [("a field lies outside its tile", _batch_fits(e, row)) for row in range(len(b))]
    return found


def _batch_fits(e: Executable, number: int) -> bool:
    row = e.batches[number]
    fields = e.codelets[row[Batch.CODELET]].fields
    words = sum(ROW_WORDS[f.shape] for f in fields)
    begin, count = int(row[Batch.ROWS_BEGIN]), int(row[Batch.ROWS_COUNT])
    if begin + words * count > len(e.rows):
        return False
    table = e.rows[begin : begin + words * count].reshape(count, words).astype(np.int64)
    on = e.tiles[row[Batch.TILES_BEGIN] : row[Batch.TILES_BEGIN] + row[Batch.TILES_COUNT]]
    room = int(e.memory.tile_bytes[on].min()) if len(on) else _LIMIT
    at = 0
    for f in fields:
        columns = table[:, at : at + ROW_WORDS[f.shape]]
        at += ROW_WORDS[f.shape]
        if not _within(columns.ravel(), 0, _LIMIT):
            return False
        if f.shape == "list":
            parts = [e.rows[begin + first : begin + first + 2 * n] for first, n in columns.tolist()]
            if any(len(p) != 2 * n for p, (_, n) in zip(parts, columns.tolist(), strict=True)):
                return False
            columns = np.concatenate([np.zeros(0, np.int64), *parts]).reshape(-1, 2).astype(np.int64)
        elements = columns[:, 1:].astype(object).prod(axis=1) if columns.shape[1] > 1 else np.ones(len(columns), object)
        ends = columns[:, 0].astype(object) + elements * f.dtype.nbytes
        if any(n and (end > room) for n, end in zip(elements, ends, strict=True)) or (columns < 0).any():
            return False
    return True


def _check_host(e: Executable) -> list[tuple[str, bool]]:
    """Requests to the host, and what the staging area has to hold for them."""
    tables = {"stream": len(e.streams), "remote": len(e.remotes), "cycles": len(e.yields)}
    rooms = [_room(h.shape, h.dtype) for h in (*e.reads, *e.writes)]
    used = {y.index for y in e.yields if y.kind.startswith("stream")}  # one that no program uses has no room there, and needs none
    rooms += [_room((s.elements,), s.dtype) if i in used else min(0, _room((s.elements,), s.dtype)) for i, s in enumerate(e.streams)]
    rooms += [_room(y.shape, y.dtype) + y.offset for y in e.yields if y.dtype is not None and y.kind != "defined"]
    tested = [y.offset + (0 if y.dtype is None else y.dtype.nbytes) for y in e.yields if y.kind == "defined"]
    rooms += [_room(y.shape[:1], y.rows_dtype) + y.rows_at for y in e.yields if y.rows_dtype is not None]
    remote = [(y, e.remotes[y.index]) for y in e.yields if y.kind.startswith("remote") and 0 <= y.index < len(e.remotes)]
    return [
        ("a request to the host is of no kind", all(y.kind in _TYPED or y.kind in _UNTYPED for y in e.yields)),
        ("a request to the host has no type", all(y.dtype is not None for y in e.yields if y.kind in _TYPED)),
        ("a request to the host names nothing", all(0 <= y.index < count for y in e.yields for kind, count in tables.items() if y.kind.startswith(kind))),
        ("a request to the host has no room", all(0 <= room <= e.memory.staging_bytes for room in rooms) and all(
            y.offset >= 0 and (y.rows_dtype is None or y.rows_at >= 0) for y in e.yields
        )),
        ("a test of memory leaves the arena", all(end <= (e.shadow.distance or e.memory.arena_bytes) for end in tested)),
        ("a row of a remote buffer does not exist", all(0 <= r < b.repeats for y, b in remote for r in y.rows)),
        ("a remote transfer is not of whole rows", all(y.dtype is b.dtype and math.prod(y.shape) == b.elements * (len(y.rows) if y.rows_dtype is None else math.prod(y.shape[:1])) for y, b in remote)),
        ("a program uses a stream that is not there", {name for names in e.streams_of for name in names} <= {s.name for s in e.streams}),
    ]  # fmt: skip


def _check_kinds(e: Executable) -> list[tuple[str, bool]]:
    """What collectives are called."""
    operators, groups = {o.value for o in CollectiveOperator}, {g.value for g in CommGroupType}
    return [
        ("a collective is of no kind", c.kind in KINDS and c.method in ALGORITHMS and c.operator in operators and c.group_type in groups and c.elements >= 0)
        for c in e.collectives
    ]


def _check_replicas(e: Executable) -> list[tuple[str, bool]]:
    """Collectives, and what else several replicas have."""
    calls, room, spans = e.collectives, e.memory.staging_bytes, e.collective_spans
    small = _within(spans[:, 0], 0, _LIMIT) and _within(spans[:, 1], 0, _LIMIT)
    senders = [y.rows for y in e.yields if y.kind == "cross_copy"]
    return [
        ("there are no replicas", 1 <= e.replicas < _LIMIT and e.replicas * max(e.memory.arena_bytes, 1) < _LIMIT),
        ("a replica's number lies outside the arena", _within(e.replica_index, 0, e.memory.arena_bytes - 3)),
        ("a collective does not exist", all(0 <= y.index < len(calls) for y in e.yields if y.kind == "collective")),
        ("a collective leaves the arena", small and _within(spans.sum(axis=1), 0, e.memory.arena_bytes + 1)),
        ("a collective has no room", all(
            c.elements >= 0 and c.elements * c.dtype.nbytes <= room and c.result_offset >= 0 and c.result_offset + c.result_elements * c.dtype.nbytes <= room
            for c in calls if c.kind != "all_reduce"
        )),
        ("a collective does not cover its tensor", small and all(
            0 <= c.span_begin <= c.span_end <= len(spans) and not (spans[c.span_begin : c.span_end] % c.dtype.nbytes).any()
            and int(spans[c.span_begin : c.span_end, 1].sum()) == c.elements * c.dtype.nbytes
            for c in calls if c.kind == "all_reduce"
        )),
        ("a collective has no such groups", all(
            1 <= c.group_size <= e.replicas and e.replicas % c.group_size == 0 and c.root in range(c.group_size)
            and len(c.rings) == len(ALGORITHMS[c.method].lanes) and all(sorted(ring) == list(range(c.group_size)) for ring in c.rings)
            and 1 <= c.inner <= c.group_size and c.group_size % c.inner == 0 and (ALGORITHMS[c.method].levels == 2 or c.inner == c.group_size)
            and (c.partials is c.dtype or (c.dtype is HALF and c.partials is FLOAT))
            and c.result_elements == result_elements(c.kind, c.elements, c.group_size)
            for c in calls
        )),
        ("a replica copies from none", all(len(rows) == e.replicas and all(0 <= r < e.replicas for r in rows) for rows in senders)),
    ]  # fmt: skip


def _room(shape: tuple[int, ...], dtype: ElementType) -> int:
    """Bytes; -1 if a dimension is negative, or so large that no array has it, not even one without elements."""
    return -1 if any(n < 0 for n in shape) or math.prod(max(n, 1) for n in shape) >= _LIMIT else math.prod(shape) * dtype.nbytes


def _check_costs(e: Executable) -> list[tuple[str, bool]]:
    costs, count = e.costs, len(e.code)
    columns = (costs.cycles, costs.link_bytes, costs.exchange_bytes, costs.host_bytes, costs.remote_bytes, costs.label, costs.head)
    rows, links = costs.worker_codelet, costs.links
    return [
        ("the costs do not match the code", all(len(column) == count for column in columns)),
        ("a cost has no label", _within(costs.label, 0, max(len(costs.labels), 1))),
        ("a cost belongs to nothing", _within(rows[:, 0], 0, max(count, 1)) and _within(rows[:, 1], 0, max(len(e.codelets), 1))),
        ("a link is none", _within(links[:, 0], 0, max(count, 1)) and _within(links[:, 1], 0, len(LINK_KINDS)) and _within(links[:, 2:5], 0, _LIMIT)),
    ]


def _check_counting(e: Executable) -> list[tuple[str, bool]]:
    steps, vertices, workers = e.counting.steps, e.counting.vertices, e.counting.workers
    width = e.target.num_worker_contexts + 1
    ordered = all(_within(steps[:, c], 0, n + 1) for c, n in ((1, len(vertices)), (2, len(vertices)), (3, len(workers)), (4, len(workers))))
    inside = bool((steps[:, 1] <= steps[:, 2]).all() and (steps[:, 3] <= steps[:, 4]).all() and ((steps[:, 4] - steps[:, 3]) % width == 0).all())
    return [
        ("a counted step is none", _within(steps[:, 0], 0, max(len(e.phases), 1)) and ordered and inside),
        ("a counted vertex is none", _within(vertices[:, 0], 0, max(len(e.vertex_ids), 1)) and _within(vertices[:, 1], 0, max(len(workers), 1)) and _within(vertices[:, 2], 0, max(len(e.codelets), 1))),
        ("a counted worker has no load", _within(workers, 0, _LIMIT)),
        ("the origins of cycles are not those of the codelets", len(e.costs.origins) == len(e.codelets)),
    ]  # fmt: skip
