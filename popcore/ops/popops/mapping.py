"""map, map_in_place, map_with_output: an expression over the elements of tensors, as one fused vertex a worker."""

from __future__ import annotations

from collections.abc import Sequence as Items
from typing import Any

import numpy as np

from popcore.codelets.expressions import Handed, Signature, Typed, handed, source_of, vertex_class
from popcore.errors import ElementTypeError, ShapeError
from popcore.graph import ComputeSet, Graph, Tensor
from popcore.ops.popops import common
from popcore.ops.popops.infer import as_expression, infer
from popcore.ops.popops.placing import output_like, spread
from popcore.ops.poputil import broadcast_to_match, duplicate
from popcore.program import Sequence

OPTIONS = {
    "enableVectorBroadcastOptimisations": ("true", "false"),
    "enableGenerateCodelet": ("true", "false"),
    "forceGenerateCodelet": ("false", "true"),
}
"""Taken for the sake of programs that set them: every expression becomes one generated vertex."""


def map(graph: Graph, expression: Any, tensors: Items[Tensor], prog: Sequence | ComputeSet, name: str = "", options: common.Options | None = None) -> Tensor:
    """A new tensor of what ``expression`` is for each element; shapes are broadcast as NumPy does.

    Args:
        expression: Of ``popops.expr``, ``_1`` the first tensor; or a UnaryOpType, BinaryOpType, TernaryOpType.
        prog: Where the step is added; or a compute set, which then gets the vertices.

    Raises:
        ElementTypeError: operands of different types; an operation that is not for their type.
        ShapeError: shapes that cannot be broadcast.
        TileMappingError: an operand that decides where the result goes is not wholly mapped.
    Costs: one compute set.
    """
    common.read_options("map", options, OPTIONS)
    common.require_tensors("map", *tensors)
    typed = infer(as_expression(expression, len(tensors)), [t.dtype for t in tensors])
    step = common.joined(name, _title(typed))
    shape = _shape_of(tensors)
    out = output_like(graph, tensors, shape, typed.dtype, f"{step}/out")
    _add(graph, typed, tensors, out, 0, prog, step)
    return out


def map_in_place(
    graph: Graph,
    expression: Any,
    tensors: Items[Tensor],
    prog: Sequence | ComputeSet,
    name: str = "",
    options: common.Options | None = None,
    *,
    cost: tuple[int, int, int] | None = None,
) -> None:
    """The same, written to the first tensor, whose shape and type the result must have.

    Args:
        cost: What a worker takes where the expression does not say it: cycles to begin, and then so many for each so many elements.

    Raises: as ``map``; GraphError where the first tensor shows an element twice or is constant.
    """
    if not tensors:
        raise ShapeError("map_in_place of no tensors", "the first is the one that is written")
    map_with_output(graph, expression, tensors, tensors[0], prog, name, options, cost=cost)


def map_with_output(
    graph: Graph,
    expression: Any,
    tensors: Items[Tensor],
    out: Tensor,
    prog: Sequence | ComputeSet,
    name: str = "",
    options: common.Options | None = None,
    *,
    cost: tuple[int, int, int] | None = None,
) -> None:
    """The same, written to ``out``. It may be one of the operands, or meet some of their elements: those are read first.

    Raises: as ``map_in_place``; TileMappingError where ``out`` is not wholly mapped.
    """
    common.read_options("map", options, OPTIONS)
    common.require_tensors("map", out, *tensors)
    typed = infer(as_expression(expression, len(tensors)), [t.dtype for t in tensors], out.dtype)
    step = common.joined(name, _title(typed))
    common.require_writeable(step, out)
    if typed.dtype is not out.dtype:
        raise ElementTypeError(f"{step} gives {typed.dtype!r} and is to write {out!r}", f"Cast(expression, {out.dtype!r})")
    if tensors and _shape_of([*tensors, out]) != out.shape:
        raise ShapeError(f"{step} of {', '.join(repr(t) for t in tensors)} does not give the shape of {out!r}", "an output of the broadcast shape")
    same = next((i + 1 for i, t in enumerate(tensors) if t.num_elements == out.num_elements and same_elements(t, out)), 0)
    kept = [t if same and same_elements(t, out) else _apart(graph, t, out, prog, step) for t in tensors]
    _add(graph, typed, kept, out, same, prog, step, cost)


