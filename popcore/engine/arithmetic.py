"""The machine's floating-point state, and the drivers that its batches have for it: linked when a state first needs them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from popcore.engine.device import Arena
from popcore.executable.executable import MODIFY, RESTORE, Executable
from popcore.executable.opcodes import Batch, Phase
from popcore.kernels import abi, status
from popcore.kernels.behaviour import Arithmetic, arithmetic_of
from popcore.types import Array

Link = Callable[[Sequence[int], Arithmetic], Sequence[int]]
"""Addresses of drivers of some codelets of the Executable, by their numbers, for an arithmetic."""


class State:
    """The state, kept where the machine sees it: in the drivers of its batches, and in which phases it may not run yet.

    Args:
        batches, phases: The machine's tables, see ``status``; changed in place.
        ieee: Whether half overflows to infinity. Fixed.

    Attributes:
        bits: Of the state, see ``popcore.kernels.behaviour``.
        arithmetic: What it means for a driver.
    """

    def __init__(self, executable: Executable, batches: Array, phases: Array, link: Link, ieee: bool) -> None:
        self._executable, self._batches, self._phases, self._link, self._ieee = executable, batches, phases, link, ieee
        self._addresses: dict[Arithmetic, Array] = {}  # int64[codelets]; 0: not linked
        self.bits, self.arithmetic = 0, arithmetic_of(0, ieee)
        if not any(request.kind in (MODIFY, RESTORE) for request in executable.yields):
            self.link(range(len(executable.codelets)))
        self.change(0)

    def change(self, bits: int) -> None:
        """The machine is in another state from here on. Costs: some microseconds."""
        self.bits, self.arithmetic = bits, arithmetic_of(bits, self._ieee)
        self._apply()

    def link(self, codelets: Sequence[int]) -> None:
        """Have drivers of some codelets for the present state. Raises: CodeletError for one that cannot be compiled."""
        self._linked()[list(codelets)] = self._link(codelets, self.arithmetic)

    def link_phase(self, phase: int) -> None:
        """Have drivers of all codelets of a phase for the present state."""
        begin, end = self._executable.phases[phase, [Phase.BATCH_BEGIN, Phase.BATCH_END]]
        codelets = np.unique(self._executable.batches[begin:end, Batch.CODELET])
        self.link(codelets[self._linked()[codelets] == 0].tolist())
        self._apply()

    def _linked(self) -> Array:
        return self._addresses.setdefault(self.arithmetic, np.zeros(len(self._executable.codelets), np.int64))

    def _apply(self) -> None:
        drivers = self._linked()[self._executable.batches[:, Batch.CODELET]]
        self._batches[:, status.BATCH_DRIVER] = drivers
        missing = np.concatenate(([0], np.cumsum(drivers == 0)))
        begin, end = self._executable.phases[:, Phase.BATCH_BEGIN], self._executable.phases[:, Phase.BATCH_END]
        unlinked = missing[np.maximum(begin, end)] > missing[begin]
        mode = self._phases[:, status.PHASE_MODE]
        self._phases[:, status.PHASE_MODE] = np.where(unlinked, mode | status.UNLINKED, mode & ~status.UNLINKED)


def streams(executable: Executable, arena: Arena, seed: int) -> tuple[Array, ...]:
    """The words that drivers which round stochastically make their keys from, see ``abi.STREAM_SEED``; then what the words point to."""
    batches = executable.batches
    firsts = batches[:, Batch.FIRST_VERTEX] - batches[:, Batch.TILES_BEGIN] * np.maximum(batches[:, Batch.ROWS_COUNT], 1)
    vertices = np.ascontiguousarray(executable.vertex_ids, np.int64)
    firsts = np.ascontiguousarray(firsts, np.int64)
    words = np.zeros(abi.STREAM_WORDS, np.int64)
    words[abi.STREAM_SEED], words[abi.STREAM_MEMORY], words[abi.STREAM_STRIDE] = seed, arena.address, arena.stride
    words[abi.STREAM_FIRSTS], words[abi.STREAM_VERTICES] = firsts.ctypes.data, vertices.ctypes.data
    return words, firsts, vertices
