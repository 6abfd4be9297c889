"""Reductions: shapes, mappings, views, operations, types, edge cases. Both engines, against NumPy."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import popcore as pc
from popcore import errors, program
from popcore.ops import popops
from popcore.ops.popops import Operation, ReduceParams, SingleReduceOp
from popcore.program import Copy, Execute
from popcore.types import BOOL, FLOAT, HALF, INT, UNSIGNED_INT
from tests.ops.popops.runs import mapped, new_graph, run, shapes, values

DRAWN = settings(deadline=None, max_examples=40, suppress_health_check=list(HealthCheck))
NUMPY = {
    Operation.ADD: np.add.reduce, Operation.MUL: np.multiply.reduce, Operation.MIN: np.minimum.reduce, Operation.MAX: np.maximum.reduce,
    Operation.LOGICAL_AND: np.logical_and.reduce, Operation.LOGICAL_OR: np.logical_or.reduce, Operation.LOG_ADD: np.logaddexp.reduce,
    Operation.SQUARE_ADD: lambda x, axis: np.add.reduce(x * x, axis=axis),
}  # fmt: skip
ARITHMETIC = [Operation.ADD, Operation.SQUARE_ADD, Operation.MIN, Operation.MAX]


def reduced(op, x, dims, dtype):
    """NumPy's answer, computed wide."""
    wide = x if x.dtype == bool else x.astype(np.float64 if x.dtype.kind == "f" else np.int64)
    for d in sorted(dims, reverse=True):
        wide = NUMPY[op](wide, axis=d) if op is not Operation.SQUARE_ADD or d == max(dims) else np.add.reduce(wide, axis=d)
    if not dims and op is Operation.SQUARE_ADD:
        wide = wide * wide
    with np.errstate(all="ignore"):
        return np.asarray(wide).astype(dtype.numpy)


@DRAWN
@given(st.data(), shapes(max_rank=4, max_side=4, least=1), st.sampled_from(ARITHMETIC), st.sampled_from([FLOAT, HALF, INT]))
def test_any_dimensions_of_any_view(data, shape, op, dtype):
    """
    With values for which every order of joining gives the same.
    """
    graph, prog = new_graph(), program.Sequence()
    t, view, see = data.draw(mapped(graph, dtype, shape))
    dims = data.draw(st.lists(st.integers(0, max(0, len(shape) - 1)), unique=True, max_size=len(shape)))
    out = popops.reduce(graph, view, dims, op, prog)
    x = values(dtype, t.shape)
    found = run(graph, prog, {t: x}, {"out": out, "t": t})
    np.testing.assert_array_equal(found["out"], reduced(op, see(x), dims, dtype))
    np.testing.assert_array_equal(found["t"], x)


@DRAWN
@given(st.data(), shapes(max_side=4), st.sampled_from([FLOAT, HALF, INT]), st.booleans(), st.booleans())
def test_to_an_output_with_scale_and_update(data, shape, dtype, update, scaled):
    """
    Of any view, empty ones included.
    """
    graph, prog = new_graph(), program.Sequence()
    t, view, see = data.draw(mapped(graph, dtype, shape))
    dims = data.draw(st.lists(st.integers(0, max(0, len(shape) - 1)), unique=True, max_size=len(shape)))
    o, out, see_out = data.draw(mapped(graph, dtype, tuple(n for d, n in enumerate(shape) if d not in dims)))
    scaled &= dtype is not INT
    scale = graph.add_variable(FLOAT, (1,), tile=2) if scaled else None
    popops.reduce_with_output(graph, view, out, dims, ReduceParams(Operation.ADD, update, scale), prog)
    x, y = values(dtype, t.shape), values(dtype, o.shape, 1)
    found = run(graph, prog, {t: x, o: y, **({scale: np.array([0.5], np.float32)} if scaled else {})}, {"out": out})
    wanted = see(x).astype(float).sum(axis=tuple(dims)) * (0.5 if scaled else 1) + (see_out(y) if update else 0)
    np.testing.assert_array_equal(found["out"], np.asarray(wanted).astype(dtype.numpy))


