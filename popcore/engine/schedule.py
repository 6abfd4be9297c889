"""Another order for everything that has none on a device: the option ``debug.schedule_seed``."""

from __future__ import annotations

import dataclasses

import numpy as np

from popcore.executable import Executable
from popcore.executable.opcodes import ROW_WORDS, Batch, Group, GroupKind, Phase, PhaseFlag
from popcore.types import Array

WORKERS = 6


class Shuffle:
    """Permutations of one seed, the same for ever: NumPy has promised so of this generator."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._random = np.random.RandomState([seed & 0xFFFFFFFF, seed >> 32])

    def order(self, count: int) -> Array:
        """0 to ``count`` - 1 in some order."""
        made: Array = self._random.permutation(count)
        return made

    def coin(self) -> bool:
        """One or the other."""
        return bool(self._random.randint(2))


def order_of_workers(shuffle: Shuffle) -> int:
    """An order of the workers of a vertex, as drivers take it: see ``abi.AUX_ORDER``."""
    return sum(int(worker) << 4 * i for i, worker in enumerate(shuffle.order(WORKERS)))


def shuffled(executable: Executable, shuffle: Shuffle) -> Executable:
    """The same program in another order: of vertices within each compute set, and of copies within each exchange.

    Gives: batches of one row, whose ORIGIN says what they are parts of. Not to be cut for several threads, nor fused: neither tiles
    nor targets ascend.
    """
    made = _Vertices(executable, shuffle)
    phases = executable.phases.copy()
    phases[:, Phase.FLAGS] &= ~PhaseFlag.FUSABLE
    for phase in phases:
        phase[[Phase.BATCH_BEGIN, Phase.BATCH_END]] = made.add(int(phase[Phase.BATCH_BEGIN]), int(phase[Phase.BATCH_END]))
    groups, words, spans = _copies(executable, shuffle)
    batches, tiles, vertex_ids, rows = made.tables()
    return dataclasses.replace(
        executable, phases=phases, groups=groups, words=words, spans=spans, batches=batches, tiles=tiles, vertex_ids=vertex_ids, rows=rows
    )


class _Vertices:
    """Tables of batches, made anew."""

    def __init__(self, executable: Executable, shuffle: Shuffle) -> None:
        self._executable, self._shuffle = executable, shuffle
        self._batches: list[Array] = []
        self._tiles: list[Array] = []
        self._vertices: list[Array] = []
        self._rows: list[Array] = []
        self._used = [0, 0]  # tiles, which are as many as vertices; words of rows
        self._done: dict[tuple[int, int], tuple[int, int]] = {}  # phases that run one compute set share its batches

    def add(self, begin: int, end: int) -> tuple[int, int]:
        """The batches that batches ``begin`` to ``end`` of the Executable become."""
        if begin >= end:
            return 0, 0
        if (begin, end) not in self._done:
            first = len(self._batches)
            counts = self._executable.batches[begin:end, Batch.ROWS_COUNT].tolist()
            parts = [(batch, row) for batch, count in enumerate(counts, begin) for row in range(count)]
            for which in self._shuffle.order(len(parts)).tolist():
                self._part(*parts[which])
            self._done[begin, end] = first, len(self._batches)
        return self._done[begin, end]

    def _part(self, batch: int, row: int) -> None:
        """One row of a batch, on all of its tiles in another order."""
        old = self._executable.batches[batch]
        begin, count, rows = (int(old[c]) for c in (Batch.TILES_BEGIN, Batch.TILES_COUNT, Batch.ROWS_COUNT))
        order = self._shuffle.order(count)
        self._tiles.append(self._executable.tiles[begin : begin + count][order])
        self._vertices.append(self._executable.vertex_ids[int(old[Batch.FIRST_VERTEX]) + order * rows + row])
        table = self._row(old, row)
        self._rows.append(table)
        new = old.copy()
        new[[Batch.TILES_BEGIN, Batch.FIRST_VERTEX]] = self._used[0]
        new[[Batch.ROWS_BEGIN, Batch.ROWS_COUNT, Batch.WORK, Batch.ORIGIN]] = self._used[1], 1, old[Batch.WORK] // rows, batch + 1
        self._batches.append(new)
        self._used = [self._used[0] + count, self._used[1] + len(table)]

    def _row(self, batch: Array, row: int) -> Array:
        """The table of one row: its words, then the pieces of its lists."""
        shapes = [field.shape for field in self._executable.codelets[int(batch[Batch.CODELET])].fields]
        length, begin = sum(ROW_WORDS[shape] for shape in shapes), int(batch[Batch.ROWS_BEGIN])
        words = self._executable.rows[begin + row * length : begin + (row + 1) * length].copy()
        tables, at, used = [words], 0, length
        for shape in shapes:
            if shape == "list":
                first, count = begin + int(words[at]), 2 * int(words[at + 1])
                tables.append(self._executable.rows[first : first + count])
                words[at] = used
                used += count
            at += ROW_WORDS[shape]
        return np.concatenate(tables)

    def tables(self) -> tuple[Array, Array, Array, Array]:
        """Batches, tiles, numbers of vertices and rows."""
        given = self._executable
        batches = np.array(self._batches, np.int64).reshape(-1, len(Batch))
        return batches, _joined(given.tiles, self._tiles), _joined(given.vertex_ids, self._vertices), _joined(given.rows, self._rows)


def _joined(like: Array, parts: list[Array]) -> Array:
    return np.concatenate([np.zeros(0, like.dtype), *parts])


def _copies(executable: Executable, shuffle: Shuffle) -> tuple[Array, Array, Array]:
    """Groups, words and spans with the groups of each phase, and the entries of each group, in another order."""
    groups, spans = executable.groups.copy(), executable.spans.copy()
    words = executable.words.copy()
    pairs = words.reshape(-1, 2)
    for begin, end in np.unique(executable.phases[:, [Phase.COPY_BEGIN, Phase.COPY_END]], axis=0).tolist():
        if begin < end:
            groups[begin:end] = groups[begin:end][shuffle.order(end - begin)]
    for group in groups:
        kind, first, count = int(group[Group.KIND]), int(group[Group.BEGIN]), int(group[Group.COUNT])
        if kind == GroupKind.STRIDED:
            _turn(group, shuffle)
        else:
            table = pairs if kind == GroupKind.WORDS else spans
            table[first : first + count] = table[first : first + count][shuffle.order(count)]
    return groups, words, spans


def _turn(group: Array, shuffle: Shuffle) -> None:
    """Perhaps go through a loop of a strided group backwards."""
    loops = ((Group.COUNT, Group.SOURCE2, Group.TARGET2), (Group.COUNT1, Group.SOURCE1, Group.TARGET1))
    for count, source, target in loops:
        if shuffle.coin():
            group[Group.SOURCE] += (group[count] - 1) * group[source]
            group[Group.TARGET] += (group[count] - 1) * group[target]
            group[[source, target]] *= -1
