"""Questions about lowered code that its syntax answers."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from popcore.codelet import Codelet
from popcore.dialect.lowered import Lowered

MOST_WRITTEN_OUT = 8  # rounds of a loop,
MOST_ROUNDS_WRITTEN_OUT = 36  # and of a nest of them
_READS = ("_pc_get", "_pc_get2", "_pc_load", "_pc_kept", "_pc_len", "_pc_index")
_CHEAP = ("_pc_add", "_pc_sub", "_pc_mul", "_pc_neg", "_pc_min", "_pc_max", "_pc_abs", "_pc_and", "_pc_or")
_WRITES = ("_pc_set", "_pc_set2", "_pc_store")


def numbered(tree: ast.FunctionDef) -> dict[int, int]:
    """The number of each loop and branch of a function, by its ``id``; the same in all forms of a function."""
    return {id(node): number for number, node in enumerate(control(tree.body))}


def control(body: list[ast.stmt]) -> Iterator[ast.For | ast.While | ast.If]:
    """Loops and branches, in the order they stand in."""
    for node in body:
        if isinstance(node, ast.For | ast.While | ast.If):
            yield node
            yield from control(node.body)
            yield from control(node.orelse)


def fails(body: list[ast.stmt]) -> bool:
    """Whether statements end the vertex with an error."""
    return bool(body) and isinstance(body[-1], ast.Raise)


def goes_on(body: list[ast.stmt]) -> bool:
    """Whether what follows statements may be come to."""
    return not (body and isinstance(body[-1], ast.Break | ast.Continue | ast.Return | ast.Raise))


def jumps(node: ast.If) -> bool:
    """Whether one arm of a branch, but for a failing one, leaves the block."""
    return any(not goes_on(arm) for arm in (node.body, node.orelse))


def leaves(node: ast.For | ast.While) -> bool:
    """Whether a loop may return from its function."""
    return any(isinstance(inner, ast.Return) for inner in ast.walk(node))


def assigned(body: list[ast.stmt]) -> set[str]:
    """Variables that statements assign."""
    return {n.id for node in body for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def names_in(value: ast.expr) -> set[str]:
    return {n.id for n in ast.walk(value) if isinstance(n, ast.Name)}


def is_cheap(value: ast.expr) -> bool:
    """Whether a compiler computes ``value`` although it may not be wanted: reads, and at most one operation."""
    called = [n.func.id for n in ast.walk(value) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)]
    work = [name for name in called if name not in _READS]
    return len(work) <= 1 and all(name in _CHEAP for name in work)


def rounds_written_out(node: ast.For | ast.While) -> range | None:
    """The rounds of a loop that a compiler writes out: few, of a constant number, and as few of the loops in it; None of any other loop."""
    rounds = _constant_range(node)
    if rounds is None or len(rounds) > MOST_WRITTEN_OUT or any(isinstance(n, ast.Break | ast.Continue | ast.Return) for n in ast.walk(node)):
        return None
    return rounds if _all_rounds(node) <= MOST_ROUNDS_WRITTEN_OUT else None


def _all_rounds(node: ast.For | ast.While) -> float:
    rounds = _constant_range(node)
    inner = [_all_rounds(each) for each in control(node.body) if not isinstance(each, ast.If)]
    return float("inf") if rounds is None else len(rounds) * max([1, *inner])


def _constant_range(node: ast.For | ast.While) -> range | None:
    match node:
        case ast.For(iter=ast.Call(func=ast.Name(id="_pc_range"), args=arguments)) if all(
            isinstance(a, ast.Constant) and isinstance(a.value, int) for a in arguments
        ):
            return range(*(a.value for a in arguments if isinstance(a, ast.Constant) and isinstance(a.value, int)))
    return None


def stored_fields(node: ast.For | ast.While, lowered: Lowered, codelet: Codelet) -> set[str]:
    """Fields that a loop may write: those that it names, or all if it writes to a view whose field is not seen."""
    found: set[str] = set()
    for inner in ast.walk(node):
        match inner:
            case ast.Call(func=ast.Name(id=name), args=arguments) if name in _WRITES:
                place = arguments[0]
                while isinstance(place, ast.Call) and place.args:
                    place = place.args[0]
                if not isinstance(place, ast.Attribute):
                    return {f.name for f in codelet.fields if f.writes}
                found.add(place.attr)
            case ast.Call(func=ast.Name(id=name)) if name.startswith("_pc_f") and name.removeprefix("_pc_f").isdigit():
                if any(op in _WRITES for f in lowered.functions for op in f.operations):
                    return {f.name for f in codelet.fields if f.writes}
    return found
