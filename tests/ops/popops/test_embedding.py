"""Tables spread over tiles by a plan. Both engines, against NumPy."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import popcore as pc
from popcore import errors, program
from popcore.ops import popops
from popcore.ops.popops import embedding
from popcore.ops.popops.routed import create_table
from popcore.types import FLOAT, HALF, INT, UNSIGNED_INT
from tests.ops.popops.runs import new_graph, run, values

DRAWN = settings(deadline=None, max_examples=10, suppress_health_check=list(HealthCheck))


def expected(x, y, at, scale):
    """Tables after each kind of update, and what is looked up."""
    found = {name: x.copy() for name in ("set", "add", "max", "mul")}
    inside = at < len(x)
    for i in np.flatnonzero(inside):
        row = at[i]
        found["set"][row] = y[i]
        found["add"][row] = (found["add"][row].astype(np.float32) + np.float32(scale) * y[i]).astype(x.dtype)
        found["max"][row] = np.maximum(found["max"][row], y[i])
        with np.errstate(over="ignore", invalid="ignore"):
            found["mul"][row] = found["mul"][row] * y[i]
    found["out"] = np.where(inside[:, None], x[np.where(inside, at, 0)], 0)
    return found


@DRAWN
@given(
    st.integers(1, 40), st.integers(1, 7), st.integers(0, 30), st.sampled_from([FLOAT, HALF]), st.integers(1, 9), st.booleans(), st.sampled_from([1, 2, 5])
)  # fmt: skip
def test_any_sizes_and_plans(entries, columns, lookups, dtype, tiles, one_row, bits):
    """
    Slices, and updates of each kind, of indices many of which are equal and some outside; groups apart.
    """
    graph, prog = new_graph(tiles), program.Sequence()
    plan = embedding.plan(graph, dtype, entries, columns, [lookups], {"planMinimisationTarget": "memory" if one_row else "cycles"})
    plan = replace(plan, row_parts=min(entries, tiles // 2) or 1, column_parts=min(2, tiles, -(-columns // plan.grain)))
    shape, dims = ((entries, columns), [0]) if one_row else ((columns, entries), [1])
    t = popops.create_sliceable_tensor(graph, dtype, shape, dims, [1], plan)
    tables = {name: graph.clone(t) for name in ("set", "add", "max", "mul")}
    indices = popops.create_indices_tensor(graph, dims, lookups, plan)
    s = popops.create_slice_tensor(graph, dtype, shape, dims, [1], lookups, plan)
    assert s.shape == (lookups, *(1 if d in dims else n for d, n in enumerate(shape)))
    out = popops.multi_slice(graph, t, indices, dims, [1], prog, plan)
    popops.multi_update(graph, tables["set"], s, indices, dims, [1], prog, plan)
    popops.multi_update_add(graph, tables["add"], s, indices, 0.5, dims, [1], prog, plan)
    popops.multi_update_max(graph, tables["max"], s, indices, dims, [1], prog, plan)
    popops.multi_update_mul(graph, tables["mul"], s, indices, dims, [1], prog, plan)
    rng = np.random.default_rng(entries)
    x, y = values(dtype, (entries, columns)), values(dtype, (lookups, columns), 1)
    y = np.sign(y) if bits == 1 else y
    at = rng.integers(0, max(1, entries >> bits) + 1 + bits // 5 * entries, lookups).astype(np.uint32)
    turned = (lambda a: a) if one_row else (lambda a: a.T)
    wide = s.shape
    found = run(graph, prog, {t: turned(x), **dict.fromkeys(tables.values(), turned(x)), s: y.reshape(wide), indices: at[:, None]}, {"out": out, **tables})
    wanted = expected(x, y, at, 0.5)
    np.testing.assert_array_equal(found["out"].reshape(lookups, columns), wanted["out"])
    few = (np.bincount(at[at < entries], minlength=entries) < 4)[:, None]
    for name in ("max", "add", "mul"):  # of few small numbers sums and products are exact in any order
        exact = few & np.isfinite(wanted[name]) & (np.abs(wanted[name]) < 2000)
        np.testing.assert_array_equal(turned(found[name])[exact], wanted[name][exact], err_msg=name)
    for row in range(entries):
        assert any((turned(found["set"])[row] == y[i]).all() for i in np.flatnonzero(at == row)) or (
            row not in at and (turned(found["set"])[row] == x[row]).all()
        )


def rounds_table(graph, entries, columns, lookups, **options):
    """A plan whose rows are in several parts, and its table."""
    plan = replace(embedding.plan(graph, FLOAT, entries, columns, [lookups], options), row_parts=6)
    return plan, popops.create_sliceable_tensor(graph, FLOAT, (entries, columns), [0], [1], plan)


@pytest.mark.parametrize("same", [False, True])
def test_more_than_lists_hold(same):
    """
    Look-ups that all want one row come in rounds, those that are spread in one.
    """
    graph, prog = new_graph(24), program.Sequence()
    plan, t = rounds_table(graph, 1200, 2, 600)
    assert not plan.route(600).once
    updated = graph.clone(t)
    indices = popops.create_indices_tensor(graph, [0], 600, plan)
    out = popops.multi_slice(graph, t, indices, [0], [1], prog, plan)
    popops.multi_update_add(graph, updated, out, indices, 1.0, [0], [1], prog, plan)
    x = np.arange(2400, dtype=np.float32).reshape(1200, 2)
    at = np.full(600, 700, np.uint32) if same else np.random.default_rng(0).permutation(1200)[:600].astype(np.uint32)
    found = run(graph, prog, {t: x, updated: x, indices: at[:, None]}, {"out": out, "t": updated})
    np.testing.assert_array_equal(found["out"][:, 0], x[at])
    np.add.at(x, at, x[at].copy())
    np.testing.assert_array_equal(found["t"], x)


def test_tensors_that_no_plan_made():
    """
    A table and slices as they come are copied to where the plan has them, and a table that is updated back.
    """
    graph, prog = new_graph(), program.Sequence()
    plan = replace(embedding.plan(graph, HALF, 50, 3, [8], {}), row_parts=4, column_parts=1)
    t, s = graph.add_variable(HALF, (50, 3), "linear"), graph.add_variable(HALF, (8, 1, 3), "linear")
    indices = graph.add_variable(UNSIGNED_INT, (8, 1), "linear")
    out = popops.multi_slice(graph, t, indices, [0], [1], prog, plan)
    popops.multi_update_max(graph, t, s, indices, [0], [1], prog, plan)
    x, y, at = values(HALF, (50, 3)), values(HALF, (8, 1, 3), 1), np.array([49, 0, 3, 3, 50, 7, 7, 8], np.uint32)
    found = run(graph, prog, {t: x, s: y, indices: at[:, None]}, {"out": out, "t": t})
    wanted = expected(x, y[:, 0], at, 1)
    np.testing.assert_array_equal(found["out"][:, 0], wanted["out"])
    np.testing.assert_array_equal(found["t"], wanted["max"])


@pytest.mark.parametrize("groups", [1, 3, 8])
@pytest.mark.parametrize("planned", [False, True])
def test_groups(groups, planned):
    """
    Each group has its own table and indices; more groups than tiles share them.
    """
    graph, prog = new_graph(6), program.Sequence()
    plan = embedding.plan(graph, FLOAT, 20, 4, [10], {}, group_size=groups) if planned else None
    plan = replace(plan, row_parts=2, column_parts=1) if plan and groups == 3 else plan
    if planned:
        t = popops.create_grouped_sliceable_tensor(graph, FLOAT, groups, (20, 4), [0], [1], plan)
        s = popops.create_grouped_slice_tensor(graph, FLOAT, groups, (20, 4), [0], [1], 10, plan)
        indices = popops.create_grouped_indices_tensor(graph, groups, [0], 10, plan)
    else:
        t, s = graph.add_variable(FLOAT, (groups, 20, 4), "linear"), graph.add_variable(FLOAT, (groups, 10, 1, 4), "linear")
        indices = graph.add_variable(UNSIGNED_INT, (groups, 10, 1), "linear")
    tables = {name: graph.clone(t) for name in ("set", "add", "max", "mul")}
    out = popops.grouped_multi_slice(graph, t, indices, [0], [1], prog, plan)
    popops.grouped_multi_update(graph, tables["set"], s, indices, [0], [1], prog, plan)
    popops.grouped_multi_update_add(graph, tables["add"], s, indices, 2.0, [0], [1], prog, plan)
    popops.grouped_multi_update_max(graph, tables["max"], s, indices, [0], [1], prog, plan)
    popops.grouped_multi_update_mul(graph, tables["mul"], s, indices, [0], [1], prog, plan)
    x, y = values(FLOAT, t.shape), values(FLOAT, s.shape, 1)
    at = np.stack([np.random.default_rng(g).permutation(22)[:10] for g in range(groups)]).astype(np.uint32)
    found = run(graph, prog, {t: x, **dict.fromkeys(tables.values(), x), s: y, indices: at[..., None]}, {"out": out, **tables})
    for g in range(groups):
        wanted = expected(x[g], y[g, :, 0], at[g], 2)
        np.testing.assert_array_equal(found["out"][g, :, 0], wanted.pop("out"))
        for name, array in wanted.items():
            np.testing.assert_array_equal(found[name][g], array, err_msg=name)


@pytest.mark.parametrize(("options", "answer"), [({}, 0), ({"remapOutOfBoundIndices": True}, 1), ({"paddingIndexUsed": True, "validateIndices": True}, 0)])
@pytest.mark.parametrize("planned", [False, True])
def test_the_index_behind_the_end(options, answer, planned):
    """
    Zeros; row 0 where remapped; padding where that is said, which is valid then. Nothing else is touched.
    """
    graph, prog = new_graph(), program.Sequence()
    plan = embedding.plan(graph, FLOAT, 10, 1, [3], options) if planned else None
    t = popops.create_sliceable_tensor(graph, FLOAT, (10, 1), [0], [1], plan or 0)
    indices = popops.create_indices_tensor(graph, [0], 3, plan)
    out = popops.multi_slice(graph, t, indices, [0], [1], prog, plan, options)
    x = np.arange(1, 11, dtype=np.float32)[:, None]
    found = run(graph, prog, {t: x, indices: np.array([[3], [10], [9]], np.uint32)}, {"out": out})["out"]
    assert found.ravel().tolist() == [4, answer, 10]


@pytest.mark.parametrize("index", [9, 10, 2**32 - 1])
def test_planned_indices_are_validated_on_request(index, engine_class):
    """
    The run stops and says which.
    """
    graph, prog = new_graph(), program.Sequence()
    plan = embedding.plan(graph, FLOAT, 10, 1, [5], {"validateIndices": True})
    t = popops.create_sliceable_tensor(graph, FLOAT, (10, 1), [0], [1], plan)
    indices = popops.create_indices_tensor(graph, [0], 5, plan)
    popops.multi_slice(graph, t, indices, [0], [1], prog, plan, {"validateIndices": True})
    for name, each in (("t", t), ("indices", indices)):
        graph.create_host_write(name, each)
    engine = engine_class(graph, prog)
    engine.write_tensor("t", np.ones((10, 1), np.float32))
    engine.write_tensor("indices", np.array([[index], [4], [3], [2], [1]], np.uint32))
    if index < 10:
        engine.run()
    else:
        with pytest.raises(errors.VertexError, match=str(index)):
            engine.run()


def test_a_large_table_fits():
    """
    A million rows of 64 over all tiles of an IPU; most of what a tile needs beside its part of the table is small.
    """
    graph = new_graph(1472)
    plan = embedding.plan(graph, FLOAT, 1_000_000, 64, [65_536], {})
    assert plan.row_parts * plan.column_parts > 500
    route = plan.route(65_536)
    assert route.temporary_bytes < 400_000
    t = create_table(graph, plan, "t")
    begin, end, tile = graph.tile_intervals(t)
    assert (end - begin).min() * 4 >= 64
    assert np.bincount(tile, end - begin).max() * 4 < 500_000
    assert "1000000, 64" in str(plan)


def test_scatter_max_of_negative_numbers():
    """
    No zeros appear among them, and rows that no update names stay.
    """
    graph, prog = new_graph(4), program.Sequence()
    for dtype in (FLOAT, HALF):
        plan = replace(embedding.plan(graph, dtype, 100, 1, [200], {"operationForUpdate": "max"}), row_parts=4)
        t = popops.create_sliceable_tensor(graph, dtype, (100, 1), [0], [1], plan)
        indices, s = graph.add_variable(UNSIGNED_INT, (200, 1), "linear"), graph.add_variable(dtype, (200, 1, 1), "linear")
        popops.multi_update_max(graph, t, s, indices, [0], [1], prog, plan)
        rng = np.random.default_rng(0)
        y, at = -rng.random((200, 1, 1)).astype(dtype.numpy), rng.integers(0, 90, (200, 1)).astype(np.uint32)
        wanted = np.full(100, -1, dtype.numpy)
        np.maximum.at(wanted, at[:, 0], y.ravel())
        inner = program.Sequence(*prog.programs)
        found = run(graph, inner, {t: np.full((100, 1), -1, dtype.numpy), s: y, indices: at}, {"t": t})["t"]
        np.testing.assert_array_equal(found.ravel(), wanted)
        prog, graph = program.Sequence(), new_graph(4)


def test_mistakes():
    """
    A plan for something else, sizes, uses, options.
    """
    graph, prog = new_graph(), program.Sequence()
    plan = embedding.plan(graph, FLOAT, 10, 4, [5], {})
    t, at = graph.add_variable(FLOAT, (10, 4), "linear"), graph.add_variable(UNSIGNED_INT, (5, 1), "linear")
    assert embedding.plan_multiple([embedding.SlicePlanningParameters(graph, FLOAT, 10, 4, [5])]) == [plan]
    for kind, call in (
        (errors.ShapeError, lambda: popops.multi_slice(graph, t.transpose(), at, [0], [1], prog, plan)),
        (errors.ShapeError, lambda: popops.multi_slice(graph, t, at, [0], [2], prog, plan)),
        (errors.GraphError, lambda: popops.multi_slice(graph, t, at, [0], [1], prog, "plan")),
        (errors.ShapeError, lambda: popops.create_sliceable_tensor(graph, INT, (10, 4), [0], [1], plan)),
        (errors.ShapeError, lambda: popops.create_indices_tensor(graph, [0, 1], 5, plan)),
        (errors.GraphError, lambda: popops.create_slice_tensor(graph, FLOAT, (10, 4), [0], [1], 5, None)),
        (errors.GraphError, lambda: popops.create_slice_tensor(graph, t, [0])),
        (errors.ShapeError, lambda: popops.grouped_multi_slice(graph, t, at, [0], [1], prog)),
        (errors.ShapeError, lambda: embedding.plan(graph, FLOAT, 0, 4, [5], {})),
        (errors.OptionError, lambda: embedding.plan(graph, FLOAT, 10, 4, [5], {"usedForSlice": False, "usedForUpdate": False})),
        (errors.OptionError, lambda: embedding.plan(graph, FLOAT, 10, 4, [5], {"availableMemoryProportion": 2})),
        (errors.OptionError, lambda: embedding.plan(graph, FLOAT, 10, 4, [5], {"availableMemory": 0.5})),
        (errors.OutOfTileMemoryError, lambda: embedding.plan(graph, FLOAT, 10_000_000, 4, [5], {})),
    ):
        with pytest.raises(kind, match="try: "):
            call()
    assert not prog.programs
    assert pc.Engine
