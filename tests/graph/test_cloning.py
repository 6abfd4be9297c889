"""Clones: do they have the shape, the mapping and the aliases that the method promises."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from popcore.graph import CloneMethod
from popcore.types import FLOAT, HALF
from tests.graph.strategies import small_graph, views

KEEPS_ALIASES = (CloneMethod.PRESERVE_ORDER_AND_ALIASES, CloneMethod.GATHER_AND_PRESERVE_TILE_ORDER_AND_ALIASES)


@given(st.data(), st.sampled_from(CloneMethod))
@settings(max_examples=250, deadline=None)
def test_a_clone_has_the_shape_mapping_and_aliases_promised(data, method):
    graph = small_graph()
    t, ids = data.draw(views(graph))
    for v in t.variables():
        for i in range(v.numel):
            if (tile := data.draw(st.integers(-1, 7))) >= 0:
                v.mapping.assign_one(i, 1, tile)
    made = graph.clone(t, "made", method)
    assert made.shape == t.shape
    assert graph.get_tile_mapping(made) == graph.get_tile_mapping(t)
    new, old = made.regions().element_ids(), ids.reshape(-1)
    assert not set(new.tolist()) & set(old.tolist())
    if method in KEEPS_ALIASES:
        assert len(set(zip(new.tolist(), old.tolist(), strict=True))) == len(set(new.tolist())) == len(set(old.tolist()))
    else:
        assert len(set(new.tolist())) == old.size
    if method is CloneMethod.PRESERVE_ORDER_AND_ALIASES:
        assert np.argsort(new, kind="stable").tolist() == np.argsort(old, kind="stable").tolist()


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_gathering_puts_the_elements_of_a_tile_together(data):
    graph = small_graph()
    t = graph.add_variable(FLOAT, (data.draw(st.integers(1, 20)),))
    for i in range(t.num_elements):
        graph.set_tile_mapping(t[i], data.draw(st.integers(0, 7)))
    made = graph.clone(t, method="gather_and_preserve_tile_order_and_aliases")
    tiles = made.variables()[0].mapping.intervals()[2].tolist()
    assert tiles == sorted(set(tiles))


@pytest.mark.parametrize(
    ("method", "distinct"), [(CloneMethod.PRESERVE_ORDER_UNLESS_ALIASES, 12), (CloneMethod.CREATE_NEW_ORDER, 12), *((m, 4) for m in KEEPS_ALIASES)]
)
def test_a_broadcast_stays_one_only_where_aliases_are_kept(method, distinct):
    graph = small_graph()
    x = graph.add_variable(FLOAT, (4,), name="x", tile=3)
    made = graph.clone(x.expand([0]).broadcast(3, 0), method=method)
    assert (made.shape, made.variables()[0].numel, made.name) == ((3, 4), distinct, "x/clone")


def test_a_clone_of_a_transpose_keeps_the_order_in_memory():
    graph = small_graph()
    t = graph.add_variable(FLOAT, (3, 4)).transpose()
    assert graph.clone(t).strides == (1, 4)
    assert graph.clone(t, method=CloneMethod.CREATE_NEW_ORDER).strides == (3, 1)


def test_clones_of_constants_are_variables_and_may_change_type():
    graph = small_graph()
    made = graph.clone(graph.add_constant(FLOAT, (3,), 1.0, tile=2), dtype=HALF)
    assert (made.dtype, made.contains_constant) == (HALF, False)
    assert graph.get_tile_mapping(made)[2] == [(0, 3)]


def test_clone_n_adds_a_dimension():
    graph = small_graph()
    made = graph.clone_n(graph.add_variable(FLOAT, (2, 3), tile=1), 4)
    assert (made.shape, made.is_parallel_writeable) == ((4, 2, 3), True)
    assert graph.get_tile_mapping(made)[1] == [(0, 24)]