@pytest.mark.parametrize("update", [False, True])
@pytest.mark.parametrize("dtype", [FLOAT, HALF, INT, UNSIGNED_INT, BOOL], ids=repr)
def test_of_nothing(dtype, update):
    """
    The identity of the operation; with update what was there.
    """
    ops = [Operation.LOGICAL_AND, Operation.LOGICAL_OR] if dtype is BOOL else [*ARITHMETIC, Operation.MUL]
    graph, prog = new_graph(), program.Sequence()
    t = graph.add_variable(dtype, (0, 64), "linear")
    outs = {op.name: graph.add_variable(dtype, (64,), "linear") for op in ops}
    for op in ops:
        popops.reduce_with_output(graph, t, outs[op.name], [0], ReduceParams(op, update), prog)
    before = values(dtype, (64,))
    found = run(graph, prog, dict.fromkeys(outs.values(), before), outs)
    most, least = (
        (65504, -65504)
        if dtype is HALF
        else (np.inf, -np.inf)
        if dtype.is_floating
        else (0, 0)
        if dtype is BOOL
        else (np.iinfo(dtype.numpy).max, np.iinfo(dtype.numpy).min)
    )
    identity = {"ADD": 0, "SQUARE_ADD": 0, "MUL": 1, "MIN": most, "MAX": least, "LOGICAL_AND": True, "LOGICAL_OR": False}
    for name, array in found.items():
        np.testing.assert_array_equal(array, before if update else np.full(64, identity[name], dtype.numpy))


@pytest.mark.parametrize(
    ("shape", "dims", "out", "kinds"),
    [
        ((2, 1, 2, 3), (1, 2), (2, 3), None), ((2, 3, 4, 0), (3,), (2, 3, 4), [Execute]), ((2, 3, 4, 0), (0,), (3, 4, 0), []), ((0, 1, 2), (), (0, 1, 2), []),
        ((0, 1, 2, 3), (3,), (0, 1, 2), []), ((1, 1, 1, 0), (0, 1), (1, 0), []), ((2, 2), (0, 1), (), None), ((2, 1, 3), (1,), (2, 3), [Copy]),
        ((), (), (), [Copy]), ((5, 3), (), (5, 3), [Copy]),
    ],
)  # fmt: skip
def test_shapes_and_no_useless_steps(shape, dims, out, kinds):
    """
    One fill where only the output has elements, nothing where it has none, a copy where only dimensions of one go.
    """
    for given_output in (False, True):
        graph, prog = new_graph(), program.Sequence()
        t = graph.add_variable(FLOAT, shape, "linear")
        if given_output:
            made = graph.add_variable(FLOAT, out, "linear")
            popops.reduce_with_output(graph, t, made, dims, Operation.ADD, prog)
        else:
            made = popops.reduce(graph, t, dims, Operation.ADD, prog)
        assert made.shape == out
        assert kinds is None or [type(p) for p in prog.programs] == kinds
        x = values(FLOAT, shape)
        np.testing.assert_array_equal(run(graph, prog, {t: x}, {"out": made})["out"], x.sum(axis=tuple(dims)))


def test_half_accumulates_in_float():
    """
    8192 and 99 ones: 8291, rounded to the step of 8. HALF between tiles only when asked for.
    """
    graph, prog = new_graph(), program.Sequence()
    t = graph.add_variable(HALF, (100,), tile=1)
    spread = graph.add_variable(HALF, (100,))
    pc.poputil.map_tensor_linearly(graph, spread, 1, 1)
    reads = {
        "one tile": popops.reduce(graph, t, [0], Operation.ADD, prog),
        "spread": popops.reduce(graph, spread, [0], Operation.ADD, prog),
        "float": popops.reduce(graph, t, [0], Operation.ADD, prog, out_type=FLOAT),
        "half": popops.reduce(graph, t, [0], Operation.ADD, prog, options={"accumType.interTile": "half"}),
    }
    x = np.ones(100, np.float16)
    x[0] = 8192
    found = run(graph, prog, {t: x, spread: x}, reads)
    assert (found["one tile"], found["spread"], found["float"]) == (8288, 8288, 8291)
    assert found["half"] < 8288
    assert (found["one tile"].dtype, found["float"].dtype) == (np.float16, np.float32)


