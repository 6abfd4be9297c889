"""Code as it grows: instructions with their labels, steps and requests to the host, each of them once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from popcore.compiler.ir import HostStep, Step
from popcore.executable import Yield
from popcore.executable.opcodes import Op
from popcore.graph import Graph, Tensor
from popcore.program.collectives import Collective


@dataclass
class CodeBuilder:
    """What the lowering of every kind of program adds to."""

    graph: Graph
    shadowed: bool = False  # whether what is tested is checked to have been written
    code: list[tuple[int, int, int, int]] = field(default_factory=list)
    label: list[int] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    step_of: dict[object, int] = field(default_factory=dict)
    yields: list[Yield] = field(default_factory=list)
    yield_of: dict[Yield, int] = field(default_factory=dict)
    collectives: list[Collective] = field(default_factory=list)

    def add(self, op: Op, a: int = 0, b: int = 0, c: int = 0, name: str = "") -> int:
        self.code.append((int(op), a, b, c))
        self.label.append(self.labels.setdefault(name or op.name.lower(), len(self.labels)))
        return len(self.code) - 1

    def patch(self, row: int, column: int, value: int) -> None:
        entry = list(self.code[row])
        entry[column] = value
        self.code[row] = tuple(entry)  # type: ignore[assignment]  # four long, as it was

    def step(self, key: object, make: Callable[[], Step]) -> int:
        if (known := self.step_of.get(key)) is not None:
            return known
        self.steps.append(make())
        return self.step_of.setdefault(key, len(self.steps) - 1)

    def host_step(self, tensor: Tensor, direction: str, name: str, offset: int = 0) -> int:
        nbytes = tensor.num_elements * tensor.dtype.nbytes
        return self.step((id(tensor), direction, offset, name), lambda: HostStep(tensor.regions(), direction, offset, nbytes, name))

    def yield_row(self, request: Yield) -> int:
        if (known := self.yield_of.get(request)) is None:
            known = self.yield_of[request] = len(self.yields)
            self.yields.append(request)
        return known
