"""Products of ``popsparse.dynamic``. After ``popsparse/MatMul.hpp`` and ``MatMulParams.hpp``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from popcore.graph import Graph, Tensor
from popcore.ops.popsparse import buckets
from popcore.ops.popsparse.buckets import SparseTensor
from popcore.ops.popsparse.params import Options, Sizes, SparsityParams, dense_operand, floating, non_zeros, one_group, ratio, read_options, shaped_like
from popcore.ops.popsparse.plan import Plan, plan
from popcore.program import Sequence
from popcore.target import Target
from popcore.types import DTypeLike


@dataclass(frozen=True)
class MatMulParams:
    """``[m, k]``, sparse with at most ``num_non_zero_values``, times ``[k, n]``."""

    sparsity_params: SparsityParams
    num_non_zero_values: int
    groups: int
    m: int
    k: int
    n: int

    @staticmethod
    def create_with_nz_ratio(sparsity_params: SparsityParams, nz_ratio: float, groups: int, m: int, k: int, n: int) -> MatMulParams:
        """``nz_ratio``: of all elements, 0 to 1; rounded up to whole blocks."""
        count = ratio(nz_ratio, "MatMulParams") * m * k
        return MatMulParams.create_with_num_non_zero_values(sparsity_params, round(count), groups, m, k, n)

    @staticmethod
    def create_with_num_non_zero_values(sparsity_params: SparsityParams, num_non_zero_elems: int, groups: int, m: int, k: int, n: int) -> MatMulParams:
        count = non_zeros(sparsity_params.sides, m, k, num_non_zero_elems, "MatMulParams")
        return MatMulParams(sparsity_params, count, groups, m, k, n)

    def __post_init__(self) -> None:
        one_group(self.groups, "MatMulParams")
        Sizes(self.m, self.k, self.n)

    @property
    def nz_ratio(self) -> float:
        return self.num_non_zero_values / max(1, self.m * self.k)

    def plan(self, target: Target, dtype: DTypeLike, options: Options, what: str) -> Plan:
        """How it is done."""
        element, sides = floating(dtype, what), self.sparsity_params.sides
        blocks = self.num_non_zero_values // (sides[0] * sides[1])
        return plan(target, Sizes(self.m, self.k, self.n), sides, blocks, element, read_options(options, what), False)


def create_sparse_dense_mat_mul_lhs(
    graph: Graph, input_type: DTypeLike, params: MatMulParams, name: str = "", options: Options = None, cache: Any = None
) -> SparseTensor:
    """Room for the left operand of ``sparse_dense_mat_mul``: for any pattern of so many values, as far as no bucket gets too full.

    Raises: ShapeError, ElementTypeError, OptionError
    """
    what = "create_sparse_dense_mat_mul_lhs"
    return buckets.create(graph, floating(input_type, what), params.plan(graph.target, input_type, options, what), name or what)


def create_sparse_dense_mat_mul_rhs(
    graph: Graph, input_type: DTypeLike, params: MatMulParams, name: str = "", options: Options = None, cache: Any = None
) -> Tensor:
    """The dense operand, [1, k, n], on the tiles that multiply by it."""
    what = "create_sparse_dense_mat_mul_rhs"
    planned = params.plan(graph.target, input_type, options, what)
    return buckets.create_dense(graph, floating(input_type, what), planned, params.n, name or what).expand([0])


def sparse_dense_mat_mul(
    graph: Graph, lhs: SparseTensor, rhs: Tensor, prog: Sequence, transpose_lhs: bool = False, transpose_rhs: bool = False, name: str = "",
    options: Options = None, cache: Any = None,
) -> Tensor:  # fmt: skip
    """``lhs @ rhs``, either transposed on request; summed in FLOAT, of the type of the operands.

    Args:
        rhs: [k, n], or [1, k, n]; with ``transpose_lhs`` [m, n]; any view on any tiles, any n. The result has as many dimensions.
    """
    step = name or "sparse_dense_mat_mul"
    sizes = buckets.check(lhs, step).plan.sizes
    x = dense_operand(rhs, (sizes.m if transpose_lhs else sizes.k, -1), lhs.nz_values.dtype, transpose_rhs, step)
    return shaped_like(buckets.multiply(graph, lhs, x, transpose_lhs, prog, step), rhs)
