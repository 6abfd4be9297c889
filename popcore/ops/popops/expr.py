"""Expressions over the elements of tensors: ``_1 * Const(2) + _2``, for ``map``, ``map_in_place`` and ``map_with_output``.

Placeholders stand for the tensors of the call. Operators and the classes here build a tree, which becomes one vertex. After
``popops/Expr.hpp``. There is no promotion: operands of an operation have one element type, and a constant without a
type takes that of the other side.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from popcore.codelets.operations import BinaryOpType, OpType, TernaryOpType, UnaryOpType
from popcore.errors import ElementTypeError, GraphError
from popcore.types import HALF, DTypeLike, ElementType, as_element_type

__all__ = [
    "Abs", "Add", "And", "Asin", "Atan2", "BinaryOp", "BinaryOpType", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXnor", "BitwiseXor", "Cast",
    "Cbrt", "Ceil", "Clamp", "Const", "ConstHalf", "Cos", "CountLeadingZeros", "Divide", "Equal", "Erf", "Exp", "Exp2", "Expm1", "Expr", "Floor",
    "GeluErf", "Gt", "Gte", "Inv", "InvStdDevToVariance", "IsFinite", "IsInf", "IsNaN", "Log", "Log1p", "Lt", "Lte", "Max", "Min", "Mul",
    "NearbyInt", "Neg", "Not", "NotEqual", "Operand", "Or", "Parameter", "PlaceHolder", "Popcount", "Pow", "Relu", "Rem", "Round", "Rsqrt", "Select", "Shl", "Shr",
    "ShrSE", "Sigmoid", "Signum", "Sin", "Sqrt", "Square", "Sub", "Tan", "Tanh", "TernaryOp", "TernaryOpType", "Trunc", "UnaryOp", "UnaryOpType",
    "VarianceToInvStdDev", "_1", "_2", "_3", "_4", "_5", "_6", "_7", "_8", "_9", "_10", "_11", "_12", "_13", "_14", "_15", "_16", "_17", "_18",
    "_19", "_20", "as_expr",
]  # fmt: skip


class Expr:
    """Base of expressions. ``/`` divides (integers toward zero), ``%`` has the sign of its left side, ``&`` and ``|`` of BOOL are logical."""

    def __add__(self, other: Operand) -> Expr:
        return Add(self, other)

    def __radd__(self, other: Operand) -> Expr:
        return Add(other, self)

    def __sub__(self, other: Operand) -> Expr:
        return Sub(self, other)

    def __rsub__(self, other: Operand) -> Expr:
        return Sub(other, self)

    def __mul__(self, other: Operand) -> Expr:
        return Mul(self, other)

    def __rmul__(self, other: Operand) -> Expr:
        return Mul(other, self)

    def __truediv__(self, other: Operand) -> Expr:
        return Divide(self, other)

    def __rtruediv__(self, other: Operand) -> Expr:
        return Divide(other, self)

    def __mod__(self, other: Operand) -> Expr:
        return Rem(self, other)

    def __rmod__(self, other: Operand) -> Expr:
        return Rem(other, self)

    def __pow__(self, other: Operand) -> Expr:
        return Pow(self, other)

    def __rpow__(self, other: Operand) -> Expr:
        return Pow(other, self)

    def __lshift__(self, other: Operand) -> Expr:
        return Shl(self, other)

    def __rshift__(self, other: Operand) -> Expr:
        return Shr(self, other)

    def __and__(self, other: Operand) -> Expr:
        return BitwiseAnd(self, other)

    def __rand__(self, other: Operand) -> Expr:
        return BitwiseAnd(other, self)

    def __or__(self, other: Operand) -> Expr:
        return BitwiseOr(self, other)

    def __ror__(self, other: Operand) -> Expr:
        return BitwiseOr(other, self)

    def __xor__(self, other: Operand) -> Expr:
        return BitwiseXor(self, other)

    def __rxor__(self, other: Operand) -> Expr:
        return BitwiseXor(other, self)

    def __invert__(self) -> Expr:
        return BitwiseNot(self)

    def __neg__(self) -> Expr:
        return Neg(self)

    def __pos__(self) -> Expr:
        return self

    def __abs__(self) -> Expr:
        return Abs(self)

    def __lt__(self, other: Operand) -> Expr:
        return Lt(self, other)

    def __le__(self, other: Operand) -> Expr:
        return Lte(self, other)

    def __gt__(self, other: Operand) -> Expr:
        return Gt(self, other)

    def __ge__(self, other: Operand) -> Expr:
        return Gte(self, other)

    def __eq__(self, other: object) -> Expr:  # type: ignore[override]  # as in PopLibs: an expression, not an answer
        return Equal(self, other)  # type: ignore[arg-type]

    def __ne__(self, other: object) -> Expr:  # type: ignore[override]
        return NotEqual(self, other)  # type: ignore[arg-type]

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise GraphError(
            f"{self!r} is an expression and neither true nor false here", "& and | instead of and, or and chained comparisons; Select instead of if"
        )

    @property
    def operands(self) -> tuple[Expr, ...]:
        """The expressions that this one is made of."""
        return ()


Operand: TypeAlias = "Expr | bool | int | float | np.number[Any] | np.bool_"
"""What an expression can be made of: an expression or a number."""


class PlaceHolder(Expr):
    """The elements of one tensor of the call, counted from 1: ``_1`` is ``PlaceHolder(1)``."""

    def __init__(self, index: int) -> None:
        if index < 1:
            raise GraphError(f"PlaceHolder({index})", "the tensors of a call count from 1")
        self.index = index

    def __repr__(self) -> str:
        return f"_{self.index}"


class Const(Expr):
    """A number. Without ``dtype`` it takes the element type of what it stands beside."""

    def __init__(self, value: Any, dtype: DTypeLike | None = None) -> None:
        if isinstance(value, Expr) or not isinstance(value, bool | int | float | np.number | np.bool_):
            raise ElementTypeError(f"Const({value!r:.40}) is no number", "a number, or _1 for a tensor")
        if dtype is None and isinstance(value, np.float16 | np.float32):
            dtype = value.dtype
        self.value = value.item() if isinstance(value, np.generic) else value
        self.dtype: ElementType | None = None if dtype is None else as_element_type(dtype)

    def __repr__(self) -> str:
        return f"{self.value!r}" if self.dtype is None else f"{self.dtype!r}({self.value!r})"


class Parameter(Const):
    """A number that each vertex is handed rather than one written into its code: expressions that differ in it only share their code."""


def ConstHalf(value: float) -> Const:
    """A HALF."""
    return Const(value, HALF)


class Cast(Expr):
    """An expression converted: to an integer toward zero, to BOOL by ``!= 0``."""

    def __init__(self, expression: Operand, dtype: DTypeLike) -> None:
        self.expression, self.dtype = as_expr(expression), as_element_type(dtype)

    @property
    def operands(self) -> tuple[Expr, ...]:
        return (self.expression,)

    def __repr__(self) -> str:
        return f"Cast({self.expression!r}, {self.dtype!r})"


class Operation(Expr):
    """An operation of ``operations.ROWS`` and its operands."""

    op: OpType

    def __init__(self, *operands: Operand) -> None:
        self._operands = tuple(as_expr(o) for o in operands)

    @property
    def operands(self) -> tuple[Expr, ...]:
        return self._operands

    def __repr__(self) -> str:
        return f"{self.op.value}({', '.join(map(repr, self._operands))})"


class UnaryOp(Operation):
    """An operation of one operand: ``Exp(_1)``, or ``UnaryOp(_1, UnaryOpType.EXPONENT)``."""

    def __init__(self, a: Operand, op: UnaryOpType | None = None) -> None:
        super().__init__(a)
        self.op = op or self.op


class BinaryOp(Operation):
    """An operation of two operands."""

    def __init__(self, a: Operand, b: Operand, op: BinaryOpType | None = None) -> None:
        super().__init__(a, b)
        self.op = op or self.op


class TernaryOp(Operation):
    """An operation of three operands."""

    def __init__(self, a: Operand, b: Operand, c: Operand, op: TernaryOpType | None = None) -> None:
        super().__init__(a, b, c)
        self.op = op or self.op


def as_expr(what: Operand) -> Expr:
    """An expression as it is, a number as ``Const``."""
    return what if isinstance(what, Expr) else Const(what)


def _unary(name: str, op: UnaryOpType) -> type[UnaryOp]:
    return type(name, (UnaryOp,), {"op": op, "__doc__": f"{op.value} of one expression.", "__module__": __name__})


def _binary(name: str, op: BinaryOpType) -> type[BinaryOp]:
    return type(name, (BinaryOp,), {"op": op, "__doc__": f"{op.value} of two expressions.", "__module__": __name__})


def _ternary(name: str, op: TernaryOpType, doc: str) -> type[TernaryOp]:
    return type(name, (TernaryOp,), {"op": op, "__doc__": doc, "__module__": __name__})


Abs = _unary("Abs", UnaryOpType.ABSOLUTE)
Asin = _unary("Asin", UnaryOpType.ASIN)
BitwiseNot = _unary("BitwiseNot", UnaryOpType.BITWISE_NOT)
Cbrt = _unary("Cbrt", UnaryOpType.CBRT)
Ceil = _unary("Ceil", UnaryOpType.CEIL)
Cos = _unary("Cos", UnaryOpType.COS)
CountLeadingZeros = _unary("CountLeadingZeros", UnaryOpType.COUNT_LEADING_ZEROS)
Erf = _unary("Erf", UnaryOpType.ERF)
Exp = _unary("Exp", UnaryOpType.EXPONENT)
Exp2 = _unary("Exp2", UnaryOpType.EXPONENT2)
Expm1 = _unary("Expm1", UnaryOpType.EXPONENT_MINUS_ONE)
Floor = _unary("Floor", UnaryOpType.FLOOR)
GeluErf = _unary("GeluErf", UnaryOpType.GELU_ERF)
Inv = _unary("Inv", UnaryOpType.INVERSE)
IsFinite = _unary("IsFinite", UnaryOpType.IS_FINITE)
IsInf = _unary("IsInf", UnaryOpType.IS_INF)
IsNaN = _unary("IsNaN", UnaryOpType.IS_NAN)
Log = _unary("Log", UnaryOpType.LOGARITHM)
Log1p = _unary("Log1p", UnaryOpType.LOGARITHM_ONE_PLUS)
NearbyInt = _unary("NearbyInt", UnaryOpType.NEARBY_INT)
Neg = _unary("Neg", UnaryOpType.NEGATE)
Not = _unary("Not", UnaryOpType.LOGICAL_NOT)
Popcount = _unary("Popcount", UnaryOpType.POPCOUNT)
Relu = _unary("Relu", UnaryOpType.RELU)
Round = _unary("Round", UnaryOpType.ROUND)
Rsqrt = _unary("Rsqrt", UnaryOpType.RSQRT)
Sigmoid = _unary("Sigmoid", UnaryOpType.SIGMOID)
Signum = _unary("Signum", UnaryOpType.SIGNUM)
Sin = _unary("Sin", UnaryOpType.SIN)
Sqrt = _unary("Sqrt", UnaryOpType.SQRT)
Square = _unary("Square", UnaryOpType.SQUARE)
Tan = _unary("Tan", UnaryOpType.TAN)
Tanh = _unary("Tanh", UnaryOpType.TANH)
Trunc = _unary("Trunc", UnaryOpType.TRUNC)
Add = _binary("Add", BinaryOpType.ADD)
And = _binary("And", BinaryOpType.LOGICAL_AND)
Atan2 = _binary("Atan2", BinaryOpType.ATAN2)
BitwiseAnd = _binary("BitwiseAnd", BinaryOpType.BITWISE_AND)
BitwiseOr = _binary("BitwiseOr", BinaryOpType.BITWISE_OR)
BitwiseXnor = _binary("BitwiseXnor", BinaryOpType.BITWISE_XNOR)
BitwiseXor = _binary("BitwiseXor", BinaryOpType.BITWISE_XOR)
Divide = _binary("Divide", BinaryOpType.DIVIDE)
Equal = _binary("Equal", BinaryOpType.EQUAL)
Gt = _binary("Gt", BinaryOpType.GREATER_THAN)
Gte = _binary("Gte", BinaryOpType.GREATER_THAN_EQUAL)
InvStdDevToVariance = _binary("InvStdDevToVariance", BinaryOpType.INV_STD_DEV_TO_VARIANCE)
Lt = _binary("Lt", BinaryOpType.LESS_THAN)
Lte = _binary("Lte", BinaryOpType.LESS_THAN_EQUAL)
Max = _binary("Max", BinaryOpType.MAXIMUM)
Min = _binary("Min", BinaryOpType.MINIMUM)
Mul = _binary("Mul", BinaryOpType.MULTIPLY)
NotEqual = _binary("NotEqual", BinaryOpType.NOT_EQUAL)
Or = _binary("Or", BinaryOpType.LOGICAL_OR)
Pow = _binary("Pow", BinaryOpType.POWER)
Rem = _binary("Rem", BinaryOpType.REMAINDER)
Shl = _binary("Shl", BinaryOpType.SHIFT_LEFT)
Shr = _binary("Shr", BinaryOpType.SHIFT_RIGHT)
ShrSE = _binary("ShrSE", BinaryOpType.SHIFT_RIGHT_SIGN_EXTEND)
Sub = _binary("Sub", BinaryOpType.SUBTRACT)
VarianceToInvStdDev = _binary("VarianceToInvStdDev", BinaryOpType.VARIANCE_TO_INV_STD_DEV)
Clamp = _ternary("Clamp", TernaryOpType.CLAMP, "The first, but not below the second, and not above the third: where those two cross the third wins.")
Select = _ternary("Select", TernaryOpType.SELECT, "The first where the third, a BOOL, is true, else the second.")

_1, _2, _3, _4, _5, _6, _7, _8, _9, _10 = (PlaceHolder(i) for i in range(1, 11))
_11, _12, _13, _14, _15, _16, _17, _18, _19, _20 = (PlaceHolder(i) for i in range(11, 21))
