"""Known traps, group C: integers, conversions, rounding, 64-bit counts."""

import numpy as np
import pytest

from popcore import BOOL, CHAR, FLOAT, INT, SIGNED_CHAR, UNSIGNED_CHAR, UNSIGNED_INT, UNSIGNED_SHORT, Engine, errors, program
from tests.cases.codelets import Absolute, Divide, Largest, Long, Operate, Shift, Small, Total, Truncate

INT_MAX, INT_MIN = 2**31 - 1, -(2**31)


def test_c1_a_float_stored_to_an_integer_is_truncated(any_engine, bench):
    """Case C1: toward zero, whatever the width; never to nearest."""
    x = [2.5, -2.5, 0.9, -0.9, 1.5]
    out = {name: bench.variable(name, np.zeros(5), dtype) for name, dtype in {"signed": SIGNED_CHAR, "unsigned": UNSIGNED_CHAR, "wide": INT}.items()}
    bench.vertex(Truncate, {"x": bench.variable("x", x, FLOAT), **out})
    engine = bench.run(any_engine)
    assert engine.read_tensor("signed").tolist() == engine.read_tensor("wide").tolist() == [2, -2, 0, 0, 1]
    assert engine.read_tensor("unsigned")[[0, 2, 4]].tolist() == [2, 0, 1]


def test_c3_the_absolute_value_of_an_integer_keeps_all_its_bits(any_engine, bench):
    """Case C3: it does not go through FLOAT, and INT_MIN wraps to itself."""
    values = [-16777217, 16777217, -2147483647, INT_MIN]
    bench.vertex(Absolute, {"x": bench.variable("x", values, INT), "out": bench.variable("out", np.zeros(4), INT)})
    assert bench.run(any_engine).read_tensor("out").tolist() == [16777217, 16777217, 2147483647, INT_MIN]


def test_c4_a_sum_wraps(any_engine, bench):
    """Case C4: INT_MAX + 1 is INT_MIN."""
    bench.vertex(Operate, {"a": INT_MAX, "b": 1, "out": bench.variable("out", np.zeros(5), INT)})
    assert bench.run(any_engine).read_tensor("out")[0] == INT_MIN


@pytest.mark.parametrize(("a", "b", "c_rule", "python_rule"), [(-7, 2, [-3, -1], [-4, 1]), (-7, 3, [-2, -1], [-3, 2]), (7, -3, [-2, 1], [-3, -2])])
def test_c4_quotients_and_remainders_follow_the_rule_that_is_written(any_engine, bench, a, b, c_rule, python_rule):
    """Case C4: ``//`` and ``%`` are Python's in a codelet, and C's sign rule can be written with them."""
    bench.vertex(Operate, {"a": a, "b": b, "out": bench.variable("out", np.zeros(5), INT)})
    assert bench.run(any_engine).read_tensor("out")[1:].tolist() == c_rule + python_rule


def test_c4_shifts_of_signed_and_unsigned_numbers_differ(any_engine, bench):
    """Case C4: to the right a signed number keeps its sign, an unsigned one does not."""
    out = bench.variable("out", np.zeros(3), INT)
    bench.vertex(Shift, {"a": -8, "bits": 2**32 - 8, "n": 1, "out": out})
    assert bench.run(any_engine).read_tensor("out").tolist() == [-16, -4, 2147483644]


def test_c4_a_shift_by_31_reaches_the_sign(any_engine, bench):
    """Case C4: 1 << 31 is INT_MIN once stored."""
    bench.vertex(Shift, {"a": 1, "bits": 1, "n": 31, "out": bench.variable("out", np.zeros(3), INT)})
    assert bench.run(any_engine).read_tensor("out").tolist() == [INT_MIN, 0, 0]


def test_c4_a_division_by_zero_raises(any_engine, bench):
    """Case C4: no processor exception, and no value out of nowhere."""
    bench.vertex(Divide, {"a": 1, "b": bench.variable("zero", 0, INT), "out": bench.variable("out", 0, INT)})
    with pytest.raises(errors.VertexError, match=r"(?s)Divide.*tile 3.*'work'.*ZeroDivisionError.*codelets\.py:\d+.*try:"):
        bench.run(any_engine)


def test_c4_the_least_integer_divided_by_minus_one_wraps(any_engine, bench):
    """Case C4: the one other quotient that a processor refuses."""
    bench.vertex(Divide, {"a": INT_MIN, "b": -1, "out": bench.variable("out", 0, INT)})
    assert bench.run(any_engine).read_tensor("out") == INT_MIN


