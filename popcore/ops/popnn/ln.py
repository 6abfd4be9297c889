"""Layer normalisation: all activations of an example share a mean and a deviation. After ``popnn/LayerNorm.hpp``: group norm with one group."""

from __future__ import annotations

from popcore.graph import Graph, Tensor
from popcore.ops.popnn import gn
from popcore.ops.popops import common
from popcore.program import Sequence
from popcore.types import DTypeLike


def layer_norm_statistics(
    graph: Graph, acts: Tensor, eps: float, prog: Sequence, unbiased_var_estimate: bool = False, stable_algo: bool = False,
    partials_type: DTypeLike = "float", name: str = "", options: common.Options | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Mean, and one over the square root of variance plus ``eps``: FLOAT vectors with an element for each example."""
    return gn.group_norm_statistics(graph, acts, eps, prog, 1, unbiased_var_estimate, stable_algo, partials_type, name, options)


layer_norm_whiten = gn.group_norm_whiten
layer_normalise = gn.group_normalise
layer_norm_param_gradients = gn.group_norm_param_gradients
layer_norm_gradients = gn.group_norm_gradients
layer_norm_param_update = gn.group_norm_param_update
