"""Casts, fills, scaled additions, padding, one-hot rows, counted loops. Both engines, against NumPy."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import popcore as pc
from popcore import Output, Vector, Vertex, errors, program
from popcore.graph import concat
from popcore.ops import popops
from popcore.types import BOOL, CHAR, FLOAT, HALF, INT, SHORT, UNSIGNED_CHAR, UNSIGNED_INT
from tests.ops.popops.runs import DTYPES, mapped, new_graph, run, shapes, values

DRAWN = settings(deadline=None, max_examples=30, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("source", DTYPES, ids=repr)
def test_casts_between_all_types(source):
    """
    Values that the other type holds, in a view.
    """
    graph, prog = new_graph(), program.Sequence()
    t = graph.add_variable(source, (4, 5), "linear")
    kinds = [*DTYPES, SHORT, UNSIGNED_CHAR, CHAR]
    reads = {d.__name__: popops.cast(graph, t.transpose(), d, prog) for d in kinds}
    x = np.abs(values(source, (4, 5)))
    found = run(graph, prog, {t: x}, reads)
    for d in kinds:
        assert found[d.__name__].dtype == d.numpy
        np.testing.assert_array_equal(found[d.__name__], x.T.astype(d.numpy))


def test_casts_round_and_stop_at_limits():
    """
    To integers toward zero, whatever their width; to HALF the nearest, 65504 above its range, and NaN for infinity.
    """
    graph, prog = new_graph(), program.Sequence()
    t, big = graph.add_variable(FLOAT, (5,), "linear"), graph.add_variable(FLOAT, (6,), "linear")
    reads = {d.__name__: popops.cast(graph, t, d, prog) for d in (CHAR, SHORT, INT)}
    reads |= {f"big {d.__name__}": popops.cast(graph, big, d, prog) for d in (CHAR, UNSIGNED_INT, HALF)}
    out = graph.add_variable(HALF, (5,), "linear")
    popops.cast_with_output(graph, t, out, prog)
    found = run(
        graph,
        prog,
        {t: np.array([2.5, -2.5, 0.9, -0.9, 1.5], np.float32), big: np.array([65519, 65520, -1e6, np.nan, np.inf, 0.1], np.float32)},
        reads | {"out": out},
    )
    assert all(found[d].tolist() == [2, -2, 0, 0, 1] for d in ("CHAR", "SHORT", "INT"))
    assert found["big CHAR"].tolist() == [127, 127, -128, 0, 127, 0]
    assert found["big UNSIGNED_INT"].tolist() == [65519, 65520, 0, 0, 2**32 - 1, 0]
    np.testing.assert_array_equal(found["big HALF"], np.array([65504, 65504, -65504, np.nan, np.nan, 0.1], np.float16))
    assert found["out"].tolist()[0] == 2.5


def test_a_cast_to_the_same_type_is_a_copy():
    """
    Without a compute set.
    """
    graph, prog = new_graph(), program.Sequence()
    t = graph.add_variable(FLOAT, (5,), "linear")
    out = popops.cast(graph, t, FLOAT, prog)
    assert [type(p) for p in prog.programs] == [program.Copy]
    np.testing.assert_array_equal(run(graph, prog, {t: values(FLOAT, (5,))}, {"out": out})["out"], values(FLOAT, (5,)))
    with pytest.raises(errors.ShapeError):
        popops.cast_with_output(graph, t, graph.add_variable(HALF, (4,), "linear"), prog)


def test_whether_a_number_survives_as_half():
    """
    Within a tolerance, and finite.
    """
    graph, prog = new_graph(), program.Sequence()
    t = graph.add_variable(FLOAT, (4,), "linear")
    reads = {str(i): popops.check_accuracy_when_cast(graph, t[i], HALF, 1e-3, prog) for i in range(4)}
    found = run(graph, prog, {t: np.array([0.5, 0.1, 1e6, 1e-9], np.float32)}, reads)
    assert [bool(found[str(i)]) for i in range(4)] == [True, True, False, False]


@DRAWN
@given(st.data(), shapes(), st.sampled_from([*DTYPES, SHORT]))
def test_fill_any_view(data, shape, dtype):
    """
    And nothing beside it.
    """
    graph, prog = new_graph(), program.Sequence()
    t, view, see = data.draw(mapped(graph, dtype, shape))
    popops.fill(graph, view, prog, 1)
    x = values(dtype, t.shape)
    found = run(graph, prog, {t: x}, {"t": t})["t"]
    see(x)[...] = 1
    np.testing.assert_array_equal(found, x)


def test_fill_zero_iota():
    """
    An element twice is written once; a constant not at all.
    """
    graph, prog = new_graph(), program.Sequence()
    a, i, u = graph.add_variable(HALF, (4,), "linear"), graph.add_variable(INT, (3, 5), "linear"), graph.add_variable(UNSIGNED_INT, (40,), "linear")
    popops.fill(graph, concat([a[:2], a[:3]]), prog, 2.5)
    popops.zero(graph, a[1:2], prog)
    popops.iota(graph, i.transpose(), -3, prog)
    popops.iota(graph, u, 2**32 - 5, prog)
    found = run(graph, prog, {a: np.ones(4, np.float16)}, {"a": a, "i": i, "u": u})
    assert found["a"].tolist() == [2.5, 0, 2.5, 1]
    np.testing.assert_array_equal(found["i"].T, np.arange(-3, 12).reshape(5, 3))
    np.testing.assert_array_equal(found["u"], np.arange(40, dtype=np.uint32) + np.uint32(2**32 - 5))
    for kind, call in (
        (errors.GraphError, lambda: popops.zero(graph, graph.add_constant(FLOAT, (2,), 1, tile=0), prog)),
        (errors.ValueRangeError, lambda: popops.fill(graph, i, prog, 0.5)),
        (errors.ElementTypeError, lambda: popops.iota(graph, a, 0, prog)),
        (errors.TileMappingError, lambda: popops.zero(graph, graph.add_variable(FLOAT, (2,)), prog)),
    ):
        with pytest.raises(kind):
            call()


@pytest.mark.parametrize("types", [(FLOAT, FLOAT), (HALF, HALF), (HALF, FLOAT), (FLOAT, HALF), (INT, INT)], ids=repr)
def test_scaled_add(types):
    """
    Scales as numbers and as tensors; one or two of them.
    """
    graph, prog = new_graph(), program.Sequence()
    kind = INT if INT in types else FLOAT
    a, b, c, d = (graph.add_variable(types[0], (7,), "linear") for _ in range(4))
    y, s = graph.add_variable(types[1], (7,), "linear"), graph.add_variable(kind, (1,), tile=3)
    popops.scaled_add_to(graph, a, y, 3, prog)
    popops.scaled_add_to(graph, b, s, y, 2, prog, "step")
    popops.scaled_subtract_from(graph, c, y, s, prog, options={"optimizeForSpeed": True, "scaleFloatToHalfTolerance": 1e-3})
    popops.scaled_add_to(graph, d, 2, y, s, prog, specialisation=popops.ScaledAddSpecialisation.X_MINUS_AX_PLUS_BY)
    x, z, k = values(types[0], (7,)), values(types[1], (7,), 1), np.array([4], kind.numpy)
    found = run(graph, prog, {**dict.fromkeys((a, b, c, d), x), y: z, s: k}, {"a": a, "b": b, "c": c, "d": d})
    for name, array in {"a": x + 3 * z, "b": 4 * x + 2 * z, "c": x - 4 * z, "d": x - 2 * x + 4 * z}.items():
        np.testing.assert_array_equal(found[name], array.astype(types[0].numpy))


def test_a_scaled_addition_takes_what_a_vertex_made_for_it_takes():
    """
    PopLibs' estimate, three cycles for four HALF elements of a worker, not that of conversions one by one.
    """
    graph, prog = new_graph(), program.Sequence()
    a, b = (graph.add_variable(HALF, (6 * 400,), tile=0) for _ in range(2))
    popops.scaled_add_to(graph, a, b, 0.5, prog)
    engine = pc.Engine(graph, prog)
    engine.run()
    assert engine.profile().cycles_by_kind["compute"] == 6 * (29 + 3 * 100) + 6


def test_a_scale_that_half_cannot_hold_is_kept():
    """
    0.1 of a HALF is rounded once, at the end.
    """
    graph, prog = new_graph(), program.Sequence()
    a, b = (graph.add_variable(HALF, (1000,), "linear") for _ in range(2))
    popops.scaled_add_to(graph, a, b, 0.1, prog)
    x, y = (np.random.default_rng(i).normal(size=1000).astype(np.float16) for i in range(2))
    found = run(graph, prog, {a: x, b: y}, {"a": a}, (pc.Engine,))["a"]
    np.testing.assert_array_equal(found, (x.astype(np.float32) + np.float32(0.1) * y.astype(np.float32)).astype(np.float16))
    with pytest.raises(errors.ElementTypeError):
        popops.scaled_add_to(graph, a, popops.cast(graph, b, INT, prog), 1, prog)
    with pytest.raises(errors.ShapeError):
        popops.scaled_add_to(graph, a, b[:5], 1, prog)
    with pytest.raises(errors.GraphError, match="scale_b"):
        popops.scaled_add_to(graph, a, b)


@DRAWN
@given(st.data(), shapes(max_rank=2, max_side=4), st.sampled_from([7, popops.PaddingType.EDGE, popops.PaddingType.REFLECT]))
def test_pad(data, shape, value):
    """
    As NumPy pads; negative numbers cut off.
    """
    graph, prog = new_graph(), program.Sequence()
    t, view, see = data.draw(mapped(graph, FLOAT, shape))
    limit = 3 if value == 7 else 2
    lower, upper = ([data.draw(st.integers(-1, limit)) for _ in shape] for _ in range(2))
    x = values(FLOAT, t.shape)
    cut = [(max(0, -a), n - max(0, -b)) for n, a, b in zip(shape, lower, upper, strict=True)]
    grow = [(max(0, a), max(0, b)) for a, b in zip(lower, upper, strict=True)]
    too_much = any(a > b for a, b in cut)
    few = [b - a for a, b in cut]
    too_much |= value is popops.PaddingType.EDGE and any(n == 0 and max(g) for n, g in zip(few, grow, strict=True))
    too_much |= value is popops.PaddingType.REFLECT and any(max(g) >= max(n, 1) and max(g) for n, g in zip(few, grow, strict=True))
    if too_much:
        with pytest.raises(errors.ShapeError):
            popops.pad(graph, view, lower, upper, value)
        return
    out = popops.pad(graph, view, lower, upper, value)
    mode = {"mode": "constant", "constant_values": 7} if value == 7 else {"mode": value.name.lower()}
    kept = see(x)[tuple(slice(a, b) for a, b in cut)]
    wanted = np.pad(kept, grow, **mode) if shape else kept
    np.testing.assert_array_equal(run(graph, prog, {t: x}, {"out": out})["out"], wanted)


def test_one_hot():
    """
    Any element type; an index outside, or the masked one, leaves its row off.
    """
    graph, prog = new_graph(), program.Sequence()
    i = graph.add_variable(UNSIGNED_INT, (5,), "linear")
    outs = {d.__name__: graph.add_variable(d, (5, 4), "linear") for d in (FLOAT, HALF, INT)}
    for out in outs.values():
        popops.encode_one_hot(graph, i, out, prog, on=2, off=1)
    found = run(graph, prog, {i: np.array([0, 3, popops.MASKED_LABEL_CODE, 4, 2], np.uint32)}, outs)
    wanted = np.ones((5, 4))
    wanted[[0, 1, 4], [0, 3, 2]] = 2
    for array in found.values():
        np.testing.assert_array_equal(array, wanted)
    with pytest.raises(errors.ShapeError):
        popops.encode_one_hot(graph, i, outs["INT"][:3], prog)


class Iota(Vertex):
    """A codelet of the user's, called as one of popops is."""

    out: Output[Vector[INT]]

    def compute(self):
        for i in range(len(self.out)):
            self.out[i] = 7


