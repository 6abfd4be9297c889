"""Does Execute gather, compute and scatter as it should, on each engine?"""

import io

import numpy as np
import pytest

import popcore as pc
from popcore import FLOAT, HALF, INT, UNSIGNED_CHAR, errors, program
from popcore.graph.tensor import concat
from tests.small_codelets import AddTo, Checked, Dot, IncrementBytes, RowSums, Scale, Strided, Transpose


class Bench:
    """Variables and one compute set to try vertices with."""

    def __init__(self, graph):
        self.graph, self.compute_set = graph, graph.add_compute_set("work")

    def variable(self, name, values, dtype, tile=0):
        """A variable with initial values that the host can read."""
        values = np.asarray(values)
        made = self.graph.add_variable(dtype, values.shape, name=name, tile=tile)
        self.graph.set_initial_value(made, values)
        self.graph.create_host_read(name, made)
        return made

    def vertex(self, codelet, fields, tile=3):
        """One vertex."""
        return self.graph.add_vertex(self.compute_set, codelet, fields, tile=tile)

    def run(self, engine_class, **options):
        """Run the compute set once."""
        engine = engine_class(self.graph, program.Execute(self.compute_set), **options)
        engine.run()
        return engine


@pytest.fixture
def bench(graph):
    """An empty compute set."""
    return Bench(graph)


def test_fields_of_every_shape(engine_class, bench):
    """
    Matrices, jagged lists, vectors, scalars; FLOAT, HALF, INT.
    """
    m = bench.variable("m", np.arange(6).reshape(2, 3), INT)
    out = bench.variable("out", np.zeros((3, 2), int), INT, tile=1)
    bench.vertex(Transpose, {"m": m, "out": out})
    k = bench.variable("k", np.arange(10), INT, tile=2)
    sums = bench.variable("sums", [0, 0, 0], INT)
    bench.vertex(RowSums, {"rows": [k[:4], k[4:4], concat(k[9:10], k[5:6])], "sums": sums})
    a, b, dot = bench.variable("a", [1.5, 2.5], FLOAT), bench.variable("b", [2, 4], HALF), bench.variable("dot", 0, FLOAT)
    bench.vertex(Dot, {"a": a, "b": b, "out": dot})
    engine = bench.run(engine_class)
    assert engine.read_tensor("out").tolist() == (np.arange(6).reshape(2, 3).T * 3 - [[0, 1]]).tolist()
    assert engine.read_tensor("sums").tolist() == [6, 0, 14]
    assert engine.read_tensor("dot") == 13


def test_views_are_gathered_and_scattered(engine_class, bench):
    """
    A column is not contiguous; on a tile it is.
    """
    x = bench.variable("x", np.arange(12).reshape(3, 4), FLOAT)
    bench.vertex(AddTo[FLOAT], {"x": x.transpose()[0], "y": x.transpose()[2].reverse(0)})
    expected = np.arange(12, dtype=np.float32).reshape(3, 4)
    expected[::-1, 2] += expected[:, 0].copy()
    assert np.array_equal(bench.run(engine_class).read_tensor("x"), expected)


def test_halves_round_after_each_operation(engine_class, bench):
    """
    As NumPy's float16 does.
    """
    x = np.linspace(-3, 3, 9).astype(np.float16)
    out = bench.variable("out", np.zeros(9), HALF)
    bench.vertex(Scale, {"x": bench.variable("x", x, HALF, tile=1), "k": bench.variable("k", 0.3, HALF), "out": out})
    assert np.array_equal(bench.run(engine_class).read_tensor("out"), np.float16(0.3) * x + np.float16(0.1))


def test_integers_wrap(engine_class, bench):
    """
    At the field's width.
    """
    bench.vertex(IncrementBytes, {"x": bench.variable("x", [0, 254, 255], UNSIGNED_CHAR)})
    assert bench.run(engine_class).read_tensor("x").tolist() == [1, 255, 0]


def test_six_workers_share_the_fields(engine_class, bench):
    """
    Each does its part.
    """
    x = np.arange(20, dtype=np.float32)
    bench.vertex(Strided, {"x": bench.variable("x", x, FLOAT), "out": bench.variable("out", np.zeros(20), FLOAT)})
    expected = x * np.float32(0.1) + np.float32(1) / np.arange(1, 21, dtype=np.float32)
    assert np.array_equal(bench.run(engine_class).read_tensor("out"), expected)


def test_outputs_not_written_keep_their_value(engine_class, bench):
    """
    Element 2 has no partner.
    """
    y = bench.variable("y", [1, 2, 3], FLOAT)
    bench.vertex(AddTo[FLOAT], {"x": bench.variable("x", [10, 20], FLOAT, tile=1), "y": y})
    assert bench.run(engine_class).read_tensor("y").tolist() == [11, 22, 3]


