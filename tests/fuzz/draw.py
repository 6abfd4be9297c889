"""Draws whole cases: programs inside programs, and what the host does with an engine.

Drawn so that everything a case shows is defined: no races, no loop without an end, nothing read that was never written.
"""

from __future__ import annotations

from popcore import BOOL, INT, SHORT, UNSIGNED_CHAR, UNSIGNED_INT, program
from tests.fuzz.case import Case
from tests.fuzz.choices import Choices
from tests.fuzz.steps import Steps
from tests.fuzz.vertices import made
from tests.small_codelets import AddTo, Below


class Nests(Steps):
    """Programs with others inside."""

    def __init__(self, choose: Choices) -> None:
        super().__init__(choose)
        self.functions: list = []

    def program(self, depth: int) -> program.Program:
        how = self.choose.below(10) if depth else 0
        if how < 4:
            return self.leaf()
        return [self.sequence, self.repeat, self.branch, self.switch, self.loop, self.call][how - 4](depth - 1)

    def sequence(self, depth: int) -> program.Program:
        self.note("Sequence")
        return program.Sequence([self.program(depth) for _ in range(self.choose.between(0, 3))])

    def repeat(self, depth: int) -> program.Program:
        self.note("Repeat")
        return program.Repeat(self.choose.between(0, 3), self.program(depth))

    def branch(self, depth: int) -> program.Program:
        predicate = self.control(self.choose.of([BOOL, INT, UNSIGNED_CHAR]))
        if self.choose.once_in(16):
            self.note("AbortOnCondition")
            return program.AbortOnCondition(predicate, "drawn")
        self.note("If")
        return program.If(predicate, self.program(depth), self.program(depth) if self.choose.once_in(2) else None)

    def switch(self, depth: int) -> program.Program:
        self.note("Switch")
        dtype = self.choose.of([INT, UNSIGNED_INT, SHORT, UNSIGNED_CHAR])
        values = sorted(set(self.choose.several(0, 3, 3)))
        return program.Switch(self.control(dtype), {v: self.program(depth) for v in values}, self.program(depth) if self.choose.once_in(2) else None)

    def loop(self, depth: int) -> program.Program:
        """A while loop that counts in variables of its own, so that it ends."""
        i = self.graph.add_variable(INT, (), name=self.name("i"), tile=self.tile())
        flag = self.graph.add_variable(BOOL, (), name=self.name("b"), tile=self.tile())
        zero, one, limit = (self.graph.add_constant(INT, (1,), v, tile=self.tile()) for v in (0, 1, self.choose.between(0, 3)))
        add, test = self.graph.add_compute_set(self.name("add")), self.graph.add_compute_set(self.name("test"))
        self.graph.add_vertex(add, made(AddTo[INT]), {"x": one, "y": i.flatten()}, tile=self.tile())
        true = self.choose.once_in(2)
        x, y = (i, limit[0]) if true else (limit[0], i)
        self.graph.add_vertex(test, made(Below), {"x": x, "limit": y, "flag": flag}, tile=self.tile())
        kind = program.RepeatWhileTrue if true else program.RepeatWhileFalse
        self.note(kind.__name__)
        loop = kind(program.Execute(test), flag, program.Sequence(self.program(depth), program.Execute(add)))
        return program.Sequence(program.Copy(zero, i), loop)

    def call(self, depth: int) -> program.Program:
        if not self.functions or self.choose.once_in(2):
            self.functions.append(self.graph.add_function(self.program(depth)))
        self.note("Call")
        return program.Call(self.choose.of(self.functions))


def draw_case(choose: Choices, depth: int = 3) -> Case:
    """A graph with one or two programs, some runs of them, and their data."""
    drawing = Nests(choose)
    case = drawing.case
    for _ in range(choose.between(1, 3)):
        drawing.variable(drawing.dtype())
    for _ in range(choose.between(1, 2)):
        case.programs.append(program.Sequence([drawing.program(depth) for _ in range(choose.between(1, 4))]))
    writes = [action for action in case.script if action[0] == "write"]
    for _ in range(choose.between(1, 3)):
        case.script.append(("run", choose.below(len(case.programs))))
        if writes and choose.once_in(3):
            drawing.note("host write between runs")
            case.script.append(choose.of(writes))
        if choose.once_in(8):
            drawing.note("load between runs")
            case.script += [("load",), *writes]
    if case.script[-1][0] != "run":
        case.script.append(("run", 0))
    return case
