"""Softmax and its logarithm over the last dimension, which do not overflow. After ``popnn/NonLinearity.hpp`` and ``popnn/LogSoftmax.hpp``."""

from __future__ import annotations

from popcore.errors import ElementTypeError, ShapeError
from popcore.graph import Graph, Tensor
from popcore.ops import popops
from popcore.ops.popops import common
from popcore.ops.popops.expr import Exp, Expr, Log, PlaceHolder
from popcore.ops.popops.widths import rounded, wide
from popcore.program import Sequence
from popcore.types import ElementType


def softmax(graph: Graph, t: Tensor, prog: Sequence, name: str = "", *, scaling: float = 1.0) -> Tensor:
    """e**x over the sum of that along the last dimension, times ``scaling``, in FLOAT and rounded once.

    Raises:
        ShapeError: ``t`` is a scalar.
        ElementTypeError: it is neither FLOAT nor HALF.
    """
    step = _checked(common.joined(name, "softmax"), t)
    _, powers, total = _powers(graph, t, prog, step)
    return popops.map(graph, rounded(_share(scaling), t.dtype), [powers, total], prog, step)


def softmax_in_place(graph: Graph, t: Tensor, prog: Sequence, name: str = "", *, scaling: float = 1.0) -> None:
    """The same, written to ``t``."""
    step = _checked(common.joined(name, "softmax"), t)
    common.require_writeable(step, t)
    _, powers, total = _powers(graph, t, prog, step)
    popops.map_with_output(graph, rounded(_share(scaling), t.dtype), [powers, total], t, prog, step)


def log_softmax(graph: Graph, t: Tensor, prog: Sequence, name: str = "") -> Tensor:
    """The logarithm of the softmax, x - max - log(sum of e**(x - max)), in FLOAT and rounded once.

    Raises: as ``softmax``.
    """
    step = _checked(common.joined(name, "log_softmax"), t)
    largest, _, total = _powers(graph, t, prog, step)
    return popops.map(graph, _log_expression(t.dtype), [t, largest, total], prog, step)


def log_softmax_in_place(graph: Graph, t: Tensor, prog: Sequence, name: str = "") -> None:
    """The same, written to ``t``."""
    step = _checked(common.joined(name, "log_softmax"), t)
    common.require_writeable(step, t)
    largest, _, total = _powers(graph, t, prog, step)
    popops.map_in_place(graph, _log_expression(t.dtype), [t, largest, total], prog, step)


def softmax_gradient(graph: Graph, out: Tensor, out_gradient: Tensor, prog: Sequence, name: str, scaling: float = 1.0) -> Tensor:
    """out * (g - sum of g * out / scaling along the last dimension). Needs: checked tensors of one shape and type."""
    _checked(name, out)
    product = popops.map(graph, wide(1, out.dtype) * wide(2, out.dtype), [out, out_gradient], prog, name)
    total = _along_last(graph, product, popops.Operation.ADD, prog, name)
    along = PlaceHolder(3) if scaling == 1 else PlaceHolder(3) * (1 / scaling)
    e = wide(1, out.dtype) * (wide(2, out.dtype) - along)
    return popops.map(graph, rounded(e, out.dtype), [out, out_gradient, total], prog, name)


def _powers(graph: Graph, t: Tensor, prog: Sequence, step: str) -> tuple[Tensor, Tensor, Tensor]:
    """The largest along the last dimension, e**(x - largest) in FLOAT, and its sums along the last dimension, which is kept as one element."""
    largest = _along_last(graph, t, popops.Operation.MAX, prog, step)
    powers = popops.map(graph, Exp(wide(1, t.dtype) - wide(2, t.dtype)), [t, largest], prog, step)
    return largest, powers, _along_last(graph, powers, popops.Operation.ADD, prog, step)


def _share(scaling: float) -> Expr:
    return PlaceHolder(1) / PlaceHolder(2) if scaling == 1 else PlaceHolder(1) / PlaceHolder(2) * scaling


def _log_expression(dtype: ElementType) -> Expr:
    return rounded(wide(1, dtype) - wide(2, dtype) - Log(PlaceHolder(3)), dtype)


def _along_last(graph: Graph, t: Tensor, op: popops.Operation, prog: Sequence, step: str) -> Tensor:
    return popops.reduce(graph, t, [t.rank - 1], op, prog, step).expand([t.rank - 1])


def _checked(step: str, t: Tensor) -> str:
    common.require_tensors(step, t)
    if t.dtype.kind not in ("float", "half"):
        raise ElementTypeError(f"{step} of {t!r}", "FLOAT or HALF; cast it")
    if not t.rank:
        raise ShapeError(f"{step} of {t!r}", "a tensor with a last dimension")
    return step
