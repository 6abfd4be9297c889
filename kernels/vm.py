"""The machine: walks a program's instructions in native code, and runs phases on all threads.

``run`` and ``work`` become two native functions (``native.compile_object``). They take addresses as integers and
cannot raise. All their tables are described in ``status`` and ``popcore.executable.opcodes``.

A phase is run in one of two ways. Small ones: the calling thread goes through its groups and batches. Large ones: each
thread goes through a job list of its own, which the linker wrote; a barrier is a job. Thread 0 is the caller.
"""

from popcore.kernels import abi
from popcore.kernels import status as s
from popcore.kernels.exchange import copy_group
from popcore.kernels.native import (
    call_driver,
    call_int,
    exchange,
    load8,
    load8u,
    load16,
    load16u,
    load32,
    load32u,
    load64,
    load_acquire,
    part,
    pause,
    store64,
    store_release,
    touch,
)  # fmt: skip

RUN, REPEAT, END, BRANCH, JUMP, SWITCH, CALL, RETURN, YIELD, NOP, HALT = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0
INSTRUCTION_COST = 40  # of the poll budget; a phase costs about its bytes
BUDGET = 200_000  # between two looks at the clock: about 20 us
SPINS = 3_000  # rounds of a wait loop before it lets other threads run, then sleeps
YIELDS = 3_400
LINGER = YIELDS + 30  # rounds after which a worker parks if no run is going on: a few milliseconds
LINE = 64
LEAVE = -1  # in place of a phase
FAULT_BYTES = s.FAULT_WORDS * 8
AUX_BYTES = abi.AUX_WORDS * 8


@part
def word(context, index):
    return load64(context + index * 8)


@part
def note(context, aux, thread, batch, failed, used_before, prints):
    """After a driver that failed or may have printed: keep the first fault of the phase, mark the records with the batch."""
    if failed != 0:
        fault = word(context, s.FAULTS) + thread * FAULT_BYTES
        valid, known = word(fault, s.FAULT_VALID), word(fault, s.FAULT_BATCH)
        if valid == 0 or batch < known or (batch == known and failed - 1 < word(fault, s.FAULT_POSITION)):
            store64(fault + s.FAULT_BATCH * 8, batch)
            store64(fault + s.FAULT_POSITION * 8, failed - 1)
            for i in range(abi.AUX_WORDS):
                store64(fault + (s.FAULT_AUX + i) * 8, word(aux, i))
            store64(fault + s.FAULT_VALID * 8, 1)
        store64(word(context, s.SYNC) + s.SYNC_FAULTED * 8, 1)
    if prints != 0:
        used = word(aux, abi.AUX_PRINT_USED)
        if used != used_before:
            marker = word(aux, abi.AUX_PRINT_BUFFER) + used * 8
            store64(marker, s.MARKER_WORDS)
            store64(marker + 8, s.MARKER)
            store64(marker + 16, batch)
            store64(aux + abi.AUX_PRINT_USED * 8, used + s.MARKER_WORDS)
    return 0


@part
def touch_tile(address, nbytes):
    """Read one byte of each line, in order: what the vertices of a tile want in another order, see ``engine.touch``."""
    for line in range(address, address + nbytes, LINE):
        touch(line)
    return 0


@part
def run_batch(context, memory, tile_base, tiles, aux, thread, batch, row, begin, end):
    prints = word(row, s.BATCH_PRINTS)
    used = word(aux, abi.AUX_PRINT_USED)
    driver, rows, count, nbytes = word(row, s.BATCH_DRIVER), word(row, s.BATCH_ROWS), word(row, s.BATCH_ROWS_COUNT), word(row, s.BATCH_TOUCH_BYTES)
    failed = 0
    if nbytes == 0:
        failed = call_driver(driver, memory, tile_base, tiles, begin, end, rows, count, aux)
    else:
        while begin < end and failed == 0:
            touch_tile(memory + word(tile_base, load32(tiles + (begin << 2))) + word(row, s.BATCH_TOUCH), nbytes)
            failed = call_driver(driver, memory, tile_base, tiles, begin, begin + 1, rows, count, aux)
            begin += 1
    if failed | prints != 0:
        note(context, aux, thread, batch, failed, used, prints)
    return 0


