"""Functions of two tensors, element by element: each with a form in place and one with an output. Either operand may be a number."""

from popcore.codelets.operations import BinaryOpType as Op
from popcore.ops.popops.forms import binary

add, add_in_place, add_with_output = binary(Op.ADD, "a + b; integers wrap.")
atan2, atan2_in_place, atan2_with_output = binary(Op.ATAN2, "The angle of the point (b, a).")
bitwise_and, bitwise_and_in_place, bitwise_and_with_output = binary(Op.BITWISE_AND, "a & b; of BOOL, and.")
bitwise_or, bitwise_or_in_place, bitwise_or_with_output = binary(Op.BITWISE_OR, "a | b; of BOOL, or.")
bitwise_xnor, bitwise_xnor_in_place, bitwise_xnor_with_output = binary(Op.BITWISE_XNOR, "The bits that a and b have alike.")
bitwise_xor, bitwise_xor_in_place, bitwise_xor_with_output = binary(Op.BITWISE_XOR, "a ^ b.")
div, div_in_place, div_with_output = binary(Op.DIVIDE, "a / b; integers toward zero, and by zero the run stops.")
eq, eq_in_place, eq_with_output = binary(Op.EQUAL, "BOOL: a == b.")
gt, gt_in_place, gt_with_output = binary(Op.GREATER_THAN, "BOOL: a > b.")
gteq, gteq_in_place, gteq_with_output = binary(Op.GREATER_THAN_EQUAL, "BOOL: a >= b.")
inv_std_dev_to_variance, inv_std_dev_to_variance_in_place, inv_std_dev_to_variance_with_output = binary(Op.INV_STD_DEV_TO_VARIANCE, "1 / a**2 - b.")
logical_and, logical_and_in_place, logical_and_with_output = binary(Op.LOGICAL_AND, "a and b, of BOOL.")
logical_or, logical_or_in_place, logical_or_with_output = binary(Op.LOGICAL_OR, "a or b, of BOOL.")
lt, lt_in_place, lt_with_output = binary(Op.LESS_THAN, "BOOL: a < b.")
lteq, lteq_in_place, lteq_with_output = binary(Op.LESS_THAN_EQUAL, "BOOL: a <= b.")
max, max_in_place, max_with_output = binary(Op.MAXIMUM, "The greater; a where b is NaN, NaN where a is.")
min, min_in_place, min_with_output = binary(Op.MINIMUM, "The lesser; a where b is NaN, NaN where a is.")
mul, mul_in_place, mul_with_output = binary(Op.MULTIPLY, "a * b; integers wrap.")
neq, neq_in_place, neq_with_output = binary(Op.NOT_EQUAL, "BOOL: a != b.")
pow, pow_in_place, pow_with_output = binary(Op.POWER, "a to the power of b; of integers b must not be negative.")
rem, rem_in_place, rem_with_output = binary(Op.REMAINDER, "What dividing a by b toward zero leaves: it has the sign of a.")
shift_left, shift_left_in_place, shift_left_with_output = binary(Op.SHIFT_LEFT, "a << b; what leaves the type's width is lost.")
shift_right, shift_right_in_place, shift_right_with_output = binary(Op.SHIFT_RIGHT, "a >> b, zeros coming in.")
shift_right_sign_extend, shift_right_sign_extend_in_place, shift_right_sign_extend_with_output = binary(
    Op.SHIFT_RIGHT_SIGN_EXTEND, "a >> b, the sign bit coming in."
)
sub, sub_in_place, sub_with_output = binary(Op.SUBTRACT, "a - b; integers wrap.")
variance_to_inv_std_dev, variance_to_inv_std_dev_in_place, variance_to_inv_std_dev_with_output = binary(Op.VARIANCE_TO_INV_STD_DEV, "1 / sqrt(a + b).")

__all__ = [
    "add",
    "add_in_place",
    "add_with_output",
    "atan2",
    "atan2_in_place",
    "atan2_with_output",
    "bitwise_and",
    "bitwise_and_in_place",
    "bitwise_and_with_output",
    "bitwise_or",
    "bitwise_or_in_place",
    "bitwise_or_with_output",
    "bitwise_xnor",
    "bitwise_xnor_in_place",
    "bitwise_xnor_with_output",
    "bitwise_xor",
    "bitwise_xor_in_place",
    "bitwise_xor_with_output",
    "div",
    "div_in_place",
    "div_with_output",
    "eq",
    "eq_in_place",
    "eq_with_output",
    "gt",
    "gt_in_place",
    "gt_with_output",
    "gteq",
    "gteq_in_place",
    "gteq_with_output",
    "inv_std_dev_to_variance",
    "inv_std_dev_to_variance_in_place",
    "inv_std_dev_to_variance_with_output",
    "logical_and",
    "logical_and_in_place",
    "logical_and_with_output",
    "logical_or",
    "logical_or_in_place",
    "logical_or_with_output",
    "lt",
    "lt_in_place",
    "lt_with_output",
    "lteq",
    "lteq_in_place",
    "lteq_with_output",
    "max",
    "max_in_place",
    "max_with_output",
    "min",
    "min_in_place",
    "min_with_output",
    "mul",
    "mul_in_place",
    "mul_with_output",
    "neq",
    "neq_in_place",
    "neq_with_output",
    "pow",
    "pow_in_place",
    "pow_with_output",
    "rem",
    "rem_in_place",
    "rem_with_output",
    "shift_left",
    "shift_left_in_place",
    "shift_left_with_output",
    "shift_right",
    "shift_right_in_place",
    "shift_right_sign_extend",
    "shift_right_sign_extend_in_place",
    "shift_right_sign_extend_with_output",
    "shift_right_with_output",
    "sub",
    "sub_in_place",
    "sub_with_output",
    "variance_to_inv_std_dev",
    "variance_to_inv_std_dev_in_place",
    "variance_to_inv_std_dev_with_output",
]
