"""dropout and shaped_dropout: elements kept at random. After ``poprand/RandomGen.hpp``."""

from __future__ import annotations

import math

from popcore.codelets import random
from popcore.errors import ElementTypeError, ShapeError, ValueRangeError
from popcore.graph import Graph, Tensor
from popcore.ops.popops import common, expr
from popcore.ops.popops.mapping import map as map_tensors
from popcore.ops.poprand.distributions import bernoulli, output_like, threshold
from popcore.ops.poprand.draw import draw
from popcore.ops.poputil import can_broadcast_to_match
from popcore.program import Sequence
from popcore.types import FLOAT, HALF

_DROPOUT = (24, 2)  # cycles of a worker: once, and for each 8 bytes


def dropout(
    graph: Graph, seed: Tensor | None, seed_modifier: int, input: Tensor, reference: Tensor, keep_probability: float, scale: float, prog: Sequence,
    output_clones_ref: bool = True, name: str = "",
) -> Tensor:  # fmt: skip
    """``input * scale`` where an element is kept, else 0.

    Which ones are depends on seed, modifier, probability and the tile mapping of ``reference``: given the same, a backward pass drops the same.

    Args:
        reference: Of the shape of ``input``.
        keep_probability: 0 to 1, to 2**-32.
        scale: Mostly 1 / keep_probability. The product is made in FLOAT and rounded once.
        output_clones_ref: The result is laid out like ``reference``, else like ``input``.

    Raises: ShapeError, ElementTypeError, ValueRangeError, GraphError
    """
    step = common.joined(name, "dropout")
    _check(input, reference, scale, step)
    if input.shape != reference.shape:
        raise ShapeError(f"{step} of {input!r} with reference {reference!r}", "equal shapes")
    fields = {"threshold": threshold(keep_probability, step), "scale": float(scale)}
    out = output_like(graph, reference, input.dtype, step)
    draw(graph, random.Dropout[input.dtype], seed, seed_modifier, out, fields, _DROPOUT, prog, step, x=input)  # type: ignore[name-defined]
    if output_clones_ref:
        return out
    made = output_like(graph, input, input.dtype, step)
    common.copy(prog, out, made, step)
    return made


def shaped_dropout(
    graph: Graph, seed: Tensor | None, seed_modifier: int, input: Tensor, reference: Tensor, keep_probability: float, scale: float, prog: Sequence,
    name: str = "",
) -> Tensor:  # fmt: skip
    """The same with one decision for all elements of ``input`` that ``reference``, of a shape that broadcasts to that of ``input``, is one element for."""
    step = common.joined(name, "shaped_dropout")
    _check(input, reference, scale, step)
    if not can_broadcast_to_match(reference, shape=input.shape):
        raise ShapeError(f"{step} of {input!r} with reference {reference!r}", "a reference that broadcasts to the input's shape")
    mask = bernoulli(graph, seed, seed_modifier, reference, input.dtype, keep_probability, prog, step)
    kept = expr.Select(
        expr.Mul(expr.Cast(expr.PlaceHolder(1), FLOAT), expr.Const(float(scale), FLOAT)),
        expr.Const(0.0, FLOAT),
        expr.NotEqual(expr.PlaceHolder(2), expr.Const(0)),
    )
    return map_tensors(graph, expr.Cast(kept, input.dtype), [input, mask], prog, step)


def _check(x: Tensor, reference: Tensor, scale: float, step: str) -> None:
    common.require_tensors(step, x, reference)
    if x.dtype not in (FLOAT, HALF):
        raise ElementTypeError(f"{step} of {x!r}", "FLOAT or HALF")
    if not math.isfinite(scale):
        raise ValueRangeError(f"{step}: scale is {scale}", "a finite number")
