"""Powers of e and 2, and the hyperbolic functions made of them.

With n the whole number next to x / ln 2, e**x = 2**n e**r, |r| <= ln 2 / 2, and e**r = 1 + r + r**2 Q(r). Adding 1.5 * 2**23 (in float64 2**52)
rounds to a whole number and leaves it in the lowest bits.
"""

from __future__ import annotations

from popcore.dialect.elementary.lanes import Lanes, Value, at_most, copysign, horner, within

_ROUND32 = 12582912.0  # 1.5 * 2**23: its bits end in 22 zeros
_ROUND64 = 6755399441055744.0  # 1.5 * 2**52
_ONE, _HALF = 0x3F800000, 0x3F000000  # bits of 1 and 1/2
_LOG2_E = 1.4426950408889634
_LN2_HIGH32, _LN2_LOW32 = 0.693145751953125, 1.42860677e-06  # n times the first is exact for |n| < 2**9
_LN2_HIGH64, _LN2_LOW64 = 0.6931471805592082, 7.371002565167799e-13  # for |n| < 2**12
_Q32 = (0.49999997019767761, 0.1666654646396637, 0.041667435318231583, 0.0083662718534469604, 0.0013870695838704705)  # to 2**-26 of e**r - 1
_Q32_OF_2R = tuple(q * 2.0 ** (i + 1) for i, q in enumerate(_Q32))  # (e**2r - 1) / 2 = r + r**2 times it
_P32 = (0.69314718246459961, 0.24022650718688965, 0.055503591895103455, 0.0096180671826004982, 0.0013391174143180251, 0.00015460875874850899)  # 2**-28
_Q64 = (
    0.49999999999515987, 0.16666666787295187, 0.041666667056334761, 0.0083332810783093101, 0.0013888796084205758, 0.00019909369343211261,
    2.4887768829526516e-05,
)  # 2**-39  # fmt: skip


def _reduced(lanes: Lanes, x: Value) -> tuple[Value, Value]:
    """r, and a float32 whose low bits hold n. Needs |x| < 2**8."""
    shifted = x * _LOG2_E + _ROUND32
    n = shifted - _ROUND32
    return x - n * _LN2_HIGH32 - n * _LN2_LOW32, shifted


def _scaled(lanes: Lanes, x: Value, shifted: Value) -> Value:
    """x 2**n in two steps, since 2**n may be infinite or denormal where the result is neither."""
    n = lanes.bits(shifted)
    half = n >> 1
    return x * lanes.floats((half << 23) + _ONE) * lanes.floats(((n - half) << 23) + _ONE)


def exp(lanes: Lanes, x: Value) -> Value:
    """e**x."""
    r, shifted = _reduced(lanes, within(lanes, x, -104.0, 89.0))
    return _scaled(lanes, r * r * horner(r, *_Q32) + r + 1.0, shifted)


def exp_below_one(lanes: Lanes, x: Value) -> Value:
    """e**x for -87 <= x <= 0."""
    r, shifted = _reduced(lanes, x)
    return (r * r * horner(r, *_Q32) + r + 1.0) * lanes.floats((lanes.bits(shifted) << 23) + _ONE)


def exp2(lanes: Lanes, x: Value) -> Value:
    """2**x."""
    x = within(lanes, x, -151.0, 129.0)
    shifted = x + _ROUND32
    r = x - (shifted - _ROUND32)
    return _scaled(lanes, r * horner(r, *_P32) + 1.0, shifted)


def tanh(lanes: Lanes, x: Value) -> Value:
    """With h = (e**2|x| - 1) / 2: q = h / (h + 1), for small h written as h - h q, which rounds less."""
    a = at_most(lanes, abs(x), 10.0)
    shifted = a * (2 * _LOG2_E) + _ROUND32
    n = shifted - _ROUND32
    r = a - n * (_LN2_HIGH32 / 2) - n * (_LN2_LOW32 / 2)  # e**2|x| = 2**n e**2r
    power = lanes.bits(shifted) << 23
    h = (r * r * horner(r, *_Q32_OF_2R) + r) * lanes.floats(power + _ONE) + (lanes.floats(power + _HALF) - 0.5)
    q = h / (h + 1.0)
    return copysign(lanes, lanes.select(h < 0.5, h - h * q, q), x)


def sigmoid(lanes: Lanes, x: Value) -> Value:
    """With t = e**-|x|: 1 / (1 + t), of a negative x t / (1 + t)."""
    t = exp(lanes, -abs(x))
    above = lanes.select(x < 0.0, t, 1.0)
    return above - above * (t / (t + 1.0))


# -- in float64: to 2**-39 --


def _parts_wide(lanes: Lanes, x: Value) -> tuple[Value, Value]:
    """e**r - 1 and 2**n."""
    shifted = x * _LOG2_E + _ROUND64
    n = shifted - _ROUND64
    r = x - n * _LN2_HIGH64 - n * _LN2_LOW64
    return r * r * horner(r, *_Q64) + r, lanes.floats((lanes.bits(shifted) + 1023) << 52)


def exp_wide(lanes: Lanes, x: Value) -> Value:
    """e**x in float64, for |x| < 700."""
    p, scale = _parts_wide(lanes, x)
    return (p + 1.0) * scale


def _expm1_wide(lanes: Lanes, x: Value) -> Value:
    p, scale = _parts_wide(lanes, x)
    return p * scale + (scale - 1.0)


def expm1(lanes: Lanes, x: Value) -> Value:
    """e**x - 1."""
    return copysign(lanes, lanes.narrow(_expm1_wide(lanes, within(lanes, lanes.wide(x), -200.0, 200.0))), x)


def sinh(lanes: Lanes, x: Value) -> Value:
    """With t = e**|x| - 1: (t + t / (t + 1)) / 2."""
    t = _expm1_wide(lanes, at_most(lanes, lanes.wide(abs(x)), 200.0))
    return copysign(lanes, lanes.narrow((t + t / (t + 1.0)) * 0.5), x)


def cosh(lanes: Lanes, x: Value) -> Value:
    """(e**x + e**-x) / 2."""
    e = exp_wide(lanes, at_most(lanes, lanes.wide(abs(x)), 200.0))
    return lanes.narrow((e + 1.0 / e) * 0.5)
