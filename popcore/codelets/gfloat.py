"""Floats of any few bits, kept in FLOAT or HALF: rounding to those that a format has."""

# mypy: disable-error-code="assignment"
# A store converts to the element type of its field.

from __future__ import annotations

import math
from typing import Any, Generic, TypeVar

import numpy as np

from popcore.codelet import Input, Output, Vector, Vertex
from popcore.types import BOOL, FLOAT, INT

T = TypeVar("T", bound=float)
S = TypeVar("S", bound=float)

TO_ZERO, TO_EVEN, FROM_ZERO, UP, DOWN = range(5)
"""Where a number between two of the format goes: ``FROM_ZERO`` and ``TO_EVEN`` are of those halfway, others to the nearest."""

_LEAST, _GREATEST = -149, 127  # exponents of FLOAT
_POWERS = tuple(math.ldexp(1.0, e) for e in range(_LEAST, _GREATEST + 1))
_END = 3.4028234663852886e38  # of FLOAT
_LIFT = 64  # small numbers are rounded 2**64 times as large, which is exact: their steps would be denormal, and a machine may flush those
_SMALL = math.ldexp(1.0, -60)


def _exponent(size: Any, least: int) -> int:
    """That of ``size``, but not below ``least``. Needs: least >= _LEAST."""
    exponent = least
    width = 256
    while width > 0:
        if exponent + width <= _GREATEST and size >= _POWERS[exponent + width - _LEAST]:
            exponent += width
        width = width >> 1
    return exponent


def _whole(n: Any, mode: int, positive: bool) -> Any:
    """The whole number that ``n`` >= 0, the size of a number of that sign, goes to."""
    low = math.floor(n)
    if mode == TO_EVEN:
        low = np.rint(n)
    elif (mode == FROM_ZERO and n - low >= 0.5) or (mode == UP and positive and n > low) or (mode == DOWN and not positive and n > low):
        low = low + 1.0
    return low


class CastToGfloat(Vertex, Generic[T, S]):
    """Each number as the format has it.

    fraction, least  bits of the fraction, and the exponent of the least number with a leading one
    limit            the greatest number; beyond it goes there, or with ``nanoo`` to NaN
    denormals        whether there are numbers between 0 and 2**least; otherwise those become 0
    """

    x: Input[Vector[T]]
    fraction: Input[INT]
    least: Input[INT]
    limit: Input[FLOAT]
    denormals: Input[BOOL]
    nanoo: Input[BOOL]
    mode: Input[INT]
    out: Output[Vector[S]]

    def compute(self) -> None:
        for i in range(len(self.out)):
            x = float(self.x[i])
            size = abs(x)
            made = size  # NaN
            if size <= _END:
                up = _LIFT if size < _SMALL else 0
                lifted, least = size * _POWERS[up - _LEAST], self.least + up
                step = _POWERS[_exponent(lifted, least) - self.fraction - _LEAST]
                made = _whole(lifted / step, self.mode, x > 0) * step
                if not self.denormals and lifted < _POWERS[least - _LEAST]:
                    made = 0.0
                made = made * _POWERS[-up - _LEAST]
            if made > self.limit:
                made = math.nan if self.nanoo else self.limit
            self.out[i] = math.copysign(made, x)

    def cycles(self) -> int:
        """As PopLibs' ``CastToGfloat32Supervisor`` (lib/popfloat/popfloatCycleEstimators.cpp): 27 for each two."""
        return 35 + 27 * -(-len(self.out) // 2)
