"""What the machine returns, and the words of its tables: shared by ``vm`` (compiled) and ``engine.linker`` (which fills them).

Nothing heavy is imported here: a warm start reads this file and not Numba. Every table is int64; a *word* is 8 bytes.
"""

from popcore.kernels.abi import AUX_POSITION, AUX_WORDS

# What ``vm.run`` returns. The program counter to go on at is in ``RESULT_PC``.
HALT = 0
YIELD = 1  # for the host: ``RESULT_VALUE`` is the row of ``yields``
FAULT = 2  # a vertex raised: see the fault blocks; ``RESULT_PC`` is the instruction that ran it
PRINTS = 3  # a phase left print records
POLL = 4  # nothing happened; the host may want to look at its signals
WAKE = 5  # a phase wants threads and some are parked: wake them and call again
OVERFLOW = 6  # a call deeper than the stack
UNKNOWN = 7  # no such instruction
DIVERGED = 8  # replicas differ in what the instruction tests
LINK = 9  # a phase has codelets without a driver for the machine's floating-point state: link them and call again
WATCH = 10  # the host wants to run the phase RESULT_VALUE by itself, and to look at it

# The context block: one for each image, filled before the first run.
CODE = 0  # address of code
COUNTS = 1  # address of int64[instructions]
PHASES = 2
GROUPS = 3
BATCHES = 4
JOBS = 5
JOB_RANGES = 6
SWITCHES = 7
LOOPS = 8
STACK = 9
STACK_DEPTH = 10
STACK_USED = 11
MEMORY = 12
TILE_BASE = 13
TILES = 14
WORDS = 15
SPANS = 16
AUX = 17  # address of one block of AUX_WORDS for each thread
FAULTS = 18  # address of one block of FAULT_WORDS for each thread
SYNC = 19  # address of the lines below
THREADS = 20
RESULT_PC = 21
RESULT_VALUE = 22
SEQUENCE = 23  # compute sets run since loading
CLOCK_FUNCTION = 24  # addresses of libc's clock_gettime, sched_yield and usleep; 0: not there
YIELD_FUNCTION = 25
SLEEP_FUNCTION = 26
CLOCK_SCRATCH = 27  # address of two words
CLOCK_ID = 28
POLL_NANOSECONDS = 29
STARTED = 30  # clock when the run began
REPLICAS = 31
STRIDE = 32  # bytes from one replica's memory to the next
FLOAT_CONTROL = 33  # bits of MXCSR while a thread stands for tiles
COUNTED_STRIDE = 34  # bytes from what one replica's vertices have counted to what those of the next have
TAKEN = 35  # address of int64[instructions]: tile cycles that counted vertices took beyond what the costs have of them
TOTALS = 36  # address of int64[codelets]: what all vertices of each have counted, on the first replica
CONTEXT_WORDS = 40

FLOAT_MASK = 0x8040  # those bits: denormal results become zero, denormal operands are zero

# A row of the machine's phases.
PHASE_COPY_BEGIN = 0
PHASE_COPY_END = 1
PHASE_BATCH_BEGIN = 2
PHASE_BATCH_END = 3
PHASE_COST = 4  # of the poll budget
PHASE_MODE = 5
PHASE_RANGE = 6  # row of the job ranges, if MODE has JOBBED
PHASE_COUNTED = 7  # 1: it has vertices
PHASE_COUNTS = 8  # address of the block that says where its vertices' counters go, see below; 0: it has none
PHASE_WORDS = 9
JOBBED = 1  # run from the job lists, on all threads
PRINTING = 2  # a codelet of the phase prints
BARRIER = 4  # the phase's job lists have a barrier: two segments
REPLICATED = 8  # there are several replicas,
SHARED = 16  # and each thread does some of them from beginning to end; PHASE_RANGE is then a range of one list
UNLINKED = 32  # a codelet has no driver for the machine's floating-point state
WATCHED = 64  # the host is asked before it is run

