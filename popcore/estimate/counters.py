"""Counters in a lowered codelet: it adds up, as it runs, what its counted parts take."""

from __future__ import annotations

import ast
import copy
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import replace

from popcore.dialect.lower import compiled
from popcore.dialect.lowered import Lowered, LoweredFunction
from popcore.dialect.scope import CONTEXT
from popcore.estimate.regions import Estimate, Key
from popcore.estimate.shape import control

UNIT = 16  # of a worker cycle: what is counted
_SUM = "_pc_n"


def counted_form(lowered: Lowered, estimate: Estimate) -> Lowered:
    """The codelet with counters, in either form, with checks or without."""
    functions = tuple(_counted(f, {k: w for k, w in estimate.weights.items() if k[0] == i}) for i, f in enumerate(lowered.functions))
    digest = hashlib.blake2b(digest_size=16)
    digest.update(repr((lowered.fingerprint, sorted(estimate.weights.items()))).encode())
    return replace(lowered, functions=functions, fingerprint=digest.hexdigest(), unchecked=lowered.identity, counted=True)


def units(bundles: float) -> int:
    """What a counter adds."""
    return max(1, round(bundles * UNIT))


def adds(estimate: Estimate) -> dict[int, int]:
    """What each counter of a codelet in C++ adds."""
    return {counter: units(bundles) for (_, counter, _), bundles in estimate.weights.items()}


def _counted(function: LoweredFunction, weights: Mapping[Key, float]) -> LoweredFunction:
    if not weights:
        return function
    tree = copy.deepcopy(function.tree)
    for number, node in enumerate(list(control(tree.body))):
        found = {part: units(weight) for (_, of, part), weight in weights.items() if of == number}
        for part, body in (("body", node.body), ("then", node.body), ("else", node.orelse)):
            if part in found:
                body.insert(0, _add(found[part], node))
        if "rest" in found:
            block = next(block for block in _blocks(tree) if node in block)
            block.insert(block.index(node) + 1, _add(found["rest"], node))
    for block in list(_blocks(tree)):
        for at in reversed([i for i, node in enumerate(block) if isinstance(node, ast.Return)]):
            block[at : at + 1] = _returning(block[at])
    tree.body.insert(0, ast.Assign([ast.Name(_SUM, ast.Store())], ast.Constant(0)))
    if not isinstance(tree.body[-1], ast.Return):
        tree.body.append(_spend())
    for made in ast.walk(tree):
        if isinstance(made, ast.stmt | ast.expr) and not hasattr(made, "lineno"):
            ast.copy_location(made, tree)
    return replace(
        function, code=compiled(tree, function.code.co_filename), operations=function.operations | {"_pc_add", "_pc_spend"}, text=ast.dump(tree), tree=tree
    )


def _blocks(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(tree):
        for name in ("body", "orelse"):
            block = getattr(node, name, None)
            if isinstance(block, list) and block:
                yield block


def _add(amount: int, node: ast.stmt) -> ast.stmt:
    total = ast.Call(ast.Name("_pc_add", ast.Load()), [ast.Name(_SUM, ast.Load()), ast.Constant(amount)], [])
    return ast.fix_missing_locations(ast.copy_location(ast.Assign([ast.Name(_SUM, ast.Store())], total), node))


def _spend() -> ast.stmt:
    return ast.Expr(ast.Call(ast.Name("_pc_spend", ast.Load()), [ast.Name(CONTEXT, ast.Load()), ast.Name(_SUM, ast.Load())], []))


def _returning(node: ast.stmt) -> list[ast.stmt]:
    """A return after what its value counts."""
    assert isinstance(node, ast.Return)
    if node.value is None:
        return [_spend(), node]
    kept = ast.Assign([ast.Name("_pc_r", ast.Store())], node.value)
    return [kept, _spend(), ast.Return(ast.Name("_pc_r", ast.Load()))]