def output_generated_codelet(expression: Any, tensors: Items[Tensor], name: str = "Map") -> str:
    """The source of the vertex class that ``map`` makes of an expression."""
    typed = infer(as_expression(expression, len(tensors)), [t.dtype for t in tensors])
    scalars = tuple(t.num_elements == 1 and _shape_of(tensors) != t.shape for t in tensors)
    cls = vertex_class(typed, Signature(tuple(t.dtype for t in tensors), scalars, typed.dtype))
    return source_of(cls).replace(cls.__qualname__, name)


def same_elements(a: Tensor, b: Tensor) -> bool:
    """Whether two views show the same elements in the same order."""
    if a.shape != b.shape:
        return False
    if a.variable is not None and b.variable is not None:
        return a.variable is b.variable and a.offset == b.offset and all(
            n == 1 or s == t for n, s, t in zip(a.shape, a.strides, b.strides, strict=True)
        )  # fmt: skip
    x, y = a.regions(), b.regions()
    return np.array_equal(x.ids, y.ids) and np.array_equal(x.length, y.length)


def _apart(graph: Graph, t: Tensor, out: Tensor, prog: Sequence | ComputeSet, step: str) -> Tensor:
    """``t``, or a copy where one vertex would read what another writes."""
    if not t.intersects_with(out):
        return t
    return duplicate(graph, t, common.sequence_of(prog, step), f"{step}/before")


def _add(
    graph: Graph,
    typed: Typed,
    tensors: Items[Tensor],
    out: Tensor,
    in_place: int,
    prog: Sequence | ComputeSet,
    step: str,
    cost: tuple[int, int, int] | None = None,
) -> None:
    if not out.num_elements:
        return
    used = _placeholders(typed)
    scalars = tuple(t.num_elements == 1 and out.num_elements != 1 for t in tensors)
    if in_place and in_place not in used:
        in_place = 0
    if in_place:  # other placeholders of the same elements are the same placeholder
        again = {i + 1 for i, t in enumerate(tensors) if i + 1 != in_place and same_elements(t, out)}
        typed = _replaced(typed, again, in_place)
        used -= again
    cls = vertex_class(typed, Signature(tuple(t.dtype for t in tensors), scalars, out.dtype, in_place))
    vectors = {f"in{k}": _matched(tensors[k - 1], out.shape) for k in sorted(used) if k != in_place and not scalars[k - 1]}
    single = {f"in{k}": tensors[k - 1].reshape(()) for k in sorted(used) if scalars[k - 1]}
    spread(graph, common.compute_set_of(graph, prog, step), cls, out, vectors, {**single, **handed(typed)}, cost)


def _matched(t: Tensor, shape: tuple[int, ...]) -> Tensor:
    return t if t.shape == shape else broadcast_to_match(t, shape=shape)[0]


def _shape_of(tensors: Items[Tensor]) -> tuple[int, ...]:
    """The shape that all are broadcast to; of no tensors, that of a scalar."""
    return broadcast_to_match(*tensors)[0].shape if tensors else ()


def _placeholders(typed: Typed) -> set[int]:
    if isinstance(typed.what, int):
        return {typed.what}
    found: set[int] = set()
    return found.union(*(_placeholders(o) for o in typed.operands))


def _replaced(typed: Typed, again: set[int], by: int) -> Typed:
    if isinstance(typed.what, int):
        return Typed(typed.dtype, by) if typed.what in again else typed
    return Typed(typed.dtype, typed.what, tuple(_replaced(o, again, by) for o in typed.operands)) if again else typed


def _title(typed: Typed) -> str:
    """What a step is called: its outermost operation."""
    if isinstance(typed.what, str | int | np.ndarray | Handed):
        return "cast" if typed.operands else "copy"
    return str(typed.what.value)
