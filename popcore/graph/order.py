"""How a tensor lies in memory: sorted runs, what a broadcast repeats, an order that makes views simpler."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from popcore.errors import ShapeError
from popcore.graph.regions import Regions
from popcore.graph.tensor import Interval, Tensor, from_regions
from popcore.types import Array


def sorted_contiguous_regions(tensor: Tensor, regions: Sequence[Sequence[int]] | None = None, remove_aliased: bool = False) -> list[list[Interval]]:
    """Parts of the flattened view in the order of memory; each inner list is one contiguous stretch of a variable.

    regions: which (begin, end) of the flattened view; all of it if None
    remove_aliased: leave out elements that an earlier interval has
    """
    flat = tensor.regions()
    if not len(flat):
        return []
    begin, length = (flat.begins, flat.length) if regions is None else _bounds(regions)
    ids, lengths, owner = flat.pieces(begin, length)
    # where in the view each piece begins: pieces of one owner follow each other
    before = np.cumsum(lengths) - lengths
    heads = np.flatnonzero(np.diff(owner, prepend=-1))
    view = begin[owner] + before - before[heads][np.cumsum(np.diff(owner, prepend=-1) > 0) - 1]
    order = np.argsort(ids, kind="stable")
    groups: list[list[Interval]] = []
    reach = -1
    for first, n, at in zip(ids[order].tolist(), lengths[order].tolist(), view[order].tolist(), strict=True):
        skip = min(n, max(0, reach - first)) if remove_aliased else 0
        if skip == n:
            continue
        if groups and first + skip == reach:
            last = groups[-1][-1]
            if last.end == at + skip:
                groups[-1][-1] = Interval(last.begin, at + n)
            else:
                groups[-1].append(Interval(at + skip, at + n))
        else:
            groups.append([Interval(at + skip, at + n)])
        reach = first + n
    return groups


def find_unbroadcast_tensor(tensor: Tensor) -> Tensor:
    """The tensor that ``tensor`` broadcasts: of the same rank, each dimension cut down to what is repeated along it."""
    for dim in range(tensor.rank):
        tensor = tensor.slice(0, _period(tensor, dim), dim) if tensor.shape[dim] > 1 else tensor
    return tensor


def reorder_to_simplify(tensor: Tensor, others: Sequence[Tensor] = ()) -> tuple[Tensor, list[Tensor]]:
    """Flat views of ``tensor`` and ``others``, all in the order in which ``tensor`` lies in memory."""
    if any(t.num_elements != tensor.num_elements for t in others):
        raise ShapeError(f"reorder_to_simplify of {tensor!r} with {[t.shape for t in others]}", "tensors of as many elements")
    r = tensor.regions()
    order = np.argsort(r.ids, kind="stable")
    if np.all(order[1:] > order[:-1]):
        return tensor.flatten(), [t.flatten() for t in others]
    begin, length = r.begins[order], r.length[order]
    return _picked(tensor, begin, length), [_picked(t, begin, length) for t in others]


def _picked(t: Tensor, begin: Array, length: Array) -> Tensor:
    return from_regions(t._variables(), t.dtype, (t.num_elements,), t.regions().select(begin, length), t)


def _bounds(regions: Sequence[Sequence[int]]) -> tuple[Array, Array]:
    pairs = np.array([(b, e) for b, e in regions if e > b], np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1] - pairs[:, 0]


def _period(t: Tensor, dim: int) -> int:
    """The least number of entries of ``dim`` that, repeated, make up all of them."""
    n = t.shape[dim]
    if t.variable is not None:
        return 1 if t.strides[dim] == 0 else n
    first: Regions = t.regions()
    rows = first.element_ids().reshape(t.shape)
    rows = np.moveaxis(rows, dim, 0).reshape(n, -1)
    same = np.flatnonzero((rows == rows[0]).all(axis=1))
    for p in same[1:].tolist():
        if n % p == 0 and np.array_equal(rows[p:], rows[:-p]):
            return int(p)
    return n
