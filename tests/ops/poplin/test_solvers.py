"""Triangular systems and Cholesky factors of both engines against numpy.linalg."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from popcore import errors, program
from popcore.ops import poplin
from popcore.types import FLOAT, HALF, INT
from tests.ops.popops.runs import mapped, new_graph, run, values


def triangle(rng, groups, n, lower, unit):
    """Well conditioned; what must not be read is NaN."""
    a = rng.standard_normal((groups, n, n)) / max(n, 1)
    a[:, range(n), range(n)] = np.nan if unit else rng.choice([-1, 1], (groups, n)) * rng.uniform(1, 2, (groups, n))
    outside = np.triu(np.ones((n, n), bool), 1) if lower else np.tril(np.ones((n, n), bool), -1)
    seen = np.where(outside, 0, a)
    seen[:, range(n), range(n)] = 1 if unit else a[:, range(n), range(n)]
    return np.where(outside, np.nan, a), seen


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 3), st.sampled_from([0, 1, 2, 5, 8, 13]), st.integers(0, 7), st.booleans(), st.booleans(), st.booleans(),
    st.sampled_from([2, 3, 64]), st.sampled_from([FLOAT, HALF]), st.integers(0, 1000),
)  # fmt: skip
def test_solutions_of_triangular_systems(groups, n, k, left, lower, unit, block, dtype, seed):
    """Left and right, lower and upper, with a diagonal of 1 or not, one block or many."""
    rng = np.random.default_rng(seed)
    a, seen = triangle(rng, groups, n, lower, unit)
    b = rng.standard_normal((groups, n, k) if left else (groups, k, n))
    a, b = a.astype(dtype.numpy), b.astype(dtype.numpy)
    shape = (groups,) if groups > 1 else ()
    graph, prog = new_graph(), program.Sequence()
    ta = poplin.create_triangular_solve_input_lhs(graph, dtype, dtype, (*shape, n, n), (*shape, *b.shape[1:]), left, "a")
    tb = poplin.create_triangular_solve_input_rhs(graph, dtype, dtype, (*shape, n, n), (*shape, *b.shape[1:]), left, "b")
    x = poplin.triangular_solve(graph, ta, tb, left, lower, unit, prog, options={"blockSize": block})
    found = run(graph, prog, {ta: a.reshape(ta.shape), tb: b.reshape(tb.shape)}, {"x": x})["x"].reshape(b.shape)
    seen = seen.astype(dtype.numpy).astype(float)
    wanted = np.linalg.solve(seen, b.astype(float)) if left else np.swapaxes(np.linalg.solve(np.swapaxes(seen, 1, 2), np.swapaxes(b.astype(float), 1, 2)), 1, 2)
    np.testing.assert_allclose(found, wanted, **({"rtol": 1e-4, "atol": 1e-5} if dtype is FLOAT else {"rtol": 2e-2, "atol": 2e-2}))


@settings(max_examples=15, deadline=None)
@given(
    st.integers(1, 3), st.sampled_from([0, 1, 2, 5, 8, 13]), st.booleans(), st.sampled_from([2, 3, 64]), st.sampled_from([FLOAT, HALF]), st.integers(0, 1000)
)
def test_factors_of_positive_definite_matrices(groups, n, lower, block, dtype, seed):
    """Only one triangle is read, the other becomes 0."""
    rng = np.random.default_rng(seed)
    q = rng.standard_normal((groups, n, n))
    whole = (q @ np.swapaxes(q, 1, 2) / max(n, 1) + np.eye(n)).astype(dtype.numpy)
    outside = np.triu(np.ones((n, n), bool), 1) if lower else np.tril(np.ones((n, n), bool), -1)
    shape = (groups, n, n) if groups > 1 else (n, n)
    graph, prog = new_graph(), program.Sequence()
    a = poplin.create_cholesky_input(graph, dtype, shape, lower, "a")
    made = poplin.cholesky(graph, a, lower, prog, options={"blockSize": block})
    found = run(graph, prog, {a: np.where(outside, dtype.numpy.type(np.nan), whole).reshape(shape)}, {"l": made, "a": a})
    exact = np.linalg.cholesky(whole.astype(float))
    wanted = exact if lower else np.swapaxes(exact, 1, 2)
    np.testing.assert_allclose(found["l"].reshape(whole.shape), wanted, **({"rtol": 1e-4, "atol": 1e-5} if dtype is FLOAT else {"rtol": 1e-2, "atol": 1e-2}))
    assert np.isnan(found["a"]).sum() == groups * outside.sum()  # the input is as it was


@settings(max_examples=12, deadline=None)
@given(st.data())
def test_any_view_and_mapping(data):
    """Operands that are mapped and seen somehow, by both solvers."""
    graph, prog = new_graph(), program.Sequence()
    n, k = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 4))
    (wa, a, see_a), (wb, b, see_b) = (data.draw(mapped(graph, FLOAT, s, name)) for s, name in (((n, n), "a"), ((n, k), "b")))
    x = poplin.triangular_solve(graph, a, b, True, False, False, prog, options={"blockSize": 2})
    factor = poplin.cholesky(graph, a, True, prog, options={"blockSize": 4})
    given_a = np.full(wa.shape, 7, np.float32)
    see_a(given_a)[...] = np.eye(n) * 8 + 1 / (1 + np.abs(np.subtract.outer(np.arange(n), np.arange(n))))
    given_b = values(FLOAT, wb.shape, 4)
    found = run(graph, prog, {wa: given_a, wb: given_b}, {"x": x, "l": factor})
    exact = see_a(given_a).astype(float)
    np.testing.assert_allclose(found["x"], np.linalg.solve(np.triu(exact), see_b(given_b)), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found["l"], np.linalg.cholesky(exact), rtol=1e-5, atol=1e-6)


def test_a_factor_in_place_of_any_view_and_what_is_not_definite():
    graph, prog = new_graph(), program.Sequence()
    t = graph.add_variable(FLOAT, (2, 4, 4), mapping="linear", name="a")
    poplin.cholesky_in_place(graph, t.dim_shuffle([0, 2, 1]), True, prog, options={"blockSize": 2})
    good = np.array([[4, 2, 0, 0], [2, 5, 2, 0], [0, 2, 5, 2], [0, 0, 2, 5]], np.float32)
    found = run(graph, prog, {t: np.stack([good, -good])}, {"a": t})["a"]
    np.testing.assert_allclose(found[0].T, np.linalg.cholesky(good), rtol=1e-6)
    assert np.isnan(found[1]).any()


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("unit", [True, False])
def test_a_mask_keeps_one_triangle(lower, unit):
    graph, prog = new_graph(), program.Sequence()
    a = graph.add_variable(HALF, (2, 5, 5), mapping="linear", name="a")
    values = np.random.default_rng(0).standard_normal((2, 5, 5)).astype(np.float16)
    found = run(graph, prog, {a: values}, {"m": poplin.triangular_mask(graph, a, lower, unit, prog)})["m"]
    wanted = np.tril(values) if lower else np.triu(values)
    if unit:
        wanted[:, range(5), range(5)] = 1
    np.testing.assert_array_equal(found, wanted)


def test_mistakes_are_told_at_the_call():
    graph, prog = new_graph(), program.Sequence()
    a, b, i = (graph.add_variable(d, s, mapping="linear", name="t") for d, s in ((FLOAT, (4, 4)), (FLOAT, (4, 3)), (INT, (4, 4))))
    with pytest.raises(errors.ShapeError, match=r"\[\.\.\., k, n\]"):
        poplin.triangular_solve(graph, a, b, False, True, False, prog)
    with pytest.raises(errors.ElementTypeError, match="cast"):
        poplin.triangular_solve(graph, a, i, True, True, False, prog)
    with pytest.raises(errors.OptionError, match="blockSize"):
        poplin.triangular_solve(graph, a, b, True, True, False, prog, options={"blockSize": 0})
    with pytest.raises(errors.ShapeError, match="n, n"):
        poplin.cholesky(graph, b, True, prog)
    with pytest.raises(errors.ShapeError, match="n, n"):
        poplin.triangular_mask(graph, b, True, False, prog)
    with pytest.raises(errors.GraphError, match="cannot write"):
        poplin.cholesky_in_place(graph, graph.add_constant(FLOAT, (2, 2), 1.0, tile=0), True, prog)
