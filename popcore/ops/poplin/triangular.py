"""Triangular systems, one or many at once, in blocks. After ``poplin/TriangularSolve.hpp``.

Blocks of the diagonal are solved by vertices, a share of the right sides each; what they leave for the rest are matrix products.
Options of all of them: ``blockSize`` (64: rows of a block), and those of ``mat_mul``.
"""

from __future__ import annotations

from collections.abc import Sequence as Items
from typing import Any

import numpy as np

from popcore.codelets.solve import SolveRows
from popcore.errors import ElementTypeError, OptionError, ShapeError
from popcore.graph import Graph, Tensor
from popcore.graph.tiles import linear_intervals
from popcore.ops import popops, poputil
from popcore.ops.poplin.mat_mul import create_mat_mul_grouped_input_lhs, create_mat_mul_grouped_input_rhs, mat_mul_grouped_acc
from popcore.ops.poplin.params import Options, floating
from popcore.ops.poplin.planned import typed
from popcore.ops.popops import common
from popcore.ops.popops.expr import Cast, Const, Equal, Expr, Lte, PlaceHolder, Select
from popcore.program import Copy, Execute, Sequence
from popcore.types import FLOAT, UNSIGNED_INT, DTypeLike, ElementType

BLOCK_SIZE = 64

Shape = Items[int]


def create_triangular_solve_input_lhs(
    graph: Graph, input_type: DTypeLike, output_type: DTypeLike, a_shape: Shape, b_shape: Shape, left_side: bool, name: str = "", options: Options = None
) -> Tensor:
    """A tensor of ``a_shape`` ([..., n, n]) spread over tiles for ``triangular_solve`` with a ``b_shape``.

    Raises: ShapeError, ElementTypeError, OptionError
    """
    return _created(graph, input_type, output_type, a_shape, b_shape, left_side, True, name, options)


def create_triangular_solve_input_rhs(
    graph: Graph, input_type: DTypeLike, output_type: DTypeLike, a_shape: Shape, b_shape: Shape, left_side: bool, name: str = "", options: Options = None
) -> Tensor:
    """The same for the right sides, of ``b_shape``."""
    return _created(graph, input_type, output_type, a_shape, b_shape, left_side, False, name, options)


def triangular_mask(graph: Graph, a: Tensor, lower: bool, unit_diagonal: bool, prog: Sequence, name: str = "") -> Tensor:
    """A new tensor of the lower or upper triangles of ``a`` [..., n, n], 0 elsewhere; with ``unit_diagonal`` 1 on the diagonal."""
    step = common.joined(name, "triangular_mask")
    common.require_tensors(step, a)
    e, operands = _masked(graph, step, a, lower, unit_diagonal)
    return popops.map(graph, e, operands, prog, step)


def mask_in_place(graph: Graph, a: Tensor, lower: bool, prog: Sequence, step: str) -> None:
    """0 outside of the triangle."""
    e, operands = _masked(graph, step, a, lower, False)
    popops.map_in_place(graph, e, operands, prog, step)


def triangular_solve(
    graph: Graph, a: Tensor, b: Tensor, left_side: bool, lower: bool, unit_diagonal: bool, prog: Sequence, name: str = "", options: Options = None
) -> Tensor:
    """A new tensor X with ``a X = b``; with ``left_side`` False, ``X a = b``.

    Args:
        a: [..., n, n]. Only its lower or upper triangle is read, and with ``unit_diagonal`` not its diagonal, which counts as 1.
        b: [..., n, k], or [..., k, n] if ``left_side`` is False.

    Each element is a sum in FLOAT within a block, rounded to the type of ``b`` after each block. A 0 on the diagonal gives infinity or NaN.
    Raises: ShapeError, ElementTypeError, OptionError
    """
    step = common.joined(name, "triangular_solve")
    common.require_tensors(step, a, b)
    _check(step, a.shape, b.shape, left_side)
    if a.dtype is not b.dtype:
        raise ElementTypeError(f"{step} of {a!r} and {b!r}", "cast one of them")
    floating(a.dtype, step)
    block, rest = block_size(step, options)
    out = poputil.duplicate(graph, b, prog, f"{step}/out")
    if out.num_elements:
        whole, x = grouped(a), grouped(out)
        if not left_side:  # a^T X^T = b^T
            whole, x, lower = whole.dim_shuffle([0, 2, 1]), x.dim_shuffle([0, 2, 1]), not lower
        if not lower:  # from the last row up
            whole, x = whole.reverse(1).reverse(2), x.reverse(1)
        solve_lower(graph, whole, x, unit_diagonal, prog, step, block, rest)
    return out


def solve_lower(graph: Graph, a: Tensor, x: Tensor, unit: bool, prog: Sequence, step: str, block: int, options: dict[str, Any]) -> None:
    """``x`` [groups, n, k] becomes y with ``a y = x``, for the lower triangles of ``a`` [groups, n, n]."""
    n = a.shape[1]
    if n <= block:
        _solve_block(graph, a, x, unit, prog, step)
        return
    cut = half(n, block)
    solve_lower(graph, a[:, :cut, :cut], x[:, :cut], unit, prog, step, block, options)
    mat_mul_grouped_acc(graph, x[:, cut:], -1.0, a[:, cut:, :cut], x[:, :cut], prog, step, options)
    solve_lower(graph, a[:, cut:, cut:], x[:, cut:], unit, prog, step, block, options)


