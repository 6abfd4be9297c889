"""From an Executable to something that runs: names become addresses, tables become the machine's, and ``Image`` runs it.

Codelets are compiled by ``popcore.native``, the machine here. On a warm cache that takes LLVM's loader alone: no Numba, no compiler.
"""

from __future__ import annotations

import ctypes
import dataclasses
import os
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from popcore.engine import outcome as result
from popcore.engine.arithmetic import State, streams
from popcore.engine.counters import Counters, counted_codelets
from popcore.engine.device import Arena
from popcore.engine.findings import Tables
from popcore.engine.isolated import RUN, TELL_VARIABLES, Child, Died, Reply
from popcore.engine.jobs import THREAD_COST, Jobs, phase_costs, plan_jobs
from popcore.engine.outcome import Crash, Outcome, Told
from popcore.engine.pool import Pool
from popcore.engine.statics import Kept, gather_statics
from popcore.engine.touch import touched
from popcore.errors import EngineError, PopcoreError
from popcore.executable.executable import Executable
from popcore.executable.opcodes import Batch, Group, GroupKind, Op, Phase
from popcore.kernels import abi, objects, status
from popcore.kernels.behaviour import Arithmetic
from popcore.native import PLAIN, Build, cache_folder, drivers, falls_back, forget, may_print
from popcore.pages import zeros
from popcore.types import Array

LAST_FIRST = 0x012345  # workers 5 to 0
POLL_SECONDS = 0.1
PRINT_WORDS = 1 << 16  # of each thread, for one phase
STREAM_BYTES = 16 << 20  # copies of one kind in one phase above this go around the caches
LINE_BYTES = 64
STREAM_LONG = 256  # entries of so many bytes stream whatever their alignment; shorter ones would leave half-written lines
_VM_SYMBOLS = ("popcore_run", "popcore_work", "popcore_note")
_MACHINE = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)


def _machine_functions(cache: objects.Cache) -> tuple[Callable[[int, int], int], Callable[[int, int], int], int]:
    """``vm.run`` and ``vm.work``, and the address of ``findings.note``."""
    if falls_back():
        from popcore.kernels import fallback

        addresses: list[int] = fallback.machine_addresses()
    else:
        addresses = objects.load(cache, objects.key_of("machine"), _VM_SYMBOLS, _compile_machine)
    run, work, note = addresses
    return _MACHINE(run), _MACHINE(work), note


def _compile_machine() -> bytes:
    from popcore.kernels import findings, native, vm

    made: bytes = native.compile_object(dict(zip(_VM_SYMBOLS, (vm.run, vm.work, findings.note), strict=True)))
    return made


def _machine_groups(executable: Executable) -> Array:
    """Groups as the machine wants them: the longer loop of a nest outside, very large copies marked as streaming."""
    groups = np.ascontiguousarray(executable.groups, np.int64).reshape(-1, status.GROUP_WORDS).copy()
    flat = np.flatnonzero((groups[:, Group.KIND] == GroupKind.STRIDED) & (groups[:, Group.COUNT] == 1) & (groups[:, Group.COUNT1] > 1))
    outer, inner = (Group.COUNT, Group.SOURCE2, Group.TARGET2), (Group.COUNT1, Group.SOURCE1, Group.TARGET1)
    groups[flat[:, None], outer + inner] = groups[flat[:, None], inner + outer]
    groups[:, status.GROUP_STREAMING] = _streams(executable, groups)
    return groups


def _streams(executable: Executable, groups: Array) -> Array:
    """Which groups are so large that their data would push everything else out of the caches, and have entries that fill lines."""
    count, width, kind = groups[:, Group.COUNT], 4 * groups[:, Group.WIDTH], groups[:, Group.KIND]
    total = width * count * np.where(kind == GroupKind.STRIDED, groups[:, Group.COUNT1], 1)
    rows = np.flatnonzero((kind == GroupKind.SPANS) & (count > 0))
    length = np.concatenate(([0], np.cumsum(executable.spans[:, 2])))
    total[rows] = length[(groups[:, Group.BEGIN] + count)[rows]] - length[groups[rows, Group.BEGIN]]
    width[rows] = total[rows] // count[rows]
    streams: Array = (total >= STREAM_BYTES) & ((width >= STREAM_LONG) | ((width >= LINE_BYTES) & (width % LINE_BYTES == 0)))
    return streams


