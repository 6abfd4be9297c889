"""popsparse::static_: products with a sparse matrix whose pattern is given when the graph is built, values when it runs.

::

    params = static_.MatMulParams.create_for_sparse_dense(1, m, k, n)
    s = static_.create_sparse_dense_mat_mul_lhs(graph, FLOAT, params, csr)
    y = static_.sparse_dense_mat_mul(graph, s, x, prog)
    ...
    engine.write_tensor("s", static_.Partitioner(params, FLOAT, target, {}).create_sparsity_data_impl(csr).nz_values)

Options: ``availableMemoryProportion`` (0.6), ``partialsType`` ("float"). A ``cache`` is taken for PopLibs' sake: plans are remembered anyway.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from popcore.errors import GraphError, ShapeError
from popcore.graph import Graph, Tensor
from popcore.ops.popops import common
from popcore.ops.popsparse import dense, known
from popcore.ops.popsparse.formats import Blocks, COOMatrix, CSCMatrix, CSRMatrix, Matrix, read, to_coo, to_csc, to_csr
from popcore.ops.popsparse.params import Options, Settings, Sizes, dense_operand, floating, one_group, read_options, shaped_like
from popcore.program import Sequence
from popcore.target import Target
from popcore.types import Array, DTypeLike, ElementType

__all__ = [
    "MatMulParams",
    "Partitioner",
    "SparseTensor",
    "SparsityDataImpl",
    "create_dense_sparse_mat_mul_lhs",
    "create_dense_sparse_mat_mul_rhs",
    "create_sparse_dense_mat_mul_lhs",
    "create_sparse_dense_mat_mul_rhs",
    "dense_sparse_mat_mul",
    "sparse_dense_mat_mul",
]


@dataclass(frozen=True)
class MatMulParams:
    """Sizes of a product: ``[m, k]``, sparse, times ``[k, n]``; or, transposed, ``[n, k]`` times ``[k, m]``, sparse."""

    groups: int
    m: int
    k: int
    n: int
    is_transposed: bool

    @staticmethod
    def create_for_sparse_dense(groups: int, m: int, k: int, n: int) -> MatMulParams:
        """Sparse [m, k] times dense [k, n]."""
        return MatMulParams(groups, m, k, n, False)

    @staticmethod
    def create_for_dense_sparse(groups: int, n: int, k: int, m: int) -> MatMulParams:
        """Dense [n, k] times sparse [k, m]."""
        return MatMulParams(groups, m, k, n, True)

    def __post_init__(self) -> None:
        one_group(self.groups, "MatMulParams")
        Sizes(self.m, self.k, self.n)


@dataclass(frozen=True, eq=False)
class SparseTensor:
    """The non-zero values of a sparse matrix, a vector in the order that ``Partitioner`` gives them, and what the graph knows of the pattern."""

    nz_values: Tensor
    layout: known.Layout  # of the product it was created for
    settings: Settings
    is_transposed: bool  # that product has it on the right

    def get_nz_values_tensor(self) -> Tensor:
        return self.nz_values


@dataclass(frozen=True, eq=False)
class SparsityDataImpl:
    """What the host writes to ``get_nz_values_tensor()``."""

    nz_values: Array


def create_sparse_dense_mat_mul_lhs(
    graph: Graph, input_type: DTypeLike, params: MatMulParams, csr_lhs: Matrix, name: str = "", options: Options = None, cache: Any = None
) -> SparseTensor:
    """The left operand of ``sparse_dense_mat_mul``, with the pattern of ``csr_lhs``; its values are not looked at.

    Raises: ShapeError: a matrix that does not fit the parameters, or is none. ElementTypeError, OptionError
    """
    return _created(graph, input_type, params, csr_lhs, False, name, options, "create_sparse_dense_mat_mul_lhs")


def create_dense_sparse_mat_mul_rhs(
    graph: Graph, input_type: DTypeLike, params: MatMulParams, csr_rhs: Matrix, name: str = "", options: Options = None, cache: Any = None
) -> SparseTensor:
    """The right operand of ``dense_sparse_mat_mul``, with the pattern of ``csr_rhs``."""
    return _created(graph, input_type, params, csr_rhs, True, name, options, "create_dense_sparse_mat_mul_rhs")


def create_sparse_dense_mat_mul_rhs(
    graph: Graph, input_type: DTypeLike, params: MatMulParams, csr_lhs: Matrix, name: str = "", options: Options = None, cache: Any = None
) -> Tensor:
    """The dense operand of ``sparse_dense_mat_mul``, [1, k, n], on the tiles that the plan uses; of a square matrix row i is where row i of the result is."""
    return _dense(graph, input_type, params, csr_lhs, False, name, options, "create_sparse_dense_mat_mul_rhs").expand([0])


def create_dense_sparse_mat_mul_lhs(
    graph: Graph, input_type: DTypeLike, params: MatMulParams, csr_rhs: Matrix, name: str = "", options: Options = None, cache: Any = None
) -> Tensor:
    """The dense operand of ``dense_sparse_mat_mul``, [1, n, k], kept column by column, as the product reads it."""
    made = _dense(graph, input_type, params, csr_rhs, True, name, options, "create_dense_sparse_mat_mul_lhs")
    return made.dim_shuffle([1, 0]).expand([0])


def sparse_dense_mat_mul(
    graph: Graph, lhs: SparseTensor, rhs: Tensor, prog: Sequence, transpose_lhs: bool = False, transpose_rhs: bool = False, name: str = "",
    options: Options = None, cache: Any = None,
) -> Tensor:  # fmt: skip
    """``lhs @ rhs``, either transposed on request; summed in FLOAT, of the type of the operands.

    Args:
        rhs: [k, n], or [1, k, n]; any view on any tiles, any n. So is the result.

    Costs: a transposed sparse operand is rearranged between tiles each time.
    """
    _check(lhs, "sparse_dense_mat_mul")
    return _product(graph, lhs, rhs, prog, transpose_lhs, transpose_rhs, name or "sparse_dense_mat_mul")


def dense_sparse_mat_mul(
    graph: Graph, lhs: Tensor, rhs: SparseTensor, prog: Sequence, transpose_lhs: bool = False, transpose_rhs: bool = False, name: str = "",
    options: Options = None, cache: Any = None,
) -> Tensor:  # fmt: skip
    """``lhs @ rhs`` with the sparse operand on the right. See ``sparse_dense_mat_mul``."""
    _check(rhs, "dense_sparse_mat_mul")
    made = _product(graph, rhs, lhs, prog, not transpose_rhs, not transpose_lhs, name or "dense_sparse_mat_mul")
    return made.dim_shuffle([*range(made.rank - 2), made.rank - 1, made.rank - 2])


class Partitioner:
    """Brings a matrix into the order of the tensor that was created for it, and back.

    Needs: the same parameters, types, target and options as that; and the same pattern.
    """

    def __init__(self, params: MatMulParams, data_type: DTypeLike, target: Target, options: Options = None, cache: Any = None, name: str = "") -> None:
        self._params, self._target, self._settings = params, target, read_options(options, "Partitioner")
        self._dtype = floating(data_type, "Partitioner")
        self._pattern: Blocks | None = None  # the last one

    def create_sparsity_data_impl(self, matrix: Matrix) -> SparsityDataImpl:
        """The values of a matrix in the order of the tensor."""
        self._pattern = _read(self._params, matrix, "Partitioner")
        order = self._layout(self._pattern)
        return SparsityDataImpl(self._pattern.values[order].reshape(-1).astype(self._dtype.numpy))

    def sparsity_data_impl_to_coo_matrix(self, data: SparsityDataImpl) -> COOMatrix:
        """The matrix of values in the order of the tensor, with the pattern of the matrix that was last partitioned."""
        return to_coo(self._blocks(data))

    def sparsity_data_impl_to_csr_matrix(self, data: SparsityDataImpl) -> CSRMatrix:
        return to_csr(self._blocks(data))

    def sparsity_data_impl_to_csc_matrix(self, data: SparsityDataImpl) -> CSCMatrix:
        return to_csc(self._blocks(data))

    def _layout(self, pattern: Blocks) -> Array:
        return _oriented(self._target, pattern, self._params.is_transposed, self._params.n, self._dtype, self._settings)[1]

    def _blocks(self, data: SparsityDataImpl) -> Blocks:
        if self._pattern is None:
            raise GraphError("Partitioner has seen no matrix, whose pattern the values have", "create_sparsity_data_impl first")
        given = np.asarray(data.nz_values).reshape(-1)
        if given.size != self._pattern.values.size:
            raise ShapeError(f"Partitioner: {given.size} values, the pattern has {self._pattern.values.size}", "what get_nz_values_tensor() holds")
        values = np.empty(self._pattern.values.shape, given.dtype)
        values[self._layout(self._pattern)] = given.reshape(values.shape)
        return Blocks(self._pattern.shape, self._pattern.sides, self._pattern.rows, self._pattern.columns, values)


def _oriented(target: Target, pattern: Blocks, flip: bool, n: int, dtype: ElementType, settings: Settings) -> tuple[known.Layout, Array]:
    """The layout of a product by ``pattern``, or by its transposed; and which entry of ``pattern`` each entry in the layout's order is."""
    own, order = known.transposed(pattern) if flip else (pattern, np.arange(pattern.rows.size))
    layout = known.layout_of(target, own, flip, n, dtype, settings)
    return layout, order[layout.order]


