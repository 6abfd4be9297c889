"""How the IPUs of a system are joined: link bundles, the route between two IPUs, and the order of IPUs around a ring.

Machines of four IPUs are two rungs of a ladder: IPU i stands on rung ``i // 2``, on rail ``i % 2``. A torus joins the ends of
its rails. Beyond a system's link domain lie GW-Links, one bundle a machine. The counts of links and their sources are in
``machines``; the wiring of a machine is inferred from them, see ``docs/model.md``. Traffic crosses its rung first and then
follows the rail; rings and their patterns are those of collectives. Both are as the public PopLibs sources have them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from popcore.errors import CompileError
from popcore.target import Target

LINK_KINDS = ("rung", "cross", "rail", "gateway out", "gateway in")


class Link(NamedTuple):
    """A bundle of links in one direction.

    kind: "rung" (to the partner, traffic that ends there), "cross" (to the partner, on the way to a rail), "rail",
    "gateway out" and "gateway in" (of a machine: both ends are its number).
    """

    kind: str
    source: int
    target: int


def bytes_per_second(target: Target, link: Link) -> float:
    """What a bundle carries in its direction."""
    chip = target.chip
    lanes = {"rung": chip.links_to_partner, "cross": chip.links_to_cross, "rail": chip.links_to_rail}
    if link.kind not in lanes:
        return float(target.system.gateway_bytes_per_second)
    return lanes[link.kind] * chip.link_bytes_per_second * chip.link_efficiency


def route(target: Target, source: int, to: int) -> tuple[Link, ...]:
    """The bundles from one IPU of ``target`` to another, in order; none from an IPU to itself.

    Raises: CompileError: they are in different link domains of a system that has no GW-Links.
    """
    domain = target.system.link_domain
    links: list[Link] = []
    if source // domain != to // domain:
        if not target.system.gateway_bytes_per_second:
            raise CompileError(
                f"IPU {source} sends to IPU {to}, and nothing joins them: IPU-Links of a {target.name} reach {domain} IPUs, and it has no GW-Links",
                f"at most {domain} IPUs, or another system",
            )
        machine = target.system.ipus_per_machine
        landing = to // domain * domain + source % domain
        links += [Link("gateway out", source // machine, source // machine), Link("gateway in", landing // machine, landing // machine)]
        source = landing
    rungs = _rungs_between(target, source, to)
    if source % 2 != to % 2:
        partner = source ^ 1
        links.append(Link("cross" if rungs else "rung", source, partner))
        source = partner
    base, count = source // domain * domain, domain // 2
    step = 1 if rungs > 0 else -1
    for _ in range(abs(rungs)):
        following = base + ((source - base) // 2 + step) % count * 2 + source % 2
        links.append(Link("rail", source, following))
        source = following
    return tuple(links)


def _rungs_between(target: Target, source: int, to: int) -> int:
    """Rungs to go along a rail, negative downwards; the shorter way where the rails are closed."""
    domain = target.system.link_domain
    rungs = to % domain // 2 - source % domain // 2
    count = domain // 2
    if _closed(target) and abs(rungs) > count // 2:
        rungs -= count if rungs > 0 else -count
    return rungs


def rungs_from_first(target: Target, ipu: int) -> int:
    """Rungs between the first one of its link domain and that of an IPU, the shorter way where the rails are closed."""
    domain = target.system.link_domain
    return abs(_rungs_between(target, ipu // domain * domain, ipu))


INTERLEAVED, SERPENT, MIRRORED = "interleaved", "serpent", "mirrored serpent"
"""Patterns of rings, see ``ring_order``."""


@dataclass(frozen=True)
class Wiring:
    """What a group of replicas looks like to a collective.

    domains: Link domains that it is spread over.
    closed: Its rails are joined at their ends.
    twisted: It is all of a closed torus whose links are set up for the two helices, one IPU each.
    """

    ipus_each: int = 1
    domains: int = 1
    closed: bool = False
    twisted: bool = False


def wiring_of(target: Target, members: Sequence[int], ipus_each: int = 1) -> Wiring:
    """``members``: the first IPU of each; ``target`` has all IPUs of the system."""
    twisted = ipus_each == 1 and target.ipu_link_configuration == "barley_twist" and _closed(target) and _fill_domains(target, members)
    return Wiring(ipus_each, len({m // target.ipu_link_domain_size for m in members}), _closed(target), twisted)


def ring_order(target: Target, members: Sequence[int], ipus_each: int = 1, pattern: str = INTERLEAVED) -> tuple[int, ...]:
    """In which order a ring visits its members, as indices of ``members``; pod after pod.

    ================= ========================================================================================================
    interleaved       up one rail and down the other: each is next to a neighbour. Members of several IPUs, or all on one rail, go
                      up by every second one and down by the others; in their own order where rails are closed
    serpent           along a rung, up a rail, along the next rung: a helix around a torus. Needs all IPUs of a torus, one each;
                      others are interleaved
    mirrored serpent  the helix that begins on the other rail. Both ways round both, every link bundle carries as much as any other:
                      the Barley twist
    ================= ========================================================================================================

    members    the first IPU of each
    """
    domain = target.ipu_link_domain_size
    places = range(len(members))
    if ipus_each > 1 or len({m % 2 for m in members}) < 2:
        return tuple(places) if _closed(target) else (*places[::2], *reversed(places[1::2]))
    if pattern != INTERLEAVED and _closed(target) and _fill_domains(target, members):
        # On even rungs first the one rail's IPU, on odd ones the other's: that is where the rail link leads.
        first = {SERPENT: 0, MIRRORED: 1}[pattern]
        return tuple(sorted(places, key=lambda i: (members[i] // 2, (members[i] + members[i] // 2 + first) % 2)))
    return tuple(sorted(places, key=lambda i: (members[i] // domain, members[i] % 2, members[i] if members[i] % 2 == 0 else -members[i])))


def link_sets(target: Target, members: Sequence[int], ipus_each: int = 1) -> tuple[tuple[int, ...], ...]:
    """Members that are near each other, as indices of ``members``: those of a link domain; of a single domain, those on a rung.

    Each for itself where not all sets have as many.
    """
    domain = target.ipu_link_domain_size
    several = len({m // domain for m in members}) > 1
    sets: dict[int, list[int]] = {}
    for index, member in enumerate(members):
        sets.setdefault(member // (domain if several else 2), []).append(index)
    if len({len(each) for each in sets.values()}) > 1 or (ipus_each > 1 and not several):
        return tuple((index,) for index in range(len(members)))
    return tuple(tuple(each) for each in sets.values())


def _closed(target: Target) -> bool:
    return target.ipu_link_topology == "torus" and target.num_ipus >= target.ipu_link_domain_size


def _fill_domains(target: Target, members: Sequence[int]) -> bool:
    domain = target.ipu_link_domain_size
    return len(members) == domain * len({m // domain for m in members})
