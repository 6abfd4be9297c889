"""Vertices: are fields connected to what was given, state and literals kept, and mistakes refused at the call."""

import resource
from typing import Generic, TypeVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from popcore import Vertex, errors
from popcore.codelet import Field, InOut, Input, Matrix, Output, Vector, VectorList
from popcore.graph import EXTRA, UNCONNECTED, Column, PopcoreWarning, concat, connect
from popcore.types import CHAR, FLOAT, HALF, INT, UNSIGNED_CHAR, UNSIGNED_SHORT
from tests.counting import python_calls
from tests.graph.strategies import small_graph, views, whole

T = TypeVar("T")


class Dot(Vertex):
    a: Input[Vector[FLOAT]]
    b: Input[Vector[FLOAT]]
    out: Output[FLOAT]

    def compute(self):
        total = 0.0
        for i in range(len(self.a)):
            total += self.a[i] * self.b[i]
        self.out = total


class Shapes(Vertex):
    grid: Input[Matrix[FLOAT]]
    parts: InOut[VectorList[FLOAT]]

    def compute(self):
        self.parts[0][0] = self.grid[0, 0]


class State(Vertex):
    x: InOut[Vector[FLOAT]]
    small: UNSIGNED_SHORT
    history: Vector[HALF]

    def compute(self):
        self.small += 1


class Sized(Vertex):
    k: Input[INT]
    table: Input[Vector[CHAR]]
    scratch: Output[Vector[UNSIGNED_CHAR]]

    def compute(self):
        self.scratch[0] = self.k + self.table[0]


class Scale(Vertex, Generic[T]):
    x: InOut[Vector[T]]
    k: Input[T]

    def compute(self):
        self.x[0] = self.x[0] * self.k


class NoVertex:
    pass


def column_of(vertex, field):
    return vertex.group.columns[field]


def elements(vertex, field):
    """Ids of the elements of a field, one list for each row of a list field."""
    return [r.element_ids().tolist() for r in column_of(vertex, field).pieces(vertex.index)]


@pytest.fixture
def graph():
    made = small_graph()
    made.add_codelets(Dot, Shapes, State, Sized, Scale)
    return made


def test_columns_say_variable_start_and_length(graph):
    m, v, out = graph.add_variable(FLOAT, (5, 4)), graph.add_variable(FLOAT, (4,)), graph.add_variable(FLOAT, (5,))
    cs = graph.add_compute_set("cs")
    for i in range(5):
        assert graph.add_vertex(cs, "Dot", {"a": m[i], "b": v, "out": out[i]}, tile=i).tile == i
    group = next(iter(cs.groups.values()))
    assert (group.count, cs.num_vertices, group.tile.tolist()) == (5, 5, [0, 1, 2, 3, 4])
    a, o = group.columns["a"], group.columns["out"]
    assert a.var.tolist() == [0] * 5
    assert a.start.tolist() == [0, 4, 8, 12, 16]
    assert a.length.tolist() == [4] * 5
    assert (o.var.tolist(), o.start.tolist(), o.length.tolist()) == ([2] * 5, [0, 1, 2, 3, 4], [1] * 5)
    assert a.rows.tolist() == [0] * 5
    assert group.cycles.tolist() == [-1] * 5


@given(st.data())
@settings(max_examples=50, deadline=None)
def test_a_field_is_connected_to_whatever_the_view_shows(data):
    graph = small_graph()
    t, ids = data.draw(views(graph))
    cs = graph.add_compute_set()
    v = graph.add_vertex(cs, Scale[FLOAT], {"x": t.flatten(), "k": 2.0}, tile=0)
    assert [i for part in elements(v, "x") for i in part] == ids.reshape(-1).tolist()
    if t.rank == 2:
        s = graph.add_vertex(cs, Shapes, {"grid": t, "parts": t}, tile=0)
        assert [i for part in elements(s, "grid") for i in part] == ids.reshape(-1).tolist()
        assert elements(s, "parts") == ids.tolist()
        assert column_of(s, "grid").rows.tolist() == [t.shape[0]]


