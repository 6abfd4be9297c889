"""Functions of ``math`` in codelets: exact ones as instructions, the others as calls of the C library.

The C library is called under names that LLVM does not know (``popcore.expf``), so that it neither folds nor rewrites
the calls: the interpreter calls the same functions and must get the same bits. ``compile`` gives them their real names
last.
"""

import llvmlite.ir as ir

from popcore.kernels.arith import rounded
from popcore.kernels.operation import F32, I32, operation
from popcore.kernels.values import BOOL, FLOAT, HALF, INT, UNSIGNED, common, convert, copysign, is_float, scalar

PREFIX = "popcore."
LIBM = (
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh",
    "asinh", "acosh", "atanh", "erf", "erfc", "cbrt",
)  # fmt: skip
LIBM2 = ("atan2", "hypot")
_INTRINSICS = {"sqrt": "sqrt", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "fabs": "fabs", "rint": "roundeven"}


def call_libm(builder, name, *values):
    """Call the float32 function ``name`` of the C library."""
    symbol = f"{PREFIX}{name}f"
    function = builder.module.globals.get(symbol)
    if function is None:
        function = ir.Function(builder.module, ir.FunctionType(F32, [F32] * len(values)), symbol)
        for attribute in ("nounwind", "readnone"):
            function.attributes.add(attribute)
    return builder.call(function, values)


def _result(*given):
    """HALF of halves, else FLOAT."""
    return HALF if common(*given) == HALF else FLOAT


def _declare(name, emit_float):
    @operation(name, _result)
    def emit(context, builder, sig, args):
        stage = common(*sig.args)
        stage = stage if is_float(stage) else FLOAT
        wide = [convert(builder, convert(builder, v, t, stage), stage, FLOAT) for v, t in zip(args, sig.args, strict=True)]
        return rounded(builder, emit_float(builder, *wide), sig.return_type)


def _intrinsic(name):
    return lambda builder, value: builder.call(builder.module.declare_intrinsic(f"llvm.{_INTRINSICS[name]}", [F32]), [value])


def _libm(name):
    return lambda builder, *values: call_libm(builder, name, *values)


for _name in _INTRINSICS:
    if _name != "rint":
        _declare(_name, _intrinsic(_name))
for _name in (*LIBM, *LIBM2):
    _declare(_name, _libm(_name))
_declare("fpow", _libm("pow"))
_declare("fmod", lambda builder, left, right: builder.frem(left, right))
_declare("copysign", copysign)


@operation("rint", lambda a: INT if scalar(a) == BOOL else scalar(a))
def _rint(context, builder, sig, args):
    kind = sig.return_type
    if kind in (INT, UNSIGNED):
        return convert(builder, args[0], sig.args[0], kind)
    return rounded(builder, _intrinsic("rint")(builder, convert(builder, args[0], kind, FLOAT)), kind)


def _asks(name, emit_bits):
    @operation(name, lambda a: scalar(a) and BOOL)
    def emit(context, builder, sig, args):
        pattern = builder.bitcast(convert(builder, args[0], sig.args[0], FLOAT), I32)
        return emit_bits(builder, builder.and_(pattern, I32(0x7FFFFFFF)))


_INFINITY = I32(0x7F800000)
_asks("isnan", lambda builder, magnitude: builder.icmp_unsigned(">", magnitude, _INFINITY))
_asks("isinf", lambda builder, magnitude: builder.icmp_unsigned("==", magnitude, _INFINITY))
_asks("isfinite", lambda builder, magnitude: builder.icmp_unsigned("<", magnitude, _INFINITY))
