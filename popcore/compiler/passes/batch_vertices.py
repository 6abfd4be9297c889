"""Write the vertices of each compute set down as tables, one for all tiles whose vertices are alike.

Most graphs place the same vertices at the same addresses of many tiles; such a *tile class* has one table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from popcore.codelet import Codelet
from popcore.compiler.ir import ComputeStep, GroupPlan, Layout, MemoryPlan, Step, StepPlan
from popcore.executable.opcodes import ROW_WORDS
from popcore.types import Array


@dataclass
class VertexTables:
    """Tables that grow while phases are emitted; see ``executable.opcodes``."""

    batches: list[list[int]] = field(default_factory=list)
    tiles: list[Array] = field(default_factory=list)
    rows: list[Array] = field(default_factory=list)
    tiles_used: int = 0
    rows_used: int = 0
    vertices: int = 0
    vertex_ids: list[Array] = field(default_factory=list)

    def add(self, codelet: int, tiles: Array, table: Array, vertices: Array, work: int) -> None:
        """Add a batch: ``tiles`` share ``table`` (int32); ``vertices``, int64[tiles, count], are the numbers of theirs."""
        count = vertices.shape[1]
        self.batches.append([codelet, self.tiles_used, len(tiles), self.rows_used, count, self.vertices, work, 0])
        self.vertices += vertices.size
        self.vertex_ids.append(vertices.ravel().astype(np.int32))
        self.tiles.append(tiles.astype(np.int32))
        self.rows.append(table.astype(np.int32))
        self.tiles_used += len(tiles)
        self.rows_used += len(table)

    def finish(self) -> tuple[Array, Array, Array, Array]:
        """``batches``, ``tiles``, ``rows``, ``vertex_ids``."""
        batches = np.array(self.batches, np.int64).reshape(-1, 8)
        none = np.zeros(0, np.int32)
        tiles, rows, ids = (np.concatenate([none, *parts]) for parts in (self.tiles, self.rows, self.vertex_ids))
        return batches, tiles, rows, ids


def batch_vertices(
    steps: Sequence[Step], plans: Sequence[StepPlan], layout: Layout, memory: MemoryPlan, codelets: Sequence[Codelet]
) -> tuple[VertexTables, list[tuple[int, int]]]:
    """Make the tables of all compute sets.

    Gives:  for each step the range of its batches. Within a tile vertices keep the order they were added in.
    Costs:  a sort of the vertices of each codelet; Python objects only per tile class.
    """
    tables = VertexTables()
    number = {c: i for i, c in enumerate(codelets)}
    ranges: list[tuple[int, int]] = []
    for step, plan in zip(steps, plans, strict=True):
        begin = len(tables.batches)
        if isinstance(step, ComputeStep):
            for codelet, group in zip(step.compute_set.groups, plan.groups, strict=True):
                _batch_group(tables, number[codelet], codelet, group, layout, memory)
        ranges.append((begin, len(tables.batches)))
    return tables, ranges


def _batch_group(tables: VertexTables, number: int, codelet: Codelet, group: GroupPlan, layout: Layout, memory: MemoryPlan) -> None:
    if not len(group.tile):
        return
    rows, work = _rows(codelet, group, layout, memory)
    tile, first, counts = np.unique(group.tile, return_index=True, return_counts=True)
    if any(f.shape == "list" for f in codelet.fields):
        _batch_lists(tables, number, codelet, group, rows, work, (tile, first, counts), layout, memory)
        return
    for count in np.unique(counts).tolist():
        which = np.flatnonzero(counts == count)
        index = first[which][:, None] + np.arange(count)
        blocks = np.ascontiguousarray(rows[index].reshape(len(which), -1))
        if blocks.shape[1] == 0:  # a codelet without fields
            tables.add(number, tile[which], blocks[0], group.vertices[index], 0)
            continue
        keys = blocks.view(np.dtype((np.void, blocks.dtype.itemsize * blocks.shape[1]))).ravel()
        _, leader, inverse = np.unique(keys, return_index=True, return_inverse=True)
        by_class = np.argsort(inverse, kind="stable")
        bounds = np.searchsorted(inverse[by_class], np.arange(len(leader) + 1))
        for kind in np.argsort(leader, kind="stable").tolist():
            members = by_class[bounds[kind] : bounds[kind + 1]]
            tables.add(number, tile[which[members]], blocks[leader[kind]], group.vertices[index[members]], int(work[index[leader[kind]]].sum()))


def _rows(codelet: Codelet, group: GroupPlan, layout: Layout, memory: MemoryPlan) -> tuple[Array, Array]:
    """The row of each vertex, int32[n, words], list fields left zero; and the bytes of its fields."""
    count = len(group.tile)
    columns: list[Array] = []
    work = np.zeros(count, np.int64)
    base = memory.tile_base[group.tile]
    for f in codelet.fields:
        if f.shape == "list":
            columns += [np.zeros(count, np.int64)] * ROW_WORDS["list"]
            first, _, _, elements = group.pieces[f.name]
            total = np.concatenate([[0], np.cumsum(elements)])
            work += (total[first[1:]] - total[first[:-1]]) * f.dtype.nbytes
            continue
        local = local_address(group.slab[f.name], group.offset[f.name], base, memory)
        sizes = group.sizes[f.name].reshape(count, -1)
        columns.append(local)
        if f.shape != "scalar":
            columns += list(sizes.T)
        work += sizes.prod(axis=1) * f.dtype.nbytes
    rows = np.stack(columns, 1) if columns else np.zeros((count, 0), np.int64)
    return rows.astype(np.int32), work


def local_address(slab: Array, offset: Array, base: Array, memory: MemoryPlan) -> Array:
    """Bytes from the start of the tile; 0 for fields without elements."""
    return np.where(slab >= 0, memory.address[np.maximum(slab, 0)] + offset - base, 0)


def _batch_lists(
    tables: VertexTables,
    number: int,
    codelet: Codelet,
    group: GroupPlan,
    rows: Array,
    work: Array,
    per_tile: tuple[Array, Array, Array],
    layout: Layout,
    memory: MemoryPlan,
) -> None:
    """The same where vertices have lists of pieces: a table per tile, then those that are equal are joined."""
    at, list_columns = 0, []
    pieces: list[tuple[Array, Array, Array]] = []
    for f in codelet.fields:
        if f.shape == "list":
            first, slab, offset, elements = group.pieces[f.name]
            owner = np.repeat(np.arange(len(group.tile)), np.diff(first))
            local = local_address(slab, offset, memory.tile_base[group.tile][owner], memory)
            list_columns.append(at)
            pieces.append((first, local, elements))
        at += ROW_WORDS[f.shape]
    classes: dict[bytes, tuple[Array, int, list[int], list[Array]]] = {}
    for tile, begin, count in zip(*(a.tolist() for a in per_tile), strict=True):
        block = rows[begin : begin + count].copy()
        tail: list[Array] = []
        where = block.size
        for column, (first, local, elements) in zip(list_columns, pieces, strict=True):
            for row in range(count):
                low, high = int(first[begin + row]), int(first[begin + row + 1])
                block[row, column], block[row, column + 1] = where, high - low
                tail.append(np.stack([local[low:high], elements[low:high]], 1).ravel())
                where += 2 * (high - low)
        table = np.concatenate([block.ravel(), *tail]).astype(np.int32)
        known = classes.setdefault(table.tobytes(), (table, int(work[begin : begin + count].sum()), [], []))
        known[2].append(tile)
        known[3].append(group.vertices[begin : begin + count])
    for table, nbytes, tiles, vertices in classes.values():
        tables.add(number, np.array(tiles, np.int32), table, np.stack(vertices), nbytes)
