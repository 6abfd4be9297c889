"""Known traps, group I: what codelets may declare, read and write, and what happens when they should not."""

import platform
from typing import Any

import numpy as np
import pytest

from popcore import FLOAT, HALF, INT, UNSIGNED_CHAR, UNSIGNED_INT, Engine, Input, Matrix, Output, Vector, VectorList, Vertex, errors
from popcore.graph import concat
from popcore.program import Copy, Execute, Repeat, Sequence
from tests.cases.codelets import AddTo, Gather, GatherTogether, Total, TotalInFloat


class Struct:
    """A type that a tile does not know."""


BAD_FIELDS = {
    "struct": Struct,
    "struct in an edge": Input[Struct],
    "pointer": Input[Vector[Vector[FLOAT]]],
    "three dimensions": Input[VectorList[Vector[FLOAT]]],
    "matrix of vectors": Output[Matrix[Vector[FLOAT]]],
    "state matrix": Matrix[FLOAT],
    "state list": VectorList[FLOAT],
    "Python list": list,
    "array": np.ndarray,
    "Python float": float,
    "double": Input[Vector[np.float64]],
    "text": str,
    "tuple": Input[tuple],
    "anything": Input[Any],
}


@pytest.mark.parametrize("kind", BAD_FIELDS)
def test_i2_a_field_that_a_tile_cannot_hold_is_refused(graph, kind):
    """Case I2: the message names field, codelet, file and line, and what is allowed."""

    class Bad(Vertex):
        good: Input[FLOAT]
        wrong: BAD_FIELDS[kind]

        def compute(self):
            return

    with pytest.raises(errors.CodeletError, match=r"(?s)field 'wrong' of codelet Bad \(test_vertices\.py:\d+\).*try:.*Vector, Matrix, VectorList"):
        graph.add_codelets(Bad)


def test_i2_a_field_of_an_unknown_name_is_refused(graph):
    """Case I2: the annotation that cannot be read is shown."""

    class Bad(Vertex):
        wrong: "Input[Vector[FLAOT]]"  # noqa: F821

        def compute(self):
            return

    with pytest.raises(errors.CodeletError, match=r"(?s)'wrong' of codelet Bad.*FLAOT"):
        graph.add_codelets(Bad)


@pytest.mark.parametrize("codelet", [Gather, GatherTogether])
def test_i3_one_worker_and_six_gather_the_same(any_engine, bench, codelet):
    """Case I3: in every mode of running."""
    index = [3, 0, 99, 98, 1, 1, 50, 51, 52, 53, 54, 7, 99]
    table, out = bench.variable("table", np.arange(100) * 3, INT), bench.variable("out", np.zeros(13), INT, tile=2)
    bench.vertex(codelet, {"table": table, "index": bench.variable("index", index, UNSIGNED_INT, tile=1), "out": out})
    assert bench.run(any_engine).read_tensor("out").tolist() == [3 * i for i in index]


FACTOR = 2


class UsesGlobal(Vertex):
    """Reads a global of this module."""

    out: Output[INT]

    def compute(self):
        self.out = FACTOR


def test_i5_a_global_is_frozen_when_the_codelet_is_added(any_engine, bench, monkeypatch):
    """Case I5: a later change is seen neither by compiled nor by interpreted codelets."""
    bench.graph.add_codelets(UsesGlobal)
    monkeypatch.setattr("tests.cases.test_vertices.FACTOR", 100)
    bench.vertex(UsesGlobal, {"out": bench.variable("out", 0, INT)})
    assert bench.run(any_engine).read_tensor("out") == 2


def test_i5_a_graph_made_after_the_change_sees_it(any_engine, bench, monkeypatch):
    """Case I5: and compiled code of before is not taken from the cache."""
    monkeypatch.setitem(globals(), "FACTOR", 3)
    bench.vertex(UsesGlobal, {"out": bench.variable("out", 0, INT)})
    assert bench.run(any_engine).read_tensor("out") == 3


def test_i5_a_closure_is_frozen_when_the_codelet_is_added(any_engine, bench):
    """Case I5: the same for what an enclosing function binds."""
    bound = 5

    class UsesClosure(Vertex):
        out: Output[INT]

        def compute(self):
            self.out = bound

    bench.graph.add_codelets(UsesClosure)
    bound = 6
    bench.vertex(UsesClosure, {"out": bench.variable("out", 0, INT)})
    assert bench.run(any_engine).read_tensor("out") == 5


