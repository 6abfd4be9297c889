"""How results are rounded to HALF and which of them stop the program: the floating-point state of the tile that is interpreted.

=========  ===========================================================================================================
rule       of a number that is 65520 or more in magnitude, so that it does not round to 65504
=========  ===========================================================================================================
saturate   65504 with its sign; an infinity that is converted to HALF, or is a HALF operand of arithmetic, gives NaN
nan        NaN; infinities as above
ieee       infinity
=========  ===========================================================================================================

With stochastic rounding random bits are added below the half's last bit and what is below is cut off, in place of rounding to the
nearest. ``popcore.kernels`` has the same as code (``half``, ``stochastic``, ``traps``); both change together.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from popcore.kernels.behaviour import DIV0, IEEE, INV, LARGEST, NAN, OFLO, OVERFLOWS, Arithmetic
from popcore.kernels.randomness import random_bits

_F32, _F16 = np.float32, np.float16
_NAN16 = _F16("nan")
_TOO_LARGE = {"saturate": 0x7BFF, "nan": 0x7E00, "ieee": 0x7C00}


class Trap(Exception):
    """A result that stops the program.

    Attributes:
        kind: INV, DIV0 or OFLO.
        values: The operands, then the result, as FLOAT.
    """

    def __init__(self, kind: int, values: tuple[Any, ...]) -> None:
        super().__init__(kind, values)
        self.kind, self.values = kind, values


class _State(threading.local):
    """Of the codelet that this thread interprets."""

    arithmetic = Arithmetic()
    key = 0  # of its random bits
    counter = 0  # of its roundings


state = _State()


@contextmanager
def using(arithmetic: Arithmetic) -> Iterator[None]:
    """Interpret by ``arithmetic`` inside."""
    before, state.arithmetic = state.arithmetic, arithmetic
    try:
        yield
    finally:
        state.arithmetic = before


def begin(key: int) -> None:
    """Before a call of ``compute``: where its random bits come from."""
    state.key, state.counter = key, 0


def _trap(kind: int, *values: Any) -> None:
    if state.arithmetic.traps & kind:
        raise Trap(kind, values)


def check(result: np.float32, *operands: np.float32, pole: bool = False, additive: bool = False) -> np.float32:
    """Stop at a result that is invalid, a division by zero, or too large.

    Args:
        pole: An infinite result of finite operands is a division by zero.
        additive: An infinite operand makes it invalid, as in a sum.
    """
    if state.arithmetic.traps:
        finite = all(np.isfinite(each) for each in operands)
        infinite = bool(np.isinf(result))
        if np.isnan(result) or (additive and infinite and not finite):
            _trap(INV, *operands, result)
        if infinite and finite:
            _trap(DIV0 if pole else OFLO, *operands, result)
    return result


def check_order(left: Any, right: Any) -> None:
    """Stop at a comparison by size with NaN."""
    if state.arithmetic.traps and (np.isnan(left) or np.isnan(right)):
        _trap(INV, _F32(left), _F32(right))


def operand(value: np.float16) -> np.float32:
    """A HALF as an operand of arithmetic, which is done in FLOAT."""
    wide = _F32(value)
    if state.arithmetic.rule == IEEE:
        return wide
    if state.arithmetic.traps and not np.isfinite(wide):
        _trap(INV, wide)
    return wide - (wide - wide)


def narrow(value: np.float32) -> np.float16:
    """The HALF that a FLOAT is converted to."""
    _check_narrow(value)
    return _narrow(value if state.arithmetic.rule == IEEE else value - (value - value))


def narrow_result(value: np.float32) -> np.float16:
    """The HALF of what a function of finite numbers gave: an infinity is a result too large."""
    _check_narrow(value)
    return _narrow(value)


def _check_narrow(value: np.float32) -> None:
    if state.arithmetic.traps and OVERFLOWS <= abs(value) < np.inf:
        _trap(OFLO, value)
        if state.arithmetic.rule == NAN:
            _trap(INV, value)


def _narrow(value: np.float32) -> np.float16:
    rule = state.arithmetic.rule
    if state.arithmetic.stochastic:
        return _stochastic(value, rule)
    if rule == NAN and abs(value) >= OVERFLOWS:
        return _NAN16
    if rule != IEEE:
        value = _F32(LARGEST) if value > LARGEST else _F32(-LARGEST) if value < -LARGEST else value
    made: np.float16 = value.astype(_F16)
    return made


def _stochastic(value: np.float32, rule: str) -> np.float16:
    random = random_bits(state.key, state.counter)
    state.counter += 1
    pattern = int(value.view(np.uint32))
    magnitude, sign = pattern & 0x7FFFFFFF, pattern >> 16 & 0x8000
    exponent = magnitude >> 23
    if magnitude > 0x7F800000:
        found = 0x7E00
    elif exponent < 102:  # below 2^-25
        found = 0
    else:
        below = max(113 - exponent, 0)  # binades under the least normal half
        cut = 13 + below
        mantissa = pattern & 0x7FFFFF | 0x800000
        found = (mantissa + (random & (1 << cut) - 1) >> cut) + (exponent + below - 113 << 10)
        if found >= 0x7C00:
            found = _TOO_LARGE[rule]
    made: np.float16 = np.uint16(found | sign).view(_F16)
    return made


def on_arrays(operation: Callable[..., Any], *operands: Any) -> Any:
    """A NumPy operation on arrays, HALF done in FLOAT and rounded once by the rule that holds; to the nearest, and without a stop."""
    if operands[0].dtype != _F16:
        return operation(*operands)
    return narrow_array(np.asarray(operation(*(each.astype(_F32) for each in operands))))


def narrow_array(wide: Any) -> Any:
    """An array of FLOAT as HALF by the rule that holds; to the nearest, and without a stop."""
    if state.arithmetic.rule != IEEE:
        wide = wide - (wide - wide)
        limit = _F32("nan") if state.arithmetic.rule == NAN else _F32(LARGEST)
        wide = np.where(np.abs(wide) >= OVERFLOWS, np.copysign(limit, wide), wide)
    return wide.astype(_F16)
