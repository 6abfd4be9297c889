"""Do compiled codelets and the interpreter agree in every bit, for all element types and any values?"""

import functools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from popcore.types import BOOL, CHAR, FLOAT, HALF, INT, LONGLONG, SHORT, UNSIGNED_CHAR, UNSIGNED_INT, UNSIGNED_LONGLONG, UNSIGNED_SHORT
from tests.kernels import codelets
from tests.kernels.drivers import Driver

# One of each kind of value that a codelet can hold, and narrow integers in between.
VALUES = (FLOAT, HALF, INT, LONGLONG, UNSIGNED_LONGLONG, BOOL)
INTEGERS = (INT, LONGLONG, UNSIGNED_LONGLONG, UNSIGNED_CHAR, BOOL)
EVERY = (FLOAT, HALF, BOOL, CHAR, UNSIGNED_CHAR, SHORT, UNSIGNED_SHORT, INT, UNSIGNED_INT, LONGLONG, UNSIGNED_LONGLONG)
PAIRS = [(a, b) for i, a in enumerate(VALUES) for b in VALUES[i:]] + [(HALF, FLOAT), (INT, HALF), (UNSIGNED_LONGLONG, INT), (BOOL, LONGLONG)]

drivers = functools.lru_cache(maxsize=None)(Driver)
quick = settings(max_examples=15, deadline=None)

_FLOATS = (0.0, -0.0, 1.0, -1.5, 2.5, 3.5, 1e-45, -1e-40, 65504.0, 65520.0, 1e9, -3e9, 2.0**31, -(2.0**63), 2.0**63, 2.0**64, 3e38, float("inf"), float("-inf"), float("nan"))  # fmt: skip


def numbers(dtype: Any) -> st.SearchStrategy[Any]:
    """Any value of an element type; the awkward ones often."""
    if dtype.is_floating:
        width = 8 * dtype.nbytes
        fits = [float(dtype.numpy.type(v)) for v in _FLOATS if not np.isinf(dtype.numpy.type(v)) or np.isinf(v)] if dtype is not HALF else []
        return st.sampled_from(fits or [0.0, -0.0, 1.0, -2.5, 6e-8, 65504.0, float("inf"), float("nan")]) | st.floats(width=width)
    if dtype is BOOL:
        return st.booleans()
    info = np.iinfo(dtype.numpy)
    return st.sampled_from([v for v in (0, 1, -1, 2, 3, 7, info.min, info.max, (1 << 24) + 1, (1 << 53) + 1) if info.min <= v <= info.max]) | st.integers(int(info.min), int(info.max))  # fmt: skip


def vectors(dtype: Any, size: int = 9) -> st.SearchStrategy[Any]:
    return st.lists(numbers(dtype), min_size=size, max_size=size).map(lambda v: np.array(v, dtype.numpy))


@pytest.mark.parametrize(("a", "b"), PAIRS, ids=lambda t: t.__name__)
def test_arithmetic_agrees(a: Any, b: Any) -> None:
    driver, empty = drivers(codelets.Arithmetic, (a, b)), np.zeros((21, 9))

    @quick
    @given(vectors(a), vectors(b))
    def agree(left: Any, right: Any) -> None:
        driver.agree(a=left, b=right, f=empty, h=empty, n=empty)

    agree()


@pytest.mark.parametrize(("a", "b"), [(a, b) for i, a in enumerate(INTEGERS) for b in INTEGERS[i:]], ids=lambda t: t.__name__)
def test_bits_agree(a: Any, b: Any) -> None:
    driver, empty = drivers(codelets.Bits, (a, b)), np.zeros((7, 9))

    @quick
    @given(vectors(a), vectors(b))
    def agree(left: Any, right: Any) -> None:
        driver.agree(a=left, b=right, n=empty)

    agree()


@pytest.mark.parametrize("a", EVERY, ids=lambda t: t.__name__)
def test_conversions_agree(a: Any) -> None:
    driver = drivers(codelets.Convert, (a,))
    outputs = {f.name: 0 for f in driver.codelet.fields if f.name.startswith("into_")}

    @quick
    @given(numbers(a))
    def agree(value: Any) -> None:
        driver.agree(a=value, made=np.zeros(3), whole=np.zeros(11), **outputs)

    agree()


@pytest.mark.parametrize("a", [FLOAT, HALF, INT, UNSIGNED_LONGLONG], ids=lambda t: t.__name__)
def test_mathematics_agrees(a: Any) -> None:
    driver = drivers(codelets.Mathematics, (a,))

    @settings(max_examples=40, deadline=None)
    @given(vectors(a))
    def agree(values: Any) -> None:
        driver.agree(a=values, f=np.zeros((25, 9)))

    agree()


def test_views_agree() -> None:
    driver = drivers(codelets.Sliced)

    @settings(max_examples=100, deadline=None)
    @given(st.integers(-9, 9), st.integers(-9, 9), st.integers(0, 6), st.lists(st.integers(1, 5), max_size=3))
    def agree(low: int, high: int, size: int, lengths: list[int]) -> None:
        x, m = np.arange(size), np.arange(size * 3).reshape(size, 3)
        driver.agree(x=x, m=m, rows=[np.arange(n) for n in lengths], low=low, high=high, sizes=np.zeros(6))

    agree()


def test_float_arithmetic_is_numpys() -> None:
    """The law itself, against NumPy: one rounding for each operation."""
    rng = np.random.default_rng(1)
    for dtype in (FLOAT, HALF):
        a, b = rng.standard_normal((2, 9)).astype(dtype.numpy)
        empty = np.zeros((21, 9))
        found = drivers(codelets.Arithmetic, (dtype, dtype)).agree(a=a, b=b, f=empty, h=empty, n=empty).fields["f"]
        for row, expected in enumerate((a + b, a - b, a * b, a / b)):
            assert np.array_equal(found[row], expected.astype(np.float32))


def test_stores_saturate_floats_and_wrap_integers() -> None:
    driver = drivers(codelets.Convert, (FLOAT,))
    outputs = {f.name: 0 for f in driver.codelet.fields if f.name.startswith("into_")}
    fields = driver.agree(a=-1e20, made=np.zeros(3), whole=np.zeros(11), **outputs).fields
    assert (fields["into_c"], fields["into_ui"], fields["into_l"]) == (-128, 0, -(1 << 63))
    fields = drivers(codelets.Convert, (INT,)).agree(a=-129, made=np.zeros(3), whole=np.zeros(11), **outputs).fields
    assert (fields["into_c"], fields["into_uc"], fields["into_ul"]) == (127, 127, (1 << 64) - 129)
