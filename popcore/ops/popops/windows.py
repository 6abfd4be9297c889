"""The general forms of gather and scatter, whose windows begin where rows of a tensor of indices say. As XLA defines them."""

from __future__ import annotations

import math
from collections.abc import Callable
from collections.abc import Sequence as Items

import numpy as np

from popcore.errors import ElementTypeError, ShapeError
from popcore.graph import Graph, Tensor
from popcore.ops.popops import common, embedding
from popcore.ops.popops.expr import And, Const, Expr, Lt, PlaceHolder, Select
from popcore.ops.popops.fill import zero
from popcore.ops.popops.lookups import multi_slice, multi_update
from popcore.ops.popops.loop import counted_loop
from popcore.ops.popops.mapping import map as map_elements
from popcore.ops.popops.slicing import dynamic_slice, dynamic_update
from popcore.ops.poputil import map_tensor_linearly
from popcore.program import Sequence
from popcore.types import UNSIGNED_INT

UpdateComputation = Callable[[Graph, Tensor, Tensor, Sequence], Tensor]
"""Given what a window holds and what updates it, of one shape, adds what gives the new window."""

_LARGE = 64 << 10  # bytes of a table beyond which its rows are spread over tiles too


def index_rows(indices: Tensor, index_vector_dim: int, step: str) -> Tensor:
    """(windows, dimensions) of UNSIGNED_INT; with ``index_vector_dim`` the rank of ``indices`` each of its elements is a row.

    Raises: ElementTypeError, ShapeError.
    """
    if not indices.dtype.is_integral or indices.dtype.nbytes != 4:
        raise ElementTypeError(f"{step} by {indices!r}", "UNSIGNED_INT or INT indices")
    if not 0 <= index_vector_dim <= indices.rank:
        raise ShapeError(f"{step} by {indices!r} with index vectors along dimension {index_vector_dim}", f"0 to {indices.rank}")
    rows = indices.reinterpret(UNSIGNED_INT)
    rows = rows.expand([rows.rank]) if index_vector_dim == indices.rank else rows.dim_roll(index_vector_dim, indices.rank - 1)
    return rows.flatten(0, rows.rank - 1)


def read_windows(
    graph: Graph, t: Tensor, rows: Tensor, dims: Items[int], sizes: Items[int], prog: Sequence, options: common.Options | None, step: str
) -> Tensor:
    """(windows, *sizes): of ``t`` from ``rows[i]`` along ``dims`` on."""
    if _single(t, dims, sizes):
        table = _table(t, dims)
        at = _linear(graph, rows, [t.shape[d] for d in dims], prog, step)
        found = multi_slice(graph, table, at.expand([1]), [0], [1], prog, _plan_for(graph, table, at), options, step)
        rest = [n for d, n in enumerate(t.shape) if d not in dims]
        made = found.reshape((rows.shape[0], *(1 for _ in dims), *rest))
        return made.dim_shuffle([0, *(1 + p for p in _places(t.rank, dims))])
    made = graph.add_variable(t.dtype, (rows.shape[0], *sizes), name=f"{step}/windows")
    map_tensor_linearly(graph, made)
    zero(graph, made, prog, step)

    def body(counter: Tensor) -> Sequence:
        inner = Sequence()
        at = dynamic_slice(graph, rows, counter.reshape((1,)), [0], [1], inner, step).flatten()
        part = dynamic_slice(graph, t, at, dims, [sizes[d] for d in dims], inner, step, options)
        for d, n in enumerate(sizes):
            part = part.slice(0, n, d)
        dynamic_update(graph, made, part.expand([0]), counter.reshape((1,)), [0], [1], inner, step)
        return inner

    if made.num_elements:
        prog.add(counted_loop(graph, rows.shape[0], body, name=step))
    return made