def test_list_fields_take_rows_lists_and_single_vectors(graph):
    (t, a), cs = whole(graph, (4, 6)), graph.add_compute_set()
    grid = t[:2]
    rows = graph.add_vertex(cs, Shapes, {"grid": grid, "parts": t[1:3, 2:5]})
    assert elements(rows, "parts") == a[1:3, 2:5].tolist()
    column = column_of(rows, "parts")
    assert (column.start[0], column.length[0], column.rows[0], column.stride[0]) == (8, 3, 2, 6)
    listed = graph.add_vertex(cs, Shapes, {"grid": grid, "parts": [t[0], t[1, 2:4], t[:, 0]]})
    assert elements(listed, "parts") == [a[0].tolist(), a[1, 2:4].tolist(), a[:, 0].tolist()]
    assert column.var.tolist() == [0, EXTRA]
    single = graph.add_vertex(cs, Shapes, {"grid": grid})
    graph.connect(single["parts"][1], t[3])
    graph.connect(single["parts"][0], t[2])
    assert elements(single, "parts") == a[[2, 3]].tolist()
    with pytest.raises(errors.GraphConnectionError, match=r"parts\[0\].*connected already"):
        graph.connect(single["parts"][0], t[2])
    with pytest.raises(errors.GraphConnectionError, match="connected already"):
        graph.connect(rows["parts"][0], t[2])


def test_a_list_with_a_vector_missing_or_connected_twice_is_found(graph):
    (t, a), cs = whole(graph, (4, 6)), graph.add_compute_set("cs")
    v, w = (graph.add_vertex(cs, Shapes, {"grid": t}) for _ in range(2))
    parts = column_of(v, "parts")
    graph.set_field_size(w["parts"], 2)
    assert parts.var.tolist() == [UNCONNECTED, UNCONNECTED]
    graph.connect(v["parts"][1], t[1])
    graph.connect(w["parts"][1], t[3])
    assert parts.var.tolist() == [UNCONNECTED, UNCONNECTED]
    graph.connect(v["parts"][0], t[0])
    assert parts.var.tolist() == [EXTRA, UNCONNECTED]
    graph.connect(w["parts"][0], t[2, :0])
    assert parts.var.tolist() == [EXTRA, EXTRA]
    assert (elements(v, "parts"), elements(w, "parts")) == (a[:2].tolist(), [[], a[3].tolist()])
    graph.finalise()
    graph.connect(v["parts"][1], t[2])
    with pytest.raises(errors.GraphConnectionError, match=r"Shapes\.parts\[1\] of vertex 0 in compute set 'cs' is connected twice"):
        graph.finalise()


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_edges_of_many_vertices_are_the_pieces_of_each(data):
    graph = small_graph()
    t, _ = data.draw(views(graph).filter(lambda drawn: drawn[0].rank == 2))
    column = Column(Field("f", "in", data.draw(st.sampled_from(["list", "matrix"])), FLOAT))
    n = data.draw(st.integers(0, 6))
    for i in range(n):
        rows = t[: data.draw(st.integers(0, t.shape[0]))]
        what = list(rows) if column.field.shape == "list" and data.draw(st.booleans()) else rows
        if data.draw(st.booleans()):
            connect.connect(column, i, what, graph.variables, str)
        else:
            column.put(i, UNCONNECTED)
    order = np.array(data.draw(st.permutations(range(n))), int)
    made = column.edges(order)
    each = [column.pieces(int(i)) for i in order]
    assert made.vertex.tolist() == [k for k, pieces in enumerate(each) for _ in pieces]
    flat = [p for pieces in each for p in pieces]
    assert made.edge_of_run.tolist() == [e for e, p in enumerate(flat) for _ in range(len(p))]
    assert made.runs.ids.tolist() == [i for p in flat for i in p.ids.tolist()]
    assert made.runs.length.tolist() == [i for p in flat for i in p.length.tolist()]


def test_several_tensors_make_one_vector(graph):
    (t, a), cs = whole(graph, (4, 6)), graph.add_compute_set()
    v = graph.add_vertex(cs, "Dot", {"a": [t[0], t[2]], "b": concat(t[0], t[1]), "out": t[0, 0]})
    assert elements(v, "a") == [a[[0, 2]].reshape(-1).tolist()]
    assert column_of(v, "b").length.tolist() == [12]


