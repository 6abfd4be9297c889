"""What was written to each byte of tile memory, as the host sees it: the shadow that ``debug.check`` "full" keeps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from popcore.errors import UninitialisedReadError
from popcore.executable import Executable
from popcore.executable.opcodes import Group, GroupKind, Phase
from popcore.types import Array

WRITTEN = 0xFF
WORD = 4  # bytes


class ShadowMemory:
    """The first plane of shadow of every replica; see ``kernels.guard`` for the others.

    Args:
        memory: uint8[replicas, bytes], of each replica, shadow included.

    Everything here is about the same bytes on all replicas, unless a replica is named.
    """

    def __init__(self, executable: Executable, memory: Array) -> None:
        distance = executable.shadow.distance
        self._executable, self._written = executable, memory[:, distance : 2 * distance]
        place = executable.memory
        self._staging, self._staging_bytes = place.staging, place.staging_bytes

    def begin(self) -> None:
        """Initial values and replicas' numbers are written, and nothing else."""
        for start, _, nbytes in self._executable.initial.tolist():
            self._written[:, start : start + nbytes] = WRITTEN
        for start in self._executable.replica_index.tolist():
            self._written[:, start : start + WORD] = WRITTEN
        self.host_wrote()

    def host_wrote(self) -> None:
        """The host filled the staging area."""
        self._written[:, self._staging : self._staging + self._staging_bytes] = WRITTEN

    def host_read(self, what: str, nbytes: int, width: int, offset: int = 0) -> None:
        """The host reads ``nbytes`` of the staging area, elements of ``width`` bytes.

        Raises: UninitialisedReadError with the elements that nothing wrote.
        """
        self._require(what, self._staging + offset, nbytes, width)

    def tested(self, where: str, at: int, width: int) -> None:
        """A program tests the scalar at arena byte ``at``."""
        self._require(where, at, width, width)

    def _require(self, what: str, start: int, nbytes: int, width: int) -> None:
        bad = (self._written[:, start : start + nbytes] != WRITTEN).reshape(len(self._written), -1, width).any(axis=2) if nbytes else np.zeros((1, 0), bool)
        if bad.any():
            replica = int(np.flatnonzero(bad.any(axis=1))[0])
            elements = np.flatnonzero(bad[replica])
            shown = f" (replica {replica})" if len(self._written) > 1 else ""
            count = f"element {elements[0]}" if len(elements) == 1 else f"{len(elements):,} elements from {elements[0]} to {elements[-1]}"
            raise UninitialisedReadError(f"{what}{shown} reads what nothing has written: {count} of {bad.shape[1]:,}", code="uninitialised-read")

    def end(self, number: int) -> None:
        """What WriteUndef ``number`` names is undefined from here on."""
        ended = self._executable.shadow.ended
        for _, start, nbytes in ended[ended[:, 0] == number].tolist():
            self._written[:, start : start + nbytes] = 0

    def combined(self, spans: Array, groups: Sequence[Sequence[int]]) -> None:
        """Replicas of each group combined what is at ``spans``: what one of them had not written, none has now."""
        for start, nbytes in spans.tolist():
            for members in groups:
                rows = list(members)
                self._written[rows, start : start + nbytes] = self._written[rows, start : start + nbytes].min(axis=0)

    def describe(self, phase: int, at: int) -> str:
        """The variables that arena byte ``at`` belongs to during a phase, with the element."""
        return " or ".join(self._names(at) or self._names(self._source(phase, at))) or "memory of no variable"

    def _names(self, at: int) -> list[str]:
        shadow = self._executable.shadow
        places = shadow.places
        inside = places[(places[:, 0] <= at) & (at < places[:, 0] + places[:, 1])]
        return [f"element {first + (at - start) // width} of {shadow.variables[variable]}" for start, _, variable, first, width in inside.tolist()]

    def _source(self, phase: int, at: int) -> int:
        """Where the exchange buffer's byte ``at`` was copied from; ``at`` if nothing was copied there."""
        executable = self._executable
        begin, end = executable.phases[phase, [Phase.COPY_BEGIN, Phase.COPY_END]].tolist()
        for group in executable.groups[begin:end]:
            source, target, nbytes = entries(executable, group)
            if len(hit := np.flatnonzero((target <= at) & (at < target + nbytes))):
                return int(source[hit[0]] + at - target[hit[0]])
        return at


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