@pytest.mark.parametrize("tiles", [(1, 1), (1, 2)], ids=["one tile", "two tiles"])
def test_i7_vertices_that_add_into_one_element_race(any_engine, bench, tiles):
    """Case I7: an error although one after the other would give the right sum."""
    shared, ones = bench.variable("shared", [0.0], FLOAT), bench.variable("ones", [1.0], FLOAT)
    for tile in tiles:
        bench.vertex(AddTo[FLOAT], {"x": ones, "y": shared}, tile=tile)
    with pytest.raises(errors.RaceError, match=r"(?s)shared.*work.*vertex 0.*tile 1.*vertex 1.*try:"):
        any_engine(bench.graph, Execute(bench.compute_set))


def test_i7_a_vertex_may_not_read_what_another_writes(any_engine, bench):
    """Case I7: one element of overlap is enough, through views of different shapes."""
    x = bench.variable("x", np.zeros((4, 4)), FLOAT)
    out = bench.variable("out", 0.0, FLOAT)
    bench.vertex(AddTo[FLOAT], {"x": bench.variable("ones", np.ones(4), FLOAT), "y": x[2]})
    bench.vertex(Total[FLOAT], {"x": x.transpose()[3], "out": out})
    with pytest.raises(errors.RaceError, match=r"(?s)\bx\b.*work"):
        any_engine(bench.graph, Execute(bench.compute_set))


def test_i7_neighbours_are_no_race(any_engine, bench):
    """Case I7: vertices may write each its own element of a variable, and all read a common one."""
    x, one = bench.variable("x", np.zeros(6), FLOAT), bench.variable("one", [1.0], FLOAT)
    for i in range(6):
        bench.vertex(AddTo[FLOAT], {"x": one, "y": x[i : i + 1]}, tile=i % 3)
    assert bench.run(any_engine).read_tensor("x").tolist() == [1] * 6


def test_i7_the_race_of_a_compute_set_that_nothing_runs_is_no_error(any_engine, bench):
    """Case I7: only what a program executes is checked."""
    x, one = bench.variable("x", [0.0], FLOAT), bench.variable("one", [1.0], FLOAT)
    for _ in range(2):
        bench.vertex(AddTo[FLOAT], {"x": one, "y": x})
    assert bench.run(any_engine, Copy(one, x)).read_tensor("x") == [1]


@pytest.mark.parametrize(("codelet", "expected"), [(Total[HALF], 8192), (TotalInFloat, 8288)])
def test_i8_a_sum_has_the_precision_that_is_written(any_engine, bench, codelet, expected):
    """Case I8: partial sums in HALF lose the ones, in FLOAT they do not; interpreted codelets use no more than that."""
    x = bench.variable("x", [8192] + 99 * [1], HALF)
    bench.vertex(codelet, {"x": x, "out": bench.variable("out", 0, HALF)})
    assert bench.run(any_engine).read_tensor("out") == expected


def test_i8_products_of_halves_are_rounded_once(any_engine, bench):
    """Case I8: as NumPy's float16 is, all along a vector."""
    random = np.random.default_rng(3)
    x, y = (random.standard_normal(64).astype(np.float16) for _ in range(2))
    bench.vertex(AddTo[HALF], {"x": bench.variable("x", x, HALF), "y": bench.variable("y", y, HALF)})
    assert np.array_equal(bench.run(any_engine).read_tensor("y"), y + x)