def test_literals_become_hidden_constants_on_the_vertex_tile(graph):
    x, cs = graph.add_variable(FLOAT, (3, 2)), graph.add_compute_set("scale")
    vertices = [graph.add_vertex(cs, "Scale<float>", {"x": x[i], "k": k}, tile=i) for i, k in enumerate([1.5, -0.0, float("nan")])]
    graph.finalise()
    k = column_of(vertices[0], "k")
    hidden = graph.variables[k.var[0]]
    assert (hidden.constant, hidden.hidden, hidden.numel) == (True, True, 3)
    assert k.start.tolist() == [0, 1, 2]
    assert np.array_equal(hidden.initial, np.float32([1.5, -0.0, np.nan]), equal_nan=True)
    assert np.signbit(hidden.initial[1])
    assert [c.tolist() for c in hidden.mapping.intervals()] == [[0, 1, 2], [1, 2, 3], [0, 1, 2]]


def test_state_and_scratch_become_hidden_variables(graph):
    x, cs = graph.add_variable(FLOAT, (3, 2)), graph.add_compute_set()
    a, b = (graph.add_vertex(cs, "State", {"x": x[i]}, tile=i) for i in range(2))
    graph.set_initial_value(b["small"], 7)
    graph.set_field_size(a["history"], 3)
    graph.set_initial_value(b["history"], [0.5, 0.25])
    w = graph.add_vertex(cs, "Sized", {"k": 3, "table": [1, 2, 3]}, tile=5)
    graph.set_field_size(w["scratch"], 4)
    graph.finalise()
    small, history = column_of(a, "small"), column_of(a, "history")
    assert graph.variables[small.var[0]].initial.tolist() == [0, 7]
    assert (history.start.tolist(), history.length.tolist()) == ([0, 3], [3, 2])
    kept = graph.variables[history.var[0]]
    assert kept.initial.tolist() == [0, 0, 0, 0.5, 0.25]
    assert not kept.constant
    assert [c.tolist() for c in kept.mapping.intervals()] == [[0, 3], [3, 5], [0, 1]]
    scratch, table = (graph.variables[column_of(w, f).var[0]] for f in ("scratch", "table"))
    assert (scratch.numel, scratch.initial, scratch.constant) == (4, None, False)
    assert (table.initial.tolist(), table.constant) == ([1, 2, 3], True)


def test_values_and_size_of_a_state_vector_have_to_agree(graph):
    cs = graph.add_compute_set("cs")
    v = graph.add_vertex(cs, "State", {"x": graph.add_variable(FLOAT, (2,)), "history": 0.5}, tile=0)
    graph.set_field_size(v["history"], 3)
    graph.finalise()
    assert graph.variables[column_of(v, "history").var[0]].initial.tolist() == [0.5] * 3
    graph.set_initial_value(v["history"], [1.0, 2.0])
    with pytest.raises(errors.ShapeError, match=r"State\.history of vertex 0 in compute set 'cs' was given 2 values and a size of 3"):
        graph.finalise()
    with pytest.raises(errors.GraphConnectionError, match="takes no size"):
        graph.set_field_size(v["small"], 3)
    with pytest.raises(errors.ValueRangeError, match="-1 elements"):
        graph.set_field_size(v["history"], -1)
    with pytest.raises(errors.GraphConnectionError, match="the tensor has the values"):
        graph.set_initial_value(v["x"], 1.0)


def test_a_vector_of_no_elements_is_connected(graph):
    x, cs = graph.add_variable(FLOAT, (5,)), graph.add_compute_set()
    for i, t in enumerate([x[:0], x[5:], x.reverse(0)[5:].reverse(0), x.slice(2, 2)]):
        v = graph.add_vertex(cs, Scale[FLOAT], {"x": t, "k": 1.0})
        column = column_of(v, "x")
        assert (column.var[i], column.length[i], elements(v, "x")) == (0, 0, [[]])


def test_what_was_read_does_not_change_when_the_graph_does(graph):
    x, cs = graph.add_variable(FLOAT, (4, 6)), graph.add_compute_set()
    v = graph.add_vertex(cs, "Dot", tile=1)
    group = v.group
    before = group.tile, group.columns["a"].length, group.columns["a"].var, group.cycles
    graph.set_tile_mapping(v, 5)
    graph.connect(v["a"], x[0])
    graph.set_perf_estimate(v, 3)
    assert [b.tolist() for b in before] == [[1], [0], [UNCONNECTED], [-1]]
    assert (group.tile.tolist(), group.columns["a"].length.tolist()) == ([5], [6])


