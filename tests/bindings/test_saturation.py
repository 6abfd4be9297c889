"""The two rules of overflow in half: infinity, and as a tile has it the largest number."""

import numpy as np
import pytest

from tests.bindings.vertex import run

LARGEST = np.float32(65504)
FLAG = "-DPOPCORE_HALF_SATURATES"
NAMES = ("sum", "difference", "product", "quotient", "grown", "converted", "squared")
RNG = np.random.default_rng(7)
A = np.concatenate([np.float16([65504, -65504, 300, -300, 1, 0, np.nan, np.inf]), RNG.standard_normal(40).astype(np.float16) * np.float16(300)])
B = np.concatenate([np.float16([65504, 65504, 300, 300, 0, 2**-14, 1, 1]), RNG.standard_normal(40).astype(np.float16) * np.float16(300)])
WIDE = np.concatenate([np.float32([65519.9, 65520, -1e30, np.inf, -np.inf, np.nan, 1, 2**-25]), RNG.standard_normal(40).astype(np.float32)])


def operand(x, saturates):
    """An operand of arithmetic: where halves saturate an infinity is no number."""
    x = np.asarray(x).astype(np.float32)
    return np.where(np.isinf(x), np.float32(np.nan), x) if saturates else x


def rounded(x, saturates):
    """A result in half."""
    with np.errstate(over="ignore"):
        return (np.clip(x, -LARGEST, LARGEST) if saturates else x).astype(np.float16)


@pytest.mark.parametrize("saturates", [False, True])
def test_overflow(saturates):
    """
    Each operation, by the rule that the flag asks for; what does not overflow is the same.
    """
    fields = {"a": A, "b": B, "wide": WIDE, **{n: np.zeros_like(A) for n in NAMES}, "mixed": np.zeros_like(WIDE)}
    found = run("saturating.cpp", "Overflows", fields, {"scale": 256}, cxxflags=FLAG if saturates else "")
    a, b = operand(A, saturates), operand(B, saturates)
    with np.errstate(all="ignore"):
        grown = operand(rounded(a * np.float32(256), saturates), saturates)
        wanted = {"sum": a + b, "difference": a - b, "product": a * b, "quotient": operand(a / b, saturates), "grown": grown + np.float32(1)}
        wanted |= {"converted": operand(WIDE, saturates), "squared": A.astype(np.float32) ** 2}
    for name, value in wanted.items():
        assert np.array_equal(found[name], rounded(value, saturates), equal_nan=True), name
    with np.errstate(invalid="ignore"):
        assert np.array_equal(found["mixed"], A.astype(np.float32) * 2 + (B < A), equal_nan=True)


@pytest.mark.parametrize("saturates", [False, True])
def test_overflow_in_short_vectors(saturates):
    """
    half4 does what its elements do.
    """
    a, b = A[8:], B[8:]
    found = run("saturating.cpp", "OverflowsInPairs", {"a": a, "b": b, "out": np.zeros_like(a), "sum": np.float16(0)}, cxxflags=[FLAG] if saturates else [])
    product = rounded(a.astype(np.float32) * b.astype(np.float32), saturates)
    wanted = rounded(np.fmax(product, -a).astype(np.float32) + np.float32(1), saturates)
    assert np.array_equal(found["out"], wanted)
    if saturates:
        total = np.zeros(4, np.float16)
        for each in wanted.reshape(-1, 4):
            total = rounded(total.astype(np.float32) + each.astype(np.float32), saturates=True)
        whole = total[0]
        for each in total[1:]:
            whole = rounded(np.float32(whole) + np.float32(each), saturates=True)
        assert found["sum"] == whole
        assert np.abs(wanted).max() == LARGEST
