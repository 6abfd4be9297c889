"""Instance normalisation: activations of one channel of one example share a mean and a deviation. After ``popnn/InstanceNorm.hpp``: group norm with a group a channel."""

from __future__ import annotations

from popcore.errors import ShapeError
from popcore.graph import Graph, Tensor
from popcore.ops.popnn import gn
from popcore.ops.popops import common
from popcore.program import Sequence
from popcore.types import DTypeLike


def instance_norm_statistics(
    graph: Graph, acts: Tensor, eps: float, prog: Sequence, unbiased_var_estimate: bool = False, stable_algo: bool = False,
    partials_type: DTypeLike = "float", name: str = "", options: common.Options | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Mean, and one over the square root of variance plus ``eps``: FLOAT vectors with an element for each channel of each example."""
    common.require_tensors("instance_norm_statistics", acts)
    if acts.rank < 2:
        raise ShapeError(f"{common.joined(name, 'instance_norm_statistics')} of {acts!r}", "(batch, channels, ...)")
    groups = max(acts.shape[1], 1)
    return gn.group_norm_statistics(graph, acts, eps, prog, groups, unbiased_var_estimate, stable_algo, partials_type, name, options)


instance_norm_whiten = gn.group_norm_whiten
instance_normalise = gn.group_normalise
instance_norm_param_gradients = gn.group_norm_param_gradients
instance_norm_gradients = gn.group_norm_gradients
instance_norm_param_update = gn.group_norm_param_update
