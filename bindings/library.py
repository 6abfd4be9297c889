"""A library of codelets in this process: its tables read, its variables kept per tile, its drivers' addresses."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from popcore.bindings import elf, names
from popcore.bindings.codelet_abi import ffi
from popcore.errors import CodeletError


def number(name: str) -> int:
    """A constant of codelet_abi.h, without its POPCORE_."""
    return int(ffi.integer_const(f"POPCORE_{name}"))


DIRECTIONS = {number("STATE"): "state", number("IN"): "in", number("OUT"): "out", number("INOUT"): "inout"}
SHAPES = {number("SCALAR"): "scalar", number("VECTOR"): "vector", number("LIST"): "list", number("NOT_ALLOWED"): "refused"}
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
    is_codelet: bool
    index: int  # of its candidate


@dataclass
class Library:
    """A loaded library."""

    types: list[TypeRecord]
    drivers: dict[str, int]  # by the type's name; those that it has
    prints: bool
    variables: list[elf.Symbol]  # that it keeps for each tile
    unkept: list[elf.Symbol]  # of a library made by hand that does not
    handle: Any  # cffi's
    counters: dict[str, Any]  # by the type's name: what its counters add, an array of the library

    def weigh(self, name: str, adds: Mapping[int, int]) -> None:
        """Say what the counters of a type add."""
        if (table := self.counters.get(name)) is not None:
            for counter, amount in adds.items():
                if counter < table.count:
                    table.adds[counter] = amount

    def forget(self, memory: int) -> None:
        """Give all tiles of the arena at ``memory`` their variables' first values."""
        if self.variables:
            self.handle.popcore_forget(ffi.cast("uint8_t *", memory))

    def values(self, memory: int, tile: int, own: bool) -> memoryview | None:
        """What a tile of the arena at ``memory`` has for its variables. None where they are as at first, unless it is to have its ``own``."""
        found = self.handle.popcore_variables_of(ffi.cast("uint8_t *", memory), tile, own)
        return memoryview(ffi.buffer(found, sum(v.nbytes for v in self.variables))) if found != ffi.NULL else None


@functools.cache
def load(folder: Path, name: str) -> Library:
    """Load the library ``name``, once.

    Raises: CodeletError for one that is no library of codelets.
    """
    path = folder / name
    try:
        # Its signal handlers stay in place until the process ends, when cffi would have unloaded it.
        handle = ffi.dlopen(str(path), ffi.RTLD_NOW | ffi.RTLD_LOCAL | ffi.RTLD_NODELETE)
    except OSError as error:
        raise CodeletError(f"a library of codelets cannot be loaded: {error}", "make it for this processor and system") from error
    try:
        version, count, table = handle.popcore_abi_version, handle.popcore_type_count, handle.popcore_types
    except ffi.error as error:
        raise CodeletError(f"{name} is no library of codelets: {error}", "it has to define what codelet_abi.h declares") from error
    if version != number("ABI_VERSION"):
        raise CodeletError(f"{name} was made for version {version} of the codelet interface, this is version {number('ABI_VERSION')}", "compile it again")
    try:
        types = [_record(table[i]) for i in range(count)]
    except (ValueError, RuntimeError) as error:  # a table written by hand: an unknown number, a null or no text
        raise CodeletError(f"{name} is no library of codelets: its table has {error}", "what codelet_abi.h says of names, directions and shapes") from error
    content = path.read_bytes()
    if (prepare := _optional(handle, "popcore_prepare")) is not None:
        prepare(int(float(os.environ.get("POPCORE_CALL_SECONDS", CALL_SECONDS)) * 1e9))
    found = elf.variables(content)
    if (keep_variables := _optional(handle, "popcore_keep_variables")) is not None and found:
        _keep(keep_variables, elf.address_of(content, "popcore_keep_variables"), found)
    prints = elf.prints(content)
    types = [msgspec.structs.replace(record, prints=prints or record.prints) for record in types]
    drivers = {record.name: address for i, record in enumerate(types) if (address := int(ffi.cast("intptr_t", table[i].driver)))}
    table_of_counters = _optional(handle, "popcore_type_counters")
    counters = {record.name: table_of_counters[i] for i, record in enumerate(types) if table_of_counters and table_of_counters[i].adds}
    kept = keep_variables is not None
    return Library(types, drivers, prints, found if kept else [], [] if kept else found, handle, counters)


_tables: list[Any] = []  # libraries are never unloaded, and point to these


def _optional(handle: Any, name: str) -> Any:
    """What a library may leave out; None if it does."""
    try:
        return getattr(handle, name)
    except ffi.error:
        return None


def _keep(keep_variables: Any, address: int, found: list[elf.Symbol]) -> None:
    """Tell a library where its variables are; ``address`` is the function's own, from where the library is loaded."""
    base = int(ffi.cast("intptr_t", keep_variables)) - address
    table = ffi.new("popcore_variable[]", [(ffi.cast("uint8_t *", base + s.address), s.nbytes) for s in found])
    _tables.append(table)
    keep_variables(table, len(found))


def _record(each: Any) -> TypeRecord:
    fields = tuple(_field(each.fields[i]) for i in range(each.field_count))
    flags = each.flags
    return TypeRecord(names.canonical(_spelled(each.name)), fields, each.workers, bool(flags & number("PRINTS")), not flags & number("NO_COMPUTE"), each.index)


def _field(each: Any) -> FieldRecord:
    interleaved, scalars = bool(each.flags & number("INTERLEAVED")), bool(each.flags & number("PIECES_ARE_SCALARS"))
    name = _string(each.name)
    if each.direction not in DIRECTIONS or each.shape not in SHAPES:
        raise ValueError(f"direction {each.direction} and shape {each.shape} for field {name}")
    return FieldRecord(name, _spelled(each.type), DIRECTIONS[each.direction], SHAPES[each.shape], each.align, interleaved, scalars)


def _string(text: Any) -> str:
    return bytes(ffi.string(text)).decode()


def _spelled(text: Any) -> str:
    """A type out of what the compiler calls the function that was asked: "... [with T = Sum<float>]"."""
    whole = _string(text)
    match = re.search(r"\bT = (.*)\]$", whole, re.DOTALL)
    return re.sub(r"\{anonymous\}::|\(anonymous namespace\)::", "", match[1]) if match else whole
