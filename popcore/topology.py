"""How the IPUs of a system are joined: link bundles, the route between two IPUs, and the order of IPUs around a ring.

Machines of four IPUs are two rungs of a ladder: IPU i stands on rung ``i // 2``, on rail ``i % 2``. A torus joins the ends of
its rails. Beyond a system's link domain lie GW-Links, one bundle a machine. The counts of links and their sources are in
``machines``; the wiring of a machine is inferred from them, see ``docs/model.md``. Traffic crosses its rung first and then
follows the rail, as the public PopLibs sources have it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from popcore.target import Target


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
    """The bundles from one IPU of ``target`` to another, in order; none from an IPU to itself."""
    domain = target.system.link_domain
    links: list[Link] = []
    if source // domain != to // domain:
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
    if target.system.topology == "torus" and target.num_ipus >= domain and abs(rungs) > count // 2:
        rungs -= count if rungs > 0 else -count
    return rungs


def ring_order(target: Target, members: Sequence[int], ipus_each: int = 1) -> tuple[int, ...]:
    """In which order a ring visits its members, as indices of ``members``.

    Up one rail and down the other, so that each is next to a neighbour; pod after pod. Where a member has several IPUs, or all
    are on one rail, in their own order.

    members    the first IPU of each
    """
    domain = target.system.link_domain
    if ipus_each > 1 or len({m % 2 for m in members}) < 2:
        return tuple(range(len(members)))
    key = {i: (m // domain, m % 2, m if m % 2 == 0 else -m) for i, m in enumerate(members)}
    return tuple(sorted(key, key=lambda i: key[i]))
