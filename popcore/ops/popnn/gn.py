"""Group normalisation: activations ``(batch, channels, ...)`` of one example and one group of channels share a mean and a deviation.

After ``popnn/GroupNorm.hpp``. The option ``groupNormStridedChannelGrouping`` says which channels are a group: "true", as by default,
every ``num_groups``-th; "false" neighbours.
"""

from __future__ import annotations

from typing import overload

from popcore.errors import ShapeError
from popcore.graph import Graph, Tensor
from popcore.ops import poplin, popops
from popcore.ops.poplin.members import Members, by_channel, statistics, statistics_gradients, whiten
from popcore.ops.popnn.overloads import tensors_and_program
from popcore.ops.popops import common
from popcore.program import Sequence
from popcore.types import FLOAT, DTypeLike

OPTIONS = {"groupNormStridedChannelGrouping": ("true", "false")}


def group_norm_statistics(
    graph: Graph, acts: Tensor, eps: float, prog: Sequence, num_groups: int, unbiased_var_estimate: bool = False, stable_algo: bool = False,
    partials_type: DTypeLike = "float", name: str = "", options: common.Options | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Mean, and one over the square root of variance plus ``eps``: FLOAT vectors of batch * num_groups, the groups of an example side by side.

    Args: as of ``poplin.norm_statistics``.

    Raises: ShapeError: ``num_groups`` does not divide the channels.
    """
    step = common.joined(name, "group_norm_statistics")
    members = Members(num_groups, _strided(options))
    return statistics(graph, acts, eps, prog, members, unbiased_var_estimate, stable_algo, partials_type, step)


def group_norm_whiten(
    graph: Graph, acts: Tensor, mean: Tensor, inv_std_dev: Tensor, prog: Sequence, name: str = "", options: common.Options | None = None
) -> Tensor:
    """(acts - mean) * inv_std_dev; there are as many groups as there are means of an example."""
    step = common.joined(name, "group_norm_whiten")
    return whiten(graph, acts, mean, inv_std_dev, prog, _members(step, acts, inv_std_dev, options), step)


def group_normalise(
    graph: Graph, acts: Tensor, gamma: Tensor, beta: Tensor, mean: Tensor, inv_std_dev: Tensor, prog: Sequence, name: str = "",
    options: common.Options | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """whitened * gamma + beta, a gamma and a beta for each channel. Returns: that, and the whitened activations."""
    whitened = group_norm_whiten(graph, acts, mean, inv_std_dev, prog, name, options)
    return poplin.normalise(graph, whitened, gamma, beta, prog, common.joined(name, "group_normalise")), whitened


@overload
def group_norm_param_gradients(
    graph: Graph, acts: Tensor, grads_in: Tensor, mean: Tensor, inv_std_dev: Tensor, prog: Sequence, /, *,
    partials_type: DTypeLike = ..., name: str = ..., options: common.Options | None = ...,
) -> tuple[Tensor, Tensor]: ...  # fmt: skip
@overload
def group_norm_param_gradients(
    graph: Graph, acts_whitened: Tensor, grads_in: Tensor, prog: Sequence, /, *,
    partials_type: DTypeLike = ..., name: str = ..., options: common.Options | None = ...,
) -> tuple[Tensor, Tensor]: ...  # fmt: skip
def group_norm_param_gradients(
    graph: Graph, acts: Tensor, grads_in: Tensor, *arguments: Tensor | Sequence, partials_type: DTypeLike = "float", name: str = "",
    options: common.Options | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The gradients of gamma and beta, from whitened activations; or from plain ones with ``mean`` and ``inv_std_dev`` before ``prog``."""
    step = common.joined(name, "group_norm_param_gradients")
    tensors, prog = tensors_and_program(step, arguments, (2, 0))
    if tensors:
        acts = group_norm_whiten(graph, acts, tensors[0], tensors[1], prog, name, options)
    return poplin.norm_param_gradients(graph, acts, grads_in, prog, partials_type, step)


@overload
def group_norm_gradients(
    graph: Graph, acts: Tensor, grads_in: Tensor, mean: Tensor, inv_std_dev: Tensor, gamma: Tensor, prog: Sequence, /, *,
    partials_type: DTypeLike = ..., name: str = ..., options: common.Options | None = ...,
) -> Tensor: ...  # fmt: skip
@overload
def group_norm_gradients(
    graph: Graph, acts_whitened: Tensor, grads_in: Tensor, inv_std_dev: Tensor, gamma: Tensor, prog: Sequence, /, *,
    partials_type: DTypeLike = ..., name: str = ..., options: common.Options | None = ...,
) -> Tensor: ...  # fmt: skip
def group_norm_gradients(
    graph: Graph, acts: Tensor, grads_in: Tensor, *arguments: Tensor | Sequence, partials_type: DTypeLike = "float", name: str = "",
    options: common.Options | None = None,
) -> Tensor:  # fmt: skip
    """The gradient of the activations, from whitened ones; or from plain ones with ``mean`` before ``inv_std_dev``."""
    step = common.joined(name, "group_norm_gradients")
    (*mean, inv_std_dev, gamma), prog = tensors_and_program(step, arguments, (3, 2))
    if mean:
        acts = group_norm_whiten(graph, acts, mean[0], inv_std_dev, prog, name, options)
    scaled = by_channel(graph, grads_in, gamma, FLOAT, prog, step)
    return statistics_gradients(graph, acts, scaled, inv_std_dev, prog, _members(step, acts, inv_std_dev, options), partials_type, step)


def group_norm_param_update(
    graph: Graph, gamma_delta: Tensor, beta_delta: Tensor, scale: float | Tensor, gamma: Tensor, beta: Tensor, prog: Sequence, name: str = "",
    options: common.Options | None = None,
) -> None:  # fmt: skip
    """gamma += scale * gamma_delta, and beta likewise; ``scale`` is a number or a scalar tensor."""
    step = common.joined(name, "group_norm_param_update")
    _strided(options)
    for parameter, delta in ((gamma, gamma_delta), (beta, beta_delta)):
        popops.scaled_add_to(graph, parameter, delta, scale, prog, name=step)


def _members(step: str, acts: Tensor, inv_std_dev: Tensor, options: common.Options | None) -> Members:
    common.require_tensors(step, acts, inv_std_dev)
    batch = acts.shape[0] if acts.rank else 0
    groups = inv_std_dev.num_elements // batch if batch else 1
    if groups * batch != inv_std_dev.num_elements:
        raise ShapeError(f"{step} of {acts!r} with {inv_std_dev!r}", "statistics of each example")
    return Members(groups, _strided(options))


def _strided(options: common.Options | None) -> bool:
    return bool(common.read_options("group norm", options, OPTIONS)["groupNormStridedChannelGrouping"] == "true")
