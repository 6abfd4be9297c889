"""Functions of one tensor, element by element: each with a form in place and one with an output."""

from popcore.codelets.operations import UnaryOpType as Op
from popcore.ops.popops.forms import unary

abs, abs_in_place, abs_with_output = unary(Op.ABSOLUTE, "The absolute value; that of the least integer is itself.")
asin, asin_in_place, asin_with_output = unary(Op.ASIN, "The arc sine.")
bitwise_not, bitwise_not_in_place, bitwise_not_with_output = unary(Op.BITWISE_NOT, "Each bit inverted; of BOOL, not.")
cbrt, cbrt_in_place, cbrt_with_output = unary(Op.CBRT, "The cube root.")
ceil, ceil_in_place, ceil_with_output = unary(Op.CEIL, "The least whole number not below.")
cos, cos_in_place, cos_with_output = unary(Op.COS, "The cosine.")
count_leading_zeros, count_leading_zeros_in_place, count_leading_zeros_with_output = unary(
    Op.COUNT_LEADING_ZEROS, "Zero bits above the highest that is set; 32 of zero."
)
erf, erf_in_place, erf_with_output = unary(Op.ERF, "The error function.")
exp, exp_in_place, exp_with_output = unary(Op.EXPONENT, "e to the power of each element.")
exp2, exp2_in_place, exp2_with_output = unary(Op.EXPONENT2, "2 to the power of each element.")
expm1, expm1_in_place, expm1_with_output = unary(Op.EXPONENT_MINUS_ONE, "e to the power of each element, less 1.")
floor, floor_in_place, floor_with_output = unary(Op.FLOOR, "The greatest whole number not above.")
gelu_erf, gelu_erf_in_place, gelu_erf_with_output = unary(Op.GELU_ERF, "x times the chance that a normal variable is below x.")
inv, inv_in_place, inv_with_output = unary(Op.INVERSE, "1 divided by each element.")
is_finite, is_finite_in_place, is_finite_with_output = unary(Op.IS_FINITE, "BOOL: neither infinite nor NaN.")
is_inf, is_inf_in_place, is_inf_with_output = unary(Op.IS_INF, "BOOL: infinite.")
is_nan, is_nan_in_place, is_nan_with_output = unary(Op.IS_NAN, "BOOL: NaN.")
log, log_in_place, log_with_output = unary(Op.LOGARITHM, "The natural logarithm.")
log1p, log1p_in_place, log1p_with_output = unary(Op.LOGARITHM_ONE_PLUS, "The natural logarithm of 1 + x.")
logical_not, logical_not_in_place, logical_not_with_output = unary(Op.LOGICAL_NOT, "Not, of BOOL.")
nearbyint, nearbyint_in_place, nearbyint_with_output = unary(Op.NEARBY_INT, "To the nearest whole number, halves to even.")
neg, neg_in_place, neg_with_output = unary(Op.NEGATE, "The negative; that of the least integer is itself.")
popcount, popcount_in_place, popcount_with_output = unary(Op.POPCOUNT, "Bits that are set.")
relu, relu_in_place, relu_with_output = unary(Op.RELU, "x where it is above 0, else 0.")
round, round_in_place, round_with_output = unary(Op.ROUND, "To the nearest whole number, halves away from zero.")
rsqrt, rsqrt_in_place, rsqrt_with_output = unary(Op.RSQRT, "1 divided by the square root.")
sigmoid, sigmoid_in_place, sigmoid_with_output = unary(Op.SIGMOID, "1 / (1 + e**-x).")
signum, signum_in_place, signum_with_output = unary(Op.SIGNUM, "-1, 0 or 1; 0 of NaN.")
sin, sin_in_place, sin_with_output = unary(Op.SIN, "The sine.")
sqrt, sqrt_in_place, sqrt_with_output = unary(Op.SQRT, "The square root.")
square, square_in_place, square_with_output = unary(Op.SQUARE, "Each element times itself.")
tan, tan_in_place, tan_with_output = unary(Op.TAN, "The tangent.")
tanh, tanh_in_place, tanh_with_output = unary(Op.TANH, "The hyperbolic tangent.")
trunc, trunc_in_place, trunc_with_output = unary(Op.TRUNC, "The whole number next to it toward zero.")

__all__ = [
    "abs",
    "abs_in_place",
    "abs_with_output",
    "asin",
    "asin_in_place",
    "asin_with_output",
    "bitwise_not",
    "bitwise_not_in_place",
    "bitwise_not_with_output",
    "cbrt",
    "cbrt_in_place",
    "cbrt_with_output",
    "ceil",
    "ceil_in_place",
    "ceil_with_output",
    "cos",
    "cos_in_place",
    "cos_with_output",
    "count_leading_zeros",
    "count_leading_zeros_in_place",
    "count_leading_zeros_with_output",
    "erf",
    "erf_in_place",
    "erf_with_output",
    "exp",
    "exp2",
    "exp2_in_place",
    "exp2_with_output",
    "exp_in_place",
    "exp_with_output",
    "expm1",
    "expm1_in_place",
    "expm1_with_output",
    "floor",
    "floor_in_place",
    "floor_with_output",
    "gelu_erf",
    "gelu_erf_in_place",
    "gelu_erf_with_output",
    "inv",
    "inv_in_place",
    "inv_with_output",
    "is_finite",
    "is_finite_in_place",
    "is_finite_with_output",
    "is_inf",
    "is_inf_in_place",
    "is_inf_with_output",
    "is_nan",
    "is_nan_in_place",
    "is_nan_with_output",
    "log",
    "log1p",
    "log1p_in_place",
    "log1p_with_output",
    "log_in_place",
    "log_with_output",
    "logical_not",
    "logical_not_in_place",
    "logical_not_with_output",
    "nearbyint",
    "nearbyint_in_place",
    "nearbyint_with_output",
    "neg",
    "neg_in_place",
    "neg_with_output",
    "popcount",
    "popcount_in_place",
    "popcount_with_output",
    "relu",
    "relu_in_place",
    "relu_with_output",
    "round",
    "round_in_place",
    "round_with_output",
    "rsqrt",
    "rsqrt_in_place",
    "rsqrt_with_output",
    "sigmoid",
    "sigmoid_in_place",
    "sigmoid_with_output",
    "signum",
    "signum_in_place",
    "signum_with_output",
    "sin",
    "sin_in_place",
    "sin_with_output",
    "sqrt",
    "sqrt_in_place",
    "sqrt_with_output",
    "square",
    "square_in_place",
    "square_with_output",
    "tan",
    "tan_in_place",
    "tan_with_output",
    "tanh",
    "tanh_in_place",
    "tanh_with_output",
    "trunc",
    "trunc_in_place",
    "trunc_with_output",
]