def test_integers_stay_integers():
    """
    Exact above the 24 bits of a float, and they wrap.
    """
    graph, prog = new_graph(), program.Sequence()
    t = graph.add_variable(INT, (2,), "linear")
    out = graph.add_variable(INT, (), tile=0)
    reads = {"sum": popops.reduce(graph, t, [0], Operation.ADD, prog), "square": popops.reduce(graph, t, [0], Operation.SQUARE_ADD, prog), "out": out}
    popops.reduce_with_output(graph, t[1:], out, [0], ReduceParams(Operation.MAX, True), prog)
    found = run(graph, prog, {t: np.array([2**24, -5], np.int32), out: np.array(-7, np.int32)}, reads)
    assert (found["sum"], found["square"], found["out"]) == (2**24 - 5, 25, -5)


@pytest.mark.parametrize("op", [Operation.LOG_ADD, Operation.MUL], ids=lambda o: o.name)
@pytest.mark.parametrize("dtype", [FLOAT, HALF], ids=repr)
def test_products_and_logarithms(op, dtype):
    """
    Of values with and without weight: close to NumPy's.
    """
    graph, prog = new_graph(), program.Sequence()
    t = graph.add_variable(dtype, (7, 9), "linear")
    out = graph.add_variable(dtype, (7,), tile=4)
    reads = {str(d): popops.reduce(graph, t, d, op, prog) for d in ([0], [1], [0, 1])} | {"out": out}
    popops.reduce_with_output(graph, t, out, [1], ReduceParams(op, True), prog)
    x = (1 + values(dtype, (7, 9)) / 100).astype(dtype.numpy)
    y = np.ones(7, dtype.numpy)
    if op is Operation.LOG_ADD:
        nothing = -65504 if dtype is HALF else -np.inf  # the logarithm of no weight; infinities are no numbers in HALF
        x[2] = nothing
        x[3, 4] = nothing
        y[2] = nothing
    found = run(graph, prog, {t: x, out: y}, reads)
    for d in ([0], [1], [0, 1]):
        np.testing.assert_allclose(found[str(d)], reduced(op, x, d, dtype), rtol=1e-3 if dtype is HALF else 1e-5)
    joined = NUMPY[op](np.stack([NUMPY[op](x.astype(float), axis=1), y.astype(float)]), axis=0)
    np.testing.assert_allclose(found["out"], joined, rtol=1e-3 if dtype is HALF else 1e-5)


def test_logic():
    """
    All, any, and about a whole tensor.
    """
    graph, prog = new_graph(), program.Sequence()
    t, f = graph.add_variable(BOOL, (5, 9), "linear"), graph.add_variable(FLOAT, (5, 9), "linear")
    reads = {
        "and": popops.reduce(graph, t, [1], Operation.LOGICAL_AND, prog),
        "or": popops.reduce(graph, t, [0], Operation.LOGICAL_OR, prog),
        "all": popops.all_true(graph, t, prog),
        "row": popops.all_true(graph, t[1], prog),
        "none": popops.all_true(graph, t[:0], prog),
        "nan": popops.has_nan(graph, f, prog),
        "inf": popops.has_nan_or_inf(graph, f, prog),
    }
    x, y = np.arange(45).reshape(5, 9) % 7 > 0, values(FLOAT, (5, 9))
    x[1] = True
    y[3, 3] = np.inf
    found = run(graph, prog, {t: x, f: y}, reads)
    np.testing.assert_array_equal(found["and"], x.all(1))
    np.testing.assert_array_equal(found["or"], x.any(0))
    assert [bool(found[n]) for n in ("all", "row", "none", "nan", "inf")] == [False, True, True, False, True]
    with pytest.raises(errors.ElementTypeError, match="BOOL"):
        popops.all_true(graph, f, prog)


