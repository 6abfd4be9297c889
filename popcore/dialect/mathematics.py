"""Functions of ``math`` on a tile: FLOAT in and out; HALF is computed in FLOAT and rounded once.

Square root and the roundings are exact; the others are formulas, which compiled codelets have too: see ``elementary``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from popcore.dialect.arithmetic import Value, to_float, to_half
from popcore.dialect.elementary import FORMULAS, NUMPY
from popcore.dialect.known import ARITY, EXACT

_F32, _F16 = np.float32, np.float16


def _rounded(value: Value, like: Value) -> Value:
    return value.astype(_F16) if isinstance(like, _F16) else value


def _formula(name: str) -> Callable[..., Value]:
    formula = FORMULAS[name]
    if ARITY[name] == 2:
        return _of_two(lambda left, right: formula(NUMPY, left, right))
    return lambda value: _rounded(formula(NUMPY, to_float(value)), value)


def _of_two(function: Callable[[np.float32, np.float32], Any]) -> Callable[[Value, Value], Value]:
    """HALF if both are halves or one is an integer; integers are converted each by itself."""

    def apply(left: Value, right: Value) -> Value:
        kinds = {type(left), type(right)}
        if _F16 in kinds and _F32 not in kinds:
            return _F32(function(to_float(to_half(left)), to_float(to_half(right)))).astype(_F16)
        return _F32(function(to_float(left), to_float(right)))

    return apply


fpow = _formula("fpow")


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
    **{name: _formula(name) for name in FORMULAS},
    "fmod": _of_two(np.fmod), "copysign": _of_two(np.copysign), "rint": rint,
}  # fmt: skip
