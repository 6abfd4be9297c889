"""Sine, cosine, tangent and their inverses, in float64.

The angle is reduced for any size of it, without loss: see ``_reduced``.
"""

from __future__ import annotations

import math
from itertools import pairwise

from popcore.dialect.elementary.lanes import INFINITY, Lanes, Value, copysign, horner

_TWO_OVER_PI = (0, 0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599, 0x3C439041, 0xFE5163AB)
"""The binary digits of 2 / pi, behind 32 zeros."""
_PAIRS = [high << 32 | low for high, low in pairwise(_TWO_OVER_PI)]
_UNIT = math.pi / 2**63  # a quarter turn over 2**62
_S = (-0.1666666664152642, 0.0083333293740846803, -0.00019839330987571422, 2.718274398685494e-06)  # sin r = r + r**3 S(r**2), to 2**-37
_C = (0.041666666622651713, -0.0013888883737961553, 2.4799515873893361e-05, -2.7209891819056648e-07)  # cos r = 1 - r**2 / 2 + r**4 C(r**2), to 2**-43
_A = (
    -0.33333333296221246, 0.19999994378987465, -0.14285425479627462, 0.11104033871110634, -0.089970837265258299, 0.069921841583545641,
    -0.037939201297623196,
)  # arctan w = w + w**3 A(w**2) for |w| <= tan(pi / 8), to 2**-40  # fmt: skip
_B = (
    0.16666667191554277, 0.074999480083495579, 0.044660205508832249, 0.030109708772867463, 0.024621905056652463, 0.007457841135908666, 0.034706957941395118,
)  # arcsin s = s + s**3 B(s**2) for |s| <= 1/2, to 2**-35  # fmt: skip


def _reduced(lanes: Lanes, x: Value) -> tuple[Value, Value]:
    """r, float64, and n, uint64, with |x| = (n + 4 k) pi / 2 + r, |r| <= pi / 4 (Payne and Hanek, SIGNUM Newsletter 18(1), 1983).

    x is m 2**e with m of 24 bits. Digits of 2 / pi that m 2**e makes multiples of 4 do not matter, nor do those beyond the 96 that
    follow: m times those 96 bits, in integers modulo 2**96, is the angle in quarter turns, of which the upper 64 bits are kept.
    """
    i = lanes.bits(x) & 0x7FFFFFFF
    digit = (i >> 23) - 120  # where the 96 bits begin in the table
    digit = lanes.select(digit < 0, 0, digit)
    word, shift = lanes.long(digit >> 5), lanes.long(digit & 31)
    m = lanes.long((i & 0x7FFFFF) | 0x800000)
    first, second = lanes.constant(_PAIRS[0], m), lanes.constant(_PAIRS[2], m)
    for k in range(1, 5):
        first = lanes.select(word == k, _PAIRS[k], first)
        second = lanes.select(word == k, _PAIRS[k + 2], second)
    high = first << shift | (second >> 1) >> (63 - shift)
    low = (second << shift) >> 32
    turns = m * high + (m * low >> 32)  # 2**62 to a quarter turn
    n = (turns + (1 << 61)) >> 62
    small = i < 0x3F490FDB  # pi / 4
    r = lanes.select(small, lanes.wide(abs(x)), lanes.number(turns - (n << 62)) * _UNIT)
    return r, lanes.select(small, 0, n)


def _sin_cos(r: Value) -> tuple[Value, Value]:
    z = r * r
    return r * z * horner(z, *_S) + r, z * z * horner(z, *_C) + (1.0 - z * 0.5)


def _turned(lanes: Lanes, x: Value, n: Value, r: Value) -> Value:
    """The sine of n quarter turns and r; NaN of what is not finite."""
    sine, cosine = _sin_cos(r)
    found = lanes.narrow(lanes.select((n & 1) == 1, cosine, sine))
    return lanes.select(abs(x) < INFINITY, lanes.select((n & 2) == 2, -found, found), x - x)


