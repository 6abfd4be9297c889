"""The syntax tree of a user's function, with the line numbers of its file, and what a name in it stands for."""

from __future__ import annotations

import ast
import builtins
import inspect
import linecache
import types
from functools import lru_cache
from typing import Any, TypeAlias

Definition: TypeAlias = ast.FunctionDef | ast.Lambda


class NoSource(Exception):
    """The source of a function is not to be had; the text says why."""


def unwrapped(function: Any) -> types.FunctionType | None:
    """The plain Python function under decorators, Numba's included; None if there is none."""
    function = inspect.unwrap(getattr(function, "py_func", function))
    return function if isinstance(function, types.FunctionType) else None


def definition_of(function: types.FunctionType) -> Definition:
    """A fresh syntax tree of ``function``, positions as in its file.

    Raises:
        NoSource: the function was made without a file, or the file has changed.
    """
    code = function.__code__
    text = "".join(linecache.getlines(code.co_filename, function.__globals__))
    if not text:
        raise NoSource(f"the source of {function.__name__} cannot be found: it was not read from a file")
    try:
        index = _index(code.co_filename, text)
    except SyntaxError as error:
        raise NoSource(f"{code.co_filename} cannot be parsed: {error}") from error
    found = index.get((code.co_name, code.co_firstlineno), [])
    if len(found) != 1:
        reason = "two lambdas stand on that line" if found else "the file has changed since it was imported"
        raise NoSource(f"the source of {function.__name__} cannot be found at line {code.co_firstlineno}: {reason}")
    copied: Definition = _copy(found[0])
    return copied


@lru_cache(maxsize=16)
def _index(_filename: str, text: str) -> dict[tuple[str, int], list[Definition]]:
    """The functions of a file by name and first line, as a code object has them: that of the first decorator."""
    found: dict[tuple[str, int], list[Definition]] = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Lambda):
            found.setdefault(("<lambda>", node.lineno), []).append(node)
        elif isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            found.setdefault((node.name, first), []).append(node)
    return found


def _copy(node: Any) -> Any:
    """A deep copy of a syntax tree (``copy.deepcopy`` takes ten times as long)."""
    made = type(node)()
    for name, value in ast.iter_fields(node):
        if isinstance(value, ast.AST):
            value = _copy(value)
        elif isinstance(value, list):
            value = [_copy(v) if isinstance(v, ast.AST) else v for v in value]
        setattr(made, name, value)
    return ast.copy_location(made, node) if hasattr(node, "lineno") else made


MISSING = object()


def look_up(function: types.FunctionType, name: str) -> Any:
    """What ``name``, which is no local variable, stands for in ``function``; MISSING if nothing."""
    code = function.__code__
    if name in code.co_freevars and function.__closure__ is not None:
        try:
            return function.__closure__[code.co_freevars.index(name)].cell_contents
        except ValueError:
            return MISSING
    if name in function.__globals__:
        return function.__globals__[name]
    return getattr(builtins, name, MISSING)


def local_names(function: types.FunctionType) -> frozenset[str]:
    """The parameters and variables of ``function``."""
    return frozenset(function.__code__.co_varnames + function.__code__.co_cellvars)
