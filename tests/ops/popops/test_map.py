"""Expressions: types, constants, views, mappings, aliases. Both engines, against NumPy."""

import math
import subprocess
import sys
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import popcore as pc
from popcore import errors, program
from popcore.graph import concat
from popcore.ops import popops
from popcore.ops.popops import expr
from popcore.ops.popops.expr import Cast, Const, ConstHalf, IsFinite, IsInf, IsNaN, Select, _1, _2, _3
from popcore.types import BOOL, FLOAT, HALF, INT, UNSIGNED_INT
from tests.ops.popops.runs import TILES, mapped, new_graph, run, shapes, values

DRAWN = settings(deadline=None, max_examples=40, suppress_health_check=list(HealthCheck))


@DRAWN
@given(st.data(), shapes(), st.sampled_from([FLOAT, HALF, INT]))
def test_any_view_and_mapping(data, shape, dtype):
    """
    A fused expression of two tensors, one broadcast, to a new tensor and in place.
    """
    graph, prog = new_graph(), program.Sequence()
    cut = data.draw(st.integers(0, len(shape)))
    other = tuple(1 if data.draw(st.booleans()) else n for n in shape[cut:])
    a, av, see_a = data.draw(mapped(graph, dtype, shape, "a"))
    b, bv, see_b = data.draw(mapped(graph, dtype, other, "b"))
    c = popops.map(graph, (_1 + _2) * 2 - _1, [av, bv], prog)
    popops.map_in_place(graph, _2 - _1, [av, bv], prog)
    x, y = values(dtype, a.shape, 1), values(dtype, b.shape, 2)
    found = run(graph, prog, {a: x, b: y}, {"a": av, "b": b, "c": c})
    np.testing.assert_array_equal(found["c"], see_a(x) + 2 * see_b(y))
    np.testing.assert_array_equal(found["a"], np.broadcast_to(see_b(y) - see_a(x), av.shape))
    np.testing.assert_array_equal(found["b"], y)
    assert c.shape == av.shape


