"""What the compiler and linker say, as errors that name the user's file and line and nothing of popcore's."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from popcore.bindings import toolchain
from popcore.bindings.generate import ORIGIN
from popcore.bindings.toolchain import HEADERS
from popcore.errors import CodeletError

_ERROR = re.compile(r"^(?P<file>[^:\n]+):(?P<line>\d+):(?:(?P<column>\d+):)? (?:fatal )?error: (?P<text>.*)$")
_NOTE = re.compile(r"^(?P<file>[^:\n]+):(?P<line>\d+):(?:(?P<column>\d+):)? (?: +required from|note: in instantiation of)")
_OLD_CLANG = re.compile(r"unknown argument:? '-ffloat16|_Float16 is not supported")
_UNDEFINED = re.compile(r"undefined reference to [`'](?P<name>[^'\n]+)'")
_SHOWN_LINES = 12


class _Place(ctypes.Structure):
    """What dladdr tells of an address."""

    _fields_ = (("file", ctypes.c_char_p), ("base", ctypes.c_void_p), ("symbol", ctypes.c_char_p), ("at", ctypes.c_void_p))


def line_of(code: int) -> tuple[str, int] | None:
    """The user's line that the code before address ``code`` was made of; None without binutils' addr2line, or where it knows none."""
    command, place = shutil.which("addr2line"), _Place()
    if command is None or not ctypes.CDLL(None).dladdr(ctypes.c_void_p(code), ctypes.byref(place)) or not place.file:
        return None
    library = Path(os.fsdecode(place.file))
    done = toolchain.run([command, "-i", "-e", str(library), hex(code - 1 - place.base)], "addr2line", library.parent)
    ours = ("/usr/include/", "/usr/lib/", os.path.realpath(toolchain.HEADERS))
    for text in done.stdout.splitlines():  # from the innermost of what was inlined to the outermost
        file, _, line = text.rpartition(":")
        number = re.match(r"\d+", line)
        if number and number[0] != "0" and not os.path.realpath(file).startswith(ours) and file != "??":
            return file, int(number[0])
    return None


def casts_away_const(text: str) -> bool:
    """Whether a source is older than the rule that an Input's elements are const."""
    return re.search(r"casts away qualifiers|discards qualifiers|invalid conversion from .const |invalid .static_cast. from type .const ", text) is not None


def is_permissible(text: str) -> bool:
    """Whether g++ would accept it with -fpermissive."""
    return "[-fpermissive]" in text


def _ours(file: str) -> bool:
    return file == ORIGIN or file.startswith(str(HEADERS)) or os.path.realpath(file).startswith(os.path.realpath(HEADERS))


def compile_error(text: str, what: str) -> CodeletError:
    """The error for a source that does not compile; ``text`` is the compiler's."""
    if _OLD_CLANG.search(text):
        return CodeletError(f"{what} cannot be compiled: this compiler has no half that is rounded after every operation", "g++ 12 or clang++ 16, or newer")
    lines = text.splitlines()
    first: tuple[str, str, str] | None = None
    asked_from: tuple[str, str] | None = None
    shown: list[str] = []
    keeping = False
    for line in lines:
        error = _ERROR.match(line)
        if error is None and (note := _NOTE.match(line)) is not None and not _ours(note["file"]):
            asked_from = (note["file"], note["line"])
        if error is not None:
            keeping = not _ours(error["file"])
            at = (error["file"], error["line"]) if keeping else asked_from
            if first is None and at is not None:
                first = (*at, error["text"])
            asked_from = None if keeping else asked_from
        elif re.match(r"^\S[^:]*: (In|At) |^In file included", line) or ((ours := re.match(r"^([^:\n]+):\d+:", line)) is not None and _ours(ours[1])):
            keeping = False
        if keeping and ORIGIN not in line and len(shown) < _SHOWN_LINES:
            shown.append(line)
    if first is None:
        message = next((m["text"] for line in lines if (m := _ERROR.match(line))), text.strip()[:300] or "the compiler gave no reason")
        return CodeletError(f"{what} does not compile: {message}", "compile the file with g++ alone to see all that it says")
    file, number, message = first
    rest = "\n".join(shown[1:]) if shown and message in shown[0] else "\n".join(shown)
    listed = f"\n{rest}" if rest else ""
    return CodeletError(
        f"{file}:{number}: {message}{listed}", "correct the line; g++ accepts what a tile's compiler accepts, but for its assembly", file=file, line=int(number)
    )


def link_error(text: str, what: str, assembly: Mapping[str, tuple[str, int]]) -> CodeletError:
    """The error for a codelet that uses what no file defines."""
    names = list(dict.fromkeys(m["name"] for m in _UNDEFINED.finditer(text)))
    for name in names:
        where = assembly.get(name.removesuffix("()"))
        if where is not None:
            return CodeletError(
                f"{what} runs the inline assembly at {os.path.basename(where[0])}:{where[1]}, and instructions of an IPU are not emulated",
                "guard it with #ifdef __IPU__ and give a C++ version",
                file=where[0], line=where[1],
            )  # fmt: skip
    if names:
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        return CodeletError(
            f"{what} uses {names[0]}{more}, which no given file defines", "graph.add_codelets([file, file_that_defines_it]); an assembly version does not count"
        )
    return CodeletError(f"{what} cannot be linked: {text.strip()[-300:]}", "compile the file with g++ -shared to see all that it says")
