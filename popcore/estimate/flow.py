"""A function as the estimates read it, whichever compiler wrote it: blocks, loops, and statements in single assignments, in the notation of g++."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property

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


def find_loops(function: Function) -> None:
    """Find the natural loops of a function whose blocks are known."""
    function.loops = {0: Loop(0, nodes=set(function.statements))}
    back: dict[int, list[int]] = {}
    for block in function.order:
        for following in function.successors.get(block, []):
            if following in function.statements and _dominates(function, following, block):
                back.setdefault(following, []).append(block)
    for number, (header, latches) in enumerate(back.items(), 1):
        loop = function.loops[number] = Loop(number, header, latch=latches[0] if len(latches) == 1 else -1, nodes={header})
        waiting = list(latches)
        while waiting:
            block = waiting.pop()
            if block not in loop.nodes:
                loop.nodes.add(block)
                waiting += function.predecessors[block]
    for loop in function.loops.values():
        around = [other for other in function.loops.values() if other is not loop and loop.header in other.nodes and loop.number]
        loop.depth = len(around)
        loop.outer = min(around, key=lambda other: len(other.nodes)).number if around else -1


def _dominates(function: Function, above: int, block: int) -> bool:
    while block != above and block != function.dominators[block]:
        block = function.dominators[block]
    return block == above
