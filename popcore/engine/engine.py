"""Engine: a compiled graph on a device. Compiles if given a graph, loads, runs, is read and profiled."""

from __future__ import annotations

import dataclasses
import math
import os
import sys
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from popcore.codelet import NativeCodelet
from popcore.compiler import compile_graph, cost, resolve_options
from popcore.engine.counters import Counters
from popcore.engine.device import Arena
from popcore.engine.faults import crash_error, print_text, vertex_error
from popcore.engine.findings import Findings
from popcore.engine.host import Host
from popcore.engine.linker import LAST_FIRST, Image
from popcore.engine.outcome import Outcome
from popcore.engine.places import Places
from popcore.engine.schedule import Shuffle, order_of_workers, shuffled
from popcore.engine.shadow import ShadowMemory
from popcore.engine.stepping import Parts, Stepper
from popcore.engine.walk import walk_counts
from popcore.errors import EngineError, FindingsError, GraphError, OptionError, ProgramError
from popcore.executable import KINDS, Executable, Handle
from popcore.executable.opcodes import Op, Phase, PhaseFlag
from popcore.graph import Graph
from popcore.native import Build, interpreted
from popcore.profile import Profile, Ran, make_profile
from popcore.program import Program
from popcore.program.printing import parted, print_line
from popcore.program.streams import Endpoint, as_host_array, unknown_handle
from popcore.target import Device
from popcore.types import Array

if TYPE_CHECKING:
    from popcore.engine.state import Machine

HOST = KINDS.index("host")