def _machine_batches(executable: Executable, rows: Array, prints: Array) -> Array:
    given = executable.batches
    batches = np.zeros((len(given), status.BATCH_WORDS), np.int64)
    batches[:, status.BATCH_BEGIN] = given[:, Batch.TILES_BEGIN]
    batches[:, status.BATCH_END] = given[:, Batch.TILES_BEGIN] + given[:, Batch.TILES_COUNT]
    batches[:, status.BATCH_ROWS] = rows.ctypes.data + 4 * given[:, Batch.ROWS_BEGIN]
    batches[:, status.BATCH_ROWS_COUNT] = given[:, Batch.ROWS_COUNT]
    batches[:, status.BATCH_PRINTS] = prints[given[:, Batch.CODELET]]
    batches[:, [status.BATCH_TOUCH, status.BATCH_TOUCH_BYTES]] = touched(executable)
    return batches


def _machine_phases(executable: Executable, jobs: Jobs, printing: Array, threads: int) -> Array:
    given = executable.phases
    phases = np.zeros((len(given), status.PHASE_WORDS), np.int64)
    phases[:, status.PHASE_COPY_BEGIN : status.PHASE_BATCH_END + 1] = given[:, Phase.COPY_BEGIN : Phase.BATCH_END + 1]
    replicas = executable.replicas
    phases[:, status.PHASE_COST] = given[:, Phase.WORK] * replicas
    phases[:, status.PHASE_COUNTED] = given[:, Phase.BATCH_END] > given[:, Phase.BATCH_BEGIN]
    before = np.concatenate(([0], np.cumsum(printing)))
    prints = before[np.maximum(given[:, Phase.BATCH_END], given[:, Phase.BATCH_BEGIN])] > before[given[:, Phase.BATCH_BEGIN]]
    phases[:, status.PHASE_MODE] = status.JOBBED * (jobs.range_of >= 0) | status.PRINTING * prints
    phases[:, status.PHASE_RANGE] = jobs.range_of
    jobbed = np.flatnonzero(jobs.range_of >= 0)
    phases[jobbed, status.PHASE_MODE] |= status.BARRIER * jobs.barrier[jobs.range_of[jobbed]]
    if replicas > 1:
        phases[:, status.PHASE_MODE] |= status.REPLICATED
    if _shares_by_replica(executable, threads):
        shared = (phase_costs(executable) * replicas >= THREAD_COST) & (threads > 1)
        phases[:, status.PHASE_MODE] &= ~(status.JOBBED | status.BARRIER)
        phases[shared, status.PHASE_MODE] |= status.JOBBED | status.SHARED
    return phases


def _shares_by_replica(executable: Executable, threads: int) -> bool:
    """Whether threads do whole replicas: there are enough of them, and no thread waits for another within a phase."""
    return executable.replicas > 1 and executable.replicas >= threads


class Watcher(Protocol):
    """Looks at phases."""

    def before(self, phase: int) -> None:
        """A phase is about to run."""

    def after(self, phase: int, sequence: int, arithmetic: Arithmetic) -> EngineError | None:
        """It has, as the compute set of this number since loading. Returns what is wrong, if anything."""


