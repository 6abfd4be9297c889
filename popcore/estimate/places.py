"""Charging operations where they are computed: outside of the loops that do not change them, and once where they are asked for twice."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from popcore.estimate import issue
from popcore.estimate.frames import Access, Draft, Frame, Item
from popcore.estimate.issue import Slots
from popcore.estimate.regions import Key, Number, Part, combined
from popcore.estimate.values import Linear, Value, View, common


class Places:
    """The frames that are open, and what is known in them."""

    def __init__(self) -> None:
        self.root = Part()
        self.frames = [Frame(0, [Draft(self.root)])]
        self.versions: dict[str, int] = {}  # of each field: how often its memory may have changed

    @property
    def frame(self) -> Frame:
        return self.frames[-1]

    @property
    def level(self) -> int:
        return len(self.frames) - 1

    def draft_at(self, level: int) -> Draft:
        return self.frames[level].drafts[-1]

    def charge(self, level: int, item: Item) -> None:
        self.draft_at(level).items.append(item)

    def main(self, level: int, issues: float) -> None:
        """Charge instructions of the main pipeline."""
        self.charge(level, lambda width: Slots(issues, 0))

    def arm(self, key: Key | None) -> Draft:
        """Begin a part that runs more seldom than what is around it; ``close`` ends it."""
        draft = Draft(Part(key))
        self.frame.drafts.append(draft)
        return draft

    def close(self) -> Part:
        draft = self.frame.drafts.pop()
        draft.finish()
        return draft.part

    def known(self, key: Any) -> Value | None:
        """What ``key`` was computed to, somewhere that is passed on the way here."""
        for frame in reversed(self.frames):
            for draft in reversed(frame.drafts):
                if key in draft.known:
                    return draft.known[key]
        return None

    # -- arithmetic --

    def apply(self, name: str, *operands: Value, kind: str = "") -> Value:
        """The value of an operation. ``kind``: of its result, where that is not the operands' common one."""
        for each in operands:
            each.uses += 1
        computed = common(*operands)
        result = kind or ("bool" if name in issue.COMPARISONS or name == "not" else computed)
        if computed in ("int", "bool") and result in ("int", "bool"):
            return self._integer(name, operands, result)
        key = (name, *map(id, operands), result)
        if (found := self.known(key)) is not None:
            return found
        level = max((v.level for v in operands), default=0)
        if name == "truediv" and computed == "int":
            computed = result = "f32"
        for each in operands:
            self._converted(each, computed if name != "select" or each is not operands[0] else each.kind, level)
        self.charge(level, lambda width: issue.arithmetic(name, computed, width))
        if name in issue.COMPARISONS or name == "select":
            self.frames[level].plain = False
        made = Value(result, level, operation=(name, operands))
        self.draft_at(level).known[key] = made
        return made

    def converted(self, value: Value, kind: str) -> Value:
        value.uses += 1
        if value.kind == kind:
            return value
        key = ("as", id(value), kind)
        if (found := self.known(key)) is not None:
            return found
        self._converted(value, kind, value.level)
        whole = {value.kind, kind} <= {"int", "bool"}
        made = Value(kind, value.level, value.number if whole else None, value.linear if whole else None, value.regular)
        self.draft_at(value.level).known[key] = made
        return made

    def _converted(self, value: Value, kind: str, level: int) -> None:
        if value.kind != kind and value.number is None and value.kind in ("f32", "f16", "int", "bool") and value.operation != ("constant", ()):
            source = value.kind
            if "int" in (source, kind) or "bool" in (source, kind):
                self.frames[level].integers |= source in ("int", "bool") and level == value.level and value is not self.frames[level].counter
            self.charge(level, lambda width: issue.conversion(source, kind, width))

    def _integer(self, name: str, operands: tuple[Value, ...], result: str) -> Value:
        number = combined(name, *(v.number for v in operands))
        level = max((v.level for v in operands), default=0)
        if number is not None and number.kind == "constant":
            return Value(result, number=number, linear=Linear(int(number.parts[0])))
        linear, regular = self._linear(name, operands)
        key = (name, *map(id, operands))
        if (found := self.known(key)) is not None:
            return found
        made = Value(result, linear.level if linear is not None else level, number, linear, regular, operation=(name, operands))
        if not regular and not self._follows(linear):
            issues = issue.arithmetic(self._plainer(name, operands), "int").main
            self.main(level, issues)
            self.frames[level].integers |= name != "select"
            self.frames[level].plain = False
        self.draft_at(level).known[key] = made
        return made

    def _follows(self, linear: Linear | None) -> bool:
        """Whether an address can walk along with it: the sum of loops' counters and of what does not change in a loop."""
        if linear is None:
            return False
        counters = {id(f.counter) for f in self.frames} | {id(v) for f in self.frames for v in f.carried.values()}
        return all(value.regular or id(value) in counters or value.level < self.level for value, _ in linear.terms)

    def _linear(self, name: str, operands: tuple[Value, ...]) -> tuple[Linear | None, bool]:
        """The sum that an operation gives; else, whether what it gives grows by as much in each round."""
        if name in ("add", "sub"):
            return operands[0].as_linear.plus(operands[1].as_linear, 1 if name == "add" else -1), False
        if name == "neg":
            return operands[0].as_linear.times(-1), False
        if name == "lshift" and not operands[1].as_linear.terms:
            return operands[0].as_linear.times(1 << (operands[1].as_linear.constant & 63)), False
        if name == "mul":
            for one, other in (operands, operands[::-1]):
                if not one.as_linear.terms:
                    return other.as_linear.times(one.as_linear.constant), False
                if one.as_linear.level < self.level and self._follows(other.as_linear) and other.as_linear.level == self.level:
                    return None, True
        return None, False

    @staticmethod
    def _plainer(name: str, operands: tuple[Value, ...]) -> str:
        """Division by a constant is a shift or a multiplication."""
        return "shift" if name in ("floordiv", "mod") and operands[1].number is not None and operands[1].number.kind == "constant" else name

    # -- memory --

    def load(self, view: View, base: Value, index: Linear) -> Value:
        """An element of a view."""
        key = ("load", view.field or id(view), id(base), index.constant, frozenset((id(v), f) for v, f in index.terms), self.versions.get(view.field, 0))
        if (found := self.known(key)) is not None:
            return found
        level = max(index.level, base.level, max((f.level for f in self.frames if view.field in f.stored), default=0))
        self._walk(view, base, index, level)
        self.charge(level, lambda width: issue.load(view.nbytes, width))
        self.draft_at(level).words += view.nbytes / 4 if view.kind in issue.VECTOR else 0
        made = Value(view.kind, level)
        self.draft_at(level).known[key] = made
        return made

    def store(self, view: View, base: Value, index: Linear) -> None:
        """An element is written: where the statement stands."""
        self._walk(view, base, index, self.level)
        self.charge(self.level, lambda width: issue.store(view.nbytes, width))
        self.versions[view.field] = self.versions.get(view.field, 0) + 1

    def _walk(self, view: View, base: Value, index: Linear, level: int) -> None:
        """The address of an access: it follows the loop, or is computed where the loop begins."""
        if not level:
            return
        frame = self.frames[level]
        if view.kind not in issue.VECTOR:
            frame.plain = False
        steps = index.steps(level)
        along = steps[0][0] if len(steps) == 1 and steps[0][1] == 1 and base.level < level else None
        frame.accesses.append(Access(view, along, index.constant))
        key = (view.field, id(base), frozenset((id(v), f) for v, f in index.terms))
        if steps and key not in frame.streams:
            frame.streams.add(key)
            self.main(level - 1, issue.STREAM)

    def changed(self, fields: Iterable[str]) -> None:
        for name in fields:
            self.versions[name] = self.versions.get(name, 0) + 1

    def either(self, values: Iterable[Value], number: Number | None = None) -> Value:
        """A variable that got one of several values."""
        every = list(values)
        if all(v is every[0] for v in every) or every[0].kind in ("view", "tuple", "none"):
            return every[0]
        return Value(common(*every), max(self.level, *(v.level for v in every)), number)
