"""What goes wrong is said plainly, at the call that is wrong, and leaves nothing half done."""

import numpy as np
import pytest

import popcore as pc
from popcore import FLOAT, HALF, INT, UNSIGNED_INT, Engine, errors, program
from popcore.graph import concat
from popcore.program import Copy, Execute, Sequence
from tests.cases.codelets import AddTo, Count, Lengths, Multiply, Small, Total


def raises(kind, *parts):
    """The error, with ``parts`` in this order in its message, which ends with a hint."""
    return pytest.raises(kind, match=r"(?s)\A(?=.*\ntry: .).*" + ".*".join(parts))


@pytest.mark.parametrize(
    ("name", "near"), [("M200", "M2000"), ("m2001", "M2000"), ("POD65", "POD64"), ("BOW-POD17", "BOW-POD16"), ("bow-2000x", "BOW-2000"), ("GC201", "GC200")]
)
def test_an_unknown_device_is_refused_with_near_ones(name, near):
    """However it is spelled."""
    with raises(errors.UnknownNameError, f"'{name}'") as caught:
        pc.Device(name)
    assert near in str(caught.value).split("try: ")[1]


@pytest.mark.parametrize("counts", [{"num_ipus": 0}, {"num_ipus": -1}, {"tiles_per_ipu": 0}, {"num_ipus": 1.5}, {"tiles_per_ipu": True}])
def test_a_device_of_no_ipus_or_tiles_is_refused(counts):
    """The count and its name are in the message."""
    ((what, count),) = counts.items()
    with raises(errors.ValueRangeError, what, str(count)):
        pc.Device("M2000", **counts)


def test_an_engine_on_another_device_is_refused(bench):
    """Both are named."""
    with raises(errors.EngineError, "M2000", "8 tiles", "BOW-2000"):
        Engine(bench.graph, Sequence(), device=pc.Device("BOW-2000"))


@pytest.mark.parametrize("tile", [8, -1, 10**12, 2.0, "3", None, True])
def test_a_tile_that_does_not_exist_is_refused(bench, tile):
    """Of a tensor and of a vertex; the target's number of tiles is said where the tile is a number."""
    x = bench.variable("x", [0], INT)
    vertex = bench.vertex(Count, {})
    for what in (x, vertex):
        with raises(errors.TileMappingError, str(tile)):
            bench.graph.set_tile_mapping(what, tile)
    assert (vertex.tile, bench.graph.get_tile_mapping(x)[0]) == (3, [(0, 1)])


def test_a_vertex_on_a_tile_that_does_not_exist_is_not_added(bench):
    """One by one and in bulk."""
    with raises(errors.TileMappingError, "Count", "tile 8", "num_tiles = 8"):
        bench.vertex(Count, {}, tile=8)
    with raises(errors.TileMappingError, "vertex 1", "tile 8", "8 tiles"):
        bench.graph.add_vertices(bench.compute_set, Count, {}, tiles=[0, 8])
    assert bench.compute_set.num_vertices == 0


@pytest.mark.parametrize(
    ("mapping", "says"),
    [
        ([[(0, 3)]], ("covers 3 elements", "'x'", "has 4")),
        ([[(0, 4)], [(2, 4)]], ("element 2 of", "'x'", "mapped twice")),
        ([[(0, 5)]], (r"\[0, 5\)", "'x'", "4 elements")),
        ([[(2, 1)]], (r"\[2, 1\)", "'x'")),
        ([[], [0, 4]], ("no mapping of", "'x'")),
        ([[(0, 1)]] * 9, ("9 tiles", "has 8")),
    ],
    ids=["too few", "twice", "too many", "backwards", "no pairs", "more tiles"],
)
def test_a_mapping_of_the_wrong_shape_is_refused(graph, mapping, says):
    """And changes nothing."""
    x = graph.add_variable(INT, (4,), name="x", tile=5)
    with raises(errors.TileMappingError, *says):
        graph.set_tile_mapping(x, mapping)
    assert graph.get_tile_mapping(x)[5] == [(0, 4)]


