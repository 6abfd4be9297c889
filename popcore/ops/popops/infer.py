"""Types for expressions: which element type each part has, constants included."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from popcore.codelets.expressions import Handed, Typed
from popcore.codelets.operations import BOOL_TYPE, FLOAT_TYPE, INT_TYPE, ROWS, BinaryOpType, OpType, TernaryOpType, UnaryOpType, operand_count
from popcore.errors import ElementTypeError, GraphError
from popcore.graph.values import as_elements
from popcore.ops.popops.expr import Cast, Const, Expr, Operation, Parameter, PlaceHolder, as_expr
from popcore.types import ElementType

_DEFAULTS: Mapping[type, ElementType] = {bool: BOOL_TYPE, int: INT_TYPE, float: FLOAT_TYPE}


def infer(expression: Expr, dtypes: Sequence[ElementType], wanted: ElementType | None = None) -> Typed:
    """Types for all parts of ``expression`` whose placeholders have ``dtypes``; ``wanted`` is for a lone constant.

    Raises:
        ElementTypeError: operands that differ, an operation that is not for their type.
        ValueRangeError: a constant that the type beside it cannot hold.
        GraphError: a placeholder for which there is no tensor.
    """
    return _typed(expression, dtypes, wanted, expression)


def as_expression(what: Any, operands: int) -> Expr:
    """An expression, or an operation of the first ``operands`` tensors given by its OpType."""
    if isinstance(what, UnaryOpType | BinaryOpType | TernaryOpType):
        count = operand_count(what)
        if operands != count:
            raise GraphError(f"map of {what} with {operands} tensors", f"{count} of them")
        made = Operation(*(PlaceHolder(i + 1) for i in range(count)))
        made.op = what
        return made
    return as_expr(what)


def _known(e: Expr, dtypes: Sequence[ElementType]) -> ElementType | None:
    """The type that a part has by itself; None where only constants without a type are."""
    match e:
        case PlaceHolder():
            if e.index > len(dtypes):
                raise GraphError(f"{e!r} has no tensor: {len(dtypes)} are given", "pass as many tensors as the expression has placeholders")
            return dtypes[e.index - 1]
        case Const() | Cast():
            return e.dtype
        case Operation():
            if ROWS[e.op].gives_bool:
                return BOOL_TYPE
            return next((t for o in _alike(e) if (t := _known(o, dtypes)) is not None), None)
    raise GraphError(f"{e!r} is no expression of popops", "use the classes of popops.expr")


def _alike(e: Operation) -> tuple[Expr, ...]:
    """The operands that have to be of one type."""
    return e.operands[:2] if e.op is TernaryOpType.SELECT else e.operands


def _typed(e: Expr, dtypes: Sequence[ElementType], wanted: ElementType | None, whole: Expr) -> Typed:
    match e:
        case PlaceHolder():
            found = _known(e, dtypes)
            assert found is not None
            return Typed(found, e.index)
        case Const():
            dtype = e.dtype or wanted or _DEFAULTS[type(e.value)]
            value = as_elements(e.value, dtype, f"the constant {e!r} in {whole!r}")
            return Typed(dtype, Handed(value) if isinstance(e, Parameter) else value)
        case Cast():
            if e.dtype.kind == "quarter":
                raise ElementTypeError(f"{e!r}: expressions are not of FP8", "popops.cast")
            return Typed(e.dtype, "cast", (_typed(e.expression, dtypes, None, whole),))
        case Operation():
            return _operation(e, dtypes, wanted, whole)
    raise GraphError(f"{e!r} is no expression of popops", "use the classes of popops.expr")


def _operation(e: Operation, dtypes: Sequence[ElementType], wanted: ElementType | None, whole: Expr) -> Typed:
    row = ROWS[e.op]
    found = next((t for o in _alike(e) if (t := _known(o, dtypes)) is not None), None)
    if found is None:
        found = wanted if wanted is not None and not row.gives_bool else _default(e)
    made = tuple(_typed(o, dtypes, found, whole) for o in _alike(e))
    if e.op is TernaryOpType.SELECT:
        made = (*made, _typed(e.operands[2], dtypes, BOOL_TYPE, whole))
        if made[2].dtype is not BOOL_TYPE:
            raise ElementTypeError(f"the condition of {e!r} is {made[2].dtype!r}", "a BOOL, as a comparison gives")
    if any(m.dtype is not found for m in made[: len(_alike(e))]):
        types = ", ".join(repr(m.dtype) for m in made)
        raise ElementTypeError(f"{e!r} is given {types}; there is no promotion", f"Cast(expression, {found!r}), or popops.cast")
    if not row.takes(found):
        raise ElementTypeError(f"{e!r}: {e.op.value} does not take {found!r}", f"it takes {_described(e.op)}")
    return Typed(BOOL_TYPE if row.gives_bool else found, e.op, made)


def _default(e: Expr) -> ElementType:
    """The type of a part made of constants without a type: that of the widest number in it."""
    types = [_DEFAULTS[type(c.value)] for c in _constants(e)]
    return max(types, key=(BOOL_TYPE, INT_TYPE, FLOAT_TYPE).index)


def _constants(e: Expr) -> list[Const]:
    return [e] if isinstance(e, Const) else [c for o in e.operands for c in _constants(o)]


def _described(op: OpType) -> str:
    names = {"f": "FLOAT", "h": "HALF", "i": "signed integers", "u": "unsigned integers", "b": "BOOL"}
    row = ROWS[op]
    return ", ".join(names[k] for k in row.kinds) + (f" of {row.bits} bits" if row.bits else "")
