"""What a codelet does as a tree of loops and branches, with the bundles of each part; and how often each part runs.

Numbers that depend on sizes alone are expressions over them. A loop or a branch without one depends on data: it is counted as the codelet
runs, see ``counters``, and so is everything in it.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

MOST_ROUNDS = 4096  # of a loop whose rounds differ: of a longer one so many are looked at
WORKER = -1  # the variable that stands for a worker's number


class Unknown(Exception):
    """A number is not to be had from sizes."""


@dataclass(frozen=True, eq=False)
class Number:
    """An integer or bool that sizes decide: a constant, a size, a loop's variable, or an operation on those."""

    kind: str  # "constant", "variable", "size" of a field, or the name of an operation
    parts: tuple[Any, ...]
    variables: frozenset[int] = frozenset()  # loops that it depends on

    def value(self, sizes: Mapping[str, Any], variables: Mapping[int, int]) -> Any:
        """Its value for a vertex. Raises: Unknown."""
        if self.kind == "constant":
            return self.parts[0]
        if self.kind == "variable":
            return variables[self.parts[0]]
        if self.kind == "size":
            return _size(sizes[self.parts[0]], self.parts[1], [p.value(sizes, variables) for p in self.parts[2:]])
        try:
            return _OPERATIONS[self.kind](*(p.value(sizes, variables) for p in self.parts))
        except (ZeroDivisionError, ValueError, OverflowError, TypeError) as error:
            raise Unknown(str(error)) from error


def constant(value: int) -> Number:
    return Number("constant", (value,))


def variable(number: int) -> Number:
    return Number("variable", (number,), frozenset((number,)))


def size(field: str, dimension: int, *piece: Number) -> Number:
    """Elements of a field along a dimension, or of a piece of a list."""
    return Number("size", (field, dimension, *piece), frozenset().union(*(p.variables for p in piece)))


def combined(name: str, *parts: Number | None) -> Number | None:
    """An operation on numbers; None if one of them is none, or there is no such operation."""
    if name not in _OPERATIONS or any(p is None for p in parts):
        return None
    known = [p for p in parts if p is not None]
    if all(p.kind == "constant" for p in known):
        try:
            return constant(_OPERATIONS[name](*(p.parts[0] for p in known)))
        except (ZeroDivisionError, ValueError, OverflowError, TypeError):
            return None
    return Number(name, tuple(known), frozenset().union(*(p.variables for p in known)))


def _size(of: Any, dimension: int, piece: list[int]) -> int:
    if piece:
        of = of[piece[0]]
    return int(of.shape[dimension])


def _shift(distance: int) -> int:
    return distance & 63


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "floordiv": operator.floordiv, "mod": operator.mod, "min": min, "max": max,
    "neg": operator.neg, "abs": abs, "square": lambda a: a * a, "cube": lambda a: a * a * a,
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge, "eq": operator.eq, "ne": operator.ne,
    "and": operator.and_, "or": operator.or_, "xor": operator.xor, "not": operator.not_, "invert": operator.invert,
    "lshift": lambda a, b: a << _shift(b), "rshift": lambda a, b: a >> _shift(b), "select": lambda c, a, b: a if c else b,
    "both": lambda *parts: all(parts), "either": lambda *parts: any(parts), "clamped": lambda low, high, count: max(0, _inside(high, count) - _inside(low, count)),
}  # fmt: skip


def _inside(bound: int, count: int) -> int:
    return min(max(bound + count if bound < 0 else bound, 0), count)


Key = tuple[int, int, str]
"""Where a counter is: number of the function, of the statement in it, and which of its parts."""


@dataclass(eq=False)
class Part:
    """Statements that run as often as each other."""

    key: Key | None = None
    bundles: float = 0.0
    children: list[Loop | Branch] = field(default_factory=list)
    depends: frozenset[int] | None = None  # kept by ``_depends``


@dataclass(eq=False)
class Loop:
    """A loop; ``span``: start, stop and step, None where data decides how often it goes round."""

    variable: int
    span: tuple[Number, Number, Number] | None
    body: Part
    width: int = 1  # rounds that one pass of its bundles does
    setup: float = 0.0  # bundles each time it is come to


