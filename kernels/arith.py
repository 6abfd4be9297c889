"""Arithmetic of codelets as LLVM code. ``popcore.dialect.arithmetic`` says what each operation means."""

import llvmlite.ir as ir
from numba.core import types

from popcore.kernels import faults
from popcore.kernels.exact import flushed, hidden
from popcore.kernels.half import narrow_result, operand
from popcore.kernels.operation import F32, I64, Refused, operation, state
from popcore.kernels.traps import check, check_order
from popcore.kernels.values import BOOL, FLOAT, HALF, INT, LLVM, STORED, UNSIGNED, common, convert, copysign, is_float, name_of, saturate, scalar, to_stored


def _operands(builder, sig, args, kind, arithmetic=True):
    """Both operands as ``kind``; halves as float32, since that is what they are computed in.

    arithmetic   a half that is infinite is NaN
    """
    halves = common(*sig.args) == HALF and arithmetic
    kind = FLOAT if kind == HALF else kind
    stages = (common(*sig.args), kind)
    made = []
    for value, ty in zip(args, sig.args, strict=True):
        for stage in stages:
            value, ty = convert(builder, value, ty, stage), stage
        made.append(operand(builder, value) if halves else value)
    return made


def rounded(builder, value, kind):
    """A float32 result as the kind that the operation has."""
    return convert(builder, value, FLOAT, kind) if kind == HALF else value


def _simple(name, float_op, integer_op):
    @operation(name, common)
    def emit(context, builder, sig, args):
        kind = sig.return_type
        # Of finite halves the float32 result is finite, so that what is infinite becomes NaN when it is rounded.
        left, right = _operands(builder, sig, args, kind, arithmetic=bool(state.arithmetic.traps))
        if not is_float(kind):
            return getattr(builder, integer_op)(left, right)
        if name == "sub" and isinstance(right, ir.Constant) and right.constant == 0:
            right = hidden(builder, 0.0)
        result = getattr(builder, float_op)(left, right, flags=state.flags)
        check(builder, result, (left, right), additive=name != "mul")
        return rounded(builder, result, kind)


_simple("add", "fadd", "add")
_simple("sub", "fsub", "sub")
_simple("mul", "fmul", "mul")


@operation("truediv", lambda a, b: common(a, b) if is_float(common(a, b)) else FLOAT)
def _truediv(context, builder, sig, args):
    kind = sig.return_type
    left, right = _operands(builder, sig, args, common(*sig.args))
    if not is_float(common(*sig.args)):
        left, right = (convert(builder, v, common(*sig.args), FLOAT) for v in (left, right))
    result = builder.fdiv(left, right, flags=state.flags)
    check(builder, result, (left, right), pole=builder.fcmp_ordered("==", right, F32(0.0)))
    return rounded(builder, result, kind)


def _powers(name, count):
    @operation(name, lambda a: common(a))
    def emit(context, builder, sig, args):
        kind = sig.return_type
        value = convert(builder, args[0], sig.args[0], kind)
        result = value
        for _ in range(count - 1):
            if is_float(kind):
                wide = [convert(builder, v, kind, FLOAT) for v in (result, value)]
                if kind == HALF and state.arithmetic.traps:
                    wide = [operand(builder, v) for v in wide]
                product = builder.fmul(*wide, flags=state.flags)
                check(builder, product, wide)
                result = rounded(builder, product, kind)
            else:
                result = builder.mul(result, value)
        return result


_powers("square", 2)
_powers("cube", 3)


# -- operations that may fail: their first arguments are the context and the site --


def _failing(context, site, a, b):
    return common(a, b)


def _float_mod(builder, left, right):
    rest = builder.frem(left, right)
    zero = F32(0.0)
    signed_zero = copysign(builder, rest, right)
    differ = builder.xor(builder.fcmp_ordered("<", right, zero), builder.fcmp_ordered("<", rest, zero))
    adjusted = builder.select(differ, builder.fadd(rest, right), rest)
    return builder.select(builder.fcmp_ordered("==", rest, zero), signed_zero, adjusted)


def _float_floordiv(builder, left, right):
    quotient = builder.fdiv(builder.fsub(left, _float_mod(builder, left, right)), right)
    down = builder.call(builder.module.declare_intrinsic("llvm.floor", [F32]), [quotient])
    up = builder.fadd(down, F32(1.0))
    found = builder.select(builder.fcmp_ordered(">", builder.fsub(quotient, down), F32(0.5)), up, down)
    return builder.select(builder.fcmp_ordered("==", right, F32(0.0)), builder.fdiv(left, right), found)


