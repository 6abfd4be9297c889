"""Sorting along a dimension. Both engines, against NumPy."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import popcore as pc
from popcore import errors, program
from popcore.ops import popops
from popcore.ops.popops.sorting import network, plan_sort
from popcore.types import BOOL, CHAR, FLOAT, HALF, INT, LONGLONG, UNSIGNED_CHAR, UNSIGNED_INT
from tests.ops.popops.runs import mapped, new_graph, run, values

DRAWN = settings(deadline=None, max_examples=20, suppress_health_check=list(HealthCheck))
KEYS = (FLOAT, HALF, INT, UNSIGNED_INT, BOOL, CHAR, UNSIGNED_CHAR)


@DRAWN
@given(st.data(), st.lists(st.integers(0, 9), min_size=1, max_size=3).map(tuple), st.sampled_from(KEYS))
def test_any_dimension_of_any_view(data, shape, dtype):
    """
    Of any type; in place as well.
    """
    graph, prog = new_graph(), program.Sequence()
    t, view, see = data.draw(mapped(graph, dtype, shape))
    dim = data.draw(st.integers(0, len(shape) - 1))
    out = popops.sort(graph, view, dim, prog)
    popops.sort_in_place(graph, view, dim, prog)
    x = values(dtype, t.shape)
    found = run(graph, prog, {t: x}, {"out": out, "t": t})
    np.testing.assert_array_equal(found["out"], np.sort(see(x), dim))
    see(x)[...] = np.sort(see(x), dim)
    np.testing.assert_array_equal(found["t"], x)


@DRAWN
@given(st.data(), st.tuples(st.integers(1, 3), st.integers(1, 40)), st.sampled_from([FLOAT, HALF, INT]), st.sampled_from([FLOAT, HALF, UNSIGNED_INT]))
def test_values_follow_their_keys(data, shape, keys, dtype):
    """
    Equal keys in any order that keeps the pairs.
    """
    graph, prog = new_graph(), program.Sequence()
    k, k_view, see = data.draw(mapped(graph, keys, shape))
    v = graph.add_variable(dtype, shape, "linear")
    out = popops.sort_key_value(graph, k_view, v, 1, prog)
    popops.sort_key_value_in_place(graph, k_view, v, 1, prog)
    x, y = values(keys, k.shape), values(dtype, shape, 1)
    found = run(graph, prog, {k: x, v: y}, {"out": out, "k": k_view, "v": v})
    np.testing.assert_array_equal(found["k"], np.sort(see(x), 1))
    np.testing.assert_array_equal(found["out"], found["v"])
    for i in range(shape[0]):
        assert sorted(zip(see(x)[i], y[i], strict=True)) == sorted(zip(found["k"][i], found["v"][i], strict=True))


@pytest.mark.parametrize("dtype", [FLOAT, HALF], ids=repr)
def test_nan_last_and_zeros_by_sign(dtype):
    """
    Whatever the sign of the NaN; infinities are numbers.
    """
    graph, prog = new_graph(), program.Sequence()
    t = graph.add_variable(dtype, (8,), "linear")
    out = popops.sort(graph, t, 0, prog)
    x = np.array([0.0, np.nan, -np.inf, -0.0, np.copysign(np.nan, -1), np.inf, 3, -3], dtype.numpy)
    found = run(graph, prog, {t: x}, {"out": out})["out"]
    np.testing.assert_array_equal(found, np.array([-np.inf, -3, -0.0, 0.0, 3, np.inf, np.nan, np.nan], dtype.numpy))
    assert np.signbit(found[2:4]).tolist() == [True, False]


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 13, 31, 1472])
def test_the_network_sorts(n):
    """
    Zeros and ones in any order; no step touches one place twice.
    """
    rng = np.random.default_rng(n)
    x = rng.integers(0, 2, (200, n))
    for low, high in network(n):
        assert np.unique(np.concatenate([low, high])).size == 2 * low.size
        x[:, low], x[:, high] = np.minimum(x[:, low], x[:, high]), np.maximum(x[:, low], x[:, high])
    assert (np.diff(x, axis=1) >= 0).all()
    bits = max(1, n.bit_length())
    assert len(network(n)) <= bits * (bits + 1) // 2


def test_a_million_over_all_tiles():
    """
    In as many blocks as there are tiles; each tile holds two blocks and receives a third.
    """
    graph, prog = new_graph(1472), program.Sequence()
    n = 1 << 18
    t = graph.add_variable(FLOAT, (n,), "linear")
    out = popops.sort(graph, t, 0, prog)
    assert plan_sort(graph.target, 1, n, n, 4).blocks > 500
    x = np.random.default_rng(0).normal(size=n).astype(np.float32)
    np.testing.assert_array_equal(run(graph, prog, {t: x}, {"out": out}, (pc.Engine,))["out"], np.sort(x))


def test_mistakes():
    """
    Refused at the call.
    """
    graph, prog = new_graph(), program.Sequence()
    t, v = graph.add_variable(FLOAT, (4, 3), "linear"), graph.add_variable(INT, (4, 2), "linear")
    for kind, call in (
        (errors.ShapeError, lambda: popops.sort(graph, t, 2, prog)),
        (errors.ShapeError, lambda: popops.sort(graph, t[0, 0], 0, prog)),
        (errors.ShapeError, lambda: popops.sort_key_value(graph, t, v, 0, prog)),
        (errors.ElementTypeError, lambda: popops.sort(graph, graph.add_variable(LONGLONG, (3,), "linear"), 0, prog)),
        (errors.GraphError, lambda: popops.sort_in_place(graph, t[:1].broadcast(2, 0), 0, prog)),
        (errors.GraphError, lambda: popops.sort_key_value_in_place(graph, t, t, 0, prog)),
    ):
        with pytest.raises(kind, match="try: "):
            call()
    assert not prog.programs
