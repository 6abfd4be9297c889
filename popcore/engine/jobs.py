"""Who does what in a large phase: job lists for each thread, for all phases of an Executable at once.

A phase's tiles are cut into intervals; each thread has the same number of them, ascending. Vertices belong to the
interval of their tile and copies to the interval of the tile they write to, so that a tile's data stays in one
processor's cache from phase to phase. Where that would leave threads idle the work is cut evenly instead.
A fusable phase has more intervals than threads: an interval's copies and then its vertices run while its data is in the cache.

Everything here is NumPy over all phases: a program may have 10**5 of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from popcore.executable.executable import Executable
from popcore.executable.opcodes import Batch, Group, GroupKind, Phase, PhaseFlag
from popcore.kernels import status
from popcore.types import Array

THREAD_COST = 32 << 10  # a phase that moves fewer bytes is over before another thread would have begun
VERTEX_COST = 64  # bytes that could be moved in the time a vertex takes besides its fields
INTERVAL_BYTES = 256 << 10  # of a fused phase: half of an L2 cache
MAX_INTERVALS = 1 << 12
IMBALANCE = 1.25  # the busiest thread's work over the mean, above which tiles no longer decide
FAR = 1 << 62


@dataclass(frozen=True)
class Jobs:
    """The job lists. ``table``: rows as in ``status.JOB_*``; thread t of range r does rows ``ranges[r, t]`` (first, last + 1)."""

    range_of: Array  # int64[phases]: row of ``ranges``, -1 for a phase that the calling thread does alone
    ranges: Array  # int64[k, threads, 2]
    table: Array  # int64[n, 4]
    barrier: Array  # bool[k]: the lists of the range have a barrier


def expand(begin: Array, end: Array) -> tuple[Array, Array]:
    """For ranges ``begin[i]..end[i]``: which i, and the number, of each member."""
    counts = np.maximum(end - begin, 0)
    owner = np.repeat(np.arange(len(begin)), counts)
    return owner, np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts - begin, counts)


def search(values: Array, low: Array, high: Array, key: Array) -> Array:
    """For each i: the first k in ``low[i]..high[i]`` with ``values[k] >= key[i]``, else ``high[i]``. ``values`` ascend in each range."""
    low, high = low.copy(), high.copy()
    while len(open_ := np.flatnonzero(low < high)):
        middle = (low[open_] + high[open_]) >> 1
        below = values[middle] < key[open_]
        low[open_[below]] = middle[below] + 1
        high[open_[~below]] = middle[~below]
    return low


def phase_costs(executable: Executable) -> Array:
    """int64[phases]: bytes moved, or what could be moved in the same time."""
    batches = executable.batches
    vertices = np.concatenate(([0], np.cumsum(batches[:, Batch.TILES_COUNT] * batches[:, Batch.ROWS_COUNT])))
    phases = executable.phases
    here = vertices[np.maximum(phases[:, Phase.BATCH_END], phases[:, Phase.BATCH_BEGIN])] - vertices[phases[:, Phase.BATCH_BEGIN]]
    costs: Array = phases[:, Phase.WORK] + VERTEX_COST * here
    return costs


class _Plan:
    """The work on the phases that are large enough, as columns: *items* are their groups and batches."""

    def __init__(self, executable: Executable, groups: Array, chosen: Array, costs: Array, threads: int) -> None:
        self.executable, self.threads, self.chosen, self.costs = executable, threads, chosen, costs
        phases = executable.phases[chosen]
        self.fusable = (phases[:, Phase.FLAGS] & PhaseFlag.FUSABLE != 0) & (phases[:, Phase.COPY_BEGIN] < phases[:, Phase.COPY_END])
        self.fusable &= phases[:, Phase.BATCH_BEGIN] < phases[:, Phase.BATCH_END]
        self.group_phase, self.group = expand(phases[:, Phase.COPY_BEGIN], phases[:, Phase.COPY_END])
        self.batch_phase, self.batch = expand(phases[:, Phase.BATCH_BEGIN], phases[:, Phase.BATCH_END])
        self.groups = groups[self.group]
        self.batches = executable.batches[self.batch]
        self.low, self.high = self._tile_span()

    def _tile_of(self, address: Array) -> Array:
        tiles: Array = np.maximum(np.searchsorted(self.executable.memory.tile_base, address, "right") - 1, 0)
        return tiles

    def _targets(self) -> tuple[Array, Array]:
        """Arena byte that the first and the last entry of each group write to."""
        groups, kind = self.groups, self.groups[:, Group.KIND]
        begin, last = groups[:, Group.BEGIN], groups[:, Group.BEGIN] + groups[:, Group.COUNT] - 1
        first_byte = 4 * groups[:, Group.TARGET]
        last_byte = first_byte + 4 * (groups[:, Group.COUNT] - 1) * groups[:, Group.TARGET2]
        pairs, spans = np.flatnonzero(kind == GroupKind.WORDS), np.flatnonzero(kind == GroupKind.SPANS)
        targets = self.executable.words[1::2]
        first_byte[pairs], last_byte[pairs] = 4 * targets[begin[pairs]].astype(np.int64), 4 * targets[last[pairs]].astype(np.int64)
        first_byte[spans], last_byte[spans] = self.executable.spans[begin[spans], 1], self.executable.spans[last[spans], 1]
        return first_byte, last_byte

    def _tile_span(self) -> tuple[Array, Array]:
        """First and last tile of each phase: of its vertices, else of what its copies write."""
        low, high = np.full(len(self.chosen), FAR), np.full(len(self.chosen), -1)
        begin, count = self.batches[:, Batch.TILES_BEGIN], self.batches[:, Batch.TILES_COUNT]
        some = count > 0
        np.minimum.at(low, self.batch_phase[some], self.executable.tiles[begin[some]])
        np.maximum.at(high, self.batch_phase[some], self.executable.tiles[(begin + count - 1)[some]])
        some = (high[self.group_phase] < 0) & (self.groups[:, Group.COUNT] > 0)
        if some.any():
            first, last = self._targets()
            for bytes_ in (first[some], last[some]):
                tiles = self._tile_of(bytes_)
                np.minimum.at(low, self.group_phase[some], tiles)
                np.maximum.at(high, self.group_phase[some], tiles)
        return np.where(high < 0, 0, low), np.maximum(high, 0)

    def bounds(self, intervals: Array) -> tuple[Array, Array]:
        """Tile bounds of the intervals of each phase, one after the other, and where each phase's begin. The outer ones are open."""
        first = np.cumsum(intervals + 1) - (intervals + 1)
        phase, number = expand(np.zeros_like(intervals), intervals + 1)
        low, span = self.low[phase], (self.high - self.low + 1)[phase]
        tile = low + span * number // intervals[phase]
        tile[number == 0] = -1
        tile[number == intervals[phase]] = FAR
        return tile, first

    def _bound_bytes(self, tile: Array) -> Array:
        base = self.executable.memory.tile_base
        inside = base[np.clip(tile, 0, len(base) - 1)]
        return np.where(tile < 0, -1, np.where(tile >= len(base), FAR, inside))

    def cut_batches(self, intervals: Array, tile: Array, first: Array) -> Array:
        """For each batch and each bound of its phase: how many of the batch's tiles lie before it; flat, batch after batch."""
        item, number = expand(np.zeros(len(self.batch), np.int64), intervals[self.batch_phase] + 1)
        begin = self.batches[item, Batch.TILES_BEGIN]
        bound = tile[first[self.batch_phase[item]] + number]
        cut: Array = search(self.executable.tiles, begin, begin + self.batches[item, Batch.TILES_COUNT], bound) - begin
        return cut

    def cut_groups(self, intervals: Array, tile: Array, first: Array) -> tuple[Array, Array]:
        """The same for groups, in entries; and for which groups an interval's entries write its own tiles alone."""
        item, number = expand(np.zeros(len(self.group), np.int64), intervals[self.group_phase] + 1)
        byte = self._bound_bytes(tile)[first[self.group_phase[item]] + number]
        groups = self.groups[item]
        begin, count, kind = groups[:, Group.BEGIN], groups[:, Group.COUNT], groups[:, Group.KIND]
        cut, clean = np.zeros(len(item), np.int64), np.ones(len(self.group), bool)
        targets, spans = self.executable.words[1::2], self.executable.spans
        pairs = np.flatnonzero(kind == GroupKind.WORDS)
        cut[pairs] = search(targets, begin[pairs], (begin + count)[pairs], np.minimum((byte[pairs] + 3) >> 2, 1 << 32)) - begin[pairs]
        inner = pairs[cut[pairs] > 0]
        last = 4 * (targets[(begin + cut - 1)[inner]].astype(np.int64) + groups[inner, Group.WIDTH])
        clean[item[inner[last > byte[inner]]]] = False
        rows = np.flatnonzero(kind == GroupKind.SPANS)
        cut[rows] = search(spans[:, 1], begin[rows], (begin + count)[rows], byte[rows]) - begin[rows]
        inner = rows[cut[rows] > 0]
        last = spans[(begin + cut - 1)[inner], 1] + spans[(begin + cut - 1)[inner], 2]
        clean[item[inner[last > byte[inner]]]] = False
        nested = np.flatnonzero(kind == GroupKind.STRIDED)
        cut[nested], bad = _cut_strided(groups[nested], byte[nested], number[nested], intervals[self.group_phase[item[nested]]])
        clean[item[nested[bad]]] = False
        return cut, clean

    def weights(self) -> tuple[Array, Array]:
        """Cost of one entry of each group, of one tile of each batch."""
        groups, kind = self.groups, self.groups[:, Group.KIND]
        entry = 4 * groups[:, Group.WIDTH] + 16
        nested, rows = kind == GroupKind.STRIDED, np.flatnonzero(kind == GroupKind.SPANS)
        entry[nested] *= groups[nested, Group.COUNT1]
        if len(rows):
            total = np.concatenate(([0], np.cumsum(self.executable.spans[:, 2])))
            begin, count = groups[rows, Group.BEGIN], groups[rows, Group.COUNT]
            entry[rows] = 16 + (total[begin + count] - total[begin]) // np.maximum(count, 1)
        return entry, self.batches[:, Batch.WORK] + VERTEX_COST * self.batches[:, Batch.ROWS_COUNT]


