"""Bits that flip in tile memory, with parity or without: who reads a word next is told, unless it was written before."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from popcore.engine.stepping import Parts, Step
from popcore.errors import MemoryParityError
from popcore.faults.accesses import access, place_of, reduced, tests_of, tile_of
from popcore.faults.kinds import BitFlip

WORD = 4  # bytes that share a parity bit, as far as the model goes


@dataclass
class _Bad:
    """A word in which bits have flipped."""

    flips: list[tuple[BitFlip, int]] = field(default_factory=list)  # each with its arena byte

    @property
    def is_noticed(self) -> bool:
        """Whether parity is wrong: of an even number of bits it is right again."""
        return len(self.flips) % 2 == 1


class Memory:
    """The flipped bits of one engine."""

    def __init__(self, parts: Parts, tell: list[str]) -> None:
        self._parts, self._tell = parts, tell
        self._words: dict[tuple[int, int], _Bad] = {}  # by replica and arena byte of the word

    def flip(self, fault: BitFlip, step: Step) -> None:
        """Do it now."""
        executable = self._parts.executable
        handle = next(h for h in (*executable.reads, *executable.writes) if h.name == fault.tensor)
        at = place_of(executable, handle, fault.element) + fault.bit // 8
        self._invert(fault.replica, at, fault.bit)
        tile, byte = tile_of(executable, at)
        self._tell.append(f"{step}: bit {fault.bit} of element {fault.element} of {fault.tensor!r} flipped, at byte {byte:#x} of tile {tile}")
        if fault.parity:
            word = at - at % WORD
            self._words.setdefault((fault.replica, word), _Bad()).flips.append((fault, at))
            self._watch(word)

    def before(self, step: Step) -> None:
        """Raises MemoryParityError if a step reads a word that has changed. What it writes is whole again."""
        executable = self._parts.executable
        for (replica, word), bad in list(self._words.items()):
            if step.phase >= 0:
                self._phase(step.phase, str(step), replica, word, bad)
            elif step.request is None:
                if step.instruction in tests_of(executable, word, WORD).tolist():
                    self._notice(f"{step} tests it", replica, word, bad)
            elif step.request.kind == "collective" and executable.collectives[step.request.index].kind == "all_reduce":
                call = executable.collectives[step.request.index]
                if any(reduced(executable.collective_spans[call.span_begin : call.span_end], at) for _, at in bad.flips):
                    self._notice(f"the all-reduce of {step} reads it", replica, word, bad)
                    del self._words[replica, word]  # an even number of bits: summed, and written again

    def transfer(self, phase: int, what: str) -> None:
        """The same for a transfer of the host's."""
        for (replica, word), bad in list(self._words.items()):
            self._phase(phase, what, replica, word, bad)

    def _phase(self, phase: int, what: str, replica: int, word: int, bad: _Bad) -> None:
        executable = self._parts.executable
        accesses = [access(executable, phase, word + i) for i in range(WORD)]
        reader = next((each.reader for each in accesses if each.reader), "")
        if reader:
            self._notice(f"{reader} reads it in {what}", replica, word, bad)
        for flip, at in [each for each in bad.flips if accesses[each[1] - word].written]:
            bad.flips.remove((flip, at))
            self._tell.append(f"{what}: element {flip.element} of {flip.tensor!r} is written again{'' if reader else ', before anything read it'}")
        if not bad.flips:
            del self._words[replica, word]
        self._watch(word)

    def _watch(self, word: int) -> None:
        """Stop before branches that test a word whose parity is wrong, on any replica; else not."""
        tests, image = tests_of(self._parts.executable, word, WORD), self._parts.image
        wrong = any(at == word and bad.is_noticed for (_, at), bad in self._words.items())
        (image.intercept if wrong else image.restore)(tests)

    def _notice(self, doing: str, replica: int, word: int, bad: _Bad) -> None:
        if not bad.is_noticed:
            return
        executable = self._parts.executable
        tile, byte = tile_of(executable, word)
        fault = bad.flips[0][0]
        of = f" of replica {replica}" if executable.replicas > 1 else ""
        raise MemoryParityError(
            f"parity of the word at byte {byte:#x} of tile {tile}{of} is wrong: {doing}\n  it holds element {fault.element} of {fault.tensor!r}",
            tile=tile, byte=byte, replica=replica, tensor=fault.tensor, element=fault.element,
        )  # fmt: skip

    def _invert(self, replica: int, at: int, bit: int) -> None:
        self._parts.arena.by_replica()[replica, at] ^= np.uint8(1 << bit % 8)

    def withdraw(self) -> None:
        """Flip bits back that parity would tell of, so that none goes unseen after the faults."""
        for (replica, _), bad in self._words.items():
            for fault, at in bad.flips if bad.is_noticed else ():
                self._invert(replica, at, fault.bit)
        self._words.clear()
