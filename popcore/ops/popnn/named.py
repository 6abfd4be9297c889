"""The non-linearities by name: ``relu(graph, t, prog)`` is ``non_linearity(graph, NonLinearityType.RELU, t, prog)``, and ``relu_in_place`` likewise."""

from __future__ import annotations

from collections.abc import Callable

from popcore.graph import Graph, Tensor
from popcore.ops.popnn.non_linearity import NonLinearityType, non_linearity, non_linearity_in_place
from popcore.program import Sequence

__all__ = [
    "gelu", "gelu_erf", "gelu_erf_in_place", "gelu_in_place", "relu", "relu_in_place", "scaled_softmax_stable", "scaled_softmax_stable_in_place", "sigmoid",
    "sigmoid_in_place", "softmax_stable", "softmax_stable_in_place", "swish", "swish_in_place", "tanh", "tanh_in_place",
]  # fmt: skip


def _new(kind: NonLinearityType) -> Callable[..., Tensor]:
    def apply(graph: Graph, t: Tensor, prog: Sequence, name: str = "") -> Tensor:
        return non_linearity(graph, kind, t, prog, name)

    apply.__doc__ = f"``non_linearity`` with NonLinearityType.{kind.name}."
    return apply


def _in_place(kind: NonLinearityType) -> Callable[..., None]:
    def apply(graph: Graph, t: Tensor, prog: Sequence, name: str = "") -> None:
        non_linearity_in_place(graph, kind, t, prog, name)

    apply.__doc__ = f"``non_linearity_in_place`` with NonLinearityType.{kind.name}."
    return apply


gelu, gelu_in_place = _new(NonLinearityType.GELU), _in_place(NonLinearityType.GELU)
gelu_erf, gelu_erf_in_place = _new(NonLinearityType.GELU_ERF), _in_place(NonLinearityType.GELU_ERF)
relu, relu_in_place = _new(NonLinearityType.RELU), _in_place(NonLinearityType.RELU)
sigmoid, sigmoid_in_place = _new(NonLinearityType.SIGMOID), _in_place(NonLinearityType.SIGMOID)
softmax_stable, softmax_stable_in_place = _new(NonLinearityType.SOFTMAX_STABLE), _in_place(NonLinearityType.SOFTMAX_STABLE)
scaled_softmax_stable, scaled_softmax_stable_in_place = _new(NonLinearityType.SOFTMAX_SCALED), _in_place(NonLinearityType.SOFTMAX_SCALED)
swish, swish_in_place = _new(NonLinearityType.SWISH), _in_place(NonLinearityType.SWISH)
tanh, tanh_in_place = _new(NonLinearityType.TANH), _in_place(NonLinearityType.TANH)
