"""What checks found in a run that went on: from the tables that drivers fill to errors. See the option ``debug.check.collect``."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np

from popcore.engine.outcome import Fault, fault_from
from popcore.errors import EngineError, FindingsError
from popcore.executable import Executable
from popcore.executable.opcodes import Phase
from popcore.kernels import abi, found
from popcore.types import Array

LIMIT = 100
"""Findings of one run that are kept."""


class Noted(NamedTuple):
    """A finding of a vertex. The fault is the first one; of a range of bytes it has all."""

    fault: Fault
    phase: int
    times: int
    low: int  # of indices that were outside
    high: int


class Tables:
    """Where the threads of an image write what they find."""

    def __init__(self, threads: int) -> None:
        self.words = np.zeros((threads, found.HEAD + LIMIT * found.WORDS), np.int64)
        self.words[:, found.CAPACITY] = LIMIT

    def take(self, executable: Executable) -> tuple[list[Noted], int]:
        """All of them in order, and how many had no room; the tables are empty then."""
        rows = [row for table in self.words for row in table[found.HEAD :].reshape(LIMIT, -1)[: table[found.USED]].copy()]
        lost = int(self.words[:, found.LOST].sum())
        self.words[:, [found.USED, found.LOST]] = 0
        worker, position = found.COPY + abi.AUX_WORKER, found.COPY + abi.AUX_POSITION
        rows.sort(key=lambda row: (row[found.PHASE], row[found.REPLICA], row[found.BATCH], row[position], -row[worker]))
        return [_noted(executable, row) for row in rows], lost


def _noted(executable: Executable, row: Array) -> Noted:
    batch, low, high = int(row[found.BATCH]), int(row[found.LOW]), int(row[found.HIGH])
    words = np.zeros(abi.AUX_WORDS, np.int64)
    words[: abi.AUX_POSITION + 1] = row[found.COPY : found.COPY + abi.AUX_POSITION + 1]
    fault = fault_from(executable, batch, int(words[abi.AUX_POSITION]), int(row[found.REPLICA]), words, 0)
    if int(words[abi.AUX_TAGS]) & 15 == abi.TAG_FINDING:
        fault = dataclasses.replace(fault, values=(*fault.values[: abi.FINDING_KEYS], low, high - low + 1))
    begin, end = executable.phases[:, Phase.BATCH_BEGIN], executable.phases[:, Phase.BATCH_END]
    return Noted(fault, int(np.flatnonzero((begin <= batch) & (batch < end))[0]), int(row[found.TIMES]), low, high)


class Findings:
    """Of an engine whose runs go on, since it was loaded."""

    def __init__(self) -> None:
        self.all: list[EngineError] = []
        self.lost = 0
        self._told = 0  # of them, those that an error has had

    def add(self, error: EngineError, times: int = 1) -> None:
        """Keep one; the same message again is counted."""
        known = next((e for e in self.all[self._told :] if e.message == error.message), None)
        if known is not None:
            known.__dict__["times"] += times
        elif len(self.all) - self._told < LIMIT:
            error.__dict__["times"] = times
            self.all.append(error)
        else:
            self.lost += 1

    def new(self) -> FindingsError | None:
        """An error of those that no error has had, if there are any."""
        found, lost = self.all[self._told :], self.lost
        self._told, self.lost = len(self.all), 0
        return FindingsError(found, lost) if found else None
