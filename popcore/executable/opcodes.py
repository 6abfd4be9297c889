"""The instruction set of an Executable's program, and the shape of its tables.

``code`` is int64[n, 4]: an opcode and three operands a, b, c. ``pc`` counts rows.

=============  ==========================================================================
HALT           the program ends
RUN a          run phase a (a row of ``phases``)
REPEAT a b c   loop slot a <- b rounds; if b is 0 go to c, else on
END a b        one round of loop slot a is done; if more are left go to b, else on
BRANCH a b c   go to c if the b-byte predicate at arena byte a is zero, else on
JUMP a         go to a
SWITCH a b c   look the integer at arena byte a up (b = its bytes, negative if signed) in the
               rows of ``switches`` from c on: row c is (number of cases, pc if none matches),
               the next ones are (value, pc)
CALL a         push pc + 1, go to a
RETURN         pop the pc to go to
YIELD a        leave the machine for the host, which does ``yields[a]`` and goes on at pc + 1
NOP            nothing; carries a cost (a sync)
=============  ==========================================================================
"""

from enum import IntEnum, IntFlag


class Op(IntEnum):
    HALT = 0
    RUN = 1
    REPEAT = 2
    END = 3
    BRANCH = 4
    JUMP = 5
    SWITCH = 6
    CALL = 7
    RETURN = 8
    YIELD = 9
    NOP = 10


class Phase(IntEnum):
    """Columns of ``phases``, int64[n, 6]: copies first, then (after a barrier) vertices."""

    COPY_BEGIN = 0  # rows of ``groups``
    COPY_END = 1
    BATCH_BEGIN = 2  # rows of ``batches``
    BATCH_END = 3
    WORK = 4  # bytes moved plus bytes of the vertices' fields: decides whether threads are worth it
    FLAGS = 5


class PhaseFlag(IntFlag):
    """What the compiler proved about a phase."""

    FUSABLE = 1  # no vertex of the phase writes what its copies read: a tile's copies and vertices may run together


class Group(IntEnum):
    """Columns of ``groups``, int64[n, 12]: copies of one kind and width."""

    KIND = 0  # a GroupKind
    BEGIN = 1  # first entry of its table: pairs of ``words``, rows of ``spans``; unused for STRIDED
    COUNT = 2  # entries; for STRIDED the outer count n2
    WIDTH = 3  # 4-byte words of each entry (WORDS, STRIDED); unused for SPANS
    SOURCE = 4  # STRIDED: arena word of the first source
    TARGET = 5  # STRIDED: arena word of the first target
    COUNT1 = 6  # STRIDED: inner count n1
    SOURCE1 = 7  # STRIDED: words between sources of the inner loop (0: a broadcast)
    TARGET1 = 8
    SOURCE2 = 9  # STRIDED: words between sources of the outer loop
    TARGET2 = 10
    RESERVED = 11


class GroupKind(IntEnum):
    """How a group of copies is written down. All entries of a phase have disjoint targets."""

    WORDS = 0  # ``words[2*k], words[2*k+1]``: source and target, arena words; WIDTH words each
    SPANS = 1  # ``spans[k]``: source, target, length in arena bytes, any alignment
    STRIDED = 2  # two nested loops over WIDTH words, see the columns above


class Batch(IntEnum):
    """Columns of ``batches``, int64[n, 8]: vertices of one codelet on tiles that share a table."""

    CODELET = 0  # index of ``codelets``
    TILES_BEGIN = 1  # of ``tiles``; ascending
    TILES_COUNT = 2
    ROWS_BEGIN = 3  # index of ``rows``, int32: the table, see below
    ROWS_COUNT = 4  # vertices on each of those tiles
    FIRST_VERTEX = 5  # index of the vertex of the first tile and row, for messages: see ``vertex_ids``
    WORK = 6  # bytes of fields on one tile
    ORIGIN = 7  # 0; of a part of a batch, which an engine makes, the batch's number plus one


# The table of a batch: ROWS_COUNT rows of ``row_words(fields)`` int32 words, then the pieces of list fields.
#   scalar, state scalar   [byte offset in the tile]
#   vector, state vector   [byte offset, elements]
#   matrix                 [byte offset, rows, columns]
#   list                   [index of its first piece in the table, int32 words from ROWS_BEGIN; number of pieces]
#                          a piece is [byte offset, elements]
ROW_WORDS = {"scalar": 1, "vector": 2, "matrix": 3, "list": 2}
