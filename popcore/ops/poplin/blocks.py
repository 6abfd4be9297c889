"""A tensor block by block: in which order a plan keeps it in memory, and on which tiles.

It is kept as its blocks, one after the other in order of their numbers; within a block in rows. Then each block is one run of
neighbours, and so is what a vertex gets.
"""

from __future__ import annotations

import math
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
    """The blocks of a tensor, each dimension cut at some places (from 0 to its end)."""

    cuts: tuple[Array, ...]

    @cached_property
    def shape(self) -> tuple[int, ...]:
        return tuple(int(c[-1]) for c in self.cuts)

    @property
    def numel(self) -> int:
        return math.prod(self.shape)

    @cached_property
    def widths(self) -> tuple[Array, ...]:
        """Of each dimension, how long its parts are."""
        return tuple(np.diff(c) for c in self.cuts)

    @cached_property
    def size(self) -> Array:
        """int64[parts of each dimension]: elements of each block."""
        made = np.ones((), np.int64)
        for w in self.widths:
            made = made[..., None] * w
        return made

    @cached_property
    def start(self) -> Array:
        """int64[parts of each dimension]: where each block begins."""
        flat = self.size.reshape(-1)
        return (np.cumsum(flat) - flat).reshape(self.size.shape)

    @cached_property
    def _rows(self) -> tuple[Array, Array]:
        """Where each row of a block is kept, and its length; in the order of the tensor."""
        *outer, last = self.widths
        within, parts = np.zeros((), np.int64), []
        for cuts, width in zip(self.cuts, outer, strict=False):
            part = np.repeat(np.arange(width.size), width)
            parts.append(part)
            within = within[..., None] * width[part] + np.arange(cuts[-1]) - cuts[part]
        begin = self.start[np.ix_(*parts, np.arange(last.size))] + within[..., None] * last
        length = np.broadcast_to(last, begin.shape).reshape(-1)
        some = length > 0
        return begin.reshape(-1)[some], length[some]

    @property
    def _plain(self) -> bool:
        """Whether the order is that of the tensor: only the first dimension that is longer than 1 is cut."""
        long = [c.size > 2 for c, n in zip(self.cuts, self.shape, strict=True) if n != 1]
        return not any(long[1:]) or not self.numel

    def view(self, t: Tensor) -> Tensor:
        """The elements of ``t``, of ``shape``, as a vector in order of the blocks."""
        if self._plain:
            return t.flatten()
        kept, length = self._rows
        order = np.argsort(kept)
        regions = t.regions().select((np.cumsum(length) - length)[order], length[order])
        return from_regions(t._variables(), t.dtype, (self.numel,), regions, t)

    def tensor(self, flat: Tensor) -> Tensor:
        """The opposite: ``flat`` is in order of the blocks, the result has ``shape``. Needs: ``flat`` to be one run."""
        if self._plain:
            return flat.reshape(self.shape)
        kept, length = self._rows
        made: Regions = coalesce(flat.regions().ids[0] + kept, length)
        return from_regions(flat._variables(), flat.dtype, self.shape, made, flat)

    def share_out(self, graph: Graph, flat: Tensor, tiles: Array, least: int) -> None:
        """Map each block of ``flat``, which is in their order, in equal shares to ``tiles``, int64[parts of each dimension, shares]; of whole ``least`` elements."""
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

    def is_direct(self, view: Tensor) -> bool:
        """Whether ``view``, a vector in order of the blocks, consists of runs long enough to connect vertices to."""
        return view.simple is not None or len(view.regions()) * DIRECT <= self.numel

    def arranged(self, graph: Graph, t: Tensor, tiles: Array, prog: Sequence, name: str) -> Tensor:
        """A vector of the elements of ``t`` in this order.

        A view, if that consists of long enough runs; else a new variable shared out to ``tiles``, and a step that copies ``t`` there, so
        that short runs are moved once instead of once for every vertex.
        """
        view = self.view(t)
        if self.is_direct(view):
            return view
        flat, shaped = self.create(graph, t.dtype, tiles, name)
        prog.add(Copy(t, shaped, name=name))
        return flat


def whole(length: int) -> Array:
    """The cuts of a dimension that is one part."""
    return np.array([0, length], np.int64)


def single(length: int) -> Array:
    """The cuts of a dimension in which every index is a part."""
    return np.arange(length + 1, dtype=np.int64)
