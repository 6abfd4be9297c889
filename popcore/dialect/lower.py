"""Lowering: from a codelet's Python to functions in which every operation is named."""

from __future__ import annotations

import ast
import hashlib
import types
from dataclasses import replace
from typing import Any

import numpy as np

from popcore.codelet import Codelet
from popcore.debug import Site
from popcore.dialect import denormals, source
from popcore.dialect.elementary import FORMULAS, fingerprint
from popcore.dialect.known import type_code
from popcore.dialect.loops import Loops
from popcore.dialect.lowered import Lowered, LoweredFunction, refusal
from popcore.dialect.scope import CONTEXT, Session

VERSION = 2
"""Part of every fingerprint: raise it when the meaning of an operation changes."""


def lower(codelet: Codelet, checks: bool = False) -> Lowered:
    """Rewrite ``compute`` and what it calls; outside numbers keep the value they have when this is first called.

    A Codelet keeps what it was lowered to, so that a later change of a global does not change it.

    Args:
        checks: Whether an index outside its view is reported; without, it reads or writes elsewhere in the tile.

    Raises:
        CodeletError: something is not supported; names the user's file and line.
    """
    kept: dict[bool, Lowered] = codelet.__dict__.setdefault("_lowered", {})
    outside = codelet.__dict__.setdefault("_outside", {})  # so that both forms see the same
    if False not in kept:
        kept[False] = _lower(codelet, False, outside)
    if checks and True not in kept:
        kept[True] = replace(_lower(codelet, True, outside), unchecked=kept[False].fingerprint)
    return kept[checks]


def _lower(codelet: Codelet, checks: bool, outside: dict[Any, Any]) -> Lowered:
    session = Session(codelet, checks, outside)
    compute = source.unwrapped(codelet.cls.__dict__.get("compute") or codelet.cls.compute)  # type: ignore[attr-defined]
    if compute is None:
        raise refusal(codelet, codelet.site, "compute is no Python function", "def compute(self): ...")
    parameters = compute.__code__.co_varnames[: compute.__code__.co_argcount]
    wanted = 2 if codelet.workers > 1 else 1
    if len(parameters) != wanted:
        form = "compute(self, worker)" if wanted == 2 else "compute(self)"
        raise refusal(codelet, codelet.site, f"compute takes {len(parameters)} parameters, {wanted} expected", f"def {form}: ...")
    _lower_function(session, compute, frozenset(parameters[:1]), None)
    functions = tuple(f for f in session.functions if f is not None)
    return Lowered(codelet, functions, tuple(session.sites), _fingerprint(session, functions), checks)


def _lower_function(session: Session, function: types.FunctionType, selves: frozenset[str], caller: tuple[Loops, ast.AST] | None) -> int:
    """The index of ``function``, lowered now if it was not before. ``selves``: its parameters that are the vertex."""
    key = (function, selves)
    if (known := session.numbers.get(key)) is not None:
        if session.functions[known] is None and caller is not None:
            caller[0].refuse(caller[1], f"{function.__name__} calls itself", "write a loop: a tile has no stack to recurse on")
        return known
    index = session.numbers[key] = len(session.functions)
    session.functions.append(None)
    try:
        tree = source.definition_of(function)
    except source.NoSource as error:
        site = Site(function.__code__.co_filename, function.__code__.co_firstlineno)
        raise refusal(session.codelet, site, str(error), "define it in a file") from error
    rewriter = Loops(session, function, selves, source.local_names(function))
    rewriter.returns_nothing = index == 0
    rewriter.lower_function = lambda node, callee, its: _lower_function(session, callee, its, (rewriter, node))
    _check_signature(rewriter, tree)
    body = rewriter.block(tree.body) if isinstance(tree, ast.FunctionDef) else rewriter.statement(rewriter.at(tree, ast.Return(tree.body)))
    session.functions[index] = _finish(rewriter, tree, index, body)
    return index


def _check_signature(rewriter: Loops, tree: source.Definition) -> None:
    if tree.args.vararg or tree.args.kwarg:
        rewriter.refuse(tree, "*arguments are not supported in a codelet", "name the parameters")
    for name in rewriter.locals:
        if name.startswith("_pc_"):
            rewriter.refuse(tree, f"the name {name!r} is popcore's own", "use another name")


def _finish(rewriter: Loops, tree: source.Definition, index: int, body: list[ast.stmt]) -> LoweredFunction:
    name = "function" if isinstance(tree, ast.Lambda) else tree.name
    given = [*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs]
    parameters = [ast.arg(CONTEXT), *(ast.arg(a.arg) for a in given)]
    callees = {called: rewriter.session.handling[number] for called, number in rewriter.calls.items()}
    rewriter.session.handling[index], cleaned = denormals.clean(body, [p.arg for p in parameters], rewriter.constants, callees)
    if cleaned:
        rewriter.operations.add(denormals.KEPT)
    definition = ast.FunctionDef(name, ast.arguments([], parameters, None, [], [], None, []), body, [])
    ast.copy_location(definition, tree)
    definition.lineno = min(tree.lineno, rewriter.function.__code__.co_firstlineno)
    inner = compiled(definition, rewriter.file)
    text = f"{index} {ast.dump(definition)}"
    return LoweredFunction(name, inner, rewriter.constants, rewriter.calls, frozenset(rewriter.operations), text, definition)


def compiled(definition: ast.FunctionDef, file: str) -> types.CodeType:
    """The code of a rewritten function."""
    module = ast.Module([definition], [])
    ast.fix_missing_locations(module)
    code = compile(module, file, "exec", dont_inherit=True)
    return next(c for c in code.co_consts if isinstance(c, types.CodeType))


def _fingerprint(session: Session, functions: tuple[LoweredFunction, ...]) -> str:
    codelet = session.codelet
    digest = hashlib.blake2b(digest_size=16)

    def add(*parts: Any) -> None:
        digest.update(repr(parts).encode())

    add(VERSION, session.checks, codelet.workers, codelet.cls.fastmath, len(session.sites))
    for field in codelet.fields:
        add(field.name, field.direction, field.shape, field.dtype.kind, type_code(field.dtype))
    for site in session.sites:
        add(site.kind)
    if any(name in FORMULAS or name == "pow" for f in functions for name in (each.removeprefix("_pc_") for each in f.operations)):
        add(fingerprint())
    for function in functions:
        add(function.text, sorted(function.calls.items()))
        for name, value in sorted(function.constants.items()):
            kept = np.asarray(value)
            add(name, kept.ndim, kept.dtype.str, kept.tobytes())
    return digest.hexdigest()
