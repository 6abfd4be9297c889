"""The timing model: how many tile cycles a step takes on the modelled machine. The one place that says so.

Constants come from published measurements; each names its row of the figures listed in docs/model.md.
Rows are of a Mk1 chip where no later one is public. See docs/model.md for what the model leaves out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from popcore.codelet import Codelet
from popcore.compiler.ir import GroupPlan, Layout, Moves
from popcore.compiler.links import busiest_seconds, link_loads
from popcore.errors import CodeletError
from popcore.target import Target
from popcore.topology import Link
from popcore.types import Array

EXCHANGE_GENERAL = 263  # cycles beside the words of the busiest tile, barrier included: J-PERM-1216 (0.165 us at 1.6 GHz, one word)
EXCHANGE_GATHER = 120  # the same where one tile receives from many: J-GAL-1216 (0.835 us, 1,216 words)
EXCHANGE_SCATTER = 267  # the same where one tile sends to many: J-SCL-1216 (0.927 us, 1,216 words)
EXECUTE = 20  # control cycles of one Execute: LP-1 (two of them around 2 x 3,600 cycles of vertices take 7,238)
CONTROL = 20  # a branch, a loop's round or a call: taken to cost the supervisor as much as an Execute
LAUNCH = 6  # cycles to start a worker's vertex: one issue slot of each of the six contexts (ISA 2.3)
ONTILE_LAUNCH = 45  # cycles to start an on-tile rearrangement on the workers: a supervisor vertex, TS-AMP rows
STREAM_SETUP = 1500  # device-side cycles of one stream copy: LP-4
DEFAULT_PROLOGUE, DEFAULT_PER_ELEMENT = 25, 3  # worker cycles assumed for a codelet that says nothing: PT-add_fp32 (3 a vector), as if not vectorised


@dataclass(frozen=True)
class StepCost:
    """Cycles of one execution of a step's phase, by kind, and the bytes behind them."""

    compute: int = 0
    exchange: int = 0
    sync: int = 0
    control: int = 0
    host: int = 0
    exchange_bytes: int = 0
    link_bytes: int = 0
    host_bytes: int = 0
    remote_bytes: int = 0
    links: tuple[tuple[Link, float], ...] = ()  # bundles and the bytes they carry

    @property
    def cycles(self) -> tuple[int, int, int, int, int]:
        return self.compute, self.exchange, self.sync, self.control, self.host


