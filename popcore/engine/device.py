"""The memory of a device: one arena that holds every tile, and costs nothing until it is touched."""

from __future__ import annotations

from types import TracebackType

import numpy as np

from popcore.pages import Pages
from popcore.types import Array

_LINE = 64  # bytes of a cache line


class Arena:
    """Zeroed memory for all tiles and the staging area, ``size`` bytes for each replica.

    ``shared``: with processes that are forked later.

    Needs: tiles packed one after the other; a map with gaps would waste large pages.
    Costs: address space only, until a page is touched. 60 GB are fine where the system takes NORESERVE.

    Attributes:
        memory: uint8[size], all of it.
        address: Of its first byte, a multiple of 64.
        pages: That hold it.
        stride: Bytes from one replica's memory to the next: an odd number of lines, so that equal places do not meet in a cache.
    """

    def __init__(self, size: int, replicas: int = 1, shared: bool = False) -> None:
        self.replicas = replicas
        lines = -(-max(int(size), 1) // _LINE)
        self.stride = _LINE * (lines | (replicas > 1))
        self.pages = Pages(max(int(size), _LINE) if replicas == 1 else replicas * self.stride, "the tiles of the device", shared)
        self.memory: Array = self.pages.memory
        self.address: int = self.memory.ctypes.data

    def clear(self) -> None:
        """Zero everything. Costs: only what was touched."""
        self.pages.clear()

    def write_initial(self, initial: Array, content: Array) -> None:
        """Put initial values in place, on every replica: rows of ``initial`` are (arena byte, byte of ``content``, length)."""
        memory = self.by_replica()
        for target, source, length in initial.tolist():
            memory[:, target : target + length] = content[source : source + length]

    def write_numbers(self, places: Array) -> None:
        """Write each replica's number, as 4 bytes, to arena bytes ``places`` of its memory."""
        memory, numbers = self.by_replica(), np.arange(self.replicas, dtype="<u4").reshape(-1, 1).view(np.uint8)
        for place in places.tolist():
            memory[:, place : place + 4] = numbers

    def by_replica(self) -> Array:
        """The memory as [replicas, bytes]."""
        if self.replicas == 1:
            return self.memory.reshape(1, -1)
        return self.memory.reshape(self.replicas, self.stride)

    def close(self) -> None:
        """Give the memory back once nothing looks at it any more."""
        self.memory = np.zeros(0, np.uint8)
        self.pages.close()

    def __enter__(self) -> Arena:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
