"""Partitioner of ``popsparse.dynamic``: host matrices to what the device's buckets hold, and back. After ``popsparse/SparsePartitioner.hpp``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from popcore.errors import ShapeError
from popcore.ops.popsparse import buckets
from popcore.ops.popsparse.formats import Blocks, COOMatrix, CSCMatrix, CSRMatrix, Matrix, read, to_coo, to_csc, to_csr
from popcore.ops.popsparse.fully_connected import FullyConnectedParams
from popcore.ops.popsparse.mat_mul import MatMulParams
from popcore.ops.popsparse.params import Options, floating
from popcore.target import Target
from popcore.types import Array, DTypeLike


@dataclass(frozen=True, eq=False)
class SparsityDataImpl:
    """What the host writes to ``get_meta_info_tensor()`` and ``get_nz_values_tensor()``."""

    meta_info: Array
    nz_values: Array


class Partitioner:
    """Deals a matrix out to the buckets of the tensor that was created for it, and collects it again.

    Needs: the same parameters, type, target and options as that.
    """

    def __init__(
        self, params: FullyConnectedParams | MatMulParams, data_type: DTypeLike, target: Target, options: Options = None, cache: Any = None, name: str = ""
    ) -> None:
        self._most, self._dtype, self._name = params.num_non_zero_values, floating(data_type, "Partitioner"), name or "Partitioner"
        self._plan = params.plan(target, data_type, options, self._name)

    def create_sparsity_data_impl(self, matrix: Matrix) -> SparsityDataImpl:
        """Buckets of a matrix.

        Raises: ShapeError: another size than planned for, more non-zero values than planned for, or more in one bucket than it holds; the amounts are named.
        """
        found = read(matrix, self._name, self._plan.sides)
        wanted = self._plan.sizes.m, self._plan.sizes.k
        if found.shape != wanted:
            raise ShapeError(f"{self._name}: the matrix is {list(found.shape)}, the parameters say {list(wanted)}", "a matrix of the size that was planned for")
        if found.values.size > self._most:
            raise ShapeError(
                f"{self._name}: {found.values.size} non-zero values, planned for at most {self._most}", "parameters with a greater number or ratio of them"
            )
        return SparsityDataImpl(*buckets.fill(self._plan, found, self._most // self._plan.area, self._dtype, self._name))

    def sparsity_data_impl_to_coo_matrix(self, data: SparsityDataImpl) -> COOMatrix:
        return to_coo(self._blocks(data))

    def sparsity_data_impl_to_csr_matrix(self, data: SparsityDataImpl) -> CSRMatrix:
        return to_csr(self._blocks(data))

    def sparsity_data_impl_to_csc_matrix(self, data: SparsityDataImpl) -> CSCMatrix:
        return to_csc(self._blocks(data))

    def get_plan_partitions(self) -> tuple[list[int], list[int], list[int]]:
        """Where parts of rows, columns and batch begin; elements."""
        p = self._plan
        return p.m_cuts[:-1].tolist(), p.k_cuts[:-1].tolist(), p.n_cuts(p.sizes.n)[:-1].tolist()

    def get_meta_info_bucket_elements(self) -> int:
        """Words of meta-information in a bucket."""
        return 1 + self._plan.capacity

    def _blocks(self, data: SparsityDataImpl) -> Blocks:
        return buckets.empty_out(self._plan, data.meta_info, data.nz_values, self._name)
