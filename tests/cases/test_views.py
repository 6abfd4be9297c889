"""Known traps, group B: slices, aliases, broadcasts and shuffled dimensions."""

import numpy as np
import pytest

from popcore import FLOAT, HALF, INT, UNSIGNED_INT, CloneMethod, Engine, errors, poputil, program
from popcore.graph import concat
from tests.cases.codelets import AddTo, Gather, Multiply


def linear(bench, name, values, dtype):
    """A variable over all tiles that the host can read."""
    made = bench.graph.add_variable(dtype, np.shape(values), "linear", name=name)
    bench.graph.set_initial_value(made, values)
    bench.graph.create_host_read(name, made)
    return made


@pytest.mark.parametrize("indices", [[0, 2], [65535, 65536, 67999], [65536, 0, 65536]])
def test_b4_rows_beyond_2_to_the_16_are_gathered_on_a_tile(bench, indices):
    """Case B4: a table of 68,000 on one tile, in both halves of it."""
    table = bench.variable("table", np.arange(68000), INT)
    index = bench.variable("index", indices, UNSIGNED_INT, tile=1)
    bench.vertex(Gather, {"table": table, "index": index, "out": bench.variable("out", np.zeros(len(indices)), INT)}, tile=0)
    assert bench.run(Engine).read_tensor("out").tolist() == indices


def test_b4_a_dimension_of_68000_keeps_its_order_as_a_view(any_engine, bench):
    """Case B4: slices along the middle dimension, joined again."""
    table = linear(bench, "table", np.arange(68000).reshape(1, 68000, 1), INT)
    picked = concat(table.slices([0, 2, 65535, 65536, 67999], 1), 1)
    out = bench.variable("out", np.zeros(picked.shape), INT)
    assert bench.run(any_engine, program.Copy(picked, out)).read_tensor("out").reshape(-1).tolist() == [0, 2, 65535, 65536, 67999]


def test_b5_rows_beyond_2_to_the_16_are_copied(any_engine, bench):
    """Case B5: rows 65,536 and 69,999 of a table over all tiles."""
    table = linear(bench, "table", np.arange(70000, dtype=np.float32).reshape(70000, 1), FLOAT)
    out = bench.variable("out", np.zeros((2, 1)), FLOAT)
    assert bench.run(any_engine, program.Copy(concat([table[65536:65537], table[69999:]]), out)).read_tensor("out").tolist() == [[65536], [69999]]


def test_b6_a_tensor_in_several_regions_of_a_tile_is_scaled_once(any_engine, bench):
    """Case B6: all on tile 0 but two elements in the middle; a vertex a tile, and a constant operand."""
    values = np.arange(16, dtype=np.float32).reshape(2, 2, 2, 2)
    x = bench.variable("x", values, FLOAT, tile=0)
    bench.graph.set_tile_mapping(x[0, 1, 1], 3)
    flat = x.flatten()
    for tile, intervals in enumerate(bench.graph.get_tile_mapping(flat)):
        if intervals:
            bench.vertex(Multiply, {"x": concat(flat.slices(intervals)), "k": 0.5}, tile=tile)
    assert np.array_equal(bench.run(any_engine).read_tensor("x"), values / 2)
    assert bench.compute_set.num_vertices == 2


ALIASES = {
    CloneMethod.PRESERVE_ORDER_AND_ALIASES: 4,
    CloneMethod.GATHER_AND_PRESERVE_TILE_ORDER_AND_ALIASES: 4,
    CloneMethod.PRESERVE_ORDER_UNLESS_ALIASES: 12,
    CloneMethod.CREATE_NEW_ORDER: 12,
}


@pytest.mark.parametrize(("method", "elements"), ALIASES.items(), ids=[m.name for m in ALIASES])
def test_b9_a_duplicate_of_a_broadcast_has_its_values(any_engine, bench, method, elements):
    """Case B9: with as many elements of its own as the method says."""
    x = bench.variable("x", [1.0, 2.0, 3.0, 4.0], FLOAT).expand([0]).broadcast(3, 0)
    prog = program.Sequence()
    made = poputil.duplicate(bench.graph, x, prog, method=method)
    bench.graph.create_host_read("made", made)
    assert np.array_equal(bench.run(any_engine, prog).read_tensor("made"), np.tile(np.float32([1, 2, 3, 4]), (3, 1)))
    assert sum(v.numel for v in made.variables()) == elements


@pytest.mark.parametrize(("method", "elements"), ALIASES.items(), ids=[m.name for m in ALIASES])
def test_b9_the_memory_of_a_clone_is_that_of_its_elements(bench, method, elements):
    """Case B9: the profile counts an alias once."""
    graph = bench.graph
    x = graph.add_variable(FLOAT, (4,), name="x", tile=0).expand([0]).broadcast(3, 0)
    made = graph.clone(x, method=method)
    for tensor in made.variables():
        assert tensor.numel == elements
    graph.create_host_read("made", made)
    assert Engine(graph, program.Sequence()).profile().memory.by_category["variables"].sum() == 4 * elements


def test_b9_one_row_may_be_gathered_several_times(any_engine, bench):
    """Case B9: static offsets 1, 1, 1, 1."""
    x = bench.variable("x", np.arange(12).reshape(4, 3), INT)
    out = bench.variable("out", np.zeros((4, 3)), INT, tile=2)
    assert bench.run(any_engine, program.Copy(concat(x.slices([1, 1, 1, 1])), out)).read_tensor("out").tolist() == [[3, 4, 5]] * 4


