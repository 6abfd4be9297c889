"""Functions of ``math`` in codelets: exact ones as instructions, the others from formulas of float32 and float64 operations.

The formulas are the interpreter's own (``popcore.dialect.elementary``): they come with the lowered codelet and are run once, on values that stand
for LLVM's, where a codelet calls them. That leaves straight code in which nothing is contracted, so LLVM can make a loop around it vector
instructions and the interpreter gets the same bits.
"""

import numpy as np

from popcore.kernels.exact import flushed
from popcore.kernels.half import narrow_result, operand
from popcore.kernels.operation import F16, F32, F64, I1, I32, I64, operation, state
from popcore.kernels.traps import check
from popcore.kernels.values import BOOL, FLOAT, HALF, INT, UNSIGNED, common, convert, copysign, is_float, scalar

FORMULAS = (
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh",
    "asinh", "acosh", "atanh", "erf", "erfc", "cbrt", "sigmoid", "gelu_erf", "atan2", "hypot", "fpow",
)  # fmt: skip
SIGNS = ("fabs", "copysign")
POLES = ("log", "log2", "log10", "log1p", "atanh")  # infinite at a finite number
_INTRINSICS = {"sqrt": "sqrt", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "fabs": "fabs", "rint": "roundeven"}


class Lane:
    """A value of LLVM with the operators that formulas use. Of integers int32 is signed and uint64 is not; I1 is a condition."""

    __array_priority__ = 1.0

    def __init__(self, builder, value):
        self.builder, self.value = builder, value

    @property
    def is_float(self):
        return self.value.type in (F32, F64)

    def like(self, value):
        """A Lane, or a Python number as a constant of this one's type."""
        if isinstance(value, Lane):
            return value.value
        kind = self.value.type
        return kind(float(np.float32(value)) if kind == F32 else value)

    def _with(self, operation, left, right):
        return Lane(self.builder, getattr(self.builder, operation)(left, right))

    def _arithmetic(self, name, other, swapped=False):
        pair = (self.like(other), self.value) if swapped else (self.value, self.like(other))
        return self._with(f"f{name}" if self.is_float else name, *pair)

    def __add__(self, other):
        return self._arithmetic("add", other)

    def __sub__(self, other):
        return self._arithmetic("sub", other)

    def __rsub__(self, other):
        return self._arithmetic("sub", other, swapped=True)

    def __mul__(self, other):
        return self._arithmetic("mul", other)

    def __truediv__(self, other):
        return self._arithmetic("div", other)

    def __rtruediv__(self, other):
        return self._arithmetic("div", other, swapped=True)

    def __neg__(self):
        return Lane(self.builder, self.builder.fneg(self.value))

    def __abs__(self):
        return Lane(self.builder, _intrinsic(self.builder, "fabs", self.value))

    def __and__(self, other):
        return self._with("and_", self.value, self.like(other))

    def __or__(self, other):
        return self._with("or_", self.value, self.like(other))

    def __invert__(self):
        return Lane(self.builder, self.builder.not_(self.value))

    def __lshift__(self, other):
        return self._with("shl", self.value, self.like(other))

    def __rshift__(self, other):
        return self._with("ashr" if self.value.type == I32 else "lshr", self.value, self.like(other))

    def _compare(self, symbol, other):
        builder, right = self.builder, self.like(other)
        if self.is_float:
            return Lane(builder, (builder.fcmp_unordered if symbol == "!=" else builder.fcmp_ordered)(symbol, self.value, right))
        return Lane(builder, (builder.icmp_signed if self.value.type == I32 else builder.icmp_unsigned)(symbol, self.value, right))

    def __lt__(self, other):
        return self._compare("<", other)

    def __gt__(self, other):
        return self._compare(">", other)

    def __eq__(self, other):
        return self._compare("==", other)

    __hash__ = None


