"""The codelets of a graph, found by class or by the names users write: "Dot", "ns::Dot", "Scale<half>"."""

from __future__ import annotations

import os
import re
import typing
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from popcore.codelet import Codelet, Vertex, codelet_of, native_codelet, type_variables
from popcore.errors import CodeletError, ElementTypeError, UnknownNameError, near_matches
from popcore.types import ElementType, as_element_type

if TYPE_CHECKING:
    from popcore.bindings.unit import Unit

_NAME = re.compile(r"\s*((?:\w+\s*::\s*)*)(\w+)\s*(?:<(.*)>)?\s*", re.DOTALL)


class Codelets:
    """Classes by name, and each Codelet made of them; a codelet is compiled (as a check) once, when it is first decided."""

    def __init__(self) -> None:
        self._classes: dict[str, type[Vertex]] = {}
        self._made: dict[tuple[type[Vertex], tuple[ElementType, ...]], Codelet] = {}
        self._units: list[Unit] = []
        self._native: dict[str, Codelet] = {}  # of the units, by the names they were asked for

    def add_files(self, what: Any, flags: str | Sequence[str]) -> None:
        """Register the codelets of a C++ file, of several that need each other (a list), or of a text; compiled when a vertex uses them.

        Raises: CodeletError: no such file, a compile error, or another codelet of the same name.
        """
        from popcore.bindings.unit import open_unit  # only files need it

        unit = open_unit(what, flags)
        for name in unit.names():
            taken = codelet_site(self._classes[name]) if name in self._classes else next((repr(u) for u in self._units if name in u.names()), None)
            if taken is not None:
                raise CodeletError(f"two codelets are called {name}: {taken} and {unit!r}", "rename one of them")
        self._units.append(unit)

    def add(self, what: Any) -> None:
        """Register a class derived from Vertex; a generic one is checked when its types are known.

        Raises: CodeletError: no codelet, one that cannot be compiled, or another class of the same name.
        """
        cls = typing.get_origin(what) or what
        if not (isinstance(cls, type) and issubclass(cls, Vertex)):
            raise CodeletError(f"{what!r} is no codelet", "pass a class derived from popcore.Vertex or popcore.MultiVertex")
        if cls is not what or not type_variables(cls):
            self._decide(cls, typing.get_args(what))
        self._keep(cls)

    def find(self, key: Any) -> Codelet:
        """The codelet that a class or a name stands for; a class need not have been added.

        Raises: UnknownNameError with near matches; CodeletError as ``add``.
        """
        if isinstance(key, Codelet):
            return key
        if not isinstance(key, str):
            self.add(key)
            return self._decide(typing.get_origin(key) or key, typing.get_args(key))
        if (known_native := self._native.get(key)) is not None:
            return known_native
        match = _NAME.fullmatch(key)
        cls = self._named(match[1], match[2]) if match else None
        if cls is None or match is None:
            if (made := self._find_native(key)) is not None:
                return made
            names = [*self._classes, *(name for unit in self._units for name in unit.names())]
            hint = near_matches(match[2] if match else key, names, near_matches(key, names, "graph.add_codelets(TheClass)"))
            known = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "") or "none"
            raise UnknownNameError(f"no codelet is called {key!r}; added so far: {known}", hint)
        return self._decide(cls, tuple(match[3].split(",")) if match[3] is not None else ())

    def __contains__(self, key: Any) -> bool:
        match = _NAME.fullmatch(key) if isinstance(key, str) else None
        if key in self._classes.values() or (match is not None and self._named(match[1], match[2]) is not None):
            return True
        return isinstance(key, str) and (key in self._native or self._find_native(key) is not None)

    def _find_native(self, key: str) -> Codelet | None:
        for unit in self._units:
            if (found := unit.find(key)) is not None:
                same = next((c for c in self._native.values() if c.name == found.name), None)
                self._native[key] = made = same or native_codelet(found)
                return made
        return None

    def _named(self, namespace: str, name: str) -> type[Vertex] | None:
        qualified = namespace.replace(" ", "") + name
        return self._classes.get(qualified) or self._classes.get(name)

    def _keep(self, cls: type[Vertex]) -> None:
        other = self._classes.setdefault(cls.__name__, cls)
        if other is not cls:
            raise CodeletError(f"two codelets are called {cls.__name__}: {codelet_site(other)} and {codelet_site(cls)}", "rename one of them")

    def _decide(self, cls: type[Vertex], arguments: tuple[Any, ...]) -> Codelet:
        try:
            dtypes = tuple(as_element_type(a) for a in arguments)
        except ElementTypeError as error:
            raise CodeletError(f"codelet {cls.__name__}: {error.message}", error.hint) from None
        made = self._made.get((cls, dtypes))
        if made is None:
            from popcore import native  # a third of this package's import time, and only codelets need them
            from popcore.dialect import lower

            made = codelet_of(cls, dtypes)
            lowered = lower(made)  # raises CodeletError where the codelet is written in what a tile cannot do
            if not native.interpreted():
                native.load_driver(lowered)
            self._made[cls, dtypes] = made
        return made


def codelet_site(cls: type[Vertex]) -> str:
    code = getattr(getattr(cls, "compute", None), "__code__", None)
    return f"{os.path.basename(code.co_filename)}:{code.co_firstlineno}" if code is not None else cls.__module__