@pytest.mark.parametrize(("field", "value"), [("short", -1), ("byte", 256), ("signed", 200), ("byte", 0.5), ("flag", 2), ("short", 2**63)])
def test_c5_an_initial_value_that_a_field_cannot_hold_is_refused(bench, field, value):
    """Case C5: the message names vertex and field, the value and the range."""
    vertex = bench.vertex(Small, {})
    with pytest.raises(errors.ValueRangeError, match=rf"(?s)Small\.{field} of vertex 0.*{value}.*( to |True).*try:"):
        bench.graph.set_initial_value(vertex[field], value)


def test_c5_a_literal_that_a_field_cannot_hold_is_refused(bench):
    """Case C5: when it is connected, one by one or in bulk."""
    with pytest.raises(errors.ValueRangeError, match=r"Small\.literal.*200.*-128 to 127"):
        bench.vertex(Small, {"literal": 200})
    with pytest.raises(errors.ValueRangeError, match=r"Small\.literal.*-129.*-128 to 127"):
        bench.graph.add_vertices(bench.compute_set, Small, {"literal": np.array([1, -129])}, tiles=[0, 1])


@pytest.mark.parametrize(("dtype", "value"), [(UNSIGNED_SHORT, 65536), (UNSIGNED_INT, -1), (CHAR, 128), (INT, 2.5), (INT, np.nan), (FLOAT, 1e39), (BOOL, 3)])
def test_c5_a_value_that_a_tensor_cannot_hold_is_refused(bench, dtype, value):
    """Case C5: of constants and of variables."""
    with pytest.raises(errors.ValueRangeError, match="the constant"):
        bench.graph.add_constant(dtype, (2,), value, name="the constant")
    with pytest.raises(errors.ValueRangeError, match="the variable"):
        bench.graph.set_initial_value(bench.graph.add_variable(dtype, (2,), name="the variable"), value)


def test_c5_values_at_the_ends_of_the_range_are_kept(any_engine, bench):
    """Case C5: the bounds are inside."""
    vertex = bench.vertex(Small, {"literal": -128, "out": bench.variable("out", 0, INT)})
    for field, value in {"short": 65535, "byte": 255, "signed": -128, "flag": True}.items():
        bench.graph.set_initial_value(vertex[field], value)
    assert bench.run(any_engine).read_tensor("out") == 65535 + 255 - 128 - 128


def cycles_of(bench, rounds):
    """The low and the high word of the cycles of ``rounds`` executions, and what the profile says."""
    sequence = program.Sequence(program.Repeat(rounds, program.Execute(bench.compute_set)))
    counter = program.cycle_count(bench.graph, sequence, 0)
    handle = f"cycles {counter.variable.id}"
    bench.graph.create_host_read(handle, counter)
    engine = Engine(bench.graph, sequence)
    engine.run()
    return *engine.read_tensor(handle).tolist(), engine.profile().total_cycles


def test_c8_cycles_beyond_32_bits_are_counted(bench):
    """Case C8: low and high word together are what the profile says, however often the low word has come around."""
    bench.graph.set_perf_estimate(bench.vertex(Long, {"x": bench.variable("x", 0, INT, tile=3)}), 2**31)
    low, high, total = cycles_of(bench, 1000)
    assert total > 1000 * 2**31
    assert (low, high) == (total % 2**32, total >> 32)


def test_c8_a_program_of_2_to_the_32_and_5_cycles_shows_5_in_its_low_word(bench, monkeypatch):
    """Case C8: what a 32-bit counter sees of it; the pair has it all."""
    bench.vertex(Long, {"x": bench.variable("x", 0, INT, tile=3)})
    overhead, _, _ = cycles_of(bench, 1)
    monkeypatch.setattr(Long, "worker_cycles", (2**32 + 5 - overhead) / 6 - 1e-3)  # rounded up to whole cycles of the tile
    assert cycles_of(bench, 1)[:2] == (5, 1)


def test_c9_a_sum_of_integers_stays_an_integer(any_engine, bench):
    """Case C9: 2^24 + 1 has no FLOAT."""
    bench.vertex(Total[INT], {"x": bench.variable("x", [2**24, 1], INT), "out": bench.variable("out", 0, INT)})
    assert bench.run(any_engine).read_tensor("out") == 16777217


def test_c9_a_maximum_of_negative_integers_is_negative(any_engine, bench):
    """Case C9: with an update of what was there."""
    bench.vertex(Largest, {"x": bench.variable("x", [-5], INT), "out": bench.variable("out", INT_MIN, INT)})
    assert bench.run(any_engine).read_tensor("out") == -5
