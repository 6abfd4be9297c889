"""The full check for codelets that run as Python: their accesses are looked up in the shadow, as ``kernels.guard`` has compiled ones do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np

from popcore.dialect import arithmetic
from popcore.dialect.interpret import OPERATIONS
from popcore.dialect.views import ListView, VectorView
from popcore.engine.outcome import Finding
from popcore.engine.places import WORD
from popcore.engine.shadow import WRITTEN
from popcore.kernels.abi import NO_SITE
from popcore.types import Array

_SEVERAL = 64  # of the plane of workers: more than one has read


class Accessing(Protocol):
    """Who runs the codelet, for accesses. ``worker`` is 0 where there is but one."""

    worker: int

    def outside(self, site: int, values: tuple[int, ...]) -> None:
        """Keep that an index was outside: indices, then sizes."""

    def found(self, site: int, finding: Finding, at: int, nbytes: int, other: int = 0, other_site: int = 0) -> None:
        """Raises, or keeps it. ``at``: byte of the arena; ``other``: the other worker plus one, 0 for none or several; its site plus one."""


def continuing(operations: Mapping[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    """``operations`` where an index that is outside is told and the codelet goes on: a read gives zero or a view of nothing, a write does not happen."""

    def around(name: str, outside: Callable[..., tuple[int, ...] | None], given: Callable[[Any], Any]) -> Callable[..., Any]:
        plain = operations[name]

        def operation(context: Any, site: int, view: Any, *rest: Any) -> Any:
            if (values := outside(view, *rest)) is None:
                return plain(context, site, view, *rest)
            context.outside(site, values)
            return given(view)

        return operation

    return {
        **operations,
        "get_checked": around("get_checked", _outside, _nothing),
        "get2_checked": around("get2_checked", _outside_matrix, _zero),
        "set_checked": around("set_checked", _outside, lambda view: None),
        "set2_checked": around("set2_checked", _outside_matrix, lambda view: None),
    }


def _outside(view: Any, index: Any, *_: Any) -> tuple[int, ...] | None:
    at, count = arithmetic.as_index(index), len(view)
    return None if -count <= at < count or isinstance(view, tuple) else (at, count)


def _outside_matrix(view: Any, row: Any, column: Any, *_: Any) -> tuple[int, ...] | None:
    (rows, columns), r, c = view.shape, arithmetic.as_index(row), arithmetic.as_index(column)
    return None if -rows <= r < rows and -columns <= c < columns else (r, c, rows, columns)


def _nothing(view: Any) -> Any:
    """What is read outside of a view."""
    if isinstance(view, ListView):
        return VectorView(view.pieces[0].array[:0] if view.pieces else np.zeros(0, np.float32), False)
    return VectorView(view.array[:0].reshape(0), view.writable) if view.array.ndim == 2 else _zero(view)


def _zero(view: Any) -> Any:
    return VectorView(np.zeros(1, view.array.dtype))[0]


class Guard:
    """The shadow of one codelet's vertices.

    Args:
        memory: uint8[bytes] of the arena, all replicas and planes; it lies at ``address``.
        distance: Bytes from a plane to the next.
        shared: Six workers run each vertex.
    """

    def __init__(self, memory: Array, address: int, distance: int, shared: bool) -> None:
        self.memory, self.address, self.distance, self.shared = memory, address, distance, shared

    def begin(self, start: int, nbytes: int, output: bool) -> None:
        """Start a vertex with a field at arena byte ``start``: what is in an Output is undefined, and no worker has been anywhere."""
        memory, distance = self.memory, self.distance
        if output:
            memory[start + distance : start + distance + nbytes] = 0
        if self.shared:
            memory[start + 2 * distance : start + 2 * distance + nbytes] = 0
            memory[start - start % WORD + 3 * distance : start + 3 * distance + nbytes] = 0
            memory[start + 4 * distance : start + 4 * distance + nbytes] = 0

    def reads(self, context: Accessing, site: int, array: Array, index: int) -> None:
        """Note that element ``index`` of a field, or of a part of one, is read."""
        at, width = self._place(array, index)
        if at < 0:
            return
        if (self.memory[at + self.distance : at + self.distance + width] != WRITTEN).any():
            context.found(site, Finding.UNDEFINED, at, width)
        if self.shared:
            mine, place = context.worker + 1, at + 2 * self.distance
            tag = int(self.memory[place])
            writer, reader = tag & 7, tag >> 3 & 7
            if writer not in (0, mine):
                context.found(site, Finding.OVERWRITTEN, at, width, writer, self._site(at))
            if not writer and not reader:
                self._note(at, site)
            self.memory[place] = tag | (mine << 3 if reader == 0 else 0 if reader == mine else _SEVERAL)

    def writes(self, context: Accessing, site: int, array: Array, index: int) -> None:
        """Note that it is written."""
        at, width = self._place(array, index)
        if at < 0:
            return
        self.memory[at + self.distance : at + self.distance + width] = WRITTEN
        if self.shared:
            self._write_shared(context, site, at, width)

    def _write_shared(self, context: Accessing, site: int, at: int, width: int) -> None:
        mine, place = context.worker + 1, at + 2 * self.distance
        tag = int(self.memory[place])
        writer, reader = tag & 7, tag >> 3 & 7
        if writer not in (0, mine) or reader not in (0, mine) or tag & _SEVERAL:
            context.found(site, Finding.OVERWRITTEN, at, width, writer if writer not in (0, mine) else reader, self._site(at))
        self.memory[place] = tag & ~7 | mine
        self._note(at, site)
        if width < WORD:
            place = at - at % WORD + 3 * self.distance
            if (writer := int(self.memory[place])) not in (0, mine):
                word = range(at - at % WORD, at - at % WORD + WORD)
                other = [self._site(byte) for byte in word if self.memory[byte + 2 * self.distance] & 7 == writer]
                context.found(site, Finding.SHARED_WORD, at, width, writer, other[-1] if other else 0)
            self.memory[place] = mine

    def _site(self, at: int) -> int:
        return int(self.memory[at + 4 * self.distance])

    def _note(self, at: int, site: int) -> None:
        self.memory[at + 4 * self.distance] = min(site + 1, NO_SITE)

    def _place(self, array: Array, index: int) -> tuple[int, int]:
        """Arena byte and width of an element; -1 for a table of constants, which has no shadow."""
        at = int(array.__array_interface__["data"][0]) - self.address + index * array.itemsize
        return (at if 0 <= at < len(self.memory) else -1), array.itemsize

    def operations(self) -> Mapping[str, Callable[..., Any]]:
        """The dialect's, with accesses noted before they are made."""

        def element(view: Any, index: Any) -> int | None:
            at, count = arithmetic.as_index(index), len(view)
            return at % count if -count <= at < count and hasattr(view, "array") and view.array.ndim == 1 else None

        def cell(view: Any, row: Any, column: Any) -> int | None:
            (rows, columns), r, c = view.shape, arithmetic.as_index(row), arithmetic.as_index(column)
            return r % rows * columns + c % columns if -rows <= r < rows and -columns <= c < columns else None

        def noted(name: str, where: Callable[..., int | None], places: int, note: Callable[..., None]) -> Callable[..., Any]:
            plain = OPERATIONS[name]

            def operation(context: Any, site: int, view: Any, *rest: Any) -> Any:
                if (index := where(view, *rest[:places])) is not None:  # else it fails, or leads to a part
                    note(context, site, view.array, index)
                return plain(context, site, view, *rest)

            return operation

        return {
            **OPERATIONS,
            "load_checked": noted("load_checked", lambda view: 0, 0, self.reads),
            "store_checked": noted("store_checked", lambda view: 0, 0, self.writes),
            "get_checked": noted("get_checked", element, 1, self.reads),
            "set_checked": noted("set_checked", element, 1, self.writes),
            "get2_checked": noted("get2_checked", cell, 2, self.reads),
            "set2_checked": noted("set2_checked", cell, 2, self.writes),
        }
