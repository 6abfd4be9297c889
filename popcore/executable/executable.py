"""Executable: everything an Engine needs, and nothing it may change. The contract between compiler and engine."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from popcore.codelet import Codelet
from popcore.target import Target
from popcore.types import Array, ElementType

KINDS = ("compute", "exchange", "sync", "control", "host")
"""What modelled cycles are spent on; the columns of ``Costs.cycles``."""

ORIGINS = ("user", "formula", "automatic", "stopgap")
"""Whose word the cycles of a vertex are: ``set_perf_estimate``, the codelet's ``cycles(self)``, the estimate of its code, or, where that
is not understood, its size alone."""
USER, FORMULA, AUTOMATIC, STOPGAP = range(4)
COUNTED_UNIT = 16
"""Parts of a worker cycle: what codelets add up whose cycles data decides."""


@dataclass(frozen=True)
class Handle:
    """A named endpoint for the host: ``write_tensor`` / ``read_tensor``."""

    name: str
    tensor: str  # the variable's name, for messages
    dtype: ElementType
    shape: tuple[int, ...]
    phase: int  # the phase that moves the tensor between its tiles and the staging area; -1: nothing to move


@dataclass(frozen=True)
class Stream:
    """A FIFO between host and device."""

    name: str
    dtype: ElementType
    elements: int  # of one transfer, on each replica
    to_device: bool
    buffering_depth: int = 1
    broadcast: bool = False  # one transfer serves all replicas; else each has its own


@dataclass(frozen=True)
class RemoteBuffer:
    """Rows in Streaming Memory."""

    name: str
    dtype: ElementType
    elements: int  # of one row
    repeats: int


MODIFY, RESTORE = "floating_point_behaviour", "restore_floating_point_behaviour"
"""Kinds of ``Yield``."""


@dataclass(frozen=True)
class Yield:
    """What the host does when the machine yields.

    kind: "stream_in" (fill the staging area from stream ``index``), "stream_out" (take it), "print" (show
    the staging area), "error" (raise ProgramError with it), "remote_in" / "remote_out" (rows of remote buffer
    ``index`` from / to the staging area). Of several replicas also "collective" (``collectives[index]``), "cross_copy" (the staging area
    of replica i becomes that of replica ``rows[i]``), "equal" (raise ProgramError unless all hold the same) and "error_if" (raise it
    if any of them holds something else than zero). With the full check also "defined" (raise UninitialisedReadError unless the scalar at
    arena byte ``offset`` was written) and "undefine" (what WriteUndef ``index`` names was not). Of the floating-point behaviour MODIFY
    (clear the bits ``clear``, then set ``set``; if a dtype is given the state before goes into the staging area, for each tile) and RESTORE
    (take the state that lies there).
    """

    kind: str
    index: int = -1
    title: str = ""
    dtype: ElementType | None = None
    shape: tuple[int, ...] = ()
    offset: int = 0  # bytes into the staging area where the data is
    rows: tuple[int, ...] = ()  # remote: fixed row numbers
    rows_at: int = -1  # remote: arena byte offset in staging of the row numbers, when a tensor gives them
    rows_dtype: ElementType | None = None
    site: str = ""
    clear: int = 0  # bits, see ``popcore.kernels.behaviour``
    set: int = 0


@dataclass(frozen=True)
class CollectiveCall:
    """One collective over replicas: the host does it, see ``Yield``.

    An all-reduce combines the tensor where it is: the runs of bytes that rows ``span_begin`` to ``span_end`` of ``spans`` say, on every
    replica. Of any other kind the source lies at the start of each staging area, the result at ``result_offset``. ``rings``: the rank
    at each position of the ring of each lane; ``inner``: replicas of a set, see ``schedules``. The last three numbers are of one execution:
    over all replicas, and cycles of each.
    """

    name: str
    kind: str
    operator: str
    method: str
    dtype: ElementType
    elements: int  # of the source, on each replica
    result_elements: int
    result_offset: int
    group_type: str
    group_size: int
    root: int
    rings: tuple[tuple[int, ...], ...]
    inner: int
    partials: ElementType
    span_begin: int
    span_end: int
    steps: int
    bytes_on_links: int
    cycles: int


@dataclass(frozen=True)
class Decision:
    """A test on which replicas have to agree, for messages."""

    instruction: int
    where: str  # the program and the tensor
    dtype: ElementType
    ways: tuple[tuple[int | None, str], ...] = ()  # values, None for any other, and where replicas would wait for each other


@dataclass(frozen=True)
class Costs:
    """Modelled cycles of one execution of each instruction, decided by ``compiler.cost`` alone."""

    cycles: Array  # int64[n instructions, len(KINDS)]
    link_bytes: Array  # int64[n]: bytes that cross IPU-Links
    exchange_bytes: Array  # int64[n]: bytes that cross the on-chip exchange
    host_bytes: Array  # int64[n]
    remote_bytes: Array  # int64[n]: bytes to and from Streaming Memory
    labels: tuple[str, ...]  # names of steps
    label: Array  # int32[n]: index into labels
    head: Array  # bool[n]: the one instruction of its step by which executions are counted
    worker_codelet: Array  # int64[k, 4]: instruction, codelet, vertices, cycles summed over their workers
    origins: Array  # int64[codelets, len(ORIGINS)]: vertices, by whose word their cycles are
    # int64[k, 6]: instruction, kind of link bundle (``topology.LINK_KINDS``), source, target, bytes, and whether the two are numbers
    # in the whole system; else each replica has such a bundle, numbered from its first IPU or machine
    links: Array


@dataclass(frozen=True)
class MemoryMap:
    """Where things are. Arena offsets are bytes from the arena's start."""

    tile_base: Array  # int64[num_tiles]: arena offset of each tile's first byte
    tile_bytes: Array  # int64[num_tiles]: bytes of each tile that are backed
    staging: int  # arena offset of the staging area for host transfers
    staging_bytes: int
    arena_bytes: int
    # what the tiles hold, by category, int64[num_tiles] each: "variables", "exchange buffers",
    # "vertex state", "code", "exchange code", "stack"
    by_category: dict[str, Array]


