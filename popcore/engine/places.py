"""Which variable a byte of tile memory belongs to, for messages."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from popcore.executable import Executable
from popcore.executable.opcodes import Group, GroupKind, Phase
from popcore.types import Array

WORD = 4  # bytes


class Element(NamedTuple):
    """An element of a variable."""

    variable: int  # of ``Executable.shadow``
    number: int


class Places:
    """Finds variables.

    Attributes:
        known: False for an Executable that was compiled without a check, which has no names.
    """

    def __init__(self, executable: Executable) -> None:
        self._executable = executable
        self.known = bool(executable.shadow.variables)

    def describe(self, phase: int, first: int, last: int) -> tuple[str, dict[str, Any]]:
        """The elements that arena bytes ``first`` to ``last`` belong to during a phase, in words; and as facts: ``variable`` and ``elements``.

        Variables whose lives do not meet may share memory: then there are several, and no facts.
        """
        found, to = self.elements(phase, first), self.elements(phase, last)
        names = self._executable.shadow.variables
        if len(found) == 1 and len(to) == 1 and found[0].variable == to[0].variable and found[0].number <= to[0].number:
            low, high = found[0].number, to[0].number
            which = f"element {low}" if low == high else f"elements {low} to {high}"
            name = names[found[0].variable]
            return f"{which} of {name}", {"variable": name.rsplit(" (", 1)[0].strip("'"), "elements": (low, high)}
        return " or ".join(f"element {each.number} of {names[each.variable]}" for each in found) or "memory of no variable", {}

    def elements(self, phase: int, at: int) -> list[Element]:
        """What arena byte ``at`` holds, or in an exchange buffer is a copy of."""
        return self._inside(at) or self._inside(self._source(phase, at)) or self._inside(self._target(phase, at))

    def _inside(self, at: int) -> list[Element]:
        places = self._executable.shadow.places
        inside = places[(places[:, 0] <= at) & (at < places[:, 0] + places[:, 1])]
        return [Element(variable, first + (at - start) // width) for start, _, variable, first, width in inside.tolist()]

    def _source(self, phase: int, at: int) -> int:
        """Where the exchange buffer's byte ``at`` was copied from; ``at`` if nothing was copied there."""
        for source, target, nbytes in self._copies(phase):
            if len(hit := np.flatnonzero((target <= at) & (at < target + nbytes))):
                return int(source[hit[0]] + at - target[hit[0]])
        return at

    def _target(self, phase: int, at: int) -> int:
        """Where the next phase copies byte ``at`` to, which a vertex has written to an exchange buffer."""
        for source, target, nbytes in self._copies(phase + 1) if phase + 1 < len(self._executable.phases) else ():
            if len(hit := np.flatnonzero((source <= at) & (at < source + nbytes))):
                return int(target[hit[0]] + at - source[hit[0]])
        return at

    def _copies(self, phase: int) -> list[tuple[Array, Array, Array]]:
        begin, end = self._executable.phases[phase, [Phase.COPY_BEGIN, Phase.COPY_END]].tolist()
        return [entries(self._executable, group) for group in self._executable.groups[begin:end]]


def entries(executable: Executable, group: Array) -> tuple[Array, Array, Array]:
    """Source, target and bytes of each copy of a group."""
    begin, count, width = (int(group[c]) for c in (Group.BEGIN, Group.COUNT, Group.WIDTH))
    if group[Group.KIND] == GroupKind.SPANS:
        source, target, nbytes = executable.spans[begin : begin + count].T
        return source, target, nbytes
    if group[Group.KIND] == GroupKind.WORDS:
        pairs = executable.words[2 * begin : 2 * (begin + count)].astype(np.int64).reshape(-1, 2) * WORD
        return pairs[:, 0], pairs[:, 1], np.full(count, WORD * width)
    outer, inner = np.indices((count, int(group[Group.COUNT1]))).reshape(2, -1)
    source = group[Group.SOURCE] + inner * group[Group.SOURCE1] + outer * group[Group.SOURCE2]
    target = group[Group.TARGET] + inner * group[Group.TARGET1] + outer * group[Group.TARGET2]
    return WORD * source, WORD * target, np.full(len(outer), WORD * width)
