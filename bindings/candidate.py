"""What a source says of a type that may be a codelet; the cache remembers it, so that a warm start parses nothing."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Candidate:
    """A type that may be a codelet."""

    namespace: tuple[str, ...]  # "" for one without a name
    type: str  # as written in that namespace: "Sum<half>"
    file: str
    line: int
    fields: tuple[str, ...]  # names that may be data members, bases first
    long_fields: tuple[str, ...]  # those declared as ``long``, which is 32 bits wide on a tile
    waits: bool  # whether its workers may wait for one another: they then run on threads of their own

    @property
    def qualified(self) -> str:
        return "::".join([*(n for n in self.namespace if n), self.type])
