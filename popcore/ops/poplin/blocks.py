"""Matrices block by block: in which order a plan keeps them in memory, and on which tiles.

A matrix of ``[groups, rows, columns]`` is kept as its blocks, one after the other in order of group, part of the rows and part of the
columns; within a block in rows. Then each block is one run of neighbours, and so is what a vertex gets.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from popcore.graph import Graph, Tensor
from popcore.graph.regions import Regions, coalesce
from popcore.graph.tensor import from_regions
from popcore.program import Copy, Sequence
from popcore.types import Array, ElementType

SHARE = 64  # elements: an operand's block is shared out to tiles in pieces of at least that many, so that few are to be moved
SUM_SHARE = 16  # and a result's: the tiles that hold it add up the partial products
DIRECT = 16  # elements: vertices are connected to a tensor as it is if its blocks consist of runs at least so long


@dataclass(frozen=True, eq=False)
class Blocks:
    """The blocks of ``[groups, rows, columns]``, cut at ``row_cuts`` and ``column_cuts`` (from 0 to the end)."""

    groups: int
    row_cuts: Array
    column_cuts: Array

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.groups, int(self.row_cuts[-1]), int(self.column_cuts[-1])

    @property
    def numel(self) -> int:
        return self.groups * self.shape[1] * self.shape[2]

    @cached_property
    def heights(self) -> Array:
        return np.diff(self.row_cuts)

    @cached_property
    def widths(self) -> Array:
        return np.diff(self.column_cuts)

    @cached_property
    def size(self) -> Array:
        """int64[groups, row parts, column parts]: elements of each block."""
        return np.broadcast_to(self.heights[:, None] * self.widths[None], (self.groups, self.heights.size, self.widths.size))

    @cached_property
    def start(self) -> Array:
        """int64[groups, row parts, column parts]: where each block begins."""
        flat = self.size.reshape(-1)
        return (np.cumsum(flat) - flat).reshape(self.size.shape)

    def view(self, t: Tensor) -> Tensor:
        """The elements of ``t``, of ``shape``, as a vector in order of the blocks."""
        if self.widths.size == 1 or not self.numel:
            return t.flatten()  # rows are whole
        _, rows, columns = self.shape
        part = np.repeat(np.arange(self.heights.size), self.heights)
        row = np.repeat(np.arange(rows), self.widths.size)
        column = np.tile(np.arange(self.widths.size), rows)
        order = np.lexsort((row, column, part[row]))
        row, column = row[order], column[order]
        begin = row * columns + self.column_cuts[column]
        group = np.arange(self.groups)[:, None] * (rows * columns)
        begins = (group + begin).reshape(-1)
        lengths = np.tile(self.widths[column], self.groups)
        some = lengths > 0
        regions = t.regions().select(begins[some], lengths[some])
        return from_regions(t._variables(), t.dtype, (self.numel,), regions, t)

    def tensor(self, flat: Tensor) -> Tensor:
        """The opposite: ``flat`` is in order of the blocks, the result has ``shape``. Needs: ``flat`` to be one run."""
        if self.widths.size == 1 or not self.numel:
            return flat.reshape(self.shape)
        _, rows, _ = self.shape
        part = np.repeat(np.arange(self.heights.size), self.heights)
        inside = np.arange(rows) - self.row_cuts[part]
        begins = self.start[:, part, :] + inside[None, :, None] * self.widths[None, None, :]
        lengths = np.broadcast_to(self.widths, begins.shape)
        base = flat.regions().ids[0]
        made: Regions = coalesce(base + begins.reshape(-1), lengths.reshape(-1))
        return from_regions(flat._variables(), flat.dtype, self.shape, made, flat)

    def share_out(self, graph: Graph, flat: Tensor, tiles: Array, least: int) -> None:
        """Map each block of ``flat``, which is in their order, in equal shares to ``tiles``, int64[groups, row parts, column parts, shares]; of whole ``least`` elements."""
        shares = tiles.shape[-1]
        size = self.size.reshape(-1, 1)
        units = -(-size // least)
        ends = np.minimum(np.arange(1, shares + 1)[None] * units // shares * least, size)
        begins = np.hstack([np.zeros((size.size, 1), np.int64), ends[:, :-1]])
        length = (ends - begins).reshape(-1)
        begin = (self.start.reshape(-1, 1) + begins).reshape(-1)
        some = length > 0
        graph.map_intervals(flat, begin[some], length[some], tiles.reshape(-1)[some])

    def create(self, graph: Graph, dtype: ElementType, tiles: Array, name: str, least: int = SHARE) -> tuple[Tensor, Tensor]:
        """A new variable in this order, shared out to ``tiles``: as a vector, and as a tensor of ``shape``."""
        flat = graph.add_variable(dtype, (self.numel,), name=name)
        self.share_out(graph, flat, tiles, least)
        return flat, self.tensor(flat)

    def arranged(self, graph: Graph, t: Tensor, tiles: Array, prog: Sequence, name: str) -> Tensor:
        """A vector of the elements of ``t`` in this order.

        A view, if that consists of long enough runs; else a new variable shared out to ``tiles``, and a step that copies ``t`` there, so
        that short runs are moved once instead of once for every vertex.
        """
        view = self.view(t)
        if view.simple is not None or len(view.regions()) * DIRECT <= self.numel:
            return view
        flat, shaped = self.create(graph, t.dtype, tiles, name)
        prog.add(Copy(t, shaped, name=name))
        return flat
