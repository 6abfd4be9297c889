"""The timing model: how many tile cycles a step takes on the modelled machine. The one place that says so.

Constants come from published measurements; each names its row of the figures listed in docs/model.md.
Rows are of a Mk1 chip where no later one is public. See docs/model.md for what the model leaves out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from popcore.codelet import Codelet
from popcore.compiler.ir import GroupPlan, Layout, Moves
from popcore.compiler.links import busiest_seconds, link_loads
from popcore.compiler.traffic import COLUMNS, Traffic, busiest_words, flows_between_ipus, leaves_ipu, traffic_of, way
from popcore.target import Target
from popcore.topology import Link
from popcore.types import Array

EXCHANGE_GENERAL = 263  # cycles beside the words of the busiest tile, barrier included: J-PERM-1216 (0.165 us at 1.6 GHz, one word, all over a chip)
ISLAND = 2  # of them for each island that the word with the longest way passes: JIA section 4.1.2
RIGHT, LEFT = 17, 19  # of them from one end of the exchange to the other, seven columns: RE; that to the left is longer: JIA section 4.1.2
LONGEST_WAY = 2 * 18 * ISLAND + LEFT  # of them all over a GC2: JIA figure 2.2, 19 islands in a column
EXCHANGE_NEAREST = EXCHANGE_GENERAL - LONGEST_WAY  # the same of a word that passes nothing
EXCHANGE_GATHER = 120  # the same where one tile receives from many: J-GAL-1216 (0.835 us, 1,216 words)
EXCHANGE_SCATTER = 286  # the same where one tile sends to many: J-SCL-76 (0.226 us, 76 words)
EXECUTE = 20  # control cycles of one Execute: LP-1 (two of them around 2 x 3,600 cycles of vertices take 7,238)
CONTROL = 20  # a branch, a loop's round or a call: taken to cost the supervisor as much as an Execute
LAUNCH = 6  # cycles to start a worker's vertex: one issue slot of each of the six contexts (ISA 2.3)
ONTILE_LAUNCH = 45  # cycles to start an on-tile rearrangement on the workers: a supervisor vertex, TS-AMP rows
ONTILE_RUN = 9  # of them for each run of bytes: two pointer adds, two to pack them, first load, rpt, last store, test for a tail, branch; by hand
STREAM_SETUP = 1500  # device-side cycles of one stream copy: LP-4


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

    A tile sends and receives a word a cycle at once, and the phase ends with its slowest tile; what many tiles receive from one place is
    sent once (``traffic.py``). What goes to other IPUs is exchanged in a phase of its own, as Poplar's profiles show it (rows LB-PH: "global");
    the latencies that were measured between chips, rows J-HOP, are of whole messages, from tile to tile, barrier included.
    """
    if not len(moves):
        return StepCost()
    source, dest = layout.tile_of(moves.source).astype(np.int64), layout.tile_of(moves.target).astype(np.int64)
    tiles = layout.num_tiles
    inside = (source < tiles) & (dest < tiles)  # the staging area is the host's
    local = inside & (source == dest)
    away = inside & ~local
    compute = _ontile_cycles(moves[local], dest[local], target) if local.any() else 0
    if not away.any():
        return StepCost(compute=compute)
    traffic = traffic_of(moves[away], source[away], dest[away], target.exchange_bytes_per_cycle)
    leaves = leaves_ipu(traffic, target)
    within = _inside_cycles(traffic[~leaves], target)
    crossing, link_bytes, links = _link_cycles(traffic[leaves], target)
    barriers = target.max_ipu_sync_delay * bool(within) + min(external_barrier(target), crossing)  # each of the two phases begins with one
    return StepCost(compute, within + crossing - barriers, barriers, exchange_bytes=int(traffic.nbytes.sum()), link_bytes=link_bytes, links=links)


def _ontile_cycles(moves: Moves, tile: Array, target: Target) -> int:
    """Cycles of moves from place to place on their tiles; its six workers share a tile's. The same put again right behind itself is no run of its own."""
    again = np.zeros(len(moves), bool)
    same = (moves.source[1:] == moves.source[:-1]) & (moves.source_offset[1:] == moves.source_offset[:-1]) & (moves.nbytes[1:] == moves.nbytes[:-1])
    again[1:] = same & (moves.target[1:] == moves.target[:-1]) & (moves.target_offset[1:] == moves.target_offset[:-1] + moves.nbytes[:-1])
    busiest = np.bincount(tile, weights=moves.nbytes / target.memcpy_bytes_per_cycle + np.where(again, 0, ONTILE_RUN)).max()
    return ONTILE_LAUNCH + int(np.ceil(busiest))


def _inside_cycles(traffic: Traffic, target: Target) -> int:
    """Cycles of an exchange within IPUs, its barrier included."""
    if not len(traffic):
        return 0
    return max(_exchange_fixed(traffic, target) + busiest_words(traffic, target), target.max_ipu_sync_delay)


