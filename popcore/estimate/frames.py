"""Where operations are charged: the loops around a place in a codelet, and what one round of each of them issues."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from popcore.estimate import issue
from popcore.estimate.issue import NOTHING, Slots
from popcore.estimate.regions import Part
from popcore.estimate.values import Value, View

Item = Callable[[int], Slots]
"""Slots of an operation on so many neighbours at once."""


@dataclass(eq=False)
class Draft:
    """A part that is being written."""

    part: Part
    items: list[Item] = field(default_factory=list)
    words: float = 0.0  # that it loads for arithmetic, one element of each
    known: dict[Any, Value] = field(default_factory=dict)  # what was computed here, by what it is

    def slots(self, width: int = 1) -> Slots:
        return sum((item(width) for item in self.items), NOTHING)

    def finish(self) -> None:
        """As code that runs from beginning to end."""
        self.part.bundles += issue.bundles(self.slots(), False, 0)


@dataclass(frozen=True)
class Access:
    """A load or store whose address changes in a loop."""

    view: View
    term: Value | None  # what it walks along, None if it does not walk from neighbour to neighbour
    offset: int


@dataclass(eq=False)
class Frame:
    """A loop, or the function around all loops. ``drafts``: its body, and the arms of branches that the place is in."""

    level: int
    drafts: list[Draft]
    stored: set[str] = field(default_factory=set)  # fields that it writes
    counter: Value | None = None
    carried: dict[str, Value] = field(default_factory=dict)  # variables that a round takes over from the one before
    accesses: list[Access] = field(default_factory=list)
    streams: set[Any] = field(default_factory=set)
    plain: bool = True  # nothing that keeps arithmetic from being done on several elements at once
    integers: bool = False  # integers are computed with, besides addresses
    leaves: bool = False  # a break or a return is in it

    def width(self) -> int:
        """Rounds that are done at once: 1, or as many elements as a vector has."""
        kinds = {access.view.kind for access in self.accesses}
        if not self.plain or self.integers or not kinds or not kinds <= set(issue.VECTOR) or self.drafts[0].part.children:
            return 1
        width = min(issue.VECTOR[kind] for kind in kinds)
        if any(access.term is None or (access.term is not self.counter and access.term not in self.carried.values()) for access in self.accesses):
            return 1
        return width if len({(access.offset + access.view.shift) % width for access in self.accesses}) == 1 else 1

    def finish(self, repeats: bool) -> int:
        """Write the bundles of a round, or of the rounds that are done at once; returns how many those are."""
        draft, width = self.drafts[0], self.width() if repeats else 1
        alone = repeats and not draft.part.children and not self.integers
        draft.part.bundles += issue.bundles(draft.slots(width), alone, draft.words * width) + (0 if alone else issue.ROUND)
        return width
