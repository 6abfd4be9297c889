"""top_k, top_k_key_value, top_k_with_permutation: the greatest or least elements along the last dimension. After ``popops/TopK.hpp``.

NaN counts as greater than everything, -0 as less than +0. See ``sorting`` for how.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence as Items
from dataclasses import dataclass

import numpy as np

from popcore.errors import ShapeError, ValueRangeError
from popcore.graph import Graph, Tensor
from popcore.ops.popops import common
from popcore.ops.popops.sort import as_rows, check_values
from popcore.ops.popops.sorting import Order, keys_of, ordered, plan_sort
from popcore.ops.poputil import broadcast_to_match, map_tensor_linearly
from popcore.program import Sequence
from popcore.types import UNSIGNED_INT, DTypeLike, ElementType, as_element_type


class SortOrder(enum.Enum):
    """In which order results are wanted."""

    NONE = "any"
    ASCENDING = "ascending"
    DESCENDING = "descending"


@dataclass(frozen=True)
class TopKParams:
    """``k`` of the greatest elements, or of the least; with ``stable_sort`` values of equal keys keep their order."""

    k: int
    largest: bool
    sort_order: SortOrder
    stable_sort: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.k, bool) or not isinstance(self.k, int) or self.k < 0:
            raise ValueRangeError(f"TopKParams with k = {self.k!r}", "0 or more")
        if not isinstance(self.sort_order, SortOrder):
            raise ValueRangeError(f"TopKParams with sort_order {self.sort_order!r}", "SortOrder.NONE, ASCENDING or DESCENDING")

    @property
    def reversed(self) -> bool:
        """Whether the best come last."""
        return self.sort_order is (SortOrder.ASCENDING if self.largest else SortOrder.DESCENDING)


def create_top_k_input(graph: Graph, dtype: DTypeLike, shape: Items[int], params: TopKParams, name: str = "") -> Tensor:
    """A tensor of which the functions here can sort each part where it is."""
    step = common.joined(name, "top_k input")
    element = as_element_type(dtype)
    keys_of(element, False, step)
    made = graph.add_variable(element, tuple(shape), name=step)
    _check(made, params, step)
    if made.num_elements:
        rows, n = math.prod(made.shape[:-1]), made.shape[-1]
        plan = plan_sort(graph.target, rows, n, max(1, params.k), 8)
        place = np.minimum(np.arange(plan.blocks + 1) * plan.length, n)
        begin = (np.arange(rows)[:, None] * n + place[:-1]).reshape(-1)
        graph.map_intervals(made, begin, np.tile(np.diff(place), rows), plan.tiles.reshape(-1))
    return made


def top_k(graph: Graph, prog: Sequence, t: Tensor, params: TopKParams, name: str = "") -> Tensor:
    """The ``params.k`` greatest (or least) of the last dimension of ``t``: (*others, k).

    Raises: ShapeError: fewer than k elements, or a scalar. ElementTypeError: integers of 64 bits, FP8.
    """
    step = common.joined(name, "top_k")
    _check(t, params, step)
    order = _best(graph, t, None, params, prog, step)
    return _keys(graph, order, t, params, prog, step)


def top_k_with_permutation(graph: Graph, prog: Sequence, t: Tensor, params: TopKParams, name: str = "") -> tuple[Tensor, Tensor]:
    """The same, and where along the last dimension each was, UNSIGNED_INT. Of equal elements the first count, and come first."""
    step = common.joined(name, "top_k_with_permutation")
    _check(t, params, step)
    order = _best(graph, t, "index", params, prog, step)
    return _pair(graph, order, t, UNSIGNED_INT, params, prog, step)  # type: ignore[arg-type]


def top_k_key_value(graph: Graph, prog: Sequence, keys: Tensor, values: Tensor, params: TopKParams, name: str = "") -> tuple[Tensor, Tensor]:
    """The same of ``keys``, and what ``values``, of the same shape, has in their places.

    Which of equal keys count, and their order, is that of their values' bits; with ``params.stable_sort`` that of their places,
    which takes three sorts.
    """
    step = common.joined(name, "top_k_key_value")
    _check(keys, params, step)
    common.require_tensors(step, values)
    check_values(step, keys, values)
    if not params.stable_sort:
        order = _best(graph, keys, as_rows(values, values.rank - 1), params, prog, step)
        return _pair(graph, order, keys, values.dtype, params, prog, step)
    found, index = top_k_with_permutation(graph, prog, keys, TopKParams(keys.shape[-1], params.largest, SortOrder.NONE), step)
    rank = graph.add_constant(UNSIGNED_INT, index.shape[-1:], np.arange(index.shape[-1]), name=f"{step}/rank")
    map_tensor_linearly(graph, rank)
    rank = broadcast_to_match(rank, shape=index.shape)[0]
    first = TopKParams(keys.shape[-1], False, SortOrder.ASCENDING)
    _, place = top_k_key_value(graph, prog, index, rank, first, step)  # of each key, in the order of all
    chosen = TopKParams(params.k, False, SortOrder.ASCENDING)
    _, moved = top_k_key_value(graph, prog, place, values, chosen, step)
    found = found.slice(0, params.k, found.rank - 1)
    return _restored(graph, found, moved, params, prog, step) if params.reversed else (found, moved)


def _restored(graph: Graph, keys: Tensor, values: Tensor, params: TopKParams, prog: Sequence, step: str) -> tuple[Tensor, Tensor]:
    """Keys with the best last, equal ones in the order they have."""
    order = TopKParams(params.k, not params.largest, SortOrder.NONE, True)
    return top_k_key_value(graph, prog, keys, values, order, step)


def _best(graph: Graph, t: Tensor, low: Tensor | str | None, params: TopKParams, prog: Sequence, step: str) -> Order | None:
    """The best first; None if nothing is wanted."""
    rows = as_rows(t, t.rank - 1)
    if not rows.num_elements or not params.k:
        return None
    return ordered(graph, rows, low, params.k, params.largest, prog, step)


def _pair(
    graph: Graph, order: Order | None, t: Tensor, low: ElementType, params: TopKParams, prog: Sequence, step: str
) -> tuple[Tensor, Tensor]:  # fmt: skip
    again = order is not None and params.reversed and params.stable_sort
    plain = TopKParams(params.k, params.largest, SortOrder.NONE) if again else params
    keys = _keys(graph, order, t, plain, prog, step)
    others = _new(graph, order, t, low, params.k, f"{step}/low")
    if order is not None:
        order.write_low(graph, as_rows(others, others.rank - 1), prog, step)
    if again:  # a view from the end would turn equal keys around
        order = ordered(graph, as_rows(keys, keys.rank - 1), as_rows(others, others.rank - 1), params.k, not params.largest, prog, step)
        return _pair(graph, order, t, low, plain, prog, step)
    return keys, others.reverse(others.rank - 1) if params.reversed else others


def _keys(graph: Graph, order: Order | None, t: Tensor, params: TopKParams, prog: Sequence, step: str) -> Tensor:
    made = _new(graph, order, t, t.dtype, params.k, f"{step}/out")
    if order is not None:
        order.write_keys(graph, as_rows(made, made.rank - 1), prog, step)
    return made.reverse(made.rank - 1) if params.reversed else made


def _new(graph: Graph, order: Order | None, t: Tensor, dtype: ElementType, k: int, name: str) -> Tensor:
    """(*others, k), each element where its code is."""
    made = graph.add_variable(dtype, (*t.shape[:-1], k), name=name)
    if order is None:
        map_tensor_linearly(graph, made)
    else:
        begin, end, tile = graph.tile_intervals(order.codes)
        graph.map_intervals(made, begin, end - begin, tile)
    return made


def _check(t: Tensor, params: TopKParams, step: str) -> None:
    common.require_tensors(step, t)
    if not isinstance(params, TopKParams):
        raise ValueRangeError(f"{step} with {params!r:.60}", "TopKParams(k, largest, sort_order)")
    keys_of(t.dtype, False, step)
    if not t.rank or params.k > t.shape[-1]:
        raise ShapeError(f"{step} of {params.k} elements of {t!r}", f"at most {t.shape[-1]}" if t.rank else "a tensor with dimensions")