def test_the_graph_may_grow_after_finalise_and_finalise_again(graph):
    x, cs = graph.add_variable(FLOAT, (6, 2)), graph.add_compute_set()
    first = graph.add_vertex(cs, "State", {"x": x[0]}, tile=0)
    graph.set_initial_value(first["small"], 1)
    other = graph.add_vertex(cs, "Scale<float>", {"x": x[1], "k": 1.0}, tile=1)
    graph.finalise()
    count, small = len(graph.variables), column_of(first, "small")
    graph.finalise()
    assert len(graph.variables) == count
    second = graph.add_vertex(cs, "State", {"x": x[2]}, tile=2)
    graph.set_initial_value(second["small"], 2)
    graph.add_vertex(cs, "Scale<float>", {"x": x[3], "k": 4.0}, tile=1)
    graph.set_tile_mapping(other, 6)
    graph.finalise()
    assert len(graph.variables) == count
    assert graph.variables[small.var[1]].initial.tolist() == [1, 2]
    k = column_of(other, "k")
    assert graph.variables[k.var[0]].initial.tolist() == [1.0, 4.0]
    assert graph.variables[k.var[0]].mapping.intervals()[2].tolist() == [6, 1]


def test_the_same_calls_give_the_same_variables():
    def build():
        graph = small_graph()
        x, cs = graph.add_variable(FLOAT, (6, 2)), graph.add_compute_set()
        for i in range(6):
            graph.add_vertex(cs, State if i % 2 else Scale[FLOAT], {"x": x[i]} if i % 2 else {"x": x[i], "k": i}, tile=i)
        graph.finalise()
        return [(v.name, v.numel, None if v.initial is None else v.initial.tolist()) for v in graph.variables]

    assert build() == build()


def test_connect_map_and_estimate_after_adding(graph):
    (t, a), cs = whole(graph, (4, 6)), graph.add_compute_set()
    v, w = graph.add_vertex(cs, "Dot"), graph.add_vertex(cs, "Dot")
    for field, part in (("a", t[0]), ("b", t[:, 1]), ("out", t[3, 3])):
        graph.connect(w[field], part)
    graph.set_tile_mapping(w, 6)
    graph.set_perf_estimate(w, 12, 3)
    graph.set_perf_estimate(w, 13, 4)
    group = v.group
    assert column_of(v, "a").var.tolist() == [UNCONNECTED, 0]
    assert elements(w, "b") == [a[:, 1].tolist()]
    assert (group.tile.tolist(), group.cycles.tolist(), group.flops.tolist()) == ([-1, 6], [-1, 13], [-1, 4])
    assert elements(v, "a") == []


