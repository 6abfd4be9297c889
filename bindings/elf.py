"""Symbols of a shared library: which variables it can change, and whether it prints."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_SYMTAB, _NOBITS = 2, 8
_OBJECT, _WRITE, _TLS = 1, 1, 0x400
# The compiler's, the standard library's and popcore's own; not what the codelet's author wrote.
_NOT_USERS = ("_ZN7popcore", "_ZZN7popcore", "_ZNSt", "_ZSt", "_ZZNSt", "_ZTV", "_ZTI", "_ZTS", "_ZStL", "_DYNAMIC", "_GLOBAL_OFFSET_TABLE_")
_GUARD = "_ZGV"
_STARTUP = ("completed.0", "__dso_handle", "__TMC_END__", "__bss_start", "_edata", "_end", "object.0")


@dataclass(frozen=True)
class Symbol:
    """A variable or function."""

    name: str
    address: int  # from where the library is loaded
    nbytes: int
    is_object: bool
    writable: bool
    defined: bool


def symbols(content: bytes) -> Iterator[Symbol]:
    """All symbols of a 64-bit little-endian ELF file; none of any other file."""
    if content[:6] != b"\x7fELF\x02\x01":
        return
    head = _HEADER.unpack_from(content)
    offset, size, count = head[6], head[11], head[12]
    sections = [_SECTION.unpack_from(content, offset + i * size) for i in range(count)]
    for section in sections:
        if section[1] != _SYMTAB:
            continue
        names = sections[section[6]][4]
        for at in range(section[4], section[4] + section[5], _SYMBOL.size):
            name, info, _, index, value, nbytes = _SYMBOL.unpack_from(content, at)
            defined = 0 < index < count
            flags = sections[index][2] if defined else 0
            text = content[names + name : content.index(b"\0", names + name)].decode("ascii", "replace")
            relocated = defined and _section_name(content, sections, head[13], index).startswith((".data.rel.ro", ".init_array", ".fini_array", ".got"))
            yield Symbol(text, value, nbytes, info & 15 == _OBJECT, bool(flags & _WRITE) and not flags & _TLS and not relocated, defined)


def _section_name(content: bytes, sections: list[tuple[int, ...]], names: int, index: int) -> str:
    start = sections[names][4] + sections[index][0]
    return content[start : content.index(b"\0", start)].decode("ascii", "replace")


def variables(content: bytes) -> list[Symbol]:
    """Variables of the codelet's author that keep a value between calls, and the guards of those that are made at first use."""
    found = [s for s in symbols(content) if s.is_object and s.writable and s.nbytes and not s.name.startswith(_NOT_USERS) and s.name not in _STARTUP]
    users = [s for s in found if "7popcore" not in s.name]
    return sorted((s for s in users if not s.name.startswith(_GUARD) or "St" not in s.name), key=lambda s: s.address)


def prints(content: bytes) -> bool:
    """Whether a library calls the printf of codelets."""
    return any(s.name == "popcore_printf" and s.defined for s in symbols(content))
