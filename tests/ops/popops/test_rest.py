"""Circular buffers, histograms, runs of rows, images, tensors for the host. Both engines, against NumPy."""

import numpy as np
import pytest

import popcore as pc
from popcore import errors, program
from popcore.ops import popops
from popcore.types import FLOAT, HALF, INT, UNSIGNED_CHAR, UNSIGNED_INT
from tests.ops.popops.runs import new_graph, run, values


def test_a_circular_buffer_forgets_the_oldest():
    """
    25 tensors into 20 places of an odd size; the place runs around.
    """
    graph = new_graph()
    kept = popops.CircBuf(graph, FLOAT, 20, (3, 2))
    t = graph.add_variable(FLOAT, (3, 2), "linear")
    add, see = program.Sequence(), program.Sequence()
    kept.add(t, add)
    reads = {str(i): kept.prev(i, see) for i in (0, 1, 7, 19)}
    reads["index"] = kept.get_index()
    graph.create_host_write("t", t)
    for name, each in reads.items():
        graph.create_host_read(name, each)
    for kind in (pc.ReferenceEngine, pc.Engine):
        engine = kind(graph, [add, see])
        for i in range(25):
            engine.write_tensor("t", i * 1000 + 10 * np.arange(3, dtype=np.float32)[:, None] + np.arange(2, dtype=np.float32))
            engine.run(0)
        engine.run(1)
        for i in (0, 1, 7, 19):
            np.testing.assert_array_equal(engine.read_tensor(str(i)), (24 - i) * 1000 + 10 * np.arange(3)[:, None] + np.arange(2))
        assert engine.read_tensor("index").tolist() == [25 % 20]
    assert kept.size() == 20
    assert sum(len(m) for m in kept.get_tile_mapping())
    for kind, call in (
        (errors.ValueRangeError, lambda: kept.prev(20, see)),
        (errors.ValueRangeError, lambda: popops.CircBuf(graph, FLOAT, 0, (3,))),
        (errors.ShapeError, lambda: kept.add(t[:2], add)),
    ):
        with pytest.raises(kind, match="try: "):
            call()


@pytest.mark.parametrize("dtype", [FLOAT, HALF], ids=repr)
@pytest.mark.parametrize("n", [0, 1, 100, 1001])
def test_histogram(dtype, n):
    """
    Of values or their sizes; added to what is there; as whole numbers or floats.
    """
    graph, prog = new_graph(), program.Sequence()
    t, levels = graph.add_variable(dtype, (n,), "linear"), graph.add_constant(dtype, (3,), [-1, 0.5, 2], tile=2)
    total = graph.add_variable(UNSIGNED_INT, (4,), "linear")
    reads = {"out": popops.histogram(graph, t, levels, False, prog)}
    reads["floats"] = popops.histogram(graph, t, levels, True, prog, options={"useFloatArithmetic": True})
    popops.histogram_with_output(graph, t, total, True, levels, False, prog)
    x = values(dtype, (n,))
    found = run(graph, prog, {t: x, total: np.full(4, 7, np.uint32)}, reads | {"total": total})
    counts = np.bincount(np.digitize(x, [-1, 0.5, 2]), minlength=4)
    np.testing.assert_array_equal(found["out"], counts)
    np.testing.assert_array_equal(found["total"], counts + 7)
    np.testing.assert_array_equal(found["floats"], np.bincount(np.digitize(np.abs(x), [-1, 0.5, 2]), minlength=4).astype(np.float32))