def test_many_at_once_share_compute_sets():
    """
    More reductions than tiles, of different sizes.
    """
    graph, prog = new_graph(4), program.Sequence()
    ts = [graph.add_variable(FLOAT, (k + 2, 40), "linear") for k in range(9)]
    outs = []
    popops.reduce_many(graph, [SingleReduceOp(t, (k % 2,), ARITHMETIC[k % 4]) for k, t in enumerate(ts)], outs, prog)
    assert len(graph.compute_sets) <= 2
    xs = [values(FLOAT, t.shape, k) for k, t in enumerate(ts)]
    found = run(graph, prog, dict(zip(ts, xs, strict=True)), {str(k): o for k, o in enumerate(outs)})
    for k, x in enumerate(xs):
        np.testing.assert_array_equal(found[str(k)], reduced(ARITHMETIC[k % 4], x, [k % 2], FLOAT))
    with pytest.raises(errors.GraphError, match="update"):
        popops.reduce_many(graph, [SingleReduceOp(ts[0], (0,), ReduceParams(Operation.ADD, True))], [], prog)


def test_many_tiles_join_in_steps():
    """
    No tile gathers from all: 1,472 partial results take three compute sets.
    """
    graph, prog = new_graph(1472), program.Sequence()
    t = graph.add_variable(FLOAT, (1472 * 32,), "linear")
    wide = graph.add_variable(FLOAT, (1472, 50))
    for r in range(1472):
        graph.set_tile_mapping(wide[r], r)
    reads = {"one": popops.reduce(graph, t, [0], Operation.ADD, prog)}
    assert len(graph.compute_sets) == 3
    reads["columns"] = popops.reduce(graph, wide, [0], Operation.ADD, prog)
    reads["rows"] = popops.reduce(graph, wide, [1], Operation.ADD, prog)
    x, y = values(FLOAT, t.shape), values(FLOAT, wide.shape)
    found = run(graph, prog, {t: x, wide: y}, reads, (pc.Engine,))
    assert found["one"] == x.sum()
    np.testing.assert_array_equal(found["columns"], y.sum(0))
    np.testing.assert_array_equal(found["rows"], y.sum(1))
    assert graph.get_tile_mapping(reads["rows"])[:5] == [[(i, i + 1)] for i in range(5)]


@pytest.mark.parametrize("op", [Operation.ADD, Operation.MAX])
@pytest.mark.parametrize("begins", [0, 1])
def test_workers_never_share_a_word_of_half(op, begins):
    """
    Parts of the result that begin in the middle of a word, on their tile or in a view, go by way of whole words; nothing is added where none does.
    """
    graph, prog = new_graph(3), program.Sequence()
    data = graph.add_variable(HALF, (7, 40), name="data")
    for row in range(7):
        graph.set_tile_mapping(data[row], row % 3)
    out = graph.add_variable(HALF, (41,), name="out")
    graph.map_intervals(out, np.array([0, 20 + begins]), np.array([20 + begins, 21 - begins]), np.array([0, 1]))
    popops.reduce_with_output(graph, data, out[begins : 40 + begins], [0], op, prog)
    x = values(HALF, (7, 40))
    found = run(graph, prog, {data: x}, {"out": out[begins : 40 + begins]}, options={"debug.check": "full"})["out"]
    np.testing.assert_array_equal(found, reduced(op, x, [0], HALF))
    assert any("words" in v.name for v in graph.variables) == bool(begins)


def test_an_output_that_is_part_of_the_data():
    """
    The data is read first.
    """
    graph, prog = new_graph(), program.Sequence()
    t = graph.add_variable(FLOAT, (6, 6), "linear")
    popops.reduce_with_output(graph, t, t[:, 2], [1], Operation.ADD, prog)
    x = values(FLOAT, (6, 6))
    found = run(graph, prog, {t: x}, {"t": t})["t"]
    np.testing.assert_array_equal(found[:, 2], x.sum(1))
    np.testing.assert_array_equal(np.delete(found, 2, 1), np.delete(x, 2, 1))


