"""What lowering a codelet gives: rewritten functions, the places that may fail or print, and a fingerprint."""

from __future__ import annotations

import ast
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from popcore.codelet import Codelet
from popcore.debug import Site
from popcore.dialect.elementary import FORMULAS, Formula
from popcore.errors import CodeletError

MAX_VALUES = 8
"""Run-time values that one ``print``, ``raise`` or ``assert`` can show."""


@dataclass(frozen=True)
class FaultSite:
    """A ``raise``, ``assert`` or ``print`` of the user's code, or a check that the dialect added.

    ``parts`` is the text it shows: literal text, or None where the next run-time value goes.
    ``formats`` has the format specification of each run-time value ("" for plain).
    """

    kind: str  # "raise", "assert", "print", or "access" of memory that the full check may report
    file: str
    line: int
    exception: str  # class name of the exception; "" for a print
    parts: tuple[str | None, ...]
    formats: tuple[str, ...] = ()

    def message(self, values: Sequence[Any]) -> str:
        """The text with ``values`` in it. Floats show as few digits as name them, as NumPy prints them."""
        left = iter(zip(values, self.formats or ("",) * len(values), strict=False))
        shown = []
        for part in self.parts:
            if part is not None:
                shown.append(part)
            elif (pair := next(left, None)) is not None:
                shown.append(_show(*pair))
        return "".join(shown)


def _show(value: Any, format_: str) -> str:
    if not format_:
        return str(value)
    try:
        return format(value.item() if hasattr(value, "item") else value, format_)
    except ValueError:  # for example ":d" of a float: show it anyhow, a message must not fail
        return str(value)


@dataclass(frozen=True)
class LoweredFunction:
    """One function of a codelet, rewritten so that each operation is a call of a named operation.

    ``code`` is of a function whose first parameter is the context. The names it looks up globally are
    operations (``_pc_add``), the keys of ``constants`` and of ``calls``, and ``_pc_Fault``.
    """

    name: str
    code: types.CodeType
    constants: Mapping[str, Any]  # np.float32, np.float16, np.uint64, int, bool, or a 1-D array of numbers
    calls: Mapping[str, int]  # name -> index of the LoweredFunction it calls
    operations: frozenset[str]
    text: str  # the rewritten code without positions, for the fingerprint
    tree: ast.FunctionDef = field(compare=False, repr=False)  # the rewritten code itself; read only


@dataclass(frozen=True)
class Lowered:
    """A codelet in the form that both the compiler and the interpreter take. ``functions[0]`` is ``compute``."""

    codelet: Codelet
    functions: tuple[LoweredFunction, ...]
    sites: tuple[FaultSite, ...]
    fingerprint: str
    checks: bool = False  # whether indices are checked
    files: Mapping[str, str] = field(default_factory=dict, repr=False)
    unchecked: str = ""  # with checks or counters, the fingerprint without
    counted: bool = False  # whether it adds up what it takes

    @property
    def formulas(self) -> Mapping[str, Formula]:
        """What functions of ``math`` compute."""
        return FORMULAS

    @property
    def prints(self) -> bool:
        """Whether the codelet has a ``print``."""
        return any(site.kind == "print" for site in self.sites)

    @property
    def identity(self) -> str:
        """Equal with checks and without: what random bits depend on."""
        return self.unchecked or self.fingerprint

    @property
    def narrows(self) -> bool:
        """Whether anything may be rounded to HALF, or be an operand in HALF."""
        constants = any(np.asarray(value).dtype == np.float16 for function in self.functions for value in function.constants.values())
        conversions = any("_pc_as_half" in function.operations for function in self.functions)
        return constants or conversions or any(field.dtype.kind == "half" for field in self.codelet.fields)

    def refuse(self, file: str, line: int, what: str, hint: str | None = None) -> CodeletError:
        """The error for something that only the compiler found out, such as a variable with two types."""
        return refusal(self.codelet, Site(file, line), what, hint)


def refusal(codelet: Codelet, site: Site, what: str, hint: str | None = None) -> CodeletError:
    """A CodeletError that names the codelet and the user's line."""
    return CodeletError(f"codelet {codelet.name}, {site}: {what}", hint, file=site.file, line=site.line)