def test_names_of_codelets_do_not_meet_the_users():
    """
    Both in one graph; and popops' can be told apart in a profile.
    """
    graph, prog = new_graph(), program.Sequence()
    a, b = (graph.add_variable(INT, (3,), tile=0) for _ in range(2))
    cs = graph.add_compute_set("both")
    popops.iota(graph, a, 0, cs)
    graph.add_vertex(cs, Iota, {"out": b}, tile=0)
    prog.add(program.Execute(cs))
    found = run(graph, prog, {}, {"a": a, "b": b})
    assert (found["a"].tolist(), found["b"].tolist()) == ([0, 1, 2], [7, 7, 7])
    assert [c.name for c in cs.groups] == ["popops::Iota<int>", "Iota"]


def add_to(graph, total, what):
    """A step that adds ``what`` to ``total``."""
    made = program.Sequence()
    popops.add_in_place(graph, total, what, made)
    return made


@pytest.mark.parametrize("rounds", [(4,), (2, 9, 3), (9, 1, -3), (-3, 2, 1)])
def test_counted_loop(rounds):
    """
    The body sees each number of the range; of none at all it is refused.
    """
    graph, prog = new_graph(), program.Sequence()
    total, count = graph.add_variable(INT, (), tile=1), graph.add_variable(INT, (), tile=1)
    body = lambda c: program.Sequence(add_to(graph, total, c.reinterpret(INT)), add_to(graph, count, 1))  # noqa: E731
    prog.add(popops.counted_loop(graph, *rounds, body))
    found = run(graph, prog, {total: np.int32(0), count: np.int32(0)}, {"total": total, "count": count})
    assert (found["total"], found["count"]) == (sum(range(*rounds)), len(range(*rounds)))
    for wrong in ((0,), (3, 3, 1), (0, 5, 0), (0, 5, -1)):
        with pytest.raises(errors.ControlProgramError):
            popops.counted_loop(graph, *wrong, body)


def test_counted_for_loop():
    """
    The limit is read at run time; zero rounds are fine.
    """
    graph, prog = new_graph(), program.Sequence()
    total, counter, limit = (graph.add_variable(INT, (), tile=k) for k in range(3))
    prog.add(popops.counted_for_loop(graph, counter, 3, limit, 2, add_to(graph, total, counter)))
    prog.add(popops.counted_for_loop(graph, counter, 3, limit, -4, add_to(graph, total, 100)))
    found = run(graph, prog, {total: np.int32(0), limit: np.int32(8)}, {"total": total, "counter": counter})
    assert (found["total"], found["counter"]) == (15, 3)
    with pytest.raises(errors.ControlProgramError):
        popops.counted_for_loop(graph, counter, 0, limit, 0, prog)
    assert BOOL in DTYPES
