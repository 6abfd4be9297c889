"""gather: entries of one dimension, chosen by a tensor of indices."""

from __future__ import annotations

from popcore.errors import ElementTypeError, ShapeError
from popcore.graph import Graph, Tensor
from popcore.ops.popops import common
from popcore.ops.popops.lookups import multi_slice
from popcore.ops.popops.slicing import create_sliceable_tensor
from popcore.program import Sequence
from popcore.types import UNSIGNED_INT, DTypeLike


def create_gather_input(graph: Graph, dtype: DTypeLike, shape: tuple[int, ...], axis: int, name: str = "") -> Tensor:
    """A tensor of which ``gather`` along ``axis`` can take entries without moving them between tiles first."""
    return create_sliceable_tensor(graph, dtype, shape, [axis], [1], name=common.joined(name, "gather input"))


def gather(graph: Graph, t: Tensor, indices: Tensor, axis: int, prog: Sequence, options: common.Options | None = None, name: str = "") -> Tensor:
    """``numpy.take(t, indices, axis)``: dimension ``axis`` of ``t`` is replaced by those of ``indices``; zeros for an index outside.

    Args:
        indices: UNSIGNED_INT or INT, of any shape; a scalar takes the dimension away.
        options: Those of ``multi_slice``.
    """
    step = common.joined(name, "gather")
    common.require_tensors(step, t, indices)
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
