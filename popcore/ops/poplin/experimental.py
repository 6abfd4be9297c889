"""QR and LU factors, a column at a time in a loop. After ``poplin/experimental/QRFactorization.hpp`` and ``LuFactorization.hpp``.

Both are of FLOAT. Every step works on the whole matrices, whatever is done of them already: the work of n columns is that of n products
of a matrix and a vector for each factor.
"""

from __future__ import annotations

import numpy as np

from popcore.errors import ElementTypeError, ShapeError
from popcore.graph import Graph, Tensor
from popcore.ops import popops, poputil
from popcore.ops.poplin.mat_mul import mat_mul
from popcore.ops.popops import common
from popcore.ops.popops.expr import Abs, Const, Equal, Gt, Gte, Lt, Select, Sqrt, _1, _2, _3, _4, _5
from popcore.program import Program, Sequence
from popcore.types import FLOAT, UNSIGNED_INT, DTypeLike, as_element_type

_NOTHING, _ONE = Const(0.0, FLOAT), Const(1.0, FLOAT)


def create_qr_factorization_matrices(graph: Graph, dtype: DTypeLike, m: int, n: int, name: str = "") -> tuple[Tensor, Tensor]:
    """A [m, n] and Q [m, m] for ``qr_factorization``, whole rows on each tile.

    Raises: ShapeError: fewer rows than columns. ElementTypeError: not FLOAT.
    """
    step = common.joined(name, "create_qr_factorization_matrices")
    if as_element_type(dtype) is not FLOAT:
        raise ElementTypeError(f"{step} of {as_element_type(dtype)!r}", "FLOAT")
    if m < n:
        raise ShapeError(f"{step}: {m} rows and {n} columns", "at least as many rows as columns")
    return _by_rows(graph, m, n, common.joined(name, "a")), _by_rows(graph, m, m, common.joined(name, "q"))


def qr_factorization(graph: Graph, a: Tensor, q: Tensor, prog: Sequence, name: str = "") -> None:
    """``a`` [m, n], m >= n, becomes R, upper triangular, and ``q`` [m, m], which has to hold the identity, becomes orthogonal: a = Q R.

    By reflections, as Householder has them; diagonal elements of R may be negative. Sums are FLOAT.
    Raises: ShapeError, ElementTypeError, GraphError: other tensors, or such as cannot be written.
    """
    step = common.joined(name, "qr_factorization")
    _check(step, a, q)
    m, n = a.shape
    if q.shape != (m, m) or m < n:
        raise ShapeError(f"{step} of {a!r} and {q!r}", "[m, n] with m >= n, and [m, m]")
    rows = _numbers(graph, m, f"{step}/rows")

    def body(k: Tensor) -> Program:
        inside = Sequence()
        column = popops.dynamic_slice(graph, a, k, [1], [1], inside, step)[:, 0]
        at = k.reshape(())
        tail = popops.map(graph, Select(_1, _NOTHING, Gte(_2, _3)), [column, rows, at], inside, step)
        head = popops.map(graph, Select(_1, _NOTHING, Equal(_2, _3)), [column, rows, at], inside, step)
        sums: list[Tensor] = []
        both = [popops.SingleReduceOp(t, (0,), op) for t, op in ((tail, popops.Operation.SQUARE_ADD), (head, popops.Operation.ADD))]
        popops.reduce_many(graph, both, sums, inside, step)
        away = Select(-Sqrt(_3), Sqrt(_3), Lt(_4, _NOTHING))  # from 0 in the direction of the head, so that nothing cancels
        v = popops.map(graph, _1 + Select(away, _NOTHING, Equal(_2, _5)), [tail, rows, *sums, at], inside, step)
        half_square = popops.map(graph, _1 + Abs(_2) * Sqrt(_1), sums, inside, step)  # of v
        _reflect(graph, a, v, half_square, inside, step)
        _reflect(graph, q.transpose(), v, half_square, inside, step)
        return inside

    if m and n:
        prog.add(popops.counted_loop(graph, n, body, name=step))
        numbers = _numbers(graph, n, f"{step}/columns")
        popops.map_in_place(graph, Select(_1, _NOTHING, Gte(_3, _2)), [a, rows.expand([1]), numbers], prog, step)


def lu_factorization(graph: Graph, input_: Tensor, prog: Sequence, name: str = "") -> tuple[Tensor, Tensor]:
    """L [m, m], lower triangular with a diagonal of 1, and U [m, n], upper triangular, with ``input_`` [m, n] = L U.

    Rows are not exchanged: a 0 that becomes a pivot gives infinity and NaN. Sums are FLOAT.
    Raises: ShapeError, ElementTypeError: other tensors.
    """
    step = common.joined(name, "lu_factorization")
    _check(step, input_)
    m, n = input_.shape
    lower, upper = _by_rows(graph, m, m, f"{step}/lower"), _by_rows(graph, m, n, f"{step}/upper")
    rows, across, columns = (_numbers(graph, size, f"{step}/{what}") for size, what in ((m, "rows"), (m, "across"), (n, "columns")))
    popops.map_with_output(graph, Select(_ONE, _NOTHING, Equal(_1, _2)), [rows.expand([1]), across], lower, prog, step)
    common.copy(prog, input_, upper, step)

    def body(k: Tensor) -> Program:
        inside = Sequence()
        at = k.reshape(())
        column = popops.dynamic_slice(graph, upper, k, [1], [1], inside, step)
        row = popops.dynamic_slice(graph, upper, k, [0], [1], inside, step)
        pivot = popops.dynamic_slice(graph, row, k, [1], [1], inside, step).reshape(())
        share = popops.map(graph, Select(_1 / _2, _NOTHING, Gt(_3, _4)), [column, pivot, rows.expand([1]), at], inside, step)
        popops.map_in_place(graph, _1 - _2 * _3, [upper, share, row], inside, step)
        popops.map_in_place(graph, Select(_1 + _2, _1, Equal(_3, _4)), [lower, share, across, at], inside, step)
        return inside

    if min(m - 1, n) > 0:
        prog.add(popops.counted_loop(graph, min(m - 1, n), body, name=step))
    popops.map_in_place(graph, Select(_1, _NOTHING, Gte(_3, _2)), [upper, rows.expand([1]), columns], prog, step)
    return lower, upper


def _reflect(graph: Graph, t: Tensor, v: Tensor, half_square: Tensor, prog: Sequence, step: str) -> None:
    """t -= v (v^T t) / half_square, unless that is 0."""
    along = mat_mul(graph, v.expand([0]), t, prog, name=step)
    share = Select(_2 * _3 / _4, _NOTHING, Gt(_4, _NOTHING))
    popops.map_in_place(graph, _1 - share, [t, v.expand([1]), along, half_square], prog, step)


def _by_rows(graph: Graph, m: int, n: int, name: str) -> Tensor:
    made = graph.add_variable(FLOAT, (m, n), name=name)
    poputil.map_tensor_linearly(graph, made, max(n, 1), max(n, 1))
    return made


def _numbers(graph: Graph, n: int, name: str) -> Tensor:
    made = graph.add_constant(UNSIGNED_INT, (n,), np.arange(n, dtype=np.uint32), name=name)
    poputil.map_tensor_linearly(graph, made)
    return made


def _check(step: str, *tensors: Tensor) -> None:
    common.require_tensors(step, *tensors)
    for t in tensors:
        if t.rank != 2:
            raise ShapeError(f"{step} of {t!r}", "a matrix")
        if t.dtype is not FLOAT:
            raise ElementTypeError(f"{step} of {t!r}", "FLOAT; cast it")
        if len(tensors) > 1:
            common.require_writeable(step, t)
