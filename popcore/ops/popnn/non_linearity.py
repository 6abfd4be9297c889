"""Non-linearities and their gradients, each one fused vertex; softmax is in ``softmax``. After ``popnn/NonLinearity.hpp``."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Mapping

from popcore.errors import ElementTypeError, ShapeError, UnknownNameError
from popcore.graph import Graph, Tensor
from popcore.ops import popops
from popcore.ops.popnn import softmax
from popcore.ops.popops import common
from popcore.ops.popops.expr import Clamp, Const, Erf, Exp, Expr, Gt, Relu, Select, Sigmoid, Tanh
from popcore.ops.popops.widths import rounded, wide
from popcore.program import Sequence
from popcore.types import FLOAT, ElementType

SOFTMAX_SCALING = 62000.0
"""What SOFTMAX_SCALED is multiplied by, so that small probabilities are no denormals of HALF: PopLibs' (lib/popnn/NonLinearityInternal.hpp)."""
_ROOT_TWO_OVER_PI = math.sqrt(2 / math.pi)
_GELU_CUBE = 0.044715  # of the tanh form: Hendrycks and Gimpel, arXiv 1606.08415


class NonLinearityType(enum.Enum):
    """``SOFTMAX...`` are over the last dimension, and none of them overflows; SOFTMAX_SCALED is multiplied by ``SOFTMAX_SCALING``."""

    SIGMOID = "sigmoid"
    HARD_SIGMOID = "hard_sigmoid"  # 0.2 x + 0.5, between 0 and 1
    RELU = "relu"
    TANH = "tanh"
    GELU = "gelu"  # 0.5 x (1 + tanh(...)), the usual approximation
    GELU_ERF = "gelu_erf"  # exact
    SWISH = "swish"  # x sigmoid(x)
    SILU = "swish"  # noqa: PIE796  # another name of the same
    SOFTMAX = "softmax"
    SOFTMAX_STABLE = "softmax_stable"
    SOFTMAX_SCALED = "softmax_scaled"

    @property
    def is_softmax(self) -> bool:
        return self.value.startswith("softmax")

    @property
    def scaling(self) -> float:
        """What its outputs are multiplied by."""
        return SOFTMAX_SCALING if self is NonLinearityType.SOFTMAX_SCALED else 1.0


Kind = NonLinearityType


def non_linearity(graph: Graph, kind: NonLinearityType, t: Tensor, prog: Sequence, name: str = "") -> Tensor:
    """A new tensor of the non-linearity of each element, computed in FLOAT and rounded once; softmax over the last dimension.

    Raises: ElementTypeError: ``t`` is neither FLOAT nor HALF.
    """
    step = _checked(kind, name, t)
    if kind.is_softmax:
        return softmax.softmax(graph, t, prog, name, scaling=kind.scaling)
    return popops.map(graph, _expression(kind, t.dtype), [t], prog, step)


def non_linearity_in_place(graph: Graph, kind: NonLinearityType, t: Tensor, prog: Sequence, name: str = "") -> None:
    """The same, written to ``t``.

    Raises: as ``non_linearity``; GraphError where ``t`` shows an element twice or is constant.
    """
    step = _checked(kind, name, t)
    if kind.is_softmax:
        softmax.softmax_in_place(graph, t, prog, name, scaling=kind.scaling)
    else:
        popops.map_in_place(graph, _expression(kind, t.dtype), [t], prog, step)


def non_linearity_input_gradient(graph: Graph, kind: NonLinearityType, act: Tensor, out_gradient: Tensor, prog: Sequence, name: str = "") -> Tensor:
    """The gradient of the non-linearity's input, from that of its output.

    Args:
        act: What the non-linearity gave; of GELU, GELU_ERF and SWISH what it was given.

    Raises: ShapeError, ElementTypeError: ``act`` and ``out_gradient`` differ.
    """
    step = _checked(kind, name, act, out_gradient)
    if act.shape != out_gradient.shape:
        raise ShapeError(f"{step}: {act!r} and {out_gradient!r}", "a gradient for each element of act")
    if act.dtype is not out_gradient.dtype:
        raise ElementTypeError(f"{step}: {act!r} and {out_gradient!r}", "cast one of them")
    if kind.is_softmax:
        return softmax.softmax_gradient(graph, act, out_gradient, prog, step, kind.scaling)
    a, g = wide(1, act.dtype), wide(2, act.dtype)
    return popops.map(graph, rounded(g * SLOPES[kind](a), act.dtype), [act, out_gradient], prog, step)