def _link_cycles(traffic: Traffic, target: Target) -> tuple[int, int, tuple[tuple[Link, float], ...]]:
    """Cycles until the last word has crossed, all bytes that cross, and the bytes of each bundle.

    Words leave their tile, cross the bundles and arrive one behind the other: the slowest of the three sets the pace. Tiles take turns at a bundle.
    """
    if not len(traffic):
        return 0, 0, ()
    flows = flows_between_ipus(traffic, target)
    delay, load = link_loads(target, flows, one_tile_receives=bool((traffic.receiver == traffic.receiver[0]).all()))
    pace = max(busiest_seconds(target, load) * target.clock_hz, busiest_words(traffic, target))
    return int(np.ceil(delay * target.clock_hz + pace)), int(sum(flow.nbytes for flow in flows)), tuple(load.items())


def _exchange_fixed(traffic: Traffic, target: Target) -> int:
    """Cycles beside the words, by pattern: one tile sends many messages, one tile receives from many, or anything else, which counts how far it goes."""
    senders, receivers = (np.count_nonzero(np.bincount(tile)) for tile in (traffic.sender, traffic.receiver))
    if receivers == 1 and senders > 1:
        return EXCHANGE_GATHER
    if senders == 1 and receivers > 1 and len(traffic.first) > 1:
        return EXCHANGE_SCATTER
    islands, columns = way(traffic, target)
    across = np.maximum(RIGHT * columns, -LEFT * columns) / (COLUMNS // 2 - 1)
    return EXCHANGE_NEAREST + int(np.ceil((ISLAND * islands + across).max()))


def _sharers(target: Target, replicas: int, ipus: int) -> int:
    """How many replicas share what so many IPUs have, all of them moving data at once."""
    return max(1, min(replicas, ipus // target.num_ipus))


def stream_cost(by_ipu: Array, target: Target, replicas: int = 1) -> StepCost:
    """A transfer between host and tiles, the host being ready. ``by_ipu``: bytes of each IPU of the target, int64[num_ipus]."""
    system = target.system
    by_link = np.add.reduceat(by_ipu, np.arange(0, len(by_ipu), system.ipus_per_host_link))
    own, shared = by_ipu.max() / system.host_bytes_per_second_per_ipu, by_link.max() / system.host_bytes_per_second
    seconds = max(own, shared * _sharers(target, replicas, system.ipus_per_host_link))
    return StepCost(host=STREAM_SETUP + int(np.ceil(seconds * target.clock_hz)), host_bytes=int(by_ipu.sum()))


def callback_cycles(target: Target, begin: bool, end: bool) -> int:
    """Cycles for which a stream copy waits for the host's callback: until the data is there, and until the host has answered."""
    wait_begin, wait_end = target.system.callback_cycles
    return wait_begin * begin + wait_end * end


def remote_cost(nbytes: int, target: Target, replicas: int = 1) -> StepCost:
    """A transfer between Streaming Memory and tiles."""
    rate = (target.system.streaming_bytes_per_second or target.system.host_bytes_per_second) / _sharers(target, replicas, target.system.ipus_per_machine)
    return StepCost(host=STREAM_SETUP + int(np.ceil(nbytes / rate * target.clock_hz)), remote_bytes=nbytes)


def barrier_cost(target: Target) -> StepCost:
    """A barrier of all tiles; of all IPUs where there are several."""
    return StepCost(sync=external_barrier(target))


def external_barrier(target: Target) -> int:
    """Cycles of a barrier of all tiles of all IPUs: a hop within a rung and one for every four IPUs, there and back (PL: setGlobalSyncLatency)."""
    hops = 1 + target.num_ipus // 4 if target.num_ipus > 1 else 0
    return target.max_ipu_sync_delay + int(np.ceil(2 * hops * target.chip.sync_seconds_per_hop * target.clock_hz))


def tile_loads(groups: Sequence[tuple[Codelet, GroupPlan, Array]], target: Target) -> tuple[Array, list[Array]]:
    """What the workers of each tile that has vertices do, and where each vertex is counted.

    ``groups``: codelet, where its vertices are, and worker cycles of each (``vertex_cost``). A tile hands its vertices to six workers in
    turn; each worker issues once in six cycles. One that all workers run has nothing beside it.

    Returns: tile cycles, float64[tiles, workers + 1], of each worker and then of all together; for each group the index in it, flat, of
        each of its vertices, int64[n].
    """
    workers = target.num_worker_contexts
    tile = np.concatenate([np.zeros(0, np.int64), *(plan.tile for _, plan, _ in groups)]).astype(np.int64)
    cycles = np.concatenate([np.zeros(0), *(each for _, _, each in groups)])
    many = np.concatenate([np.zeros(0, bool), *(np.full(len(p.tile), c.workers > 1) for c, p, _ in groups)])
    used, row = np.unique(tile, return_inverse=True)
    column = np.full(len(tile), workers)
    alone = np.flatnonzero(~many)
    order = alone[np.argsort(row[alone], kind="stable")]
    column[order] = (np.arange(len(order)) - np.searchsorted(row[order], row[order], "left")) % workers
    load = np.zeros((len(used), workers + 1))
    np.add.at(load, (row, column), cycles * workers + LAUNCH)
    ends = np.cumsum([len(plan.tile) for _, plan, _ in groups])
    return load, np.split(row * (workers + 1) + column, ends[:-1]) if len(ends) else []


def slowest_tile(load: Array) -> int:
    """Cycles of the slowest tile of ``tile_loads``."""
    return int(np.ceil((load[:, :-1].max(axis=1) + load[:, -1]).max())) if len(load) else 0