@part
def wait_for(context, address, wanted):
    """Until the word at ``address`` is at least ``wanted``: spin, then let others run, then sleep."""
    rounds = 0
    while load_acquire(address) < wanted:
        rounds += 1
        if rounds < SPINS:
            pause()
        elif rounds < YIELDS:
            if word(context, s.YIELD_FUNCTION) != 0:
                call_int(word(context, s.YIELD_FUNCTION), 0, 0)
        elif word(context, s.SLEEP_FUNCTION) != 0:
            call_int(word(context, s.SLEEP_FUNCTION), 20, 0)
    return 0


@part
def thread_line(context, thread):
    return word(context, s.SYNC) + (s.SYNC_THREADS + thread * s.LINE_WORDS) * 8


@part
def arrive(context, aux, thread):
    """Tell the other threads that this one is here. Returns the epoch to wait for."""
    epoch = word(aux, s.AUX_EPOCH) + 1
    store64(aux + s.AUX_EPOCH * 8, epoch)
    store_release(thread_line(context, thread) + s.THREAD_EPOCH * 8, epoch)
    return epoch


@part
def wait_for_all(context, thread, epoch):
    for other in range(word(context, s.THREADS)):
        if other != thread:
            wait_for(context, thread_line(context, other) + s.THREAD_EPOCH * 8, epoch)
    return 0


@part
def run_jobs(context, thread, job_range):
    """One thread's share of a large phase. ``job_range`` is a row of the job ranges."""
    memory, tile_base, tiles = word(context, s.MEMORY), word(context, s.TILE_BASE), word(context, s.TILES)
    words, spans = word(context, s.WORDS), word(context, s.SPANS)
    groups, batches = word(context, s.GROUPS), word(context, s.BATCHES)
    aux = word(context, s.AUX) + thread * AUX_BYTES
    store64(aux + abi.AUX_PHASE * 8, word(context, s.SEQUENCE))
    bounds = word(context, s.JOB_RANGES) + (job_range * word(context, s.THREADS) + thread) * 16
    job = word(context, s.JOBS) + load64(bounds) * (8 * s.JOB_WORDS)
    last = word(context, s.JOBS) + load64(bounds + 8) * (8 * s.JOB_WORDS)
    while job < last:
        kind, index = word(job, s.JOB_KIND), word(job, s.JOB_INDEX)
        if kind == s.JOB_COPY:
            copy_group(memory, words, spans, groups + index * (8 * s.GROUP_WORDS), word(job, s.JOB_BEGIN), word(job, s.JOB_END))
        elif kind == s.JOB_BATCH:
            row = batches + index * (8 * s.BATCH_WORDS)
            run_batch(context, memory, tile_base, tiles, aux, thread, index, row, word(job, s.JOB_BEGIN), word(job, s.JOB_END))
        else:
            wait_for_all(context, thread, arrive(context, aux, thread))
        job += 8 * s.JOB_WORDS
    return 0


@part
def all_awake(context):
    """Tell the workers that a run is going on. Returns whether all of them listen."""
    exchange(word(context, s.SYNC) + s.SYNC_WANTED * 8, 1)  # a fence: a worker that parks sees it, or this sees that it has parked
    asleep = 0
    for thread in range(1, word(context, s.THREADS)):
        asleep |= load_acquire(thread_line(context, thread) + s.THREAD_AWAKE * 8) == 0
    return not asleep


@part
def run_on_all(context, phase, job_range):
    """A large phase, on every thread; returns when all are done."""
    if word(context, s.THREADS) == 1:
        return run_jobs(context, 0, job_range)
    sync = word(context, s.SYNC)
    store64(sync + s.SYNC_PHASE * 8, job_range)
    store_release(sync, load64(sync) + 1)
    run_jobs(context, 0, job_range)
    wait_for_all(context, 0, arrive(context, word(context, s.AUX), 0))
    return 0


