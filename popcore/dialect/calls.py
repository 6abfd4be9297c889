"""Calls in a codelet: conversions, functions of ``math``, min and max, and the user's own functions."""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Callable
from typing import Any, NoReturn

from popcore.dialect import known
from popcore.dialect.expressions import Expressions
from popcore.dialect.source import unwrapped

Lowerer = Callable[[ast.AST, types.FunctionType, frozenset[str]], int]
_LOOPS_ONLY = (range, enumerate, zip, reversed)


class Calls(Expressions):
    """``call`` rewrites a call; ``lower_function`` is set by who lowers the codelet."""

    lower_function: Lowerer

    def call(self, node: ast.Call) -> ast.expr:
        target = node.func
        if isinstance(target, ast.Attribute) and self.is_self(target.value):
            return self._method(node, target)
        if not self.is_static(target):
            self.refuse(node, f"the call {ast.unparse(node)} is not supported in a codelet", "call functions, math.name and element types")
        value = self.static(target)
        if (code := known.conversion(value, self.session.types)) is not None:
            return self.op(node, f"as_{code}", *self._arguments(node, 1, ast.unparse(target)))
        if value is round:
            return self.op(node, "rint", *self._arguments(node, 1, "round"))
        if (name := known.function_name(value)) is not None:
            return self.op(node, name, *self._arguments(node, known.ARITY[name], ast.unparse(target)))
        if value is len:
            return self.op(node, "len", *self._arguments(node, 1, "len"))
        if value in (min, max):
            return self._extreme(node, value.__name__)
        if (function := unwrapped(value)) is not None and not isinstance(value, type):
            return self._function(node, function, frozenset())
        self._refuse_call(node, value)

    def _refuse_call(self, node: ast.Call, value: Any) -> NoReturn:
        text = ast.unparse(node.func)
        if value is print:
            self.refuse(node, "print is a statement in a codelet: it has no value", "write it on a line of its own")
        if value in _LOOPS_ONLY:
            self.refuse(node, f"{text} is supported in a for loop only", f"for i in {text}(...):")
        if text.endswith(("float64", "double", "longdouble")):
            self.refuse(node, f"{text}: the machine has no double", "FLOAT(x)")
        module = getattr(value, "__module__", None) or type(value).__module__
        what = "allocates or works on whole arrays, which a tile cannot" if module.startswith("numpy") else "is no function that a codelet can call"
        self.refuse(node, f"{text} {what}", "write loops over the elements of fields; call plain Python functions, math.name and element types")

    def _arguments(self, node: ast.Call, count: int, name: str) -> list[ast.expr]:
        if node.keywords or len(node.args) != count or any(isinstance(a, ast.Starred) for a in node.args):
            self.refuse(node, f"{name} takes {count} argument{'s' * (count != 1)} in a codelet", f"{name}({', '.join('xyz'[:count])})")
        return [self.expr(a) for a in node.args]

    def _extreme(self, node: ast.Call, name: str) -> ast.expr:
        if node.keywords or len(node.args) < 2 or any(isinstance(a, ast.Starred) for a in node.args):
            self.refuse(node, f"{name} takes two or more numbers in a codelet", "write a loop over the elements")
        found, *rest = [self.expr(a) for a in node.args]
        for other in rest:
            found = self.op(node, name, found, other)
        return found

    # -- the user's own functions --

    def _method(self, node: ast.Call, target: ast.Attribute) -> ast.expr:
        value = inspect.getattr_static(self.session.codelet.cls, target.attr, None)
        if isinstance(value, staticmethod):
            function = unwrapped(value.__func__)
            return self._function(node, function, frozenset()) if function else self._refuse_call(node, value)
        function = unwrapped(value)
        if function is None:
            self.refuse(node, f"{self.session.codelet.name} has no method {target.attr!r}", "define it in the codelet's class")
        bound = ast.copy_location(ast.Call(node.func, [target.value, *node.args], node.keywords), node)
        return self._function(bound, function, frozenset())

    def _function(self, node: ast.Call, function: types.FunctionType, _: frozenset[str]) -> ast.expr:
        """A call of a plain Python function, which is lowered in its turn."""
        arguments = self._bind(node, function)
        selves = frozenset(name for name, value in arguments.items() if isinstance(value, ast.expr) and self.is_self(value))
        index = self.lower_function(node, function, selves)
        name = f"_pc_f{index}"
        self.calls[name] = index
        values = [self._argument(node, value) for value in arguments.values()]
        made: ast.expr = self.at(node, ast.Call(self.name(node, name), [self.context(node), *values], []))
        return made

    def _argument(self, node: ast.Call, value: Any) -> ast.expr:
        if not isinstance(value, ast.expr):
            return self.frozen(node, value)  # a default
        if self.is_self(value):
            assert isinstance(value, ast.Name)
            return self.name(node, value.id)
        return self.expr(value)

    def _bind(self, node: ast.Call, function: types.FunctionType) -> dict[str, Any]:
        """What each parameter of ``function`` gets: an expression of the caller, or a default value."""
        signature = inspect.signature(function)
        if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in signature.parameters.values()):
            self.refuse(node, f"{function.__name__} takes *arguments, which a codelet cannot pass", "name the parameters")
        if any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords):
            self.refuse(node, "* and ** in a call are not supported in a codelet", "write the arguments out")
        try:
            bound = signature.bind(*node.args, **{k.arg: k.value for k in node.keywords if k.arg})
        except TypeError as error:
            self.refuse(node, f"{function.__name__}: {error}", f"{function.__name__}{signature}")
        bound.apply_defaults()
        return dict(bound.arguments)
