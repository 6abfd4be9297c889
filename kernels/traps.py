"""Floating-point results that stop the program, where the arithmetic that is compiled for says so.

Checked in code, operation by operation, and not by the processor's flags: LLVM may compute what the program would not have, and a
flag does not tell. ``popcore.dialect.rounding`` has the same in Python; both change together.
"""

from popcore.kernels import abi
from popcore.kernels.behaviour import DIV0, IEEE, INV, NAN, OFLO, OVERFLOWS, TRAP_SITES
from popcore.kernels.exact import absolute
from popcore.kernels.memory import block_of, leave_if
from popcore.kernels.operation import F32, I1, I32, I64, state

_INFINITY = F32(float("inf"))


def _trap(builder, kind, condition, values):
    if state.arithmetic.traps & kind:
        words = [builder.zext(builder.bitcast(value, I32), I64) for value in values]
        tags = sum(abi.TAG_FLOAT << 4 * i for i in range(len(values)))
        leave_if(builder, condition, block_of(builder), I64(TRAP_SITES[kind]), words, tags)


def _is_nan(builder, value):
    return builder.fcmp_unordered("uno", value, value)


def _is_infinite(builder, value):
    return builder.fcmp_ordered("==", absolute(builder, value), _INFINITY)


def check(builder, result, operands, pole=None, additive=False):
    """Stop at a result of float32 operands that is invalid, a division by zero, or too large.

    pole       I1: an infinite result of finite operands is a division by zero
    additive   an infinite operand makes it invalid, as in a sum
    """
    if not state.arithmetic.traps:
        return
    finite = I1(1)
    for each in operands:
        finite = builder.and_(finite, builder.fcmp_ordered("<", absolute(builder, each), _INFINITY))
    invalid, infinite = _is_nan(builder, result), _is_infinite(builder, result)
    if additive:
        invalid = builder.or_(invalid, builder.and_(infinite, builder.not_(finite)))
    infinite = builder.and_(infinite, finite)
    pole = I1(0) if pole is None else pole
    values = [*operands, result]
    _trap(builder, INV, invalid, values)
    _trap(builder, DIV0, builder.and_(infinite, pole), values)
    _trap(builder, OFLO, builder.and_(infinite, builder.not_(pole)), values)


def check_order(builder, left, right):
    """Stop at a comparison by size with NaN."""
    if state.arithmetic.traps & INV:
        _trap(builder, INV, builder.fcmp_unordered("uno", left, right), [left, right])


def check_operand(builder, value):
    """Stop at a half that is infinite, or NaN, as an operand: ``value`` is what it was widened to."""
    if state.arithmetic.traps & INV and state.arithmetic.rule != IEEE:
        _trap(builder, INV, builder.not_(builder.fcmp_ordered("<", absolute(builder, value), _INFINITY)), [value])


def check_narrow(builder, value):
    """Stop at a float32 that is too large for a half."""
    arithmetic = state.arithmetic
    if not arithmetic.traps:
        return
    size = absolute(builder, value)
    large = builder.and_(builder.fcmp_ordered(">=", size, F32(OVERFLOWS)), builder.fcmp_ordered("<", size, _INFINITY))
    _trap(builder, OFLO, large, [value])
    if arithmetic.rule == NAN:
        _trap(builder, INV, large, [value])
