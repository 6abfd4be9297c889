"""Write copies down as the machine wants them: by width, with strides where they are regular."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from popcore.executable.opcodes import GroupKind
from popcore.types import Array

WORD = 4  # bytes; what the exchange moves
MANY = 16  # copies of one width for which a stride description is looked for, or a table of their own is worth it
ADDRESSED = WORD << 32  # bytes that a 32-bit word number reaches; copies beyond are written as spans
LARGEST_UNIFORM = 256  # words; wider copies are long enough for a call of memcpy each


@dataclass
class CopyTables:
    """Tables that grow while phases are emitted; see ``executable.opcodes``."""

    groups: list[list[int]] = field(default_factory=list)
    words: list[Array] = field(default_factory=list)
    spans: list[Array] = field(default_factory=list)
    pairs: int = 0
    rows: int = 0

    def add(self, source: Array, target: Array, nbytes: Array) -> tuple[int, int]:
        """Add one phase's copies, given as arena bytes. Returns the range of its groups."""
        begin = len(self.groups)
        if len(nbytes) == 0:
            return begin, begin
        source, target, nbytes = join_copies(source, target, nbytes)
        aligned = ((source | target | nbytes) % WORD == 0) & (nbytes <= LARGEST_UNIFORM * WORD) & (np.maximum(source, target) < ADDRESSED)
        odd = ~aligned
        for width, count in zip(*np.unique(nbytes[aligned], return_counts=True), strict=True):
            which = aligned & (nbytes == width)
            if count < MANY and count < len(nbytes):
                odd |= which
                continue
            self._add_words(source[which] // WORD, target[which] // WORD, int(width) // WORD)
        if odd.any():
            self._add_spans(source[odd], target[odd], nbytes[odd])
        return begin, len(self.groups)

    def _add_words(self, source: Array, target: Array, width: int) -> None:
        if len(source) >= MANY and (regular := strides(source, target)) is not None:
            outer, inner, steps = regular
            self.groups.append([GroupKind.STRIDED, 0, outer, width, int(source[0]), int(target[0]), inner, *steps, 0])
            return
        self.groups.append([GroupKind.WORDS, self.pairs, len(source), width, 0, 0, 0, 0, 0, 0, 0, 0])
        self.words.append(np.stack([source, target], 1).astype(np.uint32).ravel())
        self.pairs += len(source)

    def _add_spans(self, source: Array, target: Array, nbytes: Array) -> None:
        self.groups.append([GroupKind.SPANS, self.rows, len(source), 0, 0, 0, 0, 0, 0, 0, 0, 0])
        self.spans.append(np.stack([source, target, nbytes], 1).astype(np.int64))
        self.rows += len(source)

    def finish(self) -> tuple[Array, Array, Array]:
        """``groups``, ``words``, ``spans``."""
        groups = np.array(self.groups, np.int64).reshape(-1, 12)
        words = np.concatenate(self.words) if self.words else np.zeros(0, np.uint32)
        spans = np.concatenate(self.spans) if self.spans else np.zeros((0, 3), np.int64)
        return groups, words, spans


def join_copies(source: Array, target: Array, nbytes: Array) -> tuple[Array, Array, Array]:
    """Sort by target and join copies that continue each other on both sides."""
    order = np.argsort(target, kind="stable")
    source, target, nbytes = source[order], target[order], nbytes[order]
    new = np.ones(len(nbytes), bool)
    new[1:] = (source[1:] != source[:-1] + nbytes[:-1]) | (target[1:] != target[:-1] + nbytes[:-1])
    first = np.flatnonzero(new)
    return source[first], target[first], np.add.reduceat(nbytes, first)


def strides(source: Array, target: Array) -> tuple[int, int, tuple[int, int, int, int]] | None:
    """The two nested loops that make exactly these copies, if there are such.

    Returns: outer count, inner count, and (source, target) steps of the inner, then of the outer loop; or None.
    """
    ds, dt = np.diff(source), np.diff(target)
    breaks = np.flatnonzero((ds != ds[0]) | (dt != dt[0]))
    if len(breaks) == 0:
        return 1, len(source), (int(ds[0]), int(dt[0]), 0, 0)
    inner = int(breaks[0]) + 1
    if len(source) % inner:
        return None
    s, t = source.reshape(-1, inner), target.reshape(-1, inner)
    regular = all((np.diff(a, axis=1) == a[0, 1] - a[0, 0]).all() if inner > 1 else True for a in (s, t))
    outer = [np.unique(np.diff(a[:, 0])) for a in (s, t)]
    if not regular or any(len(u) != 1 for u in outer):
        return None
    steps = (int(ds[0]), int(dt[0])) if inner > 1 else (0, 0)
    return len(s), inner, (*steps, int(outer[0][0]), int(outer[1][0]))
