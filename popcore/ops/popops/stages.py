"""The steps of reductions that go side by side: level by level, one compute set each."""

from __future__ import annotations

import numpy as np

from popcore.codelets.reduce import CODELETS
from popcore.graph import ComputeSet, Graph, Tensor
from popcore.graph.tensor import from_regions
from popcore.graph.variable import Variable
from popcore.ops.popops.operation import Operation
from popcore.ops.popops.partials import Matrices
from popcore.program import Copy, Execute, Sequence
from popcore.types import FLOAT, Array, ElementType

FEW_COLUMNS = 12
"""Up to so many columns the workers of a tile share rows, above it columns."""
LONG_ROW = 64
"""Elements worth a worker's start."""


class Stages:
    """Compute sets by level; a level runs after all below it, and after the copies of its own level."""

    def __init__(self, graph: Graph, name: str) -> None:
        self.graph, self.name = graph, name
        self._sets: list[ComputeSet] = []
        self._copies: dict[int, list[tuple[Tensor, Tensor]]] = {}

    def compute_set(self, level: int) -> ComputeSet:
        while len(self._sets) <= level:
            self._sets.append(self.graph.add_compute_set(f"{self.name}/stage {len(self._sets) + 1}"))
        return self._sets[level]

    def copy(self, level: int, source: Tensor, target: Tensor) -> None:
        if target.num_elements:
            self._copies.setdefault(level, []).append((source, target))

    def add_to(self, prog: Sequence) -> None:
        """Everything as steps of ``prog``."""
        for level in range(max([len(self._sets), *(k + 1 for k in self._copies)])):
            for source, target in self._copies.get(level, []):
                prog.add(Copy(source, target, name=f"{self.name}/copy"))
            if level < len(self._sets):
                prog.add(Execute(self._sets[level], name=self._sets[level].name))


def reduce_to_new(stages: Stages, level: int, data: Tensor, m: Matrices, op: Operation, accumulate: ElementType, dtype: ElementType) -> Tensor:
    """A new flat tensor of the results of ``m``, matrix after matrix, each on its tile; and the vertices that compute them."""
    made = stages.graph.add_variable(dtype, (int(m.outputs.sum()),), name=f"{stages.name}/partials {level + 1}")
    at = np.cumsum(m.outputs) - m.outputs
    stages.graph.map_intervals(made, at, m.outputs, m.tile)
    reduce_to(stages, level, data, m, op, accumulate, made, at)
    return made


def reduce_to(stages: Stages, level: int, data: Tensor, m: Matrices, op: Operation, accumulate: ElementType, target: Tensor, at: Array) -> None:
    """Vertices that reduce each of the matrices ``m`` of the flat tensor ``data`` to elements of the flat ``target``, from ``at`` on."""
    cs, add, dtype = stages.compute_set(level), stages.graph.add_vertices, target.dtype
    if m.along_rows:
        owner, first, count = cut_evenly(m.rows, np.minimum(m.rows, stages.graph.target.num_worker_contexts))
        columns = m.columns[owner]
        connected = {"data": (data, m.start[owner] + first * columns, count, columns), "out": (target, at[owner] + first, count)}
        mk1 = stages.graph.target.target_arch_string == "ipu1" and data.dtype is FLOAT
        add(cs, CODELETS[op.value, "rows"][data.dtype, accumulate, dtype], connected, m.tile[owner], mk1_row_cycles(count, columns) if mk1 else None)
        return
    same = accumulate is dtype
    narrow = (m.columns <= FEW_COLUMNS) & same
    types = (data.dtype, accumulate) if same else (data.dtype, accumulate, dtype)
    for shape, chosen in (("columns", narrow), ("shared" if same else "converted", ~narrow)):
        if chosen.any():
            columns, tile = m.columns[chosen], m.tile[chosen]
            out, places = (target, at[chosen]) if shape == "columns" else whole_words(stages, level, target, at[chosen], columns, tile)
            connected = {"data": (data, m.start[chosen], m.rows[chosen], columns), "out": (out, places, columns)}
            add(cs, CODELETS[op.value, shape][types], connected, tile)


