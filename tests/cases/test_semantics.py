"""What Poplar's programs rely on and a toy would miss: state, streams, exchange, aliases, edits, options."""

import io

import numpy as np
import pytest

from popcore import FLOAT, HALF, INT, UNSIGNED_INT, Engine, Graph, ReferenceEngine, compile_graph, errors, program
from popcore.graph import concat
from popcore.program import Copy, Execute, Repeat, Sequence
from tests.cases.codelets import AddTo, Count, First, Increment, Lengths, PutAt, Stencil, Talk, Total


def test_memory_lives_on_across_runs_and_programs(any_engine, bench):
    """Initial values apply once; what one program leaves another finds."""
    x, y = bench.variable("x", 1, INT), bench.variable("y", 0, INT)
    bench.vertex(Count, {"x": x, "by": 1})
    engine = any_engine(bench.graph, [Execute(bench.compute_set), Copy(x, y)])
    for index in (0, 0, 1, 0):
        engine.run(index)
    assert (engine.read_tensor("x"), engine.read_tensor("y")) == (4, 3)


def test_reading_a_tensor_gives_a_new_array_of_its_shape(any_engine, bench):
    """A scalar too is an array; what the host does to it changes nothing on the device."""
    for name, values in {"scalar": 5, "vector": [5, 5], "matrix": [[5]]}.items():
        bench.variable(name, values, INT)
    engine = any_engine(bench.graph, Sequence())
    for name, shape in {"scalar": (), "vector": (2,), "matrix": (1, 1)}.items():
        found = engine.read_tensor(name)
        assert isinstance(found, np.ndarray)
        assert (found.shape, found.dtype) == (shape, np.int32)
        found[...] = 6
        assert engine.read_tensor(name).reshape(-1)[0] == 5


def test_state_fields_live_on_across_runs(any_engine, bench):
    """Each vertex has its own, and an initial value where it was given."""
    out = bench.variable("out", np.zeros((2, 4)), FLOAT)
    vertices = [bench.vertex(PutAt, {"x": 1.0, "out": out[i]}, tile=i) for i in range(2)]
    bench.graph.set_initial_value(vertices[1]["at"], 1)
    engine = any_engine(bench.graph, Execute(bench.compute_set))
    engine.run()
    engine.run()
    assert engine.read_tensor("out").tolist() == [[1, 1, 0, 0], [0, 1, 1, 0]]


def test_what_a_vertex_does_not_write_of_an_inout_keeps_its_value(any_engine, bench):
    """On its tile and gathered from others."""
    x = bench.variable("x", np.arange(8), FLOAT, tile=0)
    bench.graph.set_tile_mapping(x[6:], 1)
    bench.vertex(First, {"x": 9.0, "out": x[:4]}, tile=0)
    bench.vertex(First, {"x": 9.0, "out": x[4:].reverse(0)}, tile=2)
    assert bench.run(any_engine).read_tensor("x").tolist() == [9, 1, 2, 3, 4, 5, 6, 9]


def test_an_inout_filled_bit_by_bit_over_runs_keeps_all_of_it(any_engine, bench):
    """Other variables of the program do not use its memory in between."""
    graph = bench.graph
    seven, copy, result = (
        bench.variable("seven", np.full(4, 7), FLOAT),
        bench.variable("copy", np.zeros(4), FLOAT),
        bench.variable("result", np.zeros(4), FLOAT),
    )
    out, short = graph.add_variable(FLOAT, (4,), name="out", tile=0), graph.add_variable(FLOAT, (4,), name="short", tile=0)
    bench.vertex(PutAt, {"x": 9.0, "out": out}, tile=0)
    engine = any_engine(graph, Sequence(Copy(seven, short), Copy(short, copy), Execute(bench.compute_set), Copy(out, result)))
    for _ in range(4):
        engine.run()
    assert engine.read_tensor("result").tolist() == [9] * 4


def test_an_array_serves_its_transfers_in_turn_and_wraps(any_engine, bench):
    """The cursor lives on between runs; connecting anew begins at the beginning; connecting may come first of all."""
    x = bench.variable("x", [0, 0], INT)
    engine = any_engine(bench.graph, Copy(bench.graph.add_host_to_device_fifo("in", INT, 2), x))
    data, seen = np.arange(6, dtype=np.int32), []
    engine.connect_stream("in", data)
    engine.load()
    for again in (False, False, False, False, True, False):
        if again:
            engine.connect_stream("in", data)
        engine.run()
        seen.append(int(engine.read_tensor("x")[0]))
    assert seen == [0, 2, 4, 0, 0, 2]


