"""Give every slab an address on its tile, and check that the tile has room for it.

Variables whose lives do not meet share memory. All steps share one area a tile for exchange buffers, since a
buffer lives for one step only. What is no data (code, stacks, vertex state, exchange code) is estimated and
counted against the limit, but has no address here.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from popcore.codelet import Codelet
from popcore.compiler.ir import Code, ComputeStep, HostStep, Layout, MemoryPlan, Moves, StepPlan
from popcore.compiler.passes.interleaved import check_interleaved, find_interleaved
from popcore.compiler.passes.liveness import ALWAYS
from popcore.compiler.passes.plan_exchange import alignment_of
from popcore.errors import OutOfTileMemoryError
from popcore.graph import Graph
from popcore.target import Target
from popcore.types import Array

CACHE_LINE = 64  # bytes of the host: tiles start on one, so that threads never share one
STACK_BYTES = 1024  # of the supervisor and each worker together: an estimate
RUNTIME_BYTES = 2048  # the control program's share that every tile holds: an estimate
CODELET_BYTES = 400  # code of one codelet: an estimate
EXCHANGE_CODE_PER_MESSAGE = 8  # bytes: two instructions a message at each end, an estimate
VERTEX_POINTER_BYTES = {"scalar": 4, "vector": 8, "matrix": 12, "list": 8}  # 32-bit pointer and counts of each field


def plan_memory(
    graph: Graph, code: Code, layout: Layout, lives: Array, plans: Sequence[StepPlan], codelets: Sequence[Codelet], allow_overflow: bool
) -> MemoryPlan:
    """Place slabs, largest needs checked last.

    Needs:  ``lives`` from ``find_lives``; plans of all steps.
    Gives:  slabs alive together never share a byte; every slab and buffer area starts at a multiple of 8, or of what a codelet asks for.
            What has to be interleaved lies after what has not. Equal inputs, equal plans.
    Raises: OutOfTileMemoryError, naming the tile and its largest tenants, unless ``allow_overflow``.
    """
    tiles = layout.num_tiles
    slot = _share_slots(graph, layout, lives)
    alignment = alignment_of(codelets)
    interleaved = find_interleaved(code, layout, plans)
    local, data_bytes = _place_in_slots(layout, slot, alignment, interleaved.slabs)
    buffers = np.zeros(tiles, np.int64)
    for plan in plans:
        np.maximum(buffers, plan.buffer_bytes, out=buffers)
    tile_bytes = data_bytes + buffers
    by_category = {"variables": data_bytes, "exchange buffers": buffers, **_overheads(code, layout, plans, codelets)}
    if not allow_overflow:
        _check_limit(graph, layout, lives, slot, by_category, graph.target)
        check_interleaved(graph, layout, slot, interleaved)
    line = max(CACHE_LINE, alignment)
    padded = -(-tile_bytes // line) * line
    tile_base = np.cumsum(padded) - padded
    staging = int(padded.sum())
    staging_bytes = _staging_bytes(code)
    address = np.concatenate([tile_base[layout.slab_tile] + local, tile_base + data_bytes, [staging]]).astype(np.int64)
    return MemoryPlan(address, tile_base, tile_bytes, staging_bytes, staging + staging_bytes, by_category)


def _staging_bytes(code: Code) -> int:
    ends = [step.offset + step.nbytes for step in code.steps if isinstance(step, HostStep)]
    for request in code.yields:
        if request.dtype is not None:
            ends.append(int(np.prod(request.shape, dtype=np.int64)) * request.dtype.nbytes)
    return -(-max(ends, default=0) // CACHE_LINE) * CACHE_LINE + CACHE_LINE


def _share_slots(graph: Graph, layout: Layout, lives: Array) -> Array:
    """A slot for each variable; two variables have one slot only if their lives do not meet.

    Returns: int64[variables]
    """
    slot = np.arange(len(graph.variables))
    nbytes = np.bincount(layout.slab_variable, weights=layout.slab_bytes, minlength=len(slot)).astype(np.int64)
    mortal: list[int] = np.flatnonzero((lives[:, 0] != ALWAYS) & (nbytes > 0)).tolist()
    mortal.sort(key=lambda v: (int(lives[v, 0]), -int(nbytes[v]), v))
    free: list[tuple[int, int]] = []  # (last instruction, variable whose slot it is)
    for v in mortal:
        fitting = [i for i, (last, _) in enumerate(free) if last < lives[v, 0]]
        if fitting:
            best = min(fitting, key=lambda i: (abs(int(nbytes[free[i][1]] - nbytes[v])), free[i][1]))
            slot[v] = free[best][1]
            free[best] = (int(lives[v, 1]), free[best][1])
        else:
            free.append((int(lives[v, 1]), v))
    return slot


def _place_in_slots(layout: Layout, slot: Array, alignment: int, interleaved: Array) -> tuple[Array, Array]:
    """Bytes from the tile's start of each slab, and bytes in use of each tile. The ``interleaved`` come last, as their region does."""
    tiles = layout.num_tiles
    size = -(-layout.slab_bytes // alignment) * alignment
    used_by = slot[layout.slab_variable]
    last = np.zeros(len(slot), bool)
    last[used_by[interleaved]] = True
    key = (2 * layout.slab_tile.astype(np.int64) + last[used_by]) * (len(slot) + 1) + used_by
    places, inverse = np.unique(key, return_inverse=True)
    largest = np.zeros(len(places), np.int64)
    np.maximum.at(largest, inverse, size)
    tile = places // (2 * (len(slot) + 1))
    before = np.cumsum(largest) - largest
    first = np.searchsorted(tile, tile, "left") if len(tile) else tile
    local = before - before[first] if len(tile) else before
    used = np.bincount(tile, weights=largest, minlength=tiles).astype(np.int64)
    return local[inverse] if len(places) else np.zeros(0, np.int64), used


def _overheads(code: Code, layout: Layout, plans: Sequence[StepPlan], codelets: Sequence[Codelet]) -> dict[str, Array]:
    """Estimated bytes of each tile that are not data, by what they are."""
    tiles = layout.num_tiles
    state, messages = np.zeros(tiles, np.int64), np.zeros(tiles, np.int64)
    has = np.zeros((tiles, len(codelets)), bool)
    number = {c: i for i, c in enumerate(codelets)}
    for step, plan in zip(code.steps, plans, strict=True):
        for moves in (plan.before, plan.after):
            messages += _messages(moves, layout)
        if not isinstance(step, ComputeStep):
            continue
        for group, placed in zip(step.compute_set.groups.values(), plan.groups, strict=True):
            per_vertex = 4 + sum(VERTEX_POINTER_BYTES[f.shape] for f in group.codelet.fields)
            state += np.bincount(placed.tile, minlength=tiles) * per_vertex
            has[placed.tile, number[group.codelet]] = True
    any_use = (state > 0) | (messages > 0) | (np.bincount(layout.slab_tile, minlength=tiles) > 0)
    return {
        "vertex state": state,
        "code": has.sum(axis=1) * CODELET_BYTES + any_use * RUNTIME_BYTES,
        "exchange code": messages * EXCHANGE_CODE_PER_MESSAGE,
        "stack": any_use * STACK_BYTES,
    }


def _messages(moves: Moves, layout: Layout) -> Array:
    """Messages that each tile sends or receives, int64[tiles]: runs of bytes that stay contiguous with one partner."""
    ends = np.zeros(layout.num_tiles + 1, np.int64)
    source, target = layout.tile_of(moves.source), layout.tile_of(moves.target)
    away = source != target
    if not away.any():
        return ends[:-1]
    moves, source, target = moves[away], source[away], target[away]
    order = np.lexsort((moves.target_offset, moves.target))
    slab, offset = moves.target[order], moves.target_offset[order]
    end = offset + moves.nbytes[order]
    new = np.ones(len(order), bool)
    new[1:] = (slab[1:] != slab[:-1]) | (offset[1:] != end[:-1]) | (source[order][1:] != source[order][:-1])
    ends += np.bincount(target[order][new], minlength=len(ends))
    ends += np.bincount(source[moves.sent_once()], minlength=len(ends))
    return ends[:-1]


def _check_limit(graph: Graph, layout: Layout, lives: Array, slot: Array, by_category: dict[str, Array], target: Target) -> None:
    total = sum(by_category.values(), np.zeros(layout.num_tiles, np.int64))
    executable = sum(region.nbytes for region in target.memory_regions if region.executable)
    instructions = by_category["code"] + by_category["exchange code"]
    fullest = int(np.argmax(instructions))
    if instructions[fullest] > executable:
        rows = sorted(((f"({name})", int(by_category[name][fullest])) for name in ("code", "exchange code")), key=lambda row: -row[1])
        raise OutOfTileMemoryError(tile=fullest, needed=int(instructions[fullest]), available=executable, largest=rows)
    tile = int(np.argmax(total))
    if total[tile] <= target.bytes_per_tile:
        return
    here = np.flatnonzero(layout.slab_tile == tile)
    tenants: dict[int, tuple[str, int]] = {}
    for slab in here.tolist():  # of the variables that share a slot the largest counts
        variable = graph.variables[layout.slab_variable[slab]]
        size, key = int(layout.slab_bytes[slab]), int(slot[variable.id])
        if size > tenants.get(key, ("", -1))[1]:
            tenants[key] = (f"{variable.name} ({variable.site})", size)
    rows = [*tenants.values(), *((f"({name})", int(sizes[tile])) for name, sizes in by_category.items() if name != "variables" and sizes[tile])]
    rows.sort(key=lambda row: (-row[1], row[0]))
    raise OutOfTileMemoryError(tile=tile, needed=int(total[tile]), available=target.bytes_per_tile, largest=rows)
