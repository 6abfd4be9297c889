"""The arithmetic of views: new strides and new orders of elements. Knows numbers and arrays, no tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from popcore.graph.regions import Regions, coalesce, sorted_union
from popcore.types import Array

Shape = tuple[int, ...]


def row_major(shape: Sequence[int]) -> Shape:
    """Strides, in elements, of a row-major array."""
    strides = []
    step = 1
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return tuple(reversed(strides))


def reshaped_strides(shape: Shape, strides: Shape, new: Shape) -> Shape | None:
    """Strides that walk an affine view of ``shape`` in the same order as ``new``; None if no strides do.

    Needs: both shapes have the same number of elements.
    """
    if 0 in new:
        return row_major(new)
    old = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
    made: list[int] = []
    i = 0
    low = 0
    while low < len(new):
        if new[low] == 1:
            made.append(1)
            low += 1
            continue
        # the smallest group of new dimensions that covers whole old ones
        high, i_end = low + 1, i + 1
        n_new, n_old = new[low], old[i][0]
        while n_new != n_old:
            if n_new < n_old:
                n_new *= new[high]
                high += 1
            else:
                if old[i_end - 1][1] != old[i_end][1] * old[i_end][0]:
                    return None
                n_old *= old[i_end][0]
                i_end += 1
        step = old[i_end - 1][1]
        group = []
        for n in reversed(new[low:high]):
            group.append(step)
            step *= n
        made.extend(reversed(group))
        low, i = high, i_end
    return tuple(made)


def reordered(regions: Regions, shape: Shape, leading: int, order: Callable[[Array], Array]) -> tuple[Regions, Shape]:
    """Rearrange the first ``leading`` dimensions of a view by a NumPy function of an array of block numbers.

    Costs: time and memory linear in the blocks of the result, not in their elements.
    """
    block = math.prod(shape[leading:])
    blocks = order(np.arange(math.prod(shape[:leading]), dtype=np.int64).reshape(shape[:leading]))
    made = blocks.shape + shape[leading:]
    if not blocks.size or not block:
        return coalesce(np.empty(0, np.int64), np.empty(0, np.int64)), made
    first = blocks.reshape(-1)
    heads = np.concatenate(([0], np.flatnonzero(first[1:] != first[:-1] + 1) + 1))
    count = np.diff(np.concatenate((heads, [first.size])))
    return regions.select(first[heads] * block, count * block), made


def joined(parts: Sequence[Regions], widths: Sequence[int], rows: int) -> Regions:
    """Put views side by side: row r of the result is row r of each part, one after the other.

    widths  elements of one row of each part
    """
    if rows == 1:
        return coalesce(np.concatenate([p.ids for p in parts]), np.concatenate([p.length for p in parts]))
    ids, lengths, place = [], [], []
    begin = np.arange(rows, dtype=np.int64)
    for k, (part, width) in enumerate(zip(parts, widths, strict=True)):
        if width:
            i, n, owner = part.pieces(begin * width, np.full(rows, width, np.int64))
            ids.append(i)
            lengths.append(n)
            place.append(owner * len(parts) + k)
    order = np.argsort(np.concatenate(place), kind="stable")
    return coalesce(np.concatenate(ids)[order], np.concatenate(lengths)[order])


def strides_may_alias(shape: Shape, strides: Shape) -> bool:
    """False if no two elements of an affine view can be the same; True if two are, or it takes a look to tell."""
    reach = 0
    for stride, n in sorted((abs(s), n) for n, s in zip(shape, strides, strict=True) if n > 1):
        if stride <= reach:
            return True
        reach += stride * (n - 1)
    return False


def union(regions: Regions) -> tuple[Array, Array]:
    """The elements of a view, each once: (ids ascending, lengths)."""
    return sorted_union(regions.ids, regions.length)
