"""cast, cast_with_output, check_accuracy_when_cast: other element types for the same values."""

from __future__ import annotations

from popcore.errors import ElementTypeError, ShapeError
from popcore.graph import ComputeSet, Graph, Tensor
from popcore.ops.popops import common
from popcore.ops.popops.expr import Abs, Cast, IsFinite, PlaceHolder
from popcore.ops.popops.mapping import map as map_elements
from popcore.ops.popops.mapping import map_with_output
from popcore.ops.popops.placing import output_like
from popcore.ops.popops.quarter import cast_quarter
from popcore.program import Sequence
from popcore.types import FLOAT, HALF, DTypeLike, as_element_type


def cast(
    graph: Graph, t: Tensor, dtype: DTypeLike, prog: Sequence | ComputeSet, name: str = "", *, metadata: Tensor | None = None,
    source_metadata: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """A new tensor with the values of ``t`` as ``dtype``, laid out as ``t`` is.

    A float becomes an integer toward zero, stopping at the type's limits, NaN becoming 0; a FLOAT the nearest HALF, ties to even,
    infinite where there is none; anything BOOL by ``!= 0``; an integer wraps at the width. FP8 (QUARTER_F143, QUARTER_F152): the nearest code,
    ties to even, NaN where there is none.

    Args:
        metadata, source_metadata: Of the result and of ``t``, where they are FP8, from ``poputil.create_constant_metadata_tensor`` or
            ``create_variable_metadata_tensor``: a code stands for its number times 2**scale. Without, the scale is 0.

    Raises: ElementTypeError: metadata that are none.
    Costs: one compute set, two between FP8 and an integer or another FP8; a copy where ``t`` is of that type already.
    """
    common.require_tensors("cast", t)
    wanted = as_element_type(dtype)
    step = common.joined(name, "cast")
    if "quarter" in (t.dtype.kind, wanted.kind):
        made = output_like(graph, [t], t.shape, wanted, f"{step}/out")
        cast_quarter(graph, t, made, source_metadata, metadata, prog, step)
        return made
    _no_metadata(step, metadata, source_metadata)
    if wanted is t.dtype and not isinstance(prog, ComputeSet):
        made = graph.clone(t, f"{step}/out")
        common.copy(prog, t, made, step)
        return made
    return map_elements(graph, Cast(PlaceHolder(1), wanted), [t], prog, name)


def cast_with_output(
    graph: Graph, t: Tensor, out: Tensor, prog: Sequence | ComputeSet, name: str = "", *, metadata: Tensor | None = None,
    source_metadata: Tensor | None = None,
) -> None:  # fmt: skip
    """The same, written to ``out``, which has the shape of ``t``."""
    common.require_tensors("cast", t, out)
    step = common.joined(name, "cast")
    common.require_writeable(step, out)
    if t.shape != out.shape:
        raise ShapeError(f"{step} of {t!r} to {out!r}", "tensors of one shape")
    if "quarter" in (t.dtype.kind, out.dtype.kind):
        cast_quarter(graph, t, out, source_metadata, metadata, prog, step)
        return
    _no_metadata(step, metadata, source_metadata)
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


def _no_metadata(step: str, *metadata: Tensor | None) -> None:
    if any(m is not None for m in metadata):
        raise ElementTypeError(f"{step}: metadata, but no FP8", "QUARTER_F143 or QUARTER_F152")
