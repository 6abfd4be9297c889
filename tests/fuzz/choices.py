"""The choices that a program is drawn by: made by a generator of random numbers, by Hypothesis, or made again from a record.

A choice is a number below a bound, and 0 is always the plainest; so a record of choices can be cut and lowered until little of a failing
program is left, whatever the drawing does with them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


class Choices:
    """What a drawing asks. Kinds of it say how a number below a bound is found."""

    def below(self, bound: int) -> int:
        """One of 0, 1, ..., ``bound`` - 1."""
        raise NotImplementedError

    def between(self, low: int, high: int) -> int:
        """One of ``low``, ..., ``high``."""
        return low + self.below(high - low + 1)

    def of(self, items: Sequence[T]) -> T:
        return items[self.below(len(items))]

    def once_in(self, times: int) -> bool:
        """True once in so many times."""
        return self.below(times) == times - 1

    def several(self, low: int, high: int, most: int) -> list[int]:
        """Up to ``most`` numbers from ``low`` to ``high``."""
        return [self.between(low, high) for _ in range(self.below(most + 1))]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        left = list(items)
        return [left.pop(self.below(len(left))) for _ in range(len(left))]


class Drawn(Choices):
    """Random ones, equal for equal seeds on every machine; ``record`` keeps them."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)  # of a text: by SHA-512, not by hash()
        self.record: list[int] = []

    def below(self, bound: int) -> int:
        self.record.append(self._random.randrange(bound) if bound > 1 else 0)
        return self.record[-1]


class Recorded(Choices):
    """Those of a record, changed or not; where it ends, zeros. ``used`` counts how many were asked for."""

    def __init__(self, record: Sequence[int]) -> None:
        self._record, self.used = record, 0

    def below(self, bound: int) -> int:
        self.used += 1
        return self._record[self.used - 1] % bound if self.used <= len(self._record) else 0


class FromHypothesis(Choices):
    """Drawn by Hypothesis, which then shrinks and keeps failing cases itself."""

    def __init__(self, integers: Callable[[int], int]) -> None:
        self._integers = integers

    def below(self, bound: int) -> int:
        return self._integers(bound)


def shrink(record: Sequence[int], fails: Callable[[Sequence[int]], bool], attempts: int = 400) -> list[int]:
    """A shorter or lower record that still fails: runs of choices left out, then single ones lowered, until nothing helps.

    Args:
        fails: Whether a record draws a program that fails in the same way.
        attempts: After so many tries what there is has to do.
    """
    best, left = list(record), attempts

    def better(candidate: list[int]) -> bool:
        nonlocal best, left
        if left <= 0 or candidate == best:
            return False
        left -= 1
        if fails(candidate):
            best = candidate
            return True
        return False

    length = len(best)
    while length and left > 0:
        at = len(best) - length
        while at >= 0:
            better(best[:at] + best[at + length :])
            at -= length
        length //= 2
    for at in range(len(best)):
        for value in (0, best[at] // 2) if at < len(best) and best[at] else ():
            if better([*best[:at], value, *best[at + 1 :]]):
                break
    return best
