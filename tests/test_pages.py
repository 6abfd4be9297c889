"""Is memory zero, and free until it is touched?"""

import mmap
import sys
from pathlib import Path

import numpy as np
import pytest

from popcore import FLOAT, errors, pages
from popcore.executable import RemoteBuffer
from popcore.program.streams import RemoteRows


def resident_bytes():
    """What of this process is in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE


linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc and needs MAP_NORESERVE")


@linux
def test_more_than_the_host_has_costs_only_what_is_touched():
    """
    A remote buffer of 1 TiB, one row of which is written: a few pages.
    """
    before = resident_bytes()
    rows = RemoteRows(RemoteBuffer("tables", FLOAT, 1 << 20, 1 << 12), replicas=64)
    assert rows.data.nbytes == 1 << 40
    rows.write(63, np.array([4095]), np.full(1 << 20, 2, np.float32))
    assert rows.read(63, np.array([4095]))[-1] == 2
    assert rows.read(0, np.array([0]))[0] == 0
    assert resident_bytes() - before < 64 << 20


def test_cleared_memory_is_zero():
    """
    And can be written again.
    """
    made = pages.Pages(100_000, "a test")
    for _ in range(2):
        assert not made.memory.any()
        made.memory[:] = 7
        made.clear()
    assert made.memory.size == 100_000
    assert made.memory.ctypes.data % 64 == 0


@pytest.mark.parametrize("size", [0, 1, 63])
def test_small_sizes(size):
    """
    Exactly as many bytes as asked for.
    """
    assert pages.Pages(size, "a test").memory.size == size


def test_without_such_maps_memory_is_taken(monkeypatch):
    """
    A system that refuses the map gives the same, aligned and zero.
    """

    def refuse(size):
        raise OSError(size)

    monkeypatch.setattr(pages, "_map", refuse)
    made = pages.Pages(1000, "a test")
    assert (made.memory.size, made.memory.ctypes.data % 64, made.memory.any()) == (1000, 0, False)
    made.memory[:] = 1
    made.clear()
    assert not made.memory.any()
    with pytest.raises(errors.EngineError, match=r"(?s)the tables need .* B of memory.*try:"):
        pages.Pages(1 << 60, "the tables")


def test_a_view_outlives_close():
    """
    Whoever still looks at the memory keeps it.
    """
    made = pages.Pages(4096, "a test")
    view = made.memory[:8]
    made.close()
    view[:] = 3
    assert view.tolist() == [3] * 8


@linux
@pytest.mark.parametrize("touched", [[], [0], [12_345, 12_345 + 3 * mmap.PAGESIZE], [(64 << 20) - 1]])
def test_what_is_used_is_known(touched):
    """
    Every byte that was written lies in one of the ranges; they are no more than its pages, large ones where there are such.
    """
    made = pages.Pages(64 << 20, "a test")
    made.memory[touched] = 1
    used = list(made.used())
    for at in touched:
        assert any(first <= at < last for first, last in used)
    assert sum(last - first for first, last in used) <= len(touched) * (2 << 20)
    made.clear()
    assert not list(made.used())


def test_where_the_system_does_not_tell_all_is_used(monkeypatch):
    """
    Without a page map everything may hold something.
    """
    monkeypatch.setattr(pages, "_PAGE_MAP", "/nowhere")
    assert list(pages.Pages(100_000, "a test").used()) == [(0, 100_000)]
    assert not list(pages.Pages(0, "a test").used())