def test_vertices_read_what_was_there_before(engine_class, bench):
    """
    Readers of one tensor, halos that overlap, different codelets on different tiles: no order can be seen.
    """
    x, out = bench.variable("x", np.arange(10), FLOAT), bench.variable("out", np.zeros(8), FLOAT, tile=1)
    for i in range(8):
        bench.vertex(AddTo[FLOAT], {"x": x[i + 2 : i + 3], "y": out[i : i + 1]}, tile=i)
    assert bench.run(engine_class).read_tensor("out").tolist() == list(range(2, 10))


def test_races_are_refused(engine_class, bench):
    """
    Known trap I7: two writers, or a writer and a reader, even where the serial answer looks right.
    """
    x, y = bench.variable("x", np.zeros(4), FLOAT), bench.variable("shared", np.zeros(4), FLOAT)
    bench.vertex(AddTo[FLOAT], {"x": x[0:2], "y": y[0:2]}, tile=1)
    bench.vertex(AddTo[FLOAT], {"x": x[2:4], "y": y[1:3]}, tile=2)
    with pytest.raises(errors.RaceError, match=r"(?s)'shared'.*'work'"):
        bench.run(engine_class)


def test_a_reader_of_what_another_writes_is_refused(engine_class, bench):
    """
    It might see the old value or the new one.
    """
    x, y = bench.variable("shared", np.zeros(4), FLOAT), bench.variable("y", np.zeros(2), FLOAT)
    bench.vertex(AddTo[FLOAT], {"x": y, "y": x[0:2]}, tile=1)
    bench.vertex(AddTo[FLOAT], {"x": x[1:3], "y": y.reverse(0)}, tile=1)
    with pytest.raises(errors.RaceError, match=r"(?s)work"):
        bench.run(engine_class)


def test_an_unconnected_field_is_refused(engine_class, bench):
    """
    When the engine is made, with its name.
    """
    bench.vertex(AddTo[FLOAT], {"x": bench.variable("x", [1], FLOAT)})
    with pytest.raises(errors.PopcoreError, match=r"AddTo<float>\.y|'y' of codelet AddTo<float>"):
        bench.run(engine_class)


def test_a_codelet_that_raises_says_where(engine_class, bench):
    """
    Codelet, compute set, tile, line, message with its values; what was printed before is there.
    """
    for tile, value in ((5, 3), (6, 40)):
        bench.vertex(Checked, {"x": bench.variable(f"x{tile}", value, INT)}, tile=tile)
    engine = engine_class(bench.graph, program.Execute(bench.compute_set))
    stream = io.StringIO()
    engine.set_print_stream(stream)
    with pytest.raises(errors.VertexError, match=r"(?s)Checked.*vertex 1 on tile 6.*work.*ValueError: .*too much.*40.*small_codelets\.py:\d+.*try: ") as caught:
        engine.run()
    assert (caught.value.codelet, caught.value.tile, caught.value.compute_set) == ("Checked", 6, "work")
    assert isinstance(caught.value.__cause__, ValueError)
    assert "[0.5.0] x is 3\n" in stream.getvalue()
    assert engine.read_tensor("x6") == 40


def test_prints_come_in_a_fixed_order(engine_class, bench):
    """
    By tile, whatever the order of their making.
    """
    for tile in (7, 2, 4):
        bench.vertex(Checked, {"x": bench.variable(f"x{tile}", tile, INT)}, tile=tile)
    engine = engine_class(bench.graph, program.Repeat(2, program.Execute(bench.compute_set)))
    stream = io.StringIO()
    engine.set_print_stream(stream)
    engine.run()
    assert stream.getvalue() == "".join(f"[0.{t}.0] x is {t}\n" for t in (2, 4, 7)) * 2


def test_virtual_graphs_are_parts_of_one(engine_class, bench):
    """
    Tile 0 of the part is tile 4 of the whole, which prints name.
    """
    part = bench.graph.create_virtual_graph(4, 8)
    x = bench.variable("x", 3, INT)
    part.add_vertex(bench.compute_set, Checked, {"x": x}, tile=1)
    engine = engine_class(part, program.Execute(bench.compute_set))
    stream = io.StringIO()
    engine.set_print_stream(stream)
    engine.run()
    assert stream.getvalue() == "[0.5.0] x is 3\n"
    assert engine.read_tensor("x") == 3


def test_an_index_outside_is_an_error_of_the_reference(bench):
    """
    On a tile it would read a neighbour; the definition has none.
    """
    k = bench.variable("k", np.arange(4), INT)
    bench.vertex(RowSums, {"rows": [k[0:1], k[1:2]], "sums": bench.variable("sums", [0], INT)})
    with pytest.raises(errors.VertexError, match="RowSums"):
        bench.run(pc.ReferenceEngine)
