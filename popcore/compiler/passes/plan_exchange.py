"""Plan what has to move around each step, and where every vertex finds its fields.

Takes   steps, and a Layout that says on which tile each element lives.
Gives   for each step the copies before it and after it, and for each vertex the place of each field.

A field whose elements lie together on the vertex's tile is used in place. Any other is gathered into an
exchange buffer on that tile: a plain exchange where elements come from other tiles, an on-tile rearrangement
where they only lie apart. Vertices of a tile that read the same elements share one buffer. A written field
is scattered back after the vertices have run.

Not here   choosing where data lives (the user's tile mapping does), and addresses (``plan_memory``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from popcore.codelet import Codelet
from popcore.compiler.edges import FieldEdges, Written, field_edges
from popcore.compiler.ir import ComputeStep, CopyStep, GroupPlan, HostStep, Layout, Moves, Places, Step, StepPlan, no_moves
from popcore.graph.vertex import VertexGroup
from popcore.types import Array

ALIGNMENT = 8  # bytes: what a 64-bit load needs, so every buffer starts at a multiple of it, or of more if a codelet asks


def plan_exchange(steps: Sequence[Step], layout: Layout) -> tuple[StepPlan, ...]:
    """Plan the copies of every step.

    Needs:  a graph that ``verify`` accepted.
    Gives:  within one list of copies no byte is written twice, and none is both read and written.
            Equal graphs give equal plans.
    """
    return tuple(_plan(step, layout) for step in steps)


def alignment_of(codelets: Iterable[Codelet]) -> int:
    """What slabs and buffers of vertices start at a multiple of."""
    return max([ALIGNMENT, *(f.align for codelet in codelets for f in codelet.fields)])


def _plan(step: Step, layout: Layout) -> StepPlan:
    match step:
        case ComputeStep():
            return _plan_compute(step, layout)
        case CopyStep():
            return _plan_copy(step, layout)
        case HostStep():
            _, places = layout.locate(step.regions)
            at = step.offset + np.cumsum(places.nbytes) - places.nbytes
            staging = np.full(len(at), layout.staging)
            moves = Moves(staging, at, places.slab, places.offset, places.nbytes)
            if step.direction == "out":
                moves = Moves(places.slab, places.offset, staging, at, places.nbytes)
            return StepPlan(moves, (), no_moves(), np.zeros(layout.num_tiles, np.int64))


def match_places(source: Places, target: Places) -> Moves:
    """Copies that take the bytes of ``source``, in order, to those of ``target``; as many bytes on both sides."""
    source_end, target_end = np.cumsum(source.nbytes), np.cumsum(target.nbytes)
    if np.array_equal(source_end, target_end):
        return Moves(source.slab, source.offset, target.slab, target.offset, target.nbytes)
    ends = np.union1d(source_end, target_end)
    begins = np.concatenate([[0], ends[:-1]])
    s, t = np.searchsorted(source_end, begins, "right"), np.searchsorted(target_end, begins, "right")
    source_offset = source.offset[s] + begins - (source_end - source.nbytes)[s]
    target_offset = target.offset[t] + begins - (target_end - target.nbytes)[t]
    return Moves(source.slab[s], source_offset, target.slab[t], target_offset, ends - begins)


def _plan_copy(step: CopyStep, layout: Layout) -> StepPlan:
    moves = match_places(layout.locate(step.source)[1], layout.locate(step.target)[1])
    none = np.zeros(layout.num_tiles, np.int64)
    if not _overlap(moves):
        return StepPlan(moves, (), no_moves(), none)
    # Source and target meet: all is read into buffers on the target's tiles before anything is written.
    tile = layout.tile_of(moves.target)
    offset, used = _stack(tile, _aligned(moves.nbytes), layout.num_tiles)
    buffer = layout.buffer_slab(tile)
    return StepPlan(
        Moves(moves.source, moves.source_offset, buffer, offset, moves.nbytes),
        (),
        Moves(buffer, offset, moves.target, moves.target_offset, moves.nbytes),
        used,
    )


def _overlap(moves: Moves) -> bool:
    """Whether a byte is both read and written."""
    if not np.intersect1d(moves.source, moves.target).size:
        return False
    order = np.lexsort((moves.target_offset, moves.target))
    slab, begin = moves.target[order], moves.target_offset[order]
    end = begin + moves.nbytes[order]
    span = int(max(end.max(), (moves.source_offset + moves.nbytes).max())) + 1
    found = np.searchsorted(slab * span + end, moves.source * span + moves.source_offset, "right")
    inside = found < len(slab)
    at = found[inside]
    return bool(((slab[at] == moves.source[inside]) & (begin[at] < (moves.source_offset + moves.nbytes)[inside])).any())


def _aligned(nbytes: Array, alignment: int = ALIGNMENT) -> Array:
    return -(-nbytes // alignment) * alignment


def _stack(tile: Array, nbytes: Array, num_tiles: int, already: Array | None = None) -> tuple[Array, Array]:
    """Place pieces one after another on each tile.

    Returns: the offset of each piece, and int64[num_tiles] of bytes in use on each tile after.
    """
    already = np.zeros(num_tiles, np.int64) if already is None else already
    order = np.argsort(tile, kind="stable")
    sizes, where = nbytes[order], tile[order]
    before = np.cumsum(sizes) - sizes
    first = np.searchsorted(where, where, "left") if len(where) else where
    offset = np.empty(len(tile), np.int64)
    offset[order] = before - before[first] + already[where] if len(where) else before
    return offset, already + np.bincount(tile, weights=nbytes, minlength=num_tiles).astype(np.int64)


@dataclass
class _Buffers:
    """The exchange buffers of one compute set as they are handed out."""

    layout: Layout
    used: Array
    alignment: int
    before: list[Moves] = field(default_factory=list)
    keeping: list[Moves] = field(default_factory=list)
    after: list[Moves] = field(default_factory=list)


def _plan_compute(step: ComputeStep, layout: Layout) -> StepPlan:
    buffers = _Buffers(layout, np.zeros(layout.num_tiles, np.int64), alignment_of(step.compute_set.groups))
    groups = tuple(_plan_group(group, buffers) for group in step.compute_set.groups.values())
    keeping = _join(buffers.keeping)
    return StepPlan(_join([*buffers.before, keeping]), groups, _join(buffers.after), buffers.used, len(keeping))


def _join(parts: Sequence[Moves]) -> Moves:
    if not parts:
        return no_moves()
    names = ("source", "source_offset", "target", "target_offset", "nbytes")
    return Moves(*(np.concatenate([getattr(p, name) for p in parts]) for name in names))


def _plan_group(group: VertexGroup, buffers: _Buffers) -> GroupPlan:
    tiles = np.asarray(group.tile)
    order = np.argsort(tiles, kind="stable")
    tile = tiles[order]
    slab, offset, sizes, pieces = {}, {}, {}, {}
    edges_of = {f.name: field_edges(group, f, order) for f in group.codelet.fields}
    written = Written.by([edges_of[f.name] for f in group.codelet.fields if f.writes])
    for f in group.codelet.fields:
        edges = edges_of[f.name]
        fetched = buffers.keeping if f.direction == "out" else buffers.before
        edge_slab, edge_offset = _place_edges(edges, tile[edges.vertex], None if f.writes else written, buffers, fetched, f.align)
        if f.shape == "list":
            first = np.searchsorted(edges.vertex, np.arange(len(order) + 1), "left")
            pieces[f.name] = (first, edge_slab, edge_offset, edges.elements)
            sizes[f.name] = np.diff(first)
            continue
        slab[f.name], offset[f.name] = edge_slab, edge_offset
        sizes[f.name] = edges.elements if edges.rows is None else np.stack([edges.rows, edges.elements // np.maximum(edges.rows, 1)], 1)
    return GroupPlan(order, tile, slab, offset, sizes, pieces)


def _place_edges(edges: FieldEdges, tile: Array, written: Written | None, buffers: _Buffers, fetched: list[Moves], align: int = 0) -> tuple[Array, Array]:
    """The place of each edge; those that do not lie together on their tile get a buffer and copies, those into it in ``fetched``.

    ``written`` is None for a field that writes. For one that reads it is what its group's vertices write: an edge
    that meets it gets a buffer too, so that it is read as it was before the compute set, whatever order a loop has.
    So does an edge whose address would not be a multiple of ``align``: that of its slab is.

    Returns: int64[e] slab (-1: no elements) and offset.
    """
    layout = buffers.layout
    run, places = layout.locate(edges.runs)
    edge = edges.edge_of_run[run]
    joined, where = _coalesce(edge, places)
    edge, places = edge[joined], where
    slab, offset = np.full(len(tile), -1, np.int64), np.zeros(len(tile), np.int64)
    alone = np.bincount(edge, minlength=len(tile))[edge] == 1
    direct = alone & (layout.tile_of(places.slab) == tile[edge])
    if align:
        direct &= places.offset % align == 0
    if written is not None:
        meets = np.zeros(len(tile), bool)
        meets[edges.edge_of_run[written.meets(edges.runs.ids, edges.runs.length) >= 0]] = True
        direct &= ~meets[edge]
    writes = written is None
    slab[edge[direct]], offset[edge[direct]] = places.slab[direct], places.offset[direct]
    apart = ~direct
    if not apart.any():
        return slab, offset
    edge, places = edge[apart], places[apart]
    gathered, first, piece_edge = np.unique(edge, return_index=True, return_inverse=True)
    nbytes = np.add.reduceat(places.nbytes, first)
    shared = np.arange(len(gathered)) if writes else _share(tile[gathered], first, piece_edge, places)
    owners = np.unique(shared)
    at, buffers.used = _stack(tile[gathered[owners]], _aligned(nbytes[owners], buffers.alignment), layout.num_tiles, buffers.used)
    start = np.zeros(len(gathered), np.int64)
    start[owners] = at
    start = start[shared]
    slab[gathered], offset[gathered] = layout.buffer_slab(tile[gathered]), start
    within = np.cumsum(places.nbytes) - places.nbytes
    within = within - within[first][piece_edge] + start[piece_edge]
    kept = np.isin(piece_edge, owners)
    buffer = layout.buffer_slab(tile[edge])
    fetched.append(Moves(places.slab[kept], places.offset[kept], buffer[kept], within[kept], places.nbytes[kept]))
    if writes:
        buffers.after.append(Moves(buffer, within, places.slab, places.offset, places.nbytes))
    return slab, offset


def _coalesce(owner: Array, places: Places) -> tuple[Array, Places]:
    """Join neighbours of one owner that lie one after the other. Returns the first of each, and the joined."""
    if len(owner) < 2:
        return np.arange(len(owner)), places
    end = places.offset + places.nbytes
    new = np.ones(len(owner), bool)
    new[1:] = (owner[1:] != owner[:-1]) | (places.slab[1:] != places.slab[:-1]) | (places.offset[1:] != end[:-1])
    first = np.flatnonzero(new)
    return first, Places(places.slab[first], places.offset[first], np.add.reduceat(places.nbytes, first))


def _share(tile: Array, first: Array, piece_edge: Array, places: Places) -> Array:
    """For each gathered edge the first one on its tile that gathers the same pieces."""
    counts = np.diff(np.append(first, len(piece_edge)))
    shared = np.arange(len(tile))
    for count in np.unique(counts).tolist():
        which = np.flatnonzero(counts == count)
        index = first[which][:, None] + np.arange(count)
        parts = (tile[which][:, None], places.slab[index], places.offset[index], places.nbytes[index])
        rows = np.ascontiguousarray(np.hstack(parts).astype(np.int64))
        keys = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
        _, leader, inverse = np.unique(keys, return_index=True, return_inverse=True)
        shared[which] = which[leader[inverse]]
    return shared
