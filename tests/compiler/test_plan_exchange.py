"""``plan_exchange``: fields are used in place where they can be, and gathered once where they cannot."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import popcore as pc
from popcore import FLOAT, HALF, program
from popcore.compiler.ir import Places
from popcore.compiler.passes.plan_exchange import match_places
from tests.codelets import Axpy, CopyVector, ScaleMatrix, SumRows


def parts(draw_lengths):
    """Places of the given lengths, each in a slab of its own."""
    lengths = np.array(draw_lengths, np.int64)
    return Places(np.arange(len(lengths)), 100 * np.arange(len(lengths)), lengths)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=12), st.data())
def test_matching_moves_every_byte_once_and_in_order(source, data):
    """
    However both sides are cut, byte i of the source goes to byte i of the target.
    """
    cuts = sorted(data.draw(st.sets(st.integers(1, max(sum(source) - 1, 1)), max_size=8)))
    target = np.diff([0, *[c for c in cuts if c < sum(source)], sum(source)]).tolist()
    s, t = parts(source), parts(target)

    def bytes_of(slab, offset, nbytes):
        return [(a, b + i) for a, b, n in zip(slab, offset, nbytes, strict=True) for i in range(n)]

    moves = match_places(s, t)
    assert bytes_of(moves.source, moves.source_offset, moves.nbytes) == bytes_of(s.slab, s.offset, s.nbytes)
    assert bytes_of(moves.target, moves.target_offset, moves.nbytes) == bytes_of(t.slab, t.offset, t.nbytes)


@pytest.fixture
def x(graph):
    """An 8 x 6 matrix, row i on tile i."""
    t = graph.add_variable(FLOAT, (8, 6), name="x")
    for i in range(8):
        graph.set_tile_mapping(t[i], i)
    return t


def gathers(graph, prog):
    exe = pc.compile_graph(graph, prog)
    return exe.statistics["field gathers"], int(exe.memory.by_category["exchange buffers"].sum())


def test_local_fields_move_nothing(graph, x):
    """
    A row on the vertex's own tile is used where it lies.
    """
    cs = graph.add_compute_set("local")
    graph.add_vertex(cs, Axpy, {"x": x[2], "y": x[2][0:0], "k": 1.0}, tile=2)
    assert gathers(graph, program.Execute(cs)) == (0, 0)


def test_rows_that_follow_each_other_on_a_tile_are_one_field(graph):
    """
    Pieces of a variable that end up side by side in a tile's memory need no rearrangement.
    """
    y = graph.add_variable(HALF, (6, 4), name="y")
    for i in range(6):
        graph.set_tile_mapping(y[i], i % 2)
    cs = graph.add_compute_set("sides")
    graph.add_vertex(cs, ScaleMatrix, {"m": pc_concat(y[0:1], y[2:3], y[4:5]), "k": 2.0}, tile=0)
    assert gathers(graph, program.Execute(cs)) == (0, 0)


def pc_concat(*tensors):
    from popcore.graph import concat

    return concat(list(tensors))


def test_a_remote_row_is_gathered_into_its_size(graph, x):
    """
    One buffer of 24 bytes on the vertex's tile, filled by one copy.
    """
    out = graph.add_variable(FLOAT, (6,), name="out", tile=5)
    cs = graph.add_compute_set("remote")
    graph.add_vertex(cs, CopyVector, {"src": x[2], "dst": out}, tile=5)
    assert gathers(graph, program.Execute(cs)) == (1, 24)


def test_vertices_of_a_tile_share_what_they_read(graph, x):
    """
    Six readers of one remote row on one tile have one buffer, and the row is sent once.
    """
    out = graph.add_variable(FLOAT, (6, 6), name="out", tile=5)
    cs = graph.add_compute_set("shared")
    for i in range(6):
        graph.add_vertex(cs, CopyVector, {"src": x[2], "dst": out[i]}, tile=5)
    assert gathers(graph, program.Execute(cs)) == (1, 24)


def test_a_column_is_rearranged(graph, x):
    """
    Elements that lie apart are gathered one by one, from every tile they are on.
    """
    out = graph.add_variable(FLOAT, (8,), name="out", tile=0)
    cs = graph.add_compute_set("column")
    graph.add_vertex(cs, CopyVector, {"src": x.transpose()[1], "dst": out}, tile=0)
    assert gathers(graph, program.Execute(cs)) == (8, 32)


def test_remote_output_is_scattered_back(graph, x):
    """
    A vertex that writes elsewhere gets a second phase that takes its result there.
    """
    src = graph.add_variable(FLOAT, (6,), name="src", tile=0)
    cs = graph.add_compute_set("scatter")
    graph.add_vertex(cs, CopyVector, {"src": src, "dst": x[7]}, tile=0)
    exe = pc.compile_graph(graph, program.Execute(cs))
    assert len(exe.phases) == 2


def test_list_rows_are_placed_apart(graph, x):
    """
    Of a list field only the rows that are not there are gathered.
    """
    out = graph.add_variable(FLOAT, (), name="out", tile=3)
    cs = graph.add_compute_set("rows")
    graph.add_vertex(cs, SumRows, {"rows": x[2:5], "out": out}, tile=3)
    assert gathers(graph, program.Execute(cs)) == (2, 48)
