"""Ring collectives step by step: every replica sends to its neighbour, receives, combines, and sends on.

What an Engine does in one pass must have the same bits. Nothing here is fast, and nothing is shared with the Engine but the
description of a method.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from popcore.executable.schedules import ALGORITHMS, Algorithm, CollectiveOperator, chunk_bounds
from popcore.types import Array

Buffers = list[dict[int, Array]]
"""For each position of the ring: by chunk, what it holds."""


class Ring:
    """A group of replicas in a ring, at one collective.

    Args:
        rows: The tensor of each rank, flat.
        ring: The rank at each position.

    Attributes:
        elements_sent: By all of them together.
    """

    def __init__(self, rows: Sequence[Array], ring: Sequence[int], method: str, operator: CollectiveOperator) -> None:
        self.p, self.ring, self.operator = len(rows), tuple(ring), operator
        self.algorithm: Algorithm = ALGORITHMS[method]
        self.elements, self.dtype = rows[0].size, rows[0].dtype
        self.rows = rows
        self.elements_sent = self.steps = 0

    def reduce_scatter(self) -> list[Array]:
        """For each rank its chunk of the result."""
        pieces = [self._reduce_part(part) for part in range(self.algorithm.parts)]
        by_position = [np.concatenate([piece[i] for piece in pieces]) for i in range(self.p)]
        return [self._finished(by_position[self.ring.index(rank)]) for rank in range(self.p)]

    def all_reduce(self) -> list[Array]:
        """For each rank the whole result."""
        mine = self.reduce_scatter()
        held: Buffers = [{i: mine[self.ring[i]]} for i in range(self.p)]
        for distance in range(1, self.p):  # each chunk is handed on, to a neighbour that does not have it yet
            for i in range(self.p):
                chunk = (i - distance) % self.p
                held[i][chunk] = self._send(held[(i - 1) % self.p][chunk])
        order = [self.ring.index(rank) for rank in range(self.p)]
        return [np.concatenate([held[self.ring.index(rank)][chunk] for chunk in order]) for rank in range(self.p)]

    def _own(self, position: int, owner: int, part: int) -> Array:
        """What the replica at ``position`` brings to one part of the chunk owned at ``owner``."""
        begin, _ = chunk_bounds(self.elements, self.p, self.ring[owner])
        low, high = self.algorithm.bounds(-(-self.elements // self.p))[part]
        mine = self.rows[self.ring[position]][begin + low : begin + high]
        with np.errstate(all="ignore"):
            return mine * mine if self.operator is CollectiveOperator.SQUARE_ADD else mine.copy()

    def _reduce_part(self, part: int) -> list[Array]:
        if self.algorithm.meets:
            return self._meet(part)
        way = self.algorithm.directions[part]
        partial = [self._own((owner + way) % self.p, owner, part) for owner in range(self.p)]
        for step in range(2, self.p + 1):
            received = [self._send(values) for values in partial]
            partial = [self._combine(received[owner], self._own((owner + way * step) % self.p, owner, part)) for owner in range(self.p)]
        return partial

    def _meet(self, part: int) -> list[Array]:
        done = []
        for owner in range(self.p):
            left = self._own((owner - self.p // 2) % self.p, owner, part)
            for distance in range(self.p // 2 - 1, -1, -1):
                left = self._combine(self._send(left), self._own((owner - distance) % self.p, owner, part))
            after = (self.p - 1) // 2
            if after:
                right = self._own((owner + after) % self.p, owner, part)
                for distance in range(after - 1, 0, -1):
                    right = self._combine(self._send(right), self._own((owner + distance) % self.p, owner, part))
                left = self._combine(left, self._send(right))
            done.append(left)
        return done

    def _send(self, values: Array) -> Array:
        self.elements_sent += values.size
        return values.copy()

    def _combine(self, received: Array, own: Array) -> Array:
        with np.errstate(all="ignore"):
            return combine(self.operator, received, own)

    def _finished(self, values: Array) -> Array:
        if self.operator is CollectiveOperator.MEAN:
            with np.errstate(all="ignore"):
                divided: Array = values / values.dtype.type(self.p)
                return divided
        return values


def exchange_rows(kind: str, rows: Sequence[Array], ring: Sequence[int], method: str, operator: CollectiveOperator, root: int) -> list[Array]:
    """What each rank of a group gets from a collective of ``rows``."""
    p = len(rows)
    match kind:
        case "all_reduce":
            return list(rows) if operator is CollectiveOperator.LOCAL else Ring(rows, ring, method, operator).all_reduce()
        case "reduce_scatter":
            if operator is CollectiveOperator.LOCAL:
                return [row[slice(*chunk_bounds(row.size, p, rank))] for rank, row in enumerate(rows)]
            return Ring(rows, ring, method, operator).reduce_scatter()
        case "all_gather":
            return [np.concatenate(rows)] * p
        case "all_to_all":
            return [np.concatenate([row.reshape(p, -1)[rank] for row in rows]) for rank in range(p)]
    return [rows[root]] * p


def combine(operator: CollectiveOperator, a: Array, b: Array) -> Array:
    """Two replicas' values as one, in their own type."""
    made: Any
    match operator:
        case CollectiveOperator.ADD | CollectiveOperator.SQUARE_ADD | CollectiveOperator.MEAN:
            made = a + b
        case CollectiveOperator.MUL:
            made = a * b
        case CollectiveOperator.MIN:
            made = np.where((a < b) | (a != a), a, b)  # a NaN stays
        case CollectiveOperator.MAX:
            made = np.where((a > b) | (a != a), a, b)
        case CollectiveOperator.LOGICAL_AND:
            made = a & b
        case CollectiveOperator.LOGICAL_OR:
            made = a | b
        case CollectiveOperator.LOCAL:
            made = b
    result: Array = made
    return result
