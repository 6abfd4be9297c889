"""The arithmetic of a tile, one operation a function, on Python and NumPy scalars. The compiled codelets must agree.

A value is np.float32, np.float16, int (within 64 bits, signed), np.uint64 or bool.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from popcore.dialect import rounding
from popcore.dialect.rounding import check, narrow, operand

Value: TypeAlias = Any
_F32, _F16, _U64 = np.float32, np.float16, np.uint64
_SIGN, _MASK = 1 << 63, (1 << 64) - 1


def wrap(value: int) -> int:
    """An int as 64 bits hold it."""
    return value if -_SIGN <= value < _SIGN else ((value + _SIGN) & _MASK) - _SIGN


def to_float(value: Value) -> np.float32:
    """Exactly one rounding; through Python's float a large integer would be rounded twice."""
    if isinstance(value, int):
        return np.int64(value).astype(_F32)
    return value if isinstance(value, _F32) else value.astype(_F32)


def to_half(value: Value) -> np.float16:
    return value if isinstance(value, _F16) else narrow(to_float(value))


def to_unsigned(value: Value) -> np.uint64:
    return value if isinstance(value, _U64) else _U64(int(value) & _MASK)


def common(left: Value, right: Value) -> tuple[Value, Value, type]:
    """Both operands in the type that the operation is done in, and that type (int for signed integers)."""
    a, b = type(left), type(right)
    if a is _F32 or b is _F32:
        return to_float(left), to_float(right), _F32
    if a is _F16 or b is _F16:
        return to_half(left), to_half(right), _F16
    if a is _U64 or b is _U64:
        return to_unsigned(left), to_unsigned(right), _U64
    return int(left), int(right), int


def _binary(operation: Callable[[Any, Any], Any], additive: bool = True) -> Callable[[Value, Value], Value]:
    def apply(left: Value, right: Value) -> Value:
        left, right, kind = common(left, right)
        if kind is int:
            return wrap(operation(left, right))
        if kind is _F16:
            left, right = operand(left), operand(right)
            return narrow(check(operation(left, right), left, right, additive=additive))
        if kind is _F32:
            return check(operation(left, right), left, right, additive=additive)
        return operation(left, right)

    return apply


add, sub, mul = _binary(operator.add), _binary(operator.sub), _binary(operator.mul, additive=False)


def truediv(left: Value, right: Value) -> Value:
    left, right, kind = common(left, right)
    if kind is _F16:
        left, right = operand(left), operand(right)
        return narrow(check(left / right, left, right, pole=bool(right == 0)))
    left, right = to_float(left), to_float(right)
    return check(left / right, left, right, pole=bool(right == 0))


def _divided(operation: Callable[[Any, Any], Any], left: Value, right: Value, kind: type) -> Value:
    """A division of floats that ends in a whole number, or its rest."""
    if kind is _F16:
        left, right = operand(left), operand(right)
    left, right = left * _F32(1), right * _F32(1)  # fmod of the C library looks at their bits
    made = check(_F32(operation(left, right)) * _F32(1), left, right, pole=bool(right == 0))
    return narrow(made) if kind is _F16 else made


