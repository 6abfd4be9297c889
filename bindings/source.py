"""Preprocessed text of a codelet file: whose lines are whose, and the edits that make it plain C++."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

_MARKER = re.compile(rb'# (\d+) "((?:[^"\\]|\\.)*)"((?: \d)*)\s*$')
_OPEN = re.compile(rb"\[\s*\[\s*(?:poplar|clang|gnu|ipu)\s*::")
_TARGET = re.compile(rb'\btarget\s*\(\s*"(?:supervisor|worker)"\s*\)')


@dataclass(frozen=True)
class Line:
    """Where a line of the preprocessed text comes from."""

    file: str
    number: int
    user: bool  # not of a system header, nor of popcore's


@dataclass(frozen=True)
class Edit:
    """Bytes [begin, end) to be replaced."""

    begin: int
    end: int
    text: bytes


class Text:
    """The output of the preprocessor. ``masked`` has the user's lines only, the others empty, so that rows are the same."""

    def __init__(self, preprocessed: bytes) -> None:
        self._lines = preprocessed.split(b"\n")
        self.origin, self.files = _origins(self._lines)
        shown = [line if where.user else b"" for line, where in zip(self._lines, self.origin, strict=True)]
        self.masked = _without_attributes(b"\n".join(shown))

    def edited(self, edits: Sequence[Edit]) -> bytes:
        """The whole text with edits of ``masked`` made."""
        parts, at = [], 0
        for edit in sorted(edits, key=lambda e: e.begin):
            if edit.begin < at:
                continue  # inside of one that was made
            parts += [self.masked[at : edit.begin], edit.text + b"\n" * self.masked.count(b"\n", edit.begin, edit.end)]
            at = edit.end
        shown = b"".join([*parts, self.masked[at:]]).split(b"\n")
        return b"\n".join(ours if where.user else line for ours, line, where in zip(shown, self._lines, self.origin, strict=True))

    def user_text(self) -> bytes:
        """What the user wrote, and nothing that differs between machines."""
        return re.sub(rb"\n+", b"\n", self.masked)

    def at(self, row: int) -> Line:
        return self.origin[row]


def _origins(lines: Sequence[bytes]) -> tuple[list[Line], list[str]]:
    origin: list[Line] = []
    files: dict[str, None] = {}
    users: set[str] = set()
    file, number, user = "", 0, False
    for line in lines:
        if line.startswith(b"# ") and (match := _MARKER.match(line)) is not None:
            file = re.sub(r"\\(.)", r"\1", match[2].decode("utf-8", "surrogateescape"))
            number = int(match[1])
            # A macro of a system header, used in the user's file, comes on lines that are marked as the system's.
            user = (b"3" not in match[3].split() and not file.startswith("<")) or file in users
            if user:
                users.add(file)
            if file and not file.startswith("<") and not file.endswith("//"):
                files.setdefault(os.path.abspath(file))
            origin.append(Line(file, number, False))
            continue
        origin.append(Line(file, number, user))
        number += 1
    return origin, list(files)


def _without_attributes(text: bytes) -> bytes:
    """Blank attributes that only the tile's compiler knows."""
    for match in reversed(list(_OPEN.finditer(text))):
        end = _closing(text, match.start())
        text = text[: match.start()] + _blank(text[match.start() : end]) + text[end:]
    return _TARGET.sub(lambda m: _blank(m[0]), text)


def _closing(text: bytes, begin: int) -> int:
    depth, quoted = 0, False
    for i in range(begin, len(text)):
        c = text[i : i + 1]
        if c == b'"' and text[i - 1 : i] != b"\\":
            quoted = not quoted
        elif not quoted and c in b"[]":
            depth += 1 if c == b"[" else -1
            if depth == 0:
                return i + 1
    return len(text)


def _blank(text: bytes) -> bytes:
    return re.sub(rb"[^\n]", b" ", text)
