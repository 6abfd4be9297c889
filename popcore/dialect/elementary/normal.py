"""The error function and what belongs to the normal distribution."""

from __future__ import annotations

from popcore.dialect.elementary.exponential import exp_below_one, exp_wide
from popcore.dialect.elementary.lanes import Lanes, Value, at_most, copysign, horner

_NEAR = 0.921875
_E = (
    0.12837916612625122, -0.37612628936767578, 0.11283625662326813, -0.026855727657675743, 0.0051923766732215881, -0.00080491532571613789,
    7.9926132457330823e-05,
)  # erf x = x + x E(x**2) up to _NEAR, to 2**-30  # fmt: skip
_T = (
    0.00018071731028612703, 1.1277376413345337, 0.63707751035690308, 0.10402373969554901, -0.022271415218710899, 0.003054390661418438,
    -0.00019707638421095908,
)  # erfc x = e**-T(x) from _NEAR to 4, to 2**-29 of erf x  # fmt: skip
_CENTRE = 2.5
_X = (
    0.21080636406067327, -0.37173673383962469, 0.25171319312158197, -0.12503305805596232, 0.039922543737414079, -0.0039936162442932239,
    -0.0026424116232652622, 0.00087535155073217039, 0.00022849239061084183, -0.00012696825560608684, -3.3911182057583752e-05, 1.5346826458818328e-05,
    6.0515058317576524e-06,
)  # e**t**2 erfc t = X((t - 2.5) / (t + 2.5)) for 0 <= t <= 10.6, to 2**-35  # fmt: skip
_ROOT_HALF = 0.7071067811865476


def erf(lanes: Lanes, x: Value) -> Value:
    """The error function."""
    a = abs(x)
    t = at_most(lanes, a, 4.0)
    far = 1.0 - exp_below_one(lanes, -horner(t, *_T))
    return lanes.select(a < _NEAR, x + x * horner(x * x, *_E), copysign(lanes, far, x))


def _erfc_wide(lanes: Lanes, x: Value) -> Value:
    """The complementary error function in float64, to 2**-35; beyond 10.5, where it is below 2**-150, 0."""
    t = at_most(lanes, abs(x), 10.5)
    tail = lanes.select(t == 10.5, 0.0, exp_wide(lanes, -(t * t)) * horner((t - _CENTRE) / (t + _CENTRE), *_X))
    return lanes.select(x < 0.0, 2.0 - tail, tail)


def erfc(lanes: Lanes, x: Value) -> Value:
    """1 - erf x, without loss where that is small."""
    return lanes.narrow(_erfc_wide(lanes, lanes.wide(x)))


def gelu_erf(lanes: Lanes, x: Value) -> Value:
    """x times the chance that a normal variable is below x."""
    w = lanes.wide(x)
    return lanes.narrow(w * 0.5 * _erfc_wide(lanes, w * -_ROOT_HALF))
