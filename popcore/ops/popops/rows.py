"""select_scalar_from_rows, update_scalar_in_rows: one element of each row of a matrix. After ``popops/SelectScalarFromRows.hpp``, ``UpdateScalarInRows.hpp``."""

from __future__ import annotations

import numpy as np

from popcore.errors import ElementTypeError, ShapeError
from popcore.graph import Graph, Tensor
from popcore.ops.popops import common
from popcore.ops.popops.encoding import MASKED_LABEL_CODE
from popcore.ops.popops.expr import And, Const, Equal, Expr, Gte, NotEqual, PlaceHolder, Select
from popcore.ops.popops.mapping import map as map_elements
from popcore.ops.popops.mapping import map_in_place
from popcore.ops.popops.operation import Operation
from popcore.ops.popops.reduce import reduce
from popcore.ops.poputil import map_tensor_linearly
from popcore.program import Sequence
from popcore.types import UNSIGNED_INT


def select_scalar_from_rows(graph: Graph, params: Tensor, indices: Tensor, prog: Sequence, name: str = "") -> Tensor:
    """(rows,): what row i of ``params`` has at ``indices[i]``; 0 for ``MASKED_LABEL_CODE``, NaN for another index outside. A -0 becomes 0.

    Args:
        params: (rows, columns) of FLOAT or HALF.
        indices: (rows,) of UNSIGNED_INT.
    Costs: a compute set over ``params``, a reduction of its rows, and one over the result.
    """
    step = common.joined(name, "select_scalar_from_rows")
    classes = _check(graph, params, indices, step)
    hot = Select(PlaceHolder(1), Const(0.0, params.dtype), Equal(PlaceHolder(2), PlaceHolder(3)))
    found = map_elements(graph, hot, [params, indices.expand([1]), classes], prog, step)
    made = reduce(graph, found, [1], Operation.ADD, prog, step)
    map_in_place(graph, Select(Const(float("nan"), params.dtype), PlaceHolder(1), _bad(PlaceHolder(2), params)), [made, indices], prog, step)
    return made


def update_scalar_in_rows(graph: Graph, params: Tensor, indices: Tensor, prog: Sequence, name: str = "") -> None:
    """Subtract 1 from what row i of ``params`` has at ``indices[i]``; nothing for ``MASKED_LABEL_CODE``. Another index outside makes the row NaN."""
    step = common.joined(name, "update_scalar_in_rows")
    classes = _check(graph, params, indices, step)
    common.require_writeable(step, params)
    new = Select(PlaceHolder(1) - Const(1.0, params.dtype), PlaceHolder(1), Equal(PlaceHolder(2), PlaceHolder(3)))
    whole = Select(Const(float("nan"), params.dtype), new, _bad(PlaceHolder(2), params))
    map_in_place(graph, whole, [params, indices.expand([1]), classes], prog, step)


def _bad(index: Expr, params: Tensor) -> Expr:
    masked = Const(MASKED_LABEL_CODE, UNSIGNED_INT)
    return And(Gte(index, Const(params.shape[1], UNSIGNED_INT)), NotEqual(index, masked))


def _check(graph: Graph, params: Tensor, indices: Tensor, step: str) -> Tensor:
    """The numbers of the columns, (1, columns)."""
    common.require_tensors(step, params, indices)
    if params.rank != 2 or indices.shape != params.shape[:1]:
        raise ShapeError(f"{step} of {params!r} by {indices!r}", "(rows, columns) and (rows,)")
    if params.dtype.kind not in ("float", "half"):
        raise ElementTypeError(f"{step} of {params!r}", "FLOAT or HALF")
    if indices.dtype is not UNSIGNED_INT:
        raise ElementTypeError(f"{step} by {indices!r}", "UNSIGNED_INT; reinterpret an INT tensor")
    made = graph.add_constant(UNSIGNED_INT, (params.shape[1],), np.arange(params.shape[1]), name=f"{step}/columns")
    map_tensor_linearly(graph, made)
    return made.expand([0])
