"""Element types of an IPU: what one element of a tensor, or of a vertex field, is.

An element type is a class, so that it can stand in an annotation (``Input[Vector[FLOAT]]``) and
convert a number inside a codelet (``HALF(x)``). Type checkers see the Python type it behaves as.
The names and widths are Poplar's (Poplar API, ``poplar/Type.hpp``): ``LONG`` is 32 bits wide on the
device, ``CHAR`` is signed, ``BOOL`` is one byte. The machine has no double.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from popcore.errors import ElementTypeError, near_matches


class ElementType(type):
    """The class of FLOAT, HALF, INT, ...; each of those is one instance."""

    poplar_name: str  # as Poplar prints it: "float", "unsigned int"
    numpy_name: str
    nbytes: int  # bytes of one element in tile memory
    kind: str  # "float", "half", "int", "uint", "bool" or "quarter"

    def __new__(mcls, name: str, poplar_name: str, numpy_name: str, nbytes: int, kind: str) -> ElementType:
        made = super().__new__(mcls, name, (), {"__doc__": f"Element type ``{poplar_name}``.", "__module__": __name__})
        made.poplar_name, made.numpy_name, made.nbytes, made.kind = poplar_name, numpy_name, nbytes, kind
        return made

    def __init__(cls, *_: object) -> None:
        super().__init__(cls)

    @property
    def numpy(cls) -> np.dtype[Any]:
        """The NumPy dtype of one element on the host."""
        if cls.kind == "quarter":
            import ml_dtypes  # only FP8 needs it

            found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, cls.numpy_name))
            return found
        return np.dtype(cls.numpy_name)

    @property
    def is_floating(cls) -> bool:
        return cls.kind in ("float", "half", "quarter")

    @property
    def is_integral(cls) -> bool:
        return cls.kind in ("int", "uint")

    def __call__(cls, value: Any) -> Any:
        """Convert ``value`` as a store to a field of this type would: round, truncate or wrap."""
        if cls.kind in ("int", "uint"):
            bits = 8 * cls.nbytes
            wrapped = int(value) & ((1 << bits) - 1)
            return wrapped - (1 << bits) if cls.kind == "int" and wrapped >> (bits - 1) else wrapped
        if cls.kind == "bool":
            return bool(value)
        with np.errstate(over="ignore", invalid="ignore"):
            return cls.numpy.type(value)

    def __repr__(cls) -> str:
        return cls.__name__

    def __reduce__(cls) -> str:
        return cls.__name__


def _make(name: str, poplar_name: str, numpy_name: str, nbytes: int, kind: str) -> ElementType:
    return ElementType(name, poplar_name, numpy_name, nbytes, kind)


if TYPE_CHECKING:
    FLOAT: TypeAlias = float
    HALF: TypeAlias = float
    QUARTER_F143: TypeAlias = float
    QUARTER_F152: TypeAlias = float
    INT: TypeAlias = int
    UNSIGNED_INT: TypeAlias = int
    SHORT: TypeAlias = int
    UNSIGNED_SHORT: TypeAlias = int
    CHAR: TypeAlias = int
    SIGNED_CHAR: TypeAlias = int
    UNSIGNED_CHAR: TypeAlias = int
    LONG: TypeAlias = int
    UNSIGNED_LONG: TypeAlias = int
    LONGLONG: TypeAlias = int
    UNSIGNED_LONGLONG: TypeAlias = int
    BOOL: TypeAlias = bool
else:
    FLOAT = _make("FLOAT", "float", "float32", 4, "float")
    HALF = _make("HALF", "half", "float16", 2, "half")
    QUARTER_F143 = _make("QUARTER_F143", "quarter<F143>", "float8_e4m3fnuz", 1, "quarter")
    QUARTER_F152 = _make("QUARTER_F152", "quarter<F152>", "float8_e5m2fnuz", 1, "quarter")
    INT = _make("INT", "int", "int32", 4, "int")
    UNSIGNED_INT = _make("UNSIGNED_INT", "unsigned int", "uint32", 4, "uint")
    SHORT = _make("SHORT", "short", "int16", 2, "int")
    UNSIGNED_SHORT = _make("UNSIGNED_SHORT", "unsigned short", "uint16", 2, "uint")
    CHAR = _make("CHAR", "char", "int8", 1, "int")
    SIGNED_CHAR = _make("SIGNED_CHAR", "signed char", "int8", 1, "int")
    UNSIGNED_CHAR = _make("UNSIGNED_CHAR", "unsigned char", "uint8", 1, "uint")
    LONG = _make("LONG", "long", "int32", 4, "int")
    UNSIGNED_LONG = _make("UNSIGNED_LONG", "unsigned long", "uint32", 4, "uint")
    LONGLONG = _make("LONGLONG", "long long", "int64", 8, "int")
    UNSIGNED_LONGLONG = _make("UNSIGNED_LONGLONG", "unsigned long long", "uint64", 8, "uint")
    BOOL = _make("BOOL", "bool", "bool", 1, "bool")

DTypeLike: TypeAlias = "ElementType | type[Any] | str | np.dtype[Any]"
"""What a public call takes for an element type: FLOAT, "float", "unsigned int", np.float32, ..."""

ELEMENT_TYPES: tuple[Any, ...] = (
    FLOAT, HALF, INT, UNSIGNED_INT, BOOL, SHORT, UNSIGNED_SHORT, CHAR, SIGNED_CHAR, UNSIGNED_CHAR,
    LONG, UNSIGNED_LONG, LONGLONG, UNSIGNED_LONGLONG, QUARTER_F143, QUARTER_F152,
)  # fmt: skip
"""Every element type. Where two have the same NumPy dtype the first is the one that dtype means."""

_ALIASES = {"unsigned": "unsigned int", "unsignedint": "unsigned int"}
_BY_NAME: dict[str, ElementType] = {}
for _t in reversed(ELEMENT_TYPES):
    for _key in (_t.numpy_name, _t.__name__.lower(), _t.poplar_name, _t.poplar_name.replace(" ", "")):
        _BY_NAME[_key.lower()] = _t
for _key, _name in _ALIASES.items():
    _BY_NAME[_key] = _BY_NAME[_name]


def as_element_type(dtype: DTypeLike) -> ElementType:
    """The element type that ``dtype`` names.

    Raises:
        ElementTypeError: there is none; float64 is refused since the machine has no double.
    """
    if isinstance(dtype, ElementType):
        return cast(ElementType, dtype)
    if isinstance(dtype, str):
        name = dtype.strip().removeprefix("poplar::").lower().removesuffix("_t")
        if (found := _BY_NAME.get(name)) is not None:
            return found
        raise ElementTypeError(f"no element type is called {dtype!r}", near_matches(name, _BY_NAME, "one of popcore.types.ELEMENT_TYPES"))
    try:
        return _BY_NAME[np.dtype(dtype).name]
    except (KeyError, TypeError):
        raise ElementTypeError(f"{dtype!r} is no element type of an IPU", "FLOAT, HALF, INT, UNSIGNED_INT or BOOL") from None


Array: TypeAlias = npt.NDArray[Any]
"""Any NumPy array; shapes and dtypes are given where one is used."""