def test_b9_a_host_write_may_not_meet_an_element_twice(bench):
    """Case B9: it would write one place three times."""
    x = bench.variable("x", np.arange(4), FLOAT)
    with pytest.raises(errors.GraphError, match=r"(?s)broadcast.*'x'.*more than once.*try:"):
        bench.graph.create_host_write("broadcast", x.expand([0]).broadcast(3, 0))


@pytest.mark.parametrize(
    "overlapping",
    [
        lambda x: concat(x, x),
        lambda x: x.expand([0]).broadcast(2, 0).flatten(),
        lambda x: concat(x[0:3], x[2:4]),
        lambda x: x.upsample(2),
    ],
    ids=["twice", "broadcast", "overlap", "upsample"],
)
def test_b10_in_place_on_a_view_that_meets_itself_is_refused(any_engine, bench, overlapping):
    """Case B10: one vertex would write an element twice; nothing runs."""
    y = overlapping(bench.variable("x", np.arange(4), FLOAT))
    assert not y.is_parallel_writeable
    bench.vertex(AddTo[FLOAT], {"x": bench.variable("ones", np.ones(y.shape), FLOAT), "y": y})
    with pytest.raises(errors.RaceError, match=r"(?s)\bx\b.*work.*try:"):
        any_engine(bench.graph, program.Execute(bench.compute_set))


def test_b10_two_vertices_on_views_that_meet_are_refused(any_engine, bench):
    """Case B10: each view by itself could be written."""
    x, ones = bench.variable("x", np.arange(4), FLOAT), bench.variable("ones", np.ones(3), FLOAT)
    bench.vertex(AddTo[FLOAT], {"x": ones, "y": x[:3]}, tile=1)
    bench.vertex(AddTo[FLOAT], {"x": ones, "y": x[1:]}, tile=2)
    with pytest.raises(errors.RaceError, match=r"(?s)\bx\b.*work.*AddTo<float>.*AddTo<float>"):
        any_engine(bench.graph, program.Execute(bench.compute_set))


def test_b14_a_scalar_index_drops_its_dimension(any_engine, bench):
    """Case B14: row 2 of (5, 4) has shape (4,)."""
    table = bench.variable("table", np.arange(20).reshape(5, 4), INT)
    out = bench.variable("out", np.zeros(4), INT)
    assert table.index([2]).shape == table[2].shape == (4,)
    assert bench.run(any_engine, program.Copy(table[2], out)).read_tensor("out").tolist() == [8, 9, 10, 11]


@pytest.mark.parametrize("tile", [0, 3], ids=["another tile", "its own tile"])
@pytest.mark.parametrize(
    ("read", "written", "expected"),
    [
        (lambda x: x, lambda x: x, [0, 2, 4, 6, 8, 10, 12, 14]),
        (lambda x: x.reverse(0), lambda x: x, [7, 7, 7, 7, 7, 7, 7, 7]),
        (lambda x: x[:7], lambda x: x[1:], [0, 1, 3, 5, 7, 9, 11, 13]),
        (lambda x: x[1:], lambda x: x[:7], [1, 3, 5, 7, 9, 11, 13, 7]),
        (lambda x: x[7:].broadcast(8, 0), lambda x: x.reverse(0), [7, 8, 9, 10, 11, 12, 13, 14]),
    ],
    ids=["itself", "reversed", "shifted", "shifted back", "its last"],
)
def test_b15_a_vertex_reads_what_was_there_before_it_writes(any_engine, bench, read, written, expected, tile):
    """Case B15: one vertex has the same elements in two fields."""
    x = bench.variable("x", np.arange(8), FLOAT, tile=tile)
    bench.vertex(AddTo[FLOAT], {"x": read(x), "y": written(x)}, tile=3)
    assert bench.run(any_engine).read_tensor("x").tolist() == expected


@pytest.mark.parametrize("tile", [0, 1], ids=["one tile", "two tiles"])
@pytest.mark.parametrize("dtype", [FLOAT, HALF])
@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        (lambda x: x[0:5], lambda x: x[3:8], [0, 1, 2, 0, 1, 2, 3, 4]),
        (lambda x: x[3:8], lambda x: x[0:5], [3, 4, 5, 6, 7, 5, 6, 7]),
        (lambda x: x, lambda x: x.reverse(0), [7, 6, 5, 4, 3, 2, 1, 0]),
        (lambda x: x.reshape(2, 4).transpose().flatten(), lambda x: x, [0, 4, 1, 5, 2, 6, 3, 7]),
        (lambda x: concat(x[1:], x[:1]), lambda x: x, [1, 2, 3, 4, 5, 6, 7, 0]),
        (lambda x: x[2:3].broadcast(5, 0), lambda x: x[0:5], [2, 2, 2, 2, 2, 5, 6, 7]),
    ],
    ids=["forward", "backward", "reverse", "transpose", "rotate", "broadcast"],
)
def test_b15_a_copy_onto_itself_reads_all_before_it_writes(any_engine, bench, dtype, source, target, expected, tile):
    """Case B15: as if the source were read into a third place first."""
    x = bench.variable("x", np.arange(8), dtype)
    bench.graph.set_tile_mapping(x[3:6], tile)
    assert bench.run(any_engine, program.Copy(source(x), target(x))).read_tensor("x").tolist() == expected
