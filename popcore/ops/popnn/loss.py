"""Losses of classifiers with their gradients, and how many answers were right. After ``popnn/Loss.hpp``."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from popcore.errors import ElementTypeError, GraphError, ShapeError
from popcore.graph import Graph, Tensor
from popcore.ops import popops
from popcore.ops.popnn.extremes import arg_max
from popcore.ops.popops import common
from popcore.ops.popops.expr import Const, Equal, Expr, Log, Max, PlaceHolder, Select
from popcore.ops.popops.widths import rounded, wide
from popcore.ops.poputil import map_tensor_linearly
from popcore.program import Sequence
from popcore.types import FLOAT, INT, UNSIGNED_INT

LEAST_PROBABILITY = float(np.finfo(np.float32).tiny)
"""Of a class, in the cross entropy: the logarithm of 0 is taken to be that of the least normal FLOAT."""


class LossType(enum.Enum):
    """How far outputs are from what is expected."""

    SUM_SQUARED_LOSS = "sum_squared"  # half the squares of what is off
    CROSS_ENTROPY_LOSS = "cross_entropy"  # minus the logarithm of the right class's probability


def calc_loss(
    graph: Graph,
    model_outputs: Tensor,
    expected: Tensor,
    loss: Tensor,
    deltas: Tensor,
    loss_type: LossType,
    prog: Sequence,
    name: str = "",
    *,
    deltas_scale: float | Tensor = 1.0,
    model_output_scaling: float | Tensor = 1.0,
    num_correct: Tensor | None = None,
) -> None:
    """Write each row's loss, and its gradient by what goes into the last layer, for labels that say which class is right.

    For the sum of squares that is the gradient by ``model_outputs``; for the cross entropy, whose ``model_outputs`` are a softmax's
    probabilities, that by what the softmax was given. Both are ``model_outputs`` less the label's one-hot row.

    Args:
        model_outputs: (rows, classes) of FLOAT or HALF.
        expected: (rows,) of INT or UNSIGNED_INT; a row labelled ``popops.MASKED_LABEL_CODE`` (-1) has no loss and no gradient.
        loss: (rows,), written. Of the type of ``model_outputs``.
        deltas: (rows, classes), written. Of that type too.
        deltas_scale: What ``deltas`` are multiplied by, as to keep those of HALF from vanishing: a number or a scalar tensor.
        model_output_scaling: What ``model_outputs`` were multiplied by, as ``NonLinearityType.SOFTMAX_SCALED.scaling``: likewise.
        num_correct: A scalar of UNSIGNED_INT, written if given: rows whose greatest output is that of the label.

    Raises: ShapeError, ElementTypeError, GraphError: the tensors do not fit each other.
    """
    step = common.joined(name, "calc_loss")
    _check(step, model_outputs, expected, loss, deltas)
    if not isinstance(loss_type, LossType):
        raise GraphError(f"{step}: loss_type is {loss_type!r}", "LossType.SUM_SQUARED_LOSS or LossType.CROSS_ENTROPY_LOSS")
    classes = model_outputs.shape[1]
    kind = expected.dtype
    numbers = graph.add_constant(kind, (classes,), np.arange(classes, dtype=kind.numpy), name=f"{step}/classes")
    map_tensor_linearly(graph, numbers)
    operands = [model_outputs, expected.expand([1]), numbers.expand([0])]
    hot = Equal(PlaceHolder(2), PlaceHolder(3))
    masked = Equal(PlaceHolder(2), Const(-1 if kind is INT else popops.MASKED_LABEL_CODE, kind))
    p = wide(1, model_outputs.dtype)
    if isinstance(model_output_scaling, Tensor) or model_output_scaling != 1:
        p = p / _factor(step, model_output_scaling, operands)
    zero = Const(0.0, FLOAT)
    off = p - Select(Const(1.0, FLOAT), zero, hot)
    term: Expr = off * off * 0.5 if loss_type is LossType.SUM_SQUARED_LOSS else Select(-Log(Max(p, Const(LEAST_PROBABILITY))), zero, hot)
    scaled = off * _factor(step, deltas_scale, operands)
    terms = popops.map(graph, Select(zero, term, masked), operands, prog, step)
    popops.reduce_with_output(graph, terms, loss, [1], popops.Operation.ADD, prog, step)
    if num_correct is not None:
        calc_accuracy(graph, model_outputs, expected, num_correct, prog, name)
    popops.map_with_output(graph, rounded(Select(zero, scaled, masked), deltas.dtype), operands, deltas, prog, step)


def _factor(step: str, factor: float | Tensor, operands: list[Tensor]) -> Expr:
    """A number, or a scalar tensor, which becomes one of the operands."""
    if not isinstance(factor, Tensor):
        return Const(float(factor), FLOAT)
    if factor.num_elements != 1 or factor.dtype.kind not in ("float", "half"):
        raise ElementTypeError(f"{step} is given the scale {factor!r}", "a number, or a scalar of FLOAT or HALF")
    operands.append(factor.reshape(()))
    return wide(len(operands), factor.dtype)


def calc_accuracy(graph: Graph, model_outputs: Tensor, expected: Tensor, num_correct: Tensor, prog: Sequence, name: str = "") -> None:
    """Write to ``num_correct``, a scalar of UNSIGNED_INT, how many rows have their greatest output at the label."""
    step = common.joined(name, "calc_accuracy")
    _check(step, model_outputs, expected)
    common.require_tensors(step, num_correct)
    if num_correct.dtype is not UNSIGNED_INT or num_correct.num_elements != 1:
        raise ElementTypeError(f"{step} is to write {num_correct!r}", "a scalar of UNSIGNED_INT")
    found = arg_max(graph, model_outputs, prog, step).reinterpret(expected.dtype)
    one, none = Const(1, UNSIGNED_INT), Const(0, UNSIGNED_INT)
    right = popops.map(graph, Select(one, none, Equal(PlaceHolder(1), PlaceHolder(2))), [found, expected], prog, step)
    popops.reduce_with_output(graph, right, num_correct.reshape(()), [0], popops.Operation.ADD, prog, step)


def _check(step: str, outputs: Any, expected: Any, loss: Any = None, deltas: Any = None) -> None:
    common.require_tensors(step, outputs, expected, *(t for t in (loss, deltas) if t is not None))
    if outputs.rank != 2 or expected.shape != outputs.shape[:1]:
        raise ShapeError(f"{step} of {outputs!r} with labels {expected!r}", "(rows, classes) and (rows,)")
    if outputs.dtype.kind not in ("float", "half"):
        raise ElementTypeError(f"{step} of {outputs!r}", "FLOAT or HALF")
    if expected.dtype not in _LABELS:
        raise ElementTypeError(f"{step} with labels {expected!r}", "INT or UNSIGNED_INT")
    for t, shape, what in ((loss, outputs.shape[:1], "loss"), (deltas, outputs.shape, "deltas")):
        if t is None:
            continue
        if t.shape != shape:
            raise ShapeError(f"{step} of {outputs!r} is to write the {what} to {t!r}", f"shape {shape}")
        if t.dtype is not outputs.dtype:
            raise ElementTypeError(f"{step} of {outputs!r} is to write the {what} to {t!r}", "one type for all of them")
        common.require_writeable(step, t)


_LABELS: tuple[Any, ...] = (INT, UNSIGNED_INT)
