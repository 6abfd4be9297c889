"""What a field is while a codelet runs as Python: views that read and store as a tile does."""

from __future__ import annotations

from typing import Any

import numpy as np

from popcore.dialect import arithmetic
from popcore.errors import CodeletError
from popcore.types import Array

_READ: dict[str, Any] = {"f": lambda v: v, "i": int, "u": int, "b": bool}


class _View:
    """Over a NumPy array: its memory is the field."""

    __slots__ = ("_integer", "_read", "array", "writable")
    rank = 1

    def __init__(self, array: Array, writable: bool = True) -> None:
        if array.ndim != self.rank:
            raise ValueError(f"{type(self).__name__} needs {self.rank} dimensions, not {array.ndim}")
        kind = array.dtype.kind
        if kind not in "fiub" or array.dtype == np.float64:
            raise TypeError(f"a field cannot hold {array.dtype}: view an FP8 array as uint8")
        self.array, self.writable = array, writable
        self._read = np.uint64 if array.dtype == np.uint64 else _READ[kind]
        self._integer = (8 * array.dtype.itemsize, kind == "i") if kind in "iu" else None

    def _converted(self, value: Any) -> Any:
        if self._integer:
            return arithmetic.convert_integer(value, *self._integer)
        if self.array.dtype == np.bool_:
            return arithmetic.as_bool(value)
        if self.array.dtype == np.float32:
            return arithmetic.to_float(value)
        return arithmetic.to_half(value)

    def _store(self, where: Any, value: Any) -> None:
        if not self.writable:
            raise CodeletError("an Input was written", "declare the field as InOut or Output")
        self.array[where] = self._converted(value)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.array!r})"


class ScalarBox(_View):
    """A scalar field: an array of no dimensions."""

    __slots__ = ()
    rank = 0

    def load(self) -> Any:
        return self._read(self.array[()])

    def store(self, value: Any) -> None:
        self._store((), value)


class VectorView(_View):
    """A field, or part of one, of one dimension."""

    __slots__ = ()

    def __len__(self) -> int:
        return len(self.array)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def size(self) -> int:
        return self.array.size

    def __getitem__(self, index: int) -> Any:
        return self._read(self.array[index])

    def __setitem__(self, index: int, value: Any) -> None:
        self._store(index, value)

    def part(self, low: int, high: int | None) -> VectorView:
        return type(self)(self.array[low:high], self.writable)


class MatrixView(_View):
    """A field of two dimensions."""

    __slots__ = ()
    rank = 2

    def __len__(self) -> int:
        return len(self.array)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def size(self) -> int:
        return self.array.size

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, tuple):
            return self._read(self.array[index])
        return VectorView(self.array[index], self.writable)

    def __setitem__(self, index: tuple[int, int], value: Any) -> None:
        if not isinstance(index, tuple):
            raise CodeletError("a row of a matrix cannot be assigned as a whole", "assign its elements: m[r, c] = ...")
        self._store(index, value)

    def part(self, low: int, high: int | None) -> MatrixView:
        return type(self)(self.array[low:high], self.writable)


class ListView:
    """A field that is a list of vectors."""

    __slots__ = ("pieces",)

    def __init__(self, pieces: list[Array], writable: bool = True) -> None:
        self.pieces = [VectorView(piece, writable) for piece in pieces]

    def __len__(self) -> int:
        return len(self.pieces)

    def __getitem__(self, index: int) -> VectorView:
        return self.pieces[index]

    def __repr__(self) -> str:
        return f"ListView({self.pieces!r})"
