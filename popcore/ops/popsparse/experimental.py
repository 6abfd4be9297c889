"""popsparse::experimental: matrices of large blocks, some of which are zero. After ``popsparse/experimental/BlockSparseMatMul.hpp`` and ``BlockSparse.hpp``.

A mask says which blocks there are: a byte for each, rows one after the other, groups too. The tensor of such a matrix has a row for each block that is there, in that
order, with the block's elements row by row.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence as Items
from dataclasses import dataclass
from typing import Any

import numpy as np

from popcore.codelets.block_sparse import ALL, NOT_ABOVE, NOT_BELOW, BlockSoftmax, BlockSoftmaxGrad
from popcore.codelets.mat_mul import MatMulBlock, MatMulHalfBlock
from popcore.errors import ElementTypeError, GraphError, OptionError, ShapeError
from popcore.graph import Graph, Tensor, concat
from popcore.ops.poplin.cost import product_cycles
from popcore.ops.poplin.planned import typed
from popcore.ops.popops import common
from popcore.ops.popops.cast import cast
from popcore.ops.popops.expr import Const, PlaceHolder, Select
from popcore.ops.popops.mapping import map_in_place
from popcore.ops.popsparse import dense, known
from popcore.ops.popsparse.formats import Blocks
from popcore.ops.popsparse.params import Settings, floating
from popcore.ops.poputil import map_tensor_linearly
from popcore.program import Execute, Sequence
from popcore.types import BOOL, FLOAT, UNSIGNED_INT, Array, DTypeLike

__all__ = [
    "BSMatMulParams", "SubBlockMask", "bs_mat_mul", "bs_softmax", "bs_softmax_grad", "bs_softmax_in_place", "create_bs_mat_mul_input_lhs",
    "create_bs_mat_mul_input_rhs",
]  # fmt: skip

_SETTINGS = Settings(0.6, 0.0)


class SubBlockMask(enum.Enum):
    """Elements of blocks that are taken for zero: none, those above the diagonal of the matrix, those below."""

    NONE = ALL
    ZERO_UPPER_TRIANGLE = NOT_ABOVE
    ZERO_LOWER_TRIANGLE = NOT_BELOW


@dataclass(frozen=True)
class BSMatMulParams:
    """Sizes, blocks and mask of a product ``[m, k] @ [k, n]`` with a block-sparse right operand, or result.

    Attributes:
        dim, block_size: Of m, k and n.
        sparsity: The mask, of all groups.
        rhs_need_transpose: Mask and blocks are those of the right operand before it is transposed; None where the result is sparse.
    """

    dim: tuple[int, int, int]
    block_size: tuple[int, int, int]
    sparsity: tuple[int, ...]
    rhs_need_transpose: bool | None
    in_data_type: DTypeLike
    out_data_type: DTypeLike
    partial_data_type: DTypeLike
    sub_block_mask: SubBlockMask = SubBlockMask.NONE
    num_groups_in: int = 1

    @staticmethod
    def for_dense_sparse(
        dim: Items[int], block_size: Items[int], rhs_sparsity: Items[int], rhs_need_transpose: bool, in_data_type: DTypeLike, out_data_type: DTypeLike,
        partial_data_type: DTypeLike, num_groups_in: int = 1,
    ) -> BSMatMulParams:  # fmt: skip
        """Dense times sparse: dense."""
        return _params(dim, block_size, rhs_sparsity, rhs_need_transpose, (in_data_type, out_data_type, partial_data_type), SubBlockMask.NONE, num_groups_in)

    @staticmethod
    def for_dense_dense(
        dim: Items[int], block_size: Items[int], res_sparsity: Items[int], in_data_type: DTypeLike, out_data_type: DTypeLike, partial_data_type: DTypeLike,
        sub_block_mask: SubBlockMask = SubBlockMask.NONE, num_groups_in: int = 1,
    ) -> BSMatMulParams:  # fmt: skip
        """Dense times dense: sparse, only the blocks of the mask are computed."""
        return _params(dim, block_size, res_sparsity, None, (in_data_type, out_data_type, partial_data_type), sub_block_mask, num_groups_in)

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of the mask of one group."""
        m, k, n = (d // b for d, b in zip(self.dim, self.block_size, strict=True))
        return (m, n) if self.rhs_need_transpose is None else (n, k) if self.rhs_need_transpose else (k, n)

    @property
    def sides(self) -> tuple[int, int]:
        """Of a block that the mask is about."""
        a, b, c = self.block_size
        return (a, c) if self.rhs_need_transpose is None else (c, b) if self.rhs_need_transpose else (b, c)

    def pattern(self, group: int) -> Blocks:
        """The blocks of a group that are there."""
        grid, sides = self.grid, self.sides
        mask = np.array(self.sparsity, bool).reshape(self.num_groups_in, *grid)[group]
        rows, columns = np.nonzero(mask)
        return Blocks((grid[0] * sides[0], grid[1] * sides[1]), sides, rows.astype(np.int64), columns.astype(np.int64), np.zeros((0, *sides)))


def create_bs_mat_mul_input_lhs(graph: Graph, bs_mat_mul: BSMatMulParams, name: str = "", options: common.Options | None = None) -> Tensor:
    """The left operand, dense: [groups * m, k]."""
    m, k, _ = bs_mat_mul.dim
    made = graph.add_variable(floating(bs_mat_mul.in_data_type, "bs_mat_mul"), (bs_mat_mul.num_groups_in * m, k), name=name or "lhs")
    map_tensor_linearly(graph, made)
    return made


def create_bs_mat_mul_input_rhs(graph: Graph, bs_mat_mul: BSMatMulParams, name: str = "", options: common.Options | None = None) -> Tensor:
    """The right operand: [blocks, elements of a block] where it is sparse, each block on the tile that multiplies by it; else [groups * k, n]."""
    element = floating(bs_mat_mul.in_data_type, "bs_mat_mul")
    if bs_mat_mul.rhs_need_transpose is None:
        made = graph.add_variable(element, (bs_mat_mul.num_groups_in * bs_mat_mul.dim[1], bs_mat_mul.dim[2]), name=name or "rhs")
        map_tensor_linearly(graph, made)
        return made
    area = bs_mat_mul.sides[0] * bs_mat_mul.sides[1]
    made = graph.add_variable(element, (sum(bs_mat_mul.sparsity), area), name=name or "rhs")
    first = 0
    for group in range(bs_mat_mul.num_groups_in):
        layout, order = _layout(graph, bs_mat_mul, group)
        p = layout.plan
        bucket = layout.bucket[layout.order]
        if order.size:
            graph.map_intervals(made, (first + order) * area, np.full(order.size, area), p.bucket_tiles.reshape(-1)[bucket])
        first += order.size
    return made


def bs_mat_mul(
    graph: Graph,
    bs_mat_mul_params: BSMatMulParams,
    prog: Sequence,
    lhs_matrix: Tensor,
    rhs_matrix: Tensor,
    options: common.Options | None = None,
    name: str = "",
) -> Tensor:
    """The product, groups one after the other along dimension 0: [groups * m, n], or the blocks of a sparse result. Summed in FLOAT.

    Options: ``numberOfPass`` (1): rows of the left operand, dealt with so many at a time; of a sparse right operand.
    """
    step, p = name or "bs_mat_mul", bs_mat_mul_params
    passes = _passes(options)
    common.require_tensors(step, lhs_matrix, rhs_matrix)
    groups, (m, k, n) = p.num_groups_in, p.dim
    right = (groups * k, n) if p.rhs_need_transpose is None else (sum(p.sparsity), p.sides[0] * p.sides[1])
    for t, shape in ((lhs_matrix, (groups * m, k)), (rhs_matrix, right)):
        if t.shape != shape:
            raise ShapeError(f"{step}: {t!r}", f"{list(shape)}")
        if t.dtype is not floating(p.in_data_type, step):
            raise ElementTypeError(f"{step}: {t!r} with parameters for {p.in_data_type!r}", "the type that was planned for")
    made, first = [], 0
    for group in range(groups):
        left = lhs_matrix[group * m : (group + 1) * m]
        if p.rhs_need_transpose is None:
            made.append(_sampled(graph, p, group, left, rhs_matrix[group * k : (group + 1) * k], prog, step))
            continue
        layout, order = _layout(graph, p, group)
        blocks = (first + order)[:, None] * right[1] + np.arange(right[1])
        values, first = rhs_matrix.flatten().select(blocks.reshape(-1)), first + order.size
        cuts = np.arange(passes + 1) * m // passes
        for low, high in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
            if high > low or m == 0:
                made.append(known.multiply(graph, layout, values, left[low:high].dim_shuffle([1, 0]), prog, step).dim_shuffle([1, 0]))
    result = concat(made)
    return result if result.dtype is floating(p.out_data_type, step) else cast(graph, result, p.out_data_type, prog, step)


def bs_softmax(
    graph: Graph, sparse_tensor: Tensor, dim: Items[int], block_size: Items[int], sparsity: Items[int], sub_block_mask_type: SubBlockMask, num_groups: int,
    prog: Sequence, name: str = "",
) -> Tensor:  # fmt: skip
    """Softmax along each row over the elements that are there: blocks in the mask, less the part of them that ``sub_block_mask_type`` takes out.

    Args:
        sparse_tensor: [blocks, elements of a block], FLOAT or HALF; computed in FLOAT.
        dim, block_size: Rows and columns, of the matrix of one group and of a block.
    """
    out = graph.clone(sparse_tensor, name or "bs_softmax")
    _softmax(graph, sparse_tensor, out, dim, block_size, sparsity, sub_block_mask_type, num_groups, prog, name or "bs_softmax")
    return out


def bs_softmax_in_place(
    graph: Graph, sparse_tensor: Tensor, dim: Items[int], block_size: Items[int], sparsity: Items[int], sub_block_mask_type: SubBlockMask, num_groups: int,
    prog: Sequence, name: str = "",
) -> None:  # fmt: skip
    """The same, written to its operand."""
    common.require_tensors("bs_softmax_in_place", sparse_tensor)
    common.require_writeable("bs_softmax_in_place", sparse_tensor)
    _softmax(graph, sparse_tensor, sparse_tensor, dim, block_size, sparsity, sub_block_mask_type, num_groups, prog, name or "bs_softmax_in_place")


def bs_softmax_grad(
    graph: Graph, sparse_out: Tensor, sparse_out_grad: Tensor, dim: Items[int], block_size: Items[int], sparsity: Items[int], prog: Sequence, name: str = ""
) -> Tensor:
    """The gradient of the operand of ``bs_softmax`` from its result and that one's gradient."""
    step = name or "bs_softmax_grad"
    rows = _rows(graph, dim, block_size, sparsity, len(sparsity) * block_size[0] * block_size[1] // max(1, dim[0] * dim[1]), step, sparse_out, sparse_out_grad)
    made = graph.clone(sparse_out, step)
    fields: dict[str, Any] = {"height": block_size[0], "width": block_size[1]}
    fields |= {field: (t, rows.first, rows.length) for field, t in (("out", sparse_out), ("grad", sparse_out_grad), ("result", made))}
    _add(graph, BlockSoftmaxGrad, sparse_out, fields, rows, 6, prog, step)
    return made


@dataclass(frozen=True, eq=False)
class _Rows:
    """The rows of blocks that have any: elements of the tensor, first row of elements, tile; and the columns of all blocks."""

    first: Array
    length: Array
    row: Array
    tile: Array
    columns: Array
    area: int


def _params(dim: Any, block_size: Any, sparsity: Any, flip: bool | None, types: Any, mask: SubBlockMask, groups: int) -> BSMatMulParams:
    sizes, blocks = tuple(int(d) for d in dim), tuple(int(b) for b in block_size)
    if len(sizes) != 3 or len(blocks) != 3 or min(blocks) < 1 or any(d % b for d, b in zip(sizes, blocks, strict=True)):
        raise ShapeError(f"BSMatMulParams: {list(dim)} in blocks of {list(block_size)}", "three sizes that blocks divide")
    made = BSMatMulParams(
        (sizes[0], sizes[1], sizes[2]),
        (blocks[0], blocks[1], blocks[2]),
        tuple(int(bool(s)) for s in sparsity),
        flip,
        types[0],
        types[1],
        types[2],
        mask,
        groups,
    )
    for dtype in types:
        floating(dtype, "BSMatMulParams")
    if len(made.sparsity) != groups * made.grid[0] * made.grid[1]:
        raise ShapeError(f"BSMatMulParams: a mask of {len(made.sparsity)}", f"{groups} groups of {made.grid[0]} times {made.grid[1]} blocks")
    return made


def _layout(graph: Graph, p: BSMatMulParams, group: int) -> tuple[known.Layout, Array]:
    """Of the transposed product, and which block each entry is."""
    pattern = p.pattern(group)
    own, order = (pattern, np.arange(pattern.rows.size)) if p.rhs_need_transpose else known.transposed(pattern)
    layout = known.layout_of(graph.target, own, not p.rhs_need_transpose, p.dim[0], floating(p.in_data_type, "bs_mat_mul"), _SETTINGS)
    return layout, order[layout.order]


def _passes(options: common.Options | None) -> int:
    given = dict(options or {})
    value = given.pop("numberOfPass", 1)
    if given:
        raise OptionError(f"bs_mat_mul has no option {next(iter(given))!r}", "numberOfPass")
    if not str(value).isdigit() or int(value) < 1:
        raise OptionError(f"option 'numberOfPass' of bs_mat_mul is {value!r}", "1 or more")
    return int(value)


def _sampled(graph: Graph, p: BSMatMulParams, group: int, a: Tensor, b: Tensor, prog: Sequence, step: str) -> Tensor:
    """The blocks of ``a @ b`` that are there, FLOAT, spread over the tiles."""
    pattern, tiles = p.pattern(group), graph.target.num_tiles
    count, (h, w), k = pattern.rows.size, p.sides, p.dim[1]
    at = np.arange(count)
    tile = at * min(count, tiles) // max(1, count)
    out = graph.add_variable(FLOAT, (count, h * w), name=f"{step}/blocks")
    if not count:
        return out
    graph.map_intervals(out, at * h * w, np.full(count, h * w), tile)
    everywhere = np.arange(min(count, tiles)).reshape(1, 1, -1)
    rows, columns = dense.parts_of(np.arange(p.dim[0] // h + 1) * h, np.array([0, k])), dense.parts_of(np.array([0, k]), np.arange(p.dim[2] // w + 1) * w)
    left = dense.arranged(graph, a, rows, np.broadcast_to(everywhere, (rows.widths[1].size, 1, everywhere.size)), prog, f"{step}/lhs")
    right = dense.arranged(graph, b, columns, np.broadcast_to(everywhere, (1, columns.widths[2].size, everywhere.size)), prog, f"{step}/rhs")
    high, deep, wide = np.full(count, h), np.full(count, k), np.full(count, w)
    fields = {
        "a": (left, rows.start[0, pattern.rows, 0], high, deep),
        "b": (right, columns.start[0, 0, pattern.columns], deep, wide),
        "c": (out, at * h * w, high, wide),
    }
    cs = graph.add_compute_set(f"{step}/multiply")
    cycles = -(-product_cycles(graph.target, a.dtype, high, deep, wide) // graph.target.num_worker_contexts)
    graph.add_vertices(cs, MatMulHalfBlock if a.dtype.kind == "half" else MatMulBlock, fields, tile, cycles)
    prog.add(Execute(cs))
    _mask(graph, p, pattern, out, prog, step)
    return out


def _mask(graph: Graph, p: BSMatMulParams, pattern: Blocks, out: Tensor, prog: Sequence, step: str) -> None:
    """Zero the elements that the mask within blocks takes out."""
    h, w = p.sides
    if p.sub_block_mask is SubBlockMask.NONE:
        return
    rows, columns = pattern.rows[:, None, None] * h + np.arange(h)[:, None], pattern.columns[:, None, None] * w + np.arange(w)
    taken = columns > rows if p.sub_block_mask is SubBlockMask.ZERO_UPPER_TRIANGLE else columns < rows
    touched = np.flatnonzero(taken.any(axis=(1, 2)))
    if touched.size:
        some = out.flatten().select((touched[:, None] * h * w + np.arange(h * w)).reshape(-1))
        which = graph.add_constant(BOOL, some.shape, taken[touched].reshape(-1), name=f"{step}/mask")
        map_tensor_linearly(graph, which)
        map_in_place(graph, Select(Const(0.0), PlaceHolder(1), PlaceHolder(2)), [some, which], prog, f"{step}/mask")


def _softmax(
    graph: Graph,
    x: Tensor,
    out: Tensor,
    dim: Items[int],
    block_size: Items[int],
    sparsity: Items[int],
    rule: SubBlockMask,
    groups: int,
    prog: Sequence,
    step: str,
) -> None:
    rows = _rows(graph, dim, block_size, sparsity, groups, step, x)
    if not rows.first.size:
        return
    blocks, length = rows.first // rows.area, rows.length // rows.area
    columns = graph.add_constant(UNSIGNED_INT, (rows.columns.size,), rows.columns.astype(np.uint32), name=f"{step}/columns")
    graph.map_intervals(columns, blocks, length, rows.tile)
    fields = {
        "x": (x, rows.first, rows.length),
        "columns": (columns, blocks, length),
        "row": rows.row.astype(np.uint32),
        "height": block_size[0],
        "width": block_size[1],
        "rule": rule.value,
        "out": (out, rows.first, rows.length),
    }
    _add(graph, BlockSoftmax, x, fields, rows, 14, prog, step)


def _add(graph: Graph, codelet: Any, like: Tensor, fields: dict[str, Any], rows: _Rows, each: int, prog: Sequence, step: str) -> None:
    """``each``: cycles of an element; a softmax has a maximum, two exponentials, a division."""
    if rows.first.size:
        cs = graph.add_compute_set(step)
        graph.add_vertices(cs, typed(codelet, like.dtype), fields, rows.tile, 40 + each * rows.length // graph.target.num_worker_contexts)
        prog.add(Execute(cs))


def _rows(graph: Graph, dim: Items[int], block_size: Items[int], sparsity: Items[int], groups: int, step: str, *tensors: Tensor) -> _Rows:
    (height, width), mask = block_size, np.array(sparsity, bool).reshape(-1)
    if dim[0] % height or dim[1] % width or mask.size != groups * (dim[0] // height) * (dim[1] // width):
        raise ShapeError(f"{step}: {groups} groups of {list(dim)} in blocks of {list(block_size)}, a mask of {mask.size}", "a byte for each block")
    area = height * width
    for t in tensors:
        if t.shape != (int(mask.sum()), area):
            raise ShapeError(f"{step}: {t!r}", f"[{int(mask.sum())}, {area}]: blocks, elements of a block")
        floating(t.dtype, step)
        if t.dtype is not tensors[0].dtype:
            raise GraphError(f"{step}: {tensors[0]!r} and {t!r}", "tensors of one type")
    grid = mask.reshape(groups * (dim[0] // height), dim[1] // width)
    count = grid.sum(axis=1)
    some = np.flatnonzero(count)
    first = (np.cumsum(count) - count)[some]
    tile = np.arange(some.size) * min(some.size, graph.target.num_tiles) // max(1, some.size)
    return _Rows(first * area, count[some] * area, some % max(1, dim[0] // height) * height, tile, np.nonzero(grid)[1] * width, area)