def floordiv(context: Any, site: int, left: Value, right: Value) -> Value:
    left, right, kind = common(left, right)
    if kind in (_F32, _F16):
        return _divided(_float_floordiv, left, right, kind)
    if not right:
        context.fail(site, ())
    return wrap(left // right) if kind is int else left // right


def mod(context: Any, site: int, left: Value, right: Value) -> Value:
    left, right, kind = common(left, right)
    if kind in (_F32, _F16):
        return _divided(_float_mod, left, right, kind)
    if not right:
        context.fail(site, ())
    return left % right


def _float_mod(left: Value, right: Value) -> Value:
    """The remainder with the divisor's sign: exact, but for the one addition that gives it that sign."""
    rest = np.fmod(left, right)
    if rest == 0:
        return np.copysign(rest, right)
    return rest + right if (right < 0) != (rest < 0) else rest


def _float_floordiv(left: Value, right: Value) -> Value:
    if right == 0:
        return left / right
    quotient = (left - _float_mod(left, right)) / right
    down = np.floor(quotient)
    return down + _F32(1) if quotient - down > _F32(0.5) else down


def power(context: Any, site: int, left: Value, right: Value) -> Value:
    from popcore.dialect.mathematics import fpow

    left, right, kind = common(left, right)
    if kind in (_F32, _F16):
        return fpow(left, right)
    if right < 0:
        context.fail(site, (right,))
    if kind is _U64:
        return _U64(pow(int(left), int(right), 1 << 64))
    return wrap(pow(left, right, 1 << 64))


def square(value: Value) -> Value:
    return mul(value, value)


def cube(value: Value) -> Value:
    return mul(mul(value, value), value)


def _bits(operation: Callable[[Any, Any], Any]) -> Callable[[Value, Value], Value]:
    def apply(left: Value, right: Value) -> Value:
        if isinstance(left, bool) and isinstance(right, bool):
            return operation(left, right)
        left, right, kind = common(left, right)
        if kind in (_F32, _F16):
            raise TypeError("bit operations take integers")
        return operation(left, right)

    return apply


bit_and, bit_or, bit_xor = _bits(operator.and_), _bits(operator.or_), _bits(operator.xor)


def lshift(left: Value, right: Value) -> Value:
    """Only the low six bits of the distance count, as on a processor."""
    left, right, kind = common(left, right)
    distance = int(right) & 63
    return wrap(left << distance) if kind is int else _U64((int(left) << distance) & _MASK)


def rshift(left: Value, right: Value) -> Value:
    left, right, kind = common(left, right)
    distance = int(right) & 63
    return left >> distance if kind is int else _U64(int(left) >> distance)


def neg(value: Value) -> Value:
    if isinstance(value, int):
        return wrap(-int(value))
    return _U64(-int(value) & _MASK) if isinstance(value, _U64) else -value


def pos(value: Value) -> Value:
    return int(value) if isinstance(value, bool) else value


def invert(value: Value) -> Value:
    return ~int(value) if isinstance(value, bool) else ~value


def logical_not(value: Value) -> bool:
    return not as_bool(value)


def _comparison(operation: Callable[[Any, Any], Any], by_size: bool = True) -> Callable[[Value, Value], bool]:
    def apply(left: Value, right: Value) -> bool:
        left, right, kind = common(left, right)
        if by_size and kind in (_F32, _F16):
            rounding.check_order(left, right)
        return bool(operation(left, right))

    return apply


lt, le, gt, ge = _comparison(operator.lt), _comparison(operator.le), _comparison(operator.gt), _comparison(operator.ge)
eq, ne = _comparison(operator.eq, by_size=False), _comparison(operator.ne, by_size=False)


def minimum(left: Value, right: Value) -> Value:
    """Python's: the second only if it is less, so a NaN on the left stays."""
    left, right, _ = common(left, right)
    return right if right < left else left


def maximum(left: Value, right: Value) -> Value:
    left, right, _ = common(left, right)
    return right if right > left else left


def absolute(value: Value) -> Value:
    if isinstance(value, int):
        return wrap(abs(int(value)))
    return value if isinstance(value, _U64) else np.abs(value)


def kept(value: Value) -> Value:
    """What was read and is not computed with at once: a denormal of FLOAT becomes zero, where the processor flushes them."""
    return value * _F32(1) if isinstance(value, _F32) else value


# -- conversions --


def as_bool(value: Value) -> bool:
    return bool(value)


def truncate(value: Value, low: int, high: int) -> int:
    """A float toward zero, within ``low`` and ``high``; NaN is 0."""
    if math.isnan(value):
        return 0
    if math.isinf(value):
        return high if value > 0 else low
    return max(low, min(high, int(value)))


def convert_integer(value: Value, bits: int, signed: bool) -> int:
    """What an integer field of ``bits`` holds after ``value`` was stored."""
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    if isinstance(value, _F32 | _F16):
        return truncate(value, low, high)
    number = int(value) & ((1 << bits) - 1)
    return number - (1 << bits) if number > high else number


def _as_integer(bits: int, signed: bool) -> Callable[[Value], Value]:
    def apply(value: Value) -> Value:
        return convert_integer(value, bits, signed)

    return apply


def as_u64(value: Value) -> np.uint64:
    return _U64(convert_integer(value, 64, False))


def as_int(value: Value) -> Value:
    """``int(x)``: an integer keeps its type."""
    return value if isinstance(value, _U64) else convert_integer(value, 64, True)


def as_index(value: Value) -> int:
    """An index or a bound of ``range``."""
    if isinstance(value, _F32 | _F16):
        raise TypeError("an index must be an integer")
    return wrap(int(value))


def as_step(context: Any, site: int, value: Value) -> int:
    step = as_index(value)
    if not step:
        context.fail(site, ())
    return step


OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": add, "sub": sub, "mul": mul, "truediv": truediv, "floordiv": floordiv, "mod": mod, "pow": power, "square": square, "cube": cube,
    "and": bit_and, "or": bit_or, "xor": bit_xor, "lshift": lshift, "rshift": rshift, "neg": neg, "pos": pos, "invert": invert, "not": logical_not,
    "lt": lt, "le": le, "gt": gt, "ge": ge, "eq": eq, "ne": ne, "min": minimum, "max": maximum, "abs": absolute, "kept": kept,
    "as_float": to_float, "as_half": to_half, "as_bool": as_bool, "as_int": as_int, "as_u64": as_u64, "index": as_index, "step": as_step,
    **{f"as_i{bits}": _as_integer(bits, True) for bits in (8, 16, 32, 64)},
    **{f"as_u{bits}": _as_integer(bits, False) for bits in (8, 16, 32)},
}  # fmt: skip
"""Operations by the name they have in rewritten code, without ``_pc_``."""
