"""Fully connected layers with sparse weights, forward and backward. After ``popsparse/FullyConnected.hpp`` and ``FullyConnectedParams.hpp``.

Weights are [output channels, input channels]; activations [batch, channels], kept channel by channel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from popcore.graph import Graph, Tensor
from popcore.ops.popsparse import buckets
from popcore.ops.popsparse.buckets import SparseTensor
from popcore.ops.popsparse.mat_mul import MatMulParams
from popcore.ops.popsparse.params import Options, SparsityParams, dense_operand, floating, ratio, read_options
from popcore.ops.popsparse.plan import Plan
from popcore.program import Sequence
from popcore.target import Target
from popcore.types import DTypeLike


@dataclass(frozen=True)
class FullyConnectedParams:
    """A layer with at most ``num_non_zero_values`` weights that are not zero."""

    sparsity_params: SparsityParams
    num_non_zero_values: int
    batch_size: int
    num_groups: int
    input_channels: int
    output_channels: int

    @staticmethod
    def create_with_nz_ratio(
        sparsity_params: SparsityParams, nz_ratio: float, batch_size: int, num_groups: int, input_channels: int, output_channels: int
    ) -> FullyConnectedParams:
        """``nz_ratio``: of all weights, 0 to 1; rounded up to whole blocks."""
        count = round(ratio(nz_ratio, "FullyConnectedParams") * input_channels * output_channels)
        return FullyConnectedParams.create_with_num_non_zero_values(sparsity_params, count, batch_size, num_groups, input_channels, output_channels)

    @staticmethod
    def create_with_num_non_zero_values(
        sparsity_params: SparsityParams, num_non_zero_elems: int, batch_size: int, num_groups: int, input_channels: int, output_channels: int
    ) -> FullyConnectedParams:
        checked = MatMulParams.create_with_num_non_zero_values(sparsity_params, num_non_zero_elems, num_groups, output_channels, input_channels, batch_size)
        return FullyConnectedParams(sparsity_params, checked.num_non_zero_values, batch_size, num_groups, input_channels, output_channels)

    @property
    def nz_ratio(self) -> float:
        return self.num_non_zero_values / max(1, self.input_channels * self.output_channels)

    def plan(self, target: Target, dtype: DTypeLike, options: Options, what: str) -> Plan:
        """That of weights times transposed activations."""
        sizes = self.output_channels, self.input_channels, self.batch_size
        return MatMulParams(self.sparsity_params, self.num_non_zero_values, self.num_groups, *sizes).plan(target, dtype, options, what)


def create_fully_connected_weights(
    graph: Graph, input_type: DTypeLike, params: FullyConnectedParams, name: str = "", options: Options = None, cache: Any = None
) -> SparseTensor:
    """Room for the weights, for all passes."""
    what = "create_fully_connected_weights"
    return buckets.create(graph, floating(input_type, what), params.plan(graph.target, input_type, options, what), name or what)


def create_fully_connected_input(
    graph: Graph, input_type: DTypeLike, params: FullyConnectedParams, name: str = "", options: Options = None, cache: Any = None
) -> Tensor:
    """The activations, [batch, input channels], on the tiles that multiply by them."""
    what = "create_fully_connected_input"
    planned = params.plan(graph.target, input_type, options, what)
    return buckets.create_dense(graph, floating(input_type, what), planned, params.batch_size, name or what).dim_shuffle([1, 0])


def fully_connected_fwd(
    graph: Graph, weights: SparseTensor, activations: Tensor, fc_params: FullyConnectedParams, prog: Sequence, name: str = "", options: Options = None,
    cache: Any = None,
) -> Tensor:  # fmt: skip
    """``activations @ weights.T``: [batch, output channels]."""
    return _pass(graph, weights, activations, fc_params, False, prog, name or "fully_connected_fwd")


def fully_connected_grad_a(
    graph: Graph, weights: SparseTensor, gradients: Tensor, fc_params: FullyConnectedParams, prog: Sequence, name: str = "", options: Options = None,
    cache: Any = None,
) -> Tensor:  # fmt: skip
    """``gradients @ weights``: [batch, input channels], the gradient of the activations."""
    return _pass(graph, weights, gradients, fc_params, True, prog, name or "fully_connected_grad_a")


def fully_connected_sparse_grad_w(
    graph: Graph, sparsity_meta_info: Tensor, grad_a: Tensor, activations: Tensor, fc_params: FullyConnectedParams, prog: Sequence, name: str = "",
    options: Options = None, cache: Any = None,
) -> Tensor:  # fmt: skip
    """``grad_a.T @ activations`` where the weights are not zero: the gradient of their values, in the order of ``get_nz_values_tensor()``.

    Args:
        sparsity_meta_info: The weights' ``get_meta_info_tensor()``.
        grad_a: [batch, output channels], the gradient of the result.

    Needs: the options that the weights were created with.
    """
    step = name or "fully_connected_sparse_grad_w"
    dtype = floating(activations.dtype, step)
    planned = fc_params.plan(graph.target, dtype, options, step)
    dy = dense_operand(grad_a, (fc_params.output_channels, fc_params.batch_size), dtype, True, step)
    x = dense_operand(activations, (fc_params.input_channels, fc_params.batch_size), dtype, True, step)
    return buckets.grad_w(graph, sparsity_meta_info, planned, dy, x, prog, step)


def fully_connected_dense_grad_w_serial_splits(
    graph: Graph, input_type: DTypeLike, fc_params: FullyConnectedParams, options: Options = None, cache: Any = None
) -> tuple[int, int, int]:
    """Into how many parts of groups, input and output channels a dense gradient of the weights is best cut, one after the other, to fit in memory.

    The FLOAT sums of a part, spread over all tiles, take ``availableMemoryProportion`` of it at most, if whole blocks allow.
    """
    what = "fully_connected_dense_grad_w_serial_splits"
    floating(input_type, what)
    allowed = read_options(options, what).memory * graph.target.bytes_per_tile * graph.target.num_tiles
    sides = fc_params.sparsity_params.sides
    splits = [1, 1]
    limits = [max(1, fc_params.input_channels // sides[1]), max(1, fc_params.output_channels // sides[0])]
    while 4 * fc_params.input_channels * fc_params.output_channels / (splits[0] * splits[1]) > allowed:
        at = 1 if splits[1] < limits[1] else 0
        if splits[at] == limits[at]:
            break
        splits[at] = next(n for n in range(splits[at] + 1, limits[at] + 1) if limits[at] % n == 0)
    return 1, splits[0], splits[1]


def _pass(graph: Graph, weights: SparseTensor, x: Tensor, params: FullyConnectedParams, transposed: bool, prog: Sequence, step: str) -> Tensor:
    channels = params.output_channels if transposed else params.input_channels
    matrix = dense_operand(x, (channels, params.batch_size), buckets.check(weights, step).nz_values.dtype, True, step)
    return buckets.multiply(graph, weights, matrix, transposed, prog, step).dim_shuffle([1, 0])
