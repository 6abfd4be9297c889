"""The contract between compiled codelets and who calls them: numbers only, imports nothing.

A codelet is one C function::

    int64 driver(uint8* mem, const int64* tile_base, const int32* tiles, int64 t0, int64 t1,
                 const int32* rows, int64 nrows, uint64* aux)

For k in [t0, t1) and r in [0, nrows) it runs the vertex of row r on tile ``tiles[k]``, whose memory begins at
``mem + tile_base[tiles[k]]``. It returns 0, or 1 + k * nrows + r of the first vertex that raised; ``aux`` then says how.
``aux`` is a block of AUX_WORDS 64-bit words for each thread; the driver writes those it is said to write below.

A row is int32 words, field after field: a scalar [byte offset in the tile], a vector [byte offset, elements], a matrix
[byte offset, rows, columns], a list [index in ``rows`` of its first piece, pieces]; a piece is [byte offset, elements].
"""

AUX_WORDS = 40

AUX_SITE = 0  # driver: index of the fault site
AUX_COUNT = 1  # driver: number of values of the fault
AUX_VALUES = 2  # driver: up to MAX_VALUES values, 64-bit patterns
AUX_TAGS = 10  # driver: their types, 4 bits each, the first lowest
AUX_WORKER = 11  # driver: worker that runs, for codelets of several workers
AUX_PRINT_BUFFER = 12  # caller: address of the print buffer; 0 drops records
AUX_PRINT_CAPACITY = 13  # caller: words it has
AUX_PRINT_USED = 14  # both: words used
AUX_PRINT_LOST = 15  # both: records that did not fit, or were dropped
AUX_PHASE = 16  # caller: how many compute sets have been run since loading, this one included
AUX_POSITION = 17  # driver: k * nrows + r, for prints
AUX_TILE = 18  # driver: tile, for prints
AUX_SHADOW = 19  # caller: bytes from tile memory to its shadow, for codelets compiled with the full check; see ``guard``
AUX_ARENA = 20  # caller, with it: address of all that has a shadow,
AUX_ARENA_BYTES = 21  # and its size
AUX_BATCH = 22  # caller: number of the batch
AUX_STREAMS = 23  # caller: address of STREAM_WORDS words, for drivers that round stochastically
AUX_KEY = 24  # driver: of the random bits of this call of compute
AUX_COUNTER = 26  # driver: its roundings so far
AUX_NOTE = 27  # caller: address of ``findings.note``, for drivers that go on after a finding,
AUX_TABLE = 28  # and of the table where it writes; 0: the first finding ends the vertex
AUX_ORDER = 30  # caller: the order of the workers of a vertex, 4 bits each, the first lowest; for drivers that have none of their own
AUX_SPENT = 31  # driver, of a codelet with counters: what this call of compute has taken so far, in sixteenths of a worker cycle
AUX_COUNTED = 32  # caller, for such a driver: address of the first vertex's word among those of the batch; at position p, k * nrows + r, the
# driver leaves what the vertex took, or the slowest of its workers; 0: nobody wants to know
AUX_UNWANTED = 33  # driver: what it then leaves

MAX_VALUES = 8

TAG_INT, TAG_FLOAT, TAG_HALF, TAG_BOOL, TAG_UNSIGNED, TAG_FINDING = 1, 2, 3, 4, 5, 6
"""Types of values. FLOAT is the bits of a float32, HALF too: those of the half as a float32. FINDING comes first and alone says that the
fault is none of the codelet's, but one of those below; then come the address of the code or 0, the other worker plus one or 0, where that one's
access is in the code (a site plus one, or an address; 0: not known), the address, and how many bytes."""

UNDEFINED, OVERWRITTEN, SHARED_WORD, MISALIGNED = 1, 2, 3, 4
"""Findings of a codelet that is compiled with the full check: read what nothing wrote; wrote what another worker wrote or read, or read
what another worker wrote; wrote a part of a word of which another worker wrote another part; an access at an address that is no multiple of its size."""

FINDING_KEYS = 4
"""Values of a finding that say what it is; the others say where."""

NO_SITE = 255
"""In the shadow, for a site whose number is as large or larger."""

RECORD_WORDS, RECORD_POSITION, RECORD_TILE, RECORD_WORKER, RECORD_SITE, RECORD_TAGS, RECORD_VALUES = range(7)
"""A record of the print buffer: its words, k * nrows + r, tile, worker, site, tags, then the values."""

STREAM_SEED, STREAM_MEMORY, STREAM_STRIDE, STREAM_FIRSTS, STREAM_VERTICES, STREAM_WORDS = range(6)
"""What keys are made from: the seed; address and stride of the replicas' memories; by batch, what is to be added to k * nrows + r to get
an index of the next one; by that index, the number of a vertex among those of its codelet in the compute set. The last two are addresses."""

ROW_WORDS = {"scalar": 1, "vector": 2, "matrix": 3, "list": 2}