# A row of the machine's batches.
BATCH_DRIVER = 0
BATCH_BEGIN = 1
BATCH_END = 2
BATCH_ROWS = 3  # address
BATCH_ROWS_COUNT = 4
BATCH_PRINTS = 5
BATCH_TOUCH = 6  # byte in the tile where the fields begin that are to be read ahead of the vertices,
BATCH_TOUCH_BYTES = 7  # and how many; 0: leave it
BATCH_COUNTED = 8  # what goes to AUX_COUNTED, on the first replica; 0: it has no counters
BATCH_WORDS = 9

# What belongs to a phase with counters: its vertices by tile, then by worker, and its tiles.
COUNTS_VERTICES = 0  # address of rows, below
COUNTS_VERTICES_END = 1
COUNTS_TILES = 2  # address of rows: of the workers without counters the longest, and what all workers do together
COUNTS_KNOWN = 3  # tile cycles of the slowest tile, of what is known before
COUNTS_WORDS = 4
COUNTED_COUNTER = 0  # address of what the vertex counts, on the first replica
COUNTED_START = 1  # what is known of its worker, at the worker's first vertex; -1: it goes on; -2: all workers run it
COUNTED_LAST = 2  # 1: the tile's last vertex
COUNTED_CODELET = 3
COUNTED_WORDS = 4
COUNTED_UNIT = 16
WORKERS = 6

# A row of the job lists.
JOB_KIND = 0
JOB_INDEX = 1  # group or batch
JOB_BEGIN = 2
JOB_END = 3
JOB_WORDS = 4
JOB_COPY = 0
JOB_BATCH = 1
JOB_BARRIER = 2

# Words of a group that are not those of the Executable.
GROUP_WORDS = 12
GROUP_STREAMING = 11  # 1: too much for the caches, store around them

# Words of one thread's fault block: then a copy of its aux block.
FAULT_VALID = 0
FAULT_BATCH = 1
FAULT_POSITION = 2
FAULT_REPLICA = 3
FAULT_AUX = 4
FAULT_WORDS = FAULT_AUX + AUX_WORDS + 4  # whole cache lines

# A thread's table of findings, see ``findings``: words before its records,
FOUND_USED = 0  # records
FOUND_LOST = 1  # that had no room
FOUND_CAPACITY = 2
FOUND_HEAD = 4
FOUND_TIMES = 0  # and of a record: how often,
FOUND_LOW = 1  # from where
FOUND_HIGH = 2  # to where,
FOUND_PHASE = 3  # compute sets run since loading when it was first,
FOUND_BATCH = 4
FOUND_REPLICA = 5
FOUND_COPY = 6  # then a copy of the aux block, AUX_POSITION the last of it
FOUND_WORDS = FOUND_COPY + AUX_POSITION + 1

# The machine's own words of an aux block; drivers use those below: see ``abi``.
AUX_SEEN = 25  # the ticket of the last phase that this thread has looked at
AUX_REPLICA = 29  # the replica whose vertices run, for findings
MARKER_WORDS = 4  # follows a driver's print records: MARKER_WORDS, MARKER, batch, replica
MARKER = -1

# Lines between threads. A line is two cache lines wide, since processors fetch them in pairs.
LINE_WORDS = 16
LINE_BYTES = 128
SYNC_TICKET = 0  # words of the first line: the phase that is to be done: twice its number, and 1 if it has two segments
SYNC_PHASE = 1  # its row of the job ranges; of one that is shared by replicas, -1 minus its row of the phases
SYNC_REPLICA = 2  # whose memory it is about
SYNC_WANTED = 16  # second line: a run is going on, do not park
SYNC_QUIT = 17
SYNC_FAULTED = 32  # third line
SYNC_THREADS = 48  # one line for each thread
THREAD_TAKEN = 0  # the segment of its job lists that somebody has begun, twice the phase's number and 0 or 1,
THREAD_DONE = 1  # and has ended
THREAD_AWAKE = 2
THREAD_LATE = 3  # segments for which it is not waited, since it did not come to one before
PARKED = 0  # what ``vm.work`` returns
QUIT = 1
