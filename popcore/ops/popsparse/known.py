"""Products with a sparse matrix whose pattern is known when the graph is built.

Rows are cut into parts of about equal work; each tile gets the entries of its part and, of the dense operand, those rows that its entries
name. Nothing about the pattern is left to run time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from popcore.codelets.sparse import SparseBlocks, SparseElements, SparseElementsVector
from popcore.graph import Graph, Tensor
from popcore.graph.regions import coalesce, expand
from popcore.graph.tensor import from_regions
from popcore.ops.poplin.planned import typed
from popcore.ops.popsparse import dense
from popcore.ops.popsparse.formats import Blocks
from popcore.ops.popsparse.params import Settings, Sizes
from popcore.ops.popsparse.plan import Plan, plan, product_cycles
from popcore.program import Execute, Sequence
from popcore.target import Target
from popcore.types import UNSIGNED_INT, Array, ElementType

_ROW_WORK = 4  # entries that a row is worth without having any


@dataclass(frozen=True, eq=False)
class Layout:
    """A product by a matrix of known pattern: which entries each part has, and in which order.

    Attributes:
        pattern: The matrix as it is multiplied from the left (its values are not looked at).
        flipped: Values of a block lie column by column.
    """

    pattern: Blocks
    flipped: bool
    plan: Plan

    @cached_property
    def row_cuts(self) -> Array:
        """int64[m_parts + 1], in blocks: parts of about equal work."""
        work = np.bincount(self.pattern.rows, minlength=self.pattern.grid[0]) * max(1, self.plan.sizes.n // 2) + _ROW_WORK
        done = np.cumsum(work)
        inner = np.searchsorted(done, np.arange(1, self.plan.m_parts) * int(done[-1] if done.size else 0) / self.plan.m_parts)
        return np.concatenate(([0], inner, [self.pattern.grid[0]])).astype(np.int64)

    @cached_property
    def column_cuts(self) -> Array:
        """int64[k_parts + 1], in blocks."""
        return self.plan.k_cuts // self.plan.sides[1]

    @cached_property
    def bucket(self) -> Array:
        """int64[blocks]: row part times column parts plus column part."""
        i = np.searchsorted(self.row_cuts, self.pattern.rows, "right") - 1
        q = np.searchsorted(self.column_cuts, self.pattern.columns, "right") - 1
        made: Array = i * self.plan.k_parts + q
        return made

    @cached_property
    def order(self) -> Array:
        """int64[blocks]: the entries bucket by bucket, within each by row and column."""
        return np.argsort(self.bucket, kind="stable")

    @cached_property
    def count(self) -> Array:
        """int64[buckets]: entries of each."""
        return np.bincount(self.bucket, minlength=self.plan.buckets)

    @cached_property
    def first(self) -> Array:
        """int64[buckets]: the first entry of each."""
        return np.cumsum(self.count) - self.count

    @cached_property
    def starts(self) -> tuple[Array, Array, Array]:
        """Where the entries of each row of each bucket begin, and the last end: values one after the other, begin and length of each bucket's."""
        bucket, rows = self.bucket[self.order], self.pattern.rows[self.order]
        heights = np.diff(self.row_cuts)[np.arange(self.plan.buckets) // self.plan.k_parts]
        length = heights + 1
        begin = np.cumsum(length) - length
        flat = np.zeros(int(length.sum()) + 1, np.int64)
        np.add.at(flat, begin[bucket] + 1 + rows - self.row_cuts[bucket // self.plan.k_parts], 1)
        flat = np.cumsum(flat[:-1])
        return flat - np.repeat(self.first, length), begin, length

    @cached_property
    def needed(self) -> tuple[Array, Array, Array, Array]:
        """The block columns that buckets name, each once, bucket by bucket: those; begin and count of each bucket's; which one each entry names, within its bucket."""
        grid = max(1, self.pattern.grid[1])
        keys, which = np.unique(self.bucket[self.order] * grid + self.pattern.columns[self.order], return_inverse=True)
        count = np.bincount(keys // grid, minlength=self.plan.buckets)
        begin = np.cumsum(count) - count
        return keys % grid, begin, count, which - np.repeat(begin, self.count)


def layout_of(target: Target, pattern: Blocks, flipped: bool, n: int, dtype: ElementType, settings: Settings) -> Layout:
    """The layout of ``pattern`` times ``[k, n]``."""
    sizes = Sizes(*pattern.shape, n)
    return Layout(pattern, flipped, plan(target, sizes, pattern.sides, pattern.rows.size, dtype, settings, True))


def transposed(pattern: Blocks) -> tuple[Blocks, Array]:
    """The pattern of the transposed matrix, and which entry of ``pattern`` each of its entries is."""
    order = np.lexsort((pattern.rows, pattern.columns))
    made = replace(
        pattern, shape=pattern.shape[::-1], sides=pattern.sides[::-1], rows=pattern.columns[order], columns=pattern.rows[order], values=pattern.values[:0]
    )
    return made, order


def create_values(graph: Graph, layout: Layout, dtype: ElementType, name: str) -> Tensor:
    """The non-zero values, a vector in order of the layout, each bucket on its tile."""
    p = layout.plan
    made = graph.add_variable(dtype, (layout.order.size * p.area,), name=name)
    some = layout.count > 0
    if some.any():
        graph.map_intervals(made, layout.first[some] * p.area, layout.count[some] * p.area, p.bucket_tiles.reshape(-1)[some])
    return made


def multiply(graph: Graph, layout: Layout, values: Tensor, x: Tensor, prog: Sequence, name: str) -> Tensor:
    """``s @ x``: [m, n]. ``values`` are in order of the layout."""
    p, n = layout.plan, x.shape[1]
    n_cuts = p.n_cuts(n)
    result = dense.parts_of(layout.row_cuts * p.sides[0], n_cuts)
    i, q, j = np.indices((p.m_parts, p.k_parts, p.n_parts))
    sums = dense.Sums(graph, result, np.moveaxis(p.tile(i, q, j), 1, 2), x.dtype, name)
    if not result.numel:
        return sums.result[0]
    parts = dense.parts_of(np.array([0, p.sizes.k]), n_cuts)
    flat = dense.arranged(graph, x, parts, p.tile(i, q, j).transpose(2, 0, 1).reshape(1, p.n_parts, -1), prog, f"{name}/dense")
    i, q, j = (a.reshape(-1) for a in (i, q, j))
    live = (result.widths[1][i] > 0) & (result.widths[2][j] > 0)
    i, q, j = i[live], q[live], j[live]
    bucket = i * p.k_parts + q
    fields = {**_pattern_fields(graph, layout, bucket, name), "values": (values, layout.first[bucket] * p.area, layout.count[bucket] * p.area)}
    fields["x"] = _gathered(flat, layout, parts.start[0, 0], parts.widths[2], bucket, j)
    fields["y"] = sums.matrix(i, j, q)
    step = graph.add_compute_set(f"{name}/multiply")
    each = product_cycles(graph.target, x.dtype, p.sides, result.widths[1][i], layout.count[bucket], parts.widths[2][j], True)
    codelet: Any = SparseElements if p.sides == (1, 1) else SparseBlocks
    if p.sides == (1, 1) and n == 1:
        codelet = SparseElementsVector
        fields |= {name_of: (t, begin, height) for name_of, (t, begin, height, _) in (("x", fields["x"]), ("y", fields["y"]))}
    graph.add_vertices(step, typed(codelet, x.dtype), fields, p.tile(i, q, j), -(-each // graph.target.num_worker_contexts))
    prog.add(Execute(step))
    return sums.finished(prog)


def _pattern_fields(graph: Graph, layout: Layout, bucket: Array, name: str) -> dict[str, Any]:
    """Constants of the pattern, each bucket's on its tile."""
    p = layout.plan
    tiles = p.bucket_tiles.reshape(-1)
    starts, begin, length = layout.starts
    fields: dict[str, Any] = {"starts": (_constant(graph, starts, begin, length, tiles, f"{name}/starts"), begin[bucket], length[bucket])}
    columns = _constant(graph, layout.needed[3], layout.first, layout.count, tiles, f"{name}/columns")
    fields["columns"] = columns, layout.first[bucket], layout.count[bucket]
    if p.sides != (1, 1):
        height, width = p.sides
        fields |= {"height": height, "width": width, "down": 1 if layout.flipped else width, "right": height if layout.flipped else 1}
    return fields


def _constant(graph: Graph, values: Array, begin: Array, length: Array, tiles: Array, name: str) -> Tensor:
    made = graph.add_constant(UNSIGNED_INT, (values.size,), values.astype(np.uint32), name=name)
    some = length > 0
    if some.any():
        graph.map_intervals(made, begin[some], length[some], tiles[some])
    return made


def _gathered(flat: Tensor, layout: Layout, part_start: Array, part_width: Array, bucket: Array, j: Array) -> tuple[Tensor, Array, Array, Array]:
    """The rows of the dense operand that each vertex needs, of its part of the batch: what a matrix field connects to."""
    column, begin, count, _ = layout.needed
    side = layout.plan.sides[1]
    picked = expand(begin[bucket], count[bucket])
    vertex = np.repeat(np.arange(bucket.size), count[bucket])
    width = part_width[j]
    if not picked.size:
        none = np.zeros_like(bucket)
        return flat, none, none, width
    length = side * width[vertex]
    regions = flat.regions().select(part_start[j][vertex] + column[picked] * length, length)
    made = coalesce(regions.ids, regions.length)
    rows = count[bucket] * side
    return from_regions(flat._variables(), flat.dtype, (made.numel,), made, flat), np.cumsum(rows * width) - rows * width, rows, width
