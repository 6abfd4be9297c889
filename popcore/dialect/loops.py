"""Loops of a codelet: every ``for`` becomes one over ``range`` of 64-bit integers."""

from __future__ import annotations

import ast

from popcore.dialect.source import MISSING
from popcore.dialect.statements import FAULT, Statements

_Iteration = tuple[list[ast.stmt], str, ast.expr, list[ast.stmt]]


class Loops(Statements):
    """``iteration`` gives what goes before the loop, its counter, its range, and what goes first in its body."""

    def iteration(self, node: ast.For) -> _Iteration:
        match node.iter:
            case ast.Call(func=ast.Name() as function) if self.is_static(function):
                match self.static(function):
                    case value if value is range:
                        return self._range(node, node.iter)
                    case value if value is enumerate:
                        return self._enumerate(node, node.iter)
                    case value if value is zip:
                        return self._zip(node, node.iter, node.target)
                    case value if value is reversed:
                        return self._reversed(node, node.iter)
        return self._views(node, [node.iter], [node.target])

    def _range(self, node: ast.For, call: ast.Call) -> _Iteration:
        if call.keywords or not 1 <= len(call.args) <= 3 or any(isinstance(a, ast.Starred) for a in call.args):
            self.refuse(node, "range takes one to three integers", "for i in range(a, b, step):")
        arguments = [self._index(a) for a in call.args[:2]]
        if len(call.args) == 3:
            arguments.append(self._step(call.args[2]))
        span = self._call_range(node, arguments)
        if isinstance(node.target, ast.Name) and node.target.id not in self.selves:
            return [], node.target.id, span, []
        counter = self.temporary()
        return [], counter, span, self.store(node.target, self.name(node, counter))

    def _index(self, node: ast.expr) -> ast.expr:
        value = self.expr(node)
        return value if isinstance(value, ast.Constant) and type(value.value) is int else self.op(node, "index", value)

    def _step(self, node: ast.expr) -> ast.expr:
        value = self.expr(node)
        if isinstance(value, ast.Constant) and type(value.value) is int:
            if value.value == 0:
                self.refuse(node, "the step of range is 0", "use a positive or negative step")
            return value
        return self.failing(node, "step", self.site(node, "raise", "ValueError", ["the step of range is 0"]), value)

    def _call_range(self, node: ast.AST, arguments: list[ast.expr]) -> ast.expr:
        return self.op(node, "range", *arguments)

    def _enumerate(self, node: ast.For, call: ast.Call) -> _Iteration:
        if call.keywords or len(call.args) != 1 or not (isinstance(node.target, ast.Tuple) and len(node.target.elts) == 2):
            self.refuse(node, "this form of enumerate is not supported in a codelet", "for i, value in enumerate(self.field):")
        count, value = node.target.elts
        match call.args[0]:
            case ast.Call(func=ast.Name() as function) as inner if self.is_static(function) and self.static(function) is zip:
                before, counter, span, first = self._zip(node, inner, value)
            case view:
                before, counter, span, first = self._views(node, [view], [value])
        return before, counter, span, self.store(count, self.name(node, counter)) + first

    def _zip(self, node: ast.For, call: ast.Call, target: ast.expr) -> _Iteration:
        strict = False
        for keyword in call.keywords:
            if keyword.arg != "strict" or not (isinstance(keyword.value, ast.Constant) and isinstance(keyword.value.value, bool)):
                self.refuse(node, f"zip({keyword.arg}=...) is not supported in a codelet", "zip(self.a, self.b, strict=True)")
            strict = keyword.value.value
        if not call.args or not (isinstance(target, ast.Tuple) and len(target.elts) == len(call.args)):
            self.refuse(node, "this form of zip is not supported in a codelet", "for a, b in zip(self.a, self.b):")
        return self._views(node, call.args, target.elts, strict)

    def _reversed(self, node: ast.For, call: ast.Call) -> _Iteration:
        match call.args:
            case [ast.Call(func=ast.Name() as function, args=[count], keywords=[])] if self.is_static(function) and self.static(function) is range:
                top = self.op(node, "sub", self._index(count), self.number(node, 1))
                span = self._call_range(node, [top, self.number(node, -1), self.number(node, -1)])
                counter = self.temporary()
                return [], counter, span, self.store(node.target, self.name(node, counter))
        self.refuse(node, "this form of reversed is not supported in a codelet", "for i in reversed(range(n)):, or range(n - 1, -1, -1)")

    def _element(self, node: ast.expr, view: ast.expr, index: ast.expr) -> ast.expr:
        """An element of a view, by a counter that is never outside."""
        if self.session.checks:
            return self.failing(node, "get_checked", self.access_site(node), view, index)
        return self.op(node, "get", view, index)

    def _views(self, node: ast.For, views: list[ast.expr], targets: list[ast.expr], strict: bool = False) -> _Iteration:
        """A loop over the elements of one or more views, as far as the shortest goes."""
        before: list[ast.stmt] = []
        first: list[ast.stmt] = []
        count: ast.expr | None = None
        counter = self.temporary()
        for view, target in zip(views, targets, strict=True):
            if self.is_static(view) and self.static(view) is MISSING:
                self.refuse(view, f"{ast.unparse(view)} is not defined", "check the spelling")
            kept = self.temporary()
            before.append(self.assign(node, kept, self.expr(view)))
            size = self.op(node, "len", self.name(node, kept))
            if strict and count is not None:
                site = self.site(node, "raise", "ValueError", ["zip() of ", None, " and ", None, " elements"])
                differ = self.op(node, "ne", count, size)
                stop = self.at(node, ast.Raise(self.name(node, FAULT), None))
                failing = [self._expression(node, self.failing(node, "fail", site, count, size)), stop]
                before.append(self.at(node, ast.If(differ, failing, [])))
            count = size if count is None or strict else self.op(node, "min", count, size)
            first += self.store(target, self._element(view, self.name(node, kept), self.name(node, counter)))
        assert count is not None
        return before, counter, self._call_range(node, [count]), first
