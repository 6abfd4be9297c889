"""arg_max, arg_min and top_k of the rows of a matrix. After ``popnn/Loss.hpp``."""

from __future__ import annotations

from typing import Any

import numpy as np

from popcore.codelets.arg_extreme import ArgMaxParts, ArgMaxRow, ArgMinParts, ArgMinRow
from popcore.errors import ShapeError, TileMappingError
from popcore.graph import Graph, Tensor
from popcore.ops import popops
from popcore.ops.popops import common
from popcore.program import Sequence
from popcore.types import Array

LONG = 256
"""Elements of a row that one worker goes through; longer rows are shared out, where workers are left."""


def arg_max(graph: Graph, t: Tensor, prog: Sequence, name: str = "") -> Tensor:
    """For each row of ``t``, (rows, columns), the column of its greatest element, the first of equals: (rows,) of UNSIGNED_INT.

    Raises:
        ShapeError: ``t`` is no matrix, or its rows have no elements.
        TileMappingError: a row, or a part of it, begins on no tile.
    Costs: one compute set, each row gathered on the tile where it begins; of long rows their parts, and a compute set to join those.
    """
    return _extreme(graph, (ArgMaxRow, ArgMaxParts), t, prog, common.joined(name, "arg_max"))[1]


def arg_min(graph: Graph, t: Tensor, prog: Sequence, name: str = "") -> Tensor:
    """The same of its least element."""
    return _extreme(graph, (ArgMinRow, ArgMinParts), t, prog, common.joined(name, "arg_min"))[1]


def max_and_arg_max(graph: Graph, t: Tensor, prog: Sequence, name: str = "") -> tuple[Tensor, Tensor]:
    """The greatest element of each row, and its column."""
    return _extreme(graph, (ArgMaxRow, ArgMaxParts), t, prog, common.joined(name, "max_and_arg_max"))


def min_and_arg_min(graph: Graph, t: Tensor, prog: Sequence, name: str = "") -> tuple[Tensor, Tensor]:
    """The least element of each row, and its column."""
    return _extreme(graph, (ArgMinRow, ArgMinParts), t, prog, common.joined(name, "min_and_arg_min"))


def _extreme(graph: Graph, codelets: tuple[Any, Any], t: Tensor, prog: Sequence, step: str) -> tuple[Tensor, Tensor]:
    common.require_tensors(step, t)
    if t.rank != 2 or (t.shape[0] and not t.shape[1]):
        raise ShapeError(f"{step} of {t!r}", "a matrix whose rows have at least one element")
    rows, columns = t.shape
    parts = max(1, min(graph.target.num_tiles * graph.target.num_worker_contexts // max(1, rows), columns // LONG))
    length = -(-columns // parts)
    parts = -(-columns // length)
    first = np.arange(rows)[:, None] * columns + np.arange(parts) * length
    size = np.minimum(length, columns - np.arange(parts) * length)
    value, index = _at(graph, t, first.reshape(-1), step)
    if not rows:
        return value, index
    fields = {"x": (t.flatten(), first.reshape(-1), np.tile(size, rows)), "leading": np.tile(np.arange(parts) == 0, rows), "index": index, "value": value}
    graph.add_vertices(common.compute_set_of(graph, prog, step), codelets[0][t.dtype], fields, _tiles(graph, value))
    if parts == 1:
        return value, index
    found = _at(graph, t, first[:, 0], step)
    joined = {"values": value.reshape((rows, parts)), "indices": index.reshape((rows, parts)), "length": length, "index": found[1], "value": found[0]}
    graph.add_vertices(common.compute_set_of(graph, prog, f"{step}/parts"), codelets[1][t.dtype], joined, _tiles(graph, found[0]))
    return found


def _at(graph: Graph, t: Tensor, place: Array, step: str) -> tuple[Tensor, Tensor]:
    """A value and an index for each of some places of the flattened ``t``, where that is.

    Raises: TileMappingError: a place is on no tile.
    """
    value = graph.add_variable(t.dtype, (place.size,), name=f"{step}/value")
    index = graph.add_variable("unsigned int", (place.size,), name=f"{step}/index")
    if not place.size:
        return value, index
    begin, end, tile = graph.tile_intervals(t)
    at = np.searchsorted(begin, place, "right") - 1
    bad = at < 0 if not begin.size else (at < 0) | (end[np.maximum(at, 0)] <= place)
    if bad.any():
        row = int(place[int(np.argmax(bad))]) // t.shape[1]
        raise TileMappingError(f"{step}: row {row} of {t!r} is not wholly on tiles", "map it first")
    for made in (value, index):
        graph.map_intervals(made, np.arange(place.size), np.ones(place.size, np.int64), tile[at])
    return value, index


def _tiles(graph: Graph, t: Tensor) -> Array:
    begin, end, tile = graph.tile_intervals(t)
    return np.repeat(tile, end - begin)


def top_k(graph: Graph, t: Tensor, k: int, sort: bool, prog: Sequence, name: str = "") -> tuple[Tensor, Tensor]:
    """The ``k`` greatest of each row of ``t``, and their columns; the greatest first if ``sort``. ``popops.top_k_with_permutation`` says more.

    Raises: ShapeError: ``t`` is no matrix, or has fewer columns.
    """
    step = common.joined(name, "top_k")
    common.require_tensors(step, t)
    if t.rank != 2:
        raise ShapeError(f"{step} of {t!r}", "a matrix")
    order = popops.SortOrder.DESCENDING if sort else popops.SortOrder.NONE
    return popops.top_k_with_permutation(graph, prog, t, popops.TopKParams(k, True, order), name)
