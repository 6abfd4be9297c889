"""What elementary functions are written in: a few operations on float32, float64 and integers, and NumPy's way to do them.

A formula is a Python function of ``lanes`` and of its arguments. It uses arithmetic, comparisons, ``&``, ``|``, ``~`` and shifts of the
values themselves and the operations of ``lanes``, never ``if``: so it may run on NumPy's numbers (the interpreter, the reference), on whole arrays
(tests), and once on values that stand for LLVM's, which makes it machine code for a vector of elements at a time
(``popcore.kernels.mathlib``). Each operation rounds as IEEE 754 says and none is contracted or reassociated, so all of these give the same bits.
A Python number takes the type of what it stands beside.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np

Value: TypeAlias = Any
"""float32, float64, int32 or uint64, or what a comparison of two gives: one number, or one for each lane."""
Formula: TypeAlias = Callable[..., Value]
"""``formula(lanes, x)`` or ``formula(lanes, x, y)``, float32 to float32."""
INFINITY, NAN = math.inf, math.nan


class Lanes(Protocol):
    """The operations besides operators. ``kind`` of a result: that of the argument, if nothing else is said."""

    def select(self, condition: Value, yes: Value, no: Value) -> Value:
        """``yes`` where the condition holds, else ``no``. One of them may be a Python number."""

    def constant(self, number: float, like: Value) -> Value:
        """A Python number in the type of ``like``."""

    def sqrt(self, x: Value) -> Value: ...

    def bits(self, x: Value) -> Value:
        """A float's bits: int32 of float32, uint64 of float64."""

    def floats(self, i: Value) -> Value:
        """The float that has these bits."""

    def wide(self, x: Value) -> Value:
        """float32 as float64: exact."""

    def narrow(self, x: Value) -> Value:
        """float64 to the nearest float32."""

    def number(self, i: Value) -> Value:
        """int32 as float32, uint64, taken as signed, as float64; to the nearest."""

    def long(self, i: Value) -> Value:
        """An int32 that is not negative as uint64."""


class NumPyLanes:
    """On NumPy's scalars or arrays. Callers silence NumPy's warnings."""

    def select(self, condition: Value, yes: Value, no: Value) -> Value:
        if isinstance(condition, np.ndarray):
            return np.where(condition, yes, no)
        chosen, other = (yes, no) if condition else (no, yes)
        return chosen if isinstance(chosen, np.generic) else self.constant(chosen, other)

    def constant(self, number: float, like: Value) -> Value:
        return like.dtype.type(number)

    def sqrt(self, x: Value) -> Value:
        return np.sqrt(x)

    def bits(self, x: Value) -> Value:
        return x.view(np.int32 if x.dtype == np.float32 else np.uint64)

    def floats(self, i: Value) -> Value:
        return i.view(np.float32 if i.dtype == np.int32 else np.float64)

    def wide(self, x: Value) -> Value:
        return x.astype(np.float64)

    def narrow(self, x: Value) -> Value:
        return x.astype(np.float32)

    def number(self, i: Value) -> Value:
        return i.astype(np.float32) if i.dtype == np.int32 else i.view(np.int64).astype(np.float64)

    def long(self, i: Value) -> Value:
        return i.astype(np.uint64)


NUMPY = NumPyLanes()


def horner(x: Value, *coefficients: float) -> Value:
    """A polynomial, constant term first."""
    *rest, total = coefficients
    for each in reversed(rest):
        total = x * total + each
    return total


def at_most(lanes: Lanes, x: Value, limit: float) -> Value:
    """``x``, or the limit where it is above; NaN stays."""
    return lanes.select(x > limit, limit, x)


def within(lanes: Lanes, x: Value, low: float, high: float) -> Value:
    """``x`` cut off at both limits; NaN stays."""
    return at_most(lanes, lanes.select(x < low, low, x), high)


def copysign(lanes: Lanes, magnitude: Value, sign: Value) -> Value:
    """A float32 with the sign of another."""
    return lanes.floats((lanes.bits(magnitude) & 0x7FFFFFFF) | (lanes.bits(sign) & -0x80000000))
