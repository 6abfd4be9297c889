"""8-bit floats of both formats and any scale, against ml_dtypes."""

import ml_dtypes
import numpy as np
import pytest

from tests.bindings.vertex import run

FILES = ("quarters.cpp",)

F143, F152 = np.dtype(ml_dtypes.float8_e4m3fnuz), np.dtype(ml_dtypes.float8_e5m2fnuz)
LARGEST = {F143: 240.0, F152: 57344.0}
CODES = np.arange(256, dtype=np.uint8)
FORMATS = pytest.mark.parametrize("dtype", [F143, F152])
SCALES = pytest.mark.parametrize("scale", [0, 1, -5, 31, -32])


def packed(dtype, scale):
    """The byte that says both."""
    return np.uint8((dtype == F152) << 7 | (scale & 63))


@FORMATS
@SCALES
def test_every_code_has_its_value(dtype, scale):
    """
    To float without loss; to half with one rounding.
    """
    fields = {"codes": CODES.view(F143), "metadata": packed(dtype, scale), "values": np.zeros(256, np.float32), "halves": np.zeros(256, np.float16)}
    found = run("quarters.cpp", "FromQuarter", fields)
    wanted = np.ldexp(CODES.view(dtype).astype(np.float32), scale)
    assert np.array_equal(found["values"], wanted, equal_nan=True)
    assert np.array_equal(found["halves"], np.clip(wanted, -65504, 65504).astype(np.float16), equal_nan=True)


@FORMATS
@SCALES
@pytest.mark.parametrize("nanoo", ["false", "true"])
def test_values_are_rounded_to_the_nearest(dtype, scale, nanoo):
    """
    Every value, what lies halfway and around it, and what is too large, by both rules of overflow.
    """
    exact = np.unique(np.abs(CODES[CODES != 128].view(dtype).astype(np.float64)))
    halfway = np.concatenate([(exact[1:] + exact[:-1]) / 2, [exact[-1] + (exact[-1] - exact[-2]) / 2]])
    sizes = np.concatenate([exact, halfway, halfway * (1 + 2**-20), halfway * (1 - 2**-20), [exact[-1] * 3, 1e12, 1e-12]])
    values = np.ldexp(np.concatenate([sizes, -sizes]), scale).astype(np.float32)
    values = np.concatenate([values, np.float32([0, -0.0, np.inf, -np.inf, np.nan, 3e38, -3e38, 1e-45])])
    fields = {"values": values, "metadata": packed(dtype, scale).reshape(1), "codes": np.zeros(values.size, F143)}
    found = run("quarters.cpp", f"ToQuarter<{nanoo}>", fields)["codes"].view(dtype).astype(np.float64)
    plain = np.ldexp(values.astype(np.float64), -scale)
    with np.errstate(over="ignore", invalid="ignore"):
        wanted = plain.astype(dtype).astype(np.float64)
    over = np.isnan(wanted) & np.isfinite(plain)
    assert over.sum() > 4
    if nanoo == "false":
        wanted[over] = np.copysign(LARGEST[dtype], plain[over])
    assert np.array_equal(found, wanted, equal_nan=True)


def test_a_fields_own_metadata():
    """
    A field of quarters is F143 with scale 0.
    """
    found = run("quarters.cpp", "Refill", {"codes": np.zeros(3, F143)}, {"value": 1.5})
    assert found["codes"].astype(np.float32).tolist() == [1.5] * 3