def test_i9_exchange_buffers_used_again_hold_nothing_old(any_engine, bench):
    """Case I9: two compute sets that gather different elements into one area of a tile, in turns."""
    n = 40
    a, b = bench.variable("a", np.arange(n), FLOAT, tile=1), bench.variable("b", 100 * np.arange(n // 2), FLOAT, tile=2)
    y = bench.variable("y", np.zeros(n), FLOAT)
    first, second = bench.graph.add_compute_set("first"), bench.graph.add_compute_set("second")
    bench.vertex(AddTo[FLOAT], {"x": a, "y": y}, compute_set=first)
    bench.vertex(AddTo[FLOAT], {"x": b, "y": y[: n // 2]}, compute_set=second)
    engine = bench.run(any_engine, Repeat(3, Sequence(Execute(first), Execute(second))))
    expected = 3.0 * np.arange(n)
    expected[: n // 2] += 300 * np.arange(n // 2)
    assert np.array_equal(engine.read_tensor("y"), expected)


def test_i9_the_only_element_of_a_one_by_one_tensor_can_be_sliced(any_engine, bench):
    """Case I9: as y[0], y[:, 0], y[0:1, 0:1]."""
    y, x = bench.variable("y", [[2.0]], FLOAT), bench.variable("x", [1.0], FLOAT)
    compute_sets = [bench.graph.add_compute_set(name) for name in "abc"]
    for view, compute_set in zip((y[0], y[:, 0], y[0:1, 0:1].flatten()), compute_sets, strict=True):
        bench.vertex(AddTo[FLOAT], {"x": x, "y": view}, compute_set=compute_set)
    assert bench.run(any_engine, *map(Execute, compute_sets)).read_tensor("y").tolist() == [[5]]


VIEWS = {
    "odd begin": (lambda x: x[1:5], [1, 2, 3, 4]),
    "odd begin and end": (lambda x: x[3:6], [3, 4, 5]),
    "every second": (lambda x: x[1:10:2], [1, 3, 5, 7, 9]),
    "backwards": (lambda x: x.reverse(0)[1:5], [8, 7, 6, 5]),
    "two parts": (lambda x: concat(x[7:9], x[0:2]), [7, 8, 0, 1]),
}


@pytest.mark.parametrize("dtype", [HALF, UNSIGNED_CHAR])
@pytest.mark.parametrize("view", VIEWS)
def test_i11_a_slice_that_begins_anywhere_is_read_and_written_right(any_engine, bench, dtype, view):
    """Case I11: elements narrower than a word, from an odd one on, and nothing beside them."""
    slice_of, elements = VIEWS[view]
    x = bench.variable("x", np.arange(10), dtype)
    bench.vertex(AddTo[dtype], {"x": bench.variable("hundred", np.full(len(elements), 100), dtype), "y": slice_of(x)}, tile=0)
    expected = np.arange(10)
    expected[elements] += 100
    assert bench.run(any_engine).read_tensor("x").tolist() == expected.tolist()


def test_i11_a_rearrangement_is_counted(bench):
    """Case I11: every second element costs cycles and an exchange buffer on the tile; a plain slice costs neither."""
    found = {}
    for name, strided in (("plain", False), ("strided", True)):
        x, out = bench.variable(name, np.arange(64), FLOAT), bench.variable(f"{name} out", 0.0, FLOAT)
        compute_set = bench.graph.add_compute_set(name)
        bench.vertex(Total[FLOAT], {"x": x.sub_sample(2) if strided else x[:32], "out": out}, tile=0, compute_set=compute_set)
        found[name] = bench.run(Engine, Execute(compute_set))
    assert found["strided"].read_tensor("strided out") == sum(range(0, 64, 2))
    plain, strided = (found[name].profile() for name in ("plain", "strided"))
    assert strided.cycles_by_kind["compute"] > plain.cycles_by_kind["compute"]
    assert strided.memory.by_category["exchange buffers"][0] == 32 * 4
    assert plain.memory.by_category["exchange buffers"].sum() == plain.bytes.exchange == 0


ALIGNED = """
#include <poplar/Vertex.hpp>
using namespace poplar;

struct Doubles : Vertex {
  Input<Vector<half, VectorLayout::SPAN, 8>> x;
  Output<Vector<float>> out;
  void compute() {
    typedef short Four __attribute__((vector_size(8), may_alias));
    const Four bits = *reinterpret_cast<const Four *>(&x[0]); // a load of 8 bytes, which a tile does at multiples of 8 alone
    half four[4];
    std::memcpy(four, &bits, sizeof bits);
    for (unsigned i = 0; i < 4; ++i)
      out[i] = 2 * float(four[i]);
  }
};
"""


@pytest.mark.parametrize(("first", "moved"), [(0, False), (4, False), (1, True), (2, True)])
def test_i11_an_alignment_is_kept_by_a_rearrangement_that_is_counted(bench, first, moved):
    """Case I11: x[1:5] for a field of 8 bytes' alignment is gathered, which takes a buffer and cycles; no load is misaligned."""
    bench.graph.add_codelets(ALIGNED)
    x, out = bench.variable("x", np.arange(12), HALF), bench.variable("out", np.zeros(4), FLOAT)
    bench.vertex("Doubles", {"x": x[first : first + 4], "out": out}, tile=0)
    engine = bench.run(Engine, **{"debug.check": "full"})
    assert engine.read_tensor("out").tolist() == [2 * i for i in range(first, first + 4)]
    assert (engine.profile().memory.by_category["exchange buffers"].sum() > 0) == moved


def test_i12_a_library_for_another_processor_is_refused(graph, tmp_path):
    """Case I12: both processors are named."""
    other = tmp_path / "libother.so"
    content = bytearray(b"\x7fELF\x02\x01\x01" + bytes(57))
    content[16:20] = (3).to_bytes(2, "little") + (243).to_bytes(2, "little")  # a shared library for RISC-V
    other.write_bytes(content)
    with pytest.raises(errors.CodeletError, match=rf"(?s)libother.so was made for RISC-V, this is {platform.machine()}.*try:"):
        graph.add_codelets(str(other))


def test_i12_a_codelet_in_a_file_says_what_can_be_loaded(graph):
    """Case I12: no linker's message about an architecture."""
    with pytest.raises(errors.CodeletError, match=r"(?s)codelets\.gp.*try:"):
        graph.add_codelets("codelets.gp")