PLANES = 5
"""Of memory with a shadow: the memory itself and, behind it, the four that ``kernels.guard`` describes."""


@dataclass(frozen=True)
class Shadow:
    """What ``debug.check`` "full" needs to know. Planes of shadow lie behind an arena, see ``kernels.guard``, and copies move them too."""

    distance: int  # bytes from memory to its first plane of shadow; 0: there is none, though variables may be named
    variables: tuple[str, ...]  # with where they were made
    places: Array  # int64[k, 5]: arena byte, bytes, variable, first element, bytes of an element; by arena byte
    ended: Array  # int64[k, 3]: number of a WriteUndef, arena byte, bytes


def no_shadow() -> Shadow:
    return Shadow(0, (), np.zeros((0, 5), np.int64), np.zeros((0, 3), np.int64))


@dataclass(frozen=True)
class Counting:
    """Vertices whose cycles data decides: what their codelets add up as they run goes to the tiles' workers here.

    ``Costs.cycles`` has the cycles of their compute sets without it, and what a run counts comes on top.
    """

    steps: Array  # int64[k, 5]: phase, the range of its vertices, the range of its workers
    vertices: Array  # int64[n, 3]: index of ``vertex_ids``, index of ``workers``, codelet
    workers: Array  # int64[m]: tile cycles that are known before, in COUNTED_UNITs; of each tile its workers one by one, then all together


def no_counting() -> Counting:
    return Counting(np.zeros((0, 5), np.int64), np.zeros((0, 3), np.int64), np.zeros(0, np.int64))


@dataclass(frozen=True)
class Executable:
    """A compiled graph with its programs. Frozen arrays, strings and numbers; see ``opcodes`` for the tables."""

    target: Target
    options: dict[str, Any]
    code: Array  # int64[n, 4]
    entries: Array  # int64[programs]
    switches: Array  # int64[k, 2]
    loop_slots: int
    call_depth: int
    phases: Array  # int64[n, 6]
    groups: Array  # int64[n, 12]
    words: Array  # uint32[2 * pairs]
    spans: Array  # int64[n, 3]
    batches: Array  # int64[n, 8]
    tiles: Array  # int32
    rows: Array  # int32
    vertex_ids: Array  # int32[vertices of all batches]: number of each in its codelet's vertices of the compute set, for messages
    phase_names: tuple[str, ...]  # the compute set of each phase, or the copy's name
    codelets: tuple[Codelet, ...]
    memory: MemoryMap
    initial: Array  # int64[k, 3]: arena byte, byte of ``initial_bytes``, length
    initial_bytes: Array  # uint8
    reads: tuple[Handle, ...]
    writes: tuple[Handle, ...]
    streams: tuple[Stream, ...]
    remotes: tuple[RemoteBuffer, ...]
    yields: tuple[Yield, ...]
    streams_of: tuple[tuple[str, ...], ...]  # for each program the handles of the streams it uses
    costs: Costs
    statistics: dict[str, int] = field(default_factory=dict)  # tiles, vertices, variables, ...: for the profile
    replicas: int = 1  # that run it at once, each with an arena of its own; the target is that of one
    replica_index: Array = field(default_factory=lambda: np.zeros(0, np.int64))  # arena bytes of the 4-byte words that hold a replica's number
    collectives: tuple[CollectiveCall, ...] = ()
    collective_spans: Array = field(default_factory=lambda: np.zeros((0, 2), np.int64))  # int64[k, 2]: arena byte, bytes
    decisions: tuple[Decision, ...] = ()  # what BRANCH and SWITCH of several replicas test
    shadow: Shadow = field(default_factory=no_shadow)
    counting: Counting = field(default_factory=no_counting)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to one file, whole or not at all; see ``executable.store``."""
        from popcore.executable import store  # only what reads or writes files needs it

        store.save(self, path)

    @staticmethod
    def load(path: str | os.PathLike[str], codelets: Iterable[Any] = ()) -> Executable:
        """Read what ``save`` wrote. ``codelets``: the user's classes and C++ files that it uses, since a file holds no code.

        Raises:
            ExecutableFileError: no Executable, of another version, or damaged.
            CodeletError: a codelet is missing, or changed since.
        """
        from popcore.executable import store

        return store.load(path, codelets)