@pytest.mark.parametrize("unused", [False, True])
def test_runs_of_rows(unused):
    """
    Some of length 0, and one that would leave the tensor.
    """
    graph, prog = new_graph(), program.Sequence()
    source, out = graph.add_variable(HALF, (9, 5), "linear"), graph.add_variable(HALF, (12, 5, 1), "linear")
    count, here, there = (graph.add_variable(UNSIGNED_INT, (4,), tile=k) for k in range(3))
    popops.sequence_slice(graph, source, out, count, here, there, unused, prog)
    x, y = values(HALF, (9, 5)), values(HALF, (12, 5, 1), 1)
    runs = [(3, 2, 0), (0, 0, 4), (2, 0, 4), (3, 7, 10)]
    columns = [np.array(c, np.uint32) for c in zip(*runs, strict=True)]
    found = run(graph, prog, {source: x, out: y, **dict(zip((count, here, there), columns, strict=True))}, {"out": out})["out"]
    wanted = np.zeros_like(y) if unused else y.copy()
    for n, a, b in runs:
        n = min(n, 9 - a, 12 - b)
        wanted[b : b + n, :, 0] = x[a : a + n]
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dtype", [UNSIGNED_CHAR, HALF, FLOAT], ids=repr)
def test_images(dtype):
    """
    Scaled in FLOAT and rounded once; the fourth channel is zero.
    """
    graph, prog = new_graph(), program.Sequence()
    kind = FLOAT if dtype is FLOAT else HALF
    t = popops.create_normalise_image_input(graph, dtype, (5, 7, 3))
    offsets, scales = (graph.add_constant(kind, (3,), v, tile=0) for v in ([0.5, 0.25, 0.125], [2, 3, 0.1]))
    out = popops.normalise_image(graph, prog, t, 1 / 255, offsets, scales)
    x = np.random.default_rng(0).integers(0, 255, (5, 7, 3)).astype(dtype.numpy)
    found = run(graph, prog, {t: x}, {"out": out})["out"]
    o, s = (np.array(v, kind.numpy).astype(np.float32) for v in ([0.5, 0.25, 0.125], [2, 3, 0.1]))
    np.testing.assert_array_equal(found[..., :3], ((x.astype(np.float32) * np.float32(1 / 255) - o) * s).astype(kind.numpy))
    assert not found[..., 3].any()
    assert found.dtype == kind.numpy


def test_tensors_for_the_host():
    """
    Whole packets on a tile, from the tile on that an offset says.
    """
    graph = new_graph()
    made = popops.create_host_sliceable_tensor(graph, FLOAT, (2, 256), True, offset=2048)
    assert made.indices.shape == (2,)
    assert [i for i, m in enumerate(graph.get_tile_mapping(made.tensor)) if m] == [2, 3]
    with pytest.raises(errors.ShapeError):
        popops.create_host_sliceable_tensor(graph, FLOAT, (2,), True)


def test_a_table_made_from_a_slice():
    """
    As many slices along each dimension, every one mapped as the slice is.
    """
    graph = new_graph()
    s = graph.add_variable(FLOAT, (2, 3, 5))
    for i in range(5):
        graph.set_tile_mapping(s[:, :, i], i)
    made = popops.create_sliceable_tensor_from_slice(graph, s, [1, 0], [4, 6])
    assert made.shape == (12, 12, 5)
    for i in range(6):
        for j in range(4):
            part = made[2 * i : 2 * i + 2, 3 * j : 3 * j + 3]
            assert graph.get_tile_mapping(part) == graph.get_tile_mapping(s)
    with pytest.raises(errors.ShapeError):
        popops.create_sliceable_tensor_from_slice(graph, s, [1, 1], [4, 6])


@pytest.mark.parametrize(("options", "first"), [({}, None), ({"remapOutOfBoundIndices": True}, 0), ({"paddingIndexUsed": True}, -1)])
def test_a_slice_with_output_and_rules_for_offsets(options, first):
    """
    An offset behind the end: the first row, or zeros, where options say so.
    """
    graph, prog = new_graph(), program.Sequence()
    t, at = graph.add_variable(INT, (5, 3), "linear"), graph.add_variable(UNSIGNED_INT, (2,), tile=1)
    out = popops.create_dynamic_slice_output(graph, t, at[:1], [0], [2], options=options)
    popops.dynamic_slice_with_output(graph, out, t, at[:1], [0], [2], prog, options=options)
    behind = popops.dynamic_slice(graph, t, at[1:], [0], [2], prog, options=options)
    popops.dynamic_update(graph, t, behind, at[1:], [0], [2], prog, options=options)
    x = values(INT, (5, 3))
    reads = {"out": out, "t": t} | ({} if first is None else {"behind": behind})
    found = run(graph, prog, {t: x, at: np.array([4, 5], np.uint32)}, reads)
    np.testing.assert_array_equal(found["out"], x[[4, 0]])
    np.testing.assert_array_equal(found["t"], x)
    if first is not None:
        np.testing.assert_array_equal(found["behind"], x[:2] if first == 0 else np.zeros((2, 3)))
    with pytest.raises(errors.ShapeError):
        popops.dynamic_slice_with_output(graph, out[:1], t, at[:1], [0], [2], prog)
    with pytest.raises(errors.OptionError):
        popops.dynamic_slice(graph, t, at[:1], [0], [2], prog, options={"validateIndices": True})
