"""A function in the notation of g++: which of its statements only count, where its values change, and which counter counts each block."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from popcore.estimate.flow import Function, Loop, is_name, names_in

COUNTER = re.compile(r"\(const uint32_t \*\)(\S+) \+ (\d+)B\]|^\*(\S+)$")
BINARY = re.compile(r"^(\S+) (\+|-|\*|/|%|&|\||\^|<<|>>|==|!=|<=|>=|<|>) (\S+)$")
CAST = re.compile(r"^\(([^()]+(?:\(\d+\)[^()]*)?)\) (\S+)$")
CALL = re.compile(r"^([\w.:<>, ~*&]+?) \((.*)\)(?: \[.*\])?$")
_BYTES = {"char": 1, "bool": 1, "short": 2, "int": 4, "long": 8}


@dataclass(frozen=True)
class Kind:
    """A type: of what, how many at once, and the bytes of each."""

    name: str  # "f32", "f16", "int" or "pointer"
    lanes: int = 1
    nbytes: int = 4


def kind_of(text: str) -> Kind:
    """The kind of a C++ type."""
    text = text.strip()
    if text.endswith(("*", "&")):
        return Kind("pointer")
    vector = re.match(r"vector\((\d+)\) (.*)", text)
    lanes, element = (int(vector[1]), vector[2]) if vector is not None else (1, text)
    if "_Float16" in element or element == "half":
        return Kind("f16", lanes, 2)
    if "float" in element or "double" in element:
        return Kind("f32", lanes)
    nbytes = next((size for word, size in _BYTES.items() if word in element), 4)
    return Kind("int", lanes, min(nbytes, 4) if "long" in element else nbytes)


@dataclass
class Linear:
    """``constant`` + the sum of names times whole numbers."""

    constant: int = 0
    terms: dict[str, int] = field(default_factory=dict)

    def plus(self, other: Linear, times: int = 1) -> Linear:
        made = dict(self.terms)
        for name, factor in other.terms.items():
            made[name] = made.get(name, 0) + times * factor
        return Linear(self.constant + times * other.constant, {n: f for n, f in made.items() if f})


class Analysis:
    """One function: bundles by counter."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.definition: dict[str, tuple[int, str]] = {}
        for block, statements in function.statements.items():
            for text in statements:
                target, _, value = text.partition(" = ")
                if value and is_name(target):
                    self.definition[target] = block, value
        self._levels: dict[str, int] = {}
        self._linears: dict[str, Linear] = {}
        self._stored: dict[int, set[str]] = {}
        self._users: dict[str, list[str]] = {}
        self.counting = self._counting()
        self.counters = self._counters()

    # -- counters --

    def _counting(self) -> set[str]:
        """Names that only count: all that comes of a tally."""
        users = self._users
        for name, (_, value) in self.definition.items():
            for each in names_in(value):
                users.setdefault(each, []).append(name)
        for name, (_, values) in self.function.phis.items():
            for each, _ in values:
                users.setdefault(each, []).append(name)
        waiting = [name for name, (_, value) in self.definition.items() if "tally." in value]
        made: set[str] = set()
        while waiting:
            name = waiting.pop()
            if name not in made:
                made.add(name)
                waiting += users.get(name, [])
        return made

    def _counters(self) -> dict[int, int]:
        """The counter of each block: its own, or that of a block that runs as often."""
        own: dict[int, int] = {}
        self._own = own
        weight = self._sums_of_weights()
        times: dict[int, dict[int, int]] = {}  # how often a block adds what: more than once where a loop in it was written out
        for name, (block, value) in self.definition.items():
            if name in self.counting and (binary := BINARY.match(value)) is not None:
                if name in weight and (binary[2] != "+" or self._is_hoisted(name, weight)):
                    continue
                for operand in (binary[1], binary[3]):
                    for counter, often in weight.get(operand, {}).items():
                        here = times.setdefault(block, {})
                        here[counter] = here.get(counter, 0) + (often if binary[2] == "+" else 2)
        for name, (_, values) in self.function.phis.items():
            if name in self.counting and all(value in weight for value, _ in values):  # what two arms add is added after both
                for value, before in values:
                    times.setdefault(before, dict(weight[value]))
        for block, here in times.items():
            own[block] = min(here, key=lambda counter: here[counter])
        if weight:  # what a function begins with is added to nothing
            own[self.function.order[0]] = next(iter(next(iter(weight.values()))))
        made: dict[int, int] = {}
        for block in self.function.order:
            made[block] = own.get(block, -1)
            if made[block] < 0:
                made[block] = self._inherited(block, own, made)
        return made

    def _sums_of_weights(self) -> dict[str, dict[int, int]]:
        """Names that are sums of what counters add: how often each of them."""
        made: dict[str, dict[int, int]] = {}
        for name, (_, value) in self.definition.items():
            found = COUNTER.search(value)
            if found is not None and (found[1] or found[3]) in self.counting:
                made[name] = {int(found[2] or 0) // 4: 1}
        waiting = list(made)
        while waiting:
            for name in self._users.get(waiting.pop(), []):
                sum_of = self._sum_of(name, made) if name not in made else None
                if sum_of is not None:
                    made[name] = sum_of
                    waiting.append(name)
        return made

    def _sum_of(self, name: str, weight: dict[str, dict[int, int]]) -> dict[int, int] | None:
        value = self.definition.get(name, (0, ""))[1]
        if (cast := CAST.match(value)) is not None:
            return weight.get(cast[2])
        binary = BINARY.match(value)
        if binary is None or binary[1] not in weight:
            return None
        left, right = weight[binary[1]], binary[3]
        if binary[2] == "+" and right in weight:
            return {counter: left.get(counter, 0) + weight[right].get(counter, 0) for counter in [*left, *weight[right]]}
        if binary[2] in ("*", "<<") and right.isdigit():
            return {counter: often * int(right) if binary[2] == "*" else often << int(right) for counter, often in left.items()}
        return None

    def _is_hoisted(self, name: str, weight: dict[str, dict[int, int]]) -> bool:
        """Whether a sum of weights was formed outside of the block that adds it."""
        users = [each for each in self._users.get(name, []) if each in self.definition]
        return any(self._is_hoisted(each, weight) if each in weight else self.definition[each][0] != self.definition[name][0] for each in users)

    def _inherited(self, block: int, own: dict[int, int], made: dict[int, int]) -> int:
        loop_of, dominators = self.function.loop_of, self.function.dominators
        mine, above = loop_of.get(block), dominators[block]
        if mine is not None and mine.number and above not in mine.nodes:  # the head of a loop: what is in its body
            inside = sorted(b for b in mine.nodes if b in own and loop_of[b] is mine)
            if inside:
                return own[inside[0]]
        while above != dominators[above] and mine is not None and loop_of[above] is not mine and above not in _around(mine, self.function):
            above = dominators[above]
        return made.get(above, -1)

    # -- where a value changes --

    def level(self, name: str) -> int:
        """The depth of the innermost loop that a name changes in."""
        if name not in self._levels:
            self._levels[name] = 0  # of a cycle that is no loop's
            self._levels[name] = self._level(name)
        return self._levels[name]

    def _level(self, name: str) -> int:
        if name in self.function.phis:
            block, values = self.function.phis[name]
            loop = self.function.loop_of.get(block)
            depth = loop.depth if loop is not None else 0
            return depth if loop is not None and loop.header == block else max([0, *(self.level(v) for v, _ in values if is_name(v))], default=depth)
        if name not in self.definition:
            return 0
        block, value = self.definition[name]
        found = max((self.level(n) for n in names_in(value)), default=0)
        if is_memory(value):
            loop = self.function.loop_of.get(block)
            while loop is not None and loop.depth > found:
                if self._stores(loop, self.base(value)):
                    return loop.depth
                loop = self.function.loops.get(loop.outer)
        if (call := CALL.match(value)) is not None and not is_memory(value) and function_of(call[1]) is None:
            loop = self.function.loop_of.get(block)
            return loop.depth if loop is not None else 0
        return found

    def base(self, text: str) -> str:
        """What an access goes out from: the field whose elements it is of, as the compiler writes it. Two fields share no memory."""
        named = names_in(text)
        if not named:
            return text
        pointers = [n for n in self.linear(named[0]).terms if kind_of(self.function.type_of(n)).name == "pointer"] or named[:1]
        return self.definition.get(pointers[0], (0, pointers[0]))[1]

    def _stores(self, loop: Loop, base: str) -> bool:
        """Whether a loop stores to what goes out from ``base``."""
        if loop.number not in self._stored:
            targets = [text.partition(" = ")[0] for block in loop.nodes for text in self.function.statements.get(block, []) if " = " in text]
            self._stored[loop.number] = {self.base(target) for target in targets if not is_name(target) and "tally." not in target and is_memory(target)}
        return base in self._stored[loop.number]

    def linear(self, name: str) -> Linear:
        """A name as a sum of what it is made of."""
        if not is_name(name):
            return Linear(_constant(name)) if re.match(r"^-?\d+$", name) else Linear(0, {name: 1})
        if name not in self._linears:
            self._linears[name] = Linear(0, {name: 1})
            self._linears[name] = self._linear(name)
        return self._linears[name]

    def _linear(self, name: str) -> Linear:
        alone = Linear(0, {name: 1})
        if name not in self.definition:
            return alone
        value = self.definition[name][1]
        if is_name(value):
            return self.linear(value)
        if (cast := CAST.match(value)) is not None and is_name(cast[2]) and kind_of(self.function.type_of(cast[2])).name in ("int", "pointer"):
            return self.linear(cast[2])
        binary = BINARY.match(value)
        if binary is None or kind_of(self.function.type_of(name)).name not in ("int", "pointer"):
            return alone
        left, operator, right = self.linear(binary[1]), binary[2], self.linear(binary[3])
        if operator in "+-":
            return left.plus(right, 1 if operator == "+" else -1)
        if operator == "*":
            for one, other in ((left, right), (right, left)):
                if not one.terms:
                    return Linear().plus(other, one.constant)
        if operator == "<<" and not right.terms:
            return Linear().plus(left, 1 << (right.constant & 63))
        return alone

    def step(self, name: str, loop: Loop) -> int | None:
        """What a name that a loop's head takes over grows by in each round; None if that is not constant."""
        if name not in self.function.phis or self.function.phis[name][0] != loop.header:
            return None
        grown = [self.linear(value).plus(Linear(0, {name: 1}), -1) for value, block in self.function.phis[name][1] if block in loop.nodes]
        return grown[0].constant if len(grown) == 1 and not grown[0].terms else None

    def choice(self, block: int) -> int | None:
        """The block where both ways of a branch meet again, if nothing lies on them: values are chosen there. None of any other."""
        following = self.function.successors.get(block, [])
        if len(following) != 2:
            return None
        ends = [self._passed(each, block) for each in following]
        return ends[0] if ends[0] == ends[1] else None

    def _passed(self, block: int, before: int) -> int:
        """The block itself, or the next one if it does little that may be done anyhow, and is come to from one place."""
        left = [text for text in self.function.statements.get(block, ["? = memory"]) if not self.only_counts(text)]
        empty = len(left) <= 2 and all(self._is_cheap(text) for text in left)
        following = self.function.successors.get(block, [])
        alone = self.function.predecessors.get(block) == [before] and len(following) == 1 and not any(of == block for of, _ in self.function.phis.values())
        return following[0] if empty and alone and block not in self._own else block

    @staticmethod
    def _is_cheap(text: str) -> bool:
        target, _, value = text.partition(" = ")
        return (
            is_name(target)
            and not is_memory(value)
            and " / " not in value
            and " % " not in value
            and (CAST.match(value) is not None or CALL.match(value) is None)
        )

    def only_counts(self, text: str) -> bool:
        """Whether a statement does nothing but count."""
        target, _, value = text.partition(" = ")
        return "tally." in text or target in self.counting or (bool(value) and any(n in self.counting for n in names_in(value)))

    def follows(self, linear: Linear, loop: Loop) -> bool:
        """Whether an address can walk along with a sum in a loop."""
        return all(self.level(n) < loop.depth or self.step(n, loop) is not None or self._regular(n, loop) for n in linear.terms)

    def _regular(self, name: str, loop: Loop) -> bool:
        """Whether a name is what the loop's counter is, times what does not change in the loop."""
        binary = BINARY.match(self.definition.get(name, (0, ""))[1])
        if binary is None or binary[2] != "*":
            return False
        sums = [self.linear(n) for n in (binary[1], binary[3])]
        return any(max([0, *map(self.level, a.terms)]) < loop.depth and self.follows(b, loop) for a, b in (sums, sums[::-1]))


_MATHEMATICS = {
    "pow": "fpow", "round": "rint", "nearbyint": "rint", "rintf": "rint", "lround": "rint", "fmin": "min", "fmax": "max", "fabs": "abs", "abs": "abs",
    **{name: name for name in ("sqrt", "exp", "exp2", "log", "log2", "log10", "log1p", "expm1", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh",
                               "tanh", "atan2", "erf", "erfc", "cbrt", "floor", "ceil", "trunc", "fmod", "copysign", "hypot", "rint")},
}  # fmt: skip


def function_of(called: str) -> str | None:
    """The operation that a function of the C library is."""
    name = called.rsplit("::", 1)[-1].removeprefix("__builtin_").removeprefix(".").lower().strip()
    return _MATHEMATICS.get(name) or _MATHEMATICS.get(name.removesuffix("f")) or _MATHEMATICS.get(name.removesuffix("f16"))


def _around(loop: Loop, function: Function) -> set[int]:
    """Blocks that are in the same loop as the place after ``loop``."""
    return {block for block, innermost in function.loop_of.items() if innermost is loop}


def _constant(text: str) -> int:
    """A number as the compiler writes it, of an unsigned type perhaps where it is less than zero."""
    value = int(text)
    for bits in (32, 64):
        if (1 << bits) - (1 << (bits - 3)) <= value < 1 << bits:
            return value - (1 << bits)
    return value


def is_memory(text: str) -> bool:
    return (
        "MEM" in text
        or text.startswith("*")
        or "->" in text
        or re.search(r"[\w)]\[", text) is not None
        or (re.match(r"^[A-Za-z]\w*(?:::\w+)*$", text) is not None and not is_name(text))
    )