def _read(params: MatMulParams, matrix: Matrix, what: str) -> Blocks:
    found = read(matrix, what)
    wanted = (params.k, params.m) if params.is_transposed else (params.m, params.k)
    if found.shape != wanted:
        raise ShapeError(f"{what}: the sparse matrix is {list(found.shape)}, the parameters say {list(wanted)}", "a matrix of the size that was planned for")
    return found


def _created(graph: Graph, dtype: DTypeLike, params: MatMulParams, matrix: Matrix, on_right: bool, name: str, options: Options, what: str) -> SparseTensor:
    element, settings = floating(dtype, what), read_options(options, what)
    if params.is_transposed != on_right:
        raise GraphError(
            f"{what} with parameters for the other order of operands", "create_for_sparse_dense for the left, create_for_dense_sparse for the right"
        )
    layout, _ = _oriented(graph.target, _read(params, matrix, what), on_right, params.n, element, settings)
    values = known.create_values(graph, layout, element, name or what)
    return SparseTensor(values, layout, settings, on_right)


def _dense(graph: Graph, dtype: DTypeLike, params: MatMulParams, matrix: Matrix, on_right: bool, name: str, options: Options, what: str) -> Tensor:
    """[k, n]"""
    element = floating(dtype, what)
    layout, _ = _oriented(graph.target, _read(params, matrix, what), on_right, params.n, element, read_options(options, what))
    p = layout.plan
    i, q, j = np.indices((p.m_parts, p.k_parts, p.n_parts))
    if params.m == params.k and p.n_parts == 1:
        parts = dense.parts_of(layout.row_cuts * p.sides[0], p.n_cuts(params.n))
        return dense.create(graph, element, parts, np.moveaxis(p.tile(i, q, j), 1, 2), name or what)
    parts = dense.parts_of(np.array([0, params.k]), p.n_cuts(params.n))
    return dense.create(graph, element, parts, p.tile(i, q, j).transpose(2, 0, 1).reshape(1, p.n_parts, -1), name or what)


