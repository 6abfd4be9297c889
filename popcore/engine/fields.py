"""Where the fields of a vertex lie."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from popcore.executable import Executable
from popcore.executable.opcodes import ROW_WORDS, Batch


class Span(NamedTuple):
    """A field, or a piece of one, of one vertex."""

    batch: int
    position: int
    field: int  # of the codelet
    start: int  # byte of a replica's memory
    elements: int


def spans_of(executable: Executable, batch: int, position: int) -> list[Span]:
    """The fields of one vertex, of lists the pieces."""
    row = executable.batches[batch]
    fields, rows = executable.codelets[int(row[Batch.CODELET])].fields, max(int(row[Batch.ROWS_COUNT]), 1)
    base, table = int(executable.memory.tile_base[executable.tiles[position // rows]]), int(row[Batch.ROWS_BEGIN])
    words = executable.rows
    at, made = table + position % rows * sum(ROW_WORDS[field.shape] for field in fields), []
    for number, field in enumerate(fields):
        if field.shape == "list":
            first = table + int(words[at])
            made += [Span(batch, position, number, base + int(words[i]), int(words[i + 1])) for i in range(first, first + 2 * int(words[at + 1]), 2)]
        else:
            elements = int(np.prod(words[at + 1 : at + ROW_WORDS[field.shape]], dtype=np.int64))
            made.append(Span(batch, position, number, base + int(words[at]), elements))
        at += ROW_WORDS[field.shape]
    return made


def rows_of_matrices(executable: Executable, batch: int, position: int) -> list[int]:
    """Of each field of one vertex, how many rows it has if it is a matrix."""
    row = executable.batches[batch]
    fields, rows = executable.codelets[int(row[Batch.CODELET])].fields, max(int(row[Batch.ROWS_COUNT]), 1)
    at, made = int(row[Batch.ROWS_BEGIN]) + position % rows * sum(ROW_WORDS[field.shape] for field in fields), []
    for field in fields:
        made.append(int(executable.rows[at + 1]) if field.shape == "matrix" else 0)
        at += ROW_WORDS[field.shape]
    return made
