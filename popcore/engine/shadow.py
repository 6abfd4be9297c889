"""What was written to each byte of tile memory, as the host sees it: the shadow that ``debug.check`` "full" keeps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from popcore.engine.places import WORD
from popcore.errors import EngineError, UninitialisedReadError
from popcore.executable import Executable
from popcore.types import Array

WRITTEN = 0xFF


class ShadowMemory:
    """The first plane of shadow of every replica; see ``kernels.guard`` for the others.

    Args:
        memory: uint8[replicas, bytes], of each replica, shadow included.
        report: Raises what was found, or keeps it.

    Everything here is about the same bytes on all replicas, unless a replica is named.
    """

    def __init__(self, executable: Executable, memory: Array, report: Callable[[EngineError], None]) -> None:
        distance = executable.shadow.distance
        self._executable, self._written = executable, memory[:, distance : 2 * distance]
        self._report = report
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

        Reports: UninitialisedReadError with the elements that nothing wrote.
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
            facts: dict[str, Any] = {"elements": (int(elements[0]), int(elements[-1]))} | ({"replica": replica} if shown else {})
            self._report(
                UninitialisedReadError(f"{what}{shown} reads what nothing has written: {count} of {bad.shape[1]:,}", code="uninitialised-read", **facts)
            )

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
