"""Statements of a codelet: stores, loops, raise, assert and print."""

from __future__ import annotations

import ast
import builtins
from typing import Any

from popcore.dialect.calls import Calls
from popcore.dialect.expressions import _describe
from popcore.dialect.source import MISSING, look_up

FAULT = "_pc_Fault"


class Statements(Calls):
    """``block`` rewrites a list of statements."""

    returns_nothing = False  # compute: what it returns is dropped

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        return [made for node in body for made in self.statement(node)] or [ast.Pass()]

    def statement(self, node: ast.stmt) -> list[ast.stmt]:
        method = getattr(self, f"_do_{type(node).__name__}", None)
        if method is None:
            self.refuse(node, f"{_describe(node)} is not supported in a codelet")
        found: list[ast.stmt] = method(node)
        return found

    def _do_Pass(self, node: ast.stmt) -> list[ast.stmt]:
        return [node]

    _do_Break = _do_Continue = _do_Pass

    def _do_Expr(self, node: ast.Expr) -> list[ast.stmt]:
        match node.value:
            case ast.Constant():
                return [self.at(node, ast.Pass())]  # a docstring, or ...
            case ast.Call(func=ast.Name(id="print")) if "print" not in self.locals and look_up(self.function, "print") is print:
                return self._print(node, node.value)
        return [self.at(node, ast.Expr(self.expr(node.value)))]

    def _do_Return(self, node: ast.Return) -> list[ast.stmt]:
        if node.value is None or (isinstance(node.value, ast.Constant) and (node.value.value is None or self.returns_nothing)):
            return [self.at(node, ast.Return(None))]
        value = self.expr(node.value)
        if self.returns_nothing:
            return [self.at(node, ast.Expr(value)), self.at(node, ast.Return(None))]
        return [self.at(node, ast.Return(value))]

    # -- stores --

    def _do_Assign(self, node: ast.Assign) -> list[ast.stmt]:
        value = self.expr(node.value)
        if len(node.targets) == 1:
            return self.store(node.targets[0], value)
        kept = self.temporary()
        made = [self.assign(node, kept, value)]
        for target in node.targets:
            made += self.store(target, self.name(node, kept))
        return made

    def _do_AnnAssign(self, node: ast.AnnAssign) -> list[ast.stmt]:
        return [] if node.value is None else self.store(node.target, self.expr(node.value))

    def store(self, target: ast.expr, value: ast.expr) -> list[ast.stmt]:
        match target:
            case ast.Name():
                if target.id in self.selves:
                    self.refuse(target, f"{target.id!r} cannot be assigned", "use another name")
                return [self.assign(target, target.id, value)]
            case ast.Tuple() | ast.List():
                return self._unpack(target, value)
            case ast.Attribute() if self.is_self(target.value):
                return [self._store(target, self._writable(target), value)]
            case ast.Subscript():
                base, index = self._place(target)
                return [self._expression(target, self._set(target, base, index, value))]
        self.refuse(target, f"assigning to {ast.unparse(target)} is not supported", "assign to variables, fields and their elements")

    def _unpack(self, target: ast.Tuple | ast.List, value: ast.expr) -> list[ast.stmt]:
        names, later = [], []
        for each in target.elts:
            if isinstance(each, ast.Name):
                names.append(each.id)
                continue
            if isinstance(each, ast.Starred):
                self.refuse(each, "a starred target is not supported in a codelet", "name each value")
            names.append(self.temporary())
            later += self.store(each, self.name(each, names[-1]))
        places: list[ast.expr] = [self.at(target, ast.Name(n, ast.Store())) for n in names]
        return [self.at(target, ast.Assign([self.at(target, ast.Tuple(places, ast.Store()))], value)), *later]

    def _writable(self, target: ast.Attribute) -> ast.expr:
        field = self.field_of(target)
        if field is None:
            names = ", ".join(f.name for f in self.session.codelet.fields)
            self.refuse(target, f"{target.attr!r} is no field, so it cannot be assigned; the fields are {names}", "declare it: name: INT")
        if field.shape != "scalar":
            self.refuse(
                target, f"field {field.name!r} is a {field.shape} and cannot be assigned as a whole", f"assign its elements: self.{field.name}[i] = ..."
            )
        self._check_written(target, target)
        return self.view_of(target)

    def _check_written(self, node: ast.expr, place: ast.expr) -> None:
        """Refuse a store to an Input; ``place`` is what is indexed."""
        while isinstance(place, ast.Subscript):
            place = place.value
        field = self.field_of(place)
        if field is not None and not field.writes:
            self.refuse(node, f"field {field.name!r} is an Input and cannot be written", f"declare it as InOut or Output: {field.name}: InOut[...]")

    def _place(self, target: ast.Subscript) -> tuple[ast.expr, list[ast.expr]]:
        elements = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
        if any(isinstance(e, ast.Slice) for e in elements):
            self.refuse(target, "assigning to a slice is not supported in a codelet", "write a loop over the elements")
        if len(elements) > 2:
            self.refuse(target, "a view has one or two dimensions", "use m[r, c]")
        self._check_written(target, target.value)
        return self.expr(target.value), [self.expr(e) for e in elements]

    def _set(self, node: ast.expr, base: ast.expr, index: list[ast.expr], value: ast.expr) -> ast.expr:
        name = "set" if len(index) == 1 else "set2"
        if self.session.checks:
            return self.failing(node, f"{name}_checked", self.index_site(node, len(index)), base, *index, value)
        return self.op(node, name, base, *index, value)

    def _store(self, node: ast.expr, place: ast.expr, value: ast.expr) -> ast.stmt:
        """Assign to a scalar field."""
        if self.session.checks:
            return self._expression(node, self.failing(node, "store_checked", self.access_site(node), place, value))
        return self._expression(node, self.op(node, "store", place, value))

    def _expression(self, node: ast.AST, value: ast.expr) -> ast.stmt:
        made: ast.stmt = self.at(node, ast.Expr(value))
        return made

    def _do_AugAssign(self, node: ast.AugAssign) -> list[ast.stmt]:
        match node.target:
            case ast.Name():
                if node.target.id not in self.locals or node.target.id in self.selves:
                    self.refuse(node, f"{node.target.id!r} cannot be assigned", "use a variable of compute, or a field")
                old = self.name(node, node.target.id)
                return self.store(node.target, self.binary(node, node.op, old, self.expr(node.value)))
            case ast.Attribute() if self.is_self(node.target.value):
                place = self._writable(node.target)
                old = self.load(node.target, self.view_of(node.target))
                return [self._store(node.target, place, self.binary(node, node.op, old, self.expr(node.value)))]
            case ast.Subscript():
                return self._augment(node, node.target)
        self.refuse(node, f"assigning to {ast.unparse(node.target)} is not supported", "assign to variables, fields and their elements")

    def _augment(self, node: ast.AugAssign, target: ast.Subscript) -> list[ast.stmt]:
        base, index = self._place(target)
        made: list[ast.stmt] = []
        if not isinstance(target.value, ast.Attribute | ast.Name):
            made.append(self.assign(node, kept := self.temporary(), base))
            base = self.name(node, kept)
        for i, each in enumerate(index):
            if not isinstance(each, ast.Name | ast.Constant):
                made.append(self.assign(node, kept := self.temporary(), each))
                index[i] = self.name(node, kept)
        old = self.get(target, base, index)
        value = self.binary(node, node.op, old, self.expr(node.value))
        return [*made, self._expression(node, self._set(target, base, index, value))]

    # -- control flow --

    def _do_If(self, node: ast.If) -> list[ast.stmt]:
        return [self.at(node, ast.If(self.test(node.test), self.block(node.body), self.block(node.orelse) if node.orelse else []))]

    def _do_While(self, node: ast.While) -> list[ast.stmt]:
        return [self.at(node, ast.While(self.test(node.test), self.block(node.body), self.block(node.orelse) if node.orelse else []))]

    def _do_For(self, node: ast.For) -> list[ast.stmt]:
        before, counter, span, first = self.iteration(node)
        body = first + self.block(node.body)
        target = self.at(node.target, ast.Name(counter, ast.Store()))
        return [*before, self.at(node, ast.For(target, span, body, self.block(node.orelse) if node.orelse else [], None))]

    def iteration(self, node: ast.For) -> tuple[list[ast.stmt], str, ast.expr, list[ast.stmt]]:
        raise NotImplementedError

    # -- raise, assert, print --

    def _do_Raise(self, node: ast.Raise) -> list[ast.stmt]:
        if node.exc is None or node.cause is not None:
            self.refuse(node, "this form of raise is not supported in a codelet", 'raise ValueError("text", value)')
        exception: ast.expr = node.exc
        arguments: list[ast.expr] = []
        if isinstance(exception, ast.Call):
            arguments = exception.args
            exception = exception.func
        value = self.static(exception) if self.is_static(exception) else MISSING
        if not (isinstance(value, type) and issubclass(value, BaseException)):
            self.refuse(node, f"{ast.unparse(exception)} is no exception class", 'raise ValueError("text", value)')
        name = value.__name__ if hasattr(builtins, value.__name__) else next(c.__name__ for c in value.__mro__ if hasattr(builtins, c.__name__))
        return self._fail(node, "raise", name, arguments)

    def _do_Assert(self, node: ast.Assert) -> list[ast.stmt]:
        arguments: list[ast.expr] = [self.at(node, ast.Constant(ast.unparse(node.test)))]
        if node.msg is not None:
            arguments = list(node.msg.elts) if isinstance(node.msg, ast.Tuple) else [node.msg]
        failed = self._fail(node, "assert", "AssertionError", arguments)
        return [self.at(node, ast.If(self.op(node, "not", self.test(node.test)), failed, []))]

    def _fail(self, node: ast.stmt, kind: str, exception: str, arguments: list[ast.expr]) -> list[ast.stmt]:
        parts, formats, values = self.shown(node, arguments, " ")
        site = self.site(node, kind, exception, parts, formats)
        stop = self.at(node, ast.Raise(self.name(node, FAULT), None))
        return [self._expression(node, self.failing(node, "fail", site, *values)), stop]

    def _print(self, node: ast.Expr, call: ast.Call) -> list[ast.stmt]:
        separator = " "
        for keyword in call.keywords:
            if keyword.arg != "sep" or not (isinstance(keyword.value, ast.Constant) and isinstance(keyword.value.value, str)):
                self.refuse(node, f"print({keyword.arg}=...) is not supported in a codelet", "print(values, sep='text')")
            separator = keyword.value.value
        parts, formats, values = self.shown(node, call.args, separator)
        return [self._expression(node, self.failing(node, "print", self.site(node, "print", "", parts, formats), *values))]

    def shown(self, node: ast.stmt, arguments: list[ast.expr], separator: str) -> tuple[list[str | None], tuple[str, ...], list[ast.expr]]:
        """The parts, format specifications and values of a message."""
        parts: list[str | None] = []
        formats: list[str] = []
        values: list[ast.expr] = []

        def add(value: Any) -> None:
            match value:
                case ast.Constant(value=str() as text):
                    parts.append(text)
                case ast.JoinedStr():
                    for each in value.values:
                        add(each)
                case ast.FormattedValue():
                    parts.append(None)
                    formats.append(self._format(value))
                    values.append(self.expr(value.value))
                case _:
                    parts.append(None)
                    formats.append("")
                    values.append(self.expr(value))

        for i, argument in enumerate(arguments):
            if i and separator:
                parts.append(separator)
            add(argument)
        return parts, tuple(formats), values

    def _format(self, value: ast.FormattedValue) -> str:
        match value.format_spec:
            case None:
                return ""
            case ast.JoinedStr(values=[ast.Constant(value=str() as text)]):
                return text
        self.refuse(value, "a computed format is not supported in a codelet", 'f"{value:.3f}"')