WRONG = {
    "type": (lambda t: {"x": t["half"]}, ("AddTo<float>.x of vertex 0", "'work'", "FLOAT", "'half' HALF")),
    "rank": (lambda t: {"x": t["matrix"]}, ("AddTo<float>.x", "rank 1", "'matrix'", "rank 2", "flatten")),
    "scalar": (lambda t: {"x": t["scalar"]}, ("AddTo<float>.x", "rank 1", "'scalar'", "rank 0")),
    "constant": (lambda t: {"y": t["constant"]}, ("AddTo<float>.y", "writes", "'constant'")),
    "other graph": (lambda t: {"x": t["foreign"]}, ("AddTo<float>.x", "'foreign'", "different graphs")),
    "literal to write": (lambda t: {"y": 1.0}, ("AddTo<float>.y", "writes", "1.0")),
    "unknown field": (lambda t: {"z": t["vector"]}, ("AddTo<float>", r"codelets\.py:\d+", "'z'", "x, y")),
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_connection_that_cannot_be_is_refused(bench, kind):
    """Where it is made, naming vertex, field, compute set and tensor; the vertex is not added."""
    graph = bench.graph
    shapes = {"half": (HALF, (2,)), "matrix": (FLOAT, (2, 2)), "scalar": (FLOAT, ()), "vector": (FLOAT, (2,))}
    tensors = {name: graph.add_variable(dtype, shape, name=name, tile=0) for name, (dtype, shape) in shapes.items()}
    tensors["constant"] = graph.add_constant(FLOAT, (2,), 0.0, name="constant", tile=0)
    tensors["foreign"] = pc.Graph(graph.target).add_variable(FLOAT, (2,), name="foreign")
    connections, says = WRONG[kind]
    with raises(errors.UnknownNameError if kind == "unknown field" else errors.GraphConnectionError, *says):
        bench.vertex(AddTo[FLOAT], connections(tensors))
    assert bench.compute_set.num_vertices == 0


def test_a_field_is_connected_once(bench):
    """As a whole, and each vector of a list."""
    x = bench.variable("x", [0.0, 0.0], FLOAT)
    vertex = bench.vertex(AddTo[FLOAT], {"x": x})
    with raises(errors.GraphConnectionError, "AddTo<float>.x of vertex 0", "'work'", "already"):
        bench.graph.connect(vertex["x"], x)
    rows = bench.vertex(Lengths, {})
    bench.graph.connect(rows["rows"][1], x)
    with raises(errors.GraphConnectionError, r"Lengths.rows\[1\] of vertex 0", "already"):
        bench.graph.connect(rows["rows"][1], x)


def test_a_field_that_was_forgotten_is_reported_when_the_graph_is_compiled(any_engine, bench):
    """Naming field, codelet and vertex."""
    bench.vertex(AddTo[FLOAT], {"x": bench.variable("x", [0.0], FLOAT)})
    with raises(errors.GraphConnectionError, r"\by\b", "'work'"):
        any_engine(bench.graph, Execute(bench.compute_set))


def test_a_codelet_that_nobody_added_is_refused_with_near_ones(bench):
    """By name; a class needs no adding."""
    bench.graph.add_codelets(Multiply)
    with raises(errors.UnknownNameError, "'Multiplly'") as caught:
        bench.vertex("Multiplly", {})
    assert "'Multiply'" in caught.value.hint


COPIES = {
    "counts": (lambda t: Copy(t["x"], t["y"][:3]), errors.ShapeError, (r"'x' \(4,\)", r"'y' \(3,\)", "4 elements to 3")),
    "shapes": (lambda t: Copy(t["m"], t["m"].transpose()), errors.ShapeError, (r"\(2, 3\)", r"\(3, 2\)")),
    "types": (lambda t: Copy(t["x"], t["half"]), errors.ElementTypeError, ("'x'", "FLOAT", "'half'", "HALF")),
    "to a constant": (lambda t: Copy(t["x"], t["k"]), errors.ControlProgramError, ("constant 'k'",)),
    "to a broadcast": (lambda t: Copy(t["x"], t["y"][:1].broadcast(4, 0)), errors.ControlProgramError, ("'y'", "more than once")),
    "stream backwards": (lambda t: Copy(t["x"], t["in"]), errors.ControlProgramError, ("'in'", "host to device")),
    "stream count": (lambda t: Copy(t["in"], t["x"][:3]), errors.ShapeError, ("'in'", "4 elements", "'x'", "3")),
    "no row": (lambda t: Copy(t["remote"], t["x"]), errors.ControlProgramError, ("'remote'", "3 rows")),
    "row": (lambda t: Copy(t["remote"], t["x"], 3), errors.ValueRangeError, ("'remote'", "3", "3 rows")),
    "not a tensor": (lambda t: Copy(t["x"], np.zeros(4)), errors.GraphError, ("Copy",)),
    "other graph": (lambda t: Copy(t["x"], t["foreign"]), errors.GraphError, ("'x'", "'foreign'", "different graphs")),
}


@pytest.mark.parametrize("kind", COPIES)
def test_a_copy_that_cannot_be_is_refused(graph, kind):
    """At the call, naming both ends with their shapes and the line."""
    shapes = {"x": (FLOAT, (4,)), "y": (FLOAT, (4,)), "m": (FLOAT, (2, 3)), "half": (HALF, (4,))}
    ends = {name: graph.add_variable(dtype, shape, name=name, tile=0) for name, (dtype, shape) in shapes.items()}
    ends["k"] = graph.add_constant(FLOAT, (4,), 0.0, name="k", tile=0)
    ends["foreign"] = pc.Graph(graph.target).add_variable(FLOAT, (4,), name="foreign")
    ends["in"], ends["remote"] = graph.add_host_to_device_fifo("in", FLOAT, 4), graph.add_remote_buffer("remote", FLOAT, 4, 3)
    make, error, says = COPIES[kind]
    with raises(error, *says) as caught:
        make(ends)
    assert "test_mistakes.py:" in str(caught.value)


def test_several_mistakes_are_reported_together(bench):
    """Each of them, in one error that keeps them apart."""
    orphan = bench.graph.add_variable(FLOAT, (1,), name="orphan")
    x, one = bench.variable("x", [0.0], FLOAT), bench.variable("one", [1.0], FLOAT)
    for _ in range(2):
        bench.vertex(AddTo[FLOAT], {"x": one, "y": x})
    with raises(errors.VerifyError, "2 mistakes") as caught:
        Engine(bench.graph, Sequence(Execute(bench.compute_set), Copy(one, orphan)))
    assert {type(e) for e in caught.value.errors} == {errors.RaceError, errors.UnmappedError}


def test_a_graph_that_was_refused_compiles_once_it_is_mended(bench):
    """A failed compile leaves nothing behind."""
    x, orphan = bench.variable("x", [5], INT), bench.graph.add_variable(INT, (1,), name="orphan")
    bench.graph.create_host_read("orphan", orphan)
    with raises(errors.UnmappedError, "'orphan'", "1 of 1"):
        Engine(bench.graph, Copy(x, orphan))
    bench.graph.set_tile_mapping(orphan, 7)
    assert bench.run(Engine, Copy(x, orphan)).read_tensor("orphan") == [5]


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (np.zeros(5, np.float32), (r"'x'.*\(4,\)", r"\(5,\)")),
        (np.zeros((2, 2), np.float32), (r"'x'.*\(4,\)", r"\(2, 2\)")),
        (np.zeros(4, np.float64), ("'x'", "FLOAT", "float64")),
        (np.array(list("abcd")), ("'x'", "FLOAT", "float32", "str")),
        (["a", "b", "c", "d"], ("'x'", "FLOAT")),
        ([[1, 2], [3]], ("'x'", "FLOAT")),
        (None, ("'x'", "FLOAT")),
        (3.0, (r"'x'.*\(4,\)", r"\(\)")),
    ],
    ids=["length", "shape", "double", "text", "list of text", "jagged", "None", "one number"],
)
def test_a_host_array_that_does_not_fit_is_refused(any_engine, bench, values, says):
    """Naming both shapes or both types; the tensor keeps what it had."""
    bench.variable("x", [1, 2, 3, 4], FLOAT)
    engine = any_engine(bench.graph, Sequence())
    with raises(errors.HostTransferError, *says):
        engine.write_tensor("x", values)
    assert engine.read_tensor("x").tolist() == [1, 2, 3, 4]


