"""The rest of Graph: handles, functions, virtual graphs, layout helpers, text."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import popcore as pc
from popcore import errors
from popcore.codelet import InOut, Vector
from popcore.graph import Graph, concat
from popcore.types import FLOAT, HALF, INT
from tests.graph.strategies import small_graph, views


class Increment(pc.Vertex):
    x: InOut[Vector[INT]]

    def compute(self):
        for i in range(len(self.x)):
            self.x[i] += 1


def test_handles_are_kept_by_name_and_given_once():
    graph = small_graph()
    x = graph.add_variable(FLOAT, (3,), name="x")
    graph.create_host_write("x", x)
    graph.create_host_read("x", x)
    stream = graph.add_host_to_device_fifo("in", HALF, 30, buffering_depth=2)
    assert (stream.elements, stream.to_device, stream.dtype, stream.buffering_depth) == (30, True, HALF, 2)
    assert not graph.add_device_to_host_fifo("out", FLOAT, 3).to_device
    assert graph.add_remote_buffer("rows", FLOAT, 8, repeats=4).repeats == 4
    assert (list(graph.streams), list(graph.remotes), graph.host_reads["x"], graph.host_writes["x"]) == (["in", "out"], ["rows"], x, x)
    for call in (
        lambda: graph.create_host_write("x", x),
        lambda: graph.create_host_read("x", x),
        lambda: graph.add_device_to_host_fifo("in", FLOAT, 3),
        lambda: graph.add_remote_buffer("rows", FLOAT, 8),
    ):
        with pytest.raises(errors.GraphError, match=r"declared already \(test_graph\.py:\d+\)"):
            call()


def test_what_the_host_cannot_write_is_refused():
    graph = small_graph()
    x = graph.add_variable(FLOAT, (1,), name="x")
    with pytest.raises(errors.GraphError, match=r"'h'.*more than once"):
        graph.create_host_write("h", x.broadcast(3, 0))
    with pytest.raises(errors.GraphError, match=r"'h'.*is constant"):
        graph.create_host_write("h", graph.add_constant(FLOAT, (1,), 0.0))
    with pytest.raises(errors.GraphError, match=r"no tensor"):
        graph.create_host_read("h", np.zeros(3))
    with pytest.raises(errors.ValueRangeError, match=r"'s': -1"):
        graph.add_host_to_device_fifo("s", FLOAT, -1)
    graph.create_host_write("h", x[:0])  # of no elements: nothing to do, and no mistake


def test_functions_keep_their_program():
    graph = small_graph()
    f = graph.add_function("a program", name="f")
    assert (f.program, f.name, graph.functions) == ("a program", "f", [f])


def test_the_target_of_a_replicated_graph_is_that_of_one_replica():
    assert Graph(pc.Device("POD64").target, replication_factor=32).target == pc.Device("POD64", num_ipus=2).target
    with pytest.raises(errors.GraphError, match=r"(?s)replication_factor 7 does not divide the 64 IPUs.*70 IPUs"):
        Graph(pc.Device("POD64").target, replication_factor=7)
    with pytest.raises(errors.GraphError, match="replication_factor is 0"):
        Graph(pc.Device("POD64").target, replication_factor=0)
    assert Graph(pc.Device("M2000")).replication_factor == 1


@pytest.mark.parametrize(("arguments", "tiles"), [((3,), [0, 1, 2]), ((2, 6), [2, 3, 4, 5]), (([7, 1, 4],), [7, 1, 4])])
def test_a_virtual_graph_renumbers_tiles_and_shares_the_rest(arguments, tiles):
    graph = small_graph()
    virtual = graph.create_virtual_graph(*arguments)
    assert virtual.target.num_tiles == len(tiles)
    for i, tile in enumerate(tiles):
        x = virtual.add_variable(INT, (4,), name=f"x{i}")
        virtual.set_tile_mapping(x, i)
        assert graph.get_tile_mapping(x)[tile] == [(0, 4)]
        assert virtual.get_tile_mapping(x)[i] == [(0, 4)]
        v = virtual.add_vertex(virtual.add_compute_set(), Increment, {"x": x}, tile=i)
        assert v.tile == tile
    spread = virtual.add_variable(INT, (len(tiles) * 32,), "linear")
    assert [e for m in graph.get_tile_mapping(spread) for b, e in m if m] == [e for t in sorted(tiles) for e in [32 * tiles.index(t) + 32]]
    many = virtual.add_vertices(virtual.add_compute_set(), Increment, {"x": spread.reshape(len(tiles), 32)}, np.arange(len(tiles)))
    assert many.group.tile.tolist() == tiles
    assert virtual.variables is graph.variables
    assert len(graph.compute_sets) == len(tiles) + 1
    with pytest.raises(errors.TileMappingError, match=f"tile {len(tiles)}, the target has num_tiles = {len(tiles)}"):
        virtual.set_tile_mapping(spread, len(tiles))
    nested = virtual.create_virtual_graph([1])
    nested.set_tile_mapping(spread, 0)
    assert graph.get_tile_mapping(spread)[tiles[1]] == [(0, spread.num_elements)]


def test_elements_outside_a_virtual_graph_are_not_in_its_mapping():
    graph = small_graph()
    x = graph.add_variable(INT, (4,))
    graph.set_tile_mapping(x[:2], 1)
    graph.set_tile_mapping(x[2:], 5)
    virtual = graph.create_virtual_graph(4, 8)
    assert virtual.get_tile_mapping(x) == [[], [(2, 4)], [], []]
    with pytest.raises(errors.TileMappingError, match="2 of 4"):
        virtual.get_tile_mapping(x, require_complete=True)


@pytest.mark.parametrize("arguments", [(9,), (5, 9), ([1, 1],), ([],), (3, 3), ([-1],)])
def test_an_impossible_virtual_graph_is_refused(arguments):
    with pytest.raises(errors.TileMappingError):
        small_graph().create_virtual_graph(*arguments)


@given(views())
@settings(max_examples=150, deadline=None)
def test_sorted_contiguous_regions_follow_memory(drawn):
    t, ids = drawn
    flat = ids.reshape(-1)
    groups = t.graph.get_sorted_contiguous_regions(t)
    walked = [flat[i] for g in groups for b, e in g for i in range(b, e)]
    assert sorted(walked) == sorted(flat.tolist())
    distinct = [[flat[i] for b, e in g for i in range(b, e)] for g in t.graph.get_sorted_contiguous_regions(t, None, True)]
    assert [i for g in distinct for i in g] == np.unique(flat).tolist()
    assert all(np.all(np.diff(g) == 1) for g in distinct)
    assert all(a[-1] + 1 != b[0] for a, b in pairwise(distinct))


def test_sorted_contiguous_regions_of_given_intervals():
    graph = small_graph()
    x = graph.add_variable(FLOAT, (10,))
    assert graph.get_sorted_contiguous_regions(x, [(6, 8), (0, 3), (3, 4)]) == [[(0, 4)], [(6, 8)]]


@given(views())
@settings(max_examples=100, deadline=None)
def test_reordering_sorts_and_takes_others_along(drawn):
    t, ids = drawn
    other = t.graph.add_variable(FLOAT, t.shape)
    simple, (moved,) = t.graph.reorder_to_simplify(t, [other])
    order = np.argsort(ids.reshape(-1), kind="stable")
    assert np.all(np.diff(simple.regions().ids) >= 0)  # runs in order; those that meet stay whole
    assert sorted(simple.regions().element_ids().tolist()) == sorted(ids.reshape(-1).tolist())
    if np.unique(ids).size == ids.size:
        assert (moved.regions().element_ids() - other.variable.base).tolist() == order.tolist()


def test_the_tensor_behind_a_broadcast_is_found():
    graph = small_graph()
    x = graph.add_variable(FLOAT, (1, 4))
    assert graph.find_unbroadcast_tensor(x.broadcast(3, 0)).shape == (1, 4)
    assert graph.find_unbroadcast_tensor(x.broadcast(3, 1)).shape == (1, 4)
    assert graph.find_unbroadcast_tensor(concat(x, x)).shape == (1, 4)
    assert graph.find_unbroadcast_tensor(concat(x, x.reverse(1))).shape == (2, 4)


@given(st.integers(0, 3))
@settings(max_examples=4, deadline=None)
def test_a_graph_prints_as_text(extra):
    graph = small_graph()
    x = graph.add_variable(FLOAT, (2, 3), name="x<y", tile=1)
    for i in range(extra):
        graph.add_variable(FLOAT, (), name=f"spare {i}")
    cs = graph.add_compute_set("step")
    y = graph.add_variable(INT, (5,), name="y")
    graph.set_tile_mapping(y[1:4], 2)
    graph.add_vertex(cs, Increment, {"x": y}, tile=2)
    graph.create_host_read("out", x)
    graph.add_host_to_device_fifo("in", FLOAT, 3)
    graph.add_remote_buffer("rows", FLOAT, 8, 2)
    assert repr(graph) == f"<graph for 8 tiles: {2 + extra} variables ({44 + 4 * extra} B), 1 compute sets, 1 vertices>"
    text = graph.dump()
    for line in (
        "  x<y: FLOAT[2, 3] on tile 1, made at test_graph.py:",
        "  y: INT[5] on tile 2, 2 elements on none, made at",
        "  step: 1 vertices of Increment on 1 tiles (x: inout vector[INT])",
        "  out: <tensor 'x<y' FLOAT[2, 3]>",
        "  in: 3 FLOAT to device",
        "  rows: 2 rows of 8 FLOAT",
    ):
        assert line in text
    assert "... and 1 more" in graph.dump(limit=1 + extra)
    assert "x&lt;y" in graph._repr_html_()
