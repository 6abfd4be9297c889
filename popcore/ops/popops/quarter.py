"""Casts from and to FP8, for ``cast``."""

from __future__ import annotations

from typing import Any

from popcore.codelets.operations import FLOAT_TYPE
from popcore.codelets.quarter import FromF143, FromF152, ToF143, ToF152
from popcore.errors import ElementTypeError
from popcore.graph import ComputeSet, Graph, Tensor
from popcore.ops.popops import common
from popcore.ops.popops.expr import Cast, PlaceHolder
from popcore.ops.popops.mapping import map as map_elements
from popcore.ops.popops.mapping import map_with_output
from popcore.ops.popops.placing import output_like, spread
from popcore.ops.poputil import QuarterMetadata, quarter_format
from popcore.program import Sequence
from popcore.types import QUARTER_F143, UNSIGNED_CHAR, ElementType


def cast_quarter(graph: Graph, t: Tensor, out: Tensor, source: Tensor | None, target: Tensor | None, prog: Sequence | ComputeSet, step: str) -> None:
    """Write the numbers of ``t`` to ``out``, one or both of them FP8, whose metadata are ``source`` and ``target``; none is a scale of 0."""
    for what, metadata, dtype in (("source_metadata", source, t.dtype), ("metadata", target, out.dtype)):
        _check(step, what, metadata, dtype)
    if t.dtype.kind == "quarter":
        wide = out if out.dtype.kind in ("float", "half") else output_like(graph, [t], t.shape, FLOAT_TYPE, f"{step}/wide")
        _spread(graph, FromF143 if t.dtype is QUARTER_F143 else FromF152, t.dtype, t, source, wide, prog, step)
        if wide is out:
            return
        t, prog = wide, common.sequence_of(prog, step)
    if out.dtype.kind != "quarter":
        map_with_output(graph, Cast(PlaceHolder(1), out.dtype), [t], out, prog, step)
        return
    if t.dtype.kind not in ("float", "half"):
        t, prog = map_elements(graph, Cast(PlaceHolder(1), FLOAT_TYPE), [t], prog, step), common.sequence_of(prog, step)
    _spread(graph, ToF143 if out.dtype is QUARTER_F143 else ToF152, out.dtype, t, target, out, prog, step)


def _spread(graph: Graph, codelet: Any, dtype: ElementType, t: Tensor, metadata: Tensor | None, out: Tensor, prog: Sequence | ComputeSet, step: str) -> None:
    if out.num_elements:
        byte = QuarterMetadata(quarter_format(dtype)).get_binary() if metadata is None else metadata.reshape(())
        spread(graph, common.compute_set_of(graph, prog, step), codelet[t.dtype, out.dtype], out, {"x": t}, {"metadata": byte})


def _check(step: str, what: str, metadata: Tensor | None, dtype: ElementType) -> None:
    """Raises: GraphError, ElementTypeError: metadata that are none, or for a tensor that has none."""
    if metadata is None:
        return
    common.require_tensors(step, metadata)
    if dtype.kind != "quarter":
        raise ElementTypeError(f"{step}: {what} for {dtype!r}", "metadata for FP8 only")
    if metadata.dtype is not UNSIGNED_CHAR or metadata.num_elements != 1:
        raise ElementTypeError(f"{step}: {what} is {metadata!r}", "poputil.create_constant_metadata_tensor")
