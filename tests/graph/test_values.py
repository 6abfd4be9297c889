"""Constants and initial values: is every value kept exactly or refused, and are halves that lose theirs reported."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from popcore import errors
from popcore.graph import PopcoreWarning, concat
from popcore.types import BOOL, ELEMENT_TYPES, FLOAT, HALF, INT, LONGLONG, QUARTER_F143, UNSIGNED_CHAR, UNSIGNED_LONGLONG
from tests.graph.strategies import small_graph

INTEGRAL = [t for t in ELEMENT_TYPES if t.is_integral]


@given(st.sampled_from(INTEGRAL), st.integers(-(2**65), 2**65))
def test_an_integer_is_kept_exactly_or_refused(dtype, value):
    info = np.iinfo(dtype.numpy)
    graph = small_graph()
    if info.min <= value <= info.max:
        assert graph.add_constant(dtype, (), value).get_constant_value() == value
    else:
        with pytest.raises(errors.ValueRangeError, match=rf"{value} does not fit {dtype!r}, which holds {info.min} to {info.max}"):
            graph.add_constant(dtype, (), value, name="c")


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (INT, 1.5),
        (INT, float("nan")),
        (INT, 2.0**31),
        (UNSIGNED_LONGLONG, 2.0**64),
        (LONGLONG, -(2.0**63) - 2048),
        (BOOL, 2),
        (FLOAT, 1e39),
        (QUARTER_F143, 1e6),
    ],
)
def test_a_float_that_does_not_fit_is_refused(dtype, value):
    with pytest.raises(errors.ValueRangeError, match=f"'c'.*does not fit {dtype!r}"):
        small_graph().add_constant(dtype, (), value, name="c")


@pytest.mark.parametrize(
    ("dtype", "value"), [(INT, 3.0), (INT, True), (UNSIGNED_CHAR, np.int64(255)), (BOOL, 1.0), (FLOAT, float("inf")), (HALF, float("-inf")), (FLOAT, 7)]
)
def test_a_value_that_another_type_holds_exactly_is_taken(dtype, value):
    assert small_graph().add_constant(dtype, (), value).get_constant_value() == value


def test_an_array_names_the_first_value_that_does_not_fit():
    with pytest.raises(errors.ValueRangeError, match=r"300 does not fit UNSIGNED_CHAR \(value 2 of 4\)"):
        small_graph().add_constant(UNSIGNED_CHAR, (4,), [1, 2, 300, 400])


@pytest.mark.parametrize(("value", "becomes"), [(1e-9, "0.0"), (70000.0, "inf"), (65520, "inf"), (-1e6, "-inf")])
def test_a_half_that_becomes_zero_or_infinite_warns_at_the_users_line(value, becomes):
    with pytest.warns(PopcoreWarning, match=f"'c': HALF makes {becomes}") as caught:
        small_graph().add_constant(HALF, (), value, name="c")
    assert caught[0].filename == __file__


def test_a_half_that_is_only_rounded_does_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert small_graph().add_constant(HALF, (2,), [0.1, 65519]).variable.initial.tolist() == [float(np.float16(0.1)), 65504.0]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ([1, 2], errors.ShapeError),
        ([[1, 2, 3]], errors.ShapeError),
        ([[1], [2, 3]], errors.ShapeError),
        ("x", errors.ElementTypeError),
        (None, errors.ElementTypeError),
        (1j, errors.ElementTypeError),
    ],
)
def test_what_is_no_value_for_the_shape_is_refused(value, kind):
    with pytest.raises(kind, match="'c'"):
        small_graph().add_constant(FLOAT, (3,), value, name="c")


def test_one_value_fills_a_large_constant_without_memory():
    c = small_graph().add_constant(FLOAT, (10_000, 10_000), 2.5)
    assert c.variable.initial.strides == (0,)
    assert c.variable.initial[99_999_999] == 2.5


def test_initial_values_of_views_add_up():
    graph = small_graph()
    x, y = graph.add_variable(INT, (2, 3), name="x"), graph.add_variable(INT, (2,), name="y")
    graph.set_initial_value(x[:, 1], [7, 8])
    assert x.variable.initial.tolist() == [0, 7, 0, 0, 8, 0]
    assert x.variable.has_initial.tolist() == [False, True, False, False, True, False]
    graph.set_initial_value(concat([x.flatten(), y]).reverse(0), np.arange(8))
    assert (x.variable.initial.tolist(), y.variable.initial.tolist()) == ([7, 6, 5, 4, 3, 2], [1, 0])
    assert x.variable.has_initial is None
    graph.set_initial_value(x.reinterpret(FLOAT)[0, 0], 1.0)
    assert x.variable.initial[0] == 0x3F800000
    with pytest.raises(errors.ValueRangeError, match="'y'"):
        graph.set_initial_value(y, 2**31)
    with pytest.raises(errors.GraphError, match="constant"):
        graph.set_initial_value(graph.add_constant(INT, (), 1), 2)


def test_zero_size_constants_and_variables_are_legal():
    graph = small_graph()
    assert graph.add_constant(FLOAT, (0, 3), []).variable.numel == 0
    assert graph.add_constant(FLOAT, (0,), 1.0, tile=2).shape == (0,)
    assert graph.add_variable(FLOAT, 0, "linear").shape == (0,)


@pytest.mark.parametrize("shape", [(-1,), (1.5,), (True,), "ab"])
def test_an_impossible_shape_is_refused(shape):
    with pytest.raises(errors.ShapeError, match=r"of x$|of x\n"):
        small_graph().add_variable(FLOAT, shape, name="x")
