"""Functions of one element that no single operation of a codelet is; codelets call them, and each becomes native code.

Those of floats take and give FLOAT: a HALF is converted before and rounded once after.
"""

from __future__ import annotations

import math


def round_half_away(x: float) -> float:
    """To the nearest whole number, halves away from zero."""
    whole = math.trunc(x)
    return whole + math.copysign(1.0, x) if abs(x - whole) >= 0.5 else whole


def log_add(a: float, b: float) -> float:
    """log(e**a + e**b) without overflow."""
    high = max(a, b)
    low = min(a, b)
    return high + math.log1p(math.exp(low - high)) if math.isfinite(high) else high


def divide(a: int, b: int) -> int:
    """The quotient cut off toward zero, as in C."""
    quotient = a // b
    return quotient + 1 if (a < 0) != (b < 0) and quotient * b != a else quotient


def remainder(a: int, b: int) -> int:
    """What ``divide`` leaves: it has the sign of ``a``."""
    rest = a % b
    return rest - b if rest != 0 and (a < 0) != (b < 0) else rest


def popcount(x: int) -> int:
    """Bits set among the low 32."""
    x = (x & 0xFFFFFFFF) - ((x >> 1) & 0x55555555)
    x = (x & 0x33333333) + ((x >> 2) & 0x33333333)
    x = (x + (x >> 4)) & 0x0F0F0F0F
    return ((x * 0x01010101) >> 24) & 0xFF


def count_leading_zeros(x: int) -> int:
    """Zeros above the highest bit set among the low 32."""
    x = x & 0xFFFFFFFF
    x = x | (x >> 1)
    x = x | (x >> 2)
    x = x | (x >> 4)
    x = x | (x >> 8)
    x = x | (x >> 16)
    return 32 - popcount(x)
