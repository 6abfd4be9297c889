"""Draws programs by number, compares all engines on each, and makes what fails small."""

from __future__ import annotations

import contextlib
import signal
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzz.case import Case
from tests.fuzz.choices import Choices, Drawn, Recorded, shrink
from tests.fuzz.compare import compare
from tests.fuzz.draw import draw_case

SECONDS = 30.0
"""Of the processor that one program may take in all engines; most take a tenth of one."""


class TookTooLong(Exception):
    """A program does not end."""


@dataclass(frozen=True)
class Outcome:
    """What came of one program. ``kind`` is "" if all agree, else "differs" or the exception's name; a smaller program must keep it."""

    case: Case | None
    kind: str = ""
    text: str = ""


@dataclass
class Summary:
    """What came of many."""

    programs: int = 0
    features: Counter[str] = field(default_factory=Counter)  # how many programs have each
    failed: list[int] = field(default_factory=list)  # their numbers

    def add(self, number: int, features: Iterable[str], kind: str) -> None:
        """One more program; ``kind`` as of an Outcome."""
        self.programs += 1
        self.features.update(features)
        if kind:
            self.failed.append(number)

    def __str__(self) -> str:
        width = max(map(len, self.features), default=0)
        rows = [f"  {name:{width}}  {count:>7,}  {100 * count / self.programs:5.1f} %" for name, count in sorted(self.features.items())]
        found = f"{len(self.failed)} differ or fail: {self.failed}" if self.failed else "0 differences"
        return "\n".join([f"{self.programs:,} programs: {found}", "programs that have", *rows])


def check(choose: Choices, folder: Path) -> Outcome:
    """Draw a program and run it in every way; ``folder`` is for files."""
    case = None
    try:
        with limited(SECONDS):
            case = draw_case(choose)
            found = compare(case, folder)
    except Exception as error:  # a crash is what is looked for
        return Outcome(case, type(error).__name__, traceback.format_exc())
    lines = [f"{engine}: {name}: {_short(a)} by the reference, {_short(b)}" for engine, names in found.items() for name, (a, b) in names.items()]
    return Outcome(case, "differs" if found else "", "\n".join(lines[:12]))


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise TookTooLong in what takes more seconds of the processor, however busy that is. Needs: the main thread."""

    def stop(number: int, frame: object) -> None:
        raise TookTooLong(f"more than {seconds:g} s")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds, 1.0)  # again and again: an exception in a finaliser is lost
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def name_of(seed: int, number: int) -> str:
    """What program ``number`` of ``seed`` is drawn by."""
    return f"{seed}:{number}"


def explain(seed: int, number: int, folder: Path) -> str:
    """Program ``number`` of ``seed``, which fails: how to see it again, and the smallest program that fails alike."""
    drawn = Drawn(name_of(seed, number))
    first = check(drawn, folder)

    def fails(record: Sequence[int]) -> bool:
        return check(Recorded(record), folder).kind == first.kind

    small = check(Recorded(shrink(drawn.record, fails)), folder)
    case = "" if small.case is None else repr(small.case)
    return f"program {number} of seed {seed}: {first.kind}\nagain: python -m tests.fuzz --seed {seed} --only {number}\nmade small:\n{small.text}\n{case}"


def run(numbers: Sequence[int], seed: int, folder: Path) -> Summary:
    """Compare these programs of a seed, in this process."""
    summary = Summary()
    for number in numbers:
        outcome = check(Drawn(name_of(seed, number)), folder)
        summary.add(number, outcome.case.features if outcome.case else (), outcome.kind)
    return summary


def _short(value: bytes | str | int | None) -> str:
    text = value.hex() if isinstance(value, bytes) else repr(value)
    return text if len(text) < 90 else f"{text[:80]}... ({len(text):,} characters)"