@pytest.mark.parametrize(
    ("codelet", "connections", "kind", "says"),
    [
        ("Dott", {}, errors.UnknownNameError, r"(?s)'Dott'.*added so far: Dot.*try: 'Dot'"),
        ("Dot", {"aa": "m"}, errors.UnknownNameError, r"(?s)no field 'aa'; its fields: a, b, out.*try: 'a'"),
        ("Dot", {"a": "half"}, errors.GraphConnectionError, r"Dot\.a of vertex 0 in compute set 'cs' has element type FLOAT, .*'half'.* has HALF"),
        ("Dot", {"a": "m"}, errors.GraphConnectionError, r"(?s)Dot\.a of vertex 0.*rank 1, .*'m'.* rank 2.*flatten"),
        ("Dot", {"out": "v"}, errors.GraphConnectionError, r"rank 0"),
        ("Dot", {"out": "constant"}, errors.GraphConnectionError, r"Dot\.out.* writes, and .*'constant'.* is constant"),
        ("Dot", {"out": 1.0}, errors.GraphConnectionError, r"Dot\.out.* writes, and 1\.0 is a literal"),
        ("Dot", {"a": "foreign"}, errors.GraphConnectionError, r"different graphs"),
        ("Dot", {"a": "text"}, errors.ElementTypeError, r"'some text'"),
        ("Sized", {"k": 2**31}, errors.ValueRangeError, r"Sized\.k of vertex 0.*2147483648 does not fit INT, which holds -2147483648 to 2147483647"),
        ("Sized", {"k": 0.5}, errors.ValueRangeError, r"0\.5 does not fit INT"),
        ("Sized", {"table": [1, 2, 200]}, errors.ValueRangeError, r"Sized\.table.* 200 does not fit CHAR \(value 2 of 3\)"),
        ("State", {"small": -1}, errors.ValueRangeError, r"State\.small of vertex 0.* -1 does not fit UNSIGNED_SHORT, which holds 0 to 65535"),
        ("State", {"small": "scalar"}, errors.GraphConnectionError, r"State\.small.* is state"),
        ("Scale", {}, errors.CodeletError, r"generic in 1 element types"),
        ("Scale<float,half>", {}, errors.CodeletError, r"generic in 1 element types \(T\), 2 given"),
        ("Scale<double>", {}, errors.CodeletError, r"'double'"),
    ],
)
def test_a_mistake_is_refused_at_the_call_and_adds_nothing(graph, codelet, connections, kind, says):
    known = {
        "m": graph.add_variable(FLOAT, (4, 6), name="m"),
        "v": graph.add_variable(FLOAT, (6,), name="v"),
        "half": graph.add_variable(HALF, (6,), name="half"),
        "scalar": graph.add_variable(UNSIGNED_SHORT, (), name="scalar"),
        "constant": graph.add_constant(FLOAT, (), 1.0, name="constant"),
        "foreign": small_graph().add_variable(FLOAT, (6,), name="foreign"),
        "text": "some text",
    }
    cs = graph.add_compute_set("cs")
    given_ = {k: known.get(v, v) if isinstance(v, str) else v for k, v in connections.items()}
    if codelet == "Dot":  # the mistake comes after fields that were right
        given_ = {"b": known["v"], **given_}
    with pytest.raises(kind, match=says) as caught:
        graph.add_vertex(cs, codelet, given_, tile=0)
    assert "try: " in str(caught.value)
    assert cs.num_vertices == 0
    assert all(len(c.ids) == 0 and not len(c.extra) and not len(c.values) for g in cs.groups.values() for c in g.columns.values())


def test_connecting_twice_and_impossible_tiles_are_refused(graph):
    t, cs = graph.add_variable(FLOAT, (4, 6), name="t"), graph.add_compute_set("cs")
    v = graph.add_vertex(cs, "Dot", {"a": t[0]})
    with pytest.raises(errors.GraphConnectionError, match=r"Dot\.a of vertex 0 .*connected already"):
        graph.connect(v["a"], t[1])
    with pytest.raises(errors.TileMappingError, match=r"'Dot' is mapped to tile 8, the target has num_tiles = 8"):
        graph.add_vertex(cs, "Dot", {}, tile=8)
    with pytest.raises(errors.TileMappingError, match=r"Dot vertex 0.* tile -1"):
        graph.set_tile_mapping(v, -1)
    with pytest.raises(errors.UnknownNameError, match=r"no field 'c'"):
        v["c"]
    with pytest.raises(errors.UnknownNameError, match="list fields"):
        v["a"][0]
    with pytest.raises(errors.GraphError, match="no compute set"):
        small_graph().add_vertex(cs, Dot)
    with pytest.raises(errors.ValueRangeError, match="-1 cycles"):
        graph.set_perf_estimate(v, -1)


@pytest.mark.parametrize("name", ["Scale<half>", "Scale< half >", " Scale <half>", "ns::Scale<half>", Scale[HALF]])
def test_a_codelet_is_found_by_the_names_users_write(graph, name):
    v = graph.add_vertex(graph.add_compute_set(), name, {"x": graph.add_variable(HALF, (3,)), "k": 0.5})
    assert v.codelet.name == "Scale<half>"


def test_every_name_of_a_codelet_means_one_group(graph):
    x, cs = graph.add_variable(HALF, (3, 2)), graph.add_compute_set()
    for i, name in enumerate(["Scale<half>", "Scale< half >", Scale[HALF]]):
        graph.add_vertex(cs, name, {"x": x[i], "k": 1.0})
    assert [g.count for g in cs.groups.values()] == [3]