@pytest.mark.parametrize(("system", "issues"), [("C2", 1.0), ("M2000", 0.5)])
def test_a_sum_on_a_mk1_chip_takes_a_cycle_for_each_element(system, issues):
    """
    Of FLOAT, what was measured there; PopLibs' estimators say half of it, for both chips. Of HALF they are all there is.
    """

    def cycles(dtype, n):
        graph, prog = pc.Graph(pc.Device(system, num_ipus=1, tiles_per_ipu=4).target), program.Sequence()
        popops.reduce(graph, graph.add_variable(dtype, (n,), tile=0), [0], Operation.ADD, prog)
        engine = pc.Engine(graph, prog, options={"debug.compute": False})
        engine.run()
        return engine.profile().total_cycles

    assert cycles(FLOAT, 12_000) - cycles(FLOAT, 6000) == pytest.approx(issues * 6000, rel=0.02)
    assert cycles(HALF, 12_000) - cycles(HALF, 6000) == pytest.approx(0.5 * 6000, rel=0.02)


def test_what_the_workers_of_a_tile_summed_is_joined_before_it_is_sent():
    """
    The last step gets one number from each tile, not one from each worker.
    """
    graph, prog = new_graph(8), program.Sequence()
    data = graph.add_variable(FLOAT, (8, 1000), name="data")
    for tile in range(8):
        graph.set_tile_mapping(data[tile], tile)
    out = popops.reduce(graph, data.flatten(), [0], Operation.ADD, prog)
    (joined,) = graph.compute_sets[-1].groups.values()
    assert joined.columns["data"].length.tolist() == [8]
    x = values(FLOAT, (8, 1000))
    np.testing.assert_array_equal(run(graph, prog, {data: x}, {"out": out})["out"], x.sum(dtype=np.float64))


def test_mistakes():
    """
    Types, dimensions, shapes, parameters, options: refused at the call, and nothing is added.
    """
    graph, prog = new_graph(), program.Sequence()
    f, b, i, s = (
        graph.add_variable(FLOAT, (4, 5), "linear"),
        *(graph.add_variable(t, (4, 5), "linear") for t in (BOOL, INT)),
        graph.add_variable(FLOAT, (2,), tile=0),
    )
    for kind, call in (
        (errors.ElementTypeError, lambda: popops.reduce(graph, b, [0], Operation.ADD, prog)),
        (errors.ElementTypeError, lambda: popops.reduce(graph, f, [0], Operation.LOGICAL_OR, prog)),
        (errors.ElementTypeError, lambda: popops.reduce(graph, f, [0], Operation.MAX, prog, out_type=HALF)),
        (errors.ElementTypeError, lambda: popops.reduce(graph, i, [0], Operation.ADD, prog, out_type=FLOAT)),
        (errors.ElementTypeError, lambda: popops.reduce(graph, i, [0], ReduceParams(Operation.ADD, scale=s[0]), prog)),
        (errors.ElementTypeError, lambda: ReduceParams(Operation.ADD, scale=s)),
        (errors.GraphError, lambda: ReduceParams(Operation.MAX, scale=s[0])),
        (errors.GraphError, lambda: ReduceParams("ADD")),
        (errors.GraphError, lambda: popops.reduce(graph, f, [0], ReduceParams(Operation.ADD, True), prog)),
        (errors.ShapeError, lambda: popops.reduce(graph, f, [2], Operation.ADD, prog)),
        (errors.ShapeError, lambda: popops.reduce(graph, f, [-1], Operation.ADD, prog)),
        (errors.ShapeError, lambda: popops.reduce_with_output(graph, f, s, [0], Operation.ADD, prog)),
        (errors.GraphError, lambda: popops.reduce_with_output(graph, f, s[0].expand([0]).broadcast(5, 0), [0], Operation.ADD, prog)),
        (errors.OptionError, lambda: popops.reduce(graph, f, [0], Operation.ADD, prog, options={"accumType.interTiles": "half"})),
        (errors.ControlProgramError, lambda: popops.reduce(graph, f, [0], Operation.ADD, None)),
    ):  # fmt: skip
        with pytest.raises(kind, match="try: "):
            call()
    assert not prog.programs
    unmapped = graph.add_variable(FLOAT, (5,))
    popops.reduce_with_output(graph, f, unmapped, [0], Operation.ADD, prog)
    assert graph.get_tile_mapping(unmapped, require_complete=True)
