"""Bits of half on the host."""

import math
import struct

import pytest

from popcore import errors
from popcore.ops.popfloat.experimental import half_to_single, single_to_half


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
