"""Mappings: do linear ones follow Poplar's rule, and do the others put elements where their use is."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import popcore as pc
from popcore import errors, poputil
from popcore.graph import concat
from popcore.types import FLOAT, HALF, INT


def new(tiles=8, ipus=1):
    return pc.Graph(pc.Device("M2000", num_ipus=ipus, tiles_per_ipu=tiles).target)


def held(mapping):
    return [sum(e - b for b, e in m) for m in mapping]


@given(st.integers(0, 600), st.integers(0, 40), st.integers(1, 8), st.integers(1, 9))
@settings(deadline=None)
def test_a_linear_mapping_is_what_splitting_one_interval_gives(n, least, grain, tiles):
    graph = new(tiles)
    made = poputil.calc_linear_tile_mapping(graph, (n,), least, grain)
    assert [m for m in made if m] == poputil.split_regions([(0, n)], grain, tiles, least)
    t = graph.add_variable(FLOAT, (n,))
    poputil.map_tensor_linearly(graph, t, least, grain)
    assert graph.get_tile_mapping(t, require_complete=True) == made


def test_by_default_tiles_get_whole_vectors_and_128_bytes():
    graph = new(1472)
    for dtype, n in ((FLOAT, 32), (HALF, 64), (INT, 32)):
        t = graph.add_variable(dtype, (n * 10,))
        poputil.map_tensor_linearly(graph, t)
        assert held(graph.get_tile_mapping(t))[:11] == [n] * 10 + [0]


def test_an_offset_and_a_direction_turn_the_tiles():
    graph = new(4)
    assert held(poputil.calc_linear_tile_mapping(graph, (6,), 0, 2, offset=3)) == [2, 2, 0, 2]
    assert held(poputil.calc_linear_tile_mapping(graph.target, (5,), 0, 2, offset=1, ascending=False)) == [1, 2, 2, 0]
    t = graph.add_variable(FLOAT, (3,))
    poputil.map_tensor_linearly_with_offset(graph, t, 1, False, 0, 1)
    assert graph.get_tile_mapping(t) == [[(2, 3)], [(1, 2)], [(0, 1)], []]
    mapping, following = poputil.calc_linear_tile_mapping_and_new_offset(graph, graph.add_variable(FLOAT, (64,)), 3)
    assert (held(mapping), following) == ([32, 0, 0, 32], 1)


@given(st.integers(0, 20), st.integers(1, 21), st.integers(0, 20), st.booleans())
def test_a_tile_index_transformed_and_back(tile, tiles, offset, ascending):
    tile, offset = tile % tiles, offset % tiles
    assert poputil.inv_transform_tile_index(poputil.transform_tile_index(tile, tiles, offset, ascending), tiles, offset, ascending) == tile


def test_imbalance_is_what_the_fullest_tile_has_too_many():
    graph = new(4)
    t = graph.add_variable(FLOAT, (8, 8), tile=2)
    assert poputil.get_tile_imbalance(graph, t) == 48
    assert poputil.get_tile_imbalance(graph, t.broadcast(2, 0)) == 48
    assert poputil.get_tile_imbalance([[(0, 5)], [(5, 6)]]) == 2
    assert poputil.get_tile_imbalance([[(0, 5)], []], min_elements_per_tile=5) == 0
    assert poputil.rebalance_tensor(graph, t.transpose(), 0, 0, 1)
    assert held(graph.get_tile_mapping(t)) == [16] * 4
    assert graph.get_tile_mapping(t)[1] == [(16, 32)]
    assert not poputil.rebalance_tensor(graph, t)


def test_an_output_goes_where_its_operand_is():
    graph = new(8)
    a, b = graph.add_variable(FLOAT, (64,), tile=5), graph.add_variable(FLOAT, (64,))
    poputil.map_tensor_linearly(graph, b, 1, 1)
    spread = poputil.create_output_for_element_wise_op(graph, [a, b], HALF, name="out")
    assert graph.get_tile_mapping(spread) == graph.get_tile_mapping(b)
    row = graph.add_variable(FLOAT, (1,), tile=5).broadcast(64, 0)
    out = graph.add_variable(FLOAT, (64,))
    poputil.map_output_for_element_wise_op(graph, [row], out)
    assert held(graph.get_tile_mapping(out))[:3] == [32, 32, 0]


def test_a_broadcast_operand_lives_where_it_is_used():
    graph = new(8)
    full = graph.add_variable(FLOAT, (4, 6))
    for i in range(4):
        for j in range(6):
            graph.set_tile_mapping(full[i, j], i + 4 * (j >= 3))
    made = poputil.create_broadcast_operand(graph, full, HALF, 1)
    assert (made.shape, made.dtype) == ((6,), HALF)
    tiles = [t for t, m in enumerate(graph.get_tile_mapping(made, require_complete=True)) for b, e in m for _ in range(b, e)]
    assert all((t >= 4) == (j >= 3) for j, t in enumerate(tiles))
    assert len(set(tiles)) >= 4
    with pytest.raises(errors.TileMappingError, match="not wholly mapped"):
        poputil.create_broadcast_operand(graph, graph.add_variable(FLOAT, (2, 3)), FLOAT, 1)


def test_whether_a_dimension_is_split():
    graph = new(4, ipus=2)
    t = graph.add_variable(FLOAT, (8, 6))
    for i in range(8):
        graph.set_tile_mapping(t[i], i)
    assert poputil.dim_is_split_over_tiles(graph, t, 0)
    assert not poputil.dim_is_split_over_tiles(graph, t, 1)
    assert poputil.dim_is_split_over_ipus(graph, t, 0)
    assert not poputil.dim_is_split_over_ipus(graph, t[:4], 0)


def test_an_offset_by_shape_is_always_the_same_and_within_the_tiles():
    made = [poputil.choose_mapping_offset(1472, (i, 3)) for i in range(100)]
    assert made == [poputil.choose_mapping_offset(1472, (i, 3)) for i in range(100)]
    assert len(set(made)) > 80
    assert all(0 <= m < 1472 for m in made)


def test_elements_are_mapped_to_the_tiles_that_use_them():
    graph = new(8)
    x, y = graph.add_variable(FLOAT, (20,)), graph.add_variable(FLOAT, (4,))
    tracker = poputil.TensorUseTracker(8)
    assert tracker.empty
    tracker.add(graph, 1, x[:12])
    tracker.add(graph, 3, x[8:])
    tracker.add(graph, 6, concat(y, x[0:1]))
    tracker.map_tensors_by_use(graph, grain_size=2)
    mapping = graph.get_tile_mapping(x, require_complete=True)
    assert mapping[1] + mapping[6] == [(0, 10)]  # element 0 is used by both: one grain, and the first of them gets it
    assert mapping[3] == [(10, 20)]
    assert graph.get_tile_mapping(y)[6] == [(0, 4)]
    with pytest.raises(errors.TileMappingError, match="tile 9"):
        tracker.add(graph, 9, x)


def test_the_arguments_are_checked():
    graph = new()
    with pytest.raises(errors.ValueRangeError, match="grain_size 0"):
        poputil.map_tensor_linearly(graph, graph.add_variable(FLOAT, (4,)), 0, 0)
    with pytest.raises(errors.TileMappingError, match="no tensor"):
        poputil.get_tile_imbalance(graph)


def test_mapping_a_large_tensor_over_a_large_machine_is_an_array_operation():
    graph = new(94_208)
    t = graph.add_variable(FLOAT, (94_208, 64))
    poputil.map_tensor_linearly(graph, t)
    assert np.array_equal(t.variable.mapping.intervals()[2], np.arange(94_208))