def _hard_sigmoid(x: Expr) -> Expr:
    return Clamp(x * 0.2 + 0.5, Const(0.0), Const(1.0))


def _gelu_inner(x: Expr) -> Expr:
    return (x + x * x * x * _GELU_CUBE) * _ROOT_TWO_OVER_PI


def _gelu(x: Expr) -> Expr:
    return x * 0.5 * (Tanh(_gelu_inner(x)) + 1.0)


def _gelu_slope(x: Expr) -> Expr:
    t = Tanh(_gelu_inner(x))
    inner = (x * x * (3 * _GELU_CUBE) + 1.0) * _ROOT_TWO_OVER_PI
    return (t + 1.0) * 0.5 + x * 0.5 * (Const(1.0) - t * t) * inner


def _gelu_erf(x: Expr) -> Expr:
    return x * 0.5 * (Erf(x * math.sqrt(0.5)) + 1.0)


def _gelu_erf_slope(x: Expr) -> Expr:
    return (Erf(x * math.sqrt(0.5)) + 1.0) * 0.5 + x * Exp(x * x * -0.5) * (1 / math.sqrt(2 * math.pi))


def _swish_slope(x: Expr) -> Expr:
    s = Sigmoid(x)
    return s * (x * (Const(1.0) - s) + 1.0)


def _one_where(condition: Expr, value: float = 1.0) -> Expr:
    return Select(Const(value, FLOAT), Const(0.0, FLOAT), condition)


FUNCTIONS: Mapping[NonLinearityType, Callable[[Expr], Expr]] = {
    Kind.SIGMOID: Sigmoid,
    Kind.HARD_SIGMOID: _hard_sigmoid,
    Kind.RELU: Relu,
    Kind.TANH: Tanh,
    Kind.GELU: _gelu,
    Kind.GELU_ERF: _gelu_erf,
    Kind.SWISH: lambda x: x * Sigmoid(x),
}

SLOPES: Mapping[NonLinearityType, Callable[[Expr], Expr]] = {
    Kind.SIGMOID: lambda y: y * (Const(1.0) - y),
    Kind.HARD_SIGMOID: lambda y: _one_where(Gt(y, Const(0.0)) & Gt(Const(1.0), y), 0.2),
    Kind.RELU: lambda y: _one_where(Gt(y, Const(0.0))),
    Kind.TANH: lambda y: Const(1.0) - y * y,
    Kind.GELU: _gelu_slope,
    Kind.GELU_ERF: _gelu_erf_slope,
    Kind.SWISH: _swish_slope,
}
"""Of the output where that says it, else of the input: see ``non_linearity_input_gradient``."""


def _expression(kind: NonLinearityType, dtype: ElementType) -> Expr:
    return rounded(FUNCTIONS[kind](wide(1, dtype)), dtype)


def _checked(kind: NonLinearityType, name: str, *tensors: Tensor) -> str:
    """The name of the step.

    Raises: UnknownNameError, GraphError, ElementTypeError
    """
    if not isinstance(kind, NonLinearityType):
        raise UnknownNameError(f"there is no non-linearity {kind!r}", ", ".join(f"NonLinearityType.{k}" for k in NonLinearityType.__members__))
    step = common.joined(name, kind.value)
    common.require_tensors(step, *tensors)
    for t in tensors:
        if t.dtype.kind not in ("float", "half"):
            raise ElementTypeError(f"{step} of {t!r}", "FLOAT or HALF; cast it")
    return step
