"""arg_max, arg_min and top_k of the rows of a matrix. After ``popnn/Loss.hpp``."""

from __future__ import annotations

from typing import Any

import numpy as np

from popcore.codelets.arg_extreme import ArgMaxRow, ArgMinRow
from popcore.errors import ShapeError, TileMappingError
from popcore.graph import Graph, Tensor
from popcore.ops import popops
from popcore.ops.popops import common
from popcore.program import Sequence


def arg_max(graph: Graph, t: Tensor, prog: Sequence, name: str = "") -> Tensor:
    """For each row of ``t``, (rows, columns), the column of its greatest element, the first of equals: (rows,) of UNSIGNED_INT.

    Raises:
        ShapeError: ``t`` is no matrix, or its rows have no elements.
        TileMappingError: a row begins on no tile.
    Costs: one compute set; each row is gathered on the tile where it begins.
    """
    return _extreme(graph, ArgMaxRow, t, prog, common.joined(name, "arg_max"))[1]


def arg_min(graph: Graph, t: Tensor, prog: Sequence, name: str = "") -> Tensor:
    """The same of its least element."""
    return _extreme(graph, ArgMinRow, t, prog, common.joined(name, "arg_min"))[1]


def max_and_arg_max(graph: Graph, t: Tensor, prog: Sequence, name: str = "") -> tuple[Tensor, Tensor]:
    """The greatest element of each row, and its column."""
    return _extreme(graph, ArgMaxRow, t, prog, common.joined(name, "max_and_arg_max"))


def min_and_arg_min(graph: Graph, t: Tensor, prog: Sequence, name: str = "") -> tuple[Tensor, Tensor]:
    """The least element of each row, and its column."""
    return _extreme(graph, ArgMinRow, t, prog, common.joined(name, "min_and_arg_min"))


def _extreme(graph: Graph, codelet: Any, t: Tensor, prog: Sequence, step: str) -> tuple[Tensor, Tensor]:
    common.require_tensors(step, t)
    if t.rank != 2 or (t.shape[0] and not t.shape[1]):
        raise ShapeError(f"{step} of {t!r}", "a matrix whose rows have at least one element")
    rows, columns = t.shape
    value = graph.add_variable(t.dtype, (rows,), name=f"{step}/value")
    index = graph.add_variable("unsigned int", (rows,), name=f"{step}/index")
    if not rows:
        return value, index
    begin, end, tile = graph.tile_intervals(t)
    first = np.arange(rows) * columns
    at = np.searchsorted(begin, first, "right") - 1
    bad = at < 0 if not begin.size else (at < 0) | (end[np.maximum(at, 0)] <= first)
    if bad.any():
        raise TileMappingError(f"{step}: row {int(np.argmax(bad))} of {t!r} begins on no tile", "map it first")
    for made in (value, index):
        graph.map_intervals(made, np.arange(rows), np.ones(rows, np.int64), tile[at])
    where = common.compute_set_of(graph, prog, step)
    graph.add_vertices(where, codelet[t.dtype], {"x": (t.flatten(), first, np.full(rows, columns)), "index": index, "value": value}, tile[at])
    return value, index


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
