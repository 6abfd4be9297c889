"""Intervals of a flattened tensor: joined, split over workers, counted. After ``poputil/Util.hpp``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias, TypeVar

from popcore.errors import ShapeError, ValueRangeError
from popcore.graph import Interval
from popcore.target import Target

Intervals: TypeAlias = Sequence[Sequence[int]]
T = TypeVar("T")


def merge_adjacent_regions(regions: Intervals) -> list[Interval]:
    """The same elements in ascending order, neighbours joined, empty intervals left out. Needs: intervals that do not meet."""
    made: list[Interval] = []
    for begin, end in sorted((b, e) for b, e in regions if e > b):
        if made and made[-1].end == begin:
            made[-1] = Interval(made[-1].begin, end)
        else:
            made.append(Interval(begin, end))
    return made


def flatten_intervals(intervals: Iterable[Intervals]) -> list[Interval]:
    """Lists of intervals as one list, in order."""
    return [Interval(b, e) for each in intervals for b, e in each]


def interval_sequence_num_elements(sequences: Iterable[Intervals]) -> int:
    return sum(e - b for each in sequences for b, e in each)


def split_regions(
    regions: Sequence[Any],
    grain_size: int,
    max_partitions: int,
    min_elements_per_partition: int = 0,
    max_elements_per_partition: int | None = None,
    max_elements_per_region: int | None = None,
) -> list[Any]:
    """Share intervals, or sequences of intervals, out to at most ``max_partitions``, in order and as equally as grains allow.

    Every partition but the last gets whole grains. There are no more partitions than the fullest one makes necessary, and
    fewer where each would otherwise get less than ``min_elements_per_partition``.

    Args:
        regions: (begin, end) each, or a list of (begin, end) each: those are kept together as far as the split allows.
        max_elements_per_partition: A limit that wins over ``max_partitions``.
        max_elements_per_region: Longer intervals are cut up.

    Returns: for each partition its intervals, or its sequences.
    """
    if grain_size < 1 or max_partitions < 1:
        raise ValueRangeError(f"split_regions with grain_size {grain_size}, max_partitions {max_partitions}", "1 or more of each")
    nested = bool(regions) and bool(len(regions[0])) and not hasattr(regions[0][0], "__index__")
    items: list[Intervals] = [r if nested else [r] for r in regions]
    total = interval_sequence_num_elements(items)
    if not total:
        return []
    cuts = _cuts(total, grain_size, max_partitions, min_elements_per_partition, max_elements_per_partition)
    longest = None if max_elements_per_region is None else max(1, max_elements_per_region // grain_size) * grain_size
    made: list[list[Any]] = [[] for _ in cuts]
    at, part = 0, 0
    for item in items:
        pending: list[Interval] = []
        for begin, end in item:
            while begin < end:
                take = min(end - begin, cuts[part] - at, longest or end - begin)
                pending.append(Interval(begin, begin + take))
                begin, at = begin + take, at + take
                full = at == cuts[part]
                if full or (longest is not None and interval_sequence_num_elements([pending]) >= longest):
                    made[part].append(pending)
                    pending = []
                part += full
        if pending:
            made[part].append(pending)
    return made if nested else [[i for sequence in p for i in sequence] for p in made]


def split_regions_between_workers(
    target: Target,
    regions: Sequence[Any],
    grain_size: int,
    min_elements_per_partition: int = 0,
    max_elements_per_partition: int | None = None,
    max_elements_per_region: int | None = None,
) -> list[Any]:
    """``split_regions`` over the workers of a tile."""
    return split_regions(
        regions, grain_size, target.num_worker_contexts, min_elements_per_partition, max_elements_per_partition, max_elements_per_region
    )  # fmt: skip


def balanced_partition(upper: int, count: int) -> list[int]:
    """Sizes of ``count`` parts of ``upper``, the larger ones first."""
    each, rest = divmod(upper, count)
    return [each + (i < rest) for i in range(count)]


def flatten_index(shape: Sequence[int], indices: Sequence[int]) -> int:
    """Where element ``indices`` is in the flattened tensor."""
    if len(indices) != len(shape):
        raise ShapeError(f"{len(indices)} indices for shape {tuple(shape)}", f"{len(shape)} of them")
    at = 0
    for n, i in zip(shape, indices, strict=True):
        at = at * n + i
    return at


def unflatten_index(shape: Sequence[int], index: int) -> tuple[int, ...]:
    """The indices of element ``index`` of the flattened tensor."""
    if not 0 <= index < math.prod(shape):
        raise ShapeError(f"element {index} of shape {tuple(shape)}", f"0 to {math.prod(shape) - 1}")
    made = []
    for n in reversed(shape):
        index, i = divmod(index, n)
        made.append(i)
    return tuple(reversed(made))


def calculate_unshuffling_intervals(intervals: Intervals) -> list[Interval]:
    """Intervals that undo a shuffle: ``concat(shuffled.slices(these))`` is ``t`` where ``shuffled = concat(t.slices(intervals))``.

    Needs: intervals that do not meet and together cover 0 to their number of elements.
    """
    at = 0
    placed = []
    for begin, end in intervals:
        placed.append((begin, Interval(at, at + end - begin)))
        at += end - begin
    return [interval for _, interval in sorted(placed)]


def _cuts(total: int, grain: int, parts: int, least: int, most: int | None) -> list[int]:
    """Where each partition ends, in elements."""
    grains = -(-total // grain)
    each = -(-grains // parts)
    if most is not None:
        each = min(each, max(1, most // grain))
    if least:
        each = max(each, -(-grains // max(1, grains // -(-least // grain))))
    used = -(-grains // each)
    return [min(total, (i + 1) * grains // used * grain) for i in range(used)]
