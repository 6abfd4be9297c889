"""Norms whose statistics are one a channel of activations ``(batch, channels, ...)``, step by step. After ``poplin/Norms.hpp``.

popnn's batch, group, layer and instance norms are made of these. How it is computed: ``members``.
"""

from __future__ import annotations

from popcore.errors import ShapeError
from popcore.graph import Graph, Tensor
from popcore.ops import popops, poputil
from popcore.ops.poplin.members import CHANNEL, Distribution, ReduceCallback, by_channel, statistics, statistics_gradients, viewed, whiten
from popcore.ops.popops import common
from popcore.ops.popops.widths import rounded, wide
from popcore.program import Sequence
from popcore.types import DTypeLike


def create_norm_gamma(graph: Graph, acts: Tensor, dtype: DTypeLike | None = None, name: str = "") -> Tensor:
    """A vector with an element for each channel, on tiles that hold activations of that channel; of the type of ``acts`` unless told."""
    viewed(common.joined(name, "create_norm_gamma"), acts, CHANNEL)
    return poputil.create_broadcast_operand(graph, acts, acts.dtype if dtype is None else dtype, 1, common.joined(name, "gamma"))


def create_norm_beta(graph: Graph, acts: Tensor, dtype: DTypeLike | None = None, name: str = "") -> Tensor:
    """The same, for what is added."""
    viewed(common.joined(name, "create_norm_beta"), acts, CHANNEL)
    return poputil.create_broadcast_operand(graph, acts, acts.dtype if dtype is None else dtype, 1, common.joined(name, "beta"))


def create_norm_params(graph: Graph, acts: Tensor, name: str = "") -> tuple[Tensor, Tensor]:
    """Gamma and beta."""
    return create_norm_gamma(graph, acts, name=name), create_norm_beta(graph, acts, name=name)


def norm_statistics(
    graph: Graph, acts: Tensor, eps: float, prog: Sequence, unbiased_var_estimate: bool = False, stable_algo: bool = False,
    partials_type: DTypeLike = "float", name: str = "",
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Mean, and one over the square root of variance plus ``eps``: FLOAT vectors with an element for each channel.

    Args:
        unbiased_var_estimate: Divide the squares by one less than their number.
        stable_algo: Two passes, in which a mean far from 0 costs no digits, instead of one.

    Raises: ShapeError, ElementTypeError: activations of rank below 2, or neither FLOAT nor HALF.
    """
    step = common.joined(name, "norm_statistics")
    return statistics(graph, acts, eps, prog, CHANNEL, unbiased_var_estimate, stable_algo, partials_type, step)


def distributed_norm_statistics(
    graph: Graph, acts: Tensor, eps: float, prog: Sequence, unbiased_var_estimate: bool, reduce_callback: ReduceCallback, norm_size: int,
    stable_algo: bool = False, partials_type: DTypeLike = "float", name: str = "",
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Those of ``norm_size`` examples, which several replicas have: ``reduce_callback`` adds up over ``norm_size / batch`` of them.

    It is not called where a replica has that many examples.
    Raises: as ``norm_statistics``; ValueRangeError: ``norm_size`` is no multiple of the batch.
    """
    step = common.joined(name, "distributed_norm_statistics")
    among = Distribution.over(step, acts, reduce_callback, norm_size)
    return statistics(graph, acts, eps, prog, CHANNEL, unbiased_var_estimate, stable_algo, partials_type, step, among)


def norm_whiten(graph: Graph, acts: Tensor, mean: Tensor, inv_std_dev: Tensor, prog: Sequence, name: str = "") -> Tensor:
    """(acts - mean) * inv_std_dev"""
    return whiten(graph, acts, mean, inv_std_dev, prog, CHANNEL, common.joined(name, "norm_whiten"))


def normalise(graph: Graph, acts_whitened: Tensor, gamma: Tensor, beta: Tensor, prog: Sequence, name: str = "") -> Tensor:
    """acts_whitened * gamma + beta"""
    step = common.joined(name, "normalise")
    view = viewed(step, acts_whitened, CHANNEL, gamma, beta)
    e = wide(1, view.dtype) * wide(2, gamma.dtype) + wide(3, beta.dtype)
    operands = [view, CHANNEL.of_statistic(gamma, view), CHANNEL.of_statistic(beta, view)]
    return popops.map(graph, rounded(e, view.dtype), operands, prog, step).reshape(acts_whitened.shape)


def norm_param_gradients(
    graph: Graph, acts_whitened: Tensor, grads_in: Tensor, prog: Sequence, partials_type: DTypeLike = "float", name: str = ""
) -> tuple[Tensor, Tensor]:
    """The gradients of gamma and beta, one a channel, in ``partials_type``."""
    step = common.joined(name, "norm_param_gradients")
    acts, grads = viewed(step, acts_whitened, CHANNEL), viewed(step, grads_in, CHANNEL)
    if acts_whitened.shape != grads_in.shape:
        raise ShapeError(f"{step} of {acts_whitened!r} and {grads_in!r}", "a gradient for each activation")
    product = popops.map(graph, wide(1, acts.dtype) * wide(2, grads.dtype), [acts, grads], prog, step)
    gamma, beta = (popops.reduce(graph, t, (0, 2), popops.Operation.ADD, prog, step, out_type=partials_type) for t in (product, grads))
    return gamma, beta


def norm_gradients(graph: Graph, grads_in: Tensor, gamma: Tensor, prog: Sequence, name: str = "") -> Tensor:
    """grads_in * gamma: the gradient of what ``normalise`` was given."""
    step = common.joined(name, "norm_gradients")
    common.require_tensors(step, grads_in, gamma)
    return by_channel(graph, grads_in, gamma, grads_in.dtype, prog, step)


def norm_statistics_gradients(
    graph: Graph, acts_whitened: Tensor, grads_in: Tensor, inv_std_dev: Tensor, prog: Sequence, partials_type: DTypeLike = "float", name: str = ""
) -> Tensor:
    """The gradient of what ``norm_whiten`` was given: inv_std_dev * (g - mean(g) - whitened * mean(g * whitened)), g being ``grads_in``."""
    step = common.joined(name, "norm_statistics_gradients")
    return statistics_gradients(graph, acts_whitened, grads_in, inv_std_dev, prog, CHANNEL, partials_type, step)


def distributed_norm_statistics_gradients(
    graph: Graph, acts_whitened: Tensor, grads_in: Tensor, inv_std_dev: Tensor, prog: Sequence, reduce_callback: ReduceCallback, norm_size: int,
    partials_type: DTypeLike = "float", name: str = "",
) -> Tensor:  # fmt: skip
    """The same where statistics are of ``norm_size`` examples on several replicas."""
    step = common.joined(name, "distributed_norm_statistics_gradients")
    among = Distribution.over(step, acts_whitened, reduce_callback, norm_size)
    return statistics_gradients(graph, acts_whitened, grads_in, inv_std_dev, prog, CHANNEL, partials_type, step, among)
