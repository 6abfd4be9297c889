"""The native reduction: combines what lies at the same places of several replicas' memories, in a given order, and writes it to all.

One object for each element type, operator and type of the sums. It goes through jobs, each a run of elements that one owner's
chains combine: the total is kept in a scratch that stays in the cache, so that memory is read once and written once.

The context, int64 words: 0 jobs (address), 1 first job, 2 job after the last, 3 chains (address), 4 replicas p of the group,
5 length of every chain but the last, which may be shorter, 6 scratch (address; twice BLOCK_BYTES), 7 targets (address of p addresses).
A job, int64 words: byte in a replica's memory, elements, row of ``chains``. A row of ``chains`` is p addresses of memories.
"""

from typing import Any

import llvmlite.ir as ir
import numpy as np
from numba.core import cgutils, types

from popcore.kernels.behaviour import IEEE, LARGEST, NAN, OVERFLOWS
from popcore.kernels.collectives import BLOCK_BYTES
from popcore.kernels.native import _operation, _pointer, copy_bytes, load64

I64 = ir.IntType(64)
VECTOR = 16  # elements combined at once

_TYPES: dict[str, Any] = {"float32": ir.FloatType(), "float16": ir.HalfType(), "bool": ir.IntType(8)}
_TYPES |= {f"{sign}int{bits}": ir.IntType(bits) for sign in ("", "u") for bits in (8, 16, 32, 64)}


def _like(kind, of):
    """A scalar type, or a vector of it as long as ``of``."""
    return ir.VectorType(kind, of.type.count) if isinstance(of.type, ir.VectorType) else kind


def _rounded(builder, name, rule, value, operation):
    """A floating operation: a half is computed in float32 and rounded once."""
    if name != "float16":
        return operation(*value)
    wide = _like(ir.FloatType(), value[0])
    return _narrowed(builder, rule, operation(*(builder.fpext(v, wide) for v in value)))


def _narrowed(builder, rule, value):
    """Floats as halves, as ``half.narrow`` has it, for vectors too: infinity gives NaN, too much is cut off."""
    wide = value.type
    if rule != IEEE:
        value = builder.fsub(value, builder.fsub(value, value))
        for sign, limit in ((">=", OVERFLOWS), ("<=", -OVERFLOWS)) if rule == NAN else ((">", LARGEST), ("<", -LARGEST)):
            limits = _filled(wide, limit)
            value = builder.select(builder.fcmp_ordered(sign, value, limits), _filled(wide, float("nan")) if rule == NAN else limits, value)
    return builder.fptrunc(value, _like(ir.HalfType(), value))


def _filled(kind, number):
    """A constant, in every element of a vector."""
    return kind([number] * kind.count) if isinstance(kind, ir.VectorType) else kind(number)


def _pick(builder, name, operator, a, b):
    """The smaller or larger of two; a NaN if there is one."""
    sign = "<" if operator == "min" else ">"
    if name.startswith("float"):
        first = builder.or_(builder.fcmp_ordered(sign, a, b), builder.fcmp_unordered("uno", a, a))
    else:
        first = (builder.icmp_unsigned if name.startswith("u") else builder.icmp_signed)(sign, a, b)
    chosen = builder.select(first, a, b)
    if name != "float32":
        return chosen
    # The processor's minimum flushes a denormal that it chooses, a choice does not: as LLVM may take either, always flush.
    kind = chosen.type
    symbol = f"llvm.arithmetic.fence.{f'v{kind.count}' if isinstance(kind, ir.VectorType) else ''}f32"
    fence = builder.module.globals.get(symbol) or ir.Function(builder.module, ir.FunctionType(kind, [kind]), symbol)
    return builder.fmul(chosen, builder.call(fence, [_filled(kind, 1.0)]))


def _combined(builder, name, rule, operator, a, b):
    floating = name.startswith("float")
    if operator in ("min", "max"):
        return _pick(builder, name, operator, a, b)
    if operator == "mul":
        return _rounded(builder, name, rule, (a, b), builder.fmul) if floating else builder.mul(a, b)
    if operator in ("logical_and", "logical_or"):
        return builder.and_(a, b) if operator == "logical_and" else builder.or_(a, b)
    return _rounded(builder, name, rule, (a, b), builder.fadd) if floating else builder.add(a, b)


def _brought(builder, name, rule, operator, value):
    """What a replica brings into a combination."""
    if operator != "square_add":
        return value
    return _combined(builder, name, rule, "mul", value, value)


def _each(sums, name, body, sources=1):
    """An operation (target, sources ..., elements): for each element the target's value becomes ``body(builder, it, source's value)``, for each source.

    Targets are of type ``sums``, sources of type ``name``.
    """

    @_operation(2 + sources, types.void)
    def loop(context, builder, signature, arguments):
        places, count = arguments[:-1], arguments[-1]
        whole = builder.ashr(count, I64(VECTOR.bit_length() - 1))
        rest = builder.and_(count, I64(VECTOR - 1))
        with cgutils.for_range(builder, whole) as step:
            _store(builder, sums, name, body, places, step.index, VECTOR)
        done = builder.mul(whole, I64(VECTOR))
        with cgutils.for_range(builder, rest) as step:
            _store(builder, sums, name, body, places, builder.add(done, step.index), 1)
        return context.get_dummy_value()

    return loop


