"""Known traps of the operations of popops: reductions, expressions, casts, slices, sorting."""

import numpy as np
import pytest

import popcore as pc
from popcore import BOOL, FLOAT, HALF, INT, UNSIGNED_INT, UNSIGNED_LONGLONG, errors, program
from popcore.ops import popops
from popcore.ops.popops import Operation, ReduceParams, SortOrder, TopKParams
from popcore.ops.popops import expr as e
from popcore.program.walk import walk

INT_MAX, INT_MIN = 2**31 - 1, -(2**31)
MASKED = 2**32 - 1


def results(engine_class, bench, prog, **tensors):
    """What ``tensors`` hold after a run, by name."""
    for name, tensor in tensors.items():
        bench.graph.create_host_read(f"result {name}", tensor)
    engine = engine_class(bench.graph, prog)
    engine.run()
    return {name: engine.read_tensor(f"result {name}") for name in tensors}


@pytest.mark.parametrize("update", [False, True])
@pytest.mark.parametrize(
    ("operation", "dtype", "identity"),
    [
        (Operation.ADD, FLOAT, 0),
        (Operation.ADD, HALF, 0),
        (Operation.SQUARE_ADD, FLOAT, 0),
        (Operation.MUL, FLOAT, 1),
        (Operation.MUL, HALF, 1),
        (Operation.MIN, FLOAT, np.inf),
        (Operation.MAX, FLOAT, -np.inf),
        (Operation.MIN, INT, INT_MAX),
        (Operation.MAX, INT, INT_MIN),
        (Operation.LOGICAL_AND, BOOL, True),
        (Operation.LOGICAL_OR, BOOL, False),
    ],
)
def test_a1_an_empty_axis_gives_the_identity(any_engine, bench, operation, dtype, identity, update):
    """Case A1: or, with update, leaves the output as it was."""
    empty, prog = bench.graph.add_variable(dtype, (0, 64), "linear"), program.Sequence()
    out = bench.variable("out", np.full(64, 5).astype(dtype.numpy), dtype)
    popops.reduce_with_output(bench.graph, empty, out, [0], ReduceParams(operation, update=update), prog)
    wanted = np.full(64, 5 if update else identity).astype(dtype.numpy)
    np.testing.assert_array_equal(results(any_engine, bench, prog, out=out)["out"], wanted)


@pytest.mark.parametrize(
    ("shape", "dims", "left", "steps"),
    [
        ((2, 1, 2, 3), [1, 2], (2, 3), None),
        ((2, 3, 4, 0), [3], (2, 3, 4), ["Execute"]),
        ((2, 3, 4, 0), [0], (3, 4, 0), []),
        ((0, 1, 2), [], (0, 1, 2), []),
        ((0, 1, 2, 3), [3], (0, 1, 2), []),
        ((1, 1, 1, 0), [0, 1], (1, 0), []),
        ((2, 2), [0, 1], (), None),
        ((2, 1, 1), [1], (2, 1), ["Copy"]),
    ],
)
def test_a2_reductions_of_nothing_keep_shapes_and_make_no_needless_steps(bench, shape, dims, left, steps):
    """Case A2: an empty result needs no program, a result of nothing one fill; where only dimensions of one element go, a copy."""
    prog = program.Sequence()
    made = popops.reduce(bench.graph, bench.graph.add_variable(FLOAT, shape, "linear"), dims, Operation.ADD, prog)
    assert made.shape == left
    if steps is not None:
        assert [type(p).__name__ for p in walk(prog) if not isinstance(p, program.Sequence)] == steps


@pytest.mark.parametrize("dtype", [FLOAT, HALF])
@pytest.mark.parametrize("constant_first", [False, True])
def test_b7_a_select_with_a_constant_has_the_tensors_type(any_engine, bench, dtype, constant_first):
    """Case B7: either branch may be the constant."""
    x, p = bench.variable("x", np.array([2, 3], dtype.numpy), dtype), bench.variable("p", np.array([True, False]), BOOL)
    prog, one = program.Sequence(), e.Const(1.0)
    made = popops.map(bench.graph, e.Select(one, e._1, e._2) if constant_first else e.Select(e._1, one, e._2), [x, p], prog)
    assert made.dtype is dtype
    assert results(any_engine, bench, prog, made=made)["made"].tolist() == ([1, 3] if constant_first else [2, 1])


