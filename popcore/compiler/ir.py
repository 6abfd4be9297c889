"""What passes hand to each other: linear code over steps, where elements live, and copies between slabs.

Words   A *step* is one thing the machine does between two syncs: a compute set with the copies around it,
        a copy, or a transfer between tiles and the host's staging area.
        A *slab* is the part of one variable that lives on one tile, packed; also each tile's area for
        exchange buffers, and the staging area. A place is a slab and a byte offset in it, so that copies can
        be planned before addresses are decided.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from popcore.executable import Decision, Yield
from popcore.graph.regions import Regions
from popcore.graph.vertex import ComputeSet
from popcore.program.collectives import Collective
from popcore.types import Array

DEVICE_TO_HOST, HOST_TO_DEVICE = "out", "in"


@dataclass(frozen=True)
class ComputeStep:
    """One compute set."""

    compute_set: ComputeSet
    name: str


@dataclass(frozen=True)
class CopyStep:
    """Elements of ``source`` to those of ``target``, in view order; read all, then written."""

    source: Regions
    target: Regions
    name: str


@dataclass(frozen=True)
class HostStep:
    """Elements of a tensor to ("out") or from ("in") consecutive bytes of the staging area."""

    regions: Regions
    direction: str
    offset: int  # bytes into the staging area
    nbytes: int
    name: str


Step = ComputeStep | CopyStep | HostStep


@dataclass(frozen=True)
class Code:
    """Programs as one flat list of instructions, see ``executable.opcodes``.

    RUN's operand is a step number. BRANCH's and SWITCH's first operand is a row of ``predicates``.
    """

    instructions: Array  # int64[n, 4]
    labels: tuple[str, ...]
    label: Array  # int32[n]
    entries: Array  # int64[programs]
    switches: Array  # int64[k, 2]
    loop_slots: int
    call_depth: int
    steps: tuple[Step, ...]
    predicates: Array  # int64[k, 2]: variable, element
    yields: tuple[Yield, ...]
    collectives: tuple[Collective, ...] = ()
    decisions: tuple[Decision, ...] = ()  # tests of several replicas, by instruction
    streams_of: tuple[tuple[str, ...], ...] = ()  # for each program the handles of the streams it uses
    reads: dict[str, int] = field(default_factory=dict)  # host handle: its step
    writes: dict[str, int] = field(default_factory=dict)
    undefined: dict[int, tuple[int, ...]] = field(default_factory=dict)  # instruction: variables whose contents end there
    ended: tuple[Regions, ...] = ()  # with the full check: what each WriteUndef names


@dataclass(frozen=True)
class Layout:
    """Where every element of every variable in use lives. Elements go by their ids, see ``graph.regions``."""

    element_bytes: Array  # int64[variables]
    start: Array  # int64[k]: first element of each mapped run, ascending
    end: Array  # int64[k]
    run_slab: Array  # int64[k]
    run_offset: Array  # int64[k]: bytes from the slab's start
    slab_variable: Array  # int32[slabs]
    slab_tile: Array  # int32[slabs]
    slab_bytes: Array  # int64[slabs]
    num_tiles: int

    @property
    def num_slabs(self) -> int:
        return len(self.slab_tile)

    @property
    def staging(self) -> int:
        """The slab number of the staging area."""
        return self.num_slabs + self.num_tiles

    def buffer_slab(self, tile: Array) -> Array:
        """The slab numbers of ``tile``'s areas for exchange buffers."""
        return self.num_slabs + tile

    def tile_of(self, slab: Array) -> Array:
        """The tile of each slab; ``num_tiles`` for the staging area."""
        found: Array = self._tile_of_each_slab[slab]
        return found

    @cached_property
    def _tile_of_each_slab(self) -> Array:
        return np.concatenate([self.slab_tile, np.arange(self.num_tiles + 1, dtype=np.int32)])

    def locate(self, regions: Regions) -> tuple[Array, Places]:
        """Split runs of elements where the tile changes.

        Returns: for each piece the number of the run it is part of, and its place; in order.
        """
        some = np.flatnonzero(regions.length)
        first = regions.ids[some]
        last = first + regions.length[some]
        low = np.searchsorted(self.start, first, "right") - 1
        high = np.searchsorted(self.start, last - 1, "right") - 1
        counts = high - low + 1
        run = np.repeat(np.arange(len(some)), counts)
        begins = np.cumsum(counts) - counts
        mapped = low[run] + np.arange(len(run)) - begins[run]
        begin = np.maximum(first[run], self.start[mapped])
        end = np.minimum(last[run], self.end[mapped])
        width = self.element_bytes[regions.var[some]][run]
        offset = self.run_offset[mapped] + (begin - self.start[mapped]) * width
        return some[run], Places(self.run_slab[mapped], offset, (end - begin) * width)


@dataclass(frozen=True)
class Places:
    """Runs of bytes in slabs."""

    slab: Array  # int64[n]
    offset: Array  # int64[n]
    nbytes: Array  # int64[n]

    def __getitem__(self, which: Array) -> Places:
        return Places(self.slab[which], self.offset[which], self.nbytes[which])


@dataclass(frozen=True)
class Moves:
    """Copies from place to place: one row a run of bytes."""

    source: Array  # int64[n]: slab
    source_offset: Array
    target: Array
    target_offset: Array
    nbytes: Array

    def __len__(self) -> int:
        return len(self.nbytes)

    def __getitem__(self, which: Array | slice) -> Moves:
        return Moves(self.source[which], self.source_offset[which], self.target[which], self.target_offset[which], self.nbytes[which])

    def sent_once(self) -> Array:
        """Rows that send something no row before sends: what many receive from one place is sent once. int64[k]"""
        order = np.lexsort((self.nbytes, self.source_offset, self.source))
        new = np.ones(len(order), bool)
        new[1:] = np.any([c[order][1:] != c[order][:-1] for c in (self.source, self.source_offset, self.nbytes)], axis=0)
        return order[new]


def no_moves() -> Moves:
    none = np.zeros(0, np.int64)
    return Moves(none, none, none, none, none)


@dataclass(frozen=True)
class GroupPlan:
    """The vertices of one codelet in one compute set, and where their fields are."""

    vertices: Array  # int64[n]: their numbers in the VertexGroup, ascending by tile
    tile: Array  # int32[n]
    slab: dict[str, Array]  # field: int64[n], the slab of its first byte; -1: no elements
    offset: dict[str, Array]  # field: int64[n], bytes into the slab
    sizes: dict[str, Array]  # field: int64[n] elements, or int64[n, 2] rows and columns; lists: number of pieces
    pieces: dict[str, tuple[Array, Array, Array, Array]]  # list fields: first piece of each vertex int64[n + 1], slab, offset, elements


@dataclass(frozen=True)
class StepPlan:
    """A step with its copies planned."""

    before: Moves
    groups: tuple[GroupPlan, ...]
    after: Moves
    buffer_bytes: Array  # int64[num_tiles] of exchange buffers the step needs
    keeping: int = 0  # of ``before`` the last moves, which fetch what an Output field held: elements that its vertex leaves alone stay. A machine has none


@dataclass(frozen=True)
class MemoryPlan:
    """Addresses."""

    address: Array  # int64[slabs + tiles + 1]: arena byte of each slab, exchange buffer area, and the staging area
    tile_base: Array  # int64[num_tiles]
    tile_bytes: Array  # int64[num_tiles]
    staging_bytes: int
    arena_bytes: int
    by_category: dict[str, Array]