def _store(builder, sums, name, body, places, index, elements):
    """The body of a loop: ``index`` counts groups of so many elements; of one, elements."""
    value, *brought = [_load(builder, kind, place, index, elements) for kind, place in zip((sums, *[name] * (len(places) - 1)), places, strict=True)]
    for each in brought:
        value = body(builder, value, builder.fpext(each, _like(_TYPES[sums], each)) if sums != name else each)
    builder.store(value, _element(builder, sums, places[0], index, elements), align=np.dtype(sums).itemsize)


def _element(builder, kind, place, index, elements):
    of = _TYPES[kind] if elements == 1 else ir.VectorType(_TYPES[kind], elements)
    return builder.gep(_pointer(builder, place, of), [index])


def _load(builder, kind, place, index, elements):
    return builder.load(_element(builder, kind, place, index, elements), align=np.dtype(kind).itemsize)


def _divider(name, rule):
    """An operation (target, p, elements) that divides each element by p."""

    def body(builder, value, number):
        return _rounded(builder, name, rule, (value, number), builder.fdiv)

    kind = _TYPES[name]

    @_operation(3, types.void)
    def divide(context, builder, signature, arguments):
        target, p, count = arguments
        number = builder.sitofp(p, kind)
        to = _pointer(builder, target, kind)
        with cgutils.for_range(builder, count) as step:
            at = builder.gep(to, [step.index])
            builder.store(body(builder, builder.load(at), number), at)
        return context.get_dummy_value()

    return divide


def _narrower(rule):
    """An operation (target, source, elements) that rounds floats to halves."""

    @_operation(3, types.void)
    def narrow(context, builder, signature, arguments):
        target, source, count = arguments
        whole = builder.ashr(count, I64(VECTOR.bit_length() - 1))
        for elements, first, rounds in ((VECTOR, I64(0), whole), (1, builder.mul(whole, I64(VECTOR)), builder.and_(count, I64(VECTOR - 1)))):
            with cgutils.for_range(builder, rounds) as step:
                index = builder.add(first, step.index)
                value = _load(builder, "float32", source, index, elements)
                builder.store(_narrowed(builder, rule, value), _element(builder, "float16", target, index, elements), align=2)
        return context.get_dummy_value()

    return narrow


def make_reducer(name: str, operator: str, sums: str, rule: str) -> Any:
    """A function of a context's address, for ``compile_object``.

    name       a NumPy dtype's
    operator   as in ``reduce``
    sums       the type of the totals
    rule       of halves that overflow, see ``behaviour``
    """
    width, wide = np.dtype(name).itemsize, int(sums != name)
    take = _each(sums, name, lambda builder, total, value: _brought(builder, sums, rule, operator, value))
    next_one = lambda builder, total, value: _combined(builder, sums, rule, operator, total, _brought(builder, sums, rule, operator, value))  # noqa: E731
    add, add_four = _each(sums, name, next_one), _each(sums, name, next_one, 4)
    join = _each(sums, sums, lambda builder, total, value: _combined(builder, sums, rule, operator, total, value))
    divide = _divider(sums, rule) if operator == "mean" else join
    narrow = _narrower(rule) if wide else join
    mean = 1 if operator == "mean" else 0

    def reduce(context):
        job = load64(context) + load64(context + 8) * 24
        last = load64(context) + load64(context + 16) * 24
        chains, p, length = load64(context + 24), load64(context + 32), load64(context + 40)
        total, targets = load64(context + 48), load64(context + 56)
        other = total + BLOCK_BYTES
        while job < last:
            at, count = load64(job), load64(job + 8)
            chain = chains + load64(job + 16) * p * 8
            begin = 0
            while begin < p:
                end = begin + length
                if end > p:
                    end = p
                into = other if begin else total
                take(into, load64(chain + begin * 8) + at, count)
                k = begin + 1
                while k + 4 <= end:  # the same order, and the total is loaded and stored once
                    row = chain + k * 8
                    add_four(into, load64(row) + at, load64(row + 8) + at, load64(row + 16) + at, load64(row + 24) + at, count)
                    k += 4
                while k < end:
                    add(into, load64(chain + k * 8) + at, count)
                    k += 1
                if begin:
                    join(total, other, count)
                begin = end
            if mean:
                divide(total, p, count)
            result = total
            if wide:
                narrow(other, total, count)
                result = other
            for k in range(p):
                copy_bytes(load64(targets + k * 8) + at, result, count * width)
            job += 24
        return 0

    return reduce