@pytest.mark.parametrize("n", [0, 1, 2, 5, 6, 7, 23, 24, 25, 65_537, (1 << 18) + 1])
def test_every_element_once_whatever_their_number(n):
    """
    On one tile, six workers.
    """
    graph, prog = new_graph(), program.Sequence()
    a = graph.add_variable(HALF, (n,), tile=3)
    popops.add_in_place(graph, a, 1, prog)
    x = (np.arange(n) % 100).astype(np.float16)
    found = run(graph, prog, {a: x}, {"a": a}, (pc.Engine,) if n > 100 else (pc.ReferenceEngine, pc.Engine))
    np.testing.assert_array_equal(found["a"], x + np.float16(1))
    assert sum(g.count for cs in graph.compute_sets for g in cs.groups.values()) == (-(-n // (-(-n // 24) * 4)) if n else 0)


def test_many_scattered_elements_are_gathered():
    """
    A mapping element by element does not make a vertex for each.
    """
    graph, prog = new_graph(), program.Sequence()
    a = graph.add_variable(FLOAT, (1200,))
    graph.map_intervals(a, np.arange(1200), np.ones(1200, int), np.arange(1200) % TILES)
    b = popops.square(graph, a, prog)
    popops.neg_in_place(graph, a, prog)
    x = values(FLOAT, (1200,))
    found = run(graph, prog, {a: x}, {"a": a, "b": b}, (pc.Engine,))
    np.testing.assert_array_equal(found["a"], -x)
    np.testing.assert_array_equal(found["b"], x * x)
    assert all(g.count == 6 * TILES for cs in graph.compute_sets for g in cs.groups.values())


def test_a_result_lives_where_its_operand_does():
    """
    Also that of a transposed operand, and without cutting it to pieces.
    """
    graph, prog = new_graph(), program.Sequence()
    a = graph.add_variable(FLOAT, (60, 20), "linear")
    b = popops.exp(graph, a.transpose(), prog)
    assert graph.get_tile_mapping(b.transpose()) == graph.get_tile_mapping(a)
    assert all(g.count <= 6 * TILES for cs in graph.compute_sets for g in cs.groups.values())
    one = graph.add_constant(FLOAT, (60, 20), 1, tile=0)
    assert graph.get_tile_mapping(popops.add(graph, one, a, prog)) == graph.get_tile_mapping(a)


def test_one_tensor_twice_and_parts_of_itself():
    """
    What is read is what was there before, in any arrangement.
    """
    graph, prog = new_graph(), program.Sequence()
    a, b, c, d = (graph.add_variable(FLOAT, (8,), "linear") for _ in range(4))
    popops.add_in_place(graph, a, a, prog)
    popops.mul_in_place(graph, b, b.reverse(0), prog)
    popops.mul_in_place(graph, c, c[2], prog)
    popops.map_with_output(graph, _1 + _2, [d[:7], d[1:]], d[1:], prog)
    x = np.arange(1, 9, dtype=np.float32)
    found = run(graph, prog, dict.fromkeys((a, b, c, d), x), {"a": a, "b": b, "c": c, "d": d})
    np.testing.assert_array_equal(found["a"], 2 * x)
    np.testing.assert_array_equal(found["b"], x * x[::-1])
    np.testing.assert_array_equal(found["c"], x * 3)
    np.testing.assert_array_equal(found["d"], [1, *(x[:7] + x[1:])])


def test_what_cannot_be_written_is_refused():
    """
    An element twice, a broadcast, a constant, no mapping, another shape or type: the tensor is named.
    """
    graph, prog = new_graph(), program.Sequence()
    x = graph.add_variable(FLOAT, (4,), "linear", name="x")
    for t in (concat([x, x]), x.expand([0]).broadcast(3, 0), graph.add_constant(FLOAT, (4,), 1, tile=0, name="x")):
        with pytest.raises(errors.GraphError, match="x"):
            popops.add_in_place(graph, t, 1, prog)
    with pytest.raises(errors.TileMappingError, match="bare"):
        popops.add_in_place(graph, graph.add_variable(FLOAT, (4,), name="bare"), 1, prog)
    with pytest.raises(errors.ShapeError):
        popops.add_in_place(graph, x, graph.add_variable(FLOAT, (3, 4), "linear"), prog)
    with pytest.raises(errors.ShapeError):
        popops.add(graph, x, graph.add_variable(FLOAT, (3,), "linear"), prog)
    with pytest.raises(errors.ElementTypeError, match="Cast"):
        popops.map_in_place(graph, _1 > 0, [x], prog)
    with pytest.raises(errors.GraphError, match="_2"):
        popops.map(graph, _1 + _2, [x], prog)
    with pytest.raises(errors.ControlProgramError):
        popops.map(graph, _1 + 1, [x], None)


def test_constants_take_the_type_beside_them():
    """
    Wherever in the expression they stand; and a Select with one constant has the type of its tensor.
    """
    graph, prog = new_graph(), program.Sequence()
    arrays = {t: np.array([3, 0, 2, 1], t.numpy) for t in (FLOAT, HALF, INT, UNSIGNED_INT)}
    truth = graph.add_variable(BOOL, (4,), "linear")
    tensors, wanted, reads = {truth: np.array([1, 0, 1, 0], bool)}, {}, {}
    for dtype, x in arrays.items():
        t = graph.add_variable(dtype, (4,), "linear")
        tensors[t] = x
        for i, (e, y) in enumerate(
            {
                Select(Const(1), _1, _2): np.where(tensors[truth], 1, x),
                Select(_1, 1, _2): np.where(tensors[truth], x, 1),
                (2 + Const(1)) * _1: 3 * x,
                Select(_1, 7, (_1 > 1) & (_1 <= 2)): np.where((x > 1) & (x <= 2), x, 7),
            }.items()
        ):
            made = popops.map(graph, e, [t, truth], prog)
            assert made.dtype is dtype
            reads[f"{dtype} {i}"], wanted[f"{dtype} {i}"] = made, y
    for name, array in run(graph, prog, tensors, reads).items():
        np.testing.assert_array_equal(array, wanted[name], err_msg=name)


def test_constants_keep_a_type_they_were_given():
    """
    Which then has to fit.
    """
    graph, prog = new_graph(), program.Sequence()
    h, f = (graph.add_variable(t, (4,), "linear") for t in (HALF, FLOAT))
    assert popops.map(graph, _1 + ConstHalf(0.1), [h], prog).dtype is HALF
    assert popops.map(graph, Const(2) * 3.5, [], prog).dtype is FLOAT
    assert popops.map(graph, Const(np.float32(2)) + 1, [], prog).dtype is FLOAT
    for e in (_1 + ConstHalf(1), _1 + Const(1, INT), _1 + np.float16(1)):
        with pytest.raises(errors.ElementTypeError):
            popops.map(graph, e, [f], prog)
    with pytest.raises(errors.ElementTypeError):
        Const("1")
    with pytest.warns(pc.PopcoreWarning, match="HALF makes 0"):
        popops.map(graph, _1 + 1e-9, [h], prog)
    with pytest.raises(errors.GraphError, match="Select"):
        bool(_1 > 0)


@pytest.mark.parametrize("dtype", [FLOAT, HALF], ids=repr)
def test_questions_about_special_values(dtype):
    """
    Of a tensor and of a constant.
    """
    x = np.array([np.nan, np.inf, -np.inf, 0, -0.0, 65504], dtype.numpy)
    graph, prog = new_graph(), program.Sequence()
    a = graph.add_variable(dtype, (6,), "linear")
    kinds = {"nan": (IsNaN, np.isnan), "inf": (IsInf, np.isinf), "finite": (IsFinite, np.isfinite)}
    reads = {name: popops.map(graph, e(_1), [a], prog) for name, (e, _) in kinds.items()}
    reads |= {f"{name} {v}": popops.map(graph, e(Const(float(v), dtype)), [], prog) for name, (e, _) in kinds.items() for v in x[:3]}
    found = run(graph, prog, {a: x}, reads)
    for name, (_, function) in kinds.items():
        np.testing.assert_array_equal(found[name], function(x))
        assert [found[f"{name} {v}"] for v in x[:3]] == function(x[:3]).tolist()


def test_integers_wrap_within_an_expression():
    """
    Not only where the result is stored.
    """
    graph, prog = new_graph(), program.Sequence()
    i, u = graph.add_variable(INT, (2,), "linear"), graph.add_variable(UNSIGNED_INT, (2,), "linear")
    reads = {
        "shifted": popops.map(graph, (_1 + 1) / 2, [i], prog),
        "below": popops.map(graph, _1 - 1 > 5, [u], prog),
        "wide": popops.map(graph, Cast(_1 * _1, FLOAT), [i], prog),
        "logical": popops.map(graph, _1 >> 1, [i], prog),
    }
    found = run(graph, prog, {i: np.array([2**31 - 1, -8], np.int32), u: np.array([0, 3], np.uint32)}, reads)
    assert found["shifted"].tolist() == [-(2**30), -3]
    assert found["below"].tolist() == [True, False]
    assert found["wide"].tolist() == [1, 64]
    assert found["logical"].tolist() == [2**30 - 1, 2147483644]


@st.composite
def expressions(draw, depth=3):
    """An expression of FLOAT placeholders and what NumPy makes of it, in FLOAT."""
    if depth == 0 or draw(st.integers(0, 4)) == 0:
        k = draw(st.integers(0, 3))
        return (Const(k - 1.5), lambda *_: np.float32(k - 1.5)) if k else (_1, lambda x, y: x)
    a, f = draw(expressions(depth=depth - 1))
    b, g = draw(st.one_of(expressions(depth=depth - 1), st.just((_2, lambda x, y: y))))
    return draw(
        st.sampled_from(
            [
                (a + b, lambda x, y: f(x, y) + g(x, y)), (a - b, lambda x, y: f(x, y) - g(x, y)), (a * b, lambda x, y: f(x, y) * g(x, y)),
                (-a, lambda x, y: -f(x, y)), (abs(b), lambda x, y: np.abs(g(x, y))), (expr.Sqrt(abs(a)), lambda x, y: np.sqrt(np.abs(f(x, y)))),
                (Select(a, b, a < b), lambda x, y: np.where(f(x, y) < g(x, y), f(x, y), g(x, y))),
            ]
        )
    )  # fmt: skip


@settings(DRAWN, max_examples=15)
@given(st.lists(expressions(), min_size=1, max_size=6))
def test_drawn_expressions(drawn):
    """
    Operations that NumPy does exactly as a tile: equal bit for bit.
    """
    graph, prog = new_graph(), program.Sequence()
    a, b = (graph.add_variable(FLOAT, (7,), "linear") for _ in range(2))
    made = {str(i): popops.map(graph, e + _1 * 0, [a, b], prog) for i, (e, _) in enumerate(drawn)}
    x, y = (np.random.default_rng(i).normal(size=7).astype(np.float32) for i in range(2))
    found = run(graph, prog, {a: x, b: y}, made)
    for i, (_, f) in enumerate(drawn):
        np.testing.assert_array_equal(found[str(i)], np.asarray(f(x, y) + x * np.float32(0), np.float32))


def test_half_rounds_each_step():
    """
    And a function of one only once.
    """
    graph, prog = new_graph(), program.Sequence()
    a = graph.add_variable(HALF, (2000,), "linear")
    reads = {"steps": popops.map(graph, _1 * _1 + _1, [a], prog), "once": popops.sigmoid(graph, a, prog)}
    x = np.random.default_rng(0).normal(size=2000).astype(np.float16)
    found = run(graph, prog, {a: x}, reads, (pc.Engine,))
    np.testing.assert_array_equal(found["steps"], x * x + x)
    np.testing.assert_allclose(found["once"], (1 / (1 + np.exp(-x.astype(float)))).astype(np.float16), rtol=1e-3)


def test_an_op_type_stands_for_its_expression():
    """
    As in PopLibs; and the expression knows how many operands it has.
    """
    graph, prog = new_graph(), program.Sequence()
    a = graph.add_variable(FLOAT, (3,), "linear")
    reads = {"exp": popops.map(graph, popops.UnaryOpType.EXPONENT, [a], prog), "sum": popops.map(graph, popops.BinaryOpType.ADD, [a, a], prog)}
    popops.map_in_place(graph, popops.TernaryOpType.SELECT, [a, a, popops.gt(graph, a, 0, prog)], prog)
    assert set(run(graph, prog, {a: np.zeros(3, np.float32)}, reads)["exp"]) == {1}
    with pytest.raises(errors.GraphError, match="2 of them"):
        popops.map(graph, popops.BinaryOpType.ADD, [a], prog)


def test_a_compute_set_instead_of_a_program():
    """
    Several operations in one step.
    """
    graph, prog = new_graph(), program.Sequence()
    a = graph.add_variable(FLOAT, (3,), "linear")
    cs = graph.add_compute_set("both")
    reads = {"b": popops.add(graph, a, 1, cs), "c": popops.cast(graph, a, INT, cs)}
    prog.add(program.Execute(cs))
    found = run(graph, prog, {a: np.array([1.5, 2, 3], np.float32)}, reads)
    assert (found["b"].tolist(), found["c"].tolist()) == ([2.5, 3, 4], [1, 2, 3])


def test_the_source_is_the_same_in_every_process():
    """
    So the code is found in the cache again.
    """
    graph = new_graph()
    a = graph.add_variable(FLOAT, (3,), "linear")
    text = (
        "from tests.ops.popops.runs import *; from popcore.ops import popops; from popcore.ops.popops.expr import _1, Exp; g = new_graph();"
        "a = g.add_variable(FLOAT, (3,), 'linear'); print(popops.output_generated_codelet(Exp(_1) * 0.3 + _1, [a]))"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    source = popops.output_generated_codelet(expr.Exp(_1) * 0.3 + _1, [a])
    assert done.stdout.strip() == source.strip()
    assert "math.exp(in1)" in source


def test_one_odd_element_out():
    """
    A tensor on one tile but for one element, times a constant of one element elsewhere.
    """
    graph, prog = new_graph(), program.Sequence()
    a = graph.add_variable(FLOAT, (2, 2, 2, 2), tile=0)
    graph.set_tile_mapping(a[0, 1, 1], 3)
    popops.mul_in_place(graph, a, graph.add_constant(FLOAT, (), 0.5, tile=5), prog)
    x = values(FLOAT, a.shape)
    np.testing.assert_array_equal(run(graph, prog, {a: x}, {"a": a})["a"], x / 2)


def test_a_virtual_graph():
    """
    Results stay on its tiles.
    """
    whole = new_graph()
    graph, prog = whole.create_virtual_graph([1, 3]), program.Sequence()
    a = graph.add_variable(FLOAT, (100,), "linear")
    b = popops.map(graph, _1 * 2, [a], prog)
    assert {i for i, m in enumerate(whole.get_tile_mapping(b)) if m} <= {1, 3}
    x = values(FLOAT, (100,))
    np.testing.assert_array_equal(run(whole, prog, {a: x}, {"b": b})["b"], 2 * x)


def test_three_tensors_of_different_ranks():
    """
    Broadcast as NumPy does.
    """
    graph, prog = new_graph(), program.Sequence()
    ts = [graph.add_variable(FLOAT, s, "linear") for s in ((3, 1, 4), (2, 1), ())]
    out = popops.map(graph, _1 * _2 + _3, ts, prog)
    xs = [values(FLOAT, t.shape, i) for i, t in enumerate(ts)]
    np.testing.assert_array_equal(run(graph, prog, dict(zip(ts, xs, strict=True)), {"out": out})["out"], xs[0] * xs[1] + xs[2])
    assert math.prod(out.shape) == 24
    with warnings.catch_warnings():
        assert popops.map(graph, _1 + 1, [graph.add_variable(FLOAT, (0, 3), "linear")], prog).shape == (0, 3)