@pytest.mark.parametrize(
    ("operation", "left", "right", "right_value"),
    [
        ("add", INT_MAX, 1, INT_MIN),
        ("rem", -7, 3, -1),
        ("rem", 7, -3, 1),
        ("shift_right", -8, 1, 2147483644),
        ("shift_right_sign_extend", -8, 1, -4),
        ("shift_left", 1, 31, INT_MIN),
        ("div", -7, 2, -3),
    ],
)
def test_c4_integer_operations_follow_c(any_engine, bench, operation, left, right, right_value):
    """Case C4: wraps, signs and shifts."""
    a, b = bench.variable("a", [left], INT), bench.variable("b", [right], INT)
    prog = program.Sequence()
    made = getattr(popops, operation)(bench.graph, a, b, prog)
    assert results(any_engine, bench, prog, made=made)["made"].tolist() == [right_value]


@pytest.mark.parametrize("dtype", [FLOAT, HALF])
def test_d4_the_greatest_of_negative_updates_is_negative(any_engine, bench, dtype):
    """Case D4: no zero creeps in, and untouched rows stay."""
    rng = np.random.default_rng(0)
    updates, at = -rng.random((200, 1, 1)).astype(dtype.numpy), rng.integers(0, 90, (200, 1)).astype(np.uint32)
    plan = popops.embedding.plan(bench.graph, dtype, 100, 1, [200], {"usedForUpdate": True, "operationForUpdate": "max"})
    table = popops.create_sliceable_tensor(bench.graph, dtype, (100, 1), [0], [1], plan)
    bench.graph.set_initial_value(table, np.full((100, 1), -1, dtype.numpy))
    prog = program.Sequence()
    popops.multi_update_max(bench.graph, table, bench.variable("s", updates, dtype), bench.variable("at", at, UNSIGNED_INT), [0], [1], prog, plan)
    wanted = np.full(100, -1, dtype.numpy)
    np.maximum.at(wanted, at[:, 0], updates.ravel())
    np.testing.assert_array_equal(results(any_engine, bench, prog, t=table)["t"].ravel(), wanted)


def test_d6_of_limits_that_cross_the_upper_wins(any_engine, bench):
    """Case D6: as in PyTorch."""
    x, prog = bench.variable("x", np.array([-2, -1, 1, 2], np.float32), FLOAT), program.Sequence()
    low, high = (bench.graph.add_constant(FLOAT, (4,), v, tile=0) for v in (1.0, -1.0))
    assert results(any_engine, bench, prog, made=popops.clamp(bench.graph, x, low, high, prog))["made"].tolist() == [-1] * 4


def _table(bench, rows):
    return bench.variable("table", np.arange(1, rows + 1, dtype=np.float32)[:, None], FLOAT)


def test_e1_the_index_behind_the_end_touches_nothing(any_engine, bench):
    """Case E1: rows are exact, and what lies behind the table is not written."""
    both = bench.variable("both", np.arange(1, 122, dtype=np.float32)[:, None], FLOAT)
    table, guard = both[:120], both[120:]
    offsets = [2, 2, 6, 5, 80, 0, 1, 60, 55, 40, 30]
    at, prog = bench.variable("at", np.array([*offsets, 120], np.uint32)[:, None], UNSIGNED_INT), program.Sequence()
    taken = popops.multi_slice(bench.graph, table, at, [0], [1], prog, options={"paddingIndexUsed": "true"})
    more = bench.graph.add_constant(FLOAT, (12, 1, 1), 100.0, tile=0)
    popops.multi_update_add(bench.graph, table, more, at, 1.0, [0], [1], prog, options={"paddingIndexUsed": "true"})
    found = results(any_engine, bench, prog, taken=taken, table=table, guard=guard)
    assert found["taken"].ravel().tolist() == [*(float(o + 1) for o in offsets), 0]
    wanted = np.arange(1, 121, dtype=np.float32)
    np.add.at(wanted, offsets, np.float32(100))
    assert found["table"].ravel().tolist() == wanted.tolist()
    assert found["guard"].tolist() == [[121]]