def test_what_is_no_codelet_is_refused(graph, tmp_path):
    for what, says in [(NoVertex, "NoVertex"), (3, "3"), (tmp_path / "a.cpp", r"no codelet file .*a\.cpp"), ("b.cpp", r"b\.cpp")]:
        with pytest.raises(errors.CodeletError, match=says):
            graph.add_codelets(what)

    class Dot(Vertex):
        x: Input[FLOAT]

        def compute(self):
            pass

    with pytest.raises(errors.CodeletError, match=r"two codelets are called Dot"):
        graph.add_codelets(Dot)


def test_a_codelet_that_cannot_be_compiled_fails_when_it_is_added():
    class Opens(Vertex):
        x: Output[FLOAT]

        def compute(self):
            with open("file"):
                self.x = 1.0

    graph = small_graph()
    with pytest.raises(errors.CodeletError, match=r"test_vertex\.py"):
        graph.add_codelets(Opens)
    assert not graph.has_codelet("Opens")


def test_a_half_state_that_overflows_warns(graph):
    v = graph.add_vertex(graph.add_compute_set(), "State", {"x": graph.add_variable(FLOAT, (2,))})
    with pytest.warns(PopcoreWarning, match=r"State\.history.* inf of 1000000\.0") as caught:
        graph.set_initial_value(v["history"], 1e6)
    assert caught[0].filename == __file__


def test_vertices_in_bulk_are_those_added_one_by_one(graph):
    n = 12
    m, v, out = graph.add_variable(FLOAT, (n, 4)), graph.add_variable(FLOAT, (4,)), graph.add_variable(FLOAT, (n,))
    cut = m[:, :3]
    one, many, ranges = (graph.add_compute_set(s) for s in ("one", "many", "ranges"))
    tiles = np.arange(n) % 8
    for i in range(n):
        graph.set_perf_estimate(graph.add_vertex(one, "Dot", {"a": cut[i], "b": v[:3], "out": out[i]}, tile=int(tiles[i])), 9)
    made = graph.add_vertices(many, "Dot", {"a": cut, "b": v[:3], "out": out}, tiles, cycles=9)
    start = np.arange(n) * 4
    graph.add_vertices(ranges, Dot, {"a": (m, start, np.full(n, 3)), "b": (v, np.zeros(n, int), 3), "out": (out, np.arange(n))}, tiles, cycles=np.full(n, 9))
    assert (len(made), made[-1].index, made[3].tile) == (n, n - 1, 3)
    first, *others = (next(iter(cs.groups.values())) for cs in (one, many, ranges))
    for group in others:
        assert group.tile.tolist() == first.tile.tolist()
        assert group.cycles.tolist() == first.cycles.tolist()
        for name, column in group.columns.items():
            for what in ("var", "start", "length"):
                assert getattr(column, what).tolist() == getattr(first.columns[name], what).tolist(), (name, what)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_bulk_takes_any_view(data):
    graph = small_graph()
    t, ids = data.draw(views(graph))
    cs = graph.add_compute_set()
    flat = t.flatten()
    n = data.draw(st.integers(0, 5))
    start = [data.draw(st.integers(0, t.num_elements)) for _ in range(n)]
    length = [data.draw(st.integers(0, t.num_elements - s)) for s in start]
    made = graph.add_vertices(cs, Scale[FLOAT], {"x": (t, np.array(start, int), np.array(length, int)), "k": np.arange(n)}, [0] * n)
    assert [elements(v, "x")[0] for v in made] == [ids.reshape(-1)[s : s + k].tolist() for s, k in zip(start, length, strict=True)]
    rows = flat.expand([0]).broadcast(2, 0)
    both = graph.add_vertices(cs, Scale[FLOAT], {"x": rows, "k": 1.0}, [1, 2])
    assert [elements(v, "x")[0] for v in both] == [ids.reshape(-1).tolist()] * 2
    shared = graph.add_vertices(cs, Scale[FLOAT], {"x": flat, "k": graph.add_variable(FLOAT, ())}, [1, 2])
    assert [elements(v, "x")[0] for v in shared] == [ids.reshape(-1).tolist()] * 2


