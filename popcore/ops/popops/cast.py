"""cast, cast_with_output, check_accuracy_when_cast: other element types for the same values."""

from __future__ import annotations

from popcore.errors import ElementTypeError, ShapeError
from popcore.graph import ComputeSet, Graph, Tensor
from popcore.ops.popops import common
from popcore.ops.popops.expr import Abs, Cast, IsFinite, PlaceHolder
from popcore.ops.popops.mapping import map as map_elements
from popcore.ops.popops.mapping import map_with_output
from popcore.program import Sequence
from popcore.types import FLOAT, HALF, DTypeLike, ElementType, as_element_type


def cast(graph: Graph, t: Tensor, dtype: DTypeLike, prog: Sequence | ComputeSet, name: str = "") -> Tensor:
    """A new tensor with the values of ``t`` as ``dtype``, laid out as ``t`` is.

    A float becomes an integer toward zero, stopping at the type's limits, NaN becoming 0; a FLOAT the nearest HALF, ties to even,
    infinite where there is none; anything BOOL by ``!= 0``; an integer wraps at the width.
    Costs: one compute set; a copy where ``t`` is of that type already.
    """
    common.require_tensors("cast", t)
    wanted = as_element_type(dtype)
    step = common.joined(name, "cast")
    _check(t, wanted, step)
    if wanted is t.dtype and not isinstance(prog, ComputeSet):
        made = graph.clone(t, f"{step}/out")
        common.copy(prog, t, made, step)
        return made
    return map_elements(graph, Cast(PlaceHolder(1), wanted), [t], prog, name)


def cast_with_output(graph: Graph, t: Tensor, out: Tensor, prog: Sequence | ComputeSet, name: str = "") -> None:
    """The same, written to ``out``, which has the shape of ``t``."""
    common.require_tensors("cast", t, out)
    step = common.joined(name, "cast")
    _check(t, out.dtype, step)
    common.require_writeable(step, out)
    if t.shape != out.shape:
        raise ShapeError(f"{step} of {t!r} to {out!r}", "tensors of one shape")
    if out.dtype is t.dtype and not isinstance(prog, ComputeSet):
        common.copy(prog, t, out, step)
        return
    map_with_output(graph, Cast(PlaceHolder(1), out.dtype), [t], out, prog, name)


def check_accuracy_when_cast(graph: Graph, t: Tensor, dtype: DTypeLike, tolerance: float, prog: Sequence, name: str = "") -> Tensor:
    """A BOOL scalar: whether the FLOAT scalar ``t`` becomes a finite HALF within ``tolerance`` of it, relative to its size."""
    common.require_tensors("check_accuracy_when_cast", t)
    if t.dtype is not FLOAT or t.num_elements != 1 or as_element_type(dtype) is not HALF:
        raise ElementTypeError(f"check_accuracy_when_cast of {t!r} to {as_element_type(dtype)!r}", "a FLOAT scalar, to HALF")
    there = Cast(Cast(PlaceHolder(1), HALF), FLOAT)
    close = Abs(there - PlaceHolder(1)) <= Abs(PlaceHolder(1)) * float(tolerance)
    return map_elements(graph, close & IsFinite(there), [t.reshape(())], prog, common.joined(name, "check_accuracy_when_cast"))


def _check(t: Tensor, dtype: ElementType, step: str) -> None:
    if "quarter" in (t.dtype.kind, dtype.kind):
        raise ElementTypeError(f"{step} of {t!r} to {dtype!r}: FP8 is not available yet in this version", "FLOAT or HALF")
