"""The native reduction: combines what lies at the same places of several replicas' memories, in a given order, and writes it to all.

One object for each element type and operator. It goes through jobs, each a run of elements that one owner's chains combine:
the total is kept in a scratch that stays in the cache, so that memory is read once and written once.

The context, int64 words: 0 jobs (address), 1 first job, 2 job after the last, 3 chains (address), 4 replicas p of the group,
5 length of the first chain, 6 scratch (address; twice BLOCK_BYTES), 7 targets (address of p addresses).
A job, int64 words: byte in a replica's memory, elements, row of ``chains``. A row of ``chains`` is p addresses of memories.
"""

from typing import Any

import llvmlite.ir as ir
import numpy as np
from numba.core import cgutils, types

from popcore.kernels.collectives import BLOCK_BYTES
from popcore.kernels.native import _operation, _pointer, copy_bytes, load64

I64 = ir.IntType(64)
VECTOR = 16  # elements combined at once

_TYPES: dict[str, Any] = {"float32": ir.FloatType(), "float16": ir.HalfType(), "bool": ir.IntType(8)}
_TYPES |= {f"{sign}int{bits}": ir.IntType(bits) for sign in ("", "u") for bits in (8, 16, 32, 64)}


def _like(kind, of):
    """A scalar type, or a vector of it as long as ``of``."""
    return ir.VectorType(kind, of.type.count) if isinstance(of.type, ir.VectorType) else kind


def _rounded(builder, name, value, operation):
    """A floating operation: a half is computed in float32 and rounded once."""
    if name != "float16":
        return operation(*value)
    wide = [builder.fpext(v, _like(ir.FloatType(), v)) for v in value]
    return builder.fptrunc(operation(*wide), _like(ir.HalfType(), value[0]))


def _pick(builder, name, operator, a, b):
    """The smaller or larger of two; a NaN if there is one."""
    sign = "<" if operator == "min" else ">"
    if name.startswith("float"):
        first = builder.or_(builder.fcmp_ordered(sign, a, b), builder.fcmp_unordered("uno", a, a))
    else:
        first = (builder.icmp_unsigned if name.startswith("u") else builder.icmp_signed)(sign, a, b)
    return builder.select(first, a, b)


def _combined(builder, name, operator, a, b):
    floating = name.startswith("float")
    if operator in ("min", "max"):
        return _pick(builder, name, operator, a, b)
    if operator == "mul":
        return _rounded(builder, name, (a, b), builder.fmul) if floating else builder.mul(a, b)
    if operator in ("logical_and", "logical_or"):
        return builder.and_(a, b) if operator == "logical_and" else builder.or_(a, b)
    return _rounded(builder, name, (a, b), builder.fadd) if floating else builder.add(a, b)


def _brought(builder, name, operator, value):
    """What a replica brings into a combination."""
    if operator != "square_add":
        return value
    return _combined(builder, name, "mul", value, value)


def _each(name, body, sources=1):
    """An operation (target, sources ..., elements): for each element the target's value becomes ``body(builder, it, source's value)``, for each source."""
    kind = _TYPES[name]

    @_operation(2 + sources, types.void)
    def loop(context, builder, signature, arguments):
        places, count = arguments[:-1], arguments[-1]
        whole = builder.ashr(count, I64(VECTOR.bit_length() - 1))
        rest = builder.and_(count, I64(VECTOR - 1))
        vector = ir.VectorType(kind, VECTOR)
        pointers = [_pointer(builder, place, vector) for place in places]
        align = np.dtype(name).itemsize
        with cgutils.for_range(builder, whole) as step:
            _store(builder, body, [builder.gep(pointer, [step.index]) for pointer in pointers], align)
        done = builder.mul(whole, I64(VECTOR * align))
        pointers = [_pointer(builder, builder.add(place, done), kind) for place in places]
        with cgutils.for_range(builder, rest) as step:
            _store(builder, body, [builder.gep(pointer, [step.index]) for pointer in pointers], align)
        return context.get_dummy_value()

    return loop


def _store(builder, body, pointers, align):
    value, *brought = [builder.load(pointer, align=align) for pointer in pointers]
    for each in brought:
        value = body(builder, value, each)
    builder.store(value, pointers[0], align=align)


def _divider(name):
    """An operation (target, p, elements) that divides each element by p."""

    def body(builder, value, number):
        return _rounded(builder, name, (value, number), builder.fdiv)

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


def make_reducer(name: str, operator: str) -> Any:
    """A function of a context's address, for ``compile_object``. ``name``: a NumPy dtype's; ``operator``: as in ``reduce``."""
    width = np.dtype(name).itemsize
    take = _each(name, lambda builder, total, value: _brought(builder, name, operator, value))
    next_one = lambda builder, total, value: _combined(builder, name, operator, total, _brought(builder, name, operator, value))  # noqa: E731
    add, add_four = _each(name, next_one), _each(name, next_one, 4)
    join = _each(name, lambda builder, total, value: _combined(builder, name, operator, total, value))
    divide = _divider(name) if operator == "mean" else join
    mean = 1 if operator == "mean" else 0

    def reduce(context):
        job = load64(context) + load64(context + 8) * 24
        last = load64(context) + load64(context + 16) * 24
        chains, p, split = load64(context + 24), load64(context + 32), load64(context + 40)
        total, targets = load64(context + 48), load64(context + 56)
        other = total + BLOCK_BYTES
        while job < last:
            at, count = load64(job), load64(job + 8)
            chain = chains + load64(job + 16) * p * 8
            take(total, load64(chain) + at, count)
            k = 1
            while k + 4 <= split:  # the same order, and the total is loaded and stored once
                row = chain + k * 8
                add_four(total, load64(row) + at, load64(row + 8) + at, load64(row + 16) + at, load64(row + 24) + at, count)
                k += 4
            while k < split:
                add(total, load64(chain + k * 8) + at, count)
                k += 1
            if split < p:
                take(other, load64(chain + split * 8) + at, count)
                for k in range(split + 1, p):
                    add(other, load64(chain + k * 8) + at, count)
                join(total, other, count)
            if mean:
                divide(total, p, count)
            for k in range(p):
                copy_bytes(load64(targets + k * 8) + at, total, count * width)
            job += 24
        return 0

    return reduce
