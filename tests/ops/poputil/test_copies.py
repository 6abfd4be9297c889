"""Duplicates, broadcasting and the small helpers: right shapes, right tiles, each element copied once."""

import numpy as np
import pytest

import popcore as pc
from popcore import errors, poputil, program
from popcore.graph import CloneMethod
from popcore.types import FLOAT, HALF, INT


def new(tiles=4, ipus=2):
    return pc.Graph(pc.Device("M2000", num_ipus=ipus, tiles_per_ipu=tiles).target)


@pytest.mark.parametrize("method", CloneMethod)
def test_a_duplicate_of_a_broadcast_writes_each_element_once(method):
    graph = new()
    x = graph.add_variable(FLOAT, (4,), name="x", tile=3)
    prog = program.Sequence()
    made = poputil.duplicate(graph, x.expand([0]).broadcast(3, 0), prog, "copy", method)
    assert made.shape == (3, 4)
    (copy,) = prog.programs
    assert copy.dst.is_parallel_writeable
    assert set(copy.dst.regions().element_ids().tolist()) == set(made.regions().element_ids().tolist())


def test_a_clone_on_another_ipu_has_the_same_tiles_there():
    graph = new()
    x = graph.add_variable(FLOAT, (8,), name="x")
    poputil.map_tensor_linearly(graph, x, 0, 2)
    made = poputil.clone_to_ipu(graph, x, 1)
    before, after = graph.get_tile_mapping(x), graph.get_tile_mapping(made)
    assert (after[4:], after[:4]) == (before[:4], [[]] * 4)
    prog = program.Sequence()
    there = poputil.copy_to_ipu(graph, x, prog, 1)
    assert not any(graph.get_tile_mapping(there)[:4])
    assert len(prog.programs) == 1
    with pytest.raises(errors.TileMappingError, match="IPU 2, the target has 2"):
        poputil.clone_to_ipu(graph, x, 2)


def test_a_clone_in_another_virtual_graph_keeps_the_numbers():
    graph = new()
    low, high = graph.create_virtual_graph(4), graph.create_virtual_graph(4, 8)
    x = graph.add_variable(FLOAT, (8,), tile=2)
    made = poputil.clone_to_graph(low, high, x)
    assert graph.get_tile_mapping(made)[6] == [(0, 8)]
    with pytest.raises(errors.TileMappingError, match="uses tile 2"):
        poputil.clone_to_graph(low, graph.create_virtual_graph(2), x)


def test_aliases_are_expanded_over_the_tiles():
    graph = new(4, 1)
    x = graph.add_variable(FLOAT, (64,), tile=0)
    made, following = poputil.clone_and_expand_aliasing(graph, x.broadcast(2, 0), 1)
    assert (made.shape, made.contains_aliases, following) == ((128,), False, 3)
    assert [sum(e - b for b, e in m) for m in graph.get_tile_mapping(made)] == [64, 32, 32, 0]
    assert poputil.clone_and_expand_aliasing(graph, x, 2)[1] == 2


@pytest.mark.parametrize("shapes", [[(3,), (2, 3)], [(), (4,)], [(2, 1), (1, 3), (3,)], [(1,), (0,)], [(4, 1, 1), (5, 1)]])
def test_broadcasting_follows_numpy(shapes):
    graph = new()
    tensors = [graph.add_variable(FLOAT, s) for s in shapes]
    arrays = [t.variable.base + np.arange(t.num_elements).reshape(s) for t, s in zip(tensors, shapes, strict=True)]
    for t, a in zip(poputil.broadcast_to_match(*tensors), np.broadcast_arrays(*arrays), strict=True):
        assert t.shape == a.shape
        assert t.regions().element_ids().tolist() == a.reshape(-1).tolist()
    assert poputil.can_broadcast_to_match(*tensors)


def test_what_does_not_match_is_refused():
    graph = new()
    a, b = graph.add_variable(FLOAT, (2, 3), name="a"), graph.add_variable(FLOAT, (4,), name="b")
    assert not poputil.can_broadcast_to_match(a, b)
    with pytest.raises(errors.ShapeError, match=r"'b'.*cannot be broadcast to \(2, 3\)"):
        poputil.broadcast_to_match(a, b)
    assert poputil.broadcast_to_match(a, shape=(5, 2, 3))[0].shape == (5, 2, 3)
    assert [t.rank for t in poputil.expand_to_match_ranks(a, b)] == [2, 2]


def test_dimensions_are_factored_and_put_together_again():
    graph = new()
    t = graph.add_variable(FLOAT, (4, 6, 4))
    made = poputil.factor_dims(t, [1, 2])
    assert made.shape == (4, 3, 1, 2, 4)
    back = poputil.unfactor_dims(made, 2)
    assert back.shape == t.shape
    assert back.is_contiguous
    assert poputil.unfactor_dims(poputil.factor_dims(t, [3], 1), 1, 1).is_contiguous
    with pytest.raises(errors.ShapeError, match="factor_dims"):
        poputil.factor_dims(t, [3])


def test_names_of_generic_codelets():
    assert poputil.template_vertex("ns::Scale", HALF, True, 4, "ns::Op::ADD") == "ns::Scale<half,true,4,ns::Op::ADD>"
    assert poputil.template_vertex("Dot") == "Dot"


def test_halves():
    assert poputil.cast_to_device_half_value(0.1) == float(np.float16(0.1))
    assert poputil.check_accuracy_when_cast(0.1, FLOAT, HALF, 1e-3)
    assert not poputil.check_accuracy_when_cast(0.1, FLOAT, HALF, 1e-6)
    assert not poputil.check_accuracy_when_cast(1e6, FLOAT, HALF, 1e-3)
    assert poputil.check_accuracy_when_cast(0.1, HALF, FLOAT, 0)
    with pytest.raises(errors.ElementTypeError):
        poputil.check_accuracy_when_cast(1, INT, HALF, 1)
