"""Who reads and who writes one byte of tile memory in a phase, and where an element of a tensor lies."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from popcore.engine.places import entries
from popcore.executable import Executable, Handle
from popcore.executable.opcodes import ROW_WORDS, Batch, Op, Phase
from popcore.types import Array


class Access(NamedTuple):
    """reader: who reads the byte, "" if nobody does. written: whether it is, in the end."""

    reader: str
    written: bool


def place_of(executable: Executable, handle: Handle, element: int) -> int:
    """The arena byte where an element of a tensor begins, by the copies between it and the staging area."""
    staged = executable.memory.staging + element * handle.dtype.nbytes
    begin, end = executable.phases[handle.phase, [Phase.COPY_BEGIN, Phase.COPY_END]].tolist()
    for group in executable.groups[begin:end]:
        source, target, nbytes = entries(executable, group)
        for here, there in ((source, target), (target, source)):
            if len(hit := np.flatnonzero((there <= staged) & (staged < there + nbytes))):
                return int(here[hit[0]] + staged - there[hit[0]])
    raise AssertionError(f"{handle.name!r} does not move element {element}")


def tile_of(executable: Executable, at: int) -> tuple[int, int]:
    """The tile of an arena byte, and which of its bytes it is."""
    tile = int(np.searchsorted(executable.memory.tile_base, at, "right")) - 1
    return tile, at - int(executable.memory.tile_base[tile])


def access(executable: Executable, phase: int, at: int) -> Access:
    """What a phase does to arena byte ``at``: its copies first, then its vertices."""
    copy_begin, copy_end, batch_begin, batch_end = executable.phases[phase, :4].tolist()
    groups = [entries(executable, group) for group in executable.groups[copy_begin:copy_end]]
    copied = any(((target <= at) & (at < target + nbytes)).any() for _, target, nbytes in groups)
    if any(((source <= at) & (at < source + nbytes)).any() for source, _, nbytes in groups):
        return Access(f"the exchange of {executable.phase_names[phase]!r}", copied)
    if copied:
        return Access("", written=True)
    tile, byte = tile_of(executable, at)
    reader, written = "", False
    for batch in executable.batches[batch_begin:batch_end]:
        tiles = executable.tiles[batch[Batch.TILES_BEGIN] : batch[Batch.TILES_BEGIN] + batch[Batch.TILES_COUNT]]
        directions = _fields_at(executable, batch, byte) if tile in tiles else []
        if any(direction != "out" for direction in directions):
            reader = f"a vertex of codelet {executable.codelets[batch[Batch.CODELET]].name} in {executable.phase_names[phase]!r}"
        written |= any(direction != "in" for direction in directions)
    return Access(reader, written)


def _fields_at(executable: Executable, batch: Array, byte: int) -> list[str]:
    """Directions of the fields of a batch's vertices that hold byte ``byte`` of a tile."""
    fields = executable.codelets[batch[Batch.CODELET]].fields
    width, begin = sum(ROW_WORDS[f.shape] for f in fields), int(batch[Batch.ROWS_BEGIN])
    rows = executable.rows[begin : begin + width * int(batch[Batch.ROWS_COUNT])].reshape(-1, width).astype(np.int64)
    found, column = [], 0
    for field in fields:
        part = rows[:, column : column + ROW_WORDS[field.shape]]
        column += ROW_WORDS[field.shape]
        if field.shape == "list":
            pieces = [executable.rows[begin + first : begin + first + 2 * count].reshape(-1, 2) for first, count in part.tolist()]
            part = np.concatenate([np.zeros((0, 2), np.int64), *pieces]).astype(np.int64)
        nbytes = field.dtype.nbytes * part[:, 1:].prod(axis=1)
        if ((part[:, 0] <= byte) & (byte < part[:, 0] + nbytes)).any():
            found.append(field.direction)
    return found


def tests_of(executable: Executable, word: int, width: int) -> Array:
    """Instructions that test a scalar in the word at arena byte ``word``."""
    code = executable.code
    overlaps = (code[:, 1] < word + width) & (word < code[:, 1] + np.abs(code[:, 2]))
    found: Array = np.flatnonzero(np.isin(code[:, 0], (Op.BRANCH, Op.SWITCH)) & overlaps)
    return found


def reduced(spans: Array, at: int) -> bool:
    """Whether an all-reduce of ``spans`` takes in arena byte ``at``."""
    return bool(((spans[:, 0] <= at) & (at < spans.sum(axis=1))).any())