def _cut_strided(groups: Array, byte: Array, number: Array, intervals: Array) -> tuple[Array, Array]:
    """Rounds of the outer loop before each bound; and where a round would be on both sides of one, or rounds do not ascend."""
    step, count = 4 * groups[:, Group.TARGET2], groups[:, Group.COUNT]
    start = 4 * groups[:, Group.TARGET]
    inner = 4 * ((groups[:, Group.COUNT1] - 1) * groups[:, Group.TARGET1] + groups[:, Group.WIDTH])
    ascending = (step > 0) & (groups[:, Group.TARGET1] >= 0)
    cut = np.clip(-((start - byte) // np.maximum(step, 1)), 0, count)
    cut = np.where(ascending, cut, count * number // intervals)
    bad = ~ascending | ((cut > 0) & (start + (cut - 1) * step + inner > byte))
    return cut, bad


def _even(phase: Array, weight: Array, count: Array, phases: int, threads: int) -> Array:
    """Cut the items of each phase, laid end to end, into equal shares: flat, ``threads`` + 1 bounds for each item."""
    total = (weight * count).astype(np.float64)
    before = np.cumsum(total) - total
    sums = np.bincount(phase, total, phases)
    before -= (np.cumsum(sums) - sums)[phase]
    goal = sums[phase][:, None] * np.arange(threads + 1) / threads
    cut = np.rint((goal - before[:, None]) / np.maximum(weight, 1)[:, None]).astype(np.int64)
    cut = np.clip(cut, 0, count[:, None])
    cut[:, threads] = count
    return cut.ravel()


def _shares(plan: _Plan, phase: Array, cut: Array, weight: Array) -> Array:
    """Work of each thread in each phase, [phases, threads], from cuts of ``threads`` intervals."""
    shares = np.zeros((len(plan.chosen), plan.threads))
    np.add.at(shares, phase, np.diff(cut.reshape(-1, plan.threads + 1), axis=1) * weight[:, None])
    return shares


def plan_jobs(executable: Executable, groups: Array, threads: int) -> Jobs:
    """Job lists for the phases that are worth several threads, or fusing.

    Needs: ``groups`` as the machine has them; entries of a group ascending by target, tiles of a batch ascending.
    Costs: about a microsecond for each group or batch of a large phase and thread.
    """
    costs = phase_costs(executable)
    fusable = (executable.phases[:, Phase.FLAGS] & PhaseFlag.FUSABLE != 0) & (costs >= 2 * INTERVAL_BYTES)
    chosen = np.flatnonzero(((costs >= THREAD_COST) & (threads > 1)) | fusable)
    range_of = np.full(len(costs), -1, np.int64)
    if not len(chosen):
        return Jobs(range_of, np.zeros((0, threads, 2), np.int64), np.zeros((0, status.JOB_WORDS), np.int64), np.zeros(0, bool))
    plan = _Plan(executable, groups, chosen, costs[chosen], threads)
    intervals = np.full(len(chosen), threads)
    tile, first = plan.bounds(intervals)
    group_cut, _ = plan.cut_groups(intervals, tile, first)
    batch_cut = plan.cut_batches(intervals, tile, first)
    entry, vertex = plan.weights()
    shares = _shares(plan, plan.group_phase, group_cut, entry), _shares(plan, plan.batch_phase, batch_cut, vertex)
    busiest, mean = (sum(reduce(share, axis=1) for share in shares) for reduce in (np.max, np.mean))
    balanced = busiest <= IMBALANCE * mean
    even_groups = _even(plan.group_phase, entry, plan.groups[:, Group.COUNT], len(chosen), threads)
    even_batches = _even(plan.batch_phase, vertex, plan.batches[:, Batch.TILES_COUNT], len(chosen), threads)
    group_cut = np.where(np.repeat(balanced[plan.group_phase], threads + 1), group_cut, even_groups)
    batch_cut = np.where(np.repeat(balanced[plan.batch_phase], threads + 1), batch_cut, even_batches)
    fused = plan.fusable & balanced & (plan.costs >= 2 * INTERVAL_BYTES)
    if fused.any():
        intervals, group_cut, batch_cut, fused = _fuse(plan, fused, group_cut, batch_cut)
    keep = fused | (threads > 1)
    range_of[chosen] = np.where(keep, np.arange(len(chosen)), -1)
    return Jobs(range_of, *_emit(plan, intervals, group_cut, batch_cut, fused, keep))


def _fuse(plan: _Plan, fused: Array, group_cut: Array, batch_cut: Array) -> tuple[Array, Array, Array, Array]:
    """Cut the phases that may be fused into more intervals; those that turn out not to be clean stay as they are."""
    threads = plan.threads
    each = np.clip(-(-plan.costs // (threads * INTERVAL_BYTES)), 1, MAX_INTERVALS)
    each = np.maximum(np.minimum(each, (plan.high - plan.low + 1) // threads), 1)
    intervals = np.where(fused, threads * each, threads)
    clean = np.zeros(0, bool)
    fine_groups = fine_batches = group_cut
    for _ in range(2):  # the second time without those that were not clean
        tile, first = plan.bounds(intervals)
        fine_groups, clean = plan.cut_groups(intervals, tile, first)
        fine_batches = plan.cut_batches(intervals, tile, first)
        unclean = np.zeros(len(fused), bool)
        unclean[plan.group_phase[~clean]] = True
        if not (fused & unclean).any():
            break
        fused = fused & ~unclean
        intervals = np.where(fused, intervals, threads)
    for phase, fine, coarse in ((plan.group_phase, fine_groups, group_cut), (plan.batch_phase, fine_batches, batch_cut)):
        plain = ~np.repeat(fused[phase], intervals[phase] + 1)
        fine[plain] = coarse[np.repeat(~fused[phase], threads + 1)]
    return intervals, fine_groups, fine_batches, fused


def _emit(plan: _Plan, intervals: Array, group_cut: Array, batch_cut: Array, fused: Array, keep: Array) -> tuple[Array, Array, Array]:
    """From the cuts: the ranges, the job table, and which ranges have a barrier."""
    threads, parts = plan.threads, []
    both = np.zeros((2, len(keep)), bool)
    for stage, (phase, index, cut, offset) in enumerate(
        (
            (plan.group_phase, plan.group, group_cut, np.where(plan.groups[:, Group.KIND] == GroupKind.STRIDED, 0, plan.groups[:, Group.BEGIN])),
            (plan.batch_phase, plan.batch, batch_cut, plan.batches[:, Batch.TILES_BEGIN]),
        )
    ):
        both[stage, phase] = True
        item, number = expand(np.zeros(len(phase), np.int64), intervals[phase])
        where = np.arange(len(item)) + item  # an item has one bound more than intervals
        begin, end = cut[where], cut[where + 1]
        kind = np.full(len(item), (status.JOB_COPY, status.JOB_BATCH)[stage])
        rows = np.stack((phase[item], number, 2 * np.full(len(item), stage), kind, index[item], begin + offset[item], end + offset[item]), axis=1)
        parts.append(rows[(begin < end) & keep[phase[item]]])
    divided = both.all(axis=0) & ~fused & keep & (threads > 1)
    waiting = np.flatnonzero(divided)
    if len(waiting):
        barrier = np.zeros((len(waiting), threads, 7), np.int64)
        barrier[:, :, 0], barrier[:, :, 1], barrier[:, :, 2], barrier[:, :, 3] = waiting[:, None], np.arange(threads), 1, status.JOB_BARRIER
        parts.append(barrier.reshape(-1, 7))
    rows = np.concatenate(parts)
    rows = rows[np.lexsort((rows[:, 4], rows[:, 2], rows[:, 1], rows[:, 0]))]
    thread = rows[:, 1] * threads // intervals[rows[:, 0]]
    bounds = np.searchsorted(rows[:, 0] * threads + thread, np.arange(len(keep) * threads + 1))
    ranges = np.stack((bounds[:-1], bounds[1:]), axis=1).reshape(-1, threads, 2)
    return ranges, np.ascontiguousarray(rows[:, 3:]), divided
