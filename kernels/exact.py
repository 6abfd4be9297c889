"""Float32 values whose meaning LLVM must not bend where the processor flushes denormals.

LLVM takes ``x * 1.0`` for ``x`` and computes with constants as if denormals were kept, and turns comparison and choice into the
processor's minimum, which flushes what it chooses. So constants that could matter are hidden from it, and a value that was chosen
rather than computed is multiplied by one, see ``popcore.dialect.denormals``: which flushes it where denormals are flushed, and else leaves it.
"""

import llvmlite.ir as ir

from popcore.kernels.operation import F32

_COMPUTED = ("fadd", "fsub", "fmul", "fdiv", "sitofp", "uitofp", "fpext")
_TINY, _HUGE = 2.0**-60, 2.0**60  # products and quotients of constants between them are normal numbers


def hidden(builder, number):
    """A constant whose value LLVM does not know."""
    fence = builder.module.declare_intrinsic("llvm.arithmetic.fence", [F32], ir.FunctionType(F32, [F32]))
    return builder.call(fence, [F32(number)])


def constant(builder, number):
    """A constant as an operand: hidden if LLVM could leave out an operation with it, or fold one to a denormal."""
    size = abs(number)
    negative_zero = number == 0 and str(number).startswith("-")
    if size == 1 or negative_zero or 0 < size < _TINY or _HUGE < size < float("inf"):
        return hidden(builder, number)
    return F32(number)


def flushed(builder, value):
    """A value without denormals where the processor flushes them."""
    if isinstance(value, ir.Constant) or getattr(value, "opname", "") in _COMPUTED:
        return value
    return builder.fmul(value, hidden(builder, 1.0))


def absolute(builder, value):
    """The magnitude of a float32."""
    return builder.call(builder.module.declare_intrinsic("llvm.fabs", [F32], ir.FunctionType(F32, [F32])), [value])
