"""Known traps, group A: zero, one and odd numbers of elements."""

import numpy as np
import pytest

from popcore import FLOAT, HALF, INT, UNSIGNED_INT, Engine, program
from tests.cases.codelets import AddTo, Increment, Ring, Rotate, Shapes, Sizes, Total


@pytest.mark.parametrize("shape", [(0,), (3, 0)])
def test_a6_the_host_writes_and_reads_a_tensor_of_no_elements(any_engine, bench, shape):
    """Case A6: both are no-ops, and the shape is the tensor's."""
    bench.variable("none", np.zeros(shape), FLOAT)
    engine = bench.run(any_engine, program.Sequence())
    engine.write_tensor("none", np.zeros(shape, np.float32))
    assert engine.read_tensor("none").shape == shape


def test_a6_a_copy_of_no_elements_is_a_no_op(any_engine, bench):
    """Case A6: between tensors, and through streams."""
    none, other = bench.variable("none", np.zeros(0), FLOAT), bench.variable("other", np.zeros(0), FLOAT, tile=1)
    there, back = bench.graph.add_host_to_device_fifo("there", FLOAT, 0), bench.graph.add_device_to_host_fifo("back", FLOAT, 0)
    engine = any_engine(bench.graph, program.Sequence(program.Copy(there, none), program.Copy(none, other), program.Copy(other, back)))
    engine.connect_stream("there", np.zeros(0, np.float32))
    engine.connect_stream("back", np.zeros(0, np.float32))
    engine.run()
    assert engine.read_tensor("other").size == 0


def test_a6_a_vertex_of_no_elements_still_runs_once(any_engine, bench):
    """Case A6: compute sees a vector of size 0."""
    runs, size = bench.variable("runs", 0, INT), bench.variable("size", -1, INT)
    bench.vertex(Sizes, {"x": bench.variable("none", np.zeros(0), FLOAT), "runs": runs, "size": size})
    engine = bench.run(any_engine)
    assert (engine.read_tensor("runs"), engine.read_tensor("size")) == (1, 0)


def test_a6_a_slice_of_no_elements_can_be_connected(any_engine, bench):
    """Case A6: the middle of a tensor, cut to nothing."""
    x, runs, size = bench.variable("x", np.ones(4), FLOAT), bench.variable("runs", 0, INT), bench.variable("size", -1, INT)
    bench.vertex(Sizes, {"x": x[2:2], "runs": runs, "size": size})
    assert bench.run(any_engine).read_tensor("size") == 0


def test_a6_no_vertices_are_a_no_op(any_engine, bench):
    """Case A6: added in bulk on no tiles, and a compute set without any."""
    none = bench.variable("none", np.zeros((0, 4)), FLOAT)
    bench.graph.add_vertices(bench.compute_set, AddTo[FLOAT], {"x": none, "y": none}, tiles=np.zeros(0, np.int32))
    empty = bench.graph.add_compute_set("empty")
    assert bench.run(any_engine, program.Execute(bench.compute_set), program.Execute(empty)).read_tensor("none").shape == (0, 4)


@pytest.mark.parametrize("shape", [(0, 0), (3, 0)])
def test_a6_a_matrix_of_no_elements_keeps_its_rows(any_engine, bench, shape):
    """Case A6: a codelet sees them, and a list of as many."""
    out = bench.variable("out", np.full(3, -1), INT)
    none = bench.variable("none", np.zeros(shape), INT)
    bench.vertex(Shapes, {"matrix": none, "rows": none, "out": out})
    assert bench.run(any_engine).read_tensor("out").tolist() == [*shape, shape[0]]


@pytest.mark.parametrize("n", [1, 2, 11, 12, 13, 100, *range(65530, 65551), 2**20 + 1])
def test_a8_six_workers_update_each_element_once(bench, n):
    """Case A8: sizes around 2^16 and above 2^20, all on one tile."""
    bench.vertex(Increment, {"x": bench.variable("x", np.zeros(n), HALF, tile=3)})
    engine = bench.run(Engine, **{"debug.allowOutOfMemory": True})
    assert np.array_equal(engine.read_tensor("x"), np.ones(n, np.float16))


def test_a8_six_workers_update_each_element_once_on_any_engine(any_engine, bench):
    """Case A8: with a remainder for each number of workers."""
    sizes = [1, 2, 5, 6, 7, 12, 13, 23, 24, 25]
    for n in sizes:
        bench.vertex(Increment, {"x": bench.variable(f"x{n}", np.arange(n), HALF, tile=n % 8)})
    engine = bench.run(any_engine)
    assert all(np.array_equal(engine.read_tensor(f"x{n}"), np.arange(1, n + 1, dtype=np.float16)) for n in sizes)


@pytest.mark.parametrize("n", [4, 5, 6, 7, 8, 10])
def test_a9_an_unrolled_vertex_treats_every_remainder(any_engine, bench, n):
    """Case A9: as NumPy rotates, bit for bit."""
    a, b = np.linspace(-1, 1, n, dtype=np.float32), np.linspace(3, 2, n, dtype=np.float32)
    c, s = np.float32(0.8), np.float32(0.6)
    bench.vertex(Rotate, {"a": bench.variable("a", a, FLOAT), "b": bench.variable("b", b, FLOAT, tile=1), "c": c, "s": s})
    engine = bench.run(any_engine)
    assert np.array_equal(engine.read_tensor("a"), c * a - s * b)
    assert np.array_equal(engine.read_tensor("b"), s * a + c * b)


def test_a10_more_vertices_than_tiles_run_several_a_tile(any_engine, bench):
    """Case A10: nine sums on four tiles."""
    x = bench.variable("x", np.arange(9 * 7).reshape(9, 7), INT)
    out = bench.variable("out", np.zeros(9), INT)
    for i in range(9):
        bench.vertex(Total[INT], {"x": x[i], "out": out[i]}, tile=i % 4)
    assert np.array_equal(bench.run(any_engine).read_tensor("out"), np.arange(63).reshape(9, 7).sum(axis=1))


def test_a11_a_circular_buffer_looks_back_over_its_end(any_engine, bench):
    """Case A11: unsigned differences below zero come around, they do not become 2^32 - 2."""
    slots, width = 20, 66
    value, found = bench.variable("value", np.zeros(width), INT), bench.variable("found", np.zeros(width), INT)
    fields = {"rows": bench.variable("rows", np.zeros(slots * width), INT), "value": value, "found": found}
    calls, back = bench.variable("calls", 0, UNSIGNED_INT), bench.variable("back", 0, UNSIGNED_INT)
    bench.vertex(Ring, {**fields, "calls": calls, "back": back})
    engine = any_engine(bench.graph, program.Execute(bench.compute_set))
    content = 10 * np.arange(33)[:, None] + np.arange(2)
    for added in range(25):
        engine.write_tensor("value", (1000 * added + content).reshape(-1).astype(np.int32))
        engine.write_tensor("back", np.uint32(min(added, 19)))
        engine.run()
    assert np.array_equal(engine.read_tensor("found"), (1000 * 5 + content).reshape(-1))
    assert engine.read_tensor("calls") == 25