@pytest.mark.parametrize("update", [False, True])
@pytest.mark.parametrize("k", [0, 9, 10, 11, MASKED])
def test_e2_indices_are_validated_on_request(any_engine, bench, k, update):
    """Case E2: the last row passes; the one behind it stops the run, and says so."""
    table, at, prog = _table(bench, 10), bench.variable("at", np.array([k, 4, 3, 2, 1], np.uint32)[:, None], UNSIGNED_INT), program.Sequence()
    options = {"validateIndices": "true"}
    plan = popops.embedding.plan(bench.graph, FLOAT, 10, 1, [5], options)
    if update:
        popops.multi_update_add(bench.graph, table, bench.graph.add_constant(FLOAT, (5, 1, 1), 1.0, tile=0), at, 1.0, [0], [1], prog, plan, options)
    else:
        popops.multi_slice(bench.graph, table, at, [0], [1], prog, plan, options)
    engine = any_engine(bench.graph, prog)
    if k < 10:
        engine.run()
    else:
        with pytest.raises(errors.EngineError, match=f"{k}|index"):
            engine.run()


def test_e3_indices_outside_follow_the_option(any_engine, bench):
    """Case E3: taken for 0, or a row of zeros just behind the end."""
    table, at, prog = _table(bench, 10), bench.variable("at", np.array([[10], [3]], np.uint32), UNSIGNED_INT), program.Sequence()
    remapped = popops.multi_slice(bench.graph, table, at, [0], [1], prog, options={"remapOutOfBoundIndices": "true"})
    padded = popops.multi_slice(bench.graph, table, at, [0], [1], prog, options={"paddingIndexUsed": "true"})
    found = results(any_engine, bench, prog, remapped=remapped, padded=padded)
    assert found["remapped"].ravel().tolist() == [1, 4]
    assert found["padded"].ravel().tolist() == [0, 4]


@pytest.mark.parametrize(("size", "expected"), [(1, [[1], [0], [10], [3], [0]]), (2, [[1, 2], [0, 0], [0, 0], [3, 4], [0, 0]])])
def test_e3_fixed_offsets_outside_give_zeros(any_engine, bench, size, expected):
    """Case E3: the overload whose offsets are known when the graph is built; also of a slice that is only partly within."""
    table, prog = _table(bench, 10), program.Sequence()
    taken = popops.multi_slice(bench.graph, table, [0, 10, 9, 2, 2**32 - 1], [0], [size], prog)
    found = results(any_engine, bench, prog, taken=taken)
    assert found["taken"].reshape(5, size).tolist() == expected


def test_e3_fixed_offsets_along_the_second_dimension(any_engine, bench):
    """Case E3: the other dimension stays; no offsets give no slices, and options have no meaning."""
    x, prog = bench.variable("x", np.arange(6, dtype=np.float32).reshape(2, 3), FLOAT), program.Sequence()
    taken = popops.multi_slice(bench.graph, x, [2, 3, 0], [1], [1], prog)
    none = popops.multi_slice(bench.graph, x, [], [1], [1], prog)
    found = results(any_engine, bench, prog, taken=taken, none=none)
    assert found["taken"].tolist() == [[[2], [5]], [[0], [0]], [[0], [3]]]
    assert found["none"].shape == (0, 2, 1)
    with pytest.raises(errors.OptionError, match=r"(?s)multi_slice.*try:"):
        popops.multi_slice(bench.graph, x, [2], [1], [1], prog, options={"validateIndices": "true"})


@pytest.mark.parametrize("dtype", [FLOAT, HALF])
def test_d16_a_divergence_of_targets_that_are_not_positive(any_engine, bench, dtype):
    """Case D16: as an expression, which is how PopTorch has it: t (log t - x) where t > 0, else 0; no NaN of a logarithm comes through."""
    x, t = bench.variable("x", np.array([-1, -1, -1]), dtype), bench.variable("t", np.array([0, -0.5, 1]), dtype)
    prog = program.Sequence()
    divergence = e.Select(e.Mul(e._2, e.Sub(e.Log(e._2), e._1)), e.Const(0), e.Gt(e._2, e.Const(0)))
    made = popops.map(bench.graph, divergence, [x, t], prog)
    assert results(any_engine, bench, prog, made=made)["made"].tolist() == [0, 0, 1]


