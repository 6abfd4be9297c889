"""Running step by step: before each, somebody else looks at the engine, may change what it holds, or end the run.

The machine is made to yield where a step begins (``Image.intercept``), so that a run that nobody watches costs nothing more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from popcore.engine.device import Arena
from popcore.engine.host import Host
from popcore.errors import EngineError
from popcore.executable import Executable, Yield
from popcore.executable.opcodes import Op
from popcore.types import Array

if TYPE_CHECKING:
    from popcore.engine.engine import Engine
    from popcore.engine.linker import Image


class Step(NamedTuple):
    """What the machine is about to do. A step of the program may be several of them: two phases, a transfer and a copy."""

    number: int  # steps of the program before this one
    name: str  # of the compute set, copy, stream or collective
    execution: int  # how often that had been executed before
    begins: bool  # whether it is the first part of its step
    instruction: int
    phase: int  # -1: the host does it
    request: Yield | None  # what the host does

    def __str__(self) -> str:
        return f"step {self.number} ({self.name!r}, execution {self.execution})"


@dataclass(frozen=True)
class Parts:
    """Of an engine, what a watcher may look at and change.

    waited: Cycles that instructions took beyond their cost, by kind; see ``profile.make_profile``.
    """

    executable: Executable
    options: dict[str, Any]
    arena: Arena
    host: Host
    waited: Array
    image: Image


class Watcher(Protocol):
    """Who is told of each step before it happens."""

    def before(self, step: Step) -> None:
        """What this raises ends the run, and the step does not happen."""

    def transfer(self, phase: int, what: str) -> None:
        """The host is about to read or write a tensor between runs."""


class Stepper:
    """Tells a watcher of the steps of an engine, then does them."""

    def __init__(self, parts: Parts, watcher: Watcher, perform: Callable[[Image, int], None]) -> None:
        self._parts, self._watcher, self._perform = parts, watcher, perform
        self._number, self._instruction, self._label = -1, -1, -1
        self._executions: Counter[str] = Counter()
        self.transfer = watcher.transfer

    def serve(self, image: Image, instruction: int, _: int) -> None:
        """Do an instruction that the machine was stopped before."""
        step = self._step(instruction)
        self._watcher.before(step)
        self._perform(image, instruction)

    def _step(self, instruction: int) -> Step:
        executable = self._parts.executable
        label = int(executable.costs.label[instruction])
        name = executable.costs.labels[label]
        begins = label != self._label or instruction != self._instruction + 1
        self._label, self._instruction = label, instruction
        if begins:
            self._number += 1
            self._executions[name] += 1
        operation, operand = executable.code[instruction, :2].tolist()
        request = executable.yields[operand] if operation == Op.YIELD else None
        return Step(self._number, name, self._executions[name] - 1, begins, instruction, operand if operation == Op.RUN else -1, request)


@contextmanager
def stepped(engine: Engine, make: Callable[[Parts], Watcher]) -> Iterator[None]:
    """Inside, whoever ``make`` gives is told of all steps of an engine.

    Raises: EngineError: somebody else is already; the engine runs, or has no data.
    """
    parts = engine.parts("steps")
    if engine.stepper is not None:
        raise EngineError("this engine is watched step by step already", "one after the other")
    watcher = make(parts)
    steps = np.flatnonzero(np.isin(parts.executable.code[:, 0], (Op.RUN, Op.YIELD)))
    parts.image.intercept(steps)
    engine.stepper = Stepper(parts, watcher, engine.perform)
    try:
        yield
    finally:
        engine.stepper = None
        parts.image.restore(np.arange(len(parts.executable.code)))
