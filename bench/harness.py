"""What all benchmarks share: timing two things in turn, a row of results, checks, programs in a process of their own."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import popcore

FIELDS = ("name", "value", "unit", "baseline", "ratio", "target", "met")
"""Of a row in JSON."""

UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
PROGRAMS = Path(__file__).parent / "programs"
BATCH_SECONDS = 2e-3  # one timed batch of calls lasts at least this long: the clock and the call cost nothing beside it
SECONDS = 0.8  # one comparison lasts about this long
ROUNDS = 11  # and has at least so many rounds


class WrongAnswer(Exception):
    """What is to be timed does not compute what it should."""


@dataclass(frozen=True)
class Goal:
    """Good enough, and what to aim for if that is known. Of the ratio where a row has a baseline, else of the value."""

    good: float
    moonshot: float | None = None
    more_is_better: bool = False

    def reached(self, figure: float, bound: float) -> bool:
        return figure >= bound if self.more_is_better else figure <= bound


@dataclass(frozen=True)
class Row:
    """One result.

    value, baseline: Median cost of ours and of what it is compared with, in ``unit``.
    ratio: Baseline over ours, the median over rounds in which both were timed: above 1 ours is faster.
    """

    name: str
    value: float
    unit: str
    baseline: float | None = None
    ratio: float | None = None
    goal: Goal | None = None

    @property
    def figure(self) -> float:
        """What the goal is about."""
        return self.value if self.ratio is None else self.ratio

    @property
    def met(self) -> bool | None:
        return None if self.goal is None else self.goal.reached(self.figure, self.goal.good)

    @property
    def moonshot_met(self) -> bool:
        return self.goal is not None and self.goal.moonshot is not None and self.goal.reached(self.figure, self.goal.moonshot)

    def as_dict(self) -> dict[str, Any]:
        target = None if self.goal is None else self.goal.good
        return dict(zip(FIELDS, (self.name, self.value, self.unit, self.baseline, self.ratio, target, self.met), strict=True))


def check_equal(what: str, got: Any, expected: Any) -> None:
    """Raises: WrongAnswer, with how many elements differ and the first of them."""
    got, expected = np.asarray(got), np.asarray(expected)
    if got.shape != expected.shape:
        raise WrongAnswer(f"{what}: the shape is {got.shape}, it should be {expected.shape}")
    wrong = np.flatnonzero(got.ravel() != expected.ravel())
    if wrong.size:
        at = int(wrong[0])
        raise WrongAnswer(f"{what}: {wrong.size} of {got.size} elements are wrong, the first is {at}: {got.flat[at]}, not {expected.flat[at]}")


def interleave(actions: Sequence[Callable[[], object]], smoke: bool = False, one_by_one: bool = False) -> list[list[float]]:
    """Seconds a call of each action, round by round; the actions take turns, so that a busy machine slows all of them alike.

    Args:
        one_by_one: Time each call by itself, for what is disturbed as soon as anything else runs.

    Needs: each action was called before, so that nothing is timed that happens once.
    """
    if smoke:
        return [[_batch(action, 1)] for action in actions]
    inner = [1 if one_by_one else _calls_for(action) for action in actions]
    times: list[list[float]] = [[] for _ in actions]
    began = time.perf_counter()
    while len(times[0]) < ROUNDS or time.perf_counter() - began < SECONDS:
        for action, calls, found in zip(actions, inner, times, strict=True):
            found.append(_batch(action, calls))
    return times


def _batch(action: Callable[[], object], calls: int) -> float:
    began = time.perf_counter()
    for _ in range(calls):
        action()
    return (time.perf_counter() - began) / calls


def _calls_for(action: Callable[[], object]) -> int:
    calls = 1
    while (each := _batch(action, calls)) * calls < BATCH_SECONDS / 4:
        calls *= 4
    return max(1, round(BATCH_SECONDS / each))


def measure(name: str, ours: Callable[[], object], *, unit: str, per: float = 1, goal: Goal | None = None, smoke: bool = False) -> Row:
    """Time one action that does ``per`` things: the row's value is that of one thing."""
    (times,) = interleave([ours], smoke)
    return Row(name, statistics.median(times) / per * UNITS[unit], unit, goal=goal)


def compare(
    name: str, ours: Callable[[], object], baseline: Callable[[], object], *, unit: str, per: float = 1, goal: Goal | None = None, smoke: bool = False
) -> Row:
    """Time two actions in turn that both do ``per`` things."""
    return compared(name, *interleave([ours, baseline], smoke), unit=unit, per=per, goal=goal)


def compared(name: str, ours: Iterable[float], baseline: Iterable[float], *, unit: str, per: float = 1, goal: Goal | None = None) -> Row:
    """The row of two lists of seconds that were taken in turn."""
    ours, baseline = list(ours), list(baseline)
    ratio = statistics.median(b / o for o, b in zip(ours, baseline, strict=True))
    scale = UNITS[unit] / per
    return Row(name, statistics.median(ours) * scale, unit, statistics.median(baseline) * scale, ratio, goal)


@dataclass(frozen=True)
class Finished:
    """A process that ended well."""

    seconds: float  # from before it was started until it had ended
    output: str

    @property
    def json(self) -> Any:
        """Its last line of output, read as JSON."""
        return json.loads(self.output.strip().splitlines()[-1])


def run_python(arguments: Sequence[str], cache: str | None = None) -> Finished:
    """Run a Python process that imports the popcore that this one has.

    Args:
        cache: Folder where it keeps compiled code, Python's too: an installed popcore has that, a checkout may not.

    Raises: WrongAnswer: it did not end well.
    """
    environment = {**os.environ, "PYTHONPATH": str(Path(popcore.__file__).parents[1])}
    if cache is not None:
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        environment |= {"POPCORE_CACHE_DIR": cache, "PYTHONPYCACHEPREFIX": str(Path(cache) / "bytecode")}
    began = time.perf_counter()
    done = subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - began
    if done.returncode != 0:
        raise WrongAnswer(f"python {' '.join(arguments)} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return Finished(seconds, done.stdout)


def run_program(name: str, *arguments: str, cache: str | None = None) -> Finished:
    """Run a file of ``bench/programs``; see ``run_python``."""
    return run_python([str(PROGRAMS / f"{name}.py"), *arguments], cache)