def test_a_handle_that_does_not_exist_is_refused_with_near_ones(any_engine, bench):
    """Of reads, writes and remote buffers."""
    bench.variable("weights", [0], INT)
    bench.graph.add_remote_buffer("rows", INT, 1)
    engine = any_engine(bench.graph, Sequence())
    for call in (engine.read_tensor, lambda handle: engine.write_tensor(handle, [0])):
        with raises(errors.UnknownNameError, "'wieghts'") as caught:
            call("wieghts")
        assert caught.value.hint == "'weights'"
    with raises(errors.UnknownNameError, "remote buffer 'row'") as caught:
        engine.copy_from_remote_buffer("row")
    assert caught.value.hint == "'rows'"


@pytest.mark.parametrize("declare", ["create_host_read", "create_host_write", "add_remote_buffer", "add_host_to_device_fifo", "add_device_to_host_fifo"])
def test_a_handle_is_declared_once(bench, declare):
    """The message says where it was declared first."""
    make = getattr(bench.graph, declare)
    arguments = (bench.variable("x", [0], INT),) if declare.startswith("create") else (INT, 1)
    make("taken", *arguments)
    with raises(errors.GraphError, "'taken'", r"already \(test_mistakes\.py:\d+\)"):
        make("taken", *arguments)


@pytest.mark.parametrize("index", [2, -1, "0", None])
def test_a_program_that_does_not_exist_is_refused(any_engine, bench, index):
    """The number of programs is in the message."""
    with raises(errors.EngineError, str(index), "2 programs"):
        any_engine(bench.graph, [Sequence(), Sequence()]).run(index)


