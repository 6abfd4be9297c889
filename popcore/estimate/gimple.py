"""What g++ writes of a function before it vectorises, ``-fdump-tree-reassoc1``: blocks, loops, and statements in single assignments."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property

_HEAD = re.compile(r";; Function (.*) \((\S+), funcdef_no=")
_LOOP = re.compile(r";; Loop (\d+)$")
_SUCCESSORS = re.compile(r";; (\d+) succs \{([\d ]*)\}")
_BLOCK = re.compile(r"  <bb (\d+)> .*:$")
_PHI = re.compile(r"# (\S+) = PHI <(.*)>$")
_ARGUMENT = re.compile(r"([^,()]+(?:\(D\))?)\((\d+)\)(?:, |$)")
_DECLARED = re.compile(r"  (?:const |volatile )*(.*?) ?([A-Za-z_$][\w.$]*|_\d+);$")
_NAME = re.compile(r"^(?:[A-Za-z_$][\w.$]*)?_\d+(?:\(D\))?$")
_SSA = re.compile(r"(?<![\w.])(?:[A-Za-z_$][\w.$]*)?_\d+(?:\(D\))?(?![\w(])|(?:[A-Za-z_$][\w.$]*)?_\d+\(D\)")


@dataclass
class Loop:
    """A natural loop. Number 0 is the function itself."""

    number: int
    header: int = 0
    depth: int = 0
    outer: int = -1
    latch: int = -1
    nodes: set[int] = field(default_factory=set)


@dataclass
class Function:
    """One function. Statements are text without their semicolon, ``target = value`` most of them."""

    name: str
    loops: dict[int, Loop] = field(default_factory=dict)
    successors: dict[int, list[int]] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)  # of variables and names
    statements: dict[int, list[str]] = field(default_factory=dict)
    phis: dict[str, tuple[int, list[tuple[str, int]]]] = field(default_factory=dict)  # name -> block, and value by the block it comes from

    @cached_property
    def predecessors(self) -> dict[int, list[int]]:
        made: dict[int, list[int]] = {number: [] for number in self.successors}
        for number, following in self.successors.items():
            for other in following:
                made.setdefault(other, []).append(number)
        return made

    @cached_property
    def loop_of(self) -> dict[int, Loop]:
        """The innermost loop of each block."""
        made: dict[int, Loop] = {}
        for loop in sorted(self.loops.values(), key=lambda each: each.depth):
            made.update(dict.fromkeys(loop.nodes, loop))
        return made

    @cached_property
    def dominators(self) -> dict[int, int]:
        """The immediate dominator of each block but the first."""
        order = self.order
        position = {block: i for i, block in enumerate(order)}
        made = {order[0]: order[0]}
        changed = True
        while changed:
            changed = False
            for block in order[1:]:
                known = [p for p in self.predecessors.get(block, []) if p in made]
                found = known[0]
                for other in known[1:]:
                    while found != other:
                        while position[found] > position[other]:
                            found = made[found]
                        while position[other] > position[found]:
                            other = made[other]
                if made.get(block) != found:
                    made[block], changed = found, True
        return made

    @cached_property
    def order(self) -> list[int]:
        """Blocks that can be come to, each after all that lead to it but for loops."""
        first, seen, after = min(self.statements), set[int](), list[int]()
        stack: list[tuple[int, int]] = [(first, 0)]
        seen.add(first)
        while stack:
            block, at = stack.pop()
            following = [b for b in self.successors.get(block, []) if b in self.statements]
            if at < len(following):
                stack.append((block, at + 1))
                if following[at] not in seen:
                    seen.add(following[at])
                    stack.append((following[at], 0))
            else:
                after.append(block)
        return after[::-1]

    def type_of(self, name: str) -> str:
        """The type of a name, "" if it is not said."""
        if name in self.types:
            return self.types[name]
        return self.types.get(re.sub(r"_\d+(\(D\))?$", "", name), "")


def is_name(text: str) -> bool:
    return _NAME.match(text) is not None


def names_in(text: str) -> list[str]:
    """The names that a statement reads."""
    return _SSA.findall(text)


def functions(text: str) -> list[Function]:
    """The functions of a dump."""
    made: list[Function] = []
    for part in re.split(r"(?m)^(?=;; Function )", text):
        head = _HEAD.match(part)
        if head is not None:
            made.append(_function(head[1], part.splitlines()[1:]))
    return made


def _function(name: str, lines: list[str]) -> Function:
    made = Function(name)
    loop: Loop | None = None
    block = -1
    for line in lines:
        if line.startswith(";;"):
            if (found := _LOOP.match(line)) is not None:
                loop = made.loops[int(found[1])] = Loop(int(found[1]))
            elif (found := _SUCCESSORS.match(line)) is not None:
                made.successors[int(found[1])] = [int(n) for n in found[2].split()]
            elif loop is not None:
                _describe(loop, line)
        elif (found := _BLOCK.match(line)) is not None:
            block = int(found[1])
            made.statements[block] = []
        elif block < 0:
            if (found := _DECLARED.match(line)) is not None:
                made.types[found[2]] = found[1]
        elif (found := _PHI.match(line.strip())) is not None:
            made.phis[found[1]] = block, [(value.strip(), int(number)) for value, number in _ARGUMENT.findall(found[2])]
        elif ((text := line.strip()).endswith(";") and not text.startswith(("goto", "<L", "return", "//"))) or text.startswith("if ("):
            made.statements[block].append(text.removesuffix(";"))
    return made


def _describe(loop: Loop, line: str) -> None:
    if (found := re.match(r";;  header (\d+), (?:latch (\d+)|multiple latches)", line)) is not None:
        loop.header, loop.latch = int(found[1]), int(found[2] or -1)
    elif (found := re.match(r";;  depth (\d+), outer (-?\d+)", line)) is not None:
        loop.depth, loop.outer = int(found[1]), int(found[2])
    elif line.startswith(";;  nodes:"):
        loop.nodes = {int(n) for n in line.removeprefix(";;  nodes:").split()}
    elif re.match(r";;\s+[\d ]+$", line) is not None:
        loop.nodes |= {int(n) for n in line.removeprefix(";;").split()}  # a long list goes on
