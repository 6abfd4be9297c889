"""Expressions of a codelet: each operator, literal and call becomes a call of an operation of the dialect."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable
from typing import Any

from popcore.codelet import Field
from popcore.dialect import known
from popcore.dialect.scope import CONTEXT, Scope
from popcore.dialect.source import MISSING, look_up

_LOOP_HINT = "write a for loop over range(...)"


class Expressions(Scope):
    """``expr`` rewrites an expression for its value, ``test`` one for its truth."""

    def expr(self, node: ast.expr) -> ast.expr:
        method = getattr(self, f"_on_{type(node).__name__}", None)
        if method is None:
            self.refuse(node, f"{_describe(node)} is not supported in a codelet", _LOOP_HINT if "Comp" in type(node).__name__ else None)
        found: ast.expr = method(node)
        return found

    def test(self, node: ast.expr) -> ast.expr:
        """``node`` as a bool."""
        match node:
            case ast.BoolOp():
                made: ast.expr = self.at(node, ast.BoolOp(node.op, [self.test(v) for v in node.values]))
                return made
            case ast.UnaryOp(op=ast.Not()):
                return self.op(node, "not", self.test(node.operand))
            case ast.Compare():
                return self.expr(node)
        return self.op(node, "as_bool", self.expr(node))

    # -- leaves --

    def _on_Constant(self, node: ast.Constant) -> ast.expr:
        if known.is_number(node.value):
            return self.frozen(node, node.value)
        if isinstance(node.value, str):
            self.refuse(node, f"the string {node.value!r} is not supported in a codelet", "use strings in print, raise and assert only")
        self.refuse(node, f"{node.value!r} is not supported in a codelet", "use numbers")

    def _on_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self.selves:
            self.refuse(node, f"{node.id!r} by itself is not supported in a codelet", f"use its fields, {node.id}.name")
        if node.id in self.locals:
            return self.name(node, node.id)
        return self.frozen(node, self.static(node))

    def frozen(self, node: ast.expr, value: Any) -> ast.expr:
        """A value from outside the codelet, as it is now."""
        if known.is_number(value):
            try:
                return self.constant(node, known.frozen_number(value))
            except OverflowError:
                self.refuse(node, f"{value} does not fit 64 bits", "use a smaller number")
        if known.is_table(value):
            return self.constant(node, known.frozen_table(value))
        self.refuse(node, f"{ast.unparse(node)} is {_of(value)}, which a codelet cannot use", "use numbers, tuples of numbers, functions and fields")

    def static(self, node: ast.expr) -> Any:
        """The Python object that a name or dotted name outside the codelet is; refuses if there is none."""
        if isinstance(node, ast.Name):
            found = self.kept((self.function, node.id), lambda: look_up(self.function, node.id))
            if found is MISSING:
                self.refuse(node, f"the name {node.id!r} is not defined", "define it before the codelet is added to a graph")
            return found
        assert isinstance(node, ast.Attribute)
        base = self.static(node.value)
        found = self.kept((self.function, ast.unparse(node)), lambda: getattr(base, node.attr, MISSING))
        if found is MISSING:
            self.refuse(node, f"{ast.unparse(node.value)} has no attribute {node.attr!r}", "check the spelling")
        return found

    def kept(self, key: Any, look: Callable[[], Any]) -> Any:
        """What ``look`` found the first time, whichever form of the codelet asked; of a table a copy, which nobody changes."""
        outside = self.session.outside
        if key not in outside:
            found = look()
            outside[key] = copy.copy(found) if known.is_table(found) else found
        return outside[key]

    def is_static(self, node: ast.expr) -> bool:
        """Whether ``node`` is a name or dotted name that leads out of the codelet."""
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and node.id not in self.locals

    def is_self(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id in self.selves

    # -- fields and views --

    def field_of(self, node: ast.expr) -> Field | None:
        """The field that ``self.name`` is, None for anything else."""
        if isinstance(node, ast.Attribute) and self.is_self(node.value):
            return self.session.codelet.field(node.attr)
        return None

    def _on_Attribute(self, node: ast.Attribute) -> ast.expr:
        if self.is_self(node.value):
            return self._of_self(node)
        if self.is_static(node):
            return self.frozen(node, self.static(node))
        if node.attr in ("shape", "size"):
            return self.op(node, node.attr, self.expr(node.value))
        self.refuse(node, f".{node.attr} is not supported in a codelet", "a view has .shape and .size")

    def _of_self(self, node: ast.Attribute) -> ast.expr:
        if (field := self.field_of(node)) is not None:
            view = self.view_of(node)
            return self.load(node, view) if field.shape == "scalar" else view
        value = self.kept((None, node.attr), lambda: getattr(self.session.codelet.cls, node.attr, MISSING))
        if value is MISSING:
            names = ", ".join(f.name for f in self.session.codelet.fields)
            self.refuse(node, f"{self.session.codelet.name} has no field {node.attr!r}; its fields are {names}", "check the spelling")
        return self.frozen(node, value)

    def view_of(self, node: ast.Attribute) -> ast.expr:
        """``self.field`` as it is: for a scalar the place, not the value."""
        assert isinstance(node.value, ast.Name)
        made: ast.expr = self.at(node, ast.Attribute(self.name(node, node.value.id), node.attr, ast.Load()))
        return made

    def _on_Subscript(self, node: ast.Subscript) -> ast.expr:
        base = self.expr(node.value)
        match node.slice:
            case ast.Slice():
                return self._slice(node.slice, base)
            case ast.Tuple(elts=[row, ast.Slice() as part]) if not isinstance(row, ast.Slice):
                return self._slice(part, self.get(node, base, [self.expr(row)]))
            case ast.Tuple(elts=elements) if any(isinstance(e, ast.Slice) for e in elements):
                self.refuse(node, "a slice of columns is not supported", "loop over the rows: m[r, a:b] is a view")
            case ast.Tuple(elts=elements) if len(elements) == 2:
                return self.get(node, base, [self.expr(e) for e in elements])
            case ast.Tuple():
                self.refuse(node, "a view has one or two dimensions", "use m[r, c]")
        return self.get(node, base, [self.expr(node.slice)])

    def get(self, node: ast.expr, base: ast.expr, index: list[ast.expr]) -> ast.expr:
        """``base[index]``, checked if the codelet is."""
        name = "get" if len(index) == 1 else "get2"
        if self.session.checks:
            return self.failing(node, f"{name}_checked", self.index_site(node, len(index)), base, *index)
        return self.op(node, name, base, *index)

    def load(self, node: ast.expr, view: ast.expr) -> ast.expr:
        """The value of a scalar field."""
        return self.failing(node, "load_checked", self.access_site(node), view) if self.session.checks else self.op(node, "load", view)

    def access_site(self, node: ast.expr) -> int:
        """Where an access is reported whose index cannot be wrong."""
        return self.site(node, "access", "", [])

    def index_site(self, node: ast.expr, count: int) -> int:
        """Where an index that is out of range is reported."""
        text = ast.unparse(node.value if isinstance(node, ast.Subscript) else node)
        parts: list[str | None] = [f"index {text}[", None, "] is outside its ", None, " elements"]
        if count == 2:
            parts = [f"index {text}[", None, ", ", None, "] is outside its ", None, " rows of ", None]
        return self.site(node, "raise", "IndexError", parts)

    def _slice(self, part: ast.Slice, base: ast.expr) -> ast.expr:
        node = part if hasattr(part, "lineno") else base
        if part.step is not None and not (isinstance(part.step, ast.Constant) and part.step.value == 1):
            self.refuse(node, "a view with a step is not supported", "index the elements in a loop: for i in range(a, b, step)")
        low = self.number(node, 0) if part.lower is None else self.expr(part.lower)
        if part.upper is None:
            return self.op(node, "slice_from", base, low)
        return self.op(node, "slice", base, low, self.expr(part.upper))

    # -- operators --

    def _on_BinOp(self, node: ast.BinOp) -> ast.expr:
        if isinstance(node.left, ast.Constant) and isinstance(node.left.value, str):
            self.refuse(node, "formatting with % is not supported", 'use an f-string: f"{value}"')
        return self.binary(node, node.op, self.expr(node.left), self.expr(node.right))

    def binary(self, node: ast.AST, operator: ast.operator, left: ast.expr, right: ast.expr) -> ast.expr:
        kind = type(operator).__name__
        if kind in known.BINARY:
            return self.op(node, known.BINARY[kind], left, right)
        if kind == "Pow" and isinstance(right, ast.Constant) and type(right.value) is int and right.value in (2, 3):
            return self.op(node, "square" if right.value == 2 else "cube", left)
        if kind in known.FAILING:
            if kind == "Pow":
                site = self.site(node, "raise", "ValueError", ["integer to the negative power ", None])
            else:
                site = self.site(node, "raise", "ZeroDivisionError", ["integer division by zero"])
            return self.failing(node, known.FAILING[kind], site, left, right)
        self.refuse(node, "matrix multiplication with @ is not supported in a codelet", "write the loops")

    def _on_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        if isinstance(node.op, ast.Not):
            return self.op(node, "not", self.test(node.operand))
        if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant) and isinstance(node.operand.value, int | float):
            return self.frozen(node, -node.operand.value)
        return self.op(node, known.UNARY[type(node.op).__name__], self.expr(node.operand))

    def _on_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        made: ast.expr = self.at(node, ast.BoolOp(node.op, [self.expr(v) for v in node.values]))
        return made

    def _on_IfExp(self, node: ast.IfExp) -> ast.expr:
        made: ast.expr = self.at(node, ast.IfExp(self.test(node.test), self.expr(node.body), self.expr(node.orelse)))
        return made

    def _on_Compare(self, node: ast.Compare) -> ast.expr:
        values = [self.expr(v) for v in (node.left, *node.comparators)]
        pairs: list[ast.expr] = []
        left = values[0]
        for i, operator in enumerate(node.ops):
            if (operation := known.COMPARE.get(type(operator).__name__)) is None:
                self.refuse(node, f"{_describe(operator)} is not supported in a codelet", "compare numbers with ==, !=, <, <=, > or >=")
            right = values[i + 1]
            if i + 1 < len(node.ops) and any(isinstance(n, ast.Name) and n.id in self.calls for n in ast.walk(right)):
                # The middle value stands in both comparisons; to evaluate it twice is only safe if it does nothing else.
                self.refuse(node, f"a call of {ast.unparse(node.comparators[i])} in the middle of a comparison", "give its value a name first")
            pairs.append(self.op(node, operation, left, right))
            left = right
        if len(pairs) == 1:
            return pairs[0]
        made: ast.expr = self.at(node, ast.BoolOp(ast.And(), pairs))
        return made

    def _on_Tuple(self, node: ast.Tuple) -> ast.expr:
        made: ast.expr = self.at(node, ast.Tuple([self.expr(v) for v in node.elts], ast.Load()))
        return made

    def _on_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        self.refuse(node, "an f-string is not supported here", "use strings in print, raise and assert only")

    def _on_Call(self, node: ast.Call) -> ast.expr:
        return self.call(node)

    def call(self, node: ast.Call) -> ast.expr:
        raise NotImplementedError

    def context(self, node: ast.AST) -> ast.expr:
        return self.name(node, CONTEXT)


_NAMES = {
    "ListComp": "a list comprehension", "GeneratorExp": "a generator expression", "DictComp": "a dict comprehension", "SetComp": "a set comprehension",
    "List": "a list", "Dict": "a dict", "Set": "a set", "Lambda": "a lambda", "Yield": "yield", "YieldFrom": "yield from", "Await": "await",
    "Starred": "a starred expression", "NamedExpr": "assigning with := inside an expression", "In": "in", "NotIn": "not in", "Is": "is", "IsNot": "is not",
    "Import": "import", "ImportFrom": "import", "With": "with", "Try": "try", "TryStar": "try", "FunctionDef": "a function defined inside a function",
    "ClassDef": "a class", "Global": "global", "Nonlocal": "nonlocal", "Delete": "del", "Match": "match",
    "AsyncFor": "async for", "AsyncWith": "async with", "AsyncFunctionDef": "an async function",
}  # fmt: skip


def _describe(node: ast.AST) -> str:
    return _NAMES.get(type(node).__name__, type(node).__name__)


def _of(value: Any) -> str:
    kind = type(value).__name__
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"
