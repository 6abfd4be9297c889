"""Ring collectives step by step: every replica sends to its neighbour, receives, combines, and sends on.

What an Engine does in one pass must have the same bits. Nothing here is fast, and nothing is shared with the Engine but the
description of a method.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from popcore.dialect import rounding
from popcore.executable.schedules import ALGORITHMS, CollectiveOperator, chunk_bounds
from popcore.types import Array, ElementType

Held = dict[int, Array]
"""By position of the ring."""


@dataclass(frozen=True)
class Around:
    """How a group of replicas does a collective.

    rings: For each lane of the method, the rank at each position.
    inner: Replicas of a set; as many as there are on one level.
    partials: What values are rounded to when they are combined.
    """

    rings: tuple[tuple[int, ...], ...]
    inner: int
    method: str
    operator: CollectiveOperator
    partials: ElementType
    root: int = 0


class Ring:
    """A group of replicas at one collective.

    Args:
        rows: The tensor of each rank, flat.

    Attributes:
        elements_sent: By all of them together.
    """

    def __init__(self, rows: Sequence[Array], around: Around) -> None:
        self.p, self.around, self.operator = len(rows), around, around.operator
        self.algorithm = ALGORITHMS[around.method]
        self.elements, self.dtype = rows[0].size, rows[0].dtype
        self.parts = self.algorithm.bounds(-(-self.elements // self.p))
        self.elements_sent = 0
        with np.errstate(all="ignore"):
            brought = [row.astype(around.partials.numpy) for row in rows]
            self.brought = [rounding.on_arrays(np.multiply, row, row) for row in brought] if self.operator is CollectiveOperator.SQUARE_ADD else brought

    def reduce_scatter(self) -> list[Array]:
        """For each rank its chunk of the result."""
        parts = [self._by_rank(part, self._meet() if self.algorithm.meets else self._reduce(part)) for part in range(self.algorithm.parts)]
        return [np.concatenate([part[rank] for part in parts]) for rank in range(self.p)]

    def all_reduce(self) -> list[Array]:
        """For each rank the whole result."""
        mine = self.reduce_scatter()
        results: list[list[list[Array]]] = [[[] for _ in range(self.p)] for _ in range(self.p)]  # by rank, by chunk: its parts
        for part in range(self.algorithm.parts):
            low, high = self.parts[part]
            ring = self.around.rings[part]
            held = self._gather(part, {i: mine[rank][low:high] for i, rank in enumerate(ring)})
            for i, chunks in held.items():
                for owner, values in chunks.items():
                    results[ring[i]][ring[owner]].append(values)
        return [np.concatenate([piece for chunk in chunks for piece in chunk]) for chunks in results]

    def _by_rank(self, part: int, by_position: Held) -> list[Array]:
        ring = self.around.rings[part]
        return [self._finished(by_position[ring.index(rank)]) for rank in range(self.p)]

    def _own(self, part: int, position: int, owner: int) -> Array:
        """What the replica at ``position`` brings to one part of the chunk owned at ``owner``."""
        ring = self.around.rings[part]
        begin, _ = chunk_bounds(self.elements, self.p, ring[owner])
        low, high = self.parts[part]
        return self.brought[ring[position]][begin + low : begin + high]

    def _reduce(self, part: int) -> Held:
        """Around every set, then from set to set."""
        inner, way = self.around.inner, self.algorithm.lanes[part].way
        sets = self.p // inner
        sums: dict[tuple[int, int], Array] = {}  # of each set, for each owner: where the owner's place is in that set
        for each in range(sets):
            for owner in range(self.p):
                place = owner % inner
                partial = self._own(part, each * inner + (place + way) % inner, owner)
                for step in range(2, inner + 1):
                    partial = self._combine(self._send(partial), self._own(part, each * inner + (place + way * step) % inner, owner))
                sums[each, owner] = partial
        totals = {}
        for owner in range(self.p):
            total = sums[(owner // inner + way) % sets, owner]
            for step in range(2, sets + 1):
                total = self._combine(self._send(total), sums[(owner // inner + way * step) % sets, owner])
            totals[owner] = total
        return totals

    def _meet(self) -> Held:
        done = {}
        for owner in range(self.p):
            left = self._own(0, (owner - self.p // 2) % self.p, owner)
            for distance in range(self.p // 2 - 1, -1, -1):
                left = self._combine(self._send(left), self._own(0, (owner - distance) % self.p, owner))
            after = (self.p - 1) // 2
            if after:
                right = self._own(0, (owner + after) % self.p, owner)
                for distance in range(after - 1, 0, -1):
                    right = self._combine(self._send(right), self._own(0, (owner + distance) % self.p, owner))
                left = self._combine(left, self._send(right))
            done[owner] = left
        return done

    def _gather(self, part: int, mine: Held) -> dict[int, Held]:
        """What every position has, by owner, once each chunk was handed on: from set to set, then around every set."""
        inner, way = self.around.inner, self.algorithm.lanes[part].way
        held: dict[int, Held] = {i: {i: values} for i, values in mine.items()}
        for distance in range(1, self.p // inner):
            for i in range(self.p):
                owner = (i - way * distance * inner) % self.p
                held[i][owner] = self._send(held[(i - way * inner) % self.p][owner])
        for distance in range(1, inner):
            for i in range(self.p):
                first = i - i % inner
                before = held[first + (i - first - way) % inner]
                for owner in range((i - first - way * distance) % inner, self.p, inner):
                    held[i][owner] = self._send(before[owner])
        return held

    def _send(self, values: Array) -> Array:
        self.elements_sent += values.size
        return values.copy()

    def _combine(self, received: Array, own: Array) -> Array:
        with np.errstate(all="ignore"):
            return combine(self.operator, received, own)

    def _finished(self, values: Array) -> Array:
        with np.errstate(all="ignore"):
            if self.operator is CollectiveOperator.MEAN:
                values = rounding.on_arrays(np.divide, values, values.dtype.type(self.p))
            return values if values.dtype == self.dtype else rounding.narrow_array(values)


def exchange_rows(kind: str, rows: Sequence[Array], around: Around) -> list[Array]:
    """What each rank of a group gets from a collective of ``rows``."""
    p = len(rows)
    match kind:
        case "all_reduce":
            return list(rows) if around.operator is CollectiveOperator.LOCAL else Ring(rows, around).all_reduce()
        case "reduce_scatter":
            if around.operator is CollectiveOperator.LOCAL:
                return [row[slice(*chunk_bounds(row.size, p, rank))] for rank, row in enumerate(rows)]
            return Ring(rows, around).reduce_scatter()
        case "all_gather":
            return [np.concatenate(rows)] * p
        case "all_to_all":
            return [np.concatenate([row.reshape(p, -1)[rank] for row in rows]) for rank in range(p)]
    return [rows[around.root]] * p


def combine(operator: CollectiveOperator, a: Array, b: Array) -> Array:
    """Two replicas' values as one, in their own type."""
    made: Any
    match operator:
        case CollectiveOperator.ADD | CollectiveOperator.SQUARE_ADD | CollectiveOperator.MEAN:
            made = rounding.on_arrays(np.add, a, b)
        case CollectiveOperator.MUL:
            made = rounding.on_arrays(np.multiply, a, b)
        case CollectiveOperator.MIN:
            made = _chosen(np.where((a < b) | (a != a), a, b))  # a NaN stays
        case CollectiveOperator.MAX:
            made = _chosen(np.where((a > b) | (a != a), a, b))
        case CollectiveOperator.LOGICAL_AND:
            made = a & b
        case CollectiveOperator.LOGICAL_OR:
            made = a | b
        case CollectiveOperator.LOCAL:
            made = b
    result: Array = made
    return result


def _chosen(values: Array) -> Array:
    """FLOAT of which one of two was chosen: a denormal is zero where denormals are flushed."""
    flushed: Array = values * np.float32(1) if values.dtype == np.float32 else values
    return flushed
