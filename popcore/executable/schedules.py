"""Ring collectives as schedules: who adds to whose partial result, in which order, and how many steps that takes.

The data of a collective follow its schedule to the bit; the time that it takes is computed from it.

Words   A *group* of p replicas stands in a ring, at positions 0 to p - 1. A tensor of n elements is cut into p *chunks* of
        ``ceil(n / p)``; the last ones are shorter, or empty. The replica of rank i in its group owns chunk i: reduced there first, then
        passed on to all. A *part* of a chunk goes one way round; a *chain* is the positions whose values are combined, first to last.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from popcore.errors import OptionError

SMALL_BYTES = 196_608  # below this the old PopLibs sources choose meeting in the middle on a torus
FEW = 16  # replicas; with more they choose it for any size


class CollectiveOperator(enum.Enum):
    """How the values of two replicas are combined. Every combination is rounded to the tensor's element type."""

    ADD = "add"
    SQUARE_ADD = "square_add"  # the sum of squares
    MEAN = "mean"  # the sum, divided by the number of replicas once
    MUL = "mul"
    MIN = "min"
    MAX = "max"
    LOGICAL_AND = "logical_and"
    LOGICAL_OR = "logical_or"
    LOCAL = "local"  # each keeps its own: nothing is sent


class CommGroupType(enum.Enum):
    """Which replicas form a group."""

    ALL = "all"
    CONSECUTIVE = "consecutive"  # size 2 of 8: {0, 1}, {2, 3}, {4, 5}, {6, 7}
    ORTHOGONAL = "orthogonal"  # size 2 of 8: {0, 4}, {1, 5}, {2, 6}, {3, 7}
    NONE = "none"  # each for itself


KINDS = ("all_reduce", "reduce_scatter", "all_gather", "all_to_all", "broadcast")
REDUCING = ("all_reduce", "reduce_scatter")


@dataclass(frozen=True)
class Algorithm:
    """One schedule.

    directions: The ways round that each chunk's parts go, equal shares: 1 is clockwise, to the next position.
    meets: A chunk is not cut: partial results come to its owner from both sides, each from half of the ring.
    """

    name: str
    directions: tuple[int, ...]
    meets: bool = False

    @property
    def parts(self) -> int:
        """Into how many parts a chunk is cut."""
        return 1 if self.meets else len(self.directions)

    def steps(self, p: int) -> int:
        """Steps of a reduce-scatter, and as many of an all-gather."""
        return p // 2 if self.meets else p - 1

    def bounds(self, chunk: int) -> tuple[tuple[int, int], ...]:
        """Begin and end of each part within a chunk of so many elements."""
        if self.parts == 1:
            return ((0, chunk),)
        first = -(-chunk // 2)
        return ((0, first), (first, chunk))

    def chains(self, owner: int, p: int, part: int) -> tuple[tuple[int, ...], ...]:
        """The chains of one part of a chunk; the first ends with the owner, a second one's result is added last."""
        if not self.meets:
            way = self.directions[part]
            return (tuple((owner + way * k) % p for k in range(1, p + 1)),)
        before, after = p // 2, (p - 1) // 2
        left = tuple((owner - k) % p for k in range(before, -1, -1))
        right = tuple((owner + k) % p for k in range(after, 0, -1))
        return (left, right) if right else (left,)


ALGORITHMS: dict[str, Algorithm] = {
    a.name: a
    for a in (
        Algorithm("ring", (1,)),
        Algorithm("anticlockwise_ring", (-1,)),
        Algorithm("bidirectional_ring_pair", (1, -1)),
        Algorithm("meet_in_middle_ring", (1, -1), meets=True),
    )
}
"""Every method, by name."""

ALIASES = {"clockwise_ring": "ring"}
AUTO = "auto"
LATER = ("quad_directional_ring", "broadcast")  # methods of GCL that are not here


def choose(method: str, p: int, nbytes: int, ipus_each: int) -> Algorithm:
    """The algorithm that a method means for p replicas and so many bytes on each.

    "auto" takes a plain ring for two replicas or several IPUs a replica, meets in the middle below ``SMALL_BYTES`` or above ``FEW`` replicas,
    and else sends both ways.

    Raises:
        OptionError: there is no such method.
    """
    if method == AUTO:
        large = "meet_in_middle_ring" if nbytes < SMALL_BYTES or p > FEW else "bidirectional_ring_pair"
        method = "ring" if p <= 2 or ipus_each > 1 else large
    found = ALGORITHMS.get(ALIASES.get(method, method))
    if found is None:
        known = ", ".join(map(repr, (AUTO, *ALGORITHMS)))
        what = "is not available in this version" if method in LATER else "does not exist"
        raise OptionError(f"collective method {method!r} {what}", f"one of {known}")
    return found


def chunk_elements(elements: int, p: int) -> int:
    """Elements of every chunk but the last ones."""
    return -(-elements // p)


def result_elements(kind: str, elements: int, p: int) -> int:
    """Elements of the result of a collective of ``elements`` on each of p replicas."""
    if kind == "reduce_scatter":
        return chunk_elements(elements, p)
    return elements * p if kind == "all_gather" else elements


def chunk_bounds(elements: int, p: int, rank: int) -> tuple[int, int]:
    """Begin and end of one chunk of a tensor."""
    size = chunk_elements(elements, p)
    return min(rank * size, elements), min((rank + 1) * size, elements)


def members_of(group_type: str, size: int, replicas: int) -> tuple[tuple[int, ...], ...]:
    """The replicas of each group, in rank order. Needs: a size that divides ``replicas``."""
    if group_type == "all":
        return (tuple(range(replicas)),)
    if group_type == "none":
        return tuple((r,) for r in range(replicas))
    if group_type == "consecutive":
        return tuple(tuple(range(first, first + size)) for first in range(0, replicas, size))
    count = replicas // size
    return tuple(tuple(range(first, replicas, count)) for first in range(count))


def rank_chains(algorithm: Algorithm, ring: Sequence[int], part: int) -> tuple[tuple[tuple[int, ...], ...], ...]:
    """For the owner of each rank, the chains of one part, in ranks. ``ring``: the rank at each position."""
    p = len(ring)
    position = {rank: i for i, rank in enumerate(ring)}
    return tuple(tuple(tuple(ring[k] for k in chain) for chain in algorithm.chains(position[rank], p, part)) for rank in range(p))
