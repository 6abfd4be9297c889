"""Collectives as schedules: who adds to whose partial result, in which order, and how many steps that takes.

The data of a collective follow its schedule to the bit; the time that it takes is computed from it.

Words   A *group* of p replicas stands in a ring, at positions 0 to p - 1. A tensor of n elements is cut into p *chunks* of
        ``ceil(n / p)``; the last ones are shorter, or empty. The replica of rank i in its group owns chunk i: reduced there first, then
        passed on to all. A *part* of a chunk goes one *lane*: a ring, and the way round it. A *chain* is the positions whose values are
        combined, first to last. On two *levels* the ring is made of *sets* that are near each other, equally many in each: values
        are combined within every set, and then the sets' sums across the sets.

The methods, their names and when each is chosen are those of the public PopLibs sources, release 2.0 and before
(``popops/ReplicatedCollectives.cpp``), except for two levels: collectives across pods were never public.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from popcore.errors import OptionError
from popcore.target import Target
from popcore.topology import INTERLEAVED, MIRRORED, SERPENT, Wiring, link_sets, ring_order


class CollectiveOperator(enum.Enum):
    """How the values of two replicas are combined; each time the result is rounded to the type of the partial sums."""

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
class Lane:
    """A way round a ring.

    way: 1 is clockwise, to the next position; -1 the other way.
    pattern: In which order the ring visits the replicas, see ``topology.ring_order``.
    """

    way: int
    pattern: str = INTERLEAVED


@dataclass(frozen=True)
class Algorithm:
    """One schedule.

    lanes: Each chunk's parts go these, equal shares.
    meets: A chunk is not cut: partial results come to its owner from both sides, each from half of the ring.
    levels: 2 combines within sets first.
    """

    name: str
    lanes: tuple[Lane, ...]
    meets: bool = False
    levels: int = 1

    @property
    def parts(self) -> int:
        """Into how many parts a chunk is cut."""
        return 1 if self.meets else len(self.lanes)

    def bounds(self, chunk: int) -> tuple[tuple[int, int], ...]:
        """Begin and end of each part within a chunk of so many elements; the last ones may be empty."""
        size = -(-chunk // self.parts)
        return tuple((min(i * size, chunk), min((i + 1) * size, chunk)) for i in range(self.parts))

    def steps(self, p: int, inner: int) -> int:
        """Steps of a reduce-scatter, and as many of an all-gather. ``inner``: members of a set; p on one level."""
        return p // 2 if self.meets else inner - 1 + p // inner - 1

    def chains(self, owner: int, p: int, part: int, inner: int) -> tuple[tuple[int, ...], ...]:
        """The chains of one part of a chunk, as positions. Each gives a sum; the sums are added in this order.

        All chains but the last are equally long.
        """
        if self.meets:
            before, after = p // 2, (p - 1) // 2
            left = tuple((owner - k) % p for k in range(before, -1, -1))
            right = tuple((owner + k) % p for k in range(after, 0, -1))
            return (left, right) if right else (left,)
        way, (own_set, place) = self.lanes[part].way, divmod(owner, inner)
        sets = [(own_set + way * k) % (p // inner) for k in range(1, p // inner + 1)]
        places = [(place + way * k) % inner for k in range(1, inner + 1)]
        return tuple(tuple(each * inner + k for k in places) for each in sets)

    def hand_on(self, p: int, inner: int) -> Iterator[list[tuple[int, int, int, int]]]:
        """The steps of an all-gather: in each, (part, sender, receiver, owner of what is sent), as positions."""
        if self.meets:
            for step in range(1, p // 2 + 1):
                ways = (1, -1) if step <= (p - 1) // 2 else (1,)
                yield [(0, (i - way) % p, i, (i - way * step) % p) for way in ways for i in range(p)]
            return
        for step in range(1, p // inner):
            yield [
                (part, (i - lane.way * inner) % p, i, (i - lane.way * step * inner) % p)
                for part, lane in enumerate(self.lanes) for i in range(p)
            ]  # fmt: skip
        for step in range(1, inner):
            yield [
                (part, i - i % inner + (i - lane.way) % inner, i, each * inner + (i - lane.way * step) % inner)
                for part, lane in enumerate(self.lanes) for i in range(p) for each in range(p // inner)
            ]  # fmt: skip


_PAIR = (Lane(1), Lane(-1))
_HELICES = (Lane(1, SERPENT), Lane(1, MIRRORED), Lane(-1, SERPENT), Lane(-1, MIRRORED))

ALGORITHMS: dict[str, Algorithm] = {
    a.name: a
    for a in (
        Algorithm("ring", (Lane(1),)),
        Algorithm("anticlockwise_ring", (Lane(-1),)),
        Algorithm("bidirectional_ring_pair", _PAIR),
        Algorithm("meet_in_middle_ring", _PAIR, meets=True),
        Algorithm("quad_directional_ring", _HELICES),
        Algorithm("two_level", _HELICES, levels=2),
    )
}
"""Every method, by name."""

ALIASES = {"clockwise_ring": "ring"}
AUTO = "auto"
LATER = ("broadcast",)  # methods of GCL that are not here

TWISTED_BYTES = 196_608  # on a twisted torus less for each replica of a group is sent to meet in the middle (pickReduceScatterMethod)
PAIR_BYTES = {
    True: ((8, 39_845_888), (4, 4_980_736), (0, 1_245_184)),
    False: ((8, 19_922_944), (4, 2_490_368), (0, 622_592)),
}
"""Of reductions, and of the others: (more replicas than so many, bytes from which both ways round are the faster)."""
FEW = 16  # replicas; more meet in the middle with any size


def choose(method: str, kind: str, p: int, nbytes: int, wiring: Wiring) -> Algorithm:
    """The algorithm that a method means for p replicas and a tensor of so many bytes on each.

    "auto" takes

    ========================================= ==========================================================
    replicas on several link domains          two levels
    one IPU each, all of a twisted torus      four ways round, or meets in the middle below ``TWISTED_BYTES``
    several IPUs each                         meets in the middle where rails are closed, else a plain ring
    two replicas                              a plain ring
    other                                     both ways round, or meets in the middle below ``PAIR_BYTES``
    ========================================= ==========================================================

    Raises:
        OptionError: there is no such method.
    """
    if method == AUTO:
        method = _automatic(kind in REDUCING, p, nbytes, wiring)
    found = ALGORITHMS.get(ALIASES.get(method, method))
    if found is None:
        known = ", ".join(map(repr, (AUTO, *ALGORITHMS)))
        what = "is not available in this version" if method in LATER else "does not exist"
        raise OptionError(f"collective method {method!r} {what}", f"one of {known}")
    return found


def _automatic(reduces: bool, p: int, nbytes: int, wiring: Wiring) -> str:
    if wiring.domains > 1:
        return "two_level"
    if wiring.twisted:
        return "meet_in_middle_ring" if nbytes < TWISTED_BYTES * (p if reduces else 1) else "quad_directional_ring"
    if wiring.closed and wiring.ipus_each > 1:
        return "meet_in_middle_ring"
    if wiring.ipus_each > 1 or p <= 2:
        return "ring"
    enough = next(least for above, least in PAIR_BYTES[reduces] if p > above)
    return "meet_in_middle_ring" if p > FEW or nbytes < enough else "bidirectional_ring_pair"


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


def rings_of(algorithm: Algorithm, target: Target, members: Sequence[int], ipus_each: int) -> tuple[tuple[tuple[int, ...], ...], int]:
    """For each lane the rank at each position of its ring, and the replicas of a set.

    members    the first IPU of each rank, of ``ipus_each``; ``target`` has all IPUs
    """
    sets = link_sets(target, members, ipus_each) if algorithm.levels == 2 else (tuple(range(len(members))),)
    rings = []
    for lane in algorithm.lanes:
        orders = [ring_order(target, [members[rank] for rank in each], ipus_each, lane.pattern) for each in sets]
        rings.append(tuple(each[i] for each, order in zip(sets, orders, strict=True) for i in order))
    return tuple(rings), len(sets[0])


def rank_chains(algorithm: Algorithm, ring: Sequence[int], part: int, inner: int) -> tuple[tuple[tuple[int, ...], ...], ...]:
    """For the owner of each rank, the chains of one part, in ranks. ``ring``: the rank at each position."""
    p = len(ring)
    position = {rank: i for i, rank in enumerate(ring)}
    return tuple(tuple(tuple(ring[k] for k in chain) for chain in algorithm.chains(position[rank], p, part, inner)) for rank in range(p))
