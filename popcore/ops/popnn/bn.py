"""Batch normalisation: activations ``(batch, channels, ...)`` of one channel share a mean and a deviation. After ``popnn/BatchNorm.hpp``."""

from __future__ import annotations

from typing import overload

from popcore.graph import Graph, Tensor
from popcore.ops import poplin
from popcore.ops.poplin.members import ALONE, CHANNEL, Distribution, ReduceCallback, by_channel, statistics_gradients
from popcore.ops.popnn.gn import group_norm_param_update
from popcore.ops.popnn.overloads import tensors_and_program
from popcore.ops.popops import common
from popcore.program import Sequence
from popcore.types import FLOAT, DTypeLike

batch_norm_statistics = poplin.norm_statistics
distributed_batch_norm_statistics = poplin.distributed_norm_statistics
batch_norm_whiten = poplin.norm_whiten
batch_norm_param_update = group_norm_param_update


@overload
def batch_normalise(
    graph: Graph, acts: Tensor, gamma: Tensor, beta: Tensor, mean: Tensor, inv_std_dev: Tensor, prog: Sequence, /, *, name: str = ...
) -> tuple[Tensor, Tensor]: ...
@overload
def batch_normalise(graph: Graph, acts: Tensor, combined_multiplicand: Tensor, addend: Tensor, prog: Sequence, /, *, name: str = ...) -> Tensor: ...
def batch_normalise(graph: Graph, acts: Tensor, *arguments: Tensor | Sequence, name: str = "") -> Tensor | tuple[Tensor, Tensor]:
    """whitened * gamma + beta, and the whitened activations; or acts * combined_multiplicand + addend, as of statistics that are fixed."""
    step = common.joined(name, "batch_normalise")
    (gamma, beta, *statistics), prog = tensors_and_program(step, arguments, (4, 2))
    if not statistics:
        return poplin.normalise(graph, acts, gamma, beta, prog, step)
    whitened = poplin.norm_whiten(graph, acts, statistics[0], statistics[1], prog, step)
    return poplin.normalise(graph, whitened, gamma, beta, prog, step), whitened


@overload
def batch_norm_param_gradients(
    graph: Graph, acts: Tensor, grads_in: Tensor, mean: Tensor, inv_std_dev: Tensor, prog: Sequence, /, *, partials_type: DTypeLike = ..., name: str = ...
) -> tuple[Tensor, Tensor]: ...
@overload
def batch_norm_param_gradients(
    graph: Graph, acts_whitened: Tensor, grads_in: Tensor, prog: Sequence, /, *, partials_type: DTypeLike = ..., name: str = ...
) -> tuple[Tensor, Tensor]: ...
def batch_norm_param_gradients(
    graph: Graph, acts: Tensor, grads_in: Tensor, *arguments: Tensor | Sequence, partials_type: DTypeLike = "float", name: str = ""
) -> tuple[Tensor, Tensor]:
    """The gradients of gamma and beta, from whitened activations; or from plain ones with ``mean`` and ``inv_std_dev`` before ``prog``."""
    step = common.joined(name, "batch_norm_param_gradients")
    tensors, prog = tensors_and_program(step, arguments, (2, 0))
    if tensors:
        acts = poplin.norm_whiten(graph, acts, tensors[0], tensors[1], prog, step)
    return poplin.norm_param_gradients(graph, acts, grads_in, prog, partials_type, step)


@overload
def batch_norm_gradients(
    graph: Graph, acts: Tensor, grads_in: Tensor, mean: Tensor, inv_std_dev: Tensor, gamma: Tensor, prog: Sequence, /, *,
    partials_type: DTypeLike = ..., name: str = ...,
) -> Tensor: ...  # fmt: skip
@overload
def batch_norm_gradients(
    graph: Graph, acts_whitened: Tensor, grads_in: Tensor, inv_std_dev: Tensor, gamma: Tensor, prog: Sequence, /, *,
    partials_type: DTypeLike = ..., name: str = ...,
) -> Tensor: ...  # fmt: skip
def batch_norm_gradients(
    graph: Graph, acts: Tensor, grads_in: Tensor, *arguments: Tensor | Sequence, partials_type: DTypeLike = "float", name: str = ""
) -> Tensor:
    """The gradient of the activations, from whitened ones; or from plain ones with ``mean`` before ``inv_std_dev``."""
    step = common.joined(name, "batch_norm_gradients")
    tensors, prog = tensors_and_program(step, arguments, (3, 2))
    return _gradients(graph, acts, grads_in, tensors, prog, partials_type, step, ALONE)


def distributed_batch_norm_gradients(
    graph: Graph, acts: Tensor, grads_in: Tensor, *arguments: Tensor | Sequence, reduce_callback: ReduceCallback, norm_batch_size: int,
    partials_type: DTypeLike = "float", name: str = "",
) -> Tensor:  # fmt: skip
    """The same where statistics are of ``norm_batch_size`` examples on several replicas; see ``poplin.distributed_norm_statistics``."""
    step = common.joined(name, "distributed_batch_norm_gradients")
    tensors, prog = tensors_and_program(step, arguments, (3, 2))
    among = Distribution.over(step, acts, reduce_callback, norm_batch_size)
    return _gradients(graph, acts, grads_in, tensors, prog, partials_type, step, among)


def _gradients(
    graph: Graph, acts: Tensor, grads_in: Tensor, tensors: list[Tensor], prog: Sequence, partials_type: DTypeLike, step: str, among: Distribution
) -> Tensor:
    *mean, inv_std_dev, gamma = tensors
    if mean:
        acts = poplin.norm_whiten(graph, acts, mean[0], inv_std_dev, prog, step)
    scaled = by_channel(graph, grads_in, gamma, FLOAT, prog, step)
    return statistics_gradients(graph, acts, scaled, inv_std_dev, prog, CHANNEL, partials_type, step, among)
