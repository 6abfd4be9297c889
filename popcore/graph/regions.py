"""Regions: which elements a tensor is made of, as runs of neighbouring elements of variables.

An element of a graph has a 64-bit id: the number of its variable in the upper bits, its place in the
variable in the lower ``SHIFT``. Neighbours in a variable are neighbours as ids, so a run is (first id, length).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from popcore.types import Array

SHIFT = 40
"""Bits of an element's place: a variable has fewer than 2**40 elements, a graph fewer than 2**23 variables."""
PLACE = (1 << SHIFT) - 1


@dataclass(frozen=True, eq=False)
class Regions:
    """Elements in the order of a flattened view, as runs; neither empty runs nor two that could be one.

    ids     int64[n]  the first element of each run
    length  int64[n]  > 0
    """

    ids: Array
    length: Array

    @cached_property
    def var(self) -> Array:
        """int32[n]: the variable of each run."""
        return (self.ids >> SHIFT).astype(np.int32)

    @cached_property
    def start(self) -> Array:
        """int64[n]: where in its variable each run begins."""
        return self.ids & PLACE

    @cached_property
    def ends(self) -> Array:
        """int64[n]: where in the view each run ends."""
        return np.cumsum(self.length)

    @cached_property
    def begins(self) -> Array:
        """int64[n]: where in the view each run begins."""
        return self.ends - self.length

    @property
    def numel(self) -> int:
        return int(self.ends[-1]) if self.ids.size else 0

    def __len__(self) -> int:
        return int(self.ids.size)

    def __repr__(self) -> str:
        shown = ", ".join(f"v{v}[{s}:{s + n}]" for v, s, n in zip(self.var[:4], self.start[:4], self.length[:4], strict=True))
        return f"Regions({shown}{', ...' if len(self) > 4 else ''}; {len(self)} runs, {self.numel} elements)"

    def element_ids(self) -> Array:
        """int64[numel]: the id of every element, in order."""
        return expand(self.ids, self.length)

    def pieces(self, begin: Array, length: Array) -> tuple[Array, Array, Array]:
        """Cut parts out of the view.

        begin   int64[m]  in, where in the view each part begins
        length  int64[m]  in, > 0

        Returns: ids int64[k], lengths int64[k], owner int64[k]: runs in order of the parts, and the part each belongs to.
        Costs:   time linear in k and m, whatever the number of runs.
        """
        if len(self) == 1:
            return self.ids[0] + begin, np.asarray(length), np.arange(begin.size)
        first, last = self._run_at(begin), self._run_at(begin + length - 1)
        count = last - first + 1
        if np.all(count == 1):
            return self.ids[first] + (begin - self.begins[first]), np.asarray(length), np.arange(begin.size)
        owner = np.repeat(np.arange(begin.size), count)
        run = expand(first, count)
        low = np.maximum(self.begins[run], begin[owner])
        high = np.minimum(self.ends[run], (begin + length)[owner])
        return self.ids[run] + (low - self.begins[run]), high - low, owner

    def select(self, begin: Array, length: Array) -> Regions:
        """The parts of the view one after the other, as new regions. See ``pieces``."""
        ids, lengths, _ = self.pieces(begin, length)
        return coalesce(ids, lengths)

    def _run_at(self, place: Array) -> Array:
        width = int(self.length[0])
        if self.numel == width * len(self) and np.all(self.length == width):
            return np.asarray(place // width, np.int64)
        found: Array = np.searchsorted(self.ends, place, "right")
        return found


def expand(first: Array, count: Array) -> Array:
    """``first[0], first[0] + 1, ...`` (count[0] numbers), then from first[1], and so on; int64[sum of count]."""
    ends = np.cumsum(count)
    total = int(ends[-1]) if ends.size else 0
    made: Array = np.arange(total, dtype=np.int64) + np.repeat(first - (ends - count), count)
    return made


def coalesce(ids: Array, length: Array) -> Regions:
    """Regions of runs in order: empty ones dropped, neighbours joined."""
    if ids.size and not np.all(length):
        ids, length = ids[length > 0], length[length > 0]
    if ids.size > 1:
        breaks = np.flatnonzero(ids[1:] != ids[:-1] + length[:-1]) + 1
        if breaks.size + 1 < ids.size:
            heads = np.concatenate(([0], breaks))
            ids, length = ids[heads], np.add.reduceat(length, heads)
    return Regions(np.ascontiguousarray(ids, np.int64), np.ascontiguousarray(length, np.int64))


def one_run(first: int, length: int) -> Regions:
    return Regions(np.array([first], np.int64), np.array([length], np.int64)) if length else EMPTY


def affine_regions(first: int, shape: Sequence[int], strides: Sequence[int]) -> Regions:
    """The regions of an affine view: element (i, j, ...) has id ``first + i * strides[0] + j * strides[1] + ...``."""
    dims = _joined(shape, strides)
    if dims is None:
        return EMPTY
    run = 1
    if dims and dims[-1][1] == 1:
        run = dims.pop()[0]
    ids = np.array(first, np.int64)
    for size, stride in dims:
        ids = ids[..., None] + np.arange(size, dtype=np.int64) * stride
    ids = ids.reshape(-1)
    return coalesce(ids, np.full(ids.size, run, np.int64))


def _joined(shape: Sequence[int], strides: Sequence[int]) -> list[tuple[int, int]] | None:
    """Dimensions as (size, stride), those of size 1 dropped and those that one loop can walk joined; None if empty."""
    dims: list[tuple[int, int]] = []
    for size, stride in zip(shape, strides, strict=True):
        if size == 0:
            return None
        if size == 1:
            continue
        if dims and dims[-1][1] == stride * size:
            dims[-1] = (dims[-1][0] * size, stride)
        else:
            dims.append((size, stride))
    return dims


def sorted_union(ids: Array, length: Array) -> tuple[Array, Array]:
    """The elements that any run holds, each once: (first ids ascending, lengths), disjoint and maximal."""
    if not ids.size:
        return ids, length
    order = np.argsort(ids, kind="stable")
    first, end = ids[order], (ids + length)[order]
    reach = np.maximum.accumulate(end)
    heads = np.concatenate(([0], np.flatnonzero(first[1:] > reach[:-1]) + 1))
    tails = np.concatenate((heads[1:], [first.size])) - 1
    return first[heads], reach[tails] - first[heads]


def any_overlap(ids: Array, length: Array) -> bool:
    """Whether an element is in two runs, or twice in one."""
    if ids.size < 2:
        return False
    order = np.argsort(ids, kind="stable")
    first, end = ids[order], (ids + length)[order]
    return bool(np.any(first[1:] < np.maximum.accumulate(end)[:-1]))


EMPTY = Regions(np.empty(0, np.int64), np.empty(0, np.int64))