def _check(t: Any, what: str) -> None:
    if not isinstance(t, SparseTensor):
        raise GraphError(f"{what}: the sparse operand is {t!r:.60}", "what create_sparse_dense_mat_mul_lhs or create_dense_sparse_mat_mul_rhs gave")


def _product(graph: Graph, sparse: SparseTensor, x: Tensor, prog: Sequence, transpose: bool, transpose_x: bool, name: str) -> Tensor:
    """The matrix, transposed on request, times ``x``, transposed on request: [m, n]."""
    layout, values = sparse.layout, sparse.nz_values
    pattern = layout.pattern
    flip = transpose != sparse.is_transposed  # not as it was planned for
    rows = pattern.shape[0] if flip else pattern.shape[1]
    matrix = dense_operand(x, (rows, -1), values.dtype, transpose_x, name)
    if flip:
        other, order = known.transposed(pattern)
        layout = known.layout_of(graph.target, other, not layout.flipped, matrix.shape[1], values.dtype, sparse.settings)
        place = np.empty(pattern.rows.size, np.int64)
        place[sparse.layout.order] = np.arange(pattern.rows.size)
        blocks = place[order[layout.order]]
        moved = known.create_values(graph, layout, values.dtype, f"{name}/values")
        common.copy(prog, values.select((blocks[:, None] * layout.plan.area + np.arange(layout.plan.area)).reshape(-1)), moved, f"{name}/transpose")
        values = moved
    return shaped_like(known.multiply(graph, layout, values, matrix, prog, name), x)
