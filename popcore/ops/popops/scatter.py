"""scatter: windows of a tensor, at places that a tensor of indices names, updated. After ``popops/Scatter.hpp``, which is XLA's."""

from __future__ import annotations

from collections.abc import Sequence as Items

from popcore.errors import ElementTypeError, ShapeError
from popcore.graph import Graph, Tensor
from popcore.ops.popops import common
from popcore.ops.popops.windows import UpdateComputation, index_rows, write_windows
from popcore.program import Sequence


def scatter(
    graph: Graph,
    operand: Tensor,
    indices: Tensor,
    updates: Tensor,
    index_vector_dim: int,
    update_window_dims: Items[int],
    insert_window_dims: Items[int],
    scatter_dims_to_operand_dims: Items[int],
    prog: Sequence,
    options: common.Options | None = None,
    name: str = "",
    *,
    update_computation: UpdateComputation | None = None,
) -> None:
    """Write windows of ``updates`` to ``operand``, each from where a vector of ``indices`` says.

    A window that begins outside is skipped. Windows that are one entry along the dimensions indexed and whole along the others are written at
    once, and of those for one place one stays; others one after the other, around the end, as are all with ``update_computation``.

    Args:
        indices: INT or UNSIGNED_INT; its vectors go along ``index_vector_dim``, and are of one element where that is its rank.
        updates: The dimensions of ``indices`` without that one, and those of a window as its dimensions ``update_window_dims``.
        insert_window_dims: Dimensions of ``operand``, of one entry in a window, that ``updates`` leaves out.
        scatter_dims_to_operand_dims: Which dimension of ``operand`` each index is about.
        update_computation: ``(graph, old, new, prog)`` gives what a window becomes.

    Raises: ShapeError, ElementTypeError, GraphError: the tensors and dimensions do not fit each other.
    """
    step = common.joined(name, "scatter")
    common.require_tensors(step, operand, indices, updates)
    common.require_writeable(step, operand)
    common.sequence_of(prog, step)
    if updates.dtype is not operand.dtype:
        raise ElementTypeError(f"{step} of {updates!r} into {operand!r}", "tensors of one type")
    rows = index_rows(indices, index_vector_dim, step)
    window, inserted, dims = sorted(update_window_dims), sorted(insert_window_dims), list(scatter_dims_to_operand_dims)
    outer = [d for d in range(updates.rank) if d not in window]
    shape = [n for d, n in enumerate(indices.shape) if d != index_vector_dim]
    if [updates.shape[d] for d in outer] != shape or any(not 0 <= d < updates.rank for d in window) or len(window) + len(inserted) != operand.rank:
        raise ShapeError(f"{step} of {updates!r} with window dimensions {window} and {inserted} inserted, by {indices!r}", f"dimensions {shape} and a window")
    if len(dims) != rows.shape[1] or len(set(dims)) != len(dims) or any(not 0 <= d < operand.rank for d in [*dims, *inserted]):
        raise ShapeError(f"{step} by vectors of {rows.shape[1]} indices along dimensions {dims} of {operand!r}", "a dimension for each, none twice")
    canonical = updates.dim_shuffle([*outer, *window]).flatten(0, len(outer)) if outer else updates.expand([0])
    for d in inserted:
        canonical = canonical.expand([1 + d])
    if any(n > m for n, m in zip(canonical.shape[1:], operand.shape, strict=True)):
        raise ShapeError(f"{step} of windows {list(canonical.shape[1:])} into {operand!r}", "windows no larger than what they go to")
    write_windows(graph, operand, rows, canonical, dims, update_computation, prog, options, step)
