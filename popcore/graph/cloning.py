"""New variables made after the pattern of a tensor."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from popcore.debug import user_site
from popcore.graph import tiles
from popcore.graph.regions import Regions, coalesce, sorted_union
from popcore.graph.tensor import Tensor, affine_tensor, from_regions, whole
from popcore.graph.variable import Variable, Variables
from popcore.types import Array, ElementType


class CloneMethod(enum.Enum):
    """How the elements of a clone lie in memory, and whether aliases stay aliases."""

    PRESERVE_ORDER_AND_ALIASES = "preserve order and aliases"
    CREATE_NEW_ORDER = "create new order"
    PRESERVE_ORDER_UNLESS_ALIASES = "preserve order unless aliases"
    GATHER_AND_PRESERVE_TILE_ORDER_AND_ALIASES = "gather and preserve tile order and aliases"


def clone(table: Variables, tensor: Tensor, dtype: ElementType, name: str, method: CloneMethod) -> Tensor:
    """A tensor of new elements with the shape and tile mapping of ``tensor``.

    An element that ``tensor`` shows twice is one element of the clone where ``method`` keeps aliases, else two.
    """
    aliased = method is not CloneMethod.CREATE_NEW_ORDER and tensor.contains_aliases
    if method is CloneMethod.CREATE_NEW_ORDER or (method is CloneMethod.PRESERVE_ORDER_UNLESS_ALIASES and aliased):
        return _new_order(table, tensor, dtype, name)
    first, length = sorted_union(tensor.regions().ids, tensor.regions().length)
    source = from_regions(table, tensor.dtype, (int(length.sum()),), coalesce(first, length), tensor)
    begin, end, tile = tiles.tile_intervals(source)
    if method is CloneMethod.GATHER_AND_PRESERVE_TILE_ORDER_AND_ALIASES:
        begin, end, tile, source = _gathered(table, source, begin, end, tile)
    made = Variable(table, dtype, source.shape, name, user_site())
    made.mapping.assign(begin, end - begin, tile)
    return _image(tensor, source.regions(), made)


def _new_order(table: Variables, tensor: Tensor, dtype: ElementType, name: str) -> Tensor:
    made = Variable(table, dtype, tensor.shape, name, user_site())
    begin, end, tile = tiles.tile_intervals(tensor)
    made.mapping.assign(begin, end - begin, tile)
    return whole(made)


def _gathered(table: Variables, source: Tensor, begin: Array, end: Array, tile: Array) -> tuple[Array, Array, Array, Tensor]:
    """``source`` with the elements of each tile next to each other, tiles ascending, unmapped elements last."""
    if not begin.size:
        return begin, end, tile, source
    where = tiles.each_element(begin, end, tile, source.num_elements) if np.any(np.diff(tile) < 0) or int((end - begin).sum()) < source.num_elements else None
    if where is None:
        return begin, end, tile, source
    order = np.argsort(np.where(where < 0, np.iinfo(np.int32).max, where), kind="stable")
    gathered = from_regions(table, source.dtype, source.shape, source.regions().select(order, np.ones(order.size, np.int64)), source)
    return (*tiles.tile_intervals(gathered), gathered)


def _image(tensor: Tensor, source: Regions, made: Variable) -> Tensor:
    """The view of ``made`` that is to ``made`` what ``tensor`` is to ``source``, the elements that ``made`` stands for."""
    if tensor.variable is not None and len(source) <= 1:
        low = int(source.start[0]) if len(source) else tensor.offset
        return affine_tensor(made, made.dtype, tensor.shape, tensor.offset - low, tensor.strides)
    order = np.argsort(source.ids)
    ids, place, length = source.ids[order], source.begins[order], source.length[order]
    r = tensor.regions()
    # each run of the tensor may lie across several runs of the source
    first = np.searchsorted(ids, r.ids, "right") - 1
    last = np.searchsorted(ids, r.ids + r.length - 1, "right") - 1
    owner = np.repeat(np.arange(len(r)), last - first + 1)
    run = np.arange(owner.size) + np.repeat(first - (np.cumsum(last - first + 1) - (last - first + 1)), last - first + 1)
    low = np.maximum(ids[run], r.ids[owner])
    high = np.minimum(ids[run] + length[run], (r.ids + r.length)[owner])
    regions = coalesce(made.base + place[run] + (low - ids[run]), high - low)
    return from_regions(made.home, made.dtype, tensor.shape, regions, whole(made))


def method_of(given: Any) -> CloneMethod:
    """A CloneMethod, or its name."""
    if isinstance(given, CloneMethod):
        return given
    return CloneMethod[str(given).upper()]
