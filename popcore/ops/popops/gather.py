"""gather: entries of one dimension, or windows of any shape, chosen by a tensor of indices. After ``popops/Gather.hpp``."""

from __future__ import annotations

from collections.abc import Sequence as Items
from typing import Any, overload

from popcore.errors import ElementTypeError, GraphError, ShapeError
from popcore.graph import Graph, Tensor
from popcore.ops.popops import common
from popcore.ops.popops.lookups import multi_slice
from popcore.ops.popops.slicing import create_sliceable_tensor
from popcore.ops.popops.windows import index_rows, read_windows
from popcore.program import Sequence
from popcore.types import UNSIGNED_INT, DTypeLike


def create_gather_input(
    graph: Graph, dtype: DTypeLike, shape: tuple[int, ...], axis: int | Items[int], start_index_map: Items[int] | None = None, name: str = ""
) -> Tensor:
    """A tensor of which ``gather`` along ``axis`` can take entries without moving them between tiles first.

    For the general form ``axis`` is the size of a window along each dimension, and ``start_index_map`` the dimensions along which it begins anywhere.
    """
    step = common.joined(name, "gather input")
    if isinstance(axis, int):
        return create_sliceable_tensor(graph, dtype, shape, [axis], [1], name=step)
    if start_index_map is None:
        raise GraphError(f"{step} with slice sizes {list(axis)} and no start_index_map", "an axis, or slice sizes and the dimensions that are indexed")
    return create_sliceable_tensor(graph, dtype, shape, start_index_map, [axis[d] for d in start_index_map], name=step)


@overload
def gather(graph: Graph, t: Tensor, indices: Tensor, axis: int, prog: Sequence, options: common.Options | None = None, /, name: str = "") -> Tensor: ...
@overload
def gather(
    graph: Graph, t: Tensor, indices: Tensor, index_vector_dim: int, offset_dims: Items[int], slice_sizes: Items[int], collapsed_slice_dims: Items[int],
    start_index_map: Items[int], prog: Sequence, options: common.Options | None = None, /, name: str = "",
) -> Tensor: ...  # fmt: skip
def gather(graph: Graph, t: Tensor, indices: Tensor, axis: int, *arguments: Any, options: common.Options | None = None, name: str = "") -> Tensor:
    """``(graph, t, indices, axis, prog)`` is ``numpy.take(t, indices, axis)``: dimension ``axis`` of ``t`` is replaced by those of ``indices``; zeros
    for an index outside.

    ``(graph, t, indices, index_vector_dim, offset_dims, slice_sizes, collapsed_slice_dims, start_index_map, prog)`` is XLA's: windows of
    ``slice_sizes``, each from where a vector of ``indices`` says; its dimensions ``collapsed_slice_dims``, of one entry, go, and the others become
    dimensions ``offset_dims`` of the result. Windows that are one entry along the dimensions indexed and whole along the others are read at once,
    zeros where they begin outside; others one after the other, around the end, and are undefined where they begin outside.

    Args:
        indices: UNSIGNED_INT or INT, of any shape; a scalar takes the dimension away.
        options: Those of ``multi_slice``.
    """
    step = common.joined(name, "gather")
    common.require_tensors(step, t, indices)
    *sizes, last = arguments if len(arguments) in (1, 5) else (*arguments[:-1],)
    if len(arguments) not in (1, 2, 5, 6):
        raise GraphError(f"{step} with {len(arguments) + 4} arguments", "(graph, t, indices, axis, prog), or those of the general form")
    options = options if len(arguments) in (1, 5) else arguments[-1]
    prog = common.sequence_of(last, step)
    if sizes:
        return _general(graph, t, indices, axis, sizes, prog, options, step)
    if not indices.dtype.is_integral or indices.dtype.nbytes != 4:
        raise ElementTypeError(f"{step} by {indices!r}", "UNSIGNED_INT or INT indices")
    if not 0 <= axis < t.rank:
        raise ShapeError(f"{step} of {t!r} along dimension {axis}", f"0 to {t.rank - 1}" if t.rank else "a tensor with dimensions")
    shape = (*t.shape[:axis], *indices.shape, *t.shape[axis + 1 :])
    if not t.shape[axis]:
        raise ShapeError(f"{step} of {t!r} along dimension {axis}, which has no entries", "a dimension that has some")
    flat = indices.flatten().reinterpret(UNSIGNED_INT)
    found = multi_slice(graph, t, flat.expand([1]), [axis], [1], prog, None, options, step)
    return found.squeeze([1 + axis]).dim_roll(0, axis).reshape(shape)


def _general(graph: Graph, t: Tensor, indices: Tensor, vector_dim: int, sizes: list[Any], prog: Sequence, options: common.Options | None, step: str) -> Tensor:
    offset_dims, slice_sizes, collapsed, start_map = ([int(n) for n in s] for s in sizes)
    rows = index_rows(indices, vector_dim, step)
    outer = [n for d, n in enumerate(indices.shape) if d != vector_dim]
    rank = len(outer) + len(offset_dims)
    if len(slice_sizes) != t.rank or any(not 0 <= n <= m for n, m in zip(slice_sizes, t.shape, strict=True)):
        raise ShapeError(f"{step} of windows {slice_sizes} of {t!r}", "a size for each dimension, none above it")
    if len(start_map) != rows.shape[1] or len(set(start_map)) != len(start_map) or any(not 0 <= d < t.rank for d in start_map):
        raise ShapeError(f"{step} by vectors of {rows.shape[1]} indices along dimensions {start_map} of {t!r}", "a dimension for each, none twice")
    if any(not 0 <= d < t.rank or slice_sizes[d] != 1 for d in collapsed) or len(offset_dims) + len(set(collapsed)) != t.rank:
        raise ShapeError(f"{step} of windows {slice_sizes}: {collapsed} go and {offset_dims} stay", "dimensions of one entry go, the others are in offset_dims")
    if any(not 0 <= d < rank for d in offset_dims) or len(set(offset_dims)) != len(offset_dims):
        raise ShapeError(f"{step}: offset_dims {offset_dims} of a result of rank {rank}", "dimensions of the result, none twice")
    found = read_windows(graph, t, rows, start_map, slice_sizes, prog, options, step).squeeze([1 + d for d in collapsed])
    found = found.reshape((*outer, *found.shape[1:]))
    others = [d for d in range(rank) if d not in offset_dims]
    place = {d: i for i, d in enumerate([*others, *sorted(offset_dims)])}
    return found.dim_shuffle([place[d] for d in range(rank)])
