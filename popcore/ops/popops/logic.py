"""all_true, has_nan, has_nan_or_inf: one BOOL about a whole tensor."""

from __future__ import annotations

from popcore.errors import ElementTypeError
from popcore.graph import Graph, Tensor
from popcore.ops.popops import common
from popcore.ops.popops.expr import Expr, IsFinite, IsNaN, Not, PlaceHolder
from popcore.ops.popops.mapping import map as map_elements
from popcore.ops.popops.operation import Operation
from popcore.ops.popops.reduce import reduce
from popcore.program import Sequence
from popcore.types import BOOL


def all_true(graph: Graph, t: Tensor, prog: Sequence, name: str = "") -> Tensor:
    """A BOOL scalar: whether all elements of ``t``, a BOOL tensor, are true; of no elements, true."""
    step = common.joined(name, "all_true")
    common.require_tensors(step, t)
    if t.dtype is not BOOL:
        raise ElementTypeError(f"{step} of {t!r}", "a BOOL tensor, as comparisons give")
    return reduce(graph, t.flatten(), [0], Operation.LOGICAL_AND, prog, step)


def has_nan(graph: Graph, t: Tensor, prog: Sequence, name: str = "") -> Tensor:
    """A BOOL scalar: whether an element of ``t``, FLOAT or HALF, is NaN."""
    return _any(graph, t, IsNaN(PlaceHolder(1)), prog, common.joined(name, "has_nan"))


def has_nan_or_inf(graph: Graph, t: Tensor, prog: Sequence, name: str = "") -> Tensor:
    """A BOOL scalar: whether an element of ``t``, FLOAT or HALF, is NaN or infinite."""
    return _any(graph, t, Not(IsFinite(PlaceHolder(1))), prog, common.joined(name, "has_nan_or_inf"))


def _any(graph: Graph, t: Tensor, question: Expr, prog: Sequence, step: str) -> Tensor:
    common.require_tensors(step, t)
    return reduce(graph, map_elements(graph, question, [t.flatten()], prog, step), [0], Operation.LOGICAL_OR, prog, step)
