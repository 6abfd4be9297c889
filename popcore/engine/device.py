"""The memory of a device: one arena that holds every tile, and costs nothing until it is touched."""

from __future__ import annotations

import mmap
import platform
import sys
from types import TracebackType

import numpy as np

from popcore.errors import EngineError
from popcore.types import Array

_ALIGNMENT = 64  # bytes; a fallback arena is aligned by hand
_HUGE_BYTES = 4 << 20  # from here on large pages are asked for


class Arena:
    """Zeroed memory for all tiles and the staging area, ``size`` bytes for each replica.

    Needs: tiles packed one after the other; a map with gaps would waste large pages.
    Costs: address space only, until a page is touched. 60 GB are fine where the system takes NORESERVE.

    Attributes:
        memory: uint8[size], all of it.
        address: Of its first byte, a multiple of 64.
        stride: Bytes from one replica's memory to the next: an odd number of lines, so that equal places do not meet in a cache.
    """

    def __init__(self, size: int, replicas: int = 1) -> None:
        self._map: mmap.mmap | None = None
        self.replicas = replicas
        lines = -(-max(int(size), 1) // _ALIGNMENT)
        self.stride = _ALIGNMENT * (lines | (replicas > 1))
        size = max(int(size), _ALIGNMENT) if replicas == 1 else replicas * self.stride
        try:
            self._map = _map(size)
            self.memory: Array = np.frombuffer(self._map, np.uint8)[:size]
        except (AttributeError, OSError, ValueError):  # no such flags, or a system that does not overcommit
            self.memory = _zeros(size)
        self.address: int = self.memory.ctypes.data

    def clear(self) -> None:
        """Zero everything. Costs: only what was touched; the pages go back to the system where that is possible."""
        if self._map is not None and hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)  # private and anonymous: reads zero afterwards
        else:
            self.memory[:] = 0

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
        if self._map is not None:
            held, self._map = self._map, None
            try:
                held.close()
            except BufferError:
                return  # a view of the arena is still alive and keeps it

    def __enter__(self) -> Arena:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _map(size: int) -> mmap.mmap:
    made = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _no_reserve(), prot=mmap.PROT_READ | mmap.PROT_WRITE)
    if size >= _HUGE_BYTES and hasattr(mmap, "MADV_HUGEPAGE"):
        try:
            made.madvise(mmap.MADV_HUGEPAGE)
        except OSError:
            return made  # a kernel without large pages
    return made


def _no_reserve() -> int:
    """The flag for address space that nothing stands behind; 0 where there is none, and large arenas may then be refused."""
    if (known := getattr(mmap, "MAP_NORESERVE", None)) is not None:  # Python 3.13 and later
        return int(known)
    return 0x4000 if sys.platform == "linux" and platform.machine() in ("x86_64", "aarch64", "riscv64") else 0


def _zeros(size: int) -> Array:
    try:
        memory = np.zeros(size + _ALIGNMENT, np.uint8)
    except MemoryError:
        raise EngineError(f"the tiles of the device need {size:,} B of memory, which this machine does not have", "use a target with fewer tiles") from None
    start = -memory.ctypes.data % _ALIGNMENT
    return memory[start : start + size]
