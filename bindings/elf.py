"""Symbols of a shared library: which variables it can change, and whether it prints."""

from __future__ import annotations

import struct
from dataclasses import dataclass

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_SYMTAB = 2
_OBJECT, _WRITE, _TLS = 1, 1, 0x400
# The compiler's, the standard library's and popcore's own; not what the codelet's author wrote.
_NOT_USERS = ("_ZN7popcore", "_ZZN7popcore", "_ZNSt", "_ZSt", "_ZZNSt", "_ZTV", "_ZTI", "_ZTS", "_ZStL", "_DYNAMIC", "_GLOBAL_OFFSET_TABLE_", "DW.ref.")
_GUARD = "_ZGV"
_STARTUP = ("completed.0", "__dso_handle", "__TMC_END__", "__bss_start", "_edata", "_end", "object.0")


# Processors by their numbers in the ELF specification, as ``platform.machine`` has them.
_MACHINES = {3: "i686", 20: "ppc", 21: "ppc64le", 22: "s390x", 40: "armv7l", 62: "x86_64", 183: "aarch64", 243: "RISC-V", 258: "loongarch64"}


def machine(content: bytes) -> str | None:
    """The processor that a file is for; None for what is no little-endian ELF file."""
    if content[:4] != b"\x7fELF" or content[5:6] != b"\x01" or len(content) < 20:
        return None
    number = int.from_bytes(content[18:20], "little")
    return _MACHINES.get(number, f"the processor with ELF number {number}")


@dataclass(frozen=True)
class Symbol:
    """A variable."""

    name: str
    address: int  # from where the library is loaded
    nbytes: int


@dataclass(frozen=True)
class _Tables:
    """Where a file has its symbols: all in the tables that are not needed for loading."""

    content: bytes
    sections: list[tuple[int, ...]]
    section_names: int
    symbols: list[tuple[int, ...]]
    names: int  # where the symbols' names begin

    def name(self, symbol: tuple[int, ...]) -> str:
        start = self.names + symbol[0]
        return self.content[start : self.content.index(b"\0", start)].decode("ascii", "replace")

    def keeps_values(self, section: int) -> bool:
        """Whether a section can be written to by a codelet; not what belongs to a thread, or is written while loading only."""
        if not 0 < section < len(self.sections):
            return False
        start = self.section_names + self.sections[section][0]
        flags = self.sections[section][2]
        return bool(flags & _WRITE) and not flags & _TLS and not self.content.startswith((b".data.rel.ro", b".init_array", b".fini_array", b".got"), start)


def _tables(content: bytes) -> _Tables | None:
    """None for what is no 64-bit little-endian ELF file, or has no symbols."""
    if content[:6] != b"\x7fELF\x02\x01":
        return None
    head = _HEADER.unpack_from(content)
    offset, size, count = head[6], head[11], head[12]
    sections = [_SECTION.unpack_from(content, offset + i * size) for i in range(count)]
    for section in sections:
        if section[1] == _SYMTAB:
            symbols = list(_SYMBOL.iter_unpack(content[section[4] : section[4] + section[5]]))
            return _Tables(content, sections, sections[head[13]][4], symbols, sections[section[6]][4])
    return None


def address_of(content: bytes, name: str) -> int:
    """Where a symbol is, from where the library is loaded."""
    tables = _tables(content)
    found = [s for s in tables.symbols if tables.name(s) == name] if tables else []
    return int(found[0][4]) if found else 0


def variables(content: bytes) -> list[Symbol]:
    """Variables of the codelet's author that keep a value between calls, and the guards of those that are made at first use."""
    tables = _tables(content)
    if tables is None:
        return []
    kept = {section for section in range(len(tables.sections)) if tables.keeps_values(section)}
    objects = [Symbol(tables.name(s), s[4], s[5]) for s in tables.symbols if s[3] in kept and s[1] & 15 == _OBJECT and s[5]]
    found = [s for s in objects if not s.name.startswith(_NOT_USERS) and s.name not in _STARTUP]
    users = [s for s in found if "7popcore" not in s.name]
    return sorted((s for s in users if not s.name.startswith(_GUARD) or "St" not in s.name), key=lambda s: s.address)


def prints(content: bytes) -> bool:
    """Whether a library calls the printf of codelets; the linker leaves it out of one that does not."""
    return b"\0popcore_printf\0" in content
