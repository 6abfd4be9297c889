"""The exchange: every kind and width of copy against NumPy, and nothing written beside its targets."""

import numpy as np
import pytest

from popcore.engine import linker
from popcore.executable.opcodes import Op
from tests.engine.machine import HALT, executable, finish, image

WIDTHS = [1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 255, 256, 300, 511, 512, 700]


def exchange(groups, expect, *, tiles_count=64, **other):
    """Run the groups as one phase over random memory and compare with ``expect(words)``, which changes a copy of it."""
    linked, words = image(executable([(Op.RUN, 0), HALT], phases=[(0, len(groups))], groups=groups, tiles_count=tiles_count, codelets=(), **other))
    words[:] = np.random.default_rng(1).integers(-(2**31), 2**31, len(words))
    wanted = words.copy()
    expect(wanted)
    assert finish(linked).kind == "halt"
    np.testing.assert_array_equal(words, wanted)


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("width", WIDTHS)
def test_pairs_of_each_width(width, streaming, monkeypatch):
    if streaming:
        monkeypatch.setattr(linker, "STREAM_BYTES", 0)
    draw = np.random.default_rng(width)
    count, half = 20, 32 * 1024
    target = half + np.arange(count) * (width + 3) + 1
    source = draw.integers(0, half - width, count)
    pairs = np.stack([source, target], axis=1)

    def expect(words):
        for s, t in pairs.tolist():
            words[t : t + width] = words[s : s + width]

    exchange([(0, 0, count, width)], expect, words=pairs)


@pytest.mark.parametrize("streaming", [False, True])
def test_spans_have_any_alignment_and_length(streaming, monkeypatch):
    if streaming:
        monkeypatch.setattr(linker, "STREAM_BYTES", 0)
    spans = [(1, 40_001, 0), (5, 40_002, 1), (3, 40_010, 77), (10_000, 50_003, 9_999), (129, 70_016, 256), (7, 80_063, 5_000)]

    def expect(words):
        memory = words.view(np.uint8)
        for s, t, n in spans:
            memory[t : t + n] = memory[s : s + n]

    exchange([(1, 1, 5), (1, 0, 1)], expect, spans=spans)


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("width", [1, 2, 3, 4, 9, 64, 300, 600])
@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (7, 1), (3, 5), (0, 4)])
def test_nests_of_each_width(width, shape, streaming, monkeypatch):
    if streaming:
        monkeypatch.setattr(linker, "STREAM_BYTES", 0)
    outer, inner = shape
    source1, target1, source2, target2 = width + 1, width, 3, inner * width + 2
    row = (2, 0, outer, width, 17, 33_000, inner, source1, target1, source2, target2)

    def expect(words):
        before = words.copy()
        for i in range(outer):
            for j in range(inner):
                s, t = 17 + i * source2 + j * source1, 33_000 + i * target2 + j * target1
                words[t : t + width] = before[s : s + width]

    exchange([row], expect)


def test_a_broadcast_repeats_its_source():
    def expect(words):
        words[4096:8192].reshape(16, 256)[:, :8] = words[3:11]

    exchange([(2, 0, 16, 8, 3, 4096, 1, 0, 0, 0, 256)], expect)


def test_groups_of_no_entries_do_nothing():
    exchange([(0, 0, 0, 4), (1, 0, 0)], lambda words: None, words=[(0, 9)], spans=[(0, 9, 9)])
