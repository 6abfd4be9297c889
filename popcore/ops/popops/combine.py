"""One reduction of a tensor (K1, R, K2) over its middle: partial results on each tile, joined in balanced steps."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from popcore.graph import Tensor
from popcore.graph.tiles import linear_intervals
from popcore.ops.popops import partials
from popcore.ops.popops.operation import Operation
from popcore.ops.popops.partials import Matrices
from popcore.ops.popops.placing import mapped_runs
from popcore.ops.popops.stages import Stages, cut_evenly, picked, reduce_to, reduce_to_new, shared_out
from popcore.types import Array, ElementType

_AT_ONCE = 64
"""Partial results of one output that are gathered at once; where there are more they are joined in groups first."""


@dataclass(frozen=True, eq=False)
class _Partials:
    """Partial results in a flat tensor: stretch i holds ``size[i]`` of them, for outputs from ``out[i]`` on, on tile ``tile[i]``."""

    tensor: Tensor
    start: Array
    out: Array
    size: Array
    tile: Array


def reduce_middle(
    stages: Stages, level: int, data: Tensor, shape: tuple[int, int, int], op: Operation, accumulate: ElementType, dtype: ElementType, out: Tensor | None
) -> tuple[Tensor, int]:
    """Reduce flat ``data``, (K1, R, K2) in shape, to K1 * K2 elements, in ``out`` or a new tensor; all of these sizes are 1 or more.

    Returns: the flat result, and the level after the last that this takes.
    """
    graph = stages.graph
    before, reduced, after = shape
    runs = mapped_runs(graph, data)
    ranges, matrices = partials.inner(*runs, reduced) if after == 1 else partials.outer(*runs, reduced, after)
    ordered = picked(data, *ranges)
    outputs = before * after
    shared = shared_out(matrices, graph.target.num_worker_contexts)
    if out is None and int(shared.outputs.sum()) == outputs:  # nothing is split: these are the results
        made = reduce_to_new(stages, level, ordered, shared, op, accumulate, dtype)
        order = np.argsort(shared.out, kind="stable")
        return picked(made, (np.cumsum(shared.outputs) - shared.outputs)[order], shared.outputs[order]), level + 1
    if shared.trivial and op is op.of_partials and data.dtype is accumulate:
        parts = _Partials(ordered, shared.start, shared.out, shared.outputs, shared.tile)
    else:
        parts = _reduced(stages, level, ordered, shared, op, accumulate)
        level += 1
        if shared.start.size > matrices.start.size and np.unique(matrices.tile).size > 1:  # what a tile's workers made is joined before it is sent
            parts = _reduced(stages, level, parts.tensor, _pieces(shared, parts.start), op.of_partials, accumulate)
            level += 1
    while _most(parts, outputs) > _AT_ONCE:
        parts = _joined(stages, level, parts, outputs, op.of_partials, accumulate)
        level += 1
    return _finished(stages, level, parts, outputs, op.of_partials, accumulate, dtype, out), level + 1


def _reduced(stages: Stages, level: int, data: Tensor, m: Matrices, op: Operation, accumulate: ElementType) -> _Partials:
    made = reduce_to_new(stages, level, data, m, op, accumulate, accumulate)
    return _Partials(made, np.cumsum(m.outputs) - m.outputs, m.out, m.outputs, m.tile)


def _pieces(cut: Matrices, start: Array) -> Matrices:
    """The results of pieces, each of them at its ``start``, as matrices: a row for each of those that follow each other and have the same outputs."""
    first = np.flatnonzero(np.concatenate(([True], (np.diff(cut.out) != 0) | (np.diff(cut.tile) != 0) | (np.diff(cut.outputs) != 0))))
    return Matrices(start[first], np.diff(np.append(first, cut.out.size)), cut.outputs[first], cut.out[first], cut.tile[first], False)


def _most(parts: _Partials, outputs: int) -> int:
    """The most partial results that one output has."""
    places = np.concatenate([parts.out, parts.out + parts.size])
    change = np.concatenate([np.ones(parts.out.size, np.int64), np.full(parts.out.size, -1, np.int64)])
    order = np.lexsort((change, places))
    return int(np.cumsum(change[order]).max())


def _joined(stages: Stages, level: int, parts: _Partials, outputs: int, op: Operation, accumulate: ElementType) -> _Partials:
    """Groups of about the square root of what there is, each joined on one of the tiles that have some, in turn."""
    tiles = np.unique(parts.tile)
    group = math.isqrt(_most(parts, outputs) - 1) + 1
    wide = -(-outputs // stages.graph.target.get_vector_width(accumulate))
    across = max(1, min(wide, tiles.size // group))
    found = partials.segments(parts.start, parts.out, parts.size, np.arange(across) * outputs // across)
    data = picked(parts.tensor, *found.ranges)
    begin = np.cumsum(found.count * found.size) - found.count * found.size
    owner, first, count = cut_evenly(found.count, -(-found.count // group))
    size = found.size[owner]
    turn = np.arange(owner.size)
    tile = tiles[turn * tiles.size // owner.size if owner.size < tiles.size else turn % tiles.size]
    return _reduced(stages, level, data, Matrices(begin[owner] + first * size, count, size, found.first[owner], tile, False), op, accumulate)


def _finished(
    stages: Stages, level: int, parts: _Partials, outputs: int, op: Operation, accumulate: ElementType, dtype: ElementType, out: Tensor | None
) -> Tensor:
    graph = stages.graph
    if out is None:
        tiles = np.unique(parts.tile)
        out = graph.add_variable(dtype, (outputs,), name=f"{stages.name}/out")
        begin, length, turn = linear_intervals(outputs, tiles.size, 1, graph.target.get_vector_width(dtype))
        graph.map_intervals(out, begin, length, tiles[turn * tiles.size // turn.size])
    begin, _, tile = mapped_runs(graph, out)
    found = partials.segments(parts.start, parts.out, parts.size, begin)
    start = np.cumsum(found.count * found.size) - found.count * found.size
    where = tile[np.searchsorted(begin, found.first, "right") - 1]
    matrices = Matrices(start, found.count, found.size, found.first, where, False)
    reduce_to(stages, level, picked(parts.tensor, *found.ranges), matrices, op, accumulate, out, found.first)
    return out
