"""What the rewriting of one codelet keeps track of: functions to lower, constants, sites."""

from __future__ import annotations

import ast
import types
from dataclasses import dataclass, field
from typing import Any, NoReturn

from popcore.codelet import Codelet
from popcore.debug import Site
from popcore.dialect.denormals import Handling
from popcore.dialect.lowered import MAX_VALUES, FaultSite, LoweredFunction, refusal

CONTEXT = "_pc_ctx"


@dataclass
class Session:
    """The lowering of one codelet."""

    codelet: Codelet
    checks: bool
    outside: dict[Any, Any] = field(default_factory=dict)  # what names outside the codelet stood for when they were first looked up
    sites: list[FaultSite] = field(default_factory=list)
    functions: list[LoweredFunction | None] = field(default_factory=list)  # None: being lowered
    handling: dict[int, Handling] = field(default_factory=dict)  # of each function, by its index
    numbers: dict[tuple[Any, ...], int] = field(default_factory=dict)  # (code, owner, parameters that are self) -> index of functions

    @property
    def types(self) -> dict[Any, Any]:
        return dict(self.codelet.types)


class Scope:
    """The rewriting of one function: makes nodes with the user's positions and refuses with them."""

    def __init__(self, session: Session, function: types.FunctionType, selves: frozenset[str], locals_: frozenset[str]) -> None:
        self.session, self.function, self.selves, self.locals = session, function, selves, locals_
        self.file = function.__code__.co_filename
        self.constants: dict[str, Any] = {}
        self.calls: dict[str, int] = {}
        self.operations: set[str] = set()
        self.temporaries = 0

    def refuse(self, node: ast.AST, what: str, hint: str | None = None) -> NoReturn:
        line = getattr(node, "lineno", self.function.__code__.co_firstlineno)
        raise refusal(self.session.codelet, Site(self.file, line), what, hint)

    def at(self, node: ast.AST, made: Any) -> Any:
        """``made``, a new node, at the position of ``node``."""
        return ast.copy_location(made, node)

    def name(self, node: ast.AST, name: str) -> ast.expr:
        found: ast.expr = self.at(node, ast.Name(name, ast.Load()))
        return found

    def number(self, node: ast.AST, value: int) -> ast.expr:
        found: ast.expr = self.at(node, ast.Constant(value))
        return found

    def op(self, node: ast.AST, operation: str, *arguments: ast.expr) -> ast.expr:
        """A call of an operation of the dialect."""
        self.operations.add(f"_pc_{operation}")
        found: ast.expr = self.at(node, ast.Call(self.name(node, f"_pc_{operation}"), list(arguments), []))
        return found

    def failing(self, node: ast.AST, operation: str, site: int, *arguments: ast.expr) -> ast.expr:
        """A call of an operation that may fail at ``site``."""
        return self.op(node, operation, self.name(node, CONTEXT), self.number(node, site), *arguments)

    def constant(self, node: ast.AST, value: Any) -> ast.expr:
        """A reference to a frozen value: an int or bool in place, anything else by name."""
        if isinstance(value, bool | int):
            return self.number(node, value)
        for name, known in self.constants.items():
            if type(known) is type(value) and known.tobytes() == value.tobytes() and known.dtype == value.dtype:
                return self.name(node, name)
        name = f"_pc_c{len(self.constants)}"
        self.constants[name] = value
        return self.name(node, name)

    def site(self, node: ast.AST, kind: str, exception: str, parts: list[str | None], formats: tuple[str, ...] = ()) -> int:
        """The number of a new FaultSite at ``node``."""
        values = sum(part is None for part in parts)
        if values > MAX_VALUES:
            self.refuse(node, f"{kind} shows {values} values, a tile can pass on {MAX_VALUES}", "show fewer values")
        line = getattr(node, "lineno", 0)
        self.session.sites.append(FaultSite(kind, self.file, line, exception, tuple(parts), formats or ("",) * values))
        return len(self.session.sites) - 1

    def temporary(self) -> str:
        self.temporaries += 1
        return f"_pc_t{self.temporaries}"

    def assign(self, node: ast.AST, name: str, value: ast.expr) -> ast.stmt:
        found: ast.stmt = self.at(node, ast.Assign([self.at(node, ast.Name(name, ast.Store()))], value))
        return found
