"""A product of matrices as planned: operands as blocks, multiplying vertices for each serial step."""

from __future__ import annotations

from typing import Any

import numpy as np

from popcore.codelets.mat_mul import MatMulAddBlock, MatMulAddHalfBlock, MatMulBlock, MatMulHalfBlock
from popcore.codelets.rounded import MatMulAddRoundedBlock, MatMulRoundedBlock
from popcore.graph import Graph, Tensor
from popcore.ops.poplin.blocks import Blocks, single
from popcore.ops.poplin.cost import work_cycles
from popcore.ops.poplin.params import Settings, Sizes
from popcore.ops.poplin.plan import SHARED, PlanningCache
from popcore.ops.poplin.planned import Planned
from popcore.ops.poplin.problem import Problem
from popcore.program import Execute, Sequence
from popcore.types import Array, ElementType

_CODELETS: dict[tuple[str, str], Any] = {
    ("float", "float"): (MatMulBlock, MatMulAddBlock),
    ("half", "float"): (MatMulHalfBlock, MatMulAddHalfBlock),
    ("half", "half"): (MatMulRoundedBlock, MatMulAddRoundedBlock),
}
"""By element types of operands and sums: of the first serial step, and of those that follow."""


class Product(Planned):
    """``[groups, m, k] @ [groups, k, n]``"""

    def __init__(
        self, graph: Graph, sizes: Sizes, dtype: ElementType, output: ElementType | None, settings: Settings, cache: PlanningCache | None
    ) -> None:  # fmt: skip
        """``output``: the type of the result; None where it is added to something."""
        self.graph, self.groups = graph, sizes.groups
        problem = Problem(sizes.groups, sizes.m, sizes.k, sizes.n, dtype, partials=settings.partials_of(dtype))
        self.plan = (SHARED if cache is None else cache).plan(graph.target, problem, output is not problem.partials, settings.proportion)
        p, groups = self.plan, single(sizes.groups)
        self.a = Blocks((groups, p.batch_cuts, p.k_cuts))
        self.b = Blocks((groups, p.k_cuts, p.n_cuts))
        self.out = Blocks((groups, p.batch_cuts, p.n_cuts))

    @property
    def a_tiles(self) -> Array:
        """int64[groups, m parts, k blocks, n parts]: the tiles that use each block of the left operand."""
        g, i, q, j = np.ogrid[: self.groups, : self.plan.batch_parts, : self.a.widths[2].size, : self.plan.n_parts]
        return self.plan.tile(g, i, j, q // self.plan.serial)

    @property
    def b_tiles(self) -> Array:
        """int64[groups, k blocks, n parts, m parts]"""
        g, q, j, i = np.ogrid[: self.groups, : self.b.widths[1].size, : self.plan.n_parts, : self.plan.batch_parts]
        return self.plan.tile(g, i, j, q // self.plan.serial)

    def multiply(self, a: Tensor, b: Tensor, out: Tensor, prog: Sequence, name: str) -> None:
        p, target = self.plan, self.graph.target
        left = self.a.arranged(self.graph, a, self.a_tiles, prog, f"{name}/lhs")
        right = self.b.arranged(self.graph, b, self.b_tiles, prog, f"{name}/rhs")
        part, g, i, j = (x.reshape(-1) for x in np.indices((p.k_parts, self.groups, p.batch_parts, p.n_parts)))
        tiles = p.tile(g, i, j, part)
        rows, columns = self.out.widths[1][i], self.out.widths[2][j]
        start = self.out.start[g, i, j] + part * self.out.numel
        for s in range(p.serial):
            block = part * p.serial + s
            depth = self.a.widths[2][block]
            step = self.graph.add_compute_set(f"{name}/multiply" + (f" {s}" if p.serial > 1 else ""))
            codelet = _CODELETS[p.problem.dtype.kind, p.problem.partials.kind][min(s, 1)]
            connections = {
                "a": (left, self.a.start[g, i, block], rows, depth),
                "b": (right, self.b.start[g, block, j], depth, columns),
                "c": (out, start, rows, columns),
            }
            each = work_cycles(target, p.problem, rows, (), depth, columns)
            cycles = -(-each // target.num_worker_contexts)
            self.graph.add_vertices(step, codelet, connections, tiles, cycles)
            prog.add(Execute(step))