@dataclass(eq=False)
class Branch:
    """One of two parts; ``test`` is None where data decides."""

    test: Number | None
    then: Part
    other: Part


@dataclass(frozen=True)
class Estimate:
    """Worker cycles of a codelet. ``weights``: bundles for each time that a counted part is come to."""

    root: Part
    weights: Mapping[Key, float]

    @property
    def counted(self) -> bool:
        """Whether data decides about some of them."""
        return bool(self.weights)

    def fixed(self, sizes: Mapping[str, Any], workers: int) -> float:
        """Worker cycles of a vertex beside those that are counted, of its slowest worker. ``sizes``: of its fields, with ``shape``.

        Raises: Unknown: a number cannot be formed, as of a division by zero.
        """
        return max(_cycles(self.root, sizes, {WORKER: worker}) for worker in range(workers))


def weighed(root: Part) -> Estimate:
    """The estimate of a finished tree: decides what is counted."""
    weights: dict[Key, float] = {}
    while True:  # a part of a function that is counted for one caller is counted for all
        known = len(weights)
        _weigh(root, False, weights)
        if len(weights) == known:
            return Estimate(root, weights)


def _cycles(part: Part, sizes: Mapping[str, Any], variables: dict[int, int]) -> float:
    total = part.bundles
    for child in part.children:
        if isinstance(child, Loop):
            total += _loop_cycles(child, sizes, variables)
        elif child.test is not None:
            total += _cycles(child.then if child.test.value(sizes, variables) else child.other, sizes, variables)
    return total


def _loop_cycles(loop: Loop, sizes: Mapping[str, Any], variables: dict[int, int]) -> float:
    if loop.span is None:
        return loop.setup
    start, stop, step = (bound.value(sizes, variables) for bound in loop.span)
    if step == 0:
        raise Unknown("the step of a loop is 0")
    rounds = len(range(start, stop, step))
    if not rounds:
        return loop.setup
    if not loop.body.children:
        return loop.setup + math.ceil(rounds / loop.width) * loop.body.bundles
    if loop.variable not in _depends(loop.body):
        return loop.setup + rounds * _cycles(loop.body, sizes, {**variables, loop.variable: start})
    looked_at = range(rounds) if rounds <= MOST_ROUNDS else [i * rounds // MOST_ROUNDS for i in range(MOST_ROUNDS)]
    total = sum(_cycles(loop.body, sizes, {**variables, loop.variable: start + i * step}) for i in looked_at)
    return loop.setup + total * rounds / len(looked_at)


def _depends(part: Part) -> frozenset[int]:
    """Variables that decide how long a part takes."""
    if part.depends is None:
        found: set[int] = set()
        for child in part.children:
            numbers = (child.span or ()) if isinstance(child, Loop) else (() if child.test is None else (child.test,))
            found |= {v for number in numbers for v in number.variables}
            for inner in (child.body,) if isinstance(child, Loop) else (child.then, child.other):
                found |= _depends(inner)
        part.depends = frozenset(found)
    return part.depends


def _weigh(part: Part, counted: bool, weights: dict[Key, float]) -> None:
    """Collect the weights of counted parts below ``part``, itself counted or not; of one that has several the largest."""
    for child in part.children:
        if isinstance(child, Loop):
            if counted or child.body.key in weights:
                child.span = None
            if child.span is None:
                _add(child.body, child.body.bundles / child.width, weights)
            _weigh(child.body, child.span is None, weights)
        else:
            arms = (child.then, child.other)
            if counted or any(arm.key in weights for arm in arms):
                child.test = None
            for arm in arms:
                if child.test is None:
                    _add(arm, arm.bundles, weights)
                _weigh(arm, child.test is None, weights)


def _add(part: Part, bundles: float, weights: dict[Key, float]) -> None:
    bundles += sum(child.setup for child in part.children if isinstance(child, Loop))
    if part.key is not None and bundles:
        weights[part.key] = max(weights.get(part.key, 0.0), bundles)
