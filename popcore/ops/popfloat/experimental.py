"""Conversions of bits on the host. After ``popfloat/experimental/CastToHalf.hpp``."""

from __future__ import annotations

import numpy as np

from popcore.errors import ValueRangeError

GREATEST_HALF = 0x7BFF  # 65504


def single_to_half(value: float, en_nanoo: bool = False) -> int:
    """The bits of the HALF nearest to a single precision ``value``, ties to even.

    A finite value beyond the greatest HALF gives infinity; with ``en_nanoo`` the greatest. Infinity stays, NaN is NaN.
    """
    with np.errstate(over="ignore", under="ignore"):
        single = np.float32(value)
        bits = int(single.astype(np.float16).view(np.uint16))
    if en_nanoo and np.isfinite(single) and bits & 0x7FFF == 0x7C00:
        return (bits & 0x8000) | GREATEST_HALF
    return bits


def half_to_single(ihalf: int) -> float:
    """What the bits of a HALF stand for.

    Raises: ValueRangeError: more than 16 bits.
    """
    if not 0 <= ihalf < 1 << 16:
        raise ValueRangeError(f"half_to_single({ihalf})", "16 bits: 0 to 65535")
    return float(np.uint16(ihalf).view(np.float16))
