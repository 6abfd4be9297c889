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
from popcore.dialect.rounding import check, narrow_result, operand

_F32, _F16 = np.float32, np.float16


POLES = ("log", "log2", "log10", "log1p", "atanh")
"""Functions that are infinite at a finite number."""


def _of_one(function: Callable[[np.float32], Any], pole: bool = False) -> Callable[[Value], Value]:
    """``pole``: it is infinite at a finite number."""

    def apply(value: Value) -> Value:
        wide = operand(value) if isinstance(value, _F16) else to_float(value) * _F32(1)
        made = check(_F32(function(wide)), wide, pole=pole)
        return narrow_result(made) if isinstance(value, _F16) else made

    return apply


def _of_two(function: Callable[[np.float32, np.float32], Any], pole_at_zero: bool = False) -> Callable[[Value, Value], Value]:
    """HALF if both are halves or one is an integer; integers are converted each by itself."""

    def apply(left: Value, right: Value) -> Value:
        halves = _is_half(left, right)
        if halves:
            left, right = operand(to_half(left)), operand(to_half(right))
        else:
            left, right = to_float(left) * _F32(1), to_float(right) * _F32(1)
        made = check(_F32(function(left, right)), left, right, pole=pole_at_zero and bool(left == 0))
        return narrow_result(made) if halves else made

    return apply


def _formula(name: str) -> Callable[..., Value]:
    formula = FORMULAS[name]
    if ARITY[name] == 2:
        return _of_two(lambda left, right: formula(NUMPY, left, right), pole_at_zero=name == "fpow")
    return _of_one(lambda value: formula(NUMPY, value), name in POLES)


fpow = _formula("fpow")


def _is_half(left: Value, right: Value) -> bool:
    kinds = {type(left), type(right)}
    return _F16 in kinds and _F32 not in kinds


def _copysign(left: Value, right: Value) -> Value:
    """No arithmetic: infinities and denormals stay."""
    if _is_half(left, right):
        return np.copysign(to_half(left), to_half(right))
    return _F32(np.copysign(to_float(left), to_float(right)))


def _fabs(value: Value) -> Value:
    return np.fabs(value if isinstance(value, _F16) else to_float(value))


def _asks(function: Callable[[Any], Any]) -> Callable[[Value], bool]:
    def apply(value: Value) -> bool:
        return bool(function(to_float(value)))

    return apply


def rint(value: Value) -> Value:
    """Halves go to even; an integer stays as it is."""
    if isinstance(value, int):
        return int(value)
    return value if isinstance(value, np.uint64) else _rint(value)


def _rint(value: Value) -> Value:
    return narrow_result(np.rint(operand(value))) if isinstance(value, _F16) else np.rint(to_float(value))


OPERATIONS: dict[str, Callable[..., Any]] = {
    **{name: _of_one(getattr(np, name)) for name in EXACT if not name.startswith("is") and name not in ("copysign", "fabs")},
    **{name: _asks(getattr(np, name)) for name in EXACT if name.startswith("is")},
    **{name: _formula(name) for name in FORMULAS},
    "fmod": _of_two(lambda left, right: np.fmod(left, right) * _F32(1)), "copysign": _copysign, "fabs": _fabs, "rint": rint,
}  # fmt: skip
