"""Random codelets, as source text: typed expressions and statements over fields of every kind."""

import random

HEADER = """import math

from popcore.codelet import InOut, Input, Vector, Vertex
from popcore.types import FLOAT, HALF, INT, SHORT


class Program(Vertex):
    x: InOut[Vector[FLOAT]]
    h: InOut[Vector[HALF]]
    n: InOut[Vector[INT]]
    s: InOut[SHORT]
    k: Input[FLOAT]

    def compute(self):
        f0, f1, h0, h1, i0, i1, b0 = 0.5, self.k, HALF(1), self.h[0], 3, self.n[0], self.k > 0
"""


class Writer:
    """Writes one codelet; equal seeds give equal text."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.loops = 0

    def text(self) -> str:
        self.block(2, 5, 0)
        self.lines += [f"        self.{n}[-1] = {v}" for n, v in (("x", "f0 + f1"), ("h", "h0 * h1"), ("n", "i0 ^ i1"))]
        return HEADER + "\n".join(self.lines) + "\n        self.s = i0 if b0 else i1\n"

    def expression(self, kind: str, depth: int) -> str:
        if depth <= 0:
            return self.random.choice(_LEAVES[kind])
        form = self.random.choice(_FORMS[kind])
        while "{" in form:
            start = form.index("{")
            form = form[:start] + self.expression(form[start + 1], depth - 1) + form[start + 3 :]
        return f"({form})"

    def block(self, indent: int, count: int, nesting: int) -> None:
        for _ in range(count):
            self.statement(indent, nesting)

    def add(self, indent: int, text: str) -> None:
        self.lines.append("    " * indent + text)

    def statement(self, indent: int, nesting: int) -> None:
        choice = self.random.randrange(8 if nesting < 2 else 5)
        kind = self.random.choice("fhi")
        if choice < 2:
            self.add(indent, f"{kind}{self.random.randrange(2)} = {self.expression(kind, 3)}")
        elif choice == 2:
            self.add(indent, f"b0 = {self.expression('b', 2)}")
        elif choice == 3:
            field = {"f": "x", "h": "h", "i": "n"}[kind]
            self.add(
                indent, f"self.{field}[{self.expression('i', 1)} % len(self.{field})] {self.random.choice(('=', '+=', '*=', '-='))} {self.expression(kind, 2)}"
            )
        elif choice == 4:
            self.add(indent, f"self.s += {self.expression('i', 1)}")
        elif choice == 5:
            self.add(indent, f"if {self.expression('b', 2)}:")
            self.block(indent + 1, 2, nesting + 1)
            self.add(indent, "else:")
            self.block(indent + 1, 1, nesting + 1)
        else:
            self.loops += 1
            self.add(indent, f"for c{self.loops} in range({self.random.randrange(5)}, {self.random.randrange(9)}):")
            if choice == 7:
                self.add(indent + 1, f"if {self.expression('b', 1)}:")
                self.add(indent + 2, self.random.choice(("break", "continue")))
            self.block(indent + 1, 2, nesting + 1)


_LEAVES = {
    "f": ("f0", "f1", "self.k", "self.x[0]", "self.x[-1]", "0.1", "-2.5", "1e-3", "math.pi"),
    "h": ("h0", "h1", "self.h[0]", "self.h[-1]", "HALF(0.3)"),
    "i": ("i0", "i1", "self.n[1]", "self.s", "7", "-3", "len(self.x)", "(1 << 40)"),
    "b": ("b0", "True", "self.k < 1", "i0 == i1"),
}
_FORMS = {
    "f": ("{f} + {f}", "{f} - {f}", "{f} * {f}", "{f} / {f}", "{f} * {i}", "{f} + {h}", "{i} / {i}", "math.sqrt(abs({f}))", "min({f}, {f})", "max({f}, {i})",
          "{f} if {b} else {f}", "-{f}", "FLOAT({h})", "{f} // {f}", "{f} % {f}", "{f} ** 2", "math.floor({f})", "round({f})", "math.tanh({f})"),
    "h": ("{h} + {h}", "{h} - {h}", "{h} * {h}", "{h} / {h}", "{h} * {i}", "HALF({f})", "{h} if {b} else {h}", "abs({h})", "max({h}, {h})", "math.exp({h})"),
    "i": ("{i} + {i}", "{i} - {i}", "{i} * {i}", "{i} & {i}", "{i} | {i}", "{i} ^ {i}", "{i} >> {i}", "{i} << {i}", "{i} // (abs({i}) % 7 + 1)",
          "{i} % (abs({i}) % 9 + 1)", "int({f})", "SHORT({i})", "INT({f})", "-{i}", "~{i}", "abs({i})", "{i} if {b} else {i}", "min({i}, {i})", "{b} + {i}"),
    "b": ("{f} < {f}", "{h} >= {f}", "{i} != {i}", "{b} and {b}", "{b} or {b}", "not {b}", "{i} < {f} < {i}", "bool({i})"),
}  # fmt: skip
