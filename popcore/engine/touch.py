"""Which batches the machine should read ahead of: where the fields of a tile lie, and whether they come from beyond the caches.

The vertices of a tile go through several fields at once, in pieces of a few hundred bytes each; a processor sees no order
in that and fetches little ahead. Reading one byte of each line of the tile beforehand, in the order of addresses, makes it
fetch at full speed.
"""

from __future__ import annotations

import numpy as np

from popcore.codelet import Field
from popcore.engine.jobs import expand
from popcore.executable.executable import Executable
from popcore.executable.opcodes import ROW_WORDS, Batch, Phase
from popcore.types import Array

PHASE_BYTES = 4 << 20  # a phase of less stays in a processor's own cache
TILE_BYTES = (768, 28 << 10)  # below, a tile is over before anything is gained; above, its fields do not stay in the nearest cache
SPREAD = 1.5  # bytes from a tile's first field to its last over bytes of fields, above which too much is read for nothing
NOTHING = np.iinfo(np.int64).max


def touched(executable: Executable) -> Array:
    """int64[batches, 2]: the first byte in the tile, and how many; 0 for a batch that is better left alone.

    Costs: some 10 ns for each field of the rows of large batches.
    """
    batches, found = executable.batches, np.zeros((len(executable.batches), 2), np.int64)
    work = batches[:, Batch.WORK]
    chosen = (work * SPREAD >= TILE_BYTES[0]) & (work <= TILE_BYTES[1]) & (_phase_bytes(executable) >= PHASE_BYTES)
    for index in np.unique(batches[chosen, Batch.CODELET]).tolist():
        which = np.flatnonzero(chosen & (batches[:, Batch.CODELET] == index))
        first, last = _spans(executable, batches[which], executable.codelets[index].fields)
        length = last - first
        good = (length >= TILE_BYTES[0]) & (length <= np.minimum(SPREAD * work[which], TILE_BYTES[1]))
        found[which[good]] = np.stack((first[good], length[good]), axis=1)
    return found


def _phase_bytes(executable: Executable) -> Array:
    """Bytes of fields of the phase of each batch."""
    batches, phases = executable.batches, executable.phases
    phase, batch = expand(phases[:, Phase.BATCH_BEGIN], phases[:, Phase.BATCH_END])
    total = np.bincount(phase, (batches[:, Batch.WORK] * batches[:, Batch.TILES_COUNT])[batch], len(phases))
    found = np.zeros(len(batches))
    found[batch] = total[phase]
    return found


def _spans(executable: Executable, batches: Array, fields: tuple[Field, ...]) -> tuple[Array, Array]:
    """First byte, and byte after the last one, of the fields of all rows of batches of one codelet, in a tile."""
    first, last = np.full(len(batches), NOTHING), np.zeros(len(batches), np.int64)
    owner, row = expand(np.zeros(len(batches), np.int64), batches[:, Batch.ROWS_COUNT])
    words = executable.rows

    def extend(owner: Array, start: Array, length: Array) -> None:
        some = length > 0
        np.minimum.at(first, owner[some], start[some])
        np.maximum.at(last, owner[some], (start + length)[some])

    at = batches[owner, Batch.ROWS_BEGIN] + row * sum(ROW_WORDS[field.shape] for field in fields)
    for field in fields:
        size = field.dtype.nbytes
        start, *shape = (words[at + i].astype(np.int64) for i in range(ROW_WORDS[field.shape]))
        if field.shape == "list":
            piece_owner, piece = expand(start, start + 2 * shape[0])
            piece_owner, piece = piece_owner[::2], piece[::2] + batches[owner[piece_owner[::2]], Batch.ROWS_BEGIN]
            extend(owner[piece_owner], words[piece].astype(np.int64), size * words[piece + 1].astype(np.int64))
        else:
            extend(owner, start, size * np.prod(shape, axis=0, initial=1) * np.ones_like(start))
        at = at + ROW_WORDS[field.shape]
    return np.minimum(first, last), last
