"""QR and LU factors of both engines: their product is the matrix, and they have the form they should."""

import numpy as np
import pytest

from popcore import errors, program
from popcore.ops import poplin
from popcore.types import FLOAT, HALF
from tests.ops.popops.runs import new_graph, run


@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (7, 3), (9, 8), (4, 0)])
def test_orthogonal_times_upper_triangular(shape):
    graph, prog = new_graph(), program.Sequence()
    a, q = poplin.experimental.create_qr_factorization_matrices(graph, FLOAT, *shape)
    poplin.experimental.qr_factorization(graph, a, q, prog)
    values = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    if shape == (7, 3):
        values[:, 1] = 0  # nothing to reflect
    found = run(graph, prog, {a: values, q: np.eye(shape[0], dtype=np.float32)}, {"r": a, "q": q})
    np.testing.assert_array_equal(found["r"], np.triu(found["r"]))
    np.testing.assert_allclose(found["q"] @ found["r"], values, atol=2e-6)
    np.testing.assert_allclose(found["q"].T @ found["q"], np.eye(shape[0]), atol=2e-6)
    np.testing.assert_allclose(np.abs(found["r"][: shape[1]]), np.abs(np.linalg.qr(values.astype(float))[1]), atol=5e-6)


@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (7, 3), (3, 6), (1, 4)])
def test_lower_triangular_with_ones_times_upper_triangular(shape):
    graph, prog = new_graph(), program.Sequence()
    a = graph.add_variable(FLOAT, shape, mapping="linear", name="a")
    lower, upper = poplin.experimental.lu_factorization(graph, a, prog)
    values = (np.random.default_rng(1).standard_normal(shape) / 4 + np.eye(*shape)).astype(np.float32)
    found = run(graph, prog, {a: values}, {"l": lower, "u": upper, "a": a})
    np.testing.assert_array_equal(found["l"], np.tril(found["l"]))
    np.testing.assert_array_equal(np.diagonal(found["l"]), 1)
    np.testing.assert_array_equal(found["u"], np.triu(found["u"]))
    np.testing.assert_allclose(found["l"] @ found["u"], values, atol=3e-6)
    np.testing.assert_array_equal(found["a"], values)


def test_mistakes_are_told_at_the_call():
    graph, prog = new_graph(), program.Sequence()
    with pytest.raises(errors.ShapeError, match="3 rows and 4 columns"):
        poplin.experimental.create_qr_factorization_matrices(graph, FLOAT, 3, 4)
    with pytest.raises(errors.ElementTypeError, match="HALF"):
        poplin.experimental.create_qr_factorization_matrices(graph, HALF, 4, 3)
    a, q = poplin.experimental.create_qr_factorization_matrices(graph, FLOAT, 4, 3)
    with pytest.raises(errors.ShapeError, match="m >= n"):
        poplin.experimental.qr_factorization(graph, a, q[1:], prog)
    with pytest.raises(errors.ShapeError, match="a matrix"):
        poplin.experimental.lu_factorization(graph, a[0], prog)
