"""Host values as elements of a tensor or a vertex field, and what to say when they do not fit."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np

from popcore.debug import user_site
from popcore.errors import ElementTypeError, ShapeError, ValueRangeError
from popcore.types import Array, ElementType


class PopcoreWarning(UserWarning):
    """Something that is allowed and often a mistake, as a constant that HALF cannot hold."""


def as_elements(value: Any, dtype: ElementType, what: str) -> Array:
    """``value`` as an array of ``dtype``'s host type, of the shape it came in.

    Raises:
        ValueRangeError: a value that ``dtype`` cannot hold; ``what`` names the place it is for.
        ElementTypeError: something that is no number.
    Warns: PopcoreWarning where HALF makes zero or infinity of a finite number.
    """
    given = _numbers(value, dtype, what)
    if given.dtype == dtype.numpy or not given.size:
        return given.astype(dtype.numpy)
    if dtype.is_integral:
        return _as_integers(given, dtype, what)
    if dtype.kind == "bool":
        _refuse(given, (given != 0) & (given != 1), dtype, what, "False or True")
        return given.astype(bool)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        made = given.astype(np.float64).astype(dtype.numpy) if given.dtype == object else given.astype(dtype.numpy)
        back = made.astype(np.float64)
        finite = np.isfinite(given.astype(np.float64))
    lost = finite & ~np.isfinite(back)
    if dtype.kind != "half":
        limit = {"float": "3.4028235e38", "quarter": "see ml_dtypes.finfo"}[dtype.kind]
        _refuse(given, lost, dtype, what, f"-{limit} to {limit}" if dtype.kind == "float" else limit)
        return made
    lost |= finite & (back == 0) & (given != 0)
    if lost.any():
        i = int(np.argmax(lost.reshape(-1)))
        warnings.warn(f"{what}: HALF makes {back.reshape(-1)[i]} of {given.reshape(-1)[i]}; keep it in FLOAT", PopcoreWarning, stacklevel=_outside())
    return made


def fitted(value: Any, dtype: ElementType, shape: tuple[int, ...], numel: int, what: str) -> Array:
    """``value`` as ``numel`` elements in row-major order; one value stands for all of them.

    Raises: ShapeError where there are neither one nor ``numel`` values, or their shape differs.
    """
    made = as_elements(value, dtype, what)
    if made.ndim == 0:
        return np.broadcast_to(made, (numel,))
    if made.shape == shape or (made.ndim == 1 and made.size == numel):
        return made.reshape(-1)
    raise ShapeError(f"{what} has shape {shape} and was given values of shape {made.shape}", "one value, or an array of that shape")


def limits(dtype: ElementType) -> tuple[int, int]:
    """The least and the greatest integer that an integral type holds."""
    bits = 8 * dtype.nbytes
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if dtype.kind == "int" else (0, (1 << bits) - 1)


def _numbers(value: Any, dtype: ElementType, what: str) -> Array:
    try:
        given = np.asarray(value)
    except ValueError:
        raise ShapeError(f"{what} was given rows of different lengths", "an array of one shape") from None
    if given.dtype.kind in "biuf" or given.dtype == dtype.numpy:
        return given
    if given.dtype == object and all(isinstance(v, (int, np.integer)) for v in given.flat):
        return given  # integers wider than 64 bits, or of mixed signs
    raise ElementTypeError(f"{what} is {dtype!r} and was given {value!r:.60}, which is no number", "a number, or an array of numbers")


def _as_integers(given: Array, dtype: ElementType, what: str) -> Array:
    low, high = limits(dtype)
    shown = f"{low} to {high}"
    if given.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            # 2.0**64 and 2.0**63 are exact, and high as a float would round up to them
            _refuse(given, ~((given == np.trunc(given)) & (given >= float(low)) & (given < float(high + 1))), dtype, what, shown)
    elif given.dtype == object or int(given.min()) < low or int(given.max()) > high:
        _refuse(given, np.array([not low <= int(v) <= high for v in given.flat]).reshape(given.shape), dtype, what, shown)
    return given.astype(dtype.numpy)


def _refuse(given: Array, bad: Array, dtype: ElementType, what: str, allowed: str) -> None:
    if not bad.any():
        return
    i = int(np.argmax(bad.reshape(-1)))
    place = f" (value {i} of {given.size})" if given.size > 1 else ""
    raise ValueRangeError(
        f"{what}: {given.reshape(-1)[i]!s} does not fit {dtype!r}{place}, which holds {allowed}", "choose a wider element type or another value"
    )


def _outside() -> int:
    """The stack level of the user's line, for warnings."""
    site = user_site()
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and (frame.f_code.co_filename, frame.f_lineno) != site:
        frame, level = frame.f_back, level + 1
    return level
