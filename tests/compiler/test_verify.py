"""``verify``: every mistake is found before anything is planned, and the right ones are not mistakes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import popcore as pc
from popcore import FLOAT, errors, program
from tests.codelets import CopyVector, Increment


def two_edges(first, second, writes_second):
    """A graph where one vertex writes ``first`` of x, and another writes or reads ``second``."""
    graph = pc.Graph(pc.Device("M2000", num_ipus=1, tiles_per_ipu=4).target)
    x = graph.add_variable(FLOAT, (12,), name="x", tile=0)
    other = graph.add_variable(FLOAT, (24,), name="other", tile=1)
    cs = graph.add_compute_set("both")
    graph.add_vertex(cs, CopyVector, {"src": other[0 : first[1] - first[0]], "dst": x[first[0] : first[1]]}, tile=0)
    size = second[1] - second[0]
    edges = {"src": other[0:size], "dst": x[second[0] : second[1]]} if writes_second else {"src": x[second[0] : second[1]], "dst": other[12 : 12 + size]}
    graph.add_vertex(cs, CopyVector, edges, tile=1)
    return graph, program.Execute(cs)


@st.composite
def spans(draw):
    begin = draw(st.integers(0, 11))
    return begin, draw(st.integers(begin, 12))


@given(spans(), spans(), st.booleans())
def test_a_race_is_found_exactly_where_spans_meet(first, second, writes_second):
    """
    Two edges race if and only if they share an element that one of them writes.
    """
    graph, prog = two_edges(first, second, writes_second)
    meets = max(first[0], second[0]) < min(first[1], second[1])
    if not meets:
        pc.compile_graph(graph, prog)
        return
    with pytest.raises(errors.RaceError, match=r"(?s)'x'.*both.*dst.*try:") as caught:
        pc.compile_graph(graph, prog)
    assert caught.value.element == max(first[0], second[0])
    assert caught.value.count == min(first[1], second[1]) - max(first[0], second[0])


def test_many_readers_of_one_element_are_no_race(graph):
    """
    A compute set may read what nobody in it writes, from any number of vertices.
    """
    x = graph.add_variable(FLOAT, (4,), name="x", tile=0)
    out = graph.add_variable(FLOAT, (8, 4), name="out", tile=0)
    cs = graph.add_compute_set("readers")
    for i in range(8):
        graph.add_vertex(cs, CopyVector, {"src": x, "dst": out[i]}, tile=i)
    pc.compile_graph(graph, program.Execute(cs))


def test_all_unmapped_variables_are_named_at_once(graph):
    """
    Mistakes of one kind come as one error of that kind.
    """
    a, b = (graph.add_variable(FLOAT, (3,), name=n) for n in ("first", "second"))
    graph.set_tile_mapping(b[0], 1)
    with pytest.raises(errors.UnmappedError, match=r"(?s)first.*3 of 3.*second.*2 of 3.*try:"):
        pc.compile_graph(graph, program.Copy(a, b))


def test_a_variable_nobody_uses_may_stay_unmapped(graph):
    """
    As on the machine, what no program touches takes no memory.
    """
    graph.add_variable(FLOAT, (3,), name="spare")
    assert pc.compile_graph(graph, program.Sequence()).statistics["variables"] == 0


def test_mistakes_of_several_kinds_come_together(graph):
    """
    ``VerifyError`` lists an unmapped variable and a vertex without a tile.
    """
    a, b = (graph.add_variable(FLOAT, (3,), name=n) for n in "ab")
    c = graph.add_variable(pc.INT, (2,), name="c", tile=0)
    cs = graph.add_compute_set("unplaced")
    v = graph.add_vertex(cs, Increment, {}, tile=0)
    graph.add_vertex(cs, Increment, {"x": c}, tile=0)
    assert v.index == 0
    with pytest.raises(errors.VerifyError, match=r"(?s)2 mistakes.*Increment.*a'") as caught:
        pc.compile_graph(graph, program.Sequence(program.Copy(a, b), program.Execute(cs)))
    assert {type(e) for e in caught.value.errors} == {errors.UnmappedError, errors.GraphConnectionError}


def test_the_order_of_vertices_does_not_hide_a_race(graph):
    """
    A long write that began earlier than its neighbour is still seen behind a short one.
    """
    x = graph.add_variable(FLOAT, (100,), name="x", tile=0)
    src = graph.add_constant(FLOAT, (100,), np.zeros(100, np.float32), tile=0)
    cs = graph.add_compute_set("nested")
    for low, high in ((0, 90), (10, 12), (95, 100)):
        graph.add_vertex(cs, CopyVector, {"src": src[low:high], "dst": x[low:high]}, tile=0)
    with pytest.raises(errors.RaceError, match="elements 10 to 11"):
        pc.compile_graph(graph, program.Execute(cs))
