"""Views: does every view show the elements that NumPy's does, and say so plainly when it cannot."""

import timeit

import numpy as np
import pytest
from hypothesis import given, settings

from popcore import errors
from popcore.graph import Interval, append, concat
from popcore.types import FLOAT, HALF, INT, UNSIGNED_INT
from tests.graph.strategies import small_graph, views, whole


@given(views())
@settings(max_examples=400, deadline=None)
def test_a_view_shows_what_numpy_shows(drawn):
    t, ids = drawn
    assert t.shape == ids.shape
    assert t.regions().element_ids().tolist() == ids.reshape(-1).tolist()


@given(views())
@settings(max_examples=200, deadline=None)
def test_regions_are_as_few_as_can_be(drawn):
    t, ids = drawn
    flat = ids.reshape(-1)
    assert len(t.regions()) == (1 + np.count_nonzero(np.diff(flat) != 1) if flat.size else 0)
    assert np.all(t.regions().length > 0)


@given(views())
@settings(max_examples=200, deadline=None)
def test_questions_about_a_view_agree_with_its_elements(drawn):
    t, ids = drawn
    flat = ids.reshape(-1)
    assert t.contains_aliases == (np.unique(flat).size != flat.size)
    assert t.is_parallel_writeable == (not t.contains_aliases)
    if flat.size:
        assert t.is_contiguous == bool(np.all(np.diff(flat) == 1))
    else:
        assert len(t.regions()) == 0
    assert [e - b for b, e in t.get_contiguous_regions()] == t.regions().length.tolist()
    half = t.flatten()[: flat.size // 2]
    rest = t.flatten()[flat.size // 2 :]
    assert half.intersects_with(rest) == bool(set(flat[: flat.size // 2]) & set(flat[flat.size // 2 :]))


@given(views())
@settings(max_examples=100, deadline=None)
def test_a_simple_view_says_where_it_is(drawn):
    t, ids = drawn
    if (simple := t.simple) is not None and t.num_elements:
        variable, start, length = simple
        assert ids.reshape(-1).tolist() == list(range((variable << 40) + start, (variable << 40) + start + length))


def test_slices_by_lists_and_intervals():
    t, a = whole(small_graph(), (4, 6))
    assert t.slice([1, 2], [3, 5]).regions().element_ids().tolist() == a[1:3, 2:5].reshape(-1).tolist()
    assert t.slice(Interval(1, 3), dim=1).shape == (4, 2)
    assert t[Interval(0, 2)].shape == (2, 6)
    assert [s.shape for s in t.slices([(0, 1), (2, 4)])] == [(1, 6), (2, 6)]
    assert [s.shape for s in t.slices([0, 3], 1)] == [(4, 1), (4, 1)]
    assert concat(t.slices([3, 0])).regions().element_ids().tolist() == a[[3, 0]].reshape(-1).tolist()
    assert t.slices([[(0, 1), (5, 6)]], 1)[0].shape == (4, 2)
    assert t.index([1, 2]).shape == ()
    assert t[..., 0].shape == (4,)


def test_partial_shuffles_and_reshapes():
    t, a = whole(small_graph(), (2, 3, 4))
    assert t.dim_roll(2).regions().element_ids().tolist() == np.moveaxis(a, 2, 0).reshape(-1).tolist()
    assert t.dim_shuffle_partial([0], [1]).shape == (3, 2, 4)
    assert t.reshape_partial(1, 3, [6, 2]).shape == (2, 6, 2)
    assert t.reshape(-1, 4).shape == (6, 4)
    assert t.squeeze().shape == t.shape
    assert append(t[0], t[1, 0], 0).shape == (4, 4)
    assert concat(t, t, 1).shape == (2, 6, 4)


def test_reinterpret_keeps_the_bits_and_refuses_another_width():
    g = small_graph()
    t = g.add_variable(FLOAT, (3,), name="x")
    assert t.reinterpret(UNSIGNED_INT).dtype is UNSIGNED_INT
    assert concat(t, t).reinterpret(INT).shape == (6,)
    with pytest.raises(errors.ElementTypeError, match=r"4 bytes an element against 2"):
        t.reinterpret(HALF)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda t: t[5], r"index 5 of dimension 0 of <tensor 'x' FLOAT\[4, 6\]>"),
        (lambda t: t[0, 6], r"index 6 of dimension 0"),
        (lambda t: t.slice(3, 2), r"slice \[3, 2\)"),
        (lambda t: t.slice(0, 5), r"slice \[0, 5\) of dimension 0 .* has 4 elements"),
        (lambda t: t.reshape(5, 5), r"24 elements"),
        (lambda t: t.dim_shuffle([0, 0]), r"dim_shuffle\(\[0, 0\]\)"),
        (lambda t: t[0].transpose(), r"rank 1"),
        (lambda t: t.squeeze([0]), r"squeeze"),
        (lambda t: t.reverse(2), r"dimension 2"),
        (lambda t: t[1, 2, 3], r"3 indices"),
        (lambda t: t[0.5], r"0\.5"),
        (lambda t: t.sub_sample(0, 0), r"sub_sample\(0, 0\)"),
        (lambda t: t.broadcast(-1, 0), r"-1 times"),
        (lambda t: t.expand([3]), r"expand\(\[3\]\)"),
        (lambda t: concat([t, t[0]]), r"concat of"),
        (lambda t: concat([t, t[:, :2]], 0), r"along dimension 0"),
        (lambda t: concat([]), r"at least one"),
        (lambda t: t.select([24]), r"element 24"),
        (lambda t: t.select([0, 20], [3, 5]), r"5 elements from 20 on"),
        (lambda t: t.select([0, 1], [3]), r"places of shape \(2,\), lengths of shape \(1,\)"),
        (lambda t: t.select([3], [0]), r"0 elements from 3 on"),
    ],
)
def test_an_impossible_view_is_refused_with_its_numbers(call, says):
    t = small_graph().add_variable(FLOAT, (4, 6), name="x")
    with pytest.raises(errors.ShapeError, match=says) as caught:
        call(t)
    assert "try: " in str(caught.value)


def test_parts_are_selected_in_any_order():
    """
    Single elements, or runs; parts may overlap.
    """
    t = small_graph().add_variable(FLOAT, (4, 6), name="x")
    single, runs = t.select([7, 2, 2]), t.select([20, 2, 3], [4, 2, 1])
    expected = concat([t.flatten()[a:b] for a, b in ((20, 24), (2, 4), (3, 4))])
    assert runs.shape == expected.shape == (7,)
    assert runs.get_var_regions() == expected.get_var_regions()
    assert single.get_var_regions() == concat([t.flatten()[a : a + 1] for a in (7, 2, 2)]).get_var_regions()


def test_concat_of_two_element_types_is_refused():
    g = small_graph()
    with pytest.raises(errors.ElementTypeError, match="concat"):
        concat(g.add_variable(FLOAT, (2,)), g.add_variable(HALF, (2,)))


def test_large_views_cost_little():
    g = small_graph()
    one = g.add_constant(FLOAT, (1,), 0.0).broadcast(100_000_000, 0)
    assert one.is_affine
    assert one.contains_aliases
    assert one.simple is None
    t = g.add_variable(FLOAT, (1000, 1000))
    assert t.transpose().reshape(1000, 1000).is_affine
    assert t.transpose().regions().numel == 1_000_000
    assert t.transpose().transpose().is_contiguous
    assert len(t.broadcast(3, 0).regions()) == 3
    assert len(t[:, :500].flatten().regions()) == 1000


def test_a_slice_costs_about_a_microsecond():
    t = small_graph().add_variable(FLOAT, (1000, 8))
    row = t[0]
    assert min(timeit.repeat(lambda: t[17], number=2000, repeat=5)) / 2000 < 4e-6  # 0.4 us on an idle machine
    assert min(timeit.repeat(lambda: row[2:6], number=2000, repeat=5)) / 2000 < 4e-6


def test_a_tensor_prints_as_one_line():
    g = small_graph()
    t = g.add_variable(FLOAT, (4, 6), name="x")
    y = g.add_variable(FLOAT, (4, 6), name="y")
    assert repr(t) == "<tensor 'x' FLOAT[4, 6]>"
    assert repr(t[0]) == "<tensor view 'x' FLOAT[6]>"
    assert repr(concat(t, y)) == "<tensor view 'x + y' FLOAT[8, 6]>"
    assert repr(g.add_constant(FLOAT, (), 2.0, name="c")) == "<constant 'c' FLOAT[]>"
    assert g.add_constant(FLOAT, (3,), 2.0)[1].get_constant_value() == 2.0
    assert t[0].get_constant_value() is None


def test_iteration_and_length():
    t = small_graph().add_variable(FLOAT, (3, 2))
    assert len(t) == 3
    assert [r.shape for r in t] == [(2,)] * 3
    assert bool(t[:0])
    with pytest.raises(errors.ShapeError, match="scalar"):
        len(t[0, 0])