def _integer_division(builder, left, right, signed):
    """Quotient rounded down and the rest that goes with it. Needs a divisor that is not 0."""
    if not signed:
        return builder.udiv(left, right), builder.urem(left, right)
    # -2**63 / -1 overflows, which traps: divide by 1 and negate instead.
    minus_one = builder.icmp_signed("==", right, I64(-1))
    divisor = builder.select(minus_one, I64(1), right)
    quotient, rest = builder.sdiv(left, divisor), builder.srem(left, divisor)
    down = builder.and_(builder.icmp_signed("!=", rest, I64(0)), builder.icmp_signed("<", builder.xor(rest, divisor), I64(0)))
    quotient = builder.select(down, builder.sub(quotient, I64(1)), quotient)
    rest = builder.select(down, builder.add(rest, divisor), rest)
    return builder.select(minus_one, builder.neg(left), quotient), builder.select(minus_one, I64(0), rest)


def _division(name, which, float_emit):
    @operation(name, _failing)
    def emit(context, builder, sig, args):
        kind = sig.return_type
        left, right = _operands(builder, types_of(sig), args[2:], kind)
        if is_float(kind):
            left, right = flushed(builder, left), flushed(builder, right)  # fmod of the C library looks at their bits
            result = flushed(builder, float_emit(builder, left, right))
            check(builder, result, (left, right), pole=builder.fcmp_ordered("==", right, F32(0.0)))
            return rounded(builder, result, kind)
        faults.fail_if(builder, builder.icmp_unsigned("==", right, I64(0)), args[0], args[1], [], [])
        return _integer_division(builder, left, right, kind == INT)[which]


def types_of(sig):
    """The signature without context and site."""
    return sig.return_type(*sig.args[2:])


_division("floordiv", 0, _float_floordiv)
_division("mod", 1, _float_mod)


@operation("pow", _failing)
def _pow(context, builder, sig, args):
    kind = sig.return_type
    left, right = _operands(builder, types_of(sig), args[2:], kind)
    if is_float(kind):
        from popcore.kernels.mathlib import apply_formula

        result = apply_formula(builder, "fpow", left, right)
        check(builder, result, (left, right), pole=builder.fcmp_ordered("==", left, F32(0.0)))
        return narrow_result(builder, result) if kind == HALF else result
    if kind == INT:
        faults.fail_if(builder, builder.icmp_signed("<", right, I64(0)), args[0], args[1], [right], [INT])
    return _integer_power(builder, left, right)


def _integer_power(builder, base, exponent):
    """By squaring, modulo 2**64."""
    before = builder.block
    loop, done = builder.append_basic_block("power"), builder.append_basic_block("power_done")
    builder.branch(loop)
    builder.position_at_end(loop)
    result, square, left = (builder.phi(I64) for _ in range(3))
    odd = builder.icmp_unsigned("!=", builder.and_(left, I64(1)), I64(0))
    next_result = builder.select(odd, builder.mul(result, square), result)
    next_square, next_left = builder.mul(square, square), builder.lshr(left, I64(1))
    for phi, first, following in ((result, I64(1), next_result), (square, base, next_square), (left, exponent, next_left)):
        phi.add_incoming(first, before)
        phi.add_incoming(following, loop)
    builder.cbranch(builder.icmp_unsigned("==", next_left, I64(0)), done, loop)
    builder.position_at_end(done)
    return next_result


# -- bits --


def _integers(a, b):
    kind = common(a, b)
    if is_float(kind):
        raise Refused(f"bit operations take integers, not {name_of(kind)}", "convert first: int(x)")
    return kind


def _bits_type(a, b):
    return BOOL if scalar(a) == scalar(b) == BOOL else _integers(a, b)


def _bits(name, method):
    @operation(name, _bits_type)
    def emit(context, builder, sig, args):
        left, right = (convert(builder, v, t, sig.return_type) for v, t in zip(args, sig.args, strict=True))
        return getattr(builder, method)(left, right)


_bits("and", "and_")
_bits("or", "or_")
_bits("xor", "xor")


def _shift(name, signed, unsigned):
    @operation(name, _integers)
    def emit(context, builder, sig, args):
        left, right = (convert(builder, v, t, sig.return_type) for v, t in zip(args, sig.args, strict=True))
        method = signed if sig.return_type == INT else unsigned
        return getattr(builder, method)(left, builder.and_(right, I64(63)))


