"""Slices at run-time places. Both engines, against NumPy."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from popcore import errors, program
from popcore.ops import popops
from popcore.types import FLOAT, HALF, INT, UNSIGNED_INT
from tests.ops.popops.runs import mapped, new_graph, run, values

DRAWN = settings(deadline=None, max_examples=25, suppress_health_check=list(HealthCheck))


@DRAWN
@given(st.data(), st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple), st.sampled_from([FLOAT, HALF]))
def test_dynamic_slice_and_update(data, shape, dtype):
    """
    Any dimensions of any view; a slice that begins in range goes around the end.
    """
    graph, prog = new_graph(), program.Sequence()
    t, view, see = data.draw(mapped(graph, dtype, shape))
    dims = data.draw(st.lists(st.integers(0, len(shape) - 1), unique=True, max_size=2))
    sizes = [data.draw(st.integers(0, shape[d])) for d in dims]
    at = [data.draw(st.integers(0, shape[d] - 1)) for d in dims]
    offset = graph.add_variable(UNSIGNED_INT, (len(dims),), tile=4)
    out = popops.dynamic_slice(graph, view, offset, dims, sizes, prog)
    new = graph.add_variable(dtype, out.shape, "linear")
    popops.dynamic_update(graph, view, new, offset, dims, sizes, prog)
    x, y = values(dtype, t.shape), values(dtype, out.shape, 1)
    found = run(graph, prog, {t: x, new: y, offset: np.array(at, np.uint32)}, {"out": out, "t": view})
    where = [np.arange(n) for n in shape]
    for d, a, n in zip(dims, at, sizes, strict=True):
        where[d] = (a + np.arange(n)) % shape[d]
    wanted = see(x).copy()
    np.testing.assert_array_equal(found["out"], wanted[np.ix_(*where)])
    wanted[np.ix_(*where)] = y
    np.testing.assert_array_equal(found["t"], wanted)


def test_an_offset_outside_changes_nothing():
    """
    Of an update.
    """
    graph, prog = new_graph(), program.Sequence()
    t, s, offset = graph.add_variable(INT, (4, 3), "linear"), graph.add_variable(INT, (2, 3), "linear"), graph.add_variable(UNSIGNED_INT, (1,), tile=0)
    popops.dynamic_update(graph, t, s, offset, [0], [2], prog)
    x = values(INT, (4, 3))
    np.testing.assert_array_equal(run(graph, prog, {t: x, offset: np.array([4], np.uint32)}, {"t": t})["t"], x)


ROWS = np.array([2, 2, 6, 5, 80, 0, 1, 60, 55, 40, 30, 119], np.uint32)


@pytest.mark.parametrize("dtype", [FLOAT, HALF], ids=repr)
def test_rows_of_a_table(dtype):
    """
    Looked up, written, added with a scale, joined by maximum and product; an index twice counts twice; 120 touches nothing.
    """
    graph, prog = new_graph(), program.Sequence()
    t = popops.create_sliceable_tensor(graph, dtype, (120, 7), [0], [1])
    assert len({tuple(m) for m in graph.get_tile_mapping(t[0])}) == len({tuple(m) for m in graph.get_tile_mapping(t[119])})
    copies = [graph.clone(t) for _ in range(4)]
    indices = popops.create_indices_tensor(graph, [0], 13)
    scale = graph.add_variable(FLOAT, (), tile=5)
    out = popops.multi_slice(graph, t, indices, [0], [1], prog)
    pairs = popops.multi_slice(graph, t, indices, [0], [2], prog)
    s = graph.clone(out)
    popops.multi_update(graph, copies[0], s, indices, [0], [1], prog)
    popops.multi_update_add(graph, copies[1], s, indices, scale, [0], [1], prog)
    popops.multi_update_max(graph, copies[2], s, indices, [0], [1], prog)
    popops.multi_update_mul(graph, copies[3], s, indices, [0], [1], prog)
    x, y, at = values(dtype, (120, 7)), values(dtype, (13, 1, 7), 1), np.append(ROWS, 120).astype(np.uint32)
    reads = {"out": out, "pairs": pairs, "set": copies[0], "add": copies[1], "max": copies[2], "mul": copies[3]}
    writes = {t: x, **dict.fromkeys(copies, x), s: y, indices: at[:, None], scale: np.float32(0.5)}
    found = run(graph, prog, writes, reads)
    np.testing.assert_array_equal(found["out"][:12, 0], x[ROWS])
    assert not found["out"][12].any()
    np.testing.assert_array_equal(found["pairs"][3], x[5:7])
    assert not found["pairs"][11].any()
    wanted = {name: x.copy() for name in ("set", "add", "max", "mul")}
    for i, row in enumerate(ROWS):
        wanted["set"][row] = y[i, 0]
        wanted["add"][row] += (np.float32(0.5) * y[i, 0]).astype(dtype.numpy)
        wanted["max"][row] = np.maximum(wanted["max"][row], y[i, 0])
        wanted["mul"][row] = wanted["mul"][row] * y[i, 0]
    for name, array in wanted.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)


@pytest.mark.parametrize("index", [0, 9, 10, 11, 2**32 - 1])
def test_indices_are_validated_on_request(index, engine_class):
    """
    In range they pass, else the run stops and says which; remapped they are row 0.
    """
    for update in (False, True):
        graph, prog = new_graph(), program.Sequence()
        t, indices = graph.add_variable(FLOAT, (10, 1), "linear"), graph.add_variable(UNSIGNED_INT, (5, 1), "linear")
        graph.create_host_write("indices", indices)
        graph.create_host_write("t", t)
        if update:
            s = graph.add_variable(FLOAT, (5, 1, 1), "linear")
            popops.multi_update_add(graph, t, s, indices, 1.0, [0], [1], prog, options={"validateIndices": True})
        else:
            popops.multi_slice(graph, t, indices, [0], [1], prog, options={"validateIndices": True})
            graph.create_host_read("out", popops.multi_slice(graph, t, indices, [0], [1], prog, options={"remapOutOfBoundIndices": True}))
        engine = engine_class(graph, prog)
        engine.write_tensor("indices", np.array([[index], [4], [3], [2], [1]], np.uint32))
        engine.write_tensor("t", np.arange(10, dtype=np.float32)[:, None] + 1)
        if index < 10:
            engine.run()
        else:
            with pytest.raises(errors.VertexError, match=str(index)):
                engine.run()


def test_mistakes():
    """
    Sizes, dimensions, types: refused at the call.
    """
    graph, prog = new_graph(), program.Sequence()
    t, at = graph.add_variable(FLOAT, (4, 3), "linear"), graph.add_variable(UNSIGNED_INT, (1,), tile=0)
    for kind, call in (
        (errors.ShapeError, lambda: popops.dynamic_slice(graph, t, at, [0], [5], prog)),
        (errors.ShapeError, lambda: popops.dynamic_slice(graph, t, at, [0, 1], [1, 1], prog)),
        (errors.ShapeError, lambda: popops.dynamic_slice(graph, t, at, [2], [1], prog)),
        (errors.ElementTypeError, lambda: popops.dynamic_slice(graph, t, t[0, :1], [0], [1], prog)),
        (errors.ShapeError, lambda: popops.dynamic_update(graph, t, t[:2], at, [0], [1], prog)),
        (errors.ShapeError, lambda: popops.multi_slice(graph, t, at, [0, 1], [1, 1], prog)),
        (errors.ShapeError, lambda: popops.multi_update(graph, t, t, at, [0], [1], prog)),
        (errors.OptionError, lambda: popops.multi_slice(graph, t, at, [0], [1], prog, options={"validateIndexes": True})),
    ):
        with pytest.raises(kind, match="try: "):
            call()
    assert not prog.programs
