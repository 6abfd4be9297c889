"""The estimate of a codelet in Python, from its lowered code: what each part issues, and how often it runs.

Functions that it calls are looked at where they are called. Loops of few rounds that are constants are written out, as a compiler would.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import partial

from popcore.dialect.lowered import Lowered
from popcore.estimate import issue
from popcore.estimate.expressions import Expressions
from popcore.estimate.frames import Draft, Frame
from popcore.estimate.regions import WORKER, Branch, Estimate, Key, Loop, Number, Part, Unknown, combined, constant, variable, weighed
from popcore.estimate.shape import assigned, fails, goes_on, is_cheap, jumps, leaves, names_in, numbered, rounds_written_out, stored_fields
from popcore.estimate.values import Value, integer

_ONE = constant(1)


def estimate_python(lowered: Lowered) -> Estimate | None:
    """The estimate of a codelet; None if there is something in it that is not understood."""
    try:
        return _Walker(lowered).estimate()
    except (Unknown, RecursionError):
        return None


class _Walker(Expressions):
    def __init__(self, lowered: Lowered) -> None:
        super().__init__(lowered.codelet)
        self.lowered = lowered
        self.number = 0  # of the function at hand
        self.numbers = [numbered(f.tree) for f in lowered.functions]  # of the statements of each
        self.returned: list[Value] = []
        self.variables = 0

    def estimate(self) -> Estimate:
        self.main(0, issue.ENTER)
        worker = Value("int", number=variable(WORKER)) if self.lowered.codelet.workers > 1 else None
        self._run(0, [Value("none"), Value("none"), *([worker] if worker else [])])
        self.frame.drafts[0].finish()
        return weighed(self.root)

    def _run(self, index: int, arguments: list[Value]) -> Value:
        """Look at a function; returns what it returns."""
        before = self.__dict__.get("function"), self.number, self.names, self.returned
        self.function, self.number, self.returned = self.lowered.functions[index], index, []
        self.names = dict(zip([a.arg for a in self.function.tree.args.args], arguments, strict=True))
        self.block(self.function.tree.body)
        made = self.either(self.returned) if self.returned else Value("none")
        function, self.number, self.names, self.returned = before
        if function is not None:
            self.function = function
        return made

    def call(self, index: int, arguments: list[ast.expr]) -> Value:
        given = [
            Value("none") if isinstance(a, ast.Name) and a.id not in self.names and a.id not in self.function.constants else self.value(a) for a in arguments
        ]
        return self._run(index, [Value("none"), *given])

    def key(self, node: ast.stmt, part: str) -> Key:
        return self.number, self.numbers[self.number][id(node)], part

    # -- statements --

    def block(self, body: list[ast.stmt]) -> None:
        for i, node in enumerate(body):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    self.names[name] = self.value(value)
                case ast.Assign(targets=[ast.Tuple(elts=targets)], value=value):
                    self._unpack(targets, self.value(value))
                case ast.Expr(value=value):
                    self.value(value)
                case ast.For() | ast.While():
                    self._loop(node)
                    if leaves(node) and (rest := body[i + 1 :]):
                        self._branch(None, lambda: None, partial(self.block, rest), (None, self.key(node, "rest")))
                        return
                case ast.If() if jumps(node):
                    self._if(node, body[i + 1 :])
                    return
                case ast.If():
                    self._if(node, [])
                case ast.Return(value=value):
                    if value is not None:
                        self.returned.append(self.value(value))
                    return
                case ast.Break() | ast.Continue() | ast.Raise():
                    return
                case ast.Pass():
                    pass
                case _:
                    raise Unknown(type(node).__name__)

    def _unpack(self, targets: list[ast.expr], value: Value) -> None:
        if len(value.members) != len(targets):
            raise Unknown("a tuple is unpacked whose members are not known")
        for target, member in zip(targets, value.members, strict=True):
            assert isinstance(target, ast.Name)
            self.names[target.id] = member

    # -- branches --

    def _if(self, node: ast.If, rest: list[ast.stmt]) -> None:
        """``rest``: what follows in the block, where one of the arms leaves it."""
        if fails(node.body) and not node.orelse:  # an assertion, taken to hold
            self.value(node.test)
            self.main(self.level, 1)
            self.block(rest)
            return
        if not rest and self._choose(node):
            return
        test = self.value(node.test)
        if test.number is not None and test.number.kind == "constant":
            chosen = node.body if test.number.parts[0] else node.orelse
            self.block(chosen)
            if goes_on(chosen):
                self.block(rest)
            return
        self.main(self.level, issue.BRANCH)

        def arm(body: list[ast.stmt]) -> None:
            self.block(body)
            if goes_on(body):
                self.block(rest)

        keys = self.key(node, "then"), self.key(node, "rest" if rest and not node.orelse else "else")
        self._branch(test.number, lambda: arm(node.body), lambda: arm(node.orelse), keys)

    def _branch(self, test: Number | None, then: Callable[[], None], other: Callable[[], None], keys: tuple[Key | None, Key | None]) -> None:
        before = dict(self.names)
        parts, after = [], []
        for look, key in zip((then, other), keys, strict=True):
            self.names = dict(before)
            self.arm(key)
            look()
            parts.append(self.close())
            after.append(self.names)
        names = {}
        for name in {**after[0], **after[1]}:
            found = [each[name] for each in after if name in each]
            number = combined("select", test, found[0].number, found[-1].number) if len(found) == 2 else None
            names[name] = self.either(found, number)
        self.names = names
        if any(part.bundles or part.children for part in parts):
            self.frame.drafts[-1].part.children.append(Branch(test, *parts))

    def _choose(self, node: ast.If) -> bool:
        """Do a branch that only chooses values without one. Returns whether it is such."""
        arms: list[dict[str, ast.expr]] = []
        for body in (node.body, node.orelse):
            made: dict[str, ast.expr] = {}
            for each in body:
                match each:
                    case ast.Assign(targets=[ast.Name(id=name)], value=value) if name not in made and is_cheap(value):
                        made[name] = value
                    case ast.Pass():
                        pass
                    case _:
                        return False
            arms.append(made)
        chosen = list(dict.fromkeys([*arms[0], *arms[1]]))
        if len(chosen) > 2 or any(name not in self.names and not (name in arms[0] and name in arms[1]) for name in chosen):
            return False
        if any(names_in(value) & set(list(arm)[:i]) for arm in arms for i, value in enumerate(arm.values())):
            return False  # it reads what was assigned before it
        unchanged = {name: ast.Name(name, ast.Load()) for name in chosen}
        found = {name: self.chosen(node.test, arms[0].get(name, unchanged[name]), arms[1].get(name, unchanged[name])) for name in chosen}
        self.names.update(found)
        return True

    # -- loops --

    def _loop(self, node: ast.For | ast.While) -> None:
        if node.orelse:
            raise Unknown("else of a loop")
        if (rounds := rounds_written_out(node)) is not None and isinstance(node, ast.For):
            assert isinstance(node.target, ast.Name)
            for i in rounds:
                self.names[node.target.id] = integer(i)
                self.block(node.body)
            return
        bounds = self._bounds(node.iter) if isinstance(node, ast.For) else None
        leaving = leaves(node) or any(isinstance(n, ast.Break) for n in ast.walk(node))
        numbers = [b.number for b in bounds or () if b.number is not None]
        span = (numbers[0], numbers[1], numbers[2]) if len(numbers) == 3 and not leaving else None
        self.variables += 1
        loop = Loop(self.variables, span, Part(self.key(node, "body")), setup=issue.SETUP if isinstance(node, ast.For) else 0)
        frame = Frame(self.level + 1, [Draft(loop.body)], stored_fields(node, self.lowered, self.codelet), leaves=leaving)
        self.changed(frame.stored)
        outside = dict(self.names)
        self.frames.append(frame)
        for name in assigned(node.body) & set(outside):
            self.names[name] = frame.carried[name] = self._carried(outside[name], frame.level)
        if isinstance(node, ast.For):
            self._count(node, loop, bounds)
        else:
            self.value(node.test)
        self.block(node.body)
        self._end(node, frame, loop, outside)

    def _bounds(self, call: ast.expr) -> tuple[Value, Value, Value]:
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "_pc_range"):
            raise Unknown(ast.dump(call)[:80])
        given = [self.value(a) for a in call.args]
        if len(given) == 1:
            return integer(0), given[0], integer(1)
        return given[0], given[1], given[2] if len(given) == 3 else integer(1)

    def _count(self, node: ast.For, loop: Loop, bounds: tuple[Value, Value, Value] | None) -> None:
        assert bounds is not None
        assert isinstance(node.target, ast.Name)
        step = bounds[2].number
        frame = self.frame
        # A counter that goes up by one is what a neighbour's address goes by; of any other step the address jumps.
        frame.counter = Value("int", frame.level, variable(loop.variable), regular=not (step is not None and step.kind == "constant" and step.parts[0] == 1))
        if frame.counter.regular:
            frame.plain = False
        self.names[node.target.id] = frame.counter

    def _carried(self, value: Value, level: int) -> Value:
        if value.kind in ("view", "tuple", "none"):
            return Value(value.kind, level, view=value.view, members=value.members)
        return Value(value.kind, level)

    def _end(self, node: ast.For | ast.While, frame: Frame, loop: Loop, outside: dict[str, Value]) -> None:
        walked = {access.term for access in frame.accesses}
        for name, before in frame.carried.items():
            frame.plain &= self._repeats(before, self.names.get(name, before), walked)
        self.frames.pop()
        loop.width = frame.finish(isinstance(node, ast.For) and not frame.leaves)
        for name in assigned([node]):
            if name in self.names:
                self.names[name] = Value(self.names[name].kind, self.level, view=self.names[name].view, members=self.names[name].members)
        self.names = {**self.names, **{name: value for name, value in outside.items() if name not in self.names}}
        self.changed(frame.stored)
        self.frame.drafts[-1].part.children.append(loop)

    @staticmethod
    def _repeats(before: Value, after: Value, walked: set[Value | None]) -> bool:
        """Whether what a round hands to the next one lets several rounds be done at once: nothing new, a counter, a sum, an extreme."""
        if after is before:
            return True
        if before.kind == "int" and after.linear is not None:
            return after.linear.terms == ((before, 1),) and (after.linear.constant == 1 or before not in walked)
        if after.operation is None or before.uses != 1:
            return False
        name, operands = after.operation
        return name in ("add", "sub", "mul", "min", "max") and before in operands
