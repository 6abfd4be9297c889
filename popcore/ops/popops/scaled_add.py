"""scaled_add_to, scaled_subtract_from: ``a += s * b`` and its relatives."""

from __future__ import annotations

import enum
from typing import Any, overload

from popcore.codelets.operations import FLOAT_TYPE
from popcore.errors import ElementTypeError, GraphError, ShapeError
from popcore.graph import ComputeSet, Graph, Tensor
from popcore.ops.popops import common
from popcore.ops.popops.expr import Cast, Expr, Parameter, PlaceHolder
from popcore.ops.popops.mapping import map_in_place
from popcore.program import Sequence
from popcore.types import ElementType

OPTIONS = {"optimizeForSpeed": ("false", "true")}
_COST = {("half", "half"): (29, 3, 4), ("float", "float"): (29, 3, 2), ("half", "float"): (28, 5, 4), ("float", "half"): (29, 4, 2)}
"""A worker's cycles to begin, and then so many for each so many elements, as PopLibs' estimator of its own vertices has it; of integers see the expression."""
_TOLERANCE = "scaleFloatToHalfTolerance"


class ScaledAddSpecialisation(enum.Enum):
    """What becomes of the first tensor a, with scales s and t and the second tensor b."""

    DEFAULT = "s a + t b"
    X_MINUS_AX_PLUS_BY = "a - s a + t b"


Scale = float | Tensor
"""A number, or a tensor of one element."""


@overload
def scaled_add_to(graph: Graph, a: Tensor, b: Tensor, scale_b: Scale, prog: Sequence | ComputeSet, name: str = "", options: Any = None) -> None: ...
@overload
def scaled_add_to(
    graph: Graph, a: Tensor, scale_a: Scale, b: Tensor, scale_b: Scale, prog: Sequence | ComputeSet, name: str = "",
    specialisation: ScaledAddSpecialisation = ..., options: Any = None,
) -> None: ...  # fmt: skip
def scaled_add_to(graph: Graph, a: Tensor, *arguments: Any, **named: Any) -> None:
    """``a += scale_b * b``; with ``scale_a`` before ``b``, ``a = scale_a * a + scale_b * b``. Scales are numbers or tensors of one element.

    Where a HALF is involved everything is computed in FLOAT and rounded once, so a scale keeps its value. Integers take integer scales.

    Raises: ShapeError: ``a`` and ``b`` of different shapes. GraphError: ``a`` cannot be written. ElementTypeError: types that do not go together.
    """
    _scaled(graph, "scaled_add_to", 1, a, arguments, named)


@overload
def scaled_subtract_from(graph: Graph, a: Tensor, b: Tensor, scale_b: Scale, prog: Sequence | ComputeSet, name: str = "", options: Any = None) -> None: ...
@overload
def scaled_subtract_from(
    graph: Graph, a: Tensor, scale_a: Scale, b: Tensor, scale_b: Scale, prog: Sequence | ComputeSet, name: str = "", options: Any = None
) -> None: ...
def scaled_subtract_from(graph: Graph, a: Tensor, *arguments: Any, **named: Any) -> None:
    """``a -= scale_b * b``; with ``scale_a`` before ``b``, ``a = scale_a * a - scale_b * b``. See ``scaled_add_to``."""
    _scaled(graph, "scaled_subtract_from", -1, a, arguments, named)


def _scaled(graph: Graph, op: str, sign: int, a: Tensor, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
    both = "scale_a" in named or (
        len(arguments) > 1 and isinstance(arguments[1], Tensor) and not isinstance(arguments[2:3] and arguments[2], Sequence | ComputeSet)
    )
    names = ["scale_a", "b", "scale_b", "prog", "name", "specialisation", "options"] if both else ["b", "scale_b", "prog", "name", "options"]
    if both and sign < 0:
        names.remove("specialisation")
    given = dict(zip(names, arguments, strict=False))
    missing = [n for n in names[: 4 if both else 3] if n not in given and n not in named]
    if missing or len(arguments) > len(names) or any(n in given or n not in names for n in named):
        raise GraphError(f"{op} is given {len(arguments) + 1 + len(named)} arguments", "(graph, a, b, scale_b, prog) or (graph, a, scale_a, b, scale_b, prog)")
    given |= named
    step = common.joined(given.get("name", ""), op)
    options = dict(given.get("options") or {})
    options.pop(_TOLERANCE, None)  # scales are never narrowed, so nothing is to be tolerated
    common.read_options(op, options, OPTIONS)
    specialisation = given.get("specialisation", ScaledAddSpecialisation.DEFAULT)
    _add(graph, step, sign, a, given["b"], given.get("scale_a"), given["scale_b"], specialisation, given["prog"])


def _add(graph: Graph, step: str, sign: int, a: Tensor, b: Any, scale_a: Any, scale_b: Any, how: ScaledAddSpecialisation, prog: Sequence | ComputeSet) -> None:
    common.require_tensors(step, a, b)
    if a.shape != b.shape:
        raise ShapeError(f"{step} of {a!r} and {b!r}", "tensors of one shape")
    floats = ("float", "half")
    if not (a.dtype is b.dtype and a.dtype.is_integral) and not (a.dtype.kind in floats and b.dtype.kind in floats):
        raise ElementTypeError(f"{step} of {a!r} and {b!r}", "FLOAT and HALF in any combination, or one integer type")
    compute = FLOAT_TYPE if a.dtype.kind in floats else a.dtype
    tensors = [a, b]
    x, y = _as(PlaceHolder(1), a.dtype, compute), _as(PlaceHolder(2), b.dtype, compute)
    added = y if _is_one(scale_b) else _scale(scale_b, compute, tensors, step) * y
    kept = x
    if scale_a is not None:
        scaled = _scale(scale_a, compute, tensors, step) * x
        kept = x - scaled if how is ScaledAddSpecialisation.X_MINUS_AX_PLUS_BY else scaled
    result = kept + added if sign > 0 else kept - added
    cost = _COST.get((a.dtype.kind, b.dtype.kind))
    map_in_place(graph, _as(result, compute, a.dtype), tensors, prog, step, cost=cost)


def _scale(scale: Any, compute: ElementType, tensors: list[Tensor], step: str) -> Expr:
    if not isinstance(scale, Tensor):
        return Parameter(scale, compute)
    if scale.num_elements != 1 or (scale.dtype.kind not in ("float", "half") if compute is FLOAT_TYPE else scale.dtype is not compute):
        raise ElementTypeError(f"a scale of {step} is {scale!r}", f"one element of {'FLOAT or HALF' if compute is FLOAT_TYPE else repr(compute)}")
    tensors.append(scale.reshape(()))
    return _as(PlaceHolder(len(tensors)), scale.dtype, compute)


def _as(e: Expr, dtype: ElementType, wanted: ElementType) -> Expr:
    return e if dtype is wanted else Cast(e, wanted)


def _is_one(scale: Any) -> bool:
    return not isinstance(scale, Tensor) and scale == 1
