"""Known traps, group D: half precision, NaN and infinity."""

import numpy as np
import pytest

import popcore as pc
from popcore import FLOAT, HALF, FloatingPointBehaviour, PopcoreWarning, errors, program
from popcore.ops import poplin, popops
from popcore.ops.popops import Operation
from popcore.ops.popops.expr import IsFinite, IsInf, IsNaN, _1

OFF = FloatingPointBehaviour(False, False, False, False, False)
NANOO = FloatingPointBehaviour(False, False, False, False, True)


def given(bench, dtype, values, name="x"):
    return bench.variable(name, np.array(values, dtype.numpy), dtype)


def results(any_engine, bench, prog, mode="device", **tensors):
    """What tensors hold after a run."""
    for name, t in tensors.items():
        bench.graph.create_host_read(name, t)
    engine = any_engine(bench.graph, prog, options={"target.floatingPoint": mode})
    engine.run()
    return [engine.read_tensor(name) for name in tensors]


def test_d1_a_sum_of_halves_is_accumulated_in_float(any_engine, bench):
    """Case D1: 8192 and 99 ones are 8288, in the end; accumulated in half they would stay 8192."""
    prog = program.Sequence()
    total = popops.reduce(bench.graph, given(bench, HALF, [8192, *[1] * 99]), [0], Operation.ADD, prog)
    assert results(any_engine, bench, prog, total=total)[0] == 8288


@pytest.mark.parametrize(("dtype", "x"), [(FLOAT, 1e30), (HALF, 60000)])
def test_d2_overflow_stops_the_program_where_that_is_asked_for(any_engine, bench, dtype, x):
    """Case D2: with a behaviour as it is made, naming tile and vertex; else infinity in FLOAT, 65504 or NaN in HALF."""
    for behaviour, wanted in ((FloatingPointBehaviour(), None), (OFF, np.inf if dtype is FLOAT else 65504), (NANOO, np.inf if dtype is FLOAT else np.nan)):
        prog = program.Sequence()
        pc.set_floating_point_behaviour(bench.graph, prog, behaviour)
        a = bench.graph.add_constant(dtype, (1,), x, tile=2)
        product = popops.mul(bench.graph, a, a, prog)
        if wanted is None:
            with pytest.raises(errors.FloatingPointVertexError, match=r"vertex 0 on tile 2, .*\n  stopped at an overflow \(oflo\)"):
                any_engine(bench.graph, prog).run()
        else:
            found = results(any_engine, bench, prog, **{f"product {behaviour.bits}": product})
            np.testing.assert_array_equal(found[0], np.array([wanted], dtype.numpy))


@pytest.mark.parametrize(("mode", "sums", "casts"), [("device", 65504, [65504] * 3), ("ieee", np.inf, [65504, np.inf, np.inf])])
def test_d3_half_clips_at_its_greatest_number(any_engine, bench, mode, sums, casts):
    """Case D3: 60000 + 60000, and casts of 65519, 65520 and a million; infinity with IEEE arithmetic."""
    prog = program.Sequence()
    a = given(bench, HALF, [60000])
    total = popops.add(bench.graph, a, a, prog)
    cast = popops.cast(bench.graph, given(bench, FLOAT, [65519, 65520, 1e6], "wide"), HALF, prog)
    found = results(any_engine, bench, prog, mode, total=total, cast=cast)
    np.testing.assert_array_equal(found[0], np.float16([sums]))
    np.testing.assert_array_equal(found[1], np.float16(casts))


def test_d5_a_clamp_without_an_upper_limit_changes_nothing(any_engine, bench):
    """Case D5: the greatest FLOAT as the limit of halves."""
    prog = program.Sequence()
    data = np.random.default_rng(0).random((2, 7)).astype(np.float16)
    with pytest.warns(PopcoreWarning, match="HALF makes inf of 3.40"):
        clamped = popops.clamp(bench.graph, given(bench, HALF, data), -1.5, float(np.finfo(np.float32).max), prog)
    np.testing.assert_array_equal(results(any_engine, bench, prog, clamped=clamped)[0], data)


@pytest.mark.parametrize("dtype", [FLOAT, HALF], ids=repr)
def test_d7_questions_see_what_the_host_sent(any_engine, bench, dtype):
    """Case D7: infinities of the host are raw bytes, and stay, though no arithmetic makes one in HALF."""
    prog, x = program.Sequence(), np.array([np.nan, np.inf, -np.inf, 0, -0.0, 65504], dtype.numpy)
    t = given(bench, dtype, x)
    asked = {"nan": popops.map(bench.graph, IsNaN(_1), [t], prog), "inf": popops.map(bench.graph, IsInf(_1), [t], prog)}
    asked["finite"] = popops.map(bench.graph, IsFinite(_1), [t], prog)
    found = results(any_engine, bench, prog, **asked)
    for each, function in zip(found, (np.isnan, np.isinf, np.isfinite), strict=True):
        np.testing.assert_array_equal(each, function(x))


def test_d14_a_product_drops_what_its_output_held(any_engine, bench):
    """Case D14: NaN that was there does not get in."""
    graph, prog = bench.graph, program.Sequence()
    a, x = given(bench, FLOAT, np.eye(2), "a"), given(bench, FLOAT, [[1], [2]])
    out = given(bench, FLOAT, [[np.nan], [np.nan]], "out")
    poplin.mat_mul_with_output(graph, a, x, out, prog)
    assert results(any_engine, bench, prog, product=out)[0].ravel().tolist() == [1, 2]


def test_d17_a_constant_that_half_cannot_hold_is_told_of(any_engine, bench):
    """Case D17: one that vanishes or overflows warns, which Python's filters make an error; a scale is not narrowed."""
    graph, prog = bench.graph, program.Sequence()
    with pytest.warns(PopcoreWarning, match=r"HALF makes 0.0 of 1e-09"):
        graph.add_constant(HALF, (1,), 1e-9)
    t = given(bench, HALF, [1.0])
    with pytest.warns(PopcoreWarning, match=r"HALF makes inf of 1000000.0"):
        graph.set_initial_value(t, [1e6])
    graph.set_initial_value(t, [1.0])
    b = given(bench, HALF, [2048], "b")
    popops.scaled_add_to(graph, t, b, 0.1, prog)
    assert results(any_engine, bench, prog, scaled=t)[0] == np.float16(np.float32(1) + np.float32(0.1) * np.float32(2048))
