"""Bits of half on the host; casts to small floats against all the numbers that they have."""

import math
import struct

import ml_dtypes
import numpy as np
import pytest

from popcore import errors, program
from popcore.ops.popfloat.experimental import FormatConfig, GfloatCast, RoundType, SpecType, half_to_single, single_to_half
from popcore.types import FLOAT, HALF, INT
from tests.ops.popops.runs import new_graph, run


def test_every_half_comes_back_and_is_what_the_standard_library_reads():
    for bits in range(1 << 16):
        value = half_to_single(bits)
        (known,) = struct.unpack("<e", struct.pack("<H", bits))
        if math.isnan(known):
            assert math.isnan(value)
            assert math.isnan(half_to_single(single_to_half(value)))
        else:
            assert value == known
            assert single_to_half(value) == bits


def test_rounding_and_the_end_of_the_range():
    """Ties to even; beyond the greatest infinity, or the greatest."""
    assert single_to_half(1 + 2**-11) == 0x3C00
    assert single_to_half(1 + 3 * 2**-11) == 0x3C02
    assert single_to_half(2**-25) == 0
    assert single_to_half(2**-25 * 1.01) == 1
    assert [single_to_half(v) for v in (65519, 65520, -1e6)] == [0x7BFF, 0x7C00, 0xFC00]
    assert [single_to_half(v, True) for v in (65519, 65520, -1e6, math.inf)] == [0x7BFF, 0x7BFF, 0xFBFF, 0x7C00]


def test_half_has_16_bits():
    with pytest.raises(errors.ValueRangeError, match="65536"):
        half_to_single(65536)


def cast(cast_, x, dtype=FLOAT):
    graph, prog = new_graph(), program.Sequence()
    t = graph.add_variable(dtype, x.shape, mapping="linear", name="x")
    made = cast_.cast_native_to_gfloat(graph, t, prog)
    found = run(graph, prog, {t: x.astype(dtype.numpy)}, {"out": made, "back": cast_.cast_gfloat_to_native(graph, made, prog)})
    np.testing.assert_array_equal(found["back"], found["out"].astype(np.float32))
    return found["out"]


def numbers(form):
    """All of a format that are not negative."""
    least, greatest = form.exponents
    ones = 1 << form.num_mantissa_bits
    lead = [math.ldexp(ones + f, e - form.num_mantissa_bits) for e in range(least, greatest + 1) for f in range(ones)]
    small = [math.ldexp(f, least - form.num_mantissa_bits) for f in range(ones)]
    return np.array((small if form.enable_denorms else [0.0]) + lead)


@pytest.mark.parametrize("mode", RoundType)
@pytest.mark.parametrize("form", [FormatConfig(2, 5, 15), FormatConfig(3, 4, 7, False), FormatConfig(1, 3, 3, True, False), FormatConfig(2, 4, 40)])
def test_a_number_goes_to_a_neighbour_as_the_mode_says(form, mode):
    """For numbers on, halfway between and near those of the format."""
    has = numbers(form)
    middle = (has[:-1] + has[1:]) / 2
    size = np.concatenate([has, middle, has * (1 + 2.0**-20), middle * (1 - 2.0**-20), middle * (1 + 2.0**-20)])
    size = size[size < has[-1]].astype(np.float32)
    x = np.concatenate([size, -size])
    low = np.searchsorted(has, np.abs(x), "right") - 1
    under, over = has[low], has[np.minimum(low + 1, has.size - 1)]
    up = np.abs(x) - under > over - np.abs(x)
    tie = (np.abs(x) - under == over - np.abs(x)) & (np.abs(x) != under)
    exact = np.abs(x) == under
    position = low + (0 if form.enable_denorms else (1 << form.num_mantissa_bits) - 1)
    further = {
        RoundType.RZ: np.zeros(x.shape, bool), RoundType.RN: up | (tie & (position % 2 == 1)), RoundType.RA: up | tie,
        RoundType.RU: ~exact & (x > 0), RoundType.RD: ~exact & (x < 0),
    }[mode]  # fmt: skip
    wanted = np.copysign(np.where(further, over, under), x)
    if not form.enable_denorms:
        wanted[np.abs(x) < has[1]] = 0
    np.testing.assert_array_equal(cast(GfloatCast(form, mode), x), wanted)


def test_formats_of_others():
    """bfloat16, and FP8 of five exponent bits with infinity, as ml_dtypes rounds to them."""
    x = np.random.default_rng(0).standard_normal(4000).astype(np.float32) * np.float32(2.0) ** np.random.default_rng(1).integers(-140, 127, 4000)
    wanted = x.astype(ml_dtypes.bfloat16).astype(np.float32)
    normal = np.abs(wanted) >= np.finfo(np.float32).tiny
    np.testing.assert_array_equal(cast(GfloatCast(FormatConfig(7, 8, 127)), x), np.where(normal, wanted, 0))  # a tile has no denormal floats
    x = np.random.default_rng(2).standard_normal(1000).astype(np.float16) * np.float16(10)
    found = cast(GfloatCast(FormatConfig(2, 5, 15)), x, HALF)
    assert found.dtype == np.float16
    np.testing.assert_array_equal(found, x.astype(ml_dtypes.float8_e5m2).astype(np.float16))


def test_beyond_the_greatest():
    """NaN, or the greatest itself."""
    form = FormatConfig(2, 5, 15)
    x = np.float32([form.greatest, 61439, 61441, -1e9, np.inf, np.nan])
    np.testing.assert_array_equal(cast(GfloatCast(form), x), np.float32([57344, 57344, np.nan, np.nan, np.nan, np.nan]))
    np.testing.assert_array_equal(cast(GfloatCast(form, enable_nanoo_mode=False), x), np.float32([57344, 57344, 57344, -57344, 57344, np.nan]))


def test_in_place_and_what_is_refused():
    graph, prog = new_graph(), program.Sequence()
    t = graph.add_variable(FLOAT, (3,), mapping="linear", name="t")
    plain = GfloatCast(FormatConfig(1, 8, 127), gf_type=SpecType.FP32)
    plain.cast_native_to_gfloat_in_place(graph, t, prog)
    assert run(graph, prog, {t: np.float32([1.2, 1.3, -7])}, {"t": t})["t"].tolist() == [1.0, 1.5, -8.0]
    with pytest.raises(errors.ElementTypeError, match="kept in"):
        GfloatCast(FormatConfig(2, 5, 15)).cast_native_to_gfloat_in_place(graph, t, prog)
    with pytest.raises(errors.ElementTypeError, match="FLOAT or HALF"):
        plain.cast_native_to_gfloat(graph, graph.add_variable(INT, (3,), tile=0), prog)
    with pytest.raises(errors.ValueRangeError, match="numbers that FLOAT has"):
        FormatConfig(3, 8, 150)
    with pytest.raises(errors.ValueRangeError, match="in HALF"):
        GfloatCast(FormatConfig(7, 8, 127), gf_type=SpecType.FP16)