def test_bulk_matrices_and_lists(graph):
    (t, a), cs = whole(graph, (3, 4, 5)), graph.add_compute_set()
    made = graph.add_vertices(cs, "Shapes", {"grid": t, "parts": t[:, 1:3, :2]}, [0, 1, 2])
    assert [elements(v, "parts") for v in made] == a[:, 1:3, :2].tolist()
    assert [elements(v, "grid")[0] for v in made] == a.reshape(3, -1).tolist()
    assert column_of(made[0], "grid").rows.tolist() == [4, 4, 4]
    cut = graph.add_vertices(cs, "Shapes", {"grid": (t, [0, 20], [2, 1], [5, 10]), "parts": t[0]}, [0, 1])
    assert [elements(v, "grid")[0] for v in cut] == [a.reshape(-1)[:10].tolist(), a.reshape(-1)[20:30].tolist()]
    assert column_of(made[0], "grid").rows.tolist() == [4, 4, 4, 2, 1]
    mixed = graph.add_vertices(cs, "Shapes", {"grid": t.dim_shuffle([0, 2, 1]), "parts": t.dim_shuffle([2, 0, 1])[:3]}, [0, 1, 2])
    assert [elements(v, "grid")[0] for v in mixed] == a.transpose(0, 2, 1).reshape(3, -1).tolist()
    assert [elements(v, "parts") for v in mixed] == a.transpose(2, 0, 1)[:3].tolist()


@pytest.mark.parametrize(
    ("connections", "tiles", "kind", "says"),
    [
        ({"x": "m"}, [0, 8], errors.TileMappingError, r"vertex 1 .* tile 8, the target has 8 tiles"),
        ({"x": "m"}, [0, 1, 2], errors.ShapeError, r"has 2 rows"),
        ({"x": "range"}, [0, 1], errors.ShapeError, r"vertex 1 is given elements \[7, 9\) of .*'m'.* has 8"),
        ({"k": [1, 2, 3]}, [0, 1], errors.ShapeError, r"values of shape \(3,\)"),
        ({"k": 1e300}, [0, 1], errors.ValueRangeError, r"Scale<float>\.k of 2 vertices"),
        ({"q": 1}, [0, 1], errors.UnknownNameError, r"no field 'q'"),
        ({"x": 2.0}, [0, 1], errors.GraphConnectionError, r"literal"),
        ({}, [0.5], errors.TileMappingError, r"float64"),
    ],
)
def test_a_mistake_in_bulk_is_refused_and_adds_nothing(graph, connections, tiles, kind, says):
    m = graph.add_variable(FLOAT, (2, 4), name="m")
    known = {"m": m, "range": (m, np.array([0, 7]), np.array([2, 2]))}
    cs = graph.add_compute_set("cs")
    with pytest.raises(kind, match=says):
        graph.add_vertices(cs, Scale[FLOAT], {k: known.get(v, v) if isinstance(v, str) else v for k, v in connections.items()}, tiles)
    assert cs.num_vertices == 0


def test_one_by_one_and_bulk_mix(graph):
    x, cs = graph.add_variable(FLOAT, (6, 2)), graph.add_compute_set()
    graph.add_vertex(cs, Scale[FLOAT], {"x": x[0], "k": 1.0}, tile=0)
    graph.add_vertices(cs, Scale[FLOAT], {"x": x[1:3], "k": [2.0, 3.0]}, [1, 2])
    last = graph.add_vertex(cs, Scale[FLOAT], {"x": x[4]}, tile=3)
    graph.connect(last["k"], 4.0)
    graph.finalise()
    k = column_of(last, "k")
    assert graph.variables[k.var[0]].initial.tolist() == [1, 2, 3, 4]
    assert column_of(last, "x").start.tolist() == [0, 2, 4, 8]


def test_a_pod64_of_vertices_is_built_with_little_work_and_memory():
    graph = small_graph(94_208 // 4)
    n = 94_208 // 4 * 6
    m, w, out = graph.add_variable(FLOAT, (n, 4)), graph.add_variable(FLOAT, (n, 4)), graph.add_variable(FLOAT, (n,))
    cs = graph.add_compute_set()
    graph.add_codelets(Dot)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    def build(first, last):
        for i in range(first, last):
            graph.add_vertex(cs, "Dot", {"a": m[i], "b": w[i], "out": out[i]}, tile=i // 6)

    assert python_calls(lambda: build(0, 600)) / 600 < 10
    build(600, n)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 30_000  # KiB
