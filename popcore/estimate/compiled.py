"""The estimate of a codelet in C++, from what its compiler writes of it: what it issues for each of its counters."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from popcore.estimate import gimple, issue, llvm
from popcore.estimate.flow import Function, Loop, is_name, names_in
from popcore.estimate.issue import NOTHING, Slots
from popcore.estimate.ssa import BINARY, CALL, CAST, Analysis, Kind, Linear, function_of, is_memory, kind_of

_NAMES = {"+": "add", "-": "sub", "*": "mul", "/": "truediv", "==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
_EXPRESSIONS = {"ABS_EXPR": "abs", "MIN_EXPR": "min", "MAX_EXPR": "max"}
_CALLED = 4  # issues of a call: there, back, and two arguments
_REDUCED = ("+", "-", "*")

Item = Callable[[int], Slots]


@dataclass
class _Access:
    address: Linear
    kind: Kind


@dataclass
class _Part:
    """What is charged to a counter, or to one round of an innermost loop."""

    items: list[Item] = field(default_factory=list)
    words: float = 0.0  # loaded for arithmetic
    accesses: list[_Access] = field(default_factory=list)
    plain: bool = True  # nothing that keeps it from being done on several elements at once
    integers: bool = False  # integers are computed with, besides addresses

    def slots(self, width: int = 1) -> Slots:
        return sum((item(width) for item in self.items), NOTHING)


class _Charges(Analysis):
    """Charges the statements of a function. ``called``: names of functions that it calls."""

    def __init__(self, function: Function) -> None:
        super().__init__(function)
        self.parts: dict[int, _Part] = {}
        self.rounds: dict[int, _Part] = {}
        self.called: set[str] = set()
        inner = {loop.outer for loop in function.loops.values()}
        self.innermost = {n for n in function.loops if n and n not in inner}
        for block in function.order:
            for text in function.statements[block]:
                if not self.only_counts(text):
                    self._statement(block, text)

    def weights(self) -> dict[int, float]:
        """Bundles by counter."""
        for loop in self.function.loops.values():
            if loop.number and loop.header in self.counters:
                self._finish(loop)
        return {counter: issue.bundles(part.slots(), False, 0) for counter, part in self.parts.items() if counter >= 0}

    # -- where --

    def part(self, block: int, level: int) -> _Part:
        """Where something in a block is charged whose value changes at ``level``."""
        loop = self.function.loop_of.get(block)
        while loop is not None and loop.depth > level and loop.number:
            block = self._before(loop, block)
            loop = self.function.loop_of.get(block)
        if loop is not None and loop.number in self.innermost and self.counters[block] == self.counters[loop.header]:
            return self.rounds.setdefault(loop.number, _Part())
        return self.parts.setdefault(self.counters[block], _Part())

    def _before(self, loop: Loop, block: int) -> int:
        """The block that a loop is come to from."""
        return next((b for b in self.function.predecessors.get(loop.header, []) if b not in loop.nodes and b in self.counters), self.function.order[0])

    def charge(self, block: int, level: int, item: Item) -> _Part:
        part = self.part(block, level)
        part.items.append(item)
        return part

    def main(self, block: int, level: int, issues: float) -> None:
        self.charge(block, level, lambda width: Slots(issues, 0))

    # -- what --

    def _statement(self, block: int, text: str) -> None:
        if text.startswith(("if (", "switch (")):
            self._branch(block, text)
            return
        target, _, value = text.partition(" = ")
        if not value:
            if (call := CALL.match(text)) is not None:
                self._call(block, "", call[1])
            return
        if "CLOBBER" in value or value == "{}":
            return
        if not is_name(target):
            if (is_memory(target) and target[:4] != "MEM ") or "MEM <" in target:
                self._store(block, target, value)
            return
        if is_memory(value):
            self._load(block, target, value)
        elif (call := CALL.match(value)) is not None and not value.startswith("("):
            self._call(block, target, call[1])
        else:
            self._compute(block, target, value)

    def _compute(self, block: int, target: str, value: str) -> None:
        kind, level = kind_of(self.function.type_of(target)), self.level(target)
        loop = self.function.loop_of.get(block)
        if (cast := CAST.match(value)) is not None:
            self._convert(block, level, kind_of(self.function.type_of(cast[2])), kind, is_name(cast[2]))
            return
        if (expression := re.match(r"(\w+_EXPR) <", value)) is not None and expression[1] in _EXPRESSIONS:
            self._arithmetic(block, level, _EXPRESSIONS[expression[1]], kind)
            return
        if (binary := BINARY.match(value)) is not None:
            operand = next((kind_of(self.function.type_of(n)) for n in (binary[1], binary[3]) if is_name(n)), kind)
            if operand.name in ("int", "pointer"):
                depth = loop.depth if loop is not None else 0
                walks = loop is not None and level == depth and (self._walks(target, loop))
                if not walks and not self._forms_address(kind, binary[2], binary[3]):
                    constant = binary[2] in "/%" and not is_name(binary[3])
                    name = "shift" if constant or binary[2] not in "/%" else "floordiv" if binary[2] == "/" else "mod"
                    part = self.charge(block, level, lambda width: issue.arithmetic(name, "int"))
                    part.integers |= level == depth
                return
            self._arithmetic(block, level, _NAMES.get(binary[2], "and"), operand)
            return
        if value.startswith("-") and is_name(value[1:]):
            self._arithmetic(block, level, "neg", kind)
        elif " ? " in value:
            self._arithmetic(block, level, "select", kind).plain = False
            compared = BINARY.match(self.definition.get(value.partition(" ? ")[0], (0, ""))[1])
            if compared is not None and kind.name not in issue.VECTOR and kind_of(self.function.type_of(compared[1])).name in issue.VECTOR:
                self.main(block, level, 1)  # the condition's way from the floats

    def _forms_address(self, kind: Kind, operator: str, right: str) -> bool:
        """Whether a load or store does it: an index times the bytes of an element, added to a pointer."""
        return kind.name == "pointer" or (operator == "*" and right in ("2", "4", "8") and kind.name == "int")

    def _walks(self, name: str, loop: Loop) -> bool:
        """Whether a name is a sum of counters, or a product with one, that addresses follow."""
        linear = self.linear(name)
        return (name not in linear.terms and self.follows(linear, loop)) or self.follows(Linear(0, {name: 1}), loop)

    def _arithmetic(self, block: int, level: int, name: str, kind: Kind) -> _Part:
        if kind.name in ("int", "pointer"):
            part = self.charge(block, level, lambda width: issue.arithmetic(name, "int", kind.lanes))
            part.integers |= name != "select"
            return part
        part = self.charge(block, level, lambda width: issue.arithmetic(name, kind.name, kind.lanes * width))
        part.plain &= kind.lanes == 1 and name not in issue.COMPARISONS
        return part

    def _convert(self, block: int, level: int, source: Kind, target: Kind, named: bool) -> None:
        names = {"pointer": "int"}
        before, after = names.get(source.name, source.name), names.get(target.name, target.name)
        if named and before != after:
            part = self.charge(block, level, lambda width: issue.conversion(before, after, target.lanes * width))
            part.plain &= "int" not in (before, after)

    def _call(self, block: int, target: str, called: str) -> None:
        name = function_of(called)
        if name is None:
            self.called.add(called)
            loop = self.function.loop_of.get(block)
            part = self.charge(block, loop.depth if loop is not None else 0, lambda width: Slots(_CALLED, 0))
            part.plain, part.integers = False, True
            return
        kind = kind_of(self.function.type_of(target)) if target else Kind("f32")
        self._arithmetic(block, self.level(target) if target else 0, name, Kind("f32") if kind.name == "int" and name != "abs" else kind)

    def _address(self, text: str) -> Linear:
        offset = re.search(r"\+ (-?\d+)B\]", text)
        named = names_in(text)
        if len(named) == 1:
            return self.linear(named[0]).plus(Linear(_signed(int(offset[1])) if offset is not None else 0))
        return Linear(0, dict.fromkeys(named, 0) | dict.fromkeys(named, 3))  # an array: never from neighbour to neighbour

    def _access(self, block: int, text: str, kind: Kind, level: int) -> _Part:
        address = self._address(text)
        part = self.part(block, level)
        loop = self.function.loop_of.get(block)
        if loop is not None and loop.depth and level == loop.depth:
            part.accesses.append(_Access(address, kind))
        return part

    def _load(self, block: int, target: str, text: str) -> None:
        kind, level = kind_of(self.function.type_of(target)), self.level(target)
        part = self._access(block, text, kind, level)
        part.items.append(lambda width: issue.load(kind.nbytes, kind.lanes * width))
        part.words += kind.lanes * kind.nbytes / 4 if kind.name in issue.VECTOR else 0
        part.integers |= kind.name == "int" and bool(level)

    def _store(self, block: int, text: str, value: str) -> None:
        kind = kind_of(self.function.type_of(value)) if is_name(value) else self._pointed_to(text)
        loop = self.function.loop_of.get(block)
        part = self._access(block, text, kind, loop.depth if loop is not None else 0)
        part.items.append(lambda width: issue.store(kind.nbytes, kind.lanes * width))

    def _pointed_to(self, text: str) -> Kind:
        named = names_in(text)
        kind = kind_of(self.function.type_of(named[0]).rstrip("*& ")) if named else Kind("int")
        return kind if kind.name != "pointer" else Kind("int")

    def _branch(self, block: int, text: str) -> None:
        loop = self.function.loop_of.get(block)
        leaves = loop is not None and loop.number and any(b not in loop.nodes for b in self.function.successors.get(block, []))
        named = [n for n in names_in(text) if n not in self.counting]
        kinds = [kind_of(self.function.type_of(n)).name for n in named]
        floats = any(kind in issue.VECTOR for kind in kinds)
        depth = loop.depth if loop is not None else 0
        if loop is not None and leaves and not floats and self._counts(loop, block, named):
            return
        if (meeting := self.choice(block)) is not None:
            self._choose(block, meeting, named, depth, floats)
            return
        part = self.charge(block, depth, lambda width: Slots((0 if leaves else issue.BRANCH) + (not floats), floats))
        part.plain = False
        part.integers |= bool(leaves)  # it is left on what data says

    def _choose(self, block: int, meeting: int, named: list[str], depth: int, floats: bool) -> None:
        """A branch that chooses values: an extreme of what is compared, or a selection."""
        compared = False
        for name, (at, values) in self.function.phis.items():
            chosen = {value for value, _ in values}
            if at != meeting or len(values) != 2 or len(chosen) == 1 or name in self.counting:
                continue
            kind = kind_of(self.function.type_of(name))
            if floats and chosen == set(named):
                self._arithmetic(block, depth, "max", kind)
                continue
            compared = True
            self._arithmetic(block, depth, "select", kind).plain = False
            if floats and kind.name not in issue.VECTOR:
                self.main(block, depth, 1)
        if compared:
            self.charge(block, depth, lambda width: Slots(not floats, floats))

    def _counts(self, loop: Loop, block: int, named: list[str]) -> bool:
        """Whether a loop is left where its counter says."""
        moving = [self.linear(n) for n in named if self.level(n) >= loop.depth]
        return bool(moving) and all(self.follows(linear, loop) for linear in moving)

    # -- loops --

    def _finish(self, loop: Loop) -> None:
        counter = self.counters[loop.header]
        before = self._before(loop, loop.header)
        outside = self.part(before, 10**6)
        part = self.rounds.get(loop.number)
        if part is None:
            self.parts.setdefault(counter, _Part()).items.append(lambda width: Slots(issue.ROUND, 0))
            outside.items.append(lambda width: Slots(issue.SETUP, 0))
            return
        straight = self._is_straight(loop) and not part.integers
        width = self._width(loop, part) if straight else 1
        bundles = (issue.bundles(part.slots(width), straight, part.words * width) + (0 if straight else issue.ROUND)) / width
        streams = {frozenset((n, f) for n, f in access.address.terms.items()) for access in part.accesses}
        outside.items.append(lambda width: Slots(issue.SETUP + issue.STREAM * len(streams), 0))
        self.parts.setdefault(counter, _Part()).items.append(lambda width: Slots(bundles, 0))

    def _is_straight(self, loop: Loop) -> bool:
        inside = [
            sum(b in loop.nodes and b != loop.header for b in self.function.successors.get(block, [])) for block in loop.nodes if self.choice(block) is None
        ]
        exits = sum(b not in loop.nodes for block in loop.nodes for b in self.function.successors.get(block, []))
        return max(inside, default=0) <= 1 and exits == 1

    def _width(self, loop: Loop, part: _Part) -> int:
        found = {access.kind.name for access in part.accesses}
        if not part.plain or not found or not found <= set(issue.VECTOR) or any(access.kind.lanes > 1 for access in part.accesses):
            return 1
        width = min(issue.VECTOR[name] for name in found)
        offsets = set()
        for access in part.accesses:
            moving = [(name, factor) for name, factor in access.address.terms.items() if self.level(name) >= loop.depth]
            if len(moving) != 1 or (self.step(moving[0][0], loop) or 0) * moving[0][1] != access.kind.nbytes:
                return 1
            offsets.add(access.address.constant // access.kind.nbytes % width)
        heads = [name for name, (block, _) in self.function.phis.items() if block == loop.header and name not in self.counting]
        return width if len(offsets) == 1 and all(self.step(name, loop) is not None or self._reduced(name, loop) for name in heads) else 1

    def _reduced(self, name: str, loop: Loop) -> bool:
        """Whether a name is a sum, a product or an extreme over the rounds."""
        uses = [v for block, v in self.definition.values() if block in loop.nodes and name in names_in(v)]
        back = [value for value, block in self.function.phis[name][1] if block in loop.nodes]
        if len(back) == 1 and back[0] in self.function.phis:  # an extreme
            return not uses and any(value == name for value, _ in self.function.phis[back[0]][1])
        if len(uses) != 1 or len(back) != 1 or back[0] not in self.definition:
            return False
        value = self.definition[back[0]][1]
        binary = BINARY.match(value)
        return value == uses[0] and ((binary is not None and binary[2] in _REDUCED) or value.startswith(("MIN_EXPR", "MAX_EXPR")))


def _signed(offset: int) -> int:
    return offset - (1 << 64) if offset >= 1 << 63 else offset


def weights_of(dump: str) -> dict[str, dict[int, float]]:
    """For each type whose ``compute`` is in the dump: bundles by counter, of all functions that it calls; the most where several say."""
    charged: dict[str, list[tuple[dict[int, float], set[str]]]] = {}
    for each in [*gimple.functions(dump), *llvm.functions(dump)]:
        if each.statements:
            made = _Charges(each)
            charged.setdefault(each.name, []).append((made.weights(), made.called))
    found: dict[str, dict[int, float]] = {}
    for name in charged:
        if (match := re.fullmatch(r"popcore::written(?:_apart)?<(.*?) ?>", name)) is not None:
            found[match[1]] = _collected(name, charged, set())
    return found


def _collected(name: str, charged: dict[str, list[tuple[dict[int, float], set[str]]]], seen: set[str]) -> dict[int, float]:
    seen.add(name)
    made: dict[int, float] = {}
    for weights, called in charged.get(name, []):
        parts = [weights, *(_collected(each, charged, seen) for each in sorted(called) if each not in seen)]
        for part in parts:
            for counter, bundles in part.items():
                made[counter] = max(made.get(counter, 0.0), bundles)
    return made
