"""Logarithms, inverse hyperbolic functions, and powers and roots by way of the logarithm.

x = 2**e m with m from sqrt(1/2) to sqrt(2), so that log x = e ln 2 + log m does not cancel where e is 0.
"""

from __future__ import annotations

from popcore.dialect.elementary.exponential import exp_wide
from popcore.dialect.elementary.lanes import INFINITY, NAN, Lanes, Value, copysign, horner, within

_ROOT_HALF32, _ROOT_HALF64 = 0x3F3504F3, 0x3FE6A09E667F3BCD  # bits of sqrt(1/2)
_LN2_HIGH32, _LN2_LOW32 = 0.693145751953125, 1.42860677e-06  # the first has few digits: e times it is exact
_LN2 = 0.6931471805599453
_P32 = (
    0.33333313465118408, -0.25000008940696716, 0.20002073049545288, -0.16667994856834412, 0.14220322668552399, -0.12406066060066223,
    0.1188366711139679, -0.11671272665262222, 0.06750459223985672,
)  # log(1 + f) = f - f**2 / 2 + f**3 P(f), to 2**-30  # fmt: skip
_L64 = (0.33333333333293363, 0.200000000262719, 0.14285708541116218, 0.11111687640544295, 0.09061760068108686, 0.084106804985292896)
"""artanh s = s + s**3 L(s**2), to 2**-52 for |s| <= 0.172."""
_EXACT52 = 4503599627370496.0  # 2**52: to it a smaller whole number is added by setting bits
_LOG2_E, _LOG10_E = 1.4426950408889634, 0.4342944819032518
_TINY24, _TINY12 = 2.0**-24, 2.0**-12


def log(lanes: Lanes, x: Value) -> Value:
    """The natural logarithm."""
    denormal = x < 2.0**-126
    i = lanes.bits(lanes.select(denormal, x * 2.0**25, x)) - _ROOT_HALF32
    e = lanes.number(i >> 23) - lanes.select(denormal, lanes.constant(25.0, x), 0.0)
    f = lanes.floats((i & 0x7FFFFF) + _ROOT_HALF32) - 1.0
    z = f * f
    tail = f * z * horner(f, *_P32) + e * _LN2_LOW32 - z * 0.5
    return _limits(lanes, x, e * _LN2_HIGH32 + (f + tail))


def _limits(lanes: Lanes, x: Value, result: Value) -> Value:
    """The logarithm of 0 and less, infinity and NaN."""
    return lanes.select(x > 0.0, lanes.select(x < INFINITY, result, x), lanes.select(x == 0.0, lanes.constant(-INFINITY, x), NAN))


def log_wide(lanes: Lanes, x: Value) -> Value:
    """The natural logarithm of a float64, to 2**-50. Needs x normal, 0 or less."""
    bits = lanes.bits(x)
    above = bits - _ROOT_HALF64
    e = lanes.floats(((above + (1023 << 52)) >> 52) | 0x4330000000000000) - (_EXACT52 + 1023.0)
    f = lanes.floats(bits - ((above >> 52) << 52)) - 1.0
    s = f / (f + 2.0)
    z = s * s
    return _limits(lanes, x, e * _LN2 + (s + s * z * horner(z, *_L64)) * 2.0)


def log2(lanes: Lanes, x: Value) -> Value:
    """The logarithm to base 2."""
    return lanes.narrow(log_wide(lanes, lanes.wide(x)) * _LOG2_E)


def log10(lanes: Lanes, x: Value) -> Value:
    """The logarithm to base 10."""
    return lanes.narrow(log_wide(lanes, lanes.wide(x)) * _LOG10_E)


def log1p(lanes: Lanes, x: Value) -> Value:
    """log(1 + x); of a small x, x."""
    return lanes.select(abs(x) < _TINY24, x, lanes.narrow(log_wide(lanes, lanes.wide(x) + 1.0)))


def asinh(lanes: Lanes, x: Value) -> Value:
    """log(x + sqrt(x**2 + 1)); of a small x, x."""
    a = lanes.wide(abs(x))
    found = lanes.narrow(log_wide(lanes, a + lanes.sqrt(a * a + 1.0)))
    return lanes.select(abs(x) < _TINY12, x, copysign(lanes, found, x))


def acosh(lanes: Lanes, x: Value) -> Value:
    """log(x + sqrt(x**2 - 1))."""
    a = lanes.wide(x)
    return lanes.select(x < 1.0, NAN, lanes.narrow(log_wide(lanes, a + lanes.sqrt((a - 1.0) * (a + 1.0)))))


def atanh(lanes: Lanes, x: Value) -> Value:
    """log((1 + x) / (1 - x)) / 2; of a small x, x."""
    a = lanes.wide(abs(x))
    found = lanes.narrow(log_wide(lanes, (a + 1.0) / (1.0 - a)) * 0.5)
    return lanes.select(abs(x) < _TINY12, x, copysign(lanes, found, x))


def cbrt(lanes: Lanes, x: Value) -> Value:
    """The cube root."""
    a = abs(x)
    root = lanes.narrow(exp_wide(lanes, log_wide(lanes, lanes.wide(a)) * (1 / 3)))
    return lanes.select((a > 0.0) & (a < INFINITY), copysign(lanes, root, x), x)


def power(lanes: Lanes, x: Value, y: Value) -> Value:
    """x**y, with C's values where one is 0, infinite or NaN."""
    a, b = abs(x), lanes.wide(y)
    exponent = within(lanes, log_wide(lanes, lanes.wide(a)) * b, -200.0, 200.0)
    size = lanes.select((a == 1.0) & (y == y), 1.0, lanes.narrow(exp_wide(lanes, exponent)))
    shifted = abs(b) + _EXACT52
    whole = (shifted - _EXACT52) == abs(b)
    odd = whole & (abs(y) < 2.0**24) & ((lanes.bits(shifted) & 1) == 1)
    signed = lanes.select(odd, copysign(lanes, size, x), size)
    root = (x < 0.0) & (a < INFINITY) & ~whole
    return lanes.select((x == 1.0) | (y == 0.0), 1.0, lanes.select(root, NAN, signed))
