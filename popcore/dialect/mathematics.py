"""Functions of ``math`` on a tile: FLOAT in and out; HALF is computed in FLOAT and rounded once.

Square root and the roundings are exact. The others are the C library's single-precision functions, which compiled
codelets call too: so both agree on one machine, and may differ in the last bit from another machine's library.
"""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from popcore.dialect.arithmetic import Value, to_float, to_half
from popcore.dialect.known import EXACT, LIBM, LIBM2

_F32, _F16 = np.float32, np.float16


@cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(ctypes.util.find_library("m"))


@cache
def _c_function(name: str, arity: int) -> Callable[..., float]:
    found = getattr(_library(), f"{name}f")
    found.restype, found.argtypes = ctypes.c_float, [ctypes.c_float] * arity
    call: Callable[..., float] = found
    return call


def _rounded(value: Value, like: Value) -> Value:
    return value.astype(_F16) if isinstance(like, _F16) else value


def _libm(name: str) -> Callable[[Value], Value]:
    def apply(value: Value) -> Value:
        return _rounded(_F32(_c_function(name, 1)(float(to_float(value)))), value)

    return apply


def _of_two(function: Callable[[np.float32, np.float32], Any]) -> Callable[[Value, Value], Value]:
    """HALF if both are halves or one is an integer; integers are converted each by itself."""

    def apply(left: Value, right: Value) -> Value:
        kinds = {type(left), type(right)}
        if _F16 in kinds and _F32 not in kinds:
            return _F32(function(to_float(to_half(left)), to_float(to_half(right)))).astype(_F16)
        return _F32(function(to_float(left), to_float(right)))

    return apply


def _libm2(name: str) -> Callable[[Value, Value], Value]:
    return _of_two(lambda left, right: _c_function(name, 2)(float(left), float(right)))


fpow = _libm2("pow")


def _exact(function: Callable[[Any], Any]) -> Callable[[Value], Value]:
    def apply(value: Value) -> Value:
        return _rounded(function(to_float(value)), value)

    return apply


def _asks(function: Callable[[Any], Any]) -> Callable[[Value], bool]:
    def apply(value: Value) -> bool:
        return bool(function(to_float(value)))

    return apply


def rint(value: Value) -> Value:
    """Halves go to even; an integer stays as it is."""
    if isinstance(value, int):
        return int(value)
    return value if isinstance(value, np.uint64) else _rounded(np.rint(to_float(value)), value)


OPERATIONS: dict[str, Callable[..., Any]] = {
    **{name: _exact(getattr(np, name)) for name in EXACT if not name.startswith("is") and name != "copysign"},
    **{name: _asks(getattr(np, name)) for name in EXACT if name.startswith("is")},
    **{name: _libm(name) for name in LIBM},
    **{name: _libm2(name) for name in LIBM2},
    "fmod": _of_two(np.fmod), "copysign": _of_two(np.copysign), "fpow": fpow, "rint": rint,
}  # fmt: skip
