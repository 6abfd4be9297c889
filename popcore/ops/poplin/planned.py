"""What products and convolutions share once planned: where results live, partial sums and how they end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from popcore.codelets.mat_mul import MatMulAddParts, MatMulSumParts, MatMulZero
from popcore.codelets.operations import FLOAT_TYPE
from popcore.graph import Graph, Tensor
from popcore.ops.poplin.blocks import SUM_SHARE, Blocks
from popcore.ops.poplin.finish import add_sums, finish
from popcore.ops.poplin.plan import Plan
from popcore.ops.poplin.stages import stages
from popcore.program import Execute, Sequence
from popcore.types import Array, DTypeLike, ElementType, as_element_type


class Planned(ABC):
    """A plan with the blocks and tiles that follow from it. Tensors have the dimensions that the blocks have."""

    graph: Graph
    plan: Plan
    out: Blocks

    @property
    def nothing(self) -> bool:
        """Whether every sum is one of no products."""
        return self.plan.problem.empty

    @abstractmethod
    def multiply(self, a: Tensor, b: Tensor, out: Tensor, prog: Sequence, name: str) -> None:
        """Write the products of all parts of the sum to ``out``, a vector: parts one after the other, each in order of ``self.out``."""

    @property
    def out_tiles(self) -> Array:
        """int64[parts of the result's dimensions, parts of its sum]"""
        g, i, j, part = np.ogrid[: self.plan.problem.groups, : self.plan.row_parts, : self.plan.n_parts, : self.plan.sum_parts]
        return self.plan.tile(g, i, j, part).reshape(*self.out.size.shape, self.plan.sum_parts)

    def new_output(self, dtype: DTypeLike, name: str) -> Tensor:
        """A tensor for the result in order of the blocks, on the tiles that make them."""
        return self.out.create(self.graph, as_element_type(dtype), self.out_tiles, name, SUM_SHARE)[1]

    def put(self, a: Tensor, b: Tensor, out: Tensor, prog: Sequence, name: str) -> None:
        """Write the result to ``out``."""
        if not out.num_elements:
            return
        there = self.out.view(out)
        if self.nothing:
            finish(self.graph, typed(MatMulZero, out.dtype), None, 0, there, prog, f"{name}/zero")
            return
        plain = out.dtype is self.plan.problem.partials and self.plan.sum_parts == 1 and there.simple is not None
        if plain and not (out.intersects_with(a) or out.intersects_with(b)):
            self.multiply(a, b, there, prog, name)
            return
        parts, count = self._partials(a, b, prog, name)
        finish(self.graph, typed(MatMulSumParts, parts.dtype, out.dtype), parts, count, there, prog, f"{name}/sum")

    def add(self, a: Tensor, b: Tensor, out: Tensor, k: Any, prog: Sequence, name: str) -> None:
        """Add ``k`` times the result to ``out``; ``k`` is a number or a scalar tensor."""
        if not out.num_elements or self.nothing:
            return
        parts, count = self._partials(a, b, prog, name)
        codelet = typed(MatMulAddParts, parts.dtype, out.dtype, k.dtype if isinstance(k, Tensor) else FLOAT_TYPE)
        finish(self.graph, codelet, parts, count, self.out.view(out), prog, f"{name}/add", k=k)

    def _partials(self, a: Tensor, b: Tensor, prog: Sequence, name: str) -> tuple[Tensor, int]:
        """What the last stage adds up: sums one after the other, each in order of blocks; and how many."""
        count, numel = self.plan.sum_parts, self.out.numel
        parts = self.graph.add_variable(self.plan.problem.partials, (count * numel,), name=f"{name}/partials")
        tiles = np.moveaxis(self.out_tiles, -1, 0)
        begin = np.arange(count)[:, None] * numel + self.out.start.reshape(1, -1)
        length = np.broadcast_to(self.out.size.reshape(1, -1), begin.shape)
        some = length.reshape(-1) > 0
        self.graph.map_intervals(parts, begin.reshape(-1)[some], length.reshape(-1)[some], tiles.reshape(-1)[some])
        self.multiply(a, b, parts, prog, name)
        span = 1  # parts that each sum is of
        for depth in stages(count)[:-1]:
            span *= depth
            parts = self._added(parts, depth, span, prog, f"{name}/stage")
        return parts, parts.num_elements // max(numel, 1)

    def _added(self, parts: Tensor, depth: int, span: int, prog: Sequence, name: str) -> Tensor:
        """``depth`` sums at a time added up, on the tiles that made their ``span`` parts."""
        numel, tiles = self.out.numel, self.out_tiles
        count = -(-parts.num_elements // (depth * numel))
        made = self.graph.add_variable(parts.dtype, (count * numel,), name=name)
        step = self.graph.add_compute_set(name)
        for r in range(count):
            out, some = made[r * numel : (r + 1) * numel], parts[r * depth * numel : (r + 1) * depth * numel]
            self.out.share_out(self.graph, out, tiles[..., r * span : (r + 1) * span], SUM_SHARE)
            add_sums(self.graph, step, typed(MatMulSumParts, parts.dtype, parts.dtype), some, some.num_elements // numel, out)
        prog.add(Execute(step))
        return made


def typed(codelet: Any, *dtypes: ElementType) -> Any:
    """A generic codelet with its element types decided; what a type checker would take for an annotation."""
    return codelet[dtypes]