def half(n: int, block: int) -> int:
    """Where n rows are cut in two: whole blocks above, about as many as below."""
    return (n // block + 1) // 2 * block


def grouped(t: Tensor) -> Tensor:
    """[..., m, n] as [groups, m, n]"""
    return t.flatten(0, t.rank - 2) if t.rank > 2 else t.expand([0])


def block_size(step: str, options: Options) -> tuple[int, dict[str, Any]]:
    """The option ``blockSize``, and the other options. Raises: OptionError"""
    rest = dict(options or {})
    given = rest.pop("blockSize", BLOCK_SIZE)
    if not str(given).isdecimal() or int(given) < 1:
        raise OptionError(f"option 'blockSize' of {step} is {given!r}", "a whole number above 0")
    return int(given), rest


def arranged(graph: Graph, t: Tensor, tiles: np.ndarray[Any, Any], prog: Sequence, name: str) -> Tensor:
    """A copy of ``t`` [groups, rows, columns] as a vector in that order, group by group on ``tiles``."""
    made = graph.add_variable(t.dtype, t.shape, name=name)
    each = t.num_elements // t.shape[0]
    graph.map_intervals(made, np.arange(t.shape[0]) * each, np.full(t.shape[0], each), tiles)
    prog.add(Copy(t, made, name=name))
    return made


def _solve_block(graph: Graph, a: Tensor, x: Tensor, unit: bool, prog: Sequence, step: str) -> None:
    """The right sides, transposed so that each is one run, in shares over the tiles; then back."""
    groups, n, k = x.shape
    rows = graph.add_variable(x.dtype, (groups, k, n), name=f"{step}/right_sides")
    begin, _, tile = linear_intervals(groups * k, graph.target.num_tiles * graph.target.num_worker_contexts, 1, 1)
    first = np.unique(np.concatenate([begin, np.arange(groups) * k]))  # a share is of one group
    count = np.diff(first, append=groups * k)
    tile = tile[np.searchsorted(begin, first, "right") - 1] // graph.target.num_worker_contexts
    graph.map_intervals(rows, first * n, count * n, tile)
    kept = arranged(graph, a, np.arange(groups) % graph.target.num_tiles, prog, f"{step}/block")
    there = rows.dim_shuffle([0, 2, 1])
    prog.add(Copy(x, there, name=f"{step}/right_sides"))
    cs = graph.add_compute_set(f"{step}/solve")
    size = np.full(first.size, n)
    connected = {"a": (kept.flatten(), first // k * n * n, size, size), "x": (rows.flatten(), first * n, count, size), "unit": unit}
    graph.add_vertices(cs, typed(SolveRows, x.dtype), connected, tile, count * _solve_cycles(x.dtype, n))
    prog.add(Sequence(Execute(cs, name=f"{step}/solve"), Copy(there, x, name=f"{step}/solution")))


def _solve_cycles(dtype: ElementType, n: int) -> int:
    """Of a right side: PopLibs' ``TriangularSolve`` (lib/poplin/poplinCycleEstimators.cpp, lower)."""
    return max(3 * n * n // 2 + 180 * n - 126 if dtype is FLOAT else 3 * n * n // 4 + 318 * n - 150, 30)


def _masked(graph: Graph, step: str, a: Tensor, lower: bool, unit: bool) -> tuple[Expr, list[Tensor]]:
    if a.rank < 2 or a.shape[-1] != a.shape[-2]:
        raise ShapeError(f"{step} of {a!r}", "[..., n, n]")
    floating(a.dtype, step)
    n = a.shape[-1]
    numbers = graph.add_constant(UNSIGNED_INT, (n,), np.arange(n, dtype=np.uint32), name=f"{step}/numbers")
    poputil.map_tensor_linearly(graph, numbers)
    row, column = PlaceHolder(2), PlaceHolder(3)
    inside = Select(PlaceHolder(1), Cast(Const(0.0), a.dtype), Lte(column, row) if lower else Lte(row, column))
    return Select(Cast(Const(1.0), a.dtype), inside, Equal(row, column)) if unit else inside, [a, numbers.expand([1]), numbers]


def _check(step: str, a: Shape, b: Shape, left_side: bool) -> None:
    a, b = tuple(a), tuple(b)
    if len(a) < 2 or len(a) != len(b) or a[-1] != a[-2] or a[:-2] != b[:-2] or b[-2 if left_side else -1] != a[-1]:
        wanted = "[..., n, n] and [..., n, k]" if left_side else "[..., n, n] and [..., k, n]"
        raise ShapeError(f"{step} of shapes {list(a)} and {list(b)}", wanted)


def _created(
    graph: Graph, input_type: DTypeLike, output_type: DTypeLike, a_shape: Shape, b_shape: Shape, left_side: bool, first: bool, name: str, options: Options
) -> Tensor:
    step = common.joined(name, f"create_triangular_solve_input_{'lhs' if first else 'rhs'}")
    _check(step, a_shape, b_shape, left_side)
    floating(output_type, step)
    rest = block_size(step, options)[1]
    a, b = ((int(np.prod(s[:-2])), *s[-2:]) for s in (tuple(a_shape), tuple(b_shape)))
    shapes = (a, b) if left_side else (b, a)
    create = create_mat_mul_grouped_input_lhs if first is left_side else create_mat_mul_grouped_input_rhs
    return create(graph, input_type, *shapes, name, rest).reshape(tuple(a_shape if first else b_shape))