def write_windows(
    graph: Graph, t: Tensor, rows: Tensor, updates: Tensor, dims: Items[int], compute: UpdateComputation | None, prog: Sequence,
    options: common.Options | None, step: str,
) -> None:  # fmt: skip
    """Windows ``updates[i]`` of ``t`` from ``rows[i]`` along ``dims`` on, 0 along the others, are written, or what ``compute`` makes of them."""
    if not updates.num_elements:
        return
    sizes = updates.shape[1:]
    if compute is None and _single(t, dims, sizes):
        table = _table(t, dims)
        at = _linear(graph, rows, [t.shape[d] for d in dims], prog, step)
        order = [*dims, *(d for d in range(t.rank) if d not in dims)]
        s = updates.dim_shuffle([0, *(1 + d for d in order)]).reshape((updates.shape[0], 1, table.shape[1]))
        multi_update(graph, table, s, at.expand([1]), [0], [1], prog, _plan_for(graph, table, at), options, step)
        return
    base = t
    for d, n in enumerate(sizes):
        base = base if d in dims else base.slice(0, n, d)

    def body(counter: Tensor) -> Sequence:
        inner = Sequence()
        number = counter.reshape((1,))
        at = dynamic_slice(graph, rows, number, [0], [1], inner, step).flatten()
        new = dynamic_slice(graph, updates, number, [0], [1], inner, step)[0]
        along = [sizes[d] for d in dims]
        if compute is not None:
            new = compute(graph, dynamic_slice(graph, base, at, dims, along, inner, step, options), new, inner)
        dynamic_update(graph, base, new, at, dims, along, inner, step, options)
        return inner

    prog.add(counted_loop(graph, rows.shape[0], body, name=step))


def _single(t: Tensor, dims: Items[int], sizes: Items[int]) -> bool:
    """Whether windows are one entry along ``dims`` and whole along the others: rows of a table."""
    return all(n == (1 if d in dims else t.shape[d]) for d, n in enumerate(sizes)) and t.num_elements > 0


def _table(t: Tensor, dims: Items[int]) -> Tensor:
    """(entries of ``dims``, the rest)"""
    order = [*dims, *(d for d in range(t.rank) if d not in dims)]
    rows = math.prod(t.shape[d] for d in dims)
    return t.dim_shuffle(order).reshape((rows, t.num_elements // rows))


def _places(rank: int, dims: Items[int]) -> list[int]:
    """Where each dimension is once ``dims`` are in front."""
    order = [*dims, *(d for d in range(rank) if d not in dims)]
    return [order.index(d) for d in range(rank)]


def _linear(graph: Graph, rows: Tensor, shape: list[int], prog: Sequence, step: str) -> Tensor:
    """(windows,): rows of indices as places in a table of ``shape``; its size for those outside."""
    if len(shape) == 1:
        return rows.flatten()
    if not shape:
        made = graph.add_constant(UNSIGNED_INT, (rows.shape[0],), 0, name=f"{step}/rows")
        map_tensor_linearly(graph, made)
        return made
    at: Expr = PlaceHolder(1)
    inside: Expr = Lt(PlaceHolder(1), Const(shape[0], UNSIGNED_INT))
    for k in range(1, len(shape)):
        at = at * Const(shape[k], UNSIGNED_INT) + PlaceHolder(k + 1)
        inside = And(inside, Lt(PlaceHolder(k + 1), Const(shape[k], UNSIGNED_INT)))
    columns = [rows[:, k] for k in range(len(shape))]
    return map_elements(graph, Select(at, Const(math.prod(shape), UNSIGNED_INT), inside), columns, prog, step)


def _plan_for(graph: Graph, table: Tensor, at: Tensor) -> embedding.SlicePlan | None:
    """A plan where one column of the table, which would all be brought to the tile of its first row, is large."""
    if table.shape[0] * table.dtype.nbytes * graph.target.get_vector_width(table.dtype) < _LARGE or not at.num_elements:
        return None
    tile = graph.tile_intervals(table.slice(0, 1, 1))[2]
    if np.unique(tile).size <= 1:  # its rows are all there
        return None
    return embedding.plan(graph, table.dtype, table.shape[0], table.shape[1], [at.shape[0]])