@part
def run_alone(context, memory, tile_base, tiles, aux, phase):
    """A small phase, on the calling thread."""
    begin, end = word(phase, s.PHASE_COPY_BEGIN), word(phase, s.PHASE_COPY_END)
    if begin < end:
        words, spans = word(context, s.WORDS), word(context, s.SPANS)
        group = word(context, s.GROUPS) + begin * (8 * s.GROUP_WORDS)
        for _ in range(begin, end):
            first = load64(group + 8)
            copy_group(memory, words, spans, group, first, first + load64(group + 16))
            group += 8 * s.GROUP_WORDS
    begin, end = word(phase, s.PHASE_BATCH_BEGIN), word(phase, s.PHASE_BATCH_END)
    if begin < end:
        row = word(context, s.BATCHES) + begin * (8 * s.BATCH_WORDS)
        for batch in range(begin, end):
            run_batch(context, memory, tile_base, tiles, aux, 0, batch, row, word(row, s.BATCH_BEGIN), word(row, s.BATCH_END))
            row += 8 * s.BATCH_WORDS
    return 0


@part
def printed(context):
    """Whether any thread has print records."""
    found = 0
    for thread in range(word(context, s.THREADS)):
        aux = word(context, s.AUX) + thread * AUX_BYTES
        found |= word(aux, abi.AUX_PRINT_USED) | word(aux, abi.AUX_PRINT_LOST)
    return found != 0


@part
def poll(context):
    """Whether it is time to let the host look at its signals."""
    clock = word(context, s.CLOCK_FUNCTION)
    if clock == 0:
        return True
    scratch = word(context, s.CLOCK_SCRATCH)
    call_int(clock, word(context, s.CLOCK_ID), scratch)
    now = load64(scratch) * 1_000_000_000 + load64(scratch + 8)
    if word(context, s.STARTED) == 0:
        store64(context + s.STARTED * 8, now)
    return now - word(context, s.STARTED) > word(context, s.POLL_NANOSECONDS)


@part
def is_zero(address, width):
    if width == 1:
        return load8u(address) == 0
    if width == 2:
        return load16u(address) == 0
    if width == 4:
        return load32u(address) == 0
    return load64(address) == 0


@part
def integer(address, width):
    if width == 1:
        return load8u(address)
    if width == -1:
        return load8(address)
    if width == 2:
        return load16u(address)
    if width == -2:
        return load16(address)
    if width == 4:
        return load32u(address)
    if width == -4:
        return load32(address)
    return load64(address)


@part
def find_case(switches, value):
    """The pc for ``value`` in the switch whose first row is at address ``switches``."""
    row = switches + 16
    for _ in range(load64(switches)):
        if load64(row) == value:
            return load64(row + 8)
        row += 16
    return load64(switches + 8)


@part
def leave(context, status, pc, value):
    store64(context + s.RESULT_PC * 8, pc)
    store64(context + s.RESULT_VALUE * 8, value)
    return status


@part
def step(context, row, pc, operation, a, loops, memory):
    """The pc after an instruction that only decides where to go; minus a status where it cannot be done."""
    if operation == END:
        left = load64(loops + (a << 3)) - 1
        store64(loops + (a << 3), left)
        return load64(row + 16) if left > 0 else pc + 1
    if operation == REPEAT:
        rounds = load64(row + 16)
        store64(loops + (a << 3), rounds)
        return pc + 1 if rounds > 0 else load64(row + 24)
    if operation == JUMP:
        return a
    if operation == BRANCH:
        return load64(row + 24) if is_zero(memory + a, load64(row + 16)) else pc + 1
    if operation == NOP:
        return pc + 1
    if operation == CALL:
        used = word(context, s.STACK_USED)
        if used >= word(context, s.STACK_DEPTH):
            return -s.OVERFLOW
        store64(word(context, s.STACK) + (used << 3), pc + 1)
        store64(context + s.STACK_USED * 8, used + 1)
        return a
    if operation == RETURN:
        used = word(context, s.STACK_USED) - 1
        if used < 0:
            return -s.OVERFLOW
        store64(context + s.STACK_USED * 8, used)
        return load64(word(context, s.STACK) + (used << 3))
    if operation == SWITCH:
        return find_case(word(context, s.SWITCHES) + load64(row + 24) * 16, integer(memory + a, load64(row + 16)))
    return -s.UNKNOWN


