"""The greatest and the least along the last dimension. Both engines, against NumPy."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import popcore as pc
from popcore import errors, program
from popcore.ops import popnn, popops
from popcore.ops.popops import SortOrder, TopKParams
from popcore.types import FLOAT, HALF, INT, UNSIGNED_INT
from tests.ops.popops.runs import mapped, new_graph, run, values

DRAWN = settings(deadline=None, max_examples=30, suppress_health_check=list(HealthCheck))


def best(x, k, largest, order):
    """Indices of the wanted elements; of equal ones the first."""
    code = -x.astype(np.float64) if largest else x.astype(np.float64)
    chosen = np.argsort(code, axis=-1, kind="stable")[..., :k]
    if order is (SortOrder.ASCENDING if largest else SortOrder.DESCENDING):
        again = np.argsort(-np.take_along_axis(code, chosen, -1), axis=-1, kind="stable")
        chosen = np.take_along_axis(chosen, again, -1)
    return chosen


@DRAWN
@given(st.data(), st.lists(st.integers(0, 4), max_size=2), st.integers(0, 60), st.sampled_from([FLOAT, HALF, INT, UNSIGNED_INT]))
def test_values_and_places(data, others, n, dtype):
    """
    Of any view, in any order; equal elements by place.
    """
    graph, prog = new_graph(), program.Sequence()
    t, view, see = data.draw(mapped(graph, dtype, (*others, n)))
    params = TopKParams(data.draw(st.integers(0, n)), data.draw(st.booleans()), data.draw(st.sampled_from(SortOrder)), True)
    out = popops.top_k(graph, prog, view, params)
    found, index = popops.top_k_with_permutation(graph, prog, view, params)
    x = values(dtype, t.shape)
    got = run(graph, prog, {t: x}, {"out": out, "found": found, "index": index})
    wanted = best(see(x), params.k, params.largest, params.sort_order)
    np.testing.assert_array_equal(got["index"], wanted)
    np.testing.assert_array_equal(got["found"], np.take_along_axis(see(x), wanted, -1))
    np.testing.assert_array_equal(got["out"], got["found"])


@pytest.mark.parametrize("order", SortOrder)
@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("dtype", [HALF, UNSIGNED_INT], ids=repr)
def test_values_of_keys(order, stable, dtype):
    """
    Stable: in order of their places; else of equal keys the value of fewer bits first.
    """
    graph, prog = new_graph(), program.Sequence()
    keys, v = graph.add_variable(INT, (2, 30), "linear"), graph.add_variable(dtype, (2, 30), "linear")
    params = TopKParams(7, True, order, stable)
    found, moved = popops.top_k_key_value(graph, prog, keys, v, params)
    x, y = np.random.default_rng(0).integers(0, 9, (2, 30)).astype(np.int32), np.arange(60, 0, -1).reshape(2, 30).astype(dtype.numpy)
    got = run(graph, prog, {keys: x, v: y}, {"found": found, "moved": moved})
    wanted = best(x, 7, True, order)
    np.testing.assert_array_equal(got["found"], np.take_along_axis(x, wanted, 1))
    if stable:
        np.testing.assert_array_equal(got["moved"], np.take_along_axis(y, wanted, 1))
    else:  # values fall with their places, so the last of equal keys comes first
        chosen = np.lexsort((y, -x))[:, :7]
        pairs = np.take_along_axis(x, chosen, 1), np.take_along_axis(y, chosen, 1)
        assert [sorted(zip(*p, strict=True)) for p in zip(got["found"], got["moved"], strict=True)] == [
            sorted(zip(*p, strict=True)) for p in zip(*pairs, strict=True)
        ]


def test_few_of_many():
    """
    A row over many tiles is merged as a tree; its input can be made where it is sorted; k = n sorts.
    """
    graph, prog = new_graph(300), program.Sequence()
    params = TopKParams(5, True, SortOrder.DESCENDING)
    t = popops.create_top_k_input(graph, FLOAT, (2, 20_000), params)
    assert len({i for i, m in enumerate(graph.get_tile_mapping(t)) if m}) > 100
    found, index = popops.top_k_with_permutation(graph, prog, t, params)
    x = np.random.default_rng(0).normal(size=(2, 20_000)).astype(np.float32)
    got = run(graph, prog, {t: x}, {"found": found, "index": index}, (pc.Engine,))
    np.testing.assert_array_equal(got["index"], np.argsort(-x, axis=1)[:, :5])
    np.testing.assert_array_equal(got["found"], -np.sort(-x, axis=1)[:, :5])


def test_the_old_form():
    """
    popnn's takes a matrix, gives values and places, and sorts on request.
    """
    graph, prog = new_graph(), program.Sequence()
    t = graph.add_variable(FLOAT, (1, 5), "linear")
    reads = dict(zip("vi", popnn.top_k(graph, t, 3, True, prog), strict=True))
    reads |= dict(zip("wj", popops.top_k_with_permutation(graph, prog, t[0], TopKParams(3, False, SortOrder.ASCENDING)), strict=True))
    got = run(graph, prog, {t: np.array([[3, 1, 3, 2, 1]], np.float32)}, reads)
    assert [got[k].tolist() for k in "viwj"] == [[[3, 3, 2]], [[0, 2, 3]], [1, 1, 2], [1, 4, 3]]
    with pytest.raises(errors.ShapeError):
        popnn.top_k(graph, t[0], 3, True, prog)


def test_mistakes():
    """
    More than there are, a scalar, no parameters.
    """
    graph, prog = new_graph(), program.Sequence()
    t = graph.add_variable(FLOAT, (4, 3), "linear")
    four = TopKParams(4, True, SortOrder.NONE)
    for kind, call in (
        (errors.ShapeError, lambda: popops.top_k(graph, prog, t, four)),
        (errors.ShapeError, lambda: popops.top_k_with_permutation(graph, prog, t[0, 0], four)),
        (errors.ShapeError, lambda: popops.top_k_key_value(graph, prog, t, t[:2], TopKParams(1, True, SortOrder.NONE))),
        (errors.ShapeError, lambda: popops.create_top_k_input(graph, FLOAT, (3,), four)),
        (errors.ValueRangeError, lambda: popops.top_k(graph, prog, t, 3)),
        (errors.ValueRangeError, lambda: TopKParams(-1, True, SortOrder.NONE)),
        (errors.ValueRangeError, lambda: TopKParams(1, True, "ascending")),
    ):
        with pytest.raises(kind, match="try: "):
            call()
    assert not prog.programs
