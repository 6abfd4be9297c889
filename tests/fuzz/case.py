"""A drawn case: a graph with programs, and all that the host does with an engine of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

import popcore as pc
from popcore import program


class Feed(program.StreamCallback):
    """Gives the transfers of an array, the first after the last; every third time nothing is there to be fetched ahead."""

    def __init__(self, values: np.ndarray) -> None:
        self._values, self._next, self._asked = values, 0, 0

    def prefetch(self, buffer: np.ndarray) -> bool:
        self._asked += 1
        if self._asked % 3 == 0:
            return False
        self.fetch(buffer)
        return True

    def fetch(self, buffer: np.ndarray) -> None:
        buffer[:] = self._values[self._next]
        self._next = (self._next + 1) % len(self._values)


@dataclass
class Case:
    """A graph with programs, what the host does in turn, what streams are connected to, and which features it has."""

    graph: pc.Graph
    replicas: int = 1
    programs: list[program.Program] = field(default_factory=list)
    script: list[tuple[Any, ...]] = field(default_factory=list)  # ("run", index), ("write", handle, values), ("row", handle, row, values), ("load",)
    inputs: dict[str, tuple[str, np.ndarray]] = field(default_factory=dict)  # "array", "function" or "callback", and the transfers
    outputs: dict[str, np.ndarray] = field(default_factory=dict)  # what the arrays hold before
    features: set[str] = field(default_factory=set)
    needs: list[Any] = field(default_factory=list)  # what ``Executable.load`` is given

    def __repr__(self) -> str:
        variables = "\n".join(f"  {v!r} on {[tuple(map(int, i)) for i in zip(*v.mapping.intervals(), strict=True)]}" for v in self.graph.variables)
        vertices = "\n".join(f"  {g!r} on tiles {g.tile.tolist()}" for cs in self.graph.compute_sets for g in cs.groups.values())
        script = ", ".join(" ".join(str(part) for part in action[:3] if not isinstance(part, np.ndarray)) for action in self.script)
        replicas = f"{self.replicas} replicas of " if self.replicas > 1 else ""
        return f"{replicas}{self.graph.target}; host: {script}\n{variables}\n{vertices}\n{program.text(*self.programs)}"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """What Hypothesis shows of a case that fails."""
        printer.text(repr(self))
