"""The full check for codelets that run as Python: their accesses are looked up in the shadow, as ``kernels.guard`` has compiled ones do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from popcore.dialect import arithmetic
from popcore.dialect.interpret import OPERATIONS
from popcore.engine.outcome import Finding
from popcore.engine.shadow import WORD, WRITTEN
from popcore.types import Array

_SEVERAL = 64  # of the plane of workers: more than one has read


class Accessing(Protocol):
    """Who runs the codelet, for accesses. ``worker`` is 0 where there is but one."""

    worker: int

    def found(self, site: int, finding: Finding, at: int, nbytes: int, other: int) -> Any:
        """Must raise. ``at``: byte of the arena; ``other``: the other worker plus one, 0 for none or several."""


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

    def reads(self, context: Accessing, site: int, array: Array, index: int) -> None:
        """Note that element ``index`` of a field, or of a part of one, is read."""
        at, width = self._place(array, index)
        if at < 0:
            return
        if (self.memory[at + self.distance : at + self.distance + width] != WRITTEN).any():
            context.found(site, Finding.UNDEFINED, at, width, 0)
        if self.shared:
            mine, place = context.worker + 1, at + 2 * self.distance
            tag = int(self.memory[place])
            writer, reader = tag & 7, tag >> 3 & 7
            if writer not in (0, mine):
                context.found(site, Finding.OVERWRITTEN, at, width, writer)
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
            context.found(site, Finding.OVERWRITTEN, at, width, writer if writer not in (0, mine) else reader)
        self.memory[place] = tag | mine
        if width < WORD:
            place = at - at % WORD + 3 * self.distance
            if (writer := int(self.memory[place])) not in (0, mine):
                context.found(site, Finding.SHARED_WORD, at, width, writer)
            self.memory[place] = mine

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