class Image:
    """An Executable linked into an arena, ready to run. Not the place for names or messages: ``engine.faults`` makes those.

    Args:
        threads: That share large phases, the caller among them. The results do not depend on it.
        interpret: Run codelets as Python, for a debugger; one thread.
        build: Of codelets. The check "full" needs an Executable with a shadow.
        ieee: Keep denormals, and let HALF overflow to infinity.
        seed: Of stochastic rounding.
        order: Of the workers of a vertex, see ``abi.AUX_ORDER``, for a build that is ordered.
        isolate: Run in a process of its own, on one thread; needs an arena that is shared, and neither a watcher nor a build that collects.

    Attributes:
        watcher: Looks at phases before and after they run.

    Needs: an arena with the initial values in place; it must stay open as long as the image is used.
    Raises: CodeletError for a codelet that cannot be compiled.
    """

    def __init__(
        self, executable: Executable, arena: Arena, threads: int = 1, interpret: bool = False, build: Build = PLAIN, ieee: bool = False, seed: int = 1,
        order: int = LAST_FIRST, isolate: bool = False,
    ) -> None:  # fmt: skip
        self.executable, self.arena, self._order, self._isolate = executable, arena, order, isolate
        self.threads = 1 if interpret or isolate else max(1, threads)
        self._lock = threading.Lock()
        self.watcher: Watcher | None = None
        cache = objects.Cache(cache_folder())
        self._run, work, note = _machine_functions(cache)
        self.tables = Tables(self.threads) if build.collects else None
        self._interpreter: Any = None
        if interpret:
            from popcore.engine.interpret import Interpreter

            self._interpreter = Interpreter(executable, arena, build, seed, _MACHINE(note) if build.collects else None)
        self._build = build
        self._streams = streams(executable, arena, seed)
        self.counters = Counters(executable, self._isolate)
        self._make_tables(executable, ieee, note)
        self._make_context(ieee)
        keep = (self._tables, self._context, self._sync, self.tables, arena)
        self._pool = Pool(work, self._address, self._sync, self.threads, keep)
        self.close = weakref.finalize(self, self._pool.close)
        self._child: Child | None = None  # that runs it, once it was wanted
        self._owner = os.getpid()

    def memories(self) -> list[int]:
        """The address of each replica's memory."""
        return [self.arena.address + replica * self.arena.stride for replica in range(self.executable.replicas)]

    def forget(self) -> None:
        """Variables that C++ codelets keep outside of vertices start over."""
        self._retire()
        for memory in self.memories():
            forget(self.executable.codelets, memory)

    def _link(self, codelets: Sequence[int], arithmetic: Arithmetic) -> list[int]:
        """Addresses of drivers for ``arithmetic`` of some codelets."""
        if self._interpreter is not None:
            return [self._interpreter.address_of(number, arithmetic) for number in codelets]
        counted = {self.executable.codelets[number] for number in counted_codelets(self.executable)}
        return drivers([self.executable.codelets[number] for number in codelets], arithmetic, self._build, counted)

    def behave(self, bits: int) -> None:
        """The machine's floating-point state from here on, see ``popcore.kernels.behaviour``."""
        self.state.change(bits)
        if self._interpreter is not None:
            self._interpreter.arithmetic = self.state.arithmetic

    def _make_tables(self, executable: Executable, ieee: bool, note: int) -> None:
        """Everything the context points to."""
        groups, rows = _machine_groups(executable), np.ascontiguousarray(executable.rows, np.int32)
        prints = np.array([self._interpreter is not None or may_print(codelet) for codelet in executable.codelets], np.int64)
        batches = _machine_batches(executable, rows, prints)
        jobs = plan_jobs(executable, groups, 1 if _shares_by_replica(executable, self.threads) else self.threads)
        phases = _machine_phases(executable, jobs, batches[:, status.BATCH_PRINTS] != 0, self.threads)
        self.counters.connect(batches, phases)
        self.state = State(executable, batches, phases, self._link, ieee)
        self.counts = zeros((len(executable.code),), np.int64, self._isolate)
        self._aux = zeros((self.threads, abi.AUX_WORDS), np.int64, self._isolate)
        self._aux[:, [abi.AUX_SHADOW, abi.AUX_ARENA]] = executable.shadow.distance, self.arena.address
        self._aux[:, abi.AUX_ARENA_BYTES] = len(self.arena.memory)
        self._aux[:, abi.AUX_STREAMS] = self._streams[0].ctypes.data
        self._aux[:, abi.AUX_ORDER] = self._order
        if self.tables is not None:
            self._aux[:, abi.AUX_NOTE] = note
            self._aux[:, abi.AUX_TABLE] = self.tables.words.ctypes.data + self.tables.words.strides[0] * np.arange(self.threads)
        self._faults = zeros((self.threads, status.FAULT_WORDS), np.int64, self._isolate)
        printing = bool(prints.any())
        self._buffers = zeros((self.threads, PRINT_WORDS if printing else 0), np.uint64, self._isolate)
        if printing:
            self._aux[:, abi.AUX_PRINT_BUFFER] = self._buffers.ctypes.data + self._buffers.strides[0] * np.arange(self.threads)
            self._aux[:, abi.AUX_PRINT_CAPACITY] = PRINT_WORDS - status.MARKER_WORDS
        code = zeros(executable.code.shape, np.int64, self._isolate)  # a copy: see ``intercept``
        code[...] = executable.code
        self._one = zeros((2, 4), np.int64, self._isolate)  # a program for ``run_phase``
        self._one[:, 0] = Op.RUN, Op.HALT
        self._one_counts = np.zeros(2, np.int64)
        self._tables: dict[int, Array] = {
            status.CODE: code,
            status.COUNTS: self.counts,
            status.PHASES: phases,
            status.GROUPS: groups,
            status.BATCHES: batches,
            status.JOBS: jobs.table,
            status.JOB_RANGES: jobs.ranges,
            status.SWITCHES: np.ascontiguousarray(executable.switches, np.int64),
            status.LOOPS: np.zeros(max(executable.loop_slots, 1), np.int64),
            status.STACK: np.zeros(max(executable.call_depth, 1), np.int64),
            status.TILE_BASE: np.ascontiguousarray(executable.memory.tile_base, np.int64),
            status.TILES: np.ascontiguousarray(executable.tiles, np.int32),
            status.WORDS: np.ascontiguousarray(executable.words, np.uint32),
            status.SPANS: np.ascontiguousarray(executable.spans, np.int64),
            status.AUX: self._aux,
            status.FAULTS: self._faults,
            status.CLOCK_SCRATCH: np.zeros(2, np.int64),
            status.TAKEN: self.counters.taken,
            status.TOTALS: self.counters.totals,
            -1: rows,  # the batches point into it
            -2: self._buffers,
            -3: self._one,
            -4: self._one_counts,
            **{-5 - i: array for i, array in enumerate((*self._streams, *self.counters.kept))},
        }

    def _make_context(self, ieee: bool) -> None:
        self._context = zeros((status.CONTEXT_WORDS,), np.int64, self._isolate)
        lines = zeros((status.SYNC_THREADS + (self.threads + 1) * status.LINE_WORDS,), np.int64, self._isolate)
        self._sync = lines[-lines.ctypes.data % status.LINE_BYTES // 8 :]
        for word, table in self._tables.items():
            if word >= 0:
                self._context[word] = table.ctypes.data
        context = self._context
        self._address = int(context.ctypes.data)
        self._program = (int(context[status.CODE]), int(context[status.COUNTS]))  # addresses
        self._one_program = (int(self._one.ctypes.data), int(self._one_counts.ctypes.data))
        context[status.SYNC] = self._sync.ctypes.data
        context[status.MEMORY], context[status.STRIDE] = self.arena.address, self.arena.stride
        context[status.COUNTED_STRIDE] = self.counters.stride
        context[status.REPLICAS] = self.executable.replicas
        context[status.THREADS] = self.threads
        context[status.STACK_DEPTH] = len(self._tables[status.STACK])
        context[status.CLOCK_FUNCTION] = objects.c_function("clock_gettime")
        context[status.YIELD_FUNCTION] = objects.c_function("sched_yield")
        context[status.SLEEP_FUNCTION] = objects.c_function("usleep")
        context[status.CLOCK_ID] = getattr(time, "CLOCK_MONOTONIC", 0)
        context[status.POLL_NANOSECONDS] = int(POLL_SECONDS * 1e9)
        context[status.FLOAT_CONTROL] = 0 if ieee else status.FLOAT_MASK

    def run(self, pc: int) -> Outcome:
        """Run from ``pc`` until something is for the host, or for about ``POLL_SECONDS``. The GIL is released meanwhile."""
        return self._drive(pc, self._program)

    def run_phase(self, phase: int) -> Outcome:
        """Run one phase by itself, on behalf of the host: "halt", or a fault or prints. Not counted."""
        self._one[0, 1] = phase
        made = self._drive(0, self._one_program)
        while made.kind == "poll":
            made = self._drive(made.pc, self._one_program)
        return made

    def restart(self) -> None:
        """What a load starts over besides memory: the floating-point state, the count of compute sets, C++ codelets' own variables."""
        self.behave(0)
        self.sequence = 0
        self.forget()

    def statics(self) -> list[Kept]:
        """Variables that C++ codelets keep outside of vertices. Raises: EngineError: see ``statics.gather_statics``."""
        if self._child is not None:
            try:
                return self._child.ask(TELL_VARIABLES).kept
            except Died:  # with it went what it kept
                self._child = None
        return gather_statics(self.executable, self.memories())

    @property
    def sequence(self) -> int:
        """Compute sets run since loading: what random bits depend on."""
        return int(self._context[status.SEQUENCE])

    @sequence.setter
    def sequence(self, count: int) -> None:
        self._context[status.SEQUENCE] = count

    def intercept(self, instructions: Array) -> None:
        """From here on, stop before each of some instructions: a YIELD whose index is that of the instruction, behind those of the program."""
        self._tables[status.CODE][instructions, 0] = Op.YIELD
        self._tables[status.CODE][instructions, 1] = len(self.executable.yields) + instructions

    def restore(self, instructions: Array) -> None:
        """No longer stop there."""
        self._tables[status.CODE][instructions] = self.executable.code[instructions]

    def reset(self) -> None:
        """Forget the calls that a run was in when it was given up."""
        self._context[status.STACK_USED] = 0

    def _drive(self, pc: int, program: tuple[int, int]) -> Outcome:
        if not self._lock.acquire(blocking=False):
            raise EngineError("this engine is running in another thread", "one engine for each thread")
        try:
            self._context[status.CODE], self._context[status.COUNTS] = program
            while (outcome := self._walk(pc)).kind == "watched":
                outcome = self._watch(outcome.pc, outcome.phase, program)
                if outcome.kind != "halt":
                    return outcome
                pc = outcome.pc
            return outcome
        finally:
            self._pool.release()
            self._lock.release()

    def _walk(self, pc: int) -> Outcome:
        """Run from ``pc`` to something for the host, in the process that does so."""
        if not self._isolate:
            return self._outcome(self._machine(pc))
        try:
            reply = self._ask(pc)
        except Died as death:
            self._child = None
            batch, position = self._aux[0, [abi.AUX_BATCH, abi.AUX_POSITION]].tolist()
            return Outcome("crash", pc, crash=Crash(str(death), death.signal, death.exit_code, batch, position))
        if reply.told is not None and reply.told.unsure:
            self._retire()
        return self._outcome(reply.state, reply.told)

    def _machine(self, pc: int) -> int:
        """Run the machine, in this process."""
        while (state := self._run(self._address, pc)) in (status.WAKE, status.LINK):
            if state == status.WAKE:
                self._pool.wake()
            else:
                self.state.link_phase(int(self._context[status.RESULT_VALUE]))
            pc = int(self._context[status.RESULT_PC])
        return state

    def _ask(self, pc: int) -> Reply:
        """Have the machine run in its own process. Raises: Died: that did."""
        if os.getpid() != self._owner:
            raise EngineError("this engine, with debug.isolate, was made in another process, whose memory it shares", "make an engine in each process")
        self._aux[:, abi.AUX_BATCH] = -1  # until a vertex begins
        if self._child is None:
            self._sync[status.SYNC_FAULTED] = 0  # what the one before left
            self._faults[:, status.FAULT_VALID] = 0
            self._aux[:, [abi.AUX_PRINT_USED, abi.AUX_PRINT_LOST]] = 0
            self._child = Child(self._serve)
        try:
            return self._child.ask(RUN, pc, self.state.bits)
        except PopcoreError:
            raise
        except BaseException:
            self._child = None
            raise

    def _serve(self, what: int, pc: int, bits: int) -> Reply:
        """Do a request, in the process that is asked."""
        if what == TELL_VARIABLES:
            return Reply(kept=gather_statics(self.executable, self.memories()))
        if bits != self.state.bits:
            self.behave(bits)
        state = self._machine(pc)
        return Reply(state, told=result.tell(self.executable, self._faults) if state == status.FAULT else None)

    def _retire(self) -> None:
        """End the process that runs this, if there is one; the next run makes another."""
        child, self._child = self._child, None
        if child is not None:
            child.stop()

    def watch(self, watcher: Watcher, phases: Array) -> None:
        """Have phases, a bool for each, looked at from here on."""
        self.watcher = watcher
        self._tables[status.PHASES][phases, status.PHASE_MODE] |= status.WATCHED

    def _watch(self, pc: int, phase: int, program: tuple[int, int]) -> Outcome:
        """Run the phase of the instruction at ``pc`` by itself, between two looks. "halt" if nothing was found; then go on at the outcome's ``pc``."""
        assert self.watcher is not None
        self.watcher.before(phase)
        modes, self._one[0, 1] = self._tables[status.PHASES][:, status.PHASE_MODE], phase
        modes[phase] &= ~status.WATCHED
        self._context[status.CODE], self._context[status.COUNTS] = self._one_program
        outcome = self._walk(0)
        self._context[status.CODE], self._context[status.COUNTS] = program
        modes[phase] |= status.WATCHED
        self.counts[pc] += 1
        if outcome.fault is not None:
            return dataclasses.replace(outcome, pc=pc)
        error = self.watcher.after(phase, int(self._context[status.SEQUENCE]), self.state.arithmetic)
        kind = "found" if error is not None else "prints" if outcome.prints or outcome.prints_lost else "halt"
        return dataclasses.replace(outcome, kind=kind, pc=pc + 1, phase=phase, error=error)

    def _outcome(self, state: int, told: Told | None = None) -> Outcome:
        pc, value = int(self._context[status.RESULT_PC]), int(self._context[status.RESULT_VALUE])
        if state == status.WATCH:
            return Outcome("watched", pc, phase=value)
        if state == status.HALT:
            return Outcome("halt", pc)
        if state == status.YIELD:
            return Outcome("yield", pc, value)
        if state == status.POLL:
            return Outcome("poll", pc)
        if state == status.DIVERGED:
            return Outcome("diverged", pc)
        if state in (status.FAULT, status.PRINTS):
            fault = None
            if state == status.FAULT:
                self._sync[status.SYNC_FAULTED] = 0
                fault = result.fault_of(self.executable, self._faults, self._interpreter.take_exception() if self._interpreter else None, told)
            prints, lost = result.prints_of(self.executable, self._buffers, self._aux)
            return Outcome("fault" if fault else "prints", pc, phase=value, fault=fault, prints=prints, prints_lost=lost)
        what = "a call deeper than the program's functions" if state == status.OVERFLOW else f"no instruction has the number {value}"
        raise EngineError(f"the Executable is damaged at instruction {pc}: {what}", "compile the graph again")