class Lanes:
    """The operations of formulas besides operators, see ``popcore.dialect.elementary.lanes``."""

    def __init__(self, builder):
        self.builder = builder

    def select(self, condition, yes, no):
        like = yes if isinstance(yes, Lane) else no
        return Lane(self.builder, self.builder.select(condition.value, like.like(yes), like.like(no)))

    def constant(self, number, like):
        return Lane(self.builder, like.like(number))

    def sqrt(self, x):
        return Lane(self.builder, _intrinsic(self.builder, "sqrt", x.value))

    def bits(self, x):
        return Lane(self.builder, self.builder.bitcast(x.value, I32 if x.value.type == F32 else I64))

    def floats(self, i):
        return Lane(self.builder, self.builder.bitcast(i.value, F32 if i.value.type == I32 else F64))

    def wide(self, x):
        return Lane(self.builder, self.builder.fpext(x.value, F64))

    def narrow(self, x):
        return Lane(self.builder, self.builder.fptrunc(x.value, F32))

    def number(self, i):
        return Lane(self.builder, self.builder.sitofp(i.value, F32 if i.value.type == I32 else F64))

    def long(self, i):
        return Lane(self.builder, self.builder.zext(i.value, I64))


def _intrinsic(builder, name, value):
    return builder.call(builder.module.declare_intrinsic(f"llvm.{_INTRINSICS[name]}", [value.type]), [value])


def apply_formula(builder, name, *values):
    """The float32 that a formula gives of float32 ``values``."""
    return state.formulas[name](Lanes(builder), *(Lane(builder, v) for v in values)).value


def _result(*given):
    """HALF of halves, else FLOAT."""
    return HALF if common(*given) == HALF else FLOAT


def _declare(name, emit_float):
    @operation(name, _result)
    def emit(context, builder, sig, args):
        stage = common(*sig.args)
        stage = stage if is_float(stage) else FLOAT
        wide = [convert(builder, convert(builder, v, t, stage), stage, FLOAT) for v, t in zip(args, sig.args, strict=True)]
        half = sig.return_type == HALF
        if name in SIGNS:  # no arithmetic: an infinity stays
            return builder.fptrunc(emit_float(builder, *wide), F16) if half else emit_float(builder, *wide)
        wide = [operand(builder, v) if half else flushed(builder, v) for v in wide]
        result = emit_float(builder, *wide)
        pole = builder.fcmp_ordered("==", wide[0], F32(0.0)) if name == "fpow" else I1(1) if name in POLES else None
        check(builder, result, wide, pole)
        return narrow_result(builder, result) if half else result


def _exact(name):
    return lambda builder, value: _intrinsic(builder, name, value)


def _formula(name):
    return lambda builder, *values: apply_formula(builder, name, *values)


for _name in _INTRINSICS:
    if _name != "rint":
        _declare(_name, _exact(_name))
for _name in FORMULAS:
    _declare(_name, _formula(_name))
_declare("fmod", lambda builder, left, right: flushed(builder, builder.frem(left, right)))
_declare("copysign", copysign)


@operation("rint", lambda a: INT if scalar(a) == BOOL else scalar(a))
def _rint(context, builder, sig, args):
    kind = sig.return_type
    if kind in (INT, UNSIGNED):
        return convert(builder, args[0], sig.args[0], kind)
    wide = convert(builder, args[0], kind, FLOAT)
    result = _intrinsic(builder, "rint", operand(builder, wide) if kind == HALF else wide)
    return narrow_result(builder, result) if kind == HALF else result


def _asks(name, emit_bits):
    @operation(name, lambda a: scalar(a) and BOOL)
    def emit(context, builder, sig, args):
        pattern = builder.bitcast(convert(builder, args[0], sig.args[0], FLOAT), I32)
        return emit_bits(builder, builder.and_(pattern, I32(0x7FFFFFFF)))


_INFINITY = I32(0x7F800000)
_asks("isnan", lambda builder, magnitude: builder.icmp_unsigned(">", magnitude, _INFINITY))
_asks("isinf", lambda builder, magnitude: builder.icmp_unsigned("==", magnitude, _INFINITY))
_asks("isfinite", lambda builder, magnitude: builder.icmp_unsigned("<", magnitude, _INFINITY))