def whole_words(stages: Stages, level: int, target: Tensor, at: Array, count: Array, tile: Array) -> tuple[Tensor, Array]:
    """Where workers may write parts of ``count`` elements of ``target`` from ``at`` on: there, if each begins a word of its tile's memory.

    Else in a variable of its own, whose parts do, and from which they are copied after the level: workers that share a part in whole words would
    otherwise meet in one.
    """
    graph = stages.graph
    per_word = max(1, graph.target.atomic_store_granularity // target.dtype.nbytes)
    if per_word == 1 or (target.variable and target.simple and not (places_on_tiles(target.variable, target.simple[1] + at) % per_word).any()):
        return target, at
    padded = -(-count // per_word) * per_word
    start = np.cumsum(padded) - padded
    made = graph.add_variable(target.dtype, (int(padded.sum()),), name=f"{stages.name}/words {level + 1}")
    graph.map_intervals(made, start, padded, tile)
    stages.copy(level + 1, picked(made, start, count), picked(target, at, count))
    return made, start


def places_on_tiles(whole: Variable, at: Array) -> Array:
    """How many elements of a variable the tiles of its elements ``at`` hold before them."""
    begin, end, tile = whole.mapping.intervals()
    order = np.lexsort((begin, tile))
    length = (end - begin)[order]
    before = np.cumsum(length) - length
    head = np.flatnonzero(np.diff(tile[order], prepend=-1))
    held = np.empty_like(before)
    held[order] = before - np.repeat(before[head], np.diff(np.append(head, before.size)))
    which = np.searchsorted(begin, at, "right") - 1
    made: Array = held[which] + at - begin[which]
    return made


def mk1_row_cycles(rows: Array, columns: Array) -> Array:
    """Worker cycles of ``Rows`` of FLOAT on a Mk1 chip: an issue takes one element there, not two.

    So says the note of row J-RED1-1216 (SDK 1.0.49); the rest, and two elements, is PopLibs' estimator, which was the same for that SDK.
    """
    made: Array = 26 + rows * (9 + columns)
    return made


def shared_out(m: Matrices, workers: int) -> Matrices:
    """The same, but where one worker would have to do much, cut so that all have something to do; outputs then have more parts."""
    work = m.rows * m.columns
    if m.along_rows:
        pieces = np.where((m.rows == 1) & (work >= 2 * LONG_ROW), np.minimum(workers, m.columns // LONG_ROW), 1)
        owner, first, count = cut_evenly(m.columns, pieces)
        return Matrices(m.start[owner] + first, m.rows[owner], count, m.out[owner], m.tile[owner], True)
    pieces = np.where((m.columns <= FEW_COLUMNS) & (work >= 2 * LONG_ROW), np.minimum(workers, np.minimum(m.rows, work // LONG_ROW)), 1)
    owner, first, count = cut_evenly(m.rows, pieces)
    return Matrices(m.start[owner] + first * m.columns[owner], count, m.columns[owner], m.out[owner], m.tile[owner], False)


def cut_evenly(count: Array, pieces: Array) -> tuple[Array, Array, Array]:
    """(owner, first, count) of ``pieces`` blocks of ``count`` things each, as equal as can be. Needs: no more pieces than things."""
    owner = np.repeat(np.arange(count.size), pieces)
    k = np.arange(owner.size) - (np.cumsum(pieces) - pieces)[owner]
    first = k * count[owner] // pieces[owner]
    return owner, first, (k + 1) * count[owner] // pieces[owner] - first


def picked(flat: Tensor, begin: Array, length: Array) -> Tensor:
    """Ranges of a flat tensor one after the other; the tensor itself where they are all of it in order."""
    total = int(length.sum())
    if total == flat.num_elements and (begin.size == 0 or (begin[0] == 0 and np.array_equal(begin[1:], np.cumsum(length)[:-1]))):
        return flat
    return from_regions(flat._variables(), flat.dtype, (total,), flat.regions().select(begin, length), flat)