def sin(lanes: Lanes, x: Value) -> Value:
    """The sine of an angle in radians."""
    r, n = _reduced(lanes, x)
    found = _turned(lanes, x, n, r)
    return lanes.select(lanes.bits(x) < 0, -found, found)


def cos(lanes: Lanes, x: Value) -> Value:
    """The cosine of an angle in radians."""
    r, n = _reduced(lanes, x)
    return _turned(lanes, x, n + 1, r)


def tan(lanes: Lanes, x: Value) -> Value:
    """The tangent of an angle in radians."""
    r, n = _reduced(lanes, x)
    sine, cosine = _sin_cos(r)
    odd = (n & 1) == 1
    found = lanes.narrow(lanes.select(odd, -cosine, sine) / lanes.select(odd, sine, cosine))
    return lanes.select(abs(x) < INFINITY, lanes.select(lanes.bits(x) < 0, -found, found), x - x)


def _half_angle(lanes: Lanes, x: Value) -> tuple[Value, Value]:
    """arcsin |x| up to 1/2, above it arcsin sqrt((1 - |x|) / 2); and where it is above."""
    a = lanes.wide(abs(x))
    above = a > 0.5
    z = lanes.select(above, (1.0 - a) * 0.5, a * a)
    s = lanes.select(above, lanes.sqrt(z), a)
    return s * z * horner(z, *_B) + s, above


def asin(lanes: Lanes, x: Value) -> Value:
    """The arc sine."""
    v, above = _half_angle(lanes, x)
    return copysign(lanes, lanes.narrow(lanes.select(above, math.pi / 2 - v * 2.0, v)), x)


def acos(lanes: Lanes, x: Value) -> Value:
    """The arc cosine."""
    v, above = _half_angle(lanes, x)
    negative = x < 0.0
    near_end = lanes.select(negative, math.pi - v * 2.0, v * 2.0)
    return lanes.narrow(lanes.select(above, near_end, lanes.select(negative, v, -v) + math.pi / 2))


def atan(lanes: Lanes, x: Value) -> Value:
    """The arc tangent."""
    a = lanes.wide(abs(x))
    return copysign(lanes, lanes.narrow(_angle(lanes, a, lanes.constant(1.0, a))), x)


def atan2(lanes: Lanes, y: Value, x: Value) -> Value:
    """The angle of the point (x, y), from -pi to pi."""
    angle = _angle(lanes, lanes.wide(abs(y)), lanes.wide(abs(x)))
    turned = lanes.select(lanes.bits(x) < 0, math.pi - angle, angle)
    return lanes.select((x == x) & (y == y), copysign(lanes, lanes.narrow(turned), y), x + y)


def _angle(lanes: Lanes, y: Value, x: Value) -> Value:
    """The angle of a point with no negative coordinate. From tan(pi / 8) on it is measured from the diagonal."""
    upper = y > x
    large, little = lanes.select(upper, y, x), lanes.select(upper, x, y)
    far = large == INFINITY
    little = lanes.select(far, lanes.select(little == INFINITY, 1.0, little * 0.0), little)
    large = lanes.select(far | (large == 0.0), 1.0, large)
    steep = little > large * math.tan(math.pi / 8)
    w = lanes.select(steep, little - large, little) / lanes.select(steep, little + large, large)
    z = w * w
    angle = w * z * horner(z, *_A) + w + lanes.select(steep, lanes.constant(math.pi / 4, w), 0.0)
    return lanes.select(upper, math.pi / 2 - angle, angle)


def hypot(lanes: Lanes, x: Value, y: Value) -> Value:
    """The length of a vector; infinite if a coordinate is, whatever the other is."""
    a, b = lanes.wide(x), lanes.wide(y)
    found = lanes.narrow(lanes.sqrt(a * a + b * b))
    return lanes.select((abs(x) == INFINITY) | (abs(y) == INFINITY), INFINITY, found)
