"""Elementary functions: are they as exact as docs/numerics.md says, right where they end, and the same however they run?"""

import functools
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from popcore.dialect.elementary import FORMULAS, evaluate, gelu_erf, sigmoid
from popcore.dialect.known import ARITY
from popcore.types import FLOAT, HALF
from tests.dialect.samples import Elementary
from tests.kernels.drivers import Driver

PAGE = Path(__file__).parents[2] / "docs" / "numerics.md"
ONE, TWO = ([name for name in FORMULAS if ARITY[name] == arity] for arity in (1, 2))
INFINITY, NAN = math.inf, math.nan

driver = functools.lru_cache(maxsize=None)(Driver)


def bounds() -> dict[str, float]:
    """The errors in ulp that the page promises, by function."""
    rows = re.findall(r"^\| ((?:`\w+` ?)+) \| ([\d.]+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return {name: float(bound) for names, bound in rows for name in re.findall(r"\w+", names)}


def _erf(function: Any) -> Any:
    return lambda x: np.array([function(v) for v in x.tolist()])


REFERENCE = {
    "fpow": np.power, "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "erf": _erf(math.erf), "erfc": _erf(math.erfc),
    "gelu_erf": lambda x: np.array([0.5 * v * math.erfc(-v * math.sqrt(0.5)) for v in x.tolist()]), "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "atan2": np.arctan2,
}  # fmt: skip
"""In float64, for what NumPy has under another name or not at all."""


def ulps(found: Any, wanted: Any) -> Any:
    """Errors of float32 results in units of the last place that float32 has at the true result."""
    unit = np.ldexp(1.0, np.maximum(np.frexp(wanted)[1] - 24, -149))
    error = np.abs(found - wanted) / unit
    rounded = wanted.astype(np.float32)
    right = (np.isinf(rounded) & (found == rounded)) | (np.isnan(wanted) & np.isnan(found)) | (found == wanted)
    return np.where(right, 0, np.where(np.isnan(error), INFINITY, error))


def sample(name: str) -> list[Any]:
    """Float32 numbers of every size and sign, evenly over their bits; and a second one of each exponent for functions of two."""
    step = {"erf": 12007, "erfc": 30011, "gelu_erf": 30011}.get(name, 2003)
    x = np.arange(0, 1 << 32, step, np.uint64).astype(np.uint32).view(np.float32)
    if ARITY[name] == 1:
        return [x]
    rng = np.random.default_rng(1)
    if name == "fpow":  # results that are neither 0 nor infinite are rare among any pair
        with np.errstate(all="ignore"):
            return [x, (rng.uniform(-100, 90, x.size) / np.log(np.abs(x.astype(float)))).astype(np.float32)]
    return [x, (x * np.exp2(rng.uniform(-30, 30, x.size))).astype(np.float32)]


@pytest.mark.parametrize("name", FORMULAS)
def test_errors_are_what_the_page_says(name: str) -> None:
    """
    No error of a dense sample is above the page's bound, and the largest is more than half of it.
    """
    with np.errstate(all="ignore"):
        drawn = sample(name)
        wanted = (REFERENCE.get(name) or getattr(np, name))(*(x.astype(np.float64) for x in drawn))
        errors = ulps(evaluate(name, *drawn), wanted)
    at, bound = int(np.argmax(errors)), bounds()["pow" if name == "fpow" else name]
    assert errors[at] <= bound, (errors[at], *(x[at] for x in drawn), wanted[at])
    assert errors[at] > bound / 2, f"the page is too careful: {errors[at]}"


SPECIAL = {
    "exp": [(-INFINITY, 0.0), (INFINITY, INFINITY), (0.0, 1.0), (-0.0, 1.0), (89.0, INFINITY), (-104.0, 0.0), (1e-45, 1.0)],
    "exp2": [(-INFINITY, 0.0), (INFINITY, INFINITY), (0.0, 1.0), (10.0, 1024.0), (-149.0, 2.0**-149), (-126.0, 2.0**-126), (128.0, INFINITY), (-151.0, 0.0)],
    "expm1": [(-INFINITY, -1.0), (INFINITY, INFINITY), (-0.0, -0.0), (0.0, 0.0), (1e-45, 1e-45), (89.0, INFINITY)],
    "log": [(0.0, -INFINITY), (-0.0, -INFINITY), (1.0, 0.0), (INFINITY, INFINITY), (-1.0, NAN), (-INFINITY, NAN), (2.0**-149, -103.27893)],
    "log2": [(0.0, -INFINITY), (8.0, 3.0), (2.0**-149, -149.0), (INFINITY, INFINITY), (-1.0, NAN)],
    "log10": [(0.0, -INFINITY), (1000.0, 3.0), (1e10, 10.0), (-1.0, NAN)],
    "log1p": [(-1.0, -INFINITY), (-0.0, -0.0), (0.0, 0.0), (1e-45, 1e-45), (-1.5, NAN), (INFINITY, INFINITY)],
    "sin": [(0.0, 0.0), (-0.0, -0.0), (1e-45, 1e-45), (INFINITY, NAN), (-INFINITY, NAN)],
    "cos": [(0.0, 1.0), (INFINITY, NAN)],
    "tan": [(0.0, 0.0), (-0.0, -0.0), (INFINITY, NAN)],
    "asin": [(0.0, 0.0), (-0.0, -0.0), (1.0, math.pi / 2), (-1.0, -math.pi / 2), (1.5, NAN)],
    "acos": [(1.0, 0.0), (-1.0, math.pi), (0.0, math.pi / 2), (-2.0, NAN)],
    "atan": [(0.0, 0.0), (-0.0, -0.0), (INFINITY, math.pi / 2), (-INFINITY, -math.pi / 2)],
    "sinh": [(0.0, 0.0), (-0.0, -0.0), (1e-45, 1e-45), (INFINITY, INFINITY), (-INFINITY, -INFINITY), (-90.0, -INFINITY)],
    "cosh": [(0.0, 1.0), (INFINITY, INFINITY), (-INFINITY, INFINITY), (90.0, INFINITY)],
    "tanh": [(0.0, 0.0), (-0.0, -0.0), (1e-45, 1e-45), (-1e-40, -1e-40), (INFINITY, 1.0), (-INFINITY, -1.0), (9.5, 1.0)],
    "asinh": [(0.0, 0.0), (-0.0, -0.0), (INFINITY, INFINITY), (-INFINITY, -INFINITY)],
    "acosh": [(1.0, 0.0), (0.5, NAN), (-1e30, NAN), (INFINITY, INFINITY), (-INFINITY, NAN)],
    "atanh": [(0.0, 0.0), (-0.0, -0.0), (1.0, INFINITY), (-1.0, -INFINITY), (2.0, NAN)],
    "cbrt": [(0.0, 0.0), (-0.0, -0.0), (27.0, 3.0), (-8.0, -2.0), (INFINITY, INFINITY), (-INFINITY, -INFINITY), (2.0**-147, 2.0**-49)],
    "erf": [(0.0, 0.0), (-0.0, -0.0), (INFINITY, 1.0), (-INFINITY, -1.0), (5.0, 1.0)],
    "erfc": [(0.0, 1.0), (INFINITY, 0.0), (-INFINITY, 2.0), (10.6, 0.0)],
    "sigmoid": [(0.0, 0.5), (INFINITY, 1.0), (-INFINITY, 0.0), (200.0, 1.0), (-200.0, 0.0)],
    "gelu_erf": [(0.0, 0.0), (-0.0, -0.0), (INFINITY, INFINITY), (-INFINITY, NAN), (-20.0, -0.0), (20.0, 20.0)],
}
SPECIAL_PAIRS = {
    "fpow": [
        ((0.0, 0.0), 1.0), ((NAN, 0.0), 1.0), ((1.0, NAN), 1.0), ((1.0, INFINITY), 1.0), ((-1.0, INFINITY), 1.0), ((-1.0, -INFINITY), 1.0), ((-1.0, NAN), NAN),
        ((0.0, -1.0), INFINITY), ((-0.0, -1.0), -INFINITY), ((-0.0, -2.0), INFINITY), ((-0.0, 3.0), -0.0), ((0.0, 0.5), 0.0), ((0.0, -INFINITY), INFINITY),
        ((-2.0, 3.0), -8.0), ((-2.0, 2.0), 4.0), ((-2.0, 0.5), NAN), ((2.0, INFINITY), INFINITY), ((0.5, INFINITY), 0.0), ((0.5, -INFINITY), INFINITY),
        ((INFINITY, -1.0), 0.0), ((-INFINITY, 3.0), -INFINITY), ((-INFINITY, -3.0), -0.0), ((-INFINITY, 0.5), INFINITY), ((2.0, 128.0), INFINITY),
        ((-2.0, 129.0), -INFINITY), ((2.0, -149.0), 2.0**-149), ((-1.0, 16777216.0), 1.0), ((-1.0, 16777215.0), -1.0), ((-1.0, 1e30), 1.0), ((3.0, 2.0), 9.0),
    ],
    "atan2": [
        ((0.0, 0.0), 0.0), ((-0.0, 0.0), -0.0), ((0.0, -0.0), math.pi), ((-0.0, -1.0), -math.pi), ((1.0, 0.0), math.pi / 2), ((1.0, 1.0), math.pi / 4),
        ((INFINITY, INFINITY), math.pi / 4), ((-INFINITY, -INFINITY), -3 * math.pi / 4), ((1.0, -INFINITY), math.pi), ((1.0, INFINITY), 0.0),
        ((INFINITY, 1.0), math.pi / 2), ((NAN, 1.0), NAN), ((1.0, NAN), NAN),
    ],
    "hypot": [((INFINITY, NAN), INFINITY), ((NAN, -INFINITY), INFINITY), ((NAN, 1.0), NAN), ((3.0, -4.0), 5.0), ((0.0, -0.0), 0.0), ((3e38, 3e38), INFINITY), ((1e-45, 0.0), 1e-45)],
}  # fmt: skip


@pytest.mark.parametrize("name", FORMULAS)
def test_special_values(name: str) -> None:
    """
    Zeros keep their signs, infinities and NaN follow C, denormals and overflow are where they should be.
    """
    rows = [((x,), y) for x, y in [*SPECIAL[name], (NAN, NAN)]] if ARITY[name] == 1 else SPECIAL_PAIRS[name]
    for values, wanted in rows:
        found = evaluate(name, *(np.float32(x) for x in values))
        expected = np.float32(wanted)
        same = found.view(np.uint32) == expected.view(np.uint32) or (np.isnan(found) and np.isnan(expected))
        assert type(found) is np.float32
        assert same, (values, found, expected)


def test_functions_that_python_has_not_may_be_called_as_any() -> None:
    """
    Outside a codelet they take and give numbers of Python.
    """
    assert sigmoid(0) == 0.5
    assert gelu_erf(20.0) == 20.0


_numbers = st.floats(width=32) | st.floats(-20, 20, width=32)


@settings(max_examples=10, deadline=None)
@given(st.lists(st.tuples(_numbers, _numbers), min_size=1, max_size=19))
def test_interpreter_and_native_code_agree(pairs: list[tuple[float, float]]) -> None:
    """
    All functions of drawn numbers, one by one in Python and as vectors in native code: the same bits.
    """
    a, b = np.array(pairs, np.float32).T
    driver(Elementary, (FLOAT,)).agree(a=a, b=b, f=np.zeros((len(FORMULAS), len(a))))


def _native(dtype: Any, a: Any, b: Any) -> Any:
    return driver(Elementary, (dtype,)).native({"a": a, "b": b, "f": np.zeros((len(FORMULAS), len(a)))}).fields["f"]


def _same(left: Any, right: Any) -> Any:
    return (left.view(np.uint32) == right.view(np.uint32)) | (np.isnan(left) & np.isnan(right))


def test_native_code_agrees_on_many_numbers() -> None:
    """
    Any bits, and numbers of everyday size.
    """
    rng = np.random.default_rng(3)
    a, b = rng.integers(0, 1 << 32, (2, 40_000), np.uint32).view(np.float32)
    a[::2] = 5 * rng.standard_normal(a[::2].size)
    b[::3] = 5 * rng.standard_normal(b[::3].size)
    found = _native(FLOAT, a, b)
    for row, name in zip(found, FORMULAS, strict=True):
        same = _same(row, evaluate(name, *((a, b) if ARITY[name] == 2 else (a,))))
        assert same.all(), (name, a[~same][:3], b[~same][:3])


def test_half_is_rounded_once() -> None:
    """
    Of all halves: the FLOAT result to the nearest half, 65504 where it is too large.
    """
    a = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    b = np.resize(np.array([0.5, -2.0, 3.0, np.inf, np.nan, 1e-3], np.float16), a.size)
    found = _native(HALF, a, b)
    wide = [np.where(np.isinf(x), np.nan, x).astype(np.float32) for x in (a, b)]  # an infinite HALF is no number
    for row, name in zip(found, FORMULAS, strict=True):
        rounded = np.clip(evaluate(name, *wide[: ARITY[name]]), -65504, 65504).astype(np.float16)
        assert _same(row, rounded.astype(np.float32)).all(), name