def test_e8_fewer_rows_than_workers(any_engine, bench):
    """Case E8: two look-ups in two rows leave four workers idle."""
    table, at, prog = _table(bench, 2), bench.variable("at", np.array([[1], [0]], np.uint32), UNSIGNED_INT), program.Sequence()
    plan = popops.embedding.plan(bench.graph, FLOAT, 2, 1, [2], {})
    taken = popops.multi_slice(bench.graph, table, at, [0], [1], prog, plan)
    popops.multi_update_add(bench.graph, table, taken, at, 1.0, [0], [1], prog, plan)
    found = results(any_engine, bench, prog, taken=taken, table=table)
    assert (found["taken"].ravel().tolist(), found["table"].ravel().tolist()) == ([2, 1], [2, 4])


@pytest.mark.parametrize(
    ("largest", "k", "values", "places"),
    [(True, 3, [3, 3, 2], [0, 2, 3]), (False, 3, [1, 1, 2], [1, 4, 3]), (True, 0, [], []), (True, 5, [3, 3, 2, 1, 1], [0, 2, 3, 1, 4])],
)
def test_e9_the_greatest_and_the_least(any_engine, bench, largest, k, values, places):
    """Case E9: equal ones in order of their places."""
    x, prog = bench.variable("x", np.array([3, 1, 3, 2, 1], np.float32), FLOAT), program.Sequence()
    order = SortOrder.DESCENDING if largest else SortOrder.ASCENDING
    top, where = popops.top_k_with_permutation(bench.graph, prog, x, TopKParams(k, largest, order, stable_sort=True))
    found = results(any_engine, bench, prog, top=top, where=where)
    assert (found["top"].tolist(), found["where"].tolist()) == (values, places)


def test_e9_more_than_there_are_is_refused(bench):
    """Case E9: k above n."""
    x = bench.variable("x", np.zeros(5, np.float32), FLOAT)
    with pytest.raises(errors.ShapeError, match=r"6.*5"):
        popops.top_k(bench.graph, program.Sequence(), x, TopKParams(6, True, SortOrder.NONE))


def test_e10_a_masked_label_gives_zero_and_updates_nothing(any_engine, bench):
    """Case E10: rows (3, 4), the middle one masked."""
    values = np.arange(1, 13, dtype=np.float32).reshape(3, 4)
    rows, at = bench.variable("rows", values, FLOAT), bench.variable("at", np.array([1, MASKED, 2], np.uint32), UNSIGNED_INT)
    prog = program.Sequence()
    taken = popops.select_scalar_from_rows(bench.graph, rows, at, prog)
    popops.update_scalar_in_rows(bench.graph, rows, at, prog)
    found = results(any_engine, bench, prog, taken=taken, rows=rows)
    assert found["taken"].tolist() == [2, 0, 11]
    values[[0, 2], [1, 2]] -= 1
    assert found["rows"].tolist() == values.tolist()


def test_j4_a_tile_that_is_too_full_can_still_be_profiled(bench):
    """Case J4: an error that names tile, bytes and tenants; on request the program runs all the same."""
    big = bench.graph.add_variable(UNSIGNED_LONGLONG, (700 * 128,), name="big", tile=5)
    prog = program.Copy(bench.graph.add_constant(UNSIGNED_LONGLONG, (1,), 1, tile=0).broadcast(700 * 128, 0), big)
    with pytest.raises(errors.OutOfTileMemoryError, match=r"(?s)tile 5.*B too many.*big.*try:"):
        pc.Engine(bench.graph, prog)
    engine = pc.Engine(bench.graph, prog, options={"debug.allowOutOfMemory": True})
    engine.run()
    assert engine.profile().memory.total[5] > bench.graph.target.bytes_per_tile
