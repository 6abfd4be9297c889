"""Copies as the machine's tables: whatever is written down moves exactly the bytes asked for."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from popcore.compiler.copies import CopyTables, join_copies, strides
from popcore.executable.opcodes import Group, GroupKind

ARENA = 4096


def carry_out(tables, memory):
    """What the machine does with the tables, one entry at a time."""
    groups, words, spans = tables.finish()
    for g in groups.tolist():
        for source, target, length in entries(g, words, spans):
            memory[target : target + length] = memory[source : source + length].copy()


def entries(g, words, spans):
    if g[Group.KIND] == GroupKind.WORDS:
        for k in range(g[Group.BEGIN], g[Group.BEGIN] + g[Group.COUNT]):
            yield 4 * int(words[2 * k]), 4 * int(words[2 * k + 1]), 4 * g[Group.WIDTH]
    elif g[Group.KIND] == GroupKind.SPANS:
        yield from spans[g[Group.BEGIN] : g[Group.BEGIN] + g[Group.COUNT]].tolist()
    else:
        for i in range(g[Group.COUNT]):
            for j in range(g[Group.COUNT1]):
                source = g[Group.SOURCE] + i * g[Group.SOURCE2] + j * g[Group.SOURCE1]
                target = g[Group.TARGET] + i * g[Group.TARGET2] + j * g[Group.TARGET1]
                yield 4 * source, 4 * target, 4 * g[Group.WIDTH]


@st.composite
def copies(draw):
    """Copies from the lower half of an arena to disjoint places in the upper half: scattered, or in a regular pattern."""
    unit = draw(st.sampled_from([1, 2, 4, 4, 4, 8]))
    width = draw(st.integers(1, 6)) * unit
    count = draw(st.integers(0, min(40, ARENA // 2 // width)))
    random = np.random.default_rng(draw(st.integers(0, 1 << 16)))
    slots = random.permutation(ARENA // 2 // width)[:count]
    source = random.integers(0, 200, count) * unit
    if draw(st.booleans()):
        inner = draw(st.integers(1, 8))
        outer, within = np.divmod(np.arange(count), inner)
        source = (outer * draw(st.integers(0, 6)) + within * draw(st.integers(0, 3))) * unit
        slots = np.arange(count)
    return source.astype(np.int64), (ARENA // 2 + slots * width).astype(np.int64), np.full(count, width, np.int64)


@given(copies())
def test_tables_move_exactly_the_bytes_asked_for(asked):
    """
    Grouping, joining and strides change how copies are written down, never what they do.
    """
    source, target, nbytes = asked
    memory = np.random.default_rng(0).integers(0, 255, ARENA, np.uint8)
    wanted = memory.copy()
    for s, t, n in zip(source, target, nbytes, strict=True):
        wanted[t : t + n] = memory[s : s + n]
    tables = CopyTables()
    tables.add(source, target, nbytes)
    carry_out(tables, memory)
    assert np.array_equal(memory, wanted)


@given(copies())
def test_entries_are_sorted_by_target(asked):
    """
    Threads and tile fusion find a tile's copies by binary search.
    """
    tables = CopyTables()
    tables.add(*asked)
    groups, words, spans = tables.finish()
    for g in groups.tolist():
        if g[Group.KIND] != GroupKind.STRIDED:
            targets = [t for _, t, _ in entries(g, words, spans)]
            assert targets == sorted(targets)


def test_neighbours_on_both_sides_are_one_copy():
    """
    Two copies that continue each other are joined; two that do so on one side only are not.
    """
    source, target, nbytes = (np.array(a) for a in ([4, 0, 100], [104, 100, 108], [4, 4, 4]))
    joined = join_copies(source, target, nbytes)
    assert [a.tolist() for a in joined] == [[0, 100], [100, 108], [8, 4]]


def test_a_broadcast_and_a_transpose_are_strided():
    """
    Regular patterns take one row of a table however many copies they are.
    """
    assert strides(np.zeros(32, np.int64), np.arange(32) * 7) == (1, 32, (0, 7, 0, 0))
    rows, columns = np.divmod(np.arange(24), 6)
    assert strides(rows * 100 + columns, columns * 50 + rows) == (4, 6, (1, 50, 100, 1))
    assert strides(np.array([0, 5, 1, 9]), np.arange(4)) is None


def test_far_copies_are_not_cut_to_32_bits():
    """
    Beyond 16 GiB a word number does not fit the table of pairs.
    """
    at = np.arange(20) * 8 + (1 << 36)
    scattered = np.random.default_rng(0).permutation(20) * 8
    tables = CopyTables()
    tables.add(scattered, at, np.full(20, 4))
    groups, words, spans = tables.finish()
    assert len(words) == 0
    assert spans[:, 1].tolist() == at.tolist()
    assert groups[:, Group.KIND].tolist() == [GroupKind.SPANS]
