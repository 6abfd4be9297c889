"""Products with a sparse matrix whose pattern arrives at run time, in buckets of a fixed size: one for each part of rows and columns.

A bucket is a vector of words: how many blocks it has, then row and column of each within the part; and its values in the same order. The host fills
buckets (``dynamic.Partitioner``) and may do so anew before any run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from popcore.codelets.mat_mul import MatMulSumParts
from popcore.codelets.operations import FLOAT_TYPE
from popcore.codelets.sparse import COLUMN, ROW_BITS, SparseBucket, SparseBucketGradW, SparseBucketSlice, SparseBucketUpdateAdd
from popcore.errors import GraphError, ShapeError
from popcore.graph import Graph, Tensor
from popcore.ops.poplin.finish import finish
from popcore.ops.poplin.planned import typed
from popcore.ops.popops import common
from popcore.ops.popsparse import dense
from popcore.ops.popsparse.formats import Blocks
from popcore.ops.popsparse.plan import Plan, oversize_for, product_cycles
from popcore.program import Execute, Sequence
from popcore.target import Target
from popcore.types import FLOAT, UNSIGNED_INT, Array, DTypeLike, ElementType


@dataclass(frozen=True, eq=False)
class SparseTensor:
    """A sparse matrix on the device: meta-information and values of all buckets, each a vector, as ``Partitioner`` gives them; and the plan they follow."""

    meta_info: Tensor
    nz_values: Tensor
    plan: Plan

    def get_meta_info_tensor(self) -> Tensor:
        return self.meta_info

    def get_nz_values_tensor(self) -> Tensor:
        return self.nz_values


def create(graph: Graph, dtype: ElementType, plan: Plan, name: str) -> SparseTensor:
    """Buckets, each on its tile.

    Raises: ShapeError: parts with more rows or columns than an entry can name.
    """
    for cuts, side in ((plan.m_cuts, plan.sides[0]), (plan.k_cuts, plan.sides[1])):
        widest = int(np.diff(cuts).max(initial=0)) // side
        if widest >= 1 << ROW_BITS:
            raise ShapeError(f"{name}: {widest} rows or columns of blocks on one tile", f"fewer than {1 << ROW_BITS}: a larger device, or larger blocks")
    meta = _create_vector(graph, UNSIGNED_INT, plan, _words(plan), f"{name}/meta info")
    return SparseTensor(meta, _create_vector(graph, dtype, plan, plan.capacity * plan.area, f"{name}/values"), plan)


def fill(plan: Plan, blocks: Blocks, planned: int, dtype: ElementType, what: str) -> tuple[Array, Array]:
    """Meta-information and values of a matrix. ``planned``: blocks that there is room for in all.

    Raises: ShapeError: a part with more blocks than its bucket holds; the amounts, and what proportion would do.
    """
    h, w = plan.sides
    i = np.searchsorted(plan.m_cuts // h, blocks.rows, "right") - 1
    q = np.searchsorted(plan.k_cuts // w, blocks.columns, "right") - 1
    bucket = i * plan.k_parts + q
    count = np.bincount(bucket, minlength=plan.buckets)
    fullest = int(count.argmax())
    if int(count[fullest]) > plan.capacity:
        over, proportion = int((count > plan.capacity).sum()), oversize_for(planned / plan.buckets, int(count[fullest]))
        row, column = fullest // plan.k_parts, fullest % plan.k_parts
        raise ShapeError(
            f"{what}: rows {plan.m_cuts[row]} to {plan.m_cuts[row + 1]}, columns {plan.k_cuts[column]} to {plan.k_cuts[column + 1]} have {count[fullest]} non-zero blocks,"
            f" a bucket has room for {plan.capacity} ({over} of {plan.buckets} buckets are too full)",
            f"the option metaInfoBucketOversizeProportion of {proportion:g} or more, when the tensor is created and here",
        )
    order = np.argsort(bucket, kind="stable")
    sorted_bucket = bucket[order]
    place = np.arange(order.size) - (np.cumsum(count) - count)[sorted_bucket]
    meta = np.zeros((plan.buckets, _words(plan)), np.uint32)
    meta[:, 0] = count
    rows, columns = blocks.rows[order] - (plan.m_cuts // h)[i[order]], blocks.columns[order] - (plan.k_cuts // w)[q[order]]
    meta[sorted_bucket, 1 + place] = rows << ROW_BITS | columns
    values = np.zeros((plan.buckets, plan.capacity, h, w), dtype.numpy)
    values[sorted_bucket, place] = blocks.values[order]
    return meta.reshape(-1), values.reshape(-1)


def empty_out(plan: Plan, meta_info: Array, nz_values: Array, what: str) -> Blocks:
    """The matrix of meta-information and values: the opposite of ``fill``."""
    h, w = plan.sides
    meta, given = np.asarray(meta_info), np.asarray(nz_values)
    if meta.size != plan.buckets * _words(plan) or given.size != plan.buckets * plan.capacity * plan.area:
        raise ShapeError(
            f"{what}: {meta.size} words and {given.size} values", f"{plan.buckets * _words(plan)} and {plan.buckets * plan.capacity * plan.area}, as planned"
        )
    meta, values = meta.reshape(plan.buckets, -1).astype(np.int64), given.reshape(plan.buckets, plan.capacity, h, w)
    bucket, place = np.nonzero(np.arange(plan.capacity)[None] < meta[:, :1])
    word = meta[bucket, 1 + place]
    rows = (word >> ROW_BITS) + (plan.m_cuts // h)[bucket // plan.k_parts]
    columns = (word & COLUMN) + (plan.k_cuts // w)[bucket % plan.k_parts]
    order = np.lexsort((columns, rows))
    return Blocks((plan.sizes.m, plan.sizes.k), plan.sides, rows[order], columns[order], values[bucket, place][order])


def create_dense(graph: Graph, dtype: ElementType, plan: Plan, n: int, name: str) -> Tensor:
    """[k, n] on the tiles that multiply by it."""
    return dense.create(graph, dtype, dense.parts_of(plan.k_cuts, plan.n_cuts(n)), _column_tiles(plan), name)


def multiply(graph: Graph, s: SparseTensor, x: Tensor, transposed: bool, prog: Sequence, name: str) -> Tensor:
    """``s @ x``, [m, n], or ``s.T @ x``, [k, n]."""
    p, n_cuts = s.plan, s.plan.n_cuts(x.shape[1])
    of_rows, of_columns = (p.m_cuts, _row_tiles(p)), (p.k_cuts, _column_tiles(p))
    (in_cuts, in_tiles), (out_cuts, out_tiles) = (of_rows, of_columns) if transposed else (of_columns, of_rows)
    result, parts = dense.parts_of(out_cuts, n_cuts), dense.parts_of(in_cuts, n_cuts)
    sums = dense.Sums(graph, result, out_tiles, x.dtype, name)
    i, q, j, tiles = _vertices(p, parts.widths[2])
    if not result.numel or not i.size:
        return sums.result[0]
    flat = dense.arranged(graph, x, parts, in_tiles, prog, f"{name}/dense")
    here, there = (i, q) if transposed else (q, i)
    fields = {
        **_bucket_fields(s, i, q),
        "transposed": int(transposed),
        "x": (flat, parts.start[0, here, j], parts.widths[1][here], parts.widths[2][j]),
        "y": sums.matrix(there, j, here),
    }
    cycles = product_cycles(graph.target, x.dtype, p.sides, result.widths[1][there], np.full(i.size, p.capacity), parts.widths[2][j], False)
    _add(graph, SparseBucket, x.dtype, fields, tiles, cycles, prog, f"{name}/multiply")
    return sums.finished(prog)


def grad_w(graph: Graph, meta_info: Tensor, p: Plan, dy: Tensor, x: Tensor, prog: Sequence, name: str) -> Tensor:
    """``dy @ x.T`` where a matrix has entries: values in the order of its own. ``dy`` is [m, n], ``x`` [k, n].

    Raises: ShapeError: meta-information of another plan.
    """
    common.require_tensors(name, meta_info)
    if meta_info.num_elements != p.buckets * _words(p) or meta_info.dtype is not UNSIGNED_INT:
        raise ShapeError(f"{name}: meta-information {meta_info!r}", f"{p.buckets * _words(p)} words: get_meta_info_tensor() of weights created alike")
    n_cuts = p.n_cuts(x.shape[1])
    rows, columns = dense.parts_of(p.m_cuts, n_cuts), dense.parts_of(p.k_cuts, n_cuts)
    made = _create_vector(graph, x.dtype, p, p.capacity * p.area, f"{name}/gradients")
    i, q, j, tiles = _vertices(p, np.maximum(rows.widths[2], 1))
    left = dense.arranged(graph, dy, rows, _row_tiles(p), prog, f"{name}/gradients")
    right = dense.arranged(graph, x, columns, _column_tiles(p), prog, f"{name}/dense")
    each, numel = p.capacity * p.area, made.num_elements
    direct = x.dtype is FLOAT and p.n_parts == 1
    out = made if direct else graph.add_variable(FLOAT, (p.n_parts * numel,), name=f"{name}/partials")
    begin = j * numel + (i * p.k_parts + q) * each
    if not direct:
        graph.map_intervals(out, begin, np.full(begin.size, each), tiles)
    fields = {
        "entries": _entries(meta_info.flatten(), p, i, q),
        "side": p.sides[0],
        "dy": (left, rows.start[0, i, j], rows.widths[1][i], rows.widths[2][j]),
        "x": (right, columns.start[0, q, j], columns.widths[1][q], columns.widths[2][j]),
        "dw": (out, begin, np.full(begin.size, each)),
    }
    cycles = product_cycles(graph.target, x.dtype, p.sides, rows.widths[1][i], np.full(i.size, p.capacity), rows.widths[2][j], False)
    _add(graph, SparseBucketGradW, x.dtype, fields, tiles, cycles, prog, f"{name}/multiply")
    if not direct:
        finish(graph, typed(MatMulSumParts, FLOAT_TYPE, made.dtype), out, p.n_parts, made, prog, f"{name}/sum")
    return made


def take_rows(graph: Graph, s: SparseTensor, indices: Tensor, prog: Sequence, name: str) -> Tensor:
    """Rows of the matrix, dense: [len(indices), k]; zeros for an index that is none."""
    p = s.plan
    i, q = (a.reshape(-1) for a in np.indices((p.m_parts, p.k_parts)))
    rows = np.array([0, indices.num_elements])
    result = dense.parts_of(rows, p.k_cuts)
    sums = dense.Sums(graph, result, p.bucket_tiles.T[None], s.nz_values.dtype, name)
    if not result.numel:
        return sums.result[0]
    fields = {**_bucket_fields(s, i, q), "indices": indices, "first": p.m_cuts[i].astype(np.uint32), "out": sums.matrix(np.zeros_like(i), q, i)}
    _add(
        graph,
        SparseBucketSlice,
        s.nz_values.dtype,
        fields,
        p.bucket_tiles.reshape(-1),
        _look_up_cycles(graph.target, p, indices.num_elements, q),
        prog,
        f"{name}/slice",
    )
    return sums.finished(prog)


def add_rows(graph: Graph, s: SparseTensor, slices: Tensor, indices: Tensor, scale: Any, prog: Sequence, name: str) -> None:
    """Add ``scale * slices`` to rows of the matrix, where it has entries."""
    p = s.plan
    if not slices.num_elements:
        return
    i, q = (a.reshape(-1) for a in np.indices((p.m_parts, p.k_parts)))
    parts = dense.parts_of(np.array([0, indices.num_elements]), p.k_cuts)
    flat = dense.arranged(graph, slices, parts, p.bucket_tiles.T[None], prog, f"{name}/slices")
    zero = np.zeros_like(i)
    fields = {
        **_bucket_fields(s, i, q),
        "indices": indices,
        "first": p.m_cuts[i].astype(np.uint32),
        "scale": scale,
        "slices": (flat, parts.start[0, zero, q], parts.widths[1][zero], parts.widths[2][q]),
    }
    _add(
        graph,
        SparseBucketUpdateAdd,
        s.nz_values.dtype,
        fields,
        p.bucket_tiles.reshape(-1),
        _look_up_cycles(graph.target, p, indices.num_elements, q),
        prog,
        f"{name}/update",
    )


def check(t: Any, what: str) -> SparseTensor:
    """Raises: GraphError: no sparse tensor."""
    if not isinstance(t, SparseTensor):
        raise GraphError(f"{what}: the sparse operand is {t!r:.60}", "what a create_ function of popsparse.dynamic gave")
    return t


def create_indices(graph: Graph, plan: Plan, count: int, name: str) -> Tensor:
    """A vector that all tiles of the plan read, shared out to them."""
    made = graph.add_variable(UNSIGNED_INT, (count,), name=name)
    if count:
        at = np.arange(count)
        graph.map_intervals(made, at, np.ones(count, np.int64), at * plan.m_parts // count * plan.k_parts * plan.n_parts)
    return made


def _add(graph: Graph, codelet: Any, dtype: ElementType, fields: dict[str, Any], tiles: Array, cycles: Array, prog: Sequence, name: str) -> None:
    step = graph.add_compute_set(name)
    graph.add_vertices(step, typed(codelet, dtype), fields, tiles, -(-cycles // graph.target.num_worker_contexts))
    prog.add(Execute(step))


def _words(plan: Plan) -> int:
    return 1 + plan.capacity


def _vertices(plan: Plan, widths: Array) -> tuple[Array, Array, Array, Array]:
    """Part of rows, columns and batch of each vertex, and its tile; of parts of the batch that are there."""
    i, q, j = (a.reshape(-1) for a in np.indices((plan.m_parts, plan.k_parts, plan.n_parts)))
    some = widths[j] > 0
    return i[some], q[some], j[some], plan.tile(i[some], q[some], j[some])


def _create_vector(graph: Graph, dtype: DTypeLike, plan: Plan, each: int, name: str) -> Tensor:
    """So many elements for each bucket, on its tile."""
    made = graph.add_variable(dtype, (plan.buckets * each,), name=name)
    graph.map_intervals(made, np.arange(plan.buckets) * each, np.full(plan.buckets, each), plan.bucket_tiles.reshape(-1))
    return made


def _row_tiles(plan: Plan) -> Array:
    """int64[m parts, n parts, k parts]"""
    i, q, j = np.indices((plan.m_parts, plan.k_parts, plan.n_parts))
    return np.moveaxis(plan.tile(i, q, j), 1, 2)


def _column_tiles(plan: Plan) -> Array:
    """int64[k parts, n parts, m parts]"""
    i, q, j = np.indices((plan.m_parts, plan.k_parts, plan.n_parts))
    return np.moveaxis(plan.tile(i, q, j), 0, 2)


def _entries(meta_info: Tensor, plan: Plan, i: Array, q: Array) -> tuple[Tensor, Array, Array]:
    each = _words(plan)
    return meta_info, (i * plan.k_parts + q) * each, np.full(i.size, each)


def _bucket_fields(s: SparseTensor, i: Array, q: Array) -> dict[str, Any]:
    each = s.plan.capacity * s.plan.area
    return {
        "entries": _entries(s.meta_info, s.plan, i, q),
        "values": (s.nz_values, (i * s.plan.k_parts + q) * each, np.full(i.size, each)),
        "side": s.plan.sides[0],
    }


def _look_up_cycles(target: Target, plan: Plan, indices: int, q: Array) -> Array:
    """Each index is looked for among the rows of a bucket, what is found is copied; the loop over entries of PopLibs' product."""
    made: Array = np.full(q.size, 40 + plan.capacity * (10 + indices * 3 + plan.area)) + np.diff(plan.k_cuts)[q] * indices // 2
    return made