def test_reading_before_running_gives_what_was_loaded(any_engine, bench):
    """Initial values, and zeros where there are none; nothing of an earlier engine."""
    bench.variable("x", [1, 2], INT)
    y = bench.graph.add_variable(INT, (2,), name="y", tile=0)
    bench.graph.create_host_read("y", y)
    engine = any_engine(bench.graph, Copy(bench.graph.variables and y.reverse(0), y))
    assert (engine.read_tensor("x").tolist(), engine.read_tensor("y").tolist()) == ([1, 2], [0, 0])


def test_the_state_of_a_vertex_is_no_edge(bench):
    """Connecting it is refused; an initial value is what it takes."""
    vertex = bench.vertex(Small, {})
    with raises(errors.GraphConnectionError, r"Small\.short of vertex 0", "state", "set_initial_value"):
        bench.graph.connect(vertex["short"], bench.variable("x", 0, "unsigned short"))


VIEWS = {
    "index": (lambda x: x[4], ("index 4", "'x'", "4 elements")),
    "slice end": (lambda x: x.slice(2, 5), (r"\[2, 5\)", "'x'", "4 elements")),
    "slice order": (lambda x: x.slice(3, 2), (r"\[3, 2\)", "'x'")),
    "dimension": (lambda x: x.slice(0, 1, 2), ("dimension 2", "'x'", "rank 2")),
    "reshape": (lambda x: x.reshape(5, 3), ("'x'", "12 elements", r"\(5, 3\)")),
    "shuffle": (lambda x: x.dim_shuffle([0, 0]), (r"\[0, 0\]", "'x'")),
    "squeeze": (lambda x: x.squeeze([0]), (r"squeeze\(\[0\]\)", "'x'")),
    "concat": (lambda x: concat(x, x.transpose()), ("concat", "'x'")),
    "transpose": (lambda x: x.flatten().transpose(), ("'x'", "rank 1")),
}


@pytest.mark.parametrize("kind", VIEWS)
def test_a_view_that_goes_outside_is_refused(graph, kind):
    """Nothing is cut off silently; the tensor and its shape are named."""
    make, says = VIEWS[kind]
    with raises(errors.ShapeError, *says):
        make(graph.add_variable(FLOAT, (4, 3), name="x"))


def test_bits_are_reinterpreted_only_as_a_type_of_one_width(graph):
    """UNSIGNED_INT as FLOAT is fine, as HALF it is not."""
    x = graph.add_variable(UNSIGNED_INT, (4,), name="x")
    assert x.reinterpret(FLOAT).dtype is FLOAT
    with raises(errors.ElementTypeError, "'x'", "HALF", "4 bytes", "2"):
        x.reinterpret(HALF)


def test_programs_of_the_wrong_kind_are_refused(bench):
    """A compute set is no program, a program no compute set."""
    with raises(errors.ControlProgramError, r"test_mistakes\.py:\d+", "not a program", "Execute"):
        Sequence(bench.compute_set)
    with raises(errors.GraphError, r"test_mistakes\.py:\d+", "not a compute set"):
        Execute(Sequence())
    with raises(errors.ControlProgramError, "count of a Repeat", "-1"):
        program.Repeat(-1, Sequence())
    with raises(errors.GraphError, "not a program"):
        Engine(bench.graph, [bench.compute_set])


def test_a_sum_over_another_type_is_another_codelet(bench):
    """A generic codelet needs its types, and says which are missing."""
    with raises(errors.CodeletError, "Total", "generic in 1", "0 given", r"Total\[FLOAT\]"):
        bench.vertex(Total, {})
