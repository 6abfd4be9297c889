"""Tile mapping: does the last assignment win, whatever came before, and are mistakes named."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from popcore import errors
from popcore.graph import TileMapping, concat
from popcore.types import FLOAT
from tests.counting import python_calls
from tests.graph.strategies import small_graph, views

RUN = st.tuples(st.integers(0, 40), st.integers(0, 20), st.integers(0, 7))


@given(st.lists(st.lists(RUN, max_size=6), max_size=6), st.integers(0, 1))
@settings(max_examples=300, deadline=None)
def test_a_mapping_is_what_a_dict_would_be(rounds, one_by_one):
    mapping, model = TileMapping(), {}
    for assignments in rounds:
        if one_by_one:
            for start, length, tile in assignments:
                mapping.assign_one(start, length, tile)
        elif assignments:
            mapping.assign(*np.array(assignments).T)
        for start, length, tile in assignments:
            model.update(dict.fromkeys(range(start, start + length), tile))
        starts, ends, tiles = mapping.intervals()
        assert {e: t for s, n, t in zip(starts, ends, tiles, strict=True) for e in range(s, n)} == model
        assert np.all(ends > starts)
        assert np.all((starts[1:] > ends[:-1]) | ((starts[1:] == ends[:-1]) & (tiles[1:] != tiles[:-1]))), "sorted, disjoint, maximal"


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_mapping_a_view_maps_the_elements_it_shows(data):
    graph = small_graph()
    model = {}
    t, ids = data.draw(views(graph))
    flat = t.flatten()
    for _ in range(data.draw(st.integers(0, 4))):
        begin = data.draw(st.integers(0, t.num_elements))
        end = data.draw(st.integers(begin, t.num_elements))
        tile = data.draw(st.integers(0, 7))
        graph.set_tile_mapping(flat[begin:end], tile)
        model.update(dict.fromkeys(ids.reshape(-1)[begin:end].tolist(), tile))
    expected = [model.get(i, -1) for i in ids.reshape(-1).tolist()]
    found = [-1] * t.num_elements
    for tile, intervals in enumerate(graph.get_tile_mapping(t)):
        for begin, end in intervals:
            found[begin:end] = [tile] * (end - begin)
    assert found == expected


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_a_mapping_got_can_be_set_on_another_tensor(data):
    graph = small_graph()
    a = graph.add_variable(FLOAT, (data.draw(st.integers(0, 30)),))
    for i in range(a.num_elements):
        graph.set_tile_mapping(a[i], data.draw(st.integers(0, 7)))
    b = graph.add_variable(FLOAT, a.shape).reverse(0) if a.num_elements else graph.add_variable(FLOAT, (0,))
    graph.set_tile_mapping(b, graph.get_tile_mapping(a))
    assert graph.get_tile_mapping(b, require_complete=True) == graph.get_tile_mapping(a)


def test_linear_mapping_gives_whole_vectors_and_128_bytes_a_tile():
    graph = small_graph()
    t = graph.add_variable(FLOAT, (65,), "linear", name="t")
    assert [sum(e - b for b, e in m) for m in graph.get_tile_mapping(t) if m] == [32, 33]
    big = graph.add_variable(FLOAT, (8000,), "linear")
    assert [sum(e - b for b, e in m) for m in graph.get_tile_mapping(big)] == [1000] * 8


@pytest.mark.parametrize(
    ("mapping", "says"),
    [
        (8, r"'x' .*tile 8, the target has num_tiles = 8"),
        (-1, r"tile -1"),
        (1.5, r"tile 1\.5"),
        (True, r"tile True"),
        ([[(0, 5)]], r"covers 5 elements, .*'x'.* has 10"),
        ([[(0, 11)]], r"\[0, 11\) on tile 0 is not within"),
        ([[(0, 10)], [(3, 4)]], r"element 3 of .*'x'.* mapped twice"),
        ([[]] * 8 + [[(0, 10)]], r"lists 9 tiles, the target has 8"),
        ([[1, 2]], r"no mapping"),
        ([[(1, 2, 3)]], r"no mapping"),
        ("quadratic", r"tile 'quadratic'"),
    ],
)
def test_a_wrong_mapping_names_tensor_tile_and_sizes(mapping, says):
    graph = small_graph()
    with pytest.raises(errors.TileMappingError, match=says):
        graph.set_tile_mapping(graph.add_variable(FLOAT, (10,), name="x"), mapping)


def test_an_incomplete_mapping_is_reported_when_completeness_is_asked_for():
    graph = small_graph()
    x = graph.add_variable(FLOAT, (10,), name="x")
    graph.set_tile_mapping(x[2:], 3)
    assert graph.get_tile_mapping(x)[3] == [(2, 10)]
    with pytest.raises(errors.TileMappingError, match=r"2 of 10 elements of .*'x'"):
        graph.get_tile_mapping(x, require_complete=True)


def test_a_view_of_several_variables_maps_each():
    graph = small_graph()
    x, y = graph.add_variable(FLOAT, (4,)), graph.add_variable(FLOAT, (4,))
    graph.set_tile_mapping(concat(x[1:3], y), 5)
    assert graph.get_tile_mapping(x)[5] == [(1, 3)]
    assert graph.get_tile_mapping(y)[5] == [(0, 4)]


def test_a_tensor_of_another_graph_is_refused():
    with pytest.raises(errors.GraphError, match="another graph"):
        small_graph().set_tile_mapping(small_graph().add_variable(FLOAT, (4,)), 0)


def test_mapping_a_large_machine_row_by_row_is_little_work():
    graph = small_graph(94_208)
    t = graph.add_variable(FLOAT, (94_208, 4))

    def build():
        for r in range(2_000):
            graph.set_tile_mapping(t[r], r)
        t.variable.mapping.intervals()

    assert python_calls(build) / 2_000 < 10


def test_many_overlapping_assignments_are_put_in_order_at_once():
    mapping = TileMapping()
    rng = np.random.default_rng(0)
    start, length = rng.integers(0, 1_000_000, 200_000), rng.integers(1, 5000, 200_000)
    tiles = rng.integers(0, 1472, 200_000)
    assert python_calls(lambda: (mapping.assign(start, length, tiles), mapping.intervals())) < 1_000