@part
def walk(context, pc):
    """Run from ``pc`` until there is something for the host: a status, and RESULT_PC and RESULT_VALUE of the context."""
    code, counts, phases = word(context, s.CODE), word(context, s.COUNTS), word(context, s.PHASES)
    loops, memory, tile_base, tiles = word(context, s.LOOPS), word(context, s.MEMORY), word(context, s.TILE_BASE), word(context, s.TILES)
    aux, faulted = word(context, s.AUX), word(context, s.SYNC) + s.SYNC_FAULTED * 8
    awake = word(context, s.THREADS) == 1
    budget = BUDGET
    while True:
        if budget < 0:
            if poll(context):
                return leave(context, s.POLL, pc, 0)
            budget = BUDGET
        row = code + (pc << 5)
        count = counts + (pc << 3)
        operation, a = load64(row), load64(row + 8)
        budget -= INSTRUCTION_COST
        if operation == RUN:
            phase = phases + a * (8 * s.PHASE_WORDS)
            mode = word(phase, s.PHASE_MODE)
            if mode & s.JOBBED and not awake:
                awake = all_awake(context)
                if not awake:
                    return leave(context, s.WAKE, pc, 0)
            store64(count, load64(count) + 1)
            sequence = word(context, s.SEQUENCE) + 1
            store64(context + s.SEQUENCE * 8, sequence)
            if mode & s.JOBBED:
                run_on_all(context, phase, word(phase, s.PHASE_RANGE))
            else:
                store64(aux + abi.AUX_PHASE * 8, sequence)
                run_alone(context, memory, tile_base, tiles, aux, phase)
            budget -= word(phase, s.PHASE_COST)
            if load64(faulted) != 0:
                return leave(context, s.FAULT, pc, a)
            pc += 1
            if mode & s.PRINTING and printed(context):
                return leave(context, s.PRINTS, pc, a)
            continue
        store64(count, load64(count) + 1)
        if operation == YIELD:
            return leave(context, s.YIELD, pc + 1, a)
        if operation == HALT:
            return leave(context, s.HALT, pc, 0)
        following = step(context, row, pc, operation, a, loops, memory)
        if following < 0:
            return leave(context, -following, pc, operation)
        pc = following


def run(context, pc):
    """The machine's entry: ``walk``, then workers may park."""
    store64(context + s.STARTED * 8, 0)
    status = walk(context, pc)
    if status != s.WAKE:
        store_release(word(context, s.SYNC) + s.SYNC_WANTED * 8, 0)
    return status


def work(context, thread):
    """A worker's entry: do its share of each phase that is posted, until there is no run for a while."""
    sync = word(context, s.SYNC)
    aux = word(context, s.AUX) + thread * AUX_BYTES
    awake = thread_line(context, thread) + s.THREAD_AWAKE * 8
    seen = word(aux, s.AUX_SEEN)
    exchange(awake, 1)
    rounds = 0
    while True:
        if load_acquire(sync) != seen:
            seen += 1
            run_jobs(context, thread, load64(sync + s.SYNC_PHASE * 8))
            store64(aux + s.AUX_SEEN * 8, seen)
            arrive(context, aux, thread)
            rounds = 0
            continue
        rounds += 1
        if rounds < SPINS:
            pause()
            continue
        if load_acquire(sync + s.SYNC_QUIT * 8) != 0:
            exchange(awake, 0)
            return s.QUIT
        if rounds < YIELDS:
            if word(context, s.YIELD_FUNCTION) != 0:
                call_int(word(context, s.YIELD_FUNCTION), 0, 0)
        elif rounds > LINGER and load_acquire(sync + s.SYNC_WANTED * 8) == 0:
            exchange(awake, 0)  # a fence: this sees that a run begins, or the run sees that this has parked
            if load_acquire(sync + s.SYNC_WANTED * 8) == 0:
                return s.PARKED
            exchange(awake, 1)
        elif word(context, s.SLEEP_FUNCTION) != 0:
            call_int(word(context, s.SLEEP_FUNCTION), 20, 0)
