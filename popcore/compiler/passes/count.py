"""Where cycles that are counted as a program runs go: to which worker of which tile, beside what is known of it before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from popcore.executable import COUNTED_UNIT, Counting, no_counting
from popcore.executable.opcodes import Batch
from popcore.types import Array


@dataclass(frozen=True)
class CountedVertices:
    """Vertices of one codelet."""

    codelet: int
    vertices: Array  # int64[n]: their numbers in the VertexGroup
    workers: Array  # int64[n]: index in the step's load, flat


@dataclass(frozen=True)
class CountedStep:
    """A compute set with vertices whose cycles data decides."""

    step: int
    load: Array  # tile cycles that are known, see ``cost.tile_loads``
    groups: list[CountedVertices]


def count(steps: Sequence[CountedStep], phases_of: Sequence[Sequence[int]], ranges: Sequence[tuple[int, int]], batches: Array, vertex_ids: Array) -> Counting:
    """The tables of all counted steps.

    Needs:  ``ranges``: the batches of each step; a step's vertices run in its first phase.
    """
    if not steps:
        return no_counting()
    rows: list[tuple[int, ...]] = []
    vertices: list[Array] = []
    loads: list[Array] = []
    for each in steps:
        first_vertex, first_worker = sum(map(len, vertices)), sum(map(len, loads))
        loads.append(np.ceil(each.load.ravel() * COUNTED_UNIT).astype(np.int64))
        begin, end = ranges[each.step]
        for group in each.groups:
            mine = begin + np.flatnonzero(batches[begin:end, Batch.CODELET] == group.codelet)
            at = _flat(batches[mine])
            order = np.argsort(vertex_ids[at], kind="stable")
            found = at[order[np.searchsorted(vertex_ids[at][order], group.vertices)]]
            vertices.append(np.stack([found, first_worker + group.workers, np.full(len(found), group.codelet)], 1))
        rows.append((phases_of[each.step][0], first_vertex, sum(map(len, vertices)), first_worker, sum(map(len, loads))))
    return Counting(np.array(rows, np.int64), np.concatenate(vertices).astype(np.int64), np.concatenate(loads))


def _flat(batches: Array) -> Array:
    """Indices of ``vertex_ids`` of all vertices of some batches."""
    counts = batches[:, Batch.TILES_COUNT] * batches[:, Batch.ROWS_COUNT]
    first = np.repeat(batches[:, Batch.FIRST_VERTEX] - (np.cumsum(counts) - counts), counts)
    found: Array = first + np.arange(len(first))
    return found
