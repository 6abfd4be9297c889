"""What the objects that a codelet may name mean on a tile: conversions, functions of ``math``, numbers."""

from __future__ import annotations

import math
from typing import Any, TypeVar

import numpy as np

from popcore.dialect.elementary import FORMULAS, gelu_erf, sigmoid
from popcore.types import ElementType

BINARY = {
    "Add": "add", "Sub": "sub", "Mult": "mul", "Div": "truediv", "BitAnd": "and", "BitOr": "or", "BitXor": "xor",
    "LShift": "lshift", "RShift": "rshift",
}  # fmt: skip
"""Operators of two numbers that cannot fail; ``//``, ``%`` and ``**`` can."""
FAILING = {"FloorDiv": "floordiv", "Mod": "mod", "Pow": "pow"}
COMPARE = {"Lt": "lt", "LtE": "le", "Gt": "gt", "GtE": "ge", "Eq": "eq", "NotEq": "ne"}
UNARY = {"USub": "neg", "UAdd": "pos", "Invert": "invert"}

EXACT = ("sqrt", "floor", "ceil", "trunc", "fabs", "copysign", "isnan", "isinf", "isfinite")
ARITY = dict.fromkeys((*EXACT, *FORMULAS), 1) | dict.fromkeys(("copysign", "fmod", "fpow", "atan2", "hypot"), 2) | {"rint": 1, "abs": 1}

_NUMPY_NAMES = {
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh", "arctan2": "atan2",
    "abs": "abs", "absolute": "abs", "rint": "rint", "power": "fpow",
}  # fmt: skip


def _functions() -> dict[int, str]:
    found: dict[int, str] = {}
    for name in (*EXACT, *FORMULAS, "fmod"):
        for module in (math, np):
            if (function := getattr(module, name, None)) is not None:
                found[id(function)] = name
    for numpy_name, name in _NUMPY_NAMES.items():
        found[id(getattr(np, numpy_name))] = name
    found[id(math.pow)] = "fpow"
    found[id(sigmoid)] = "sigmoid"
    found[id(gelu_erf)] = "gelu_erf"
    found[id(abs)] = "abs"
    return found


_FUNCTIONS = _functions()
_NUMPY_TYPES = {
    np.float32: "float", np.float16: "half", np.int8: "i8", np.int16: "i16", np.int32: "i32", np.int64: "i64",
    np.uint8: "u8", np.uint16: "u16", np.uint32: "u32", np.uint64: "u64", np.bool_: "bool",
    float: "float", int: "int", bool: "bool",
}  # fmt: skip


def function_name(value: Any) -> str | None:
    """The operation that a function of ``math`` or NumPy is on a tile."""
    return _FUNCTIONS.get(id(value))


def type_code(dtype: ElementType) -> str:
    """The short name of an element type in the names of operations: "float", "half", "i32", "u8", "bool"."""
    if dtype.kind in ("int", "uint"):
        return f"{dtype.kind[0]}{8 * dtype.nbytes}"
    return "u8" if dtype.kind == "quarter" else dtype.kind


def conversion(value: Any, types: dict[TypeVar, ElementType]) -> str | None:
    """The type that calling ``value`` converts to: an element type, a TypeVar that stands for one, ``float``, ..."""
    if isinstance(value, TypeVar):
        value = types.get(value)
    if isinstance(value, ElementType):
        return None if value.kind == "quarter" else type_code(value)
    try:
        return _NUMPY_TYPES.get(value)
    except TypeError:  # not hashable, so no type
        return None


def is_number(value: Any) -> bool:
    return isinstance(value, bool | int | float | np.bool_ | np.integer | np.floating) and not isinstance(value, np.longdouble)


def is_table(value: Any) -> bool:
    """Whether ``value`` is a sequence of numbers that can be kept beside the code."""
    if isinstance(value, np.ndarray):
        return value.ndim == 1 and value.size > 0 and value.dtype.kind in "fiub"
    return isinstance(value, tuple | list) and len(value) > 0 and all(is_number(v) for v in value)


def frozen_number(value: Any) -> Any:
    """``value`` as a codelet sees it: np.float32, np.float16, np.uint64, int or bool. OverflowError if it does not fit 64 bits."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, np.float16):
        return value
    if isinstance(value, float | np.floating):
        with np.errstate(over="ignore"):
            return np.float32(value)
    number = int(value)
    if isinstance(value, np.uint64) or 1 << 63 <= number < 1 << 64:
        return np.uint64(number)
    if not -(1 << 63) <= number < 1 << 63:
        raise OverflowError
    return number


def frozen_table(value: Any) -> np.ndarray[Any, Any]:
    """A sequence of numbers as a read-only array of float32, float16, int64, uint64 or bool."""
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        made = value.astype(np.float16 if value.dtype == np.float16 else np.float32)
    else:
        numbers = [frozen_number(v) for v in (value.tolist() if isinstance(value, np.ndarray) else value)]
        kinds = {type(v) for v in numbers}
        if kinds & {np.float32, np.float16}:
            made = np.array([np.float32(v) for v in numbers], np.float16 if kinds == {np.float16} else np.float32)
        elif kinds == {bool}:
            made = np.array(numbers, np.bool_)
        else:
            made = np.array(numbers, np.uint64 if np.uint64 in kinds else np.int64)
    made.setflags(write=False)
    return made
