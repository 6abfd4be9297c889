"""Where a codelet may see a denormal of FLOAT: only where it reads one from memory and does no arithmetic with it.

Arithmetic takes denormals for zero and gives none, where they are flushed. But comparison and choice pass on what they are given, and
a processor's own minimum does not; so what is read and then kept, compared or handed on is cleaned first (the operation "kept"). A
value that is read and stored as it is, is copied bit for bit.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from popcore.dialect.known import ARITY

KEPT = "_pc_kept"
_READS = {f"_pc_{name}" for name in ("get", "get2", "load", "get_checked", "get2_checked", "load_checked")}
_WRITES = {f"_pc_{name}" for name in ("set", "set2", "store", "set_checked", "set2_checked", "store_checked")}
_COMPUTE = {
    f"_pc_{name}"
    for name in (
        "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "square", "cube", "as_half", "as_bool",
        "as_int", "as_u64", "index", "not", *(set(ARITY) - {"abs", "fabs", "copysign"}), *(f"as_{sign}{bits}" for sign in "iu" for bits in (8, 16, 32, 64)),
    )
}  # fmt: skip
"""Operations to which a denormal is what zero is."""


@dataclass(frozen=True)
class Handling:
    """What a function does with its parameters, by their positions."""

    computes: frozenset[int] = frozenset()  # nothing but arithmetic
    returns: int | None = None  # nothing but return this one


_UNKNOWN = Handling()


def clean(body: list[ast.stmt], parameters: Sequence[str], constants: Mapping[str, Any], callees: Mapping[str, Handling]) -> tuple[Handling, bool]:
    """Clean what a function keeps, in place.

    body         its rewritten statements
    constants    its constants, by name
    callees      of the functions that it calls, by name

    Returns: what it does with its parameters, and whether anything was to be cleaned.
    """
    module = ast.Module(body, [])
    uses = _Uses(constants, callees)
    uses.visit(module)
    cleaner = _Cleaner(uses)
    body[:] = cleaner.visit(module).body
    returned = None
    match body:
        case [ast.Return(value=ast.Name(id=name))] if name in parameters:
            returned = list(parameters).index(name)
    assigned = {node.id for node in ast.walk(module) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    computes = frozenset(i for i, name in enumerate(parameters) if name not in uses.kept | assigned)
    return Handling(computes, returned), cleaner.found


def _operation(node: ast.AST) -> str:
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""


class _Uses(ast.NodeVisitor):
    """Which variables are used for more than arithmetic."""

    def __init__(self, constants: Mapping[str, Any], callees: Mapping[str, Handling]) -> None:
        self.kept: set[str] = set()
        self.callees = callees
        self.denormal = {name for name, value in constants.items() if isinstance(value, np.float32) and 0 < abs(value) < np.finfo(np.float32).tiny}

    def computes(self, node: ast.Call, place: int) -> bool:
        """Whether an argument of a call is used for arithmetic only."""
        operation = _operation(node)
        return operation in _COMPUTE or place in self.callees.get(operation, _UNKNOWN).computes

    def passed_on(self, node: ast.expr) -> ast.expr | None:
        """The argument that a call gives back as it is, or None."""
        if not isinstance(node, ast.Call):
            return None
        place = 0 if _operation(node) == "_pc_as_float" else self.callees.get(_operation(node), _UNKNOWN).returns
        return None if place is None else node.args[place]

    def visit_Call(self, node: ast.Call) -> None:
        for place, argument in enumerate(node.args):
            inner = argument
            while (within := self.passed_on(inner)) is not None:
                inner = within
            if not (self.computes(node, place) and isinstance(inner, ast.Name)):
                self.visit(argument)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self.kept.add(node.id)


class _Cleaner(ast.NodeTransformer):
    """Wraps reads, and denormal constants, that are not an operand of arithmetic."""

    def __init__(self, uses: _Uses) -> None:
        self._uses, self.found = uses, False

    def visit_Call(self, node: ast.Call) -> ast.expr:
        copies = _operation(node) in _WRITES
        made = []
        for place, argument in enumerate(node.args):
            plain = self._uses.computes(node, place) or (copies and place == len(node.args) - 1)
            made.append(self._inside(argument) if plain and self._is_raw(argument) else self.visit(argument))
        node.args = made
        return self._wrapped(node) if _operation(node) in _READS else node

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        (target,) = node.targets
        only_computed = isinstance(target, ast.Name) and target.id not in self._uses.kept
        node.value = self._inside(node.value) if only_computed and self._is_raw(node.value) else self.visit(node.value)
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._wrapped(node) if node.id in self._uses.denormal else node

    def _is_raw(self, node: ast.expr) -> bool:
        if (within := self._uses.passed_on(node)) is not None:
            return self._is_raw(within)
        return _operation(node) in _READS or (isinstance(node, ast.Name) and node.id in self._uses.denormal)

    def _inside(self, node: ast.expr) -> ast.expr:
        """A read left as it is; what it reads from is not."""
        if isinstance(node, ast.Call):
            within = self._uses.passed_on(node)
            node.args = [self._inside(argument) if argument is within else self.visit(argument) for argument in node.args]
        return node

    def _wrapped(self, node: ast.expr) -> ast.expr:
        self.found = True
        return ast.copy_location(ast.Call(ast.copy_location(ast.Name(KEPT, ast.Load()), node), [node], []), node)
