"""Inverses and determinants, against NumPy in double precision."""

import numpy as np
import pytest

from popcore import errors, program
from popcore.ops import poplin
from popcore.types import FLOAT, HALF
from tests.ops.popops.runs import new_graph, run


@pytest.mark.parametrize("n", [0, 1, 2, 5, 9])
def test_both_are_numpys(n):
    graph, prog = new_graph(), program.Sequence()
    a = graph.add_variable(FLOAT, (n, n), mapping="linear", name="a")
    made = {"inverse": poplin.matrix_inverse(graph, a, prog), "log": poplin.log_abs_det(graph, a, prog), "a": a}
    values = (np.random.default_rng(n).standard_normal((n, n)) + 2 * np.eye(n)).astype(np.float32)
    found = run(graph, prog, {a: values}, made)
    exact = values.astype(np.float64)
    np.testing.assert_allclose(found["inverse"], np.linalg.inv(exact), atol=1e-5)
    np.testing.assert_allclose(found["log"], np.linalg.slogdet(exact)[1], atol=1e-5)
    np.testing.assert_array_equal(found["a"], values)


def test_rows_in_need_of_exchange_and_a_transposed_view():
    graph, prog = new_graph(), program.Sequence()
    a = graph.add_variable(FLOAT, (2, 2), mapping="linear", name="a")
    inverse = poplin.matrix_inverse(graph, a.transpose(), prog)
    found = run(graph, prog, {a: np.float32([[0, 2], [4, 0]])}, {"inverse": inverse})
    np.testing.assert_allclose(found["inverse"], [[0, 0.5], [0.25, 0]], atol=1e-6)


def test_a_determinant_beyond_float_has_a_logarithm():
    graph, prog = new_graph(), program.Sequence()
    a = graph.add_variable(FLOAT, (6, 6), mapping="linear", name="a")
    log = poplin.log_abs_det(graph, a, prog)
    found = run(graph, prog, {a: np.diag(np.float32([1e9] * 5 + [-1e9]))}, {"log": log})
    np.testing.assert_allclose(found["log"], 54 * np.log(10), rtol=1e-6)


def test_what_is_no_square_of_floats_is_refused():
    graph, prog = new_graph(), program.Sequence()
    with pytest.raises(errors.ShapeError, match="a square matrix"):
        poplin.matrix_inverse(graph, graph.add_variable(FLOAT, (2, 3), mapping="linear"), prog)
    with pytest.raises(errors.ElementTypeError, match="cast it to FLOAT"):
        poplin.log_abs_det(graph, graph.add_variable(HALF, (2, 2), mapping="linear"), prog)
