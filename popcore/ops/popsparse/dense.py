"""Dense sides of a sparse product: operands cut into parts, results summed over parts of what is summed over."""

from __future__ import annotations

import numpy as np

from popcore.codelets.mat_mul import MatMulSumParts
from popcore.codelets.operations import FLOAT_TYPE
from popcore.graph import Graph, Tensor
from popcore.ops.poplin.blocks import Blocks, single
from popcore.ops.poplin.finish import finish
from popcore.ops.poplin.planned import typed
from popcore.program import Sequence
from popcore.types import FLOAT, Array, ElementType

_SHARE = 16  # elements: a part that several tiles hold is shared out to them in pieces of at least that many


def parts_of(row_cuts: Array, column_cuts: Array) -> Blocks:
    """A matrix cut into parts, each one run of neighbours."""
    return Blocks((single(1), row_cuts, column_cuts))


def create(graph: Graph, dtype: ElementType, parts: Blocks, tiles: Array, name: str) -> Tensor:
    """A new matrix in order of its parts, part (i, j) shared out to ``tiles[i, j]``, int64[rows, columns, shares]."""
    return parts.create(graph, dtype, tiles[None], name, _SHARE)[1][0]


def arranged(graph: Graph, t: Tensor, parts: Blocks, tiles: Array, prog: Sequence, name: str) -> Tensor:
    """The elements of a matrix in order of its parts: a view where that has long runs, else a copy."""
    return parts.arranged(graph, t.expand([0]), tiles[None], prog, name)


class Sums:
    """The parts of a result that tiles make, ``count`` of each, to be added up.

    Attributes:
        tensor: FLOAT, a vector: what vertices write to.
    """

    def __init__(self, graph: Graph, parts: Blocks, tiles: Array, dtype: ElementType, name: str) -> None:
        """tiles  int64[rows, columns, count]"""
        self.graph, self.parts, self.count, self.name = graph, parts, tiles.shape[-1], name
        _, self.result = parts.create(graph, dtype, tiles[None], name, _SHARE)
        self.flat = parts.view(self.result)
        self.direct = dtype is FLOAT and self.count == 1
        if self.direct:
            self.tensor = self.flat
            return
        self.tensor = graph.add_variable(FLOAT, (self.count * parts.numel,), name=f"{name}/partials")
        begin = np.arange(self.count)[:, None] * parts.numel + parts.start.reshape(1, -1)
        length = np.broadcast_to(parts.size.reshape(1, -1), begin.shape)
        some = length.reshape(-1) > 0
        owner = np.moveaxis(tiles, -1, 0)
        graph.map_intervals(self.tensor, begin.reshape(-1)[some], length.reshape(-1)[some], owner.reshape(-1)[some])

    def matrix(self, i: Array, j: Array, part: Array) -> tuple[Tensor, Array, Array, Array]:
        """What a matrix field of the vertices that make part (i, j), for the ``part``-th time, connects to."""
        return self.tensor, self.parts.start[0, i, j] + part * self.parts.numel, self.parts.widths[1][i], self.parts.widths[2][j]

    def finished(self, prog: Sequence) -> Tensor:
        """Add the step that sums; the result as a matrix."""
        if not self.direct and self.flat.num_elements:
            finish(self.graph, typed(MatMulSumParts, FLOAT_TYPE, self.flat.dtype), self.tensor, self.count, self.flat, prog, f"{self.name}/sum")
        return self.result[0]
