"""FP8, as it is stored: QUARTER_F143 and QUARTER_F152 to FLOAT or HALF and back, with a scale.

Both formats have one code, 0x80, for what is no number, and none for infinity or minus zero (the tables here are the formats: sign, exponent
less a bias of 8 or 16, fraction; exponent 0 without a leading one). A scale s means that a code stands for its number times 2**s.
A metadata byte holds the scale in its low six bits, two's complement, and in its highest the format: 1 for F152.
"""

# mypy: disable-error-code="assignment"
# A store converts to the element type of its field.

from __future__ import annotations

import math
from typing import Any, Generic, TypeVar

import numpy as np

from popcore.codelet import Input, Output, Vector, Vertex
from popcore.types import UNSIGNED_CHAR

NO_NUMBER = 0x80
LEAST_SCALE, GREATEST_SCALE = -32, 31
FORMAT_BIT = 0x80  # of a metadata byte

Q = TypeVar("Q", bound=float)  # the FP8 type
T = TypeVar("T", bound=float)


def _values(fraction_bits: int, bias: int) -> tuple[float, ...]:
    """What each of the 256 codes stands for."""
    found = []
    for code in range(256):
        exponent, fraction = (code & 0x7F) >> fraction_bits, code & ((1 << fraction_bits) - 1)
        lead = fraction + (1 << fraction_bits if exponent else 0)
        size = math.ldexp(lead, max(exponent, 1) - bias - fraction_bits)
        found.append(math.nan if code == NO_NUMBER else -size if code & 0x80 else size)
    return tuple(found)


def _steps(fraction_bits: int, bias: int) -> tuple[float, ...]:
    """Of each exponent's field from 1 on, the least number; then infinity, to 32 entries."""
    exponents = range(1, 1 << 7 - fraction_bits)
    return tuple(math.ldexp(1.0, e - bias) for e in exponents) + (math.inf,) * (33 - len(exponents))


F143_VALUES, F152_VALUES = _values(3, 8), _values(2, 16)
_F143_STEPS, _F152_STEPS = _steps(3, 8), _steps(2, 16)
_POWERS = tuple(math.ldexp(1.0, s) for s in range(LEAST_SCALE, GREATEST_SCALE + 2))  # of two, as far as scales and their opposites go
_F143_END, _F152_END = 248.0, 61440.0  # from here on the nearest number would be beyond the greatest


def _scale_of(metadata: int, format_bit: int) -> int:
    """Raises: ValueError: metadata of the other format."""
    if (metadata & FORMAT_BIT) != format_bit:
        raise ValueError("the metadata is of the other FP8 format:", metadata)
    return ((metadata & 0x3F) ^ 0x20) - 0x20


def _code_of(x: Any, steps: Any, fraction_bits: int, end: float) -> int:
    """The nearest code, ties to an even one; NO_NUMBER for NaN and beyond the end."""
    size = abs(x)
    code = NO_NUMBER
    if size < end:
        exponent = 0
        width = 16
        while width > 0:
            if size >= steps[exponent + width]:
                exponent += width
            width = width >> 1
        ones = 1 << fraction_bits
        code = (exponent << fraction_bits) + int(np.rint(size / steps[exponent] * ones))
        if x < 0 and code > 0:
            code = code | 0x80
    return code


class FromF143(Vertex, Generic[Q, T]):
    """Numbers from codes of QUARTER_F143."""

    x: Input[Vector[Q]]
    metadata: Input[UNSIGNED_CHAR]
    out: Output[Vector[T]]

    def compute(self) -> None:
        scale = _POWERS[_scale_of(self.metadata, self.format_bit()) - LEAST_SCALE]
        for i in range(len(self.out)):
            self.out[i] = self.number(int(self.x[i])) * scale

    def cycles(self) -> int:
        return _bundles(len(self.out))

    @staticmethod
    def format_bit() -> int:
        return 0

    @staticmethod
    def number(code: int) -> float:
        return F143_VALUES[code]


class FromF152(FromF143[Q, T]):
    """The same of QUARTER_F152."""

    @staticmethod
    def format_bit() -> int:
        return FORMAT_BIT

    @staticmethod
    def number(code: int) -> float:
        return F152_VALUES[code]


class ToF143(Vertex, Generic[T, Q]):
    """Codes of QUARTER_F143 from numbers."""

    x: Input[Vector[T]]
    metadata: Input[UNSIGNED_CHAR]
    out: Output[Vector[Q]]

    def compute(self) -> None:
        scale = _POWERS[-_scale_of(self.metadata, self.format_bit()) - LEAST_SCALE]
        for i in range(len(self.out)):
            self.out[i] = self.code(float(self.x[i]) * scale)

    def cycles(self) -> int:
        return _bundles(len(self.out))

    @staticmethod
    def format_bit() -> int:
        return 0

    @staticmethod
    def code(x: float) -> int:
        return _code_of(x, _F143_STEPS, 3, _F143_END)


class ToF152(ToF143[T, Q]):
    """The same of QUARTER_F152."""

    @staticmethod
    def format_bit() -> int:
        return FORMAT_BIT

    @staticmethod
    def code(x: float) -> int:
        return _code_of(x, _F152_STEPS, 2, _F152_END)


def _bundles(n: int) -> int:
    """As a cast of HALF to FLOAT, four elements a cycle: PopLibs' ``castWorkerCycles`` (lib/popops/PerformanceEstimation.cpp)."""
    return 26 + -(-n // 4)
