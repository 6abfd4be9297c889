"""A library of codelets in this process: its tables read, its variables kept per tile, its drivers' addresses."""

from __future__ import annotations

import ctypes
import functools
import os
import re
from dataclasses import dataclass
from pathlib import Path

import msgspec

from popcore.bindings import cache, elf, names
from popcore.errors import CodeletError

ABI_VERSION = 1
DIRECTIONS = ("state", "in", "out", "inout")
SHAPES = ("scalar", "vector", "list", "refused")
_INTERLEAVED, _PIECES_ARE_SCALARS = 1, 2
_PRINTS, _SUPERVISOR, _NO_COMPUTE = 1, 2, 4
CALL_SECONDS = 60.0  # of thread time that one call of compute may take


class FieldRecord(msgspec.Struct, frozen=True):
    """One member of a vertex class."""

    name: str
    type: str  # of an element: the name of an element type, or how C++ spells one that a tile cannot hold
    direction: str
    shape: str
    align: int
    interleaved: bool
    scalars: bool  # a list of edges of one element each


class TypeRecord(msgspec.Struct, frozen=True):
    """One vertex class as the compiler describes it."""

    name: str
    fields: tuple[FieldRecord, ...]
    workers: int
    prints: bool
    supervisor: bool
    is_codelet: bool
    index: int  # of its candidate


class _CField(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p), ("type", ctypes.c_char_p), ("direction", ctypes.c_int32),
        ("shape", ctypes.c_int32), ("align", ctypes.c_int32), ("flags", ctypes.c_int32),
    )  # fmt: skip


class _CType(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p), ("fields", ctypes.POINTER(_CField)), ("driver", ctypes.c_void_p), ("field_count", ctypes.c_int32),
        ("workers", ctypes.c_int32), ("flags", ctypes.c_int32), ("reserved", ctypes.c_int32),
    )  # fmt: skip


class _CVariable(ctypes.Structure):
    _fields_ = (("address", ctypes.c_void_p), ("bytes", ctypes.c_int64))


@dataclass
class Library:
    """A loaded library."""

    types: list[TypeRecord]
    drivers: dict[str, int]  # by the type's name; those that it has
    prints: bool
    variables: list[elf.Symbol]
    handle: ctypes.CDLL

    def forget(self, memory: int) -> None:
        """Give all tiles of the arena at ``memory`` their variables' first values."""
        if self.variables:
            self.handle.popcore_forget(ctypes.c_void_p(memory))


@functools.cache
def load(folder: Path, name: str) -> Library:
    """Load the library ``name``, once.

    Raises: CodeletError for one that is no library of codelets.
    """
    path = folder / name
    try:
        handle = ctypes.CDLL(str(path), mode=os.RTLD_NOW | os.RTLD_LOCAL)
    except OSError as error:
        raise CodeletError(f"a library of codelets cannot be loaded: {error}", "make it for this processor and system") from error
    try:
        version = ctypes.c_int32.in_dll(handle, "popcore_abi_version").value
        count = ctypes.c_int32.in_dll(handle, "popcore_type_count").value
        table = (_CType * count).in_dll(handle, "popcore_types")
    except ValueError as error:
        raise CodeletError(f"{name} is no library of codelets: {error}", "it has to define what codelet_abi.h declares") from error
    if version != ABI_VERSION:
        raise CodeletError(f"{name} was made for version {version} of the codelet interface, this is version {ABI_VERSION}", "compile it again")
    content = path.read_bytes()
    found = elf.variables(content) if hasattr(handle, "popcore_keep_variables") else []
    if hasattr(handle, "popcore_prepare"):
        handle.popcore_prepare(ctypes.c_int64(int(float(os.environ.get("POPCORE_CALL_SECONDS", CALL_SECONDS)) * 1e9)))
    if found:
        _keep_variables(handle, content, found)
    prints = elf.prints(content)
    types = [_record(each, prints) for each in table]
    drivers = {record.name: each.driver for record, each in zip(types, table, strict=True) if each.driver}
    return Library(types, drivers, prints, found, handle)


_tables: list[ctypes.Array[_CVariable]] = []  # libraries are never unloaded, and point to these


def _keep_variables(handle: ctypes.CDLL, content: bytes, found: list[elf.Symbol]) -> None:
    base = (ctypes.cast(handle.popcore_keep_variables, ctypes.c_void_p).value or 0) - elf.address_of(content, "popcore_keep_variables")
    table = (_CVariable * len(found))(*(_CVariable(base + s.address, s.nbytes) for s in found))
    _tables.append(table)
    handle.popcore_keep_variables(table, ctypes.c_int64(len(found)))


def _record(each: _CType, prints: bool) -> TypeRecord:
    fields = tuple(
        FieldRecord(
            f.name.decode(), _spelled(f.type.decode()), DIRECTIONS[f.direction], SHAPES[f.shape], f.align,
            bool(f.flags & _INTERLEAVED), bool(f.flags & _PIECES_ARE_SCALARS),
        )
        for f in each.fields[: each.field_count]
    )  # fmt: skip
    flags = each.flags
    return TypeRecord(
        names.canonical(_spelled(each.name.decode())), fields, each.workers, prints or bool(flags & _PRINTS),
        bool(flags & _SUPERVISOR), not flags & _NO_COMPUTE, each.reserved,
    )  # fmt: skip


def _spelled(text: str) -> str:
    """A type out of what the compiler calls the function that was asked: "... [with T = Sum<float>]"."""
    match = re.search(r"\bT = (.*)\]$", text, re.DOTALL)
    return re.sub(r"\{anonymous\}::|\(anonymous namespace\)::", "", match[1]) if match else text


def is_whole(folder: Path, name: str) -> bool:
    """Whether a library is in the cache, undamaged."""
    return cache.is_whole(folder, name)
