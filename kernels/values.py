"""The types that values have in a codelet, and conversions between them."""

import llvmlite.ir as ir
import numpy as np
from numba.core import types

from popcore.kernels import exact
from popcore.kernels.half import half, narrow, widen
from popcore.kernels.operation import F16, F32, I1, I8, I64, Refused

FLOAT, HALF, INT, UNSIGNED, BOOL = types.float32, half, types.int64, types.uint64, types.boolean
_RANK = {FLOAT: 4, HALF: 3, UNSIGNED: 2, INT: 1, BOOL: 0}
LLVM = {FLOAT: F32, HALF: F16, INT: I64, UNSIGNED: I64, BOOL: I1}
NAMES = {FLOAT: "FLOAT", HALF: "HALF", INT: "INT", UNSIGNED: "UNSIGNED_LONGLONG", BOOL: "BOOL"}

_MASK = (1 << 64) - 1

STORED: dict[str, ir.Type] = {
    "float": F32, "half": F16, "bool": I8,
    **{f"{sign}{bits}": ir.IntType(bits) for sign in "iu" for bits in (8, 16, 32, 64)},
}  # fmt: skip
"""What an element is in memory, by its short name."""

BYTES = {"float": 4, "half": 2, "bool": 1, **{f"{sign}{bits}": bits // 8 for sign in "iu" for bits in (8, 16, 32, 64)}}


def value_type(code):
    """The type of a value that was read from a field of ``code``."""
    return {"float": FLOAT, "half": HALF, "bool": BOOL, "u64": UNSIGNED}.get(code, INT)


def name_of(ty):
    """A type as the user knows it."""
    return NAMES.get(ty) or getattr(ty, "user_name", None) or str(ty)


def scalar(ty):
    """``ty`` without its literal; refuses what is no number."""
    plain = types.unliteral(ty)
    if plain not in _RANK:
        raise Refused(f"a number is needed here, not {name_of(plain)}", "index a view to get an element")
    return plain


def common(*given):
    """The type that an operation on ``given`` is done in."""
    found = max((scalar(t) for t in given), key=_RANK.__getitem__)
    return INT if found == BOOL else found


def is_float(ty):
    return ty in (FLOAT, HALF)


def convert(builder, value, source, target):
    """``value`` as another type: rounded once, truncated within the limits, or wrapped."""
    if source == target:
        return value
    if target == BOOL:
        return truth(builder, value, source)
    if target == HALF:
        return narrow(builder, convert(builder, value, source, FLOAT))
    if target == FLOAT:
        if source == HALF:
            return widen(builder, value)
        if isinstance(value, ir.Constant) and isinstance(value.constant, int) and source != BOOL:
            return exact.constant(builder, (np.int64(value.constant) if source == INT else np.uint64(value.constant & _MASK)).astype(np.float32))
        return builder.sitofp(value, F32) if source == INT else builder.uitofp(value, F32)
    if is_float(source):
        return saturate(builder, value, source, 64, target == INT)
    return builder.zext(value, I64) if source == BOOL else value


def truth(builder, value, source):
    """``bool(value)``."""
    if source == BOOL:
        return value
    zero = LLVM[source](0.0 if is_float(source) else 0)
    return builder.fcmp_unordered("!=", value, zero) if is_float(source) else builder.icmp_unsigned("!=", value, zero)


def saturate(builder, value, source, bits, signed):
    """A float toward zero as an integer of ``bits``, within its limits; NaN is 0."""
    # Not llvm.fptosi.sat: these selects become vector instructions, and that one does not.
    value = convert(builder, value, source, FLOAT)
    whole = ir.IntType(bits)
    low, high = (-(1 << bits - 1), 1 << bits - 1) if signed else (0, 1 << bits)  # exact as float32
    below, above = builder.fcmp_ordered("<", value, F32(float(low))), builder.fcmp_ordered(">=", value, F32(float(high)))
    inside = builder.and_(builder.fcmp_ordered(">=", value, F32(float(low))), builder.fcmp_ordered("<", value, F32(float(high))))
    safe = builder.select(inside, value, F32(0.0))
    found = builder.fptosi(safe, whole) if signed else builder.fptoui(safe, whole)
    return builder.select(above, whole(high - 1), builder.select(below, whole(low), found))


def copysign(builder, magnitude, sign):
    """The first float32 with the sign of the second."""
    function = builder.module.declare_intrinsic("llvm.copysign", [F32], ir.FunctionType(F32, [F32, F32]))
    return builder.call(function, [magnitude, sign])


def to_stored(builder, value, source, code):
    """A value as an element of ``code`` has it in memory."""
    if code in ("float", "half"):
        return convert(builder, value, source, FLOAT if code == "float" else HALF)
    if code == "bool":
        return builder.zext(truth(builder, value, source), I8)
    bits = STORED[code].width
    if is_float(source):
        return saturate(builder, value, source, bits, code[0] == "i")
    value = convert(builder, value, source, INT)
    return value if bits == 64 else builder.trunc(value, STORED[code])


def from_stored(builder, value, code):
    """An element in memory as a value of ``value_type(code)``."""
    if code in ("float", "half", "i64", "u64"):
        return value
    if code == "bool":
        return builder.icmp_unsigned("!=", value, I8(0))
    return builder.sext(value, I64) if code[0] == "i" else builder.zext(value, I64)