def exchange_cost(moves: Moves, layout: Layout, target: Target) -> StepCost:
    """Cycles of moving ``moves``: exchange between tiles, rearrangement on a tile, links between IPUs.

    A tile sends and receives a word a cycle at once, and the phase ends with its slowest tile; what many
    tiles receive from one place is sent once. Links carry their words meanwhile: the phase lasts as long as the slower of the two
    (the latencies that were measured between chips, rows J-HOP, are of whole messages, from tile to tile).
    """
    if not len(moves):
        return StepCost()
    source, dest = layout.tile_of(moves.source).astype(np.int64), layout.tile_of(moves.target).astype(np.int64)
    tiles = layout.num_tiles
    inside = (source < tiles) & (dest < tiles)  # the staging area is the host's
    local = inside & (source == dest)
    away = inside & ~local
    compute = 0
    if local.any():
        busiest = np.bincount(dest[local], weights=moves.nbytes[local]).max()
        compute = ONTILE_LAUNCH + int(-(-busiest // target.memcpy_bytes_per_cycle))
    if not away.any():
        return StepCost(compute=compute)
    width = target.exchange_bytes_per_cycle
    sent_from, nbytes = source[away], moves.nbytes[away]
    once = moves[away].sent_once()
    words_out = np.bincount(sent_from[once], weights=-(-nbytes[once] // width))
    words_in = np.bincount(dest[away], weights=-(-nbytes // width))
    senders, receivers = np.count_nonzero(words_out), np.count_nonzero(words_in)
    words = int(max(words_out.max(), words_in.max()))
    fixed = EXCHANGE_GENERAL
    if receivers == 1 and senders > 1:
        fixed = EXCHANGE_GATHER
    elif senders == 1 and receivers > 1:
        fixed = EXCHANGE_SCATTER
    barrier = target.max_ipu_sync_delay
    total = max(fixed + words, barrier)
    crossing, link_bytes, links = _link_cycles(sent_from, dest[away], nbytes, target)
    return StepCost(compute, max(total, crossing) - barrier, barrier, exchange_bytes=int(nbytes.sum()), link_bytes=link_bytes, links=links)


def _link_cycles(source: Array, dest: Array, nbytes: Array, target: Target) -> tuple[int, int, tuple[tuple[Link, float], ...]]:
    """Cycles of the busiest link bundle, all bytes that cross, and the bytes of each bundle."""
    from_ipu, to_ipu = source // target.tiles_per_ipu, dest // target.tiles_per_ipu
    crossing = from_ipu != to_ipu
    if not crossing.any():
        return 0, 0, ()
    pairs, which = np.unique(from_ipu[crossing] * target.num_ipus + to_ipu[crossing], return_inverse=True)
    loads = np.bincount(which, weights=nbytes[crossing])
    flows = [(*divmod(pair, target.num_ipus), load) for pair, load in zip(pairs.tolist(), loads.tolist(), strict=True)]
    latency, load = link_loads(target, flows)
    return int(np.ceil((latency + busiest_seconds(target, load)) * target.clock_hz)), int(nbytes[crossing].sum()), tuple(load.items())


def _sharers(target: Target, replicas: int) -> int:
    """How many replicas share what a machine has, all of them moving data at once."""
    return max(1, min(replicas, target.system.ipus_per_machine // target.num_ipus))


def stream_cost(nbytes: int, target: Target, replicas: int = 1) -> StepCost:
    """A transfer between host and tiles of one IPU, the host being ready."""
    rate = min(target.system.host_bytes_per_second_per_ipu, target.system.host_bytes_per_second / _sharers(target, replicas))
    return StepCost(host=STREAM_SETUP + int(np.ceil(nbytes / rate * target.clock_hz)), host_bytes=nbytes)


def callback_cycles(target: Target, begin: bool, end: bool) -> int:
    """Cycles for which a stream copy waits for the host's callback: until the data is there, and until the host has answered."""
    wait_begin, wait_end = target.system.callback_cycles
    return wait_begin * begin + wait_end * end


def remote_cost(nbytes: int, target: Target, replicas: int = 1) -> StepCost:
    """A transfer between Streaming Memory and tiles."""
    rate = (target.system.streaming_bytes_per_second or target.system.host_bytes_per_second) / _sharers(target, replicas)
    return StepCost(host=STREAM_SETUP + int(np.ceil(nbytes / rate * target.clock_hz)), remote_bytes=nbytes)


def barrier_cost(target: Target) -> StepCost:
    """A barrier of all tiles; of all IPUs where there are several."""
    hops = max(target.num_ipus - 1, 0)
    external = int(np.ceil(2 * hops * target.chip.sync_seconds_per_hop * target.clock_hz))
    return StepCost(sync=target.max_ipu_sync_delay + external)


def compute_cost(groups: Sequence[tuple[Codelet, GroupPlan, Array]], target: Target) -> StepCost:
    """Cycles of the vertices of one compute set: those of its slowest tile.

    ``groups``: codelet, where its vertices are, and worker cycles of each (``vertex_cycles``).
    A tile hands its vertices to six workers in turn; each worker issues once in six cycles.
    """
    tiles = [plan.tile for _, plan, _ in groups if len(plan.tile)]
    if not tiles:
        return StepCost(control=EXECUTE)
    tile = np.concatenate(tiles).astype(np.int64)
    cycles = np.concatenate([c for _, plan, c in groups if len(plan.tile)])
    many = np.concatenate([np.full(len(p.tile), c.workers > 1) for c, p, _ in groups if len(p.tile)])
    workers = target.num_worker_contexts
    alone = np.zeros(int(tile.max()) + 1)
    np.add.at(alone, tile[many], cycles[many] * workers + LAUNCH)  # all workers run it: nothing beside it
    tile, cycles = tile[~many], cycles[~many]
    if len(tile):
        order = np.argsort(tile, kind="stable")
        tile, cycles = tile[order], cycles[order]
        turn = np.arange(len(tile)) - np.searchsorted(tile, tile, "left")
        load = np.zeros((len(alone), workers))
        np.add.at(load, (tile, turn % workers), cycles * workers + LAUNCH)
        alone += load.max(axis=1)
    return StepCost(compute=int(np.ceil(alone.max())), control=EXECUTE)


class _Size:
    """Stands for a field when ``cycles(self)`` is asked: it has a size and a shape and no values."""

    def __init__(self, shape: tuple[int, ...], parts: tuple[_Size, ...] = ()) -> None:
        self.shape, self._parts = shape, parts

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: int) -> _Size:
        return self._parts[index]


def vertex_cycles(codelet: Codelet, plan: GroupPlan, estimate: Array) -> Array:
    """Worker cycles of each vertex of a group, float64[n]: the user's estimate, else ``cycles(self)``, else by size.

    ``estimate``: int64[n] of ``set_perf_estimate``, -1 where it was not called. All three count what one worker
    issues, as PopLibs' estimators do; with six workers sharing the tile, one such cycle takes six of the tile's.
    """
    count = len(plan.tile)
    if not count:
        return np.zeros(0)
    shapes = [plan.sizes[f.name].reshape(count, -1) for f in codelet.fields if f.shape != "list"]
    lists = [_list_elements(plan, f.name) for f in codelet.fields if f.shape == "list"]
    columns = np.hstack([*shapes, *(e[:, None] for e in lists)]) if shapes or lists else np.zeros((count, 1), np.int64)
    _, first, kind = np.unique(_row_numbers(columns), return_index=True, return_inverse=True)
    found = np.array([_cycles_of(codelet, plan, int(i)) for i in first])
    return np.where(estimate >= 0, estimate, found[kind])


def _row_numbers(columns: Array) -> Array:
    """int64[rows]: a number for each row of a table of numbers from 0 on, the same for equal rows. Sorting numbers takes a tenth of sorting rows."""
    made = np.zeros(len(columns), np.int64)
    for column in columns.T:
        _, made = np.unique(made * (int(column.max()) + 1) + column, return_inverse=True)
    return made


def _list_elements(plan: GroupPlan, name: str) -> Array:
    first, _, _, elements = plan.pieces[name]
    total = np.concatenate([[0], np.cumsum(elements)])
    found: Array = total[first[1:]] - total[first[:-1]]
    return found


def _cycles_of(codelet: Codelet, plan: GroupPlan, vertex: int) -> float:
    sizes: dict[str, Any] = {}
    for f in codelet.fields:
        if f.shape == "list":
            first, _, _, elements = plan.pieces[f.name]
            parts = tuple(_Size((int(n),)) for n in elements[first[vertex] : first[vertex + 1]])
            sizes[f.name] = _Size((len(parts),), parts)
        elif f.shape == "matrix":
            sizes[f.name] = _Size(tuple(int(n) for n in plan.sizes[f.name][vertex]))
        elif f.shape == "vector":
            sizes[f.name] = _Size((int(plan.sizes[f.name][vertex]),))
    own = getattr(codelet.cls, "cycles", None)
    if own is not None:
        stand_in = codelet.cls.__new__(codelet.cls)
        stand_in.__dict__.update(sizes)
        try:
            return float(own(stand_in))
        except Exception as error:
            raise CodeletError(
                f"cycles of codelet {codelet.name} ({codelet.site}) raised {type(error).__name__}: {error}",
                "use only len(), .size and .shape of the fields there, and return a number",
            ) from error
    most = max((sum(p.size for p in s._parts) if s._parts else s.size for s in sizes.values()), default=1)
    return (DEFAULT_PROLOGUE + DEFAULT_PER_ELEMENT * most) / codelet.workers