def test_one_array_of_one_transfer_is_the_same_each_time(any_engine, bench):
    """And what the host writes into it between runs is seen."""
    x = bench.variable("x", [0], INT)
    engine = any_engine(bench.graph, Copy(bench.graph.add_host_to_device_fifo("in", INT, 1), x))
    data = np.array([3], np.int32)
    engine.connect_stream("in", data)
    engine.run()
    data[0] = 4
    engine.run()
    assert engine.read_tensor("x").tolist() == [4]


def test_every_execute_brings_its_inputs_anew(any_engine, bench):
    """A field on another tile is no copy made once."""
    x, out = bench.variable("x", [1, 2], INT, tile=5), bench.variable("out", 0, INT, tile=6)
    bench.vertex(Total[INT], {"x": x, "out": out}, tile=0)
    engine = bench.run(any_engine)
    engine.write_tensor("x", np.array([10, 20], np.int32))
    engine.run()
    assert engine.read_tensor("out") == 30


def test_halos_overlap(any_engine, bench):
    """Vertices read slices of one tensor that share elements, from two tiles."""
    x = bench.variable("x", np.arange(14), FLOAT, tile=0)
    bench.graph.set_tile_mapping(x[6:], 4)
    out = bench.variable("out", np.zeros(12), FLOAT, tile=1)
    for begin in (0, 4, 8):
        bench.vertex(Stencil, {"x": x[begin : begin + 6], "out": out[begin : begin + 4]}, tile=begin // 4)
    assert bench.run(any_engine).read_tensor("out").tolist() == [3 * i + 3 for i in range(12)]


def test_a_ping_pong_reads_the_old_values(any_engine, bench):
    """All vertices of a compute set see memory as it was before; a Copy after it sees the new."""
    x, y = bench.variable("x", [0, 0, 1, 0, 0, 0], FLOAT), bench.variable("y", np.zeros(4), FLOAT, tile=1)
    for i in range(4):
        bench.vertex(Stencil, {"x": x[i : i + 3], "out": y[i : i + 1]}, tile=i)
    engine = bench.run(any_engine, Repeat(2, Sequence(Execute(bench.compute_set), Copy(y, x[1:5]))))
    assert engine.read_tensor("x").tolist() == [0, 2, 3, 2, 1, 0]


def test_a_matrix_connects_to_a_list_row_by_row(any_engine, bench):
    """Rank 2 gives a vector a row, a list of tensors jagged ones; empty ones too."""
    m, k = bench.variable("m", np.arange(6).reshape(2, 3), FLOAT), bench.variable("k", np.arange(6), FLOAT, tile=1)
    out = {name: bench.variable(name, np.full(3, -1), INT) for name in ("rows", "columns", "jagged")}
    total = bench.variable("total", np.zeros(3), FLOAT)
    for i, (name, rows) in enumerate({"rows": m, "columns": m.transpose(), "jagged": [k[:1], k[2:2], concat(k[5:], k[1:3])]}.items()):
        bench.vertex(Lengths, {"rows": rows, "lengths": out[name], "total": total[i]}, tile=i)
    engine = bench.run(any_engine)
    assert [engine.read_tensor(name).tolist() for name in out] == [[3, 3, -1], [2, 2, 2], [1, 0, 3]]
    assert engine.read_tensor("total").tolist() == [15, 15, 8]


@pytest.mark.parametrize("by", [3, np.uint32(3), 3.0, True])
def test_a_literal_takes_the_type_of_the_field(any_engine, bench, by):
    """Whatever number of Python or NumPy it is, as long as the field can hold it."""
    bench.vertex(Count, {"x": bench.variable("x", 0, INT), "by": by})
    assert bench.run(any_engine).read_tensor("x") == int(by)


def test_a_graph_grows_after_an_engine_was_made(any_engine, bench):
    """A second engine sees the new vertices; the first does not."""
    x = bench.variable("x", [0, 0], INT)
    bench.vertex(Count, {"x": x[0], "by": 1})
    first = any_engine(bench.graph, Execute(bench.compute_set))
    bench.vertex(Count, {"x": x[1], "by": 5})
    second = any_engine(bench.graph, Execute(bench.compute_set))
    first.run()
    second.run()
    assert (first.read_tensor("x").tolist(), second.read_tensor("x").tolist()) == ([1, 0], [1, 5])


def test_the_last_tile_mapping_of_an_element_counts(graph):
    """Mapped as a whole, then column by column, then one element; copied to another tensor; of a view."""
    x, y = graph.add_variable(FLOAT, (2, 3), name="x", tile=7), graph.add_variable(FLOAT, (2, 3), name="y")
    for column in range(3):
        graph.set_tile_mapping(x[:, column], column)
    graph.set_tile_mapping(x[1, 1], 6)
    graph.set_tile_mapping(y, graph.get_tile_mapping(x))
    expected = [[(0, 1), (3, 4)], [(1, 2)], [(2, 3), (5, 6)], [], [], [], [(4, 5)], []]
    assert graph.get_tile_mapping(x) == graph.get_tile_mapping(y) == expected
    assert graph.get_tile_mapping(x.transpose()[1])[6] == [(1, 2)]


def test_an_unmapped_variable_is_an_error_only_where_it_is_used(bench):
    """It may wait for its mapping, and one that nothing uses needs none."""
    x = bench.variable("x", [1], INT)
    orphan = bench.graph.add_variable(INT, (1,), name="orphan")
    Engine(bench.graph, Copy(x, x.reverse(0)))
    with pytest.raises(errors.UnmappedError, match=r"(?s)'orphan' \(test_semantics\.py:\d+\).*1 of 1.*try:"):
        Engine(bench.graph, Copy(x, orphan))


MAPPINGS = {"one tile": lambda g, t: g.set_tile_mapping(t, 2), "each its own": lambda g, t: [g.set_tile_mapping(t.flatten()[i], i % 8) for i in range(24)]}


@pytest.mark.parametrize("to", MAPPINGS)
@pytest.mark.parametrize("source", MAPPINGS)
def test_a_mapping_never_changes_values(any_engine, bench, source, to):
    """A Copy through a transpose, wherever the elements live."""
    x, y = bench.variable("x", np.arange(24).reshape(4, 6), HALF), bench.variable("y", np.zeros((6, 4)), HALF)
    MAPPINGS[source](bench.graph, x)
    MAPPINGS[to](bench.graph, y)
    assert np.array_equal(bench.run(any_engine, Copy(x.transpose(), y)).read_tensor("y"), np.arange(24).reshape(4, 6).T)


def test_a_virtual_graph_shares_its_parents_variables(any_engine, bench):
    """Its tiles are numbered from 0; what it maps the parent sees."""
    part = bench.graph.create_virtual_graph([6, 3])
    x = part.add_variable(INT, (), name="x", tile=1)
    bench.graph.create_host_read("x", x)
    bench.graph.set_initial_value(x, 4)
    part.add_vertex(bench.compute_set, Count, {"x": x, "by": 1}, tile=0)
    assert bench.graph.get_tile_mapping(x)[3] == [(0, 1)]
    assert bench.run(any_engine).read_tensor("x") == 5


def test_workers_of_a_multi_vertex_come_in_any_order(bench, monkeypatch):
    """The result of a correct one is that of worker after worker, and of all at once."""
    values = np.arange(50, dtype=np.float16)
    bench.vertex(Increment, {"x": bench.variable("x", values, HALF)})
    found = [bench.run(engine_class).read_tensor("x") for engine_class in (ReferenceEngine, Engine)]
    monkeypatch.setenv("POPCORE_INTERPRET", "1")
    found.append(bench.run(Engine).read_tensor("x"))
    assert all(np.array_equal(f, values + 1) for f in found)


def test_a_tile_that_overflows_is_reported_when_the_graph_is_compiled(bench):
    """With numbers as attributes; and the compile goes through where that is asked for, so that the profile can be read."""
    big = bench.variable("big", np.zeros(200_000), FLOAT, tile=3)
    prog = Copy(big.reverse(0), big)
    with pytest.raises(errors.OutOfTileMemoryError, match=r"(?s)tile 3.*big.*try:") as caught:
        compile_graph(bench.graph, prog)
    assert (caught.value.tile, caught.value.available) == (3, bench.graph.target.bytes_per_tile)
    assert caught.value.needed > 800_000
    engine = bench.run(Engine, prog, **{"debug.allowOutOfMemory": True})
    assert engine.profile().memory.total[3] == caught.value.needed


def test_the_environment_wins_over_the_program(bench, monkeypatch):
    """As with Poplar; popcore's own variable wins over Poplar's, and a mistake in it is named."""
    monkeypatch.setenv("POPLAR_ENGINE_OPTIONS", '{"engine.threads": "1", "debug.instrument": "true"}')
    assert Engine(bench.graph, Sequence(), options={"engine.threads": 2}).executable.options["engine.threads"] == 1
    monkeypatch.setenv("POPCORE_ENGINE_OPTIONS", '{"engine.threads": 2}')
    assert Engine(bench.graph, Sequence()).executable.options["engine.threads"] == 2
    monkeypatch.setenv("POPCORE_ENGINE_OPTIONS", '{"engine.treads": 2}')
    with pytest.raises(errors.OptionError, match=r"(?s)POPCORE_ENGINE_OPTIONS.*engine\.treads.*try: 'engine\.threads'"):
        Engine(bench.graph, Sequence())


def test_halves_are_not_taken_for_floats(any_engine, bench):
    """A host array of another type for a HALF tensor or stream is an error, never reinterpreted or converted."""
    x = bench.variable("x", np.zeros(2), HALF)
    engine = any_engine(bench.graph, Copy(bench.graph.add_host_to_device_fifo("in", HALF, 2), x))
    with pytest.raises(errors.HostTransferError, match=r"(?s)'x'.*HALF.*float32.*try: array\.astype\('float16'\)"):
        engine.write_tensor("x", np.zeros(2, np.float32))
    with pytest.raises(errors.StreamError, match=r"(?s)'in'.*HALF.*uint16.*try: array\.astype\('float16'\)"):
        engine.connect_stream("in", np.zeros(2, np.uint16))


def test_every_vertex_has_cycles_in_the_profile(bench):
    """With an estimate, with ``cycles``, or by its size; one estimate changes the total."""
    totals = []
    for cycles in (None, 1000):
        inner = type(bench)(Graph(bench.graph.target))
        vertex = inner.vertex(Count, {"x": inner.variable("x", 0, INT, tile=3), "by": 1})
        if cycles:
            inner.graph.set_perf_estimate(vertex, cycles)
        profile = inner.run(Engine).profile()
        totals.append(profile.cycles_by_kind["compute"])
        assert profile.codelets["Count"].executions == 1
    assert 0 < totals[0] < 6 * 1000 < totals[1] < 6 * 1000 + 100


def test_prints_come_in_a_fixed_order_with_tile_and_worker(any_engine, bench):
    """By tile, then by vertex, however they were added."""
    for value, tile in ((1, 5), (2, 0), (3, 5), (4, 2)):
        bench.vertex(Talk, {"x": value}, tile=tile)
    engine, stream = any_engine(bench.graph, Execute(bench.compute_set)), io.StringIO()
    engine.set_print_stream(stream)
    engine.run()
    assert stream.getvalue() == "[0.0.0] x is 2\n[0.2.0] x is 4\n[0.5.0] x is 1\n[0.5.0] x is 3\n"


def test_a_program_object_may_stand_in_several_places(any_engine, bench):
    """It runs in each of them."""
    x = bench.variable("x", 0, UNSIGNED_INT)
    bench.vertex(Count, {"x": x.reinterpret("int"), "by": 1})
    step = Execute(bench.compute_set)
    twice = Sequence(step, step)
    assert bench.run(any_engine, twice, Repeat(3, twice), program.If(bench.variable("yes", True, "bool"), step)).read_tensor("x") == 9


def test_adding_vertices_in_bulk_is_adding_them_one_by_one(any_engine, bench):
    """Rows of a matrix, elements of a vector, a literal."""
    x, y = bench.variable("x", np.arange(12).reshape(3, 4), FLOAT), bench.variable("y", np.ones((3, 4)), FLOAT, tile=1)
    bench.graph.add_vertices(bench.compute_set, AddTo[FLOAT], {"x": x, "y": y}, tiles=np.array([2, 0, 1]))
    assert np.array_equal(bench.run(any_engine).read_tensor("y"), np.arange(12).reshape(3, 4) + 1)