_shift("lshift", "shl", "shl")
_shift("rshift", "ashr", "lshr")


@operation("neg", lambda a: common(a))
def _neg(context, builder, sig, args):
    value = convert(builder, args[0], sig.args[0], sig.return_type)
    return builder.fneg(value) if is_float(sig.return_type) else builder.neg(value)


@operation("pos", lambda a: common(a))
def _pos(context, builder, sig, args):
    return convert(builder, args[0], sig.args[0], sig.return_type)


@operation("invert", lambda a: _integers(a, a))
def _invert(context, builder, sig, args):
    return builder.not_(convert(builder, args[0], sig.args[0], sig.return_type))


# -- truth and comparison --


@operation("not", lambda a: scalar(a) and BOOL)
def _not(context, builder, sig, args):
    return builder.not_(convert(builder, args[0], sig.args[0], BOOL))


def _comparison(name, symbol):
    @operation(name, lambda a, b: common(a, b) and BOOL)
    def emit(context, builder, sig, args):
        kind = common(*sig.args)
        left, right = _operands(builder, sig, args, kind, arithmetic=False)
        if is_float(kind) and symbol not in ("==", "!="):
            check_order(builder, left, right)
        return compare(builder, symbol, left, right, kind)


def compare(builder, symbol, left, right, kind):
    if is_float(kind):
        return (builder.fcmp_unordered if symbol == "!=" else builder.fcmp_ordered)(symbol, left, right)
    return (builder.icmp_signed if kind == INT else builder.icmp_unsigned)(symbol, left, right)


for _name, _symbol in (("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">="), ("eq", "=="), ("ne", "!=")):
    _comparison(_name, _symbol)


def _extreme(name, symbol):
    @operation(name, common)
    def emit(context, builder, sig, args):
        kind = sig.return_type
        left, right = (convert(builder, v, t, kind) for v, t in zip(args, sig.args, strict=True))
        return builder.select(compare(builder, symbol, right, left, kind), right, left)


_extreme("min", "<")
_extreme("max", ">")


@operation("kept", types.unliteral)  # a row too
def _kept(context, builder, sig, args):
    return flushed(builder, args[0]) if sig.return_type == FLOAT else args[0]


@operation("abs", lambda a: common(a))
def _abs(context, builder, sig, args):
    kind = sig.return_type
    value = convert(builder, args[0], sig.args[0], kind)
    if is_float(kind):
        return builder.call(builder.module.declare_intrinsic("llvm.fabs", [LLVM[kind]]), [value])
    if kind == UNSIGNED:
        return value
    return builder.select(builder.icmp_signed("<", value, I64(0)), builder.neg(value), value)


# -- conversions --


def _conversion(name, target):
    @operation(name, lambda a: scalar(a) and target)
    def emit(context, builder, sig, args):
        return convert(builder, args[0], sig.args[0], target)


for _name, _target in (("as_float", FLOAT), ("as_half", HALF), ("as_bool", BOOL), ("as_i64", INT), ("as_u64", UNSIGNED)):
    _conversion(_name, _target)


def _narrow_integer(code):
    @operation(f"as_{code}", lambda a: scalar(a) and INT)
    def emit(context, builder, sig, args):
        stored = to_stored(builder, args[0], sig.args[0], code)
        return builder.sext(stored, I64) if code[0] == "i" else builder.zext(stored, I64)


for _code in ("i8", "i16", "i32", "u8", "u16", "u32"):
    assert _code in STORED
    _narrow_integer(_code)


@operation("as_int", lambda a: UNSIGNED if scalar(a) == UNSIGNED else INT)
def _as_int(context, builder, sig, args):
    if is_float(sig.args[0]):
        return saturate(builder, args[0], sig.args[0], 64, True)
    return convert(builder, args[0], sig.args[0], sig.return_type)


def index_type(ty):
    """The type of an index: refuses floats."""
    if is_float(scalar(ty)):
        raise Refused(f"an index must be an integer, not {name_of(scalar(ty))}", "convert it: int(x)")
    return INT


@operation("index", index_type)
def _index(context, builder, sig, args):
    return convert(builder, args[0], sig.args[0], INT)


@operation("step", lambda context, site, a: index_type(a))
def _step(context, builder, sig, args):
    value = convert(builder, args[2], sig.args[2], INT)
    faults.fail_if(builder, builder.icmp_unsigned("==", value, I64(0)), args[0], args[1], [], [])
    return value


assert types.float64 not in LLVM  # the machine has no double
