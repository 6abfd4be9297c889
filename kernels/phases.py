"""Phases of the machine: copies and vertices, on the calling thread or on all of them.

A phase is run in one of two ways. Small ones: the calling thread goes through its groups and batches. Large ones: each
thread goes through a job list of its own, which the linker wrote. Thread 0 is the caller.

A barrier cuts the job lists into segments. Whoever is to do a segment first takes it, by an atomic exchange; so a thread
that waits for another one which has not begun, as it got no processor, takes that one's segment instead.

Of several replicas threads share a phase by replica where there are enough of them, else by tile, one replica after the other.
"""

from popcore.kernels import abi
from popcore.kernels import status as s
from popcore.kernels.exchange import copy_group
from popcore.kernels.native import (
    call_driver,
    call_int,
    exchange,
    load32,
    load64,
    load_acquire,
    part,
    pause,
    replace,
    store64,
    store_release,
    touch,
)  # fmt: skip

SPINS = 200  # rounds of a wait loop before it lets other threads run, then sleeps
YIELDS = 2_000
GRACE = 100  # rounds after which a thread that has not begun is not waited for,
LATE = 64  # nor in so many segments after that, unless it comes
LINE = 64
FAULT_BYTES = s.FAULT_WORDS * 8
AUX_BYTES = abi.AUX_WORDS * 8


@part
def word(context, index):
    return load64(context + index * 8)


@part
def replica_of(context, memory):
    return (memory - word(context, s.MEMORY)) // word(context, s.STRIDE)


@part
def is_first(fault, replica, batch, position):
    """Whether a fault comes before the one in a thread's fault block: by replica, batch, position."""
    if word(fault, s.FAULT_VALID) == 0:
        return True
    known = word(fault, s.FAULT_REPLICA)
    if replica != known:
        return replica < known
    known = word(fault, s.FAULT_BATCH)
    if batch != known:
        return batch < known
    return position < word(fault, s.FAULT_POSITION)


@part
def note(context, memory, aux, thread, batch, failed, used_before, prints):
    """After a driver that failed or may have printed: keep the first fault of the phase, mark the records with batch and replica."""
    replica = replica_of(context, memory)
    if failed != 0:
        fault = word(context, s.FAULTS) + thread * FAULT_BYTES
        if is_first(fault, replica, batch, failed - 1):
            store64(fault + s.FAULT_BATCH * 8, batch)
            store64(fault + s.FAULT_POSITION * 8, failed - 1)
            store64(fault + s.FAULT_REPLICA * 8, replica)
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
            store64(marker + 24, replica)
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
    store64(aux + abi.AUX_BATCH * 8, batch)
    if word(row, s.BATCH_COUNTED) != 0:
        store64(aux + abi.AUX_COUNTED * 8, word(row, s.BATCH_COUNTED) + replica_of(context, memory) * word(context, s.COUNTED_STRIDE))
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
        note(context, memory, aux, thread, batch, failed, used, prints)
    return 0


@part
def thread_line(context, thread):
    return word(context, s.SYNC) + (s.SYNC_THREADS + thread * s.LINE_WORDS) * 8


@part
def rest(context, rounds):
    """One round of a wait loop: spin for a while, then let others run, then sleep."""
    if rounds < SPINS:
        pause()
    elif rounds < YIELDS:
        if word(context, s.YIELD_FUNCTION) != 0:
            call_int(word(context, s.YIELD_FUNCTION), 0, 0)
    elif word(context, s.SLEEP_FUNCTION) != 0:
        call_int(word(context, s.SLEEP_FUNCTION), 20, 0)
    return 0


@part
def take(line, segment):
    """Whether the caller is the one to do a segment of the thread with this line. Only the phase being done can be taken."""
    taken = load_acquire(line + s.THREAD_TAKEN * 8)
    return replace(line + s.THREAD_TAKEN * 8, taken, segment) if taken < segment else 0


@part
def run_list(context, memory, aux, thread, bounds, skipping):
    """A job list up to its barrier, or from there on; on one replica's memory."""
    tile_base, tiles = word(context, s.TILE_BASE), word(context, s.TILES)
    words, spans = word(context, s.WORDS), word(context, s.SPANS)
    groups, batches = word(context, s.GROUPS), word(context, s.BATCHES)
    job = word(context, s.JOBS) + load64(bounds) * (8 * s.JOB_WORDS)
    last = word(context, s.JOBS) + load64(bounds + 8) * (8 * s.JOB_WORDS)
    while job < last:
        kind, index = word(job, s.JOB_KIND), word(job, s.JOB_INDEX)
        if kind == s.JOB_BARRIER:
            if not skipping:
                break
            skipping = 0
        elif skipping:
            pass
        elif kind == s.JOB_COPY:
            copy_group(memory, words, spans, groups + index * (8 * s.GROUP_WORDS), word(job, s.JOB_BEGIN), word(job, s.JOB_END))
        else:
            row = batches + index * (8 * s.BATCH_WORDS)
            run_batch(context, memory, tile_base, tiles, aux, thread, index, row, word(job, s.JOB_BEGIN), word(job, s.JOB_END))
        job += 8 * s.JOB_WORDS
    return 0


