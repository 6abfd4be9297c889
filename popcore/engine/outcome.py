"""Why the machine came back: the outcome of a run, the fault of a vertex, what vertices printed."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple

import msgspec
import numpy as np

from popcore.codelet import NativeCodelet
from popcore.errors import EngineError
from popcore.executable.executable import Executable
from popcore.executable.opcodes import Batch
from popcore.kernels import abi, status
from popcore.kernels.behaviour import TRAP_KINDS
from popcore.types import Array


class PrintRecord(NamedTuple):
    """One ``print`` of one vertex."""

    batch: int
    vertex: int  # index over all vertices, see ``opcodes.Batch.FIRST_VERTEX``
    tile: int
    worker: int
    site: int  # of the codelet's ``sites``
    values: tuple[Any, ...]
    replica: int = 0


@dataclass(frozen=True, slots=True)
class Fault:
    """A vertex that raised. ``exception`` is the original one where the vertex ran as Python."""

    batch: int
    codelet: int
    position: int  # index into ``tiles`` times the batch's rows, plus the row
    vertex: int
    tile: int
    worker: int
    thread: int
    site: int  # of the codelet's ``sites``
    values: tuple[Any, ...]
    aux: Array  # uint64[32]: a copy of the block the driver left
    exception: BaseException | None = None
    replica: int = 0
    told: Told | None = None  # by the process that it ran in, where that was another


class Told(msgspec.Struct):
    """What only the process knows in which a vertex raised: texts and lines that the values point to."""

    exception: str = ""  # see ``bindings.calls.NativeFault``
    text: str = ""
    file: str = ""
    line: int = 0
    unsure: bool = False  # whether the process can be trusted with more


@dataclass(frozen=True, slots=True)
class Crash:
    """The process that ran the machine ended."""

    how: str
    signal: int | None
    exit_code: int | None
    batch: int  # that it was doing
    position: int  # of the vertex, where the codelet is compiled from C++


class Finding(IntEnum):
    """The first value of a fault that the full check found; for the others see ``kernels.abi``."""

    UNDEFINED = abi.UNDEFINED
    OVERWRITTEN = abi.OVERWRITTEN
    SHARED_WORD = abi.SHARED_WORD
    MISALIGNED = abi.MISALIGNED


@dataclass(frozen=True, slots=True)
class Outcome:
    """Why the machine came back, and where to go on.

    kind: "crash"; "halt"; "yield" (do ``yields[yield_index]``); "fault"; "prints" (nothing else happened); "poll" (look at signals);
    "diverged" (replicas differ in what the instruction tests); "found" (``error``, by whoever watches phases).
    ``prints`` may come with faults and prints; they are in the order replica, tile, vertex, worker from the last to the first, program.
    """

    kind: str
    pc: int  # where to go on; at a fault, the instruction that ran the vertex
    yield_index: int = -1
    phase: int = -1  # that faulted or printed
    fault: Fault | None = None
    crash: Crash | None = None
    prints: list[PrintRecord] = field(default_factory=list)
    prints_lost: int = 0  # records that had no room
    error: EngineError | None = None  # what whoever watches phases found in the one that ran


def decode(tags: int, words: Array) -> tuple[Any, ...]:
    """Values of a fault or a print: ``words`` are their 64-bit patterns, ``tags`` has four bits for each."""
    values: list[Any] = []
    for i, word in enumerate(words.tolist()):
        tag = (tags >> (4 * i)) & 15
        if tag in (abi.TAG_FLOAT, abi.TAG_HALF):
            value = np.uint32(word & 0xFFFFFFFF).view(np.float32)
            values.append(value if tag == abi.TAG_FLOAT else np.float16(value))
        elif tag == abi.TAG_BOOL:
            values.append(bool(word))
        elif tag == abi.TAG_FINDING:
            values.append(Finding(word))
        else:
            values.append(word if tag == abi.TAG_UNSIGNED or word < 1 << 63 else word - (1 << 64))
    return tuple(values)


def vertex_at(executable: Executable, batch: int, position: int) -> tuple[int, int]:
    """Index over all vertices, and tile, of a position within a batch."""
    row = executable.batches[batch]
    rows = max(int(row[Batch.ROWS_COUNT]), 1)
    return int(row[Batch.FIRST_VERTEX]) + position - int(row[Batch.TILES_BEGIN]) * rows, int(executable.tiles[position // rows])


def fault_of(executable: Executable, blocks: Array, exception: BaseException | None, told: Told | None = None) -> Fault:
    """The first fault of a phase, whichever thread met it. ``blocks``: int64[threads, FAULT_WORDS]; marked as read."""
    valid = np.flatnonzero(blocks[:, status.FAULT_VALID]).tolist()
    thread = min(valid, key=lambda t: (blocks[t, status.FAULT_REPLICA], blocks[t, status.FAULT_BATCH], blocks[t, status.FAULT_POSITION]))
    blocks[:, status.FAULT_VALID] = 0
    batch, position = int(blocks[thread, status.FAULT_BATCH]), int(blocks[thread, status.FAULT_POSITION])
    words = blocks[thread, status.FAULT_AUX : status.FAULT_AUX + abi.AUX_WORDS].copy()
    return fault_from(executable, batch, position, int(blocks[thread, status.FAULT_REPLICA]), words, thread, exception, told)


def fault_from(
    executable: Executable, batch: int, position: int, replica: int, words: Array, thread: int, exception: BaseException | None = None, told: Told | None = None
) -> Fault:
    """The fault that a driver wrote to the ``words`` of its block."""
    aux = words.view(np.uint64)
    vertex, tile = vertex_at(executable, batch, position)
    count = min(int(words[abi.AUX_COUNT]), abi.MAX_VALUES)
    values = decode(int(aux[abi.AUX_TAGS]), aux[abi.AUX_VALUES : abi.AUX_VALUES + count])
    codelet = int(executable.batches[batch, Batch.CODELET])
    worker, site = int(words[abi.AUX_WORKER]), int(words[abi.AUX_SITE])
    return Fault(batch, codelet, position, vertex, tile, worker, thread, site, values, aux, exception, replica, told)


def tell(executable: Executable, blocks: Array) -> Told | None:
    """What the values of the first fault of a phase point to in this process; None if that is nothing."""
    fault = fault_of(executable, blocks.copy(), None)
    if not isinstance(executable.codelets[fault.codelet], NativeCodelet) or fault.site in TRAP_KINDS:
        return None
    from popcore.bindings import calls

    if fault.values and isinstance(fault.values[0], Finding):
        file, line = calls.line_of(fault.values) or ("", 0)
        return Told(file=file, line=line)
    found = calls.fault_of(fault.values)
    return Told(found.exception, found.text, found.file, found.line, calls.broke_off(fault.values))


def prints_of(executable: Executable, buffers: Array, aux: Array) -> tuple[list[PrintRecord], int]:
    """The records that all threads left, in order, and how many had no room. Empties the buffers.

    ``buffers``: uint64[threads, words]; ``aux``: int64[threads, AUX_WORDS].
    """
    found: list[tuple[tuple[int, ...], PrintRecord]] = []
    for thread in range(len(aux)):
        words = buffers[thread, : aux[thread, abi.AUX_PRINT_USED]]
        pending: list[Array] = []
        at = 0
        while at < len(words):
            record = words[at : at + int(words[at])]
            at += len(record)
            if len(record) == status.MARKER_WORDS:  # the driver that wrote the records before is done
                found.extend(_record(executable, int(record[2]), int(record[3]), each, order) for order, each in enumerate(pending))
                pending = []
            else:
                pending.append(record)
    lost = int(aux[:, abi.AUX_PRINT_LOST].sum())
    aux[:, abi.AUX_PRINT_USED] = 0
    aux[:, abi.AUX_PRINT_LOST] = 0
    return [record for _, record in sorted(found, key=lambda pair: pair[0])], lost


def _record(executable: Executable, batch: int, replica: int, words: Array, order: int) -> tuple[tuple[int, ...], PrintRecord]:
    _, position, tile, worker, site, tags = (int(w) for w in words[: abi.RECORD_VALUES])
    vertex, _ = vertex_at(executable, batch, position)
    if origin := int(executable.batches[batch, Batch.ORIGIN]):
        batch, position = origin - 1, int(executable.vertex_ids[vertex])
    made = PrintRecord(batch, vertex, tile, worker, site, decode(tags, words[abi.RECORD_VALUES :]), replica)
    return (replica, tile, batch, position, -worker, order), made