class Engine:
    """A compiled graph, loaded on an emulated device.

    Args:
        graph: A Graph, which is compiled with ``programs``, or an Executable.
        programs: One program, or several that ``run`` takes by index.
        device: What to load on; it must be what the graph was made for. Not needed otherwise.
        options: Engine options, see ``popcore.options()``; they win over those of an Executable.

    The tiles' memory keeps what a run left; ``load`` starts over. After an error of a run the engine can still
    be read and run. Not to be used from two threads at once.

    Raises:
        CompileError, OptionError: see ``compile_graph``.
        EngineError: the device is not the one that the graph was compiled for.
    """

    def __init__(
        self,
        graph: Graph | Executable,
        programs: Program | Iterable[Program] | None = None,
        device: Device | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.executable = _executable(graph, programs, options)
        self._replicas, target = self.executable.replicas, self.executable.target
        whole = target.with_ipus(target.num_ipus * self._replicas)
        if device is not None and device.target != whole:
            raise EngineError(f"the graph is compiled for {whole}, the device is {device.target}", "make the graph with device.target")
        resolved = self.executable.options if isinstance(graph, Graph) else resolve_options({**self.executable.options, **(options or {})})
        self._options, self._computes = resolved, bool(resolved["debug.compute"])
        isolate = self._isolates()
        self._arena = Arena(self.executable.memory.arena_bytes if self._computes else 0, self._replicas, isolate)
        threads = int(resolved["engine.threads"]) or _cores()
        self._build, seed = _build(resolved), int(resolved["debug.schedule_seed"])
        self._shuffle = Shuffle(seed) if seed else None
        self._findings = Findings()
        self._places = Places(self.executable)
        self._shadow = self._make_shadow() if self._build.check == "full" and self._computes else None
        self._host = Host(self.executable, resolved, self._arena.by_replica(), self._cycles_so_far, threads, self._shadow, self._shuffle)
        self._reads = {h.name: h for h in self.executable.reads}
        self._writes = {h.name: h for h in self.executable.writes}
        self._print_stream: TextIO | None = None
        self._runs, self._wall_seconds, self._running = 0, 0.0, False
        self._image: Image | None = None
        self._fingerprints: dict[str, str] | None = None  # of the Executable, once they are asked for
        self._counts = np.zeros(len(self.executable.code), np.int64)
        self._waited = np.zeros((len(self.executable.code), len(KINDS)), np.int64)  # cycles of each instruction beyond its cost: for the host, for links
        self._counters = Counters(self.executable)
        self.stepper: Stepper | None = None  # see ``stepping.stepped``
        if self._computes:
            self._image = self._link(resolved, threads, isolate)
            self._counts, self._counters = self._image.counts, self._image.counters
            self.load()

    def _link(self, resolved: Mapping[str, Any], threads: int, isolate: bool) -> Image:
        linked = self.executable if resolved["engine.fuseTiles"] else _without_fusion(self.executable)
        order = LAST_FIRST
        if self._shuffle is not None:
            threads, order = 1, order_of_workers(self._shuffle)
            linked = shuffled(linked, self._shuffle)
        ieee, seed = resolved["target.floatingPoint"] == "ieee", int(resolved["prng.seed"])
        image = Image(linked, self._arena, threads, interpreted(), self._build, ieee, seed, order, isolate)
        if resolved["debug.first_nan"]:
            from popcore.engine.first_nan import FirstNaN  # few runs want it

            watcher = FirstNaN(linked, self._arena, self._places, seed, ieee)
            image.watch(watcher, watcher.phases())
        return image

    def _isolates(self) -> bool:
        """Whether the machine runs in a process of its own: wanted, and there is something compiled from C++."""
        if not self._options["debug.isolate"]:
            return False
        if interpreted():
            raise OptionError("the option debug.isolate is on, and codelets run as Python, where a debugger could not stop in another process", "one of them")
        if self._options["debug.first_nan"] or (self._options["debug.check.collect"] and self._options["debug.check"] != "off"):
            raise OptionError("the option debug.isolate is on, and debug.first_nan or debug.check.collect, which look into the process", "one of them")
        if not (hasattr(os, "fork") and hasattr(os, "memfd_create")):
            raise OptionError("the option debug.isolate needs a system with fork and memfd_create", "Linux")
        return self._computes and any(isinstance(c, NativeCodelet) for c in self.executable.codelets)

    def _make_shadow(self) -> ShadowMemory:
        if not self.executable.shadow.distance:
            raise OptionError("the option debug.check is 'full', and the Executable was compiled without", "compile the graph with debug.check 'full'")
        unseen = next((c for c in self.executable.codelets if isinstance(c, NativeCodelet) and c.native.unit.made_by_hand), None)
        if unseen is not None:
            what = f"codelet {unseen.name} ({unseen.site}), whose library has its own driver"
            raise OptionError(f"the option debug.check is 'full', which does not know what is written by {what}", "debug.check 'bounds'")
        return ShadowMemory(self.executable, self._arena.by_replica(), self._report)

    def _report(self, error: EngineError) -> None:
        """Something that a check found on the host's side."""
        if not self._build.collects:
            raise error
        self._findings.add(error)

    # What the host does

    def load(self) -> None:
        """Start over: initial values in the tiles' memory, zero elsewhere; remote buffers zero; nothing prefetched."""
        self._require_idle("load")
        if self._computes:
            self._arena.clear()
            self._arena.write_initial(self.executable.initial, self.executable.initial_bytes)
            self._arena.write_numbers(self.executable.replica_index)
            if self._shadow is not None:
                self._shadow.begin()
            self._findings = Findings()
            self._host.behaviour = 0
            if self._image is not None:
                self._image.restart()
        self._host.streams.invalidate()
        for rows in self._host.remotes.values():
            rows.clear()

    def save_state(self, path: str | os.PathLike[str]) -> None:
        """Write all that runs have changed to one file, whole or not at all: tiles' memory, remote buffers, how far streams have come,
        the floating-point state, what random bits depend on, C++ codelets' own variables, the profile's counts. See docs/state.md.

        Raises:
            EngineError: C++ codelets keep addresses outside of their vertices; the engine is running.
            OSError: the file cannot be written; what was there before still is.
        """
        from popcore.engine import state  # with all that reads and writes files: few runs want it

        state.save(self._machine("save_state"), self._runs, path)

    def load_state(self, path: str | os.PathLike[str]) -> None:
        """Go on where ``save_state`` was called, in this or another process, bit for bit. If it is refused nothing has changed.

        Raises:
            StateFileError: no such file, damaged, or the state of another program; what differs is named.
            StreamError: a stream is connected to something else than it was.
        """
        from popcore.engine import state

        self._runs = state.load(self._machine("load_state"), path)

    def _machine(self, what: str) -> Machine:
        from popcore.engine.state import Machine
        from popcore.executable.store import fingerprints

        if self._fingerprints is None:
            self._fingerprints = fingerprints(self.executable)
        return Machine(self.parts(what), self._fingerprints, self._counts)

    def parts(self, what: str) -> Parts:
        """What the engine is made of, for ``what``. Raises: EngineError: it is running, or has no data."""
        self._require_idle(what)
        image = self._require_image(what)
        return Parts(self.executable, self._options, self._arena, self._host, self._waited, image)

    def connect_stream(self, handle: str, endpoint: Endpoint, replica: int | None = None) -> None:
        """Connect a stream to a NumPy array, a function of one buffer, or a StreamCallback.

        An array holds any number of transfers; each one takes or fills the next, and after the last comes the
        first again. See ``popcore.program.StreamCallback`` for prefetching. Of several replicas, one connection for all of
        them serves replica 0, then replica 1, and so on at each Copy; ``replica`` says whose it is otherwise.
        """
        self._host.streams.connect(handle, endpoint, replica)

    def write_tensor(self, handle: str, values: Any) -> None:
        """Write a tensor that ``graph.create_host_write`` named: the same on all replicas, or with a leading dimension of replicas.

        Raises:
            UnknownNameError: there is no such handle.
            HostTransferError: shape or element type do not fit; both are named.
        """
        found = self._handle("host write", handle, self._writes)
        array = as_host_array(f"host write {handle!r} of {found.tensor!r}", found.dtype, found.shape, values, self._replicas)
        image = self._require_image("write_tensor")
        self._host.view(found.dtype, found.shape)[...] = array
        if self._shadow is not None:
            self._shadow.host_wrote()
        self._transfer(image, found, f"host write {handle!r}")

    def read_tensor(self, handle: str) -> Array:
        """A copy of a tensor that ``graph.create_host_read`` named, with its shape; with a leading dimension where there are several replicas."""
        found = self._handle("host read", handle, self._reads)
        image = self._require_image("read_tensor")
        self._transfer(image, found, f"host read {handle!r}")
        if self._shadow is not None:
            self._shadow.host_read(f"host read {handle!r} of {found.tensor!r}", math.prod(found.shape) * found.dtype.nbytes, found.dtype.nbytes)
        values = self._host.view(found.dtype, found.shape).copy()
        return values if self._replicas > 1 else values[0, ...]

    def copy_to_remote_buffer(self, values: Any, handle: str, row: int = 0, replica: int | None = None) -> None:
        """Write one row of a remote buffer, on one replica or on all."""
        rows = self._handle("remote buffer", handle, self._host.remotes)
        flat = np.ravel(values) if isinstance(values, np.ndarray) else values
        array = as_host_array(f"a row of remote buffer {handle!r}", rows.remote.dtype, (rows.remote.elements,), flat)[0]
        for each in range(self._replicas) if replica is None else (rows.check_replica(replica),):
            rows.write(each, np.array([row]), array)

    def copy_from_remote_buffer(self, handle: str, row: int = 0, replica: int = 0) -> Array:
        """A copy of one row of a remote buffer."""
        rows = self._handle("remote buffer", handle, self._host.remotes)
        return np.array(rows.read(rows.check_replica(replica), np.array([row])))

    def set_print_stream(self, stream: TextIO) -> None:
        """Where prints of codelets go; ``sys.stderr`` if not called."""
        self._print_stream = stream

    def set_print_tensor_stream(self, stream: TextIO) -> None:
        """Where PrintTensor prints; ``sys.stderr`` if not called."""
        self._host.print_tensor_stream = stream

    def _transfer(self, image: Image, handle: Handle, what: str) -> None:
        if self.stepper is not None:
            self.stepper.transfer(handle.phase, what)
        self._finish(image.run_phase(handle.phase))

    @staticmethod
    def _handle(kind: str, handle: str, known: Mapping[str, Any]) -> Any:
        if handle not in known:
            raise unknown_handle(kind, handle, known)
        return known[handle]

    def _require_image(self, what: str) -> Image:
        if self._image is None:
            raise EngineError(f"{what}: with debug.compute off no data exists", "leave the option debug.compute at True")
        return self._image

    # Running

    def run(self, index: int = 0) -> None:
        """Run one program to its end.

        Raises:
            EngineError: there is no such program.
            StreamError: a stream that it uses is not connected.
            VertexError: a codelet raised; the message says which vertex, tile, compute set, file and line.
            ProgramError: the program stopped itself.
            FindingsError: what the checks found, in a run that went on to its end.
            Whatever a stream callback raised, unchanged.
        """
        entries = self.executable.entries
        if index not in range(len(entries)):
            raise EngineError(f"run({index!r}): the engine has {len(entries)} programs", f"0 to {len(entries) - 1}")
        self._require_idle("run")
        began, self._running = time.perf_counter(), True
        try:
            if self._image is None:
                self._counts += walk_counts(self.executable, index)
            else:
                self._host.streams.require(dict.fromkeys(self.executable.streams_of[index]))
                self._go(self._image, int(entries[index]))
            self._runs += 1
            if (findings := self._collected()) is not None:
                raise findings
        except Exception as error:
            if not isinstance(error, FindingsError) and (findings := self._collected()) is not None:
                error.add_note(f"before that {findings.message}")
            if self._shuffle is not None:
                error.add_note(f"debug.schedule_seed was {self._shuffle.seed}; with it the order is the same again")
            raise
        finally:
            self._wall_seconds += time.perf_counter() - began
            self._running = False

    @property
    def findings(self) -> tuple[EngineError, ...]:
        """What checks found since loading in runs that went on after it, an error for each: see the option debug.check.collect."""
        self._take()
        return tuple(self._findings.all)

    def _take(self) -> None:
        """Make errors of what vertices left."""
        if self._image is None or self._image.tables is None:
            return
        executable = self._image.executable
        noted, lost = self._image.tables.take(executable)
        for each in noted:
            error = vertex_error(executable, each.phase, each.fault, self._build.checks, self._places, self._arena)
            if error.__dict__.get("code") == "out-of-bounds":
                error.__dict__["indices"] = (each.low, each.high)
            self._findings.add(error, each.times)
        self._findings.lost += lost

    def _collected(self) -> FindingsError | None:
        self._take()
        return self._findings.new()

    def _require_idle(self, what: str) -> None:
        if self._running:
            raise EngineError(
                f"{what}(): this engine is running already; a callback or another thread called", "wait until run() returns, or use a second engine"
            )

    def _go(self, image: Image, pc: int) -> None:
        image.reset()
        serve = self._serve if self.stepper is None else self.stepper.serve
        while True:
            outcome = image.run(pc)
            self._finish(outcome)
            if outcome.kind == "halt":
                return
            if outcome.kind == "diverged":
                raise self._parted(outcome.pc)
            if outcome.kind == "yield":
                serve(image, outcome.pc - 1, outcome.yield_index)
            pc = outcome.pc

    def perform(self, image: Image, instruction: int) -> None:
        """Do one instruction that the machine was stopped before: see ``stepping``."""
        if self.executable.code[instruction, 0] == Op.RUN:
            self._finish(image.run_phase(int(self.executable.code[instruction, 1])))
        else:
            self._serve(image, instruction, int(self.executable.code[instruction, 1]))

    def _serve(self, image: Image, instruction: int, request: int) -> None:
        """Do what a YIELD asks of the host."""
        wait = self._host.serve(request)
        self._waited[instruction, HOST] += cost.callback_cycles(self.executable.target, *wait)
        if self._host.behaviour != image.state.bits:
            image.behave(self._host.behaviour)

    def _parted(self, pc: int) -> ProgramError:
        """The error of replicas that disagree at the test of an instruction."""
        found = next(d for d in self.executable.decisions if d.instruction == pc)
        at = int(self.executable.code[pc, 1])
        values = self._arena.by_replica()[:, at : at + found.dtype.nbytes].view(found.dtype.numpy)
        return parted(found.where, values[:, 0].tolist(), found.ways)

    def _finish(self, outcome: Outcome) -> None:
        """Show what was printed, and raise what was raised."""
        if outcome.prints:
            target = self.executable.target
            stream = self._print_stream or sys.stderr
            for record in outcome.prints:
                ipu, tile = divmod(record.tile, target.tiles_per_ipu)
                stream.write(print_line(record.replica * target.num_ipus + ipu, tile, record.worker, print_text(self.executable, record, self._build.checks)))
            if outcome.prints_lost:
                stream.write(f"[popcore] {outcome.prints_lost:,} more prints of this step had no room\n")
        assert self._image is not None
        if outcome.crash is not None:
            raise crash_error(self._image.executable, outcome.crash)
        if outcome.fault is not None:
            raise vertex_error(self._image.executable, outcome.phase, outcome.fault, self._build.checks, self._places, self._arena)
        if outcome.error is not None:
            raise outcome.error

    # What is left

    def profile(self) -> Profile:
        """Modelled cycles of all runs so far, memory, bytes moved; wall time apart."""
        ran = Ran(self._counts, self._waited, self._counters.taken, self._counters.totals)
        return make_profile(self.executable, ran, self._runs, self._wall_seconds)

    def reset_profile(self) -> None:
        """Forget the runs so far; the tiles' memory stays."""
        self._counts[:] = 0
        self._waited[:] = 0
        self._counters.forget()
        self._runs, self._wall_seconds = 0, 0.0

    def _cycles_so_far(self) -> int:
        costs = self.executable.costs.cycles.sum(axis=1)
        return int((costs * self._counts + self._counters.taken).sum() + self._waited.sum())


def _build(options: Mapping[str, Any]) -> Build:
    check = str(options["debug.check"])
    return Build(check, bool(options["debug.check.collect"]) and check != "off", options["debug.schedule_seed"] != 0)


def _cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _without_fusion(executable: Executable) -> Executable:
    phases = executable.phases.copy()
    phases[:, Phase.FLAGS] &= ~PhaseFlag.FUSABLE
    return dataclasses.replace(executable, phases=phases)


def _executable(graph: Any, programs: Any, options: Mapping[str, Any] | None) -> Executable:
    if isinstance(graph, Executable):
        if programs is not None:
            raise GraphError("an Engine is given an Executable and programs, which the Executable already has", "Engine(executable, device=device)")
        return graph
    if not isinstance(graph, Graph) or programs is None:
        raise GraphError(f"an Engine is given {graph!r} and {programs!r}", "Engine(graph, program), Engine(graph, [program, ...]) or Engine(executable)")
    return compile_graph(graph, programs, options)
