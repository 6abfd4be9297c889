"""Groupings: which elements of a tensor lie together; and tensors whose parts lie together. After ``poputil/VarStructure.hpp``."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from popcore.errors import ShapeError
from popcore.graph import Graph, Tensor, concat
from popcore.ops.poputil.intervals import balanced_partition
from popcore.types import DTypeLike


class GroupingInfo(NamedTuple):
    """``size`` neighbours along ``dim`` lie together on a tile."""

    dim: int
    size: int


def detect_innermost_grouping(graph: Graph, t: Tensor) -> int:
    """How many neighbours of the last dimension lie next to each other in memory, on one tile; judged by its first row.

    A number that does not divide the dimension counts as none: 1.

    Raises: ShapeError: a scalar.
    """
    if not t.rank:
        raise ShapeError(f"the grouping of {t!r}, which has no dimensions", "a tensor with dimensions")
    if not t.num_elements:
        return 1
    row = t.flatten().slice(0, t.shape[-1])
    together = int(row.regions().length[0])
    begin, end, _ = graph.tile_intervals(row)
    found = math.gcd(int(np.max(end - begin, initial=0)), together)
    return found if found and row.num_elements % found == 0 else 1


def detect_dim_groupings(graph: Graph, t: Tensor) -> list[GroupingInfo]:
    """Groupings from the innermost outward; a dimension may be there more than once.

    Raises: ShapeError: a scalar.
    """
    if not t.rank:
        raise ShapeError(f"the groupings of {t!r}, which has no dimensions", "a tensor with dimensions")
    made: list[GroupingInfo] = []
    rank, total, grouped = t.rank, 1, t
    while True:
        best = GroupingInfo(0, 1)
        for d in range(rank):
            if grouped.shape[d] == 1:
                continue
            found = detect_innermost_grouping(graph, grouped.dim_roll(d, rank - 1).flatten(rank - 1, grouped.rank))
            size = math.gcd(1 if found % total else found // total, grouped.shape[d])
            if size > best.size:
                best = GroupingInfo(d, size)
        if best.size == 1:
            return made
        made.append(best)
        total *= best.size
        split = grouped.reshape_partial(best.dim, best.dim + 1, [grouped.shape[best.dim] // best.size, best.size])
        grouped = split.dim_roll(best.dim + 1, rank)


def create_partitionable_tensor(graph: Graph, dtype: DTypeLike, shape: Sequence[int], num_partitions: Sequence[int], name: str = "") -> Tensor:
    """A tensor that lies in memory part by part, when each dimension is cut into so many parts, the larger ones first. It is not mapped."""
    sizes = _partitions(shape, num_partitions, f"create_partitionable_tensor of {list(shape)}")
    flat = graph.add_variable(dtype, (math.prod(shape),), name=name)
    if not flat.num_elements:
        return flat.reshape(tuple(shape))
    parts: list[Tensor] = []
    at = 0
    for each in itertools.product(*sizes):
        parts.append(flat.slice(at, at + math.prod(each)).reshape(tuple(each)))
        at += math.prod(each)
    for d in reversed(range(len(shape))):
        count = num_partitions[d]
        parts = [concat(parts[i : i + count], dim=d) for i in range(0, len(parts), count)]
    return parts[0]


def iterate_tensor_partitions(t: Tensor, num_partitions: Sequence[int], function: Callable[[tuple[int, ...], Tensor], object]) -> None:
    """Call ``function(indices, part)`` for each part of ``t``, cut as ``create_partitionable_tensor`` cuts."""
    for index, part in _each_partition(t, num_partitions):
        function(index, part)


def _each_partition(t: Tensor, num_partitions: Sequence[int]) -> Iterator[tuple[tuple[int, ...], Tensor]]:
    sizes = _partitions(t.shape, num_partitions, f"iterate_tensor_partitions of {t!r}")
    ends = [list(itertools.accumulate(s)) for s in sizes]
    for index in itertools.product(*(range(n) for n in num_partitions)):
        last = [e[i] for e, i in zip(ends, index, strict=True)]
        yield index, t.slice([e - s[i] for e, s, i in zip(last, sizes, index, strict=True)], last)


def _partitions(shape: Sequence[int], num_partitions: Sequence[int], what: str) -> list[list[int]]:
    if len(shape) != len(num_partitions) or any(n < 1 for n in num_partitions):
        raise ShapeError(f"{what} in {list(num_partitions)} parts", "1 or more for each dimension")
    return [balanced_partition(n, count) for n, count in zip(shape, num_partitions, strict=True)]
