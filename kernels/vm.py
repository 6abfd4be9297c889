"""The machine: walks a program's instructions in native code, and runs phases on all threads (``phases``).

``run`` and ``work`` become two native functions (``native.compile_object``). They take addresses as integers and
cannot raise. All their tables are described in ``status`` and ``popcore.executable.opcodes``.

Of several replicas each has a memory of its own, with the same tables. Replicas have to agree on whatever decides where the program goes.

While a thread stands for tiles its processor flushes denormals, if the context says so; the host never sees that.
"""

from popcore.kernels import abi
from popcore.kernels import status as s
from popcore.kernels.counting import count_phase
from popcore.kernels.native import (
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
    set_float_control,
    store64,
    store_release,
)  # fmt: skip
from popcore.kernels.phases import AUX_BYTES, SPINS, YIELDS, all_awake, rest, run_alone, run_on_all, run_replicas, take_part, thread_line, word

RUN, REPEAT, END, BRANCH, JUMP, SWITCH, CALL, RETURN, YIELD, NOP, HALT = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0
INSTRUCTION_COST = 40  # of the poll budget; a phase costs about its bytes
BUDGET = 200_000  # between two looks at the clock: about 20 us
LINGER = YIELDS + 30  # rounds after which a worker parks if no run is going on: a few milliseconds


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
def differs(context, address, width):
    """Whether replicas do not agree on an integer of ``width`` bytes, negative if signed."""
    stride = word(context, s.STRIDE)
    value = integer(address, width)
    for _ in range(1, word(context, s.REPLICAS)):
        address += stride
        if integer(address, width) != value:
            return True
    return False


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
        if differs(context, memory + a, load64(row + 16)):
            return -s.DIVERGED
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
        if differs(context, memory + a, load64(row + 16)):
            return -s.DIVERGED
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
            if mode & (s.UNLINKED | s.WATCHED):
                return leave(context, s.LINK if mode & s.UNLINKED else s.WATCH, pc, a)
            if mode & s.JOBBED and not awake:
                awake = all_awake(context)
                if not awake:
                    return leave(context, s.WAKE, pc, 0)
            store64(count, load64(count) + 1)
            sequence = word(context, s.SEQUENCE) + word(phase, s.PHASE_COUNTED)
            store64(context + s.SEQUENCE * 8, sequence)
            if mode & s.REPLICATED:
                run_replicas(context, phase, a)
            elif mode & s.JOBBED:
                run_on_all(context, word(phase, s.PHASE_RANGE), mode & s.BARRIER != 0)
            else:
                store64(aux + abi.AUX_PHASE * 8, sequence)
                run_alone(context, memory, tile_base, tiles, aux, 0, phase)
            budget -= word(phase, s.PHASE_COST)
            if load64(faulted) != 0:
                return leave(context, s.FAULT, pc, a)
            if word(phase, s.PHASE_COUNTS) != 0:
                count_phase(context, word(phase, s.PHASE_COUNTS), pc)
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
    before = set_float_control(word(context, s.FLOAT_CONTROL), s.FLOAT_MASK)
    status = walk(context, pc)
    set_float_control(before, s.FLOAT_MASK)
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
        ticket = load_acquire(sync)
        if ticket != seen:
            seen = ticket
            set_float_control(word(context, s.FLOAT_CONTROL), s.FLOAT_MASK)
            take_part(context, thread, load64(sync + s.SYNC_PHASE * 8), ticket)
            store64(aux + s.AUX_SEEN * 8, seen)
            rounds = 0
            continue
        rounds += 1
        if rounds < SPINS:
            pause()
            continue
        if load_acquire(sync + s.SYNC_QUIT * 8) != 0:
            exchange(awake, 0)
            return s.QUIT
        if rounds > LINGER and load_acquire(sync + s.SYNC_WANTED * 8) == 0:
            exchange(awake, 0)  # a fence: this sees that a run begins, or the run sees that this has parked
            if load_acquire(sync + s.SYNC_WANTED * 8) == 0:
                return s.PARKED
            exchange(awake, 1)
        rest(context, rounds)
