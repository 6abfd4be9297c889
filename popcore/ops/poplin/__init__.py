"""Linear algebra: products of matrices, planned over tiles. After PopLibs' poplin, in snake_case."""

from popcore.ops.poplin.mat_mul import (
    create_mat_mul_grouped_input_lhs,
    create_mat_mul_grouped_input_rhs,
    create_mat_mul_grouped_output,
    create_mat_mul_input_lhs,
    create_mat_mul_input_rhs,
    create_mat_mul_output,
    mat_mul,
    mat_mul_acc,
    mat_mul_grouped,
    mat_mul_grouped_acc,
    mat_mul_grouped_report_plan,
    mat_mul_grouped_with_output,
    mat_mul_report_plan,
    mat_mul_with_output,
)

__all__ = [
    "create_mat_mul_grouped_input_lhs",
    "create_mat_mul_grouped_input_rhs",
    "create_mat_mul_grouped_output",
    "create_mat_mul_input_lhs",
    "create_mat_mul_input_rhs",
    "create_mat_mul_output",
    "mat_mul",
    "mat_mul_acc",
    "mat_mul_grouped",
    "mat_mul_grouped_acc",
    "mat_mul_grouped_report_plan",
    "mat_mul_grouped_with_output",
    "mat_mul_report_plan",
    "mat_mul_with_output",
]