@part
def run_alone(context, memory, tile_base, tiles, aux, thread, phase):
    """A small phase, on one thread, on one replica's memory."""
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
            run_batch(context, memory, tile_base, tiles, aux, thread, batch, row, word(row, s.BATCH_BEGIN), word(row, s.BATCH_END))
            row += 8 * s.BATCH_WORDS
    return 0


@part
def run_some(context, thread, phase, first, last):
    """A phase on the memory of replicas ``first`` to ``last`` - 1, one after the other."""
    memory, stride = word(context, s.MEMORY), word(context, s.STRIDE)
    tile_base, tiles = word(context, s.TILE_BASE), word(context, s.TILES)
    aux = word(context, s.AUX) + thread * AUX_BYTES
    store64(aux + abi.AUX_PHASE * 8, word(context, s.SEQUENCE))
    job_range = word(phase, s.PHASE_RANGE)
    for replica in range(first, last):
        store64(aux + s.AUX_REPLICA * 8, replica)
        if job_range >= 0:
            run_list(context, memory + replica * stride, aux, thread, word(context, s.JOB_RANGES) + job_range * 16, 0)
        else:
            run_alone(context, memory + replica * stride, tile_base, tiles, aux, thread, phase)
    return 0


@part
def run_segment(context, thread, owner, job_range, segment):
    """``thread`` does a segment of ``owner``'s share of a phase, which it has taken: a job list, or some replicas."""
    threads = word(context, s.THREADS)
    if job_range < 0:
        replicas = word(context, s.REPLICAS)
        phase = word(context, s.PHASES) + (-1 - job_range) * (8 * s.PHASE_WORDS)
        run_some(context, thread, phase, replicas * owner // threads, replicas * (owner + 1) // threads)
    else:
        aux = word(context, s.AUX) + thread * AUX_BYTES
        store64(aux + abi.AUX_PHASE * 8, word(context, s.SEQUENCE))
        replica = word(word(context, s.SYNC), s.SYNC_REPLICA)
        store64(aux + s.AUX_REPLICA * 8, replica)
        memory = word(context, s.MEMORY) + replica * word(context, s.STRIDE)
        run_list(context, memory, aux, thread, word(context, s.JOB_RANGES) + (job_range * threads + owner) * 16, segment & 1)
    store_release(thread_line(context, owner) + s.THREAD_DONE * 8, segment)
    return 0


@part
def wait_for(context, thread, other, job_range, segment):
    """Until a segment of another thread is done; done by the caller if that thread does not begin it soon."""
    line = thread_line(context, other)
    rounds = 0
    while load_acquire(line + s.THREAD_DONE * 8) < segment:
        late = word(line, s.THREAD_LATE)
        if (rounds >= GRACE or late != 0) and take(line, segment):
            store64(line + s.THREAD_LATE * 8, late - 1 if late != 0 else LATE)
            run_segment(context, thread, other, job_range, segment)
            return 0
        rest(context, rounds)
        rounds += 1
    return 0


@part
def wait_for_all(context, thread, job_range, segment):
    """Until every thread's segment is done; the caller's too, which somebody else may have taken and not ended yet."""
    for other in range(word(context, s.THREADS)):
        wait_for(context, thread, other, job_range, segment)
    return 0


@part
def take_part(context, thread, job_range, ticket):
    """Do the thread's share of the phase with this ticket. What is no longer to be done is passed over."""
    line = thread_line(context, thread)
    for segment in range(ticket & ~1, ticket + 1):
        if segment & 1:
            wait_for_all(context, thread, job_range, segment - 1)
        if take(line, segment):
            if word(line, s.THREAD_LATE) != 0:
                store64(line + s.THREAD_LATE * 8, 0)
            run_segment(context, thread, thread, job_range, segment)
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
def run_on_all(context, job_range, two):
    """A large phase, on every thread, in one segment or two; returns when all is done."""
    sync = word(context, s.SYNC)
    ticket = (load64(sync) & ~1) + 2 + two
    store64(sync + s.SYNC_PHASE * 8, job_range)
    store_release(sync, ticket)
    take_part(context, 0, job_range, ticket)
    wait_for_all(context, 0, job_range, ticket)
    return 0


@part
def run_replicas(context, phase, number):
    """A phase on every replica."""
    mode, replicas = word(phase, s.PHASE_MODE), word(context, s.REPLICAS)
    if mode & s.JOBBED == 0:
        return run_some(context, 0, phase, 0, replicas)
    if mode & s.SHARED:
        return run_on_all(context, -1 - number, 0)
    for replica in range(replicas):
        store64(word(context, s.SYNC) + s.SYNC_REPLICA * 8, replica)
        run_on_all(context, word(phase, s.PHASE_RANGE), mode & s.BARRIER != 0)
    return 0
