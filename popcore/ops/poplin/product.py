"""A product as planned: operands as blocks, multiplying vertices for each serial step, sums of the parts of k."""

from __future__ import annotations

from typing import Any

import numpy as np

from popcore.codelets.mat_mul import MatMulAddBlock, MatMulAddParts, MatMulBlock, MatMulHalfAddBlock, MatMulHalfBlock, MatMulSumParts, MatMulZero
from popcore.graph import Graph, Tensor
from popcore.ops.poplin.blocks import SUM_SHARE, Blocks
from popcore.ops.poplin.cost import product_cycles
from popcore.ops.poplin.finish import finish
from popcore.ops.poplin.params import Sizes
from popcore.ops.poplin.plan import Plan, plan
from popcore.program import Execute, Sequence
from popcore.types import FLOAT, HALF, Array, DTypeLike, ElementType, as_element_type


class Product:
    """A plan with the blocks and tiles that follow from it."""

    def __init__(self, graph: Graph, sizes: Sizes, dtype: ElementType, sums: bool, proportion: float) -> None:
        self.graph, self.dtype = graph, dtype
        self.plan: Plan = plan(graph.target, sizes.groups, sizes.m, sizes.k, sizes.n, dtype, sums, proportion)
        p = self.plan
        self.a = Blocks(p.groups, p.m_cuts, p.k_cuts)
        self.b = Blocks(p.groups, p.k_cuts, p.n_cuts)
        self.c = Blocks(p.groups, p.m_cuts, p.n_cuts)

    @property
    def a_tiles(self) -> Array:
        """int64[groups, m parts, k blocks, n parts]: the tiles that use each block of the left operand."""
        g, i, q, j = np.ogrid[: self.plan.groups, : self.plan.m_parts, : self.a.widths.size, : self.plan.n_parts]
        return self.plan.tile(g, i, j, q // self.plan.serial)

    @property
    def b_tiles(self) -> Array:
        """int64[groups, k blocks, n parts, m parts]"""
        g, q, j, i = np.ogrid[: self.plan.groups, : self.b.heights.size, : self.plan.n_parts, : self.plan.m_parts]
        return self.plan.tile(g, i, j, q // self.plan.serial)

    @property
    def c_tiles(self) -> Array:
        """int64[groups, m parts, n parts, k parts]"""
        g, i, j, part = np.ogrid[: self.plan.groups, : self.plan.m_parts, : self.plan.n_parts, : self.plan.k_parts]
        return self.plan.tile(g, i, j, part)

    def put(self, a: Tensor, b: Tensor, out: Tensor, prog: Sequence, name: str) -> None:
        """out = a @ b, all of rank 3."""
        if not out.num_elements:
            return
        if not self.plan.k:
            finish(self.graph, typed(MatMulZero, out.dtype), None, 0, self.c.view(out), prog, f"{name}/zero")
            return
        there = self.c.view(out)
        plain = out.dtype is FLOAT and self.plan.k_parts == 1 and there.simple is not None
        if plain and not (out.intersects_with(a) or out.intersects_with(b)):
            self._multiply(a, b, there, prog, name)
            return
        parts = self._partials(a, b, prog, name)
        finish(self.graph, typed(MatMulSumParts, out.dtype), parts, self.plan.k_parts, there, prog, f"{name}/sum")

    def add(self, a: Tensor, b: Tensor, out: Tensor, k: Any, prog: Sequence, name: str) -> None:
        """out += k * (a @ b), all of rank 3; ``k`` is a number or a scalar tensor."""
        if not out.num_elements or not self.plan.k:
            return
        parts = self._partials(a, b, prog, name)
        codelet = typed(MatMulAddParts, out.dtype, k.dtype if isinstance(k, Tensor) else as_element_type("float"))
        finish(self.graph, codelet, parts, self.plan.k_parts, self.c.view(out), prog, f"{name}/add", k=k)

    def _partials(self, a: Tensor, b: Tensor, prog: Sequence, name: str) -> Tensor:
        """The products of each part of k, one after the other, each in order of blocks."""
        count, numel = self.plan.k_parts, self.c.numel
        parts = self.graph.add_variable(FLOAT, (count * numel,), name=f"{name}/partials")
        tiles = np.moveaxis(self.c_tiles, -1, 0)
        begin = np.arange(count)[:, None] * numel + self.c.start.reshape(1, -1)
        length = np.broadcast_to(self.c.size.reshape(1, -1), begin.shape)
        self.graph.map_intervals(parts, begin.reshape(-1), length.reshape(-1), tiles.reshape(-1))
        self._multiply(a, b, parts, prog, name)
        return parts

    def _multiply(self, a: Tensor, b: Tensor, out: Tensor, prog: Sequence, name: str) -> None:
        """Write the products of all parts of k to ``out``, a vector."""
        p, target = self.plan, self.graph.target
        left = self.a.arranged(self.graph, a, self.a_tiles, prog, f"{name}/lhs")
        right = self.b.arranged(self.graph, b, self.b_tiles, prog, f"{name}/rhs")
        part, g, i, j = (x.reshape(-1) for x in np.indices((p.k_parts, p.groups, p.m_parts, p.n_parts)))
        tiles = p.tile(g, i, j, part)
        rows, columns = self.c.heights[i], self.c.widths[j]
        start = self.c.start[g, i, j] + part * self.c.numel
        first, add = (MatMulHalfBlock, MatMulHalfAddBlock) if self.dtype is HALF else (MatMulBlock, MatMulAddBlock)
        for s in range(p.serial):
            block = part * p.serial + s
            depth = self.a.widths[block]
            step = self.graph.add_compute_set(f"{name}/multiply" + (f" {s}" if p.serial > 1 else ""))
            codelet = typed(add if s else first, self.dtype)
            connections = {
                "a": (left, self.a.start[g, i, block], rows, depth),
                "b": (right, self.b.start[g, block, j], depth, columns),
                "c": (out, start, rows, columns),
            }
            each = product_cycles(target, self.dtype, rows, depth, columns)
            cycles = -(-each // target.num_worker_contexts)
            self.graph.add_vertices(step, codelet, connections, tiles, cycles)
            prog.add(Execute(step))


def typed(codelet: Any, *dtypes: ElementType) -> Any:
    """A generic codelet with its element types decided; what a type checker would take for an annotation."""
    return codelet[dtypes]


def new_output(product: Product, dtype: DTypeLike, name: str) -> Tensor:
    """A tensor for the result, of rank 3, in order of the blocks and on the tiles that make them."""
    return product.c.create(product.graph, as_element_type(dtype), product.c_tiles, name, SUM_SHARE)[1]
