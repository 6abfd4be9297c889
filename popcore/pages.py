"""Zeroed memory of any size that costs nothing until it is touched."""

from __future__ import annotations

import mmap
import os
import platform
import sys
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np

from popcore.errors import EngineError
from popcore.types import Array

_ALIGNMENT = 64  # bytes; a fallback is aligned by hand
_HUGE_BYTES = 4 << 20  # from here on large pages are asked for
_PAGE_MAP = "/proc/self/pagemap"  # 64 bits for each page; the upper two: it is in memory, it is swapped out
_LOOK_PAGES = 1 << 20


class Pages:
    """``size`` zeroed bytes, aligned to 64.

    Args:
        what: Whose memory it is, for the error.
        shared: With processes that are forked later: what one of them writes the others see. Needs Linux.

    Raises:
        EngineError: the system gives neither address space without memory behind it nor the memory.
    Costs: address space only, until a page is touched. Hundreds of GB are fine where the system takes NORESERVE.

    Attributes:
        memory: uint8[size].
    """

    def __init__(self, size: int, what: str, shared: bool = False) -> None:
        self._map: mmap.mmap | None = None
        self._file = -1  # of shared memory
        if shared:
            self._file = os.memfd_create("popcore")
            weakref.finalize(self, os.close, self._file)
        try:
            self._map = _shared_map(max(size, _ALIGNMENT), self._file) if shared else _map(max(size, _ALIGNMENT))
            self.memory: Array = np.frombuffer(self._map, np.uint8)[:size]
        except (AttributeError, OSError, ValueError):  # no such flags, or a system that does not overcommit
            if shared:
                raise EngineError(f"{what} need {size:,} B of shared memory, which this machine does not give", "a machine with more memory") from None
            self.memory = _zeros(size, what)

    def clear(self) -> None:
        """Zero everything. Costs: only what was touched; the pages go back to the system where that is possible."""
        if self._map is not None and self._file >= 0:
            self._map.madvise(mmap.MADV_REMOVE)  # the file has holes afterwards
        elif self._map is not None and hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)  # private and anonymous: reads zero afterwards
        else:
            self.memory[:] = 0

    def used(self) -> Iterator[tuple[int, int]]:
        """Where bytes may be other than zero: (first byte, byte after the last), ascending.

        Costs: what was touched, and a look at 8 bytes for each page of the rest; everything, where the system does not tell.
        """
        size = self.memory.size
        if self._file >= 0:
            yield from _written(self._file, size)
            return
        if self._map is None or not os.access(_PAGE_MAP, os.R_OK):
            yield from [(0, size)] if size else []
            return
        first, page = self.memory.ctypes.data // mmap.PAGESIZE, 0
        count = -(-size // mmap.PAGESIZE)
        with open(_PAGE_MAP, "rb", buffering=0) as table:
            while page < count:
                table.seek(8 * (first + page))
                entries = np.frombuffer(table.read(8 * min(_LOOK_PAGES, count - page)), np.uint64)
                held = np.flatnonzero(np.diff(entries >> np.uint64(62) != 0, prepend=False, append=False))
                for begin, end in held.reshape(-1, 2).tolist():
                    yield (page + begin) * mmap.PAGESIZE, min((page + end) * mmap.PAGESIZE, size)
                page += len(entries)

    def close(self) -> None:
        """Give the memory back once nothing looks at it any more."""
        self.memory = np.zeros(0, np.uint8)
        if self._map is not None:
            held, self._map = self._map, None
            try:
                held.close()
            except BufferError:
                return  # a view is still alive and keeps it


def zeros(shape: tuple[int, ...], dtype: Any, shared: bool) -> Array:
    """A small array of zeros, private or shared with processes that are forked later."""
    if not shared:
        return np.zeros(shape, dtype)
    made = np.dtype(dtype)
    nbytes = int(np.prod(shape, dtype=np.int64)) * made.itemsize
    array: Array = np.frombuffer(mmap.mmap(-1, max(nbytes, 1)), np.uint8)[:nbytes].view(made).reshape(shape)
    return array


def _written(file: int, size: int) -> Iterator[tuple[int, int]]:
    """Where a file in memory has pages."""
    end = 0
    while end < size:
        try:
            begin = os.lseek(file, end, os.SEEK_DATA)
        except OSError:  # nothing more
            return
        end = min(os.lseek(file, begin, os.SEEK_HOLE), size)
        yield begin, end


def _shared_map(size: int, file: int) -> mmap.mmap:
    os.ftruncate(file, -(-size // mmap.PAGESIZE) * mmap.PAGESIZE)
    return mmap.mmap(file, size, flags=mmap.MAP_SHARED | _no_reserve(), prot=mmap.PROT_READ | mmap.PROT_WRITE)


def _map(size: int) -> mmap.mmap:
    made = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _no_reserve(), prot=mmap.PROT_READ | mmap.PROT_WRITE)
    if size >= _HUGE_BYTES and hasattr(mmap, "MADV_HUGEPAGE"):
        try:
            made.madvise(mmap.MADV_HUGEPAGE)
        except OSError:
            return made  # a kernel without large pages
    return made


def _no_reserve() -> int:
    """The flag for address space that nothing stands behind; 0 where there is none, and large maps may then be refused."""
    if (known := getattr(mmap, "MAP_NORESERVE", None)) is not None:  # Python 3.13 and later
        return int(known)
    return 0x4000 if sys.platform == "linux" and platform.machine() in ("x86_64", "aarch64", "riscv64") else 0


def _zeros(size: int, what: str) -> Array:
    try:
        memory = np.zeros(size + _ALIGNMENT, np.uint8)
    except MemoryError:
        raise EngineError(f"{what} need {size:,} B of memory, which this machine does not have", "use less of it, or a machine with more memory") from None
    start = -memory.ctypes.data % _ALIGNMENT
    return memory[start : start + size]
