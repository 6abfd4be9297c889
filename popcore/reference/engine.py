"""ReferenceEngine: takes a graph and programs and does, step by step, what they say."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TextIO

import numpy as np

from popcore.errors import ControlProgramError, EngineError
from popcore.graph import Graph, Tensor
from popcore.program import checks
from popcore.program.behaviour import ModifyFloatingPointBehaviour, RestoreFloatingPointBehaviour
from popcore.program.collectives import Collective
from popcore.program.copies import Copy
from popcore.program.nodes import (
    Abort,
    AbortOnCondition,
    AssumeEqualAcrossReplicas,
    Call,
    CrossReplicaCopy,
    CycleCount,
    ErrorProgram,
    Execute,
    If,
    PrintTensor,
    Program,
    Repeat,
    RepeatWhile,
    Sequence,
    Switch,
    Sync,
    WriteUndef,
)
from popcore.program.parting import ways_of
from popcore.program.printing import behaviour_of, parted, print_tensor, stopped, unequal
from popcore.program.streams import Endpoint, HostStreams, RemoteRows, as_host_array, unknown_handle
from popcore.program.walk import body_of, check_acyclic, streams_used, walk
from popcore.reference.machine import Machine
from popcore.reference.memory import Memory
from popcore.reference.rings import Around, exchange_rows
from popcore.reference.vertices import BoundComputeSet, runners_of
from popcore.types import Array


class ReferenceEngine:
    """Runs programs on a graph in NumPy, one step after the other. Its public methods are those of ``Engine``.

    There is no time, no tile memory and no limit of it, and an element needs no tile. The graph may be edited
    after; what was built until now is what runs.

    Args:
        programs: One program, or several that ``run`` takes by index.
        device: Ignored.
        options: Only ``exchange.enablePrefetch``, ``exchange.prefetchDepth``, ``target.floatingPoint`` and ``prng.seed`` have a meaning here.

    Raises:
        ControlProgramError: a program contains itself.
        GraphConnectionError: a field of a vertex is not connected.
        RaceError: two vertices of a compute set meet in an element, and one of them writes it.
    """

    def __init__(self, graph: Graph, programs: Program | Iterable[Program], device: Any = None, options: Mapping[str, Any] | None = None) -> None:
        self._programs = [programs] if isinstance(programs, Program) else list(programs)
        for program in self._programs:
            if not isinstance(program, Program):
                raise ControlProgramError(f"an engine is given {program!r}, not a program", "ReferenceEngine(graph, program) or (graph, [program, ...])")
        check_acyclic(*self._programs)
        graph = graph.variables.graph  # of a virtual graph, the one that it is a part of
        graph.finalise()
        self._replicas = graph.replication_factor
        self._memory = Memory(graph, self._replicas)
        nodes = list(walk(*self._programs))
        # What may still be added to is taken as it is now.
        self._sequences = {n: tuple(n.programs) for n in nodes if isinstance(n, Sequence)}
        self._switches = {n: dict(n.cases) for n in nodes if isinstance(n, Switch)}
        per_ipu = graph.target.tiles_per_ipu
        used = {n.compute_set.id: n.compute_set for n in nodes if isinstance(n, Execute)}
        self._runners = runners_of(codelet for each in used.values() for codelet in each.groups)
        ipus = graph.target.num_ipus
        self._compute_sets = {number: BoundComputeSet(each, per_ipu, ipus, self._runners) for number, each in used.items()}
        self._streams_used = [streams_used(p) for p in self._programs]
        defaults = {"exchange.enablePrefetch": True, "exchange.prefetchDepth": 1, "target.floatingPoint": "device", "prng.seed": 1}
        wanted = {**defaults, **(options or {})}
        self._machine = Machine(wanted["target.floatingPoint"] == "ieee", int(wanted["prng.seed"]))
        self._streams = HostStreams(graph.streams, self._replicas, int(wanted["exchange.prefetchDepth"]) if wanted["exchange.enablePrefetch"] else 0)
        self._remotes = {name: RemoteRows(remote, self._replicas) for name, remote in graph.remotes.items()}
        self._reads, self._writes = dict(graph.host_reads), dict(graph.host_writes)
        self._print_stream: TextIO | None = None
        self._print_tensor_stream: TextIO | None = None

    # What the host does

    def load(self, device: Any = None) -> None:
        """Start over: initial values, remote buffers zero, nothing prefetched."""
        self._memory.load()
        self._machine.restart()
        for runner in self._runners.values():
            runner.restart()
        self._streams.invalidate()
        for rows in self._remotes.values():
            rows.clear()

    def connect_stream(self, handle: str, endpoint: Endpoint, replica: int | None = None) -> None:
        """See ``HostStreams.connect``."""
        self._streams.connect(handle, endpoint, replica)

    def write_tensor(self, handle: str, values: Any) -> None:
        """Write a tensor that ``graph.create_host_write`` named. See ``as_host_array`` for what fits."""
        tensor = self._named("host write", handle, self._writes)
        self._memory.write_tensor(tensor, as_host_array(f"host write {handle!r}", tensor.dtype, tensor.shape, values, self._replicas))

    def read_tensor(self, handle: str) -> Array:
        """A tensor that ``graph.create_host_read`` named; with a leading dimension of replicas where the graph has them."""
        values = self._memory.read_tensor(self._named("host read", handle, self._reads))
        return values if self._replicas > 1 else values[0, ...]

    def copy_to_remote_buffer(self, values: Any, handle: str, row: int = 0, replica: int | None = None) -> None:
        """Write one row of a remote buffer, on one replica or on all."""
        rows = self._named("remote buffer", handle, self._remotes)
        flat = np.ravel(values) if isinstance(values, np.ndarray) else values
        array = as_host_array(f"a row of remote buffer {handle!r}", rows.remote.dtype, (rows.remote.elements,), flat)[0]
        for each in range(self._replicas) if replica is None else (rows.check_replica(replica),):
            rows.write(each, np.array([row]), array)

    def copy_from_remote_buffer(self, handle: str, row: int = 0, replica: int = 0) -> Array:
        """A copy of one row of a remote buffer."""
        rows = self._named("remote buffer", handle, self._remotes)
        read: Array = rows.read(rows.check_replica(replica), np.array([row]))
        return read

    def set_print_stream(self, stream: TextIO) -> None:
        """Where prints of codelets go; ``sys.stderr`` if not called."""
        self._print_stream = stream

    def set_print_tensor_stream(self, stream: TextIO) -> None:
        """Where PrintTensor prints; ``sys.stderr`` if not called."""
        self._print_tensor_stream = stream

    @staticmethod
    def _named(kind: str, handle: str, known: Mapping[str, Any]) -> Any:
        if handle not in known:
            raise unknown_handle(kind, handle, known)
        return known[handle]

    # Running

    def run(self, index: int = 0) -> None:
        """Run one program to its end. The memory keeps what it left.

        Raises:
            EngineError: there is no such program.
            StreamError: a stream that it uses is not connected.
            VertexError: a codelet raised.
            ProgramError: the program stopped itself, or replicas would part ways.
        """
        if index not in range(len(self._programs)):
            raise EngineError(f"run({index!r}): the engine has {len(self._programs)} programs", f"0 to {len(self._programs) - 1}")
        self._streams.require(self._streams_used[index])
        stack: list[Iterator[Program]] = [iter((self._programs[index],))]
        while stack:
            program = next(stack[-1], None)
            if program is None:
                stack.pop()
            elif (inside := self._inside(program)) is not None:
                stack.append(inside)
            else:
                self._do(program)

    def _inside(self, program: Program) -> Iterator[Program] | None:
        """The programs that ``program`` runs, each asked for when the one before is done; None for a leaf."""
        match program:
            case Sequence():
                return iter(self._sequences[program])
            case Repeat():
                return (program.body for _ in range(program.count))
            case RepeatWhile():
                return self._rounds(program)
            case If():
                return iter((program.then if self._truth(program.predicate, program) else program.otherwise,))
            case Switch():
                return iter((self._switches[program].get(self._agreed(program.control, program), program.default),))
            case Call():
                return iter((body_of(program.function),))
            case CycleCount():
                return self._counted(program)
        return None

    def _rounds(self, loop: RepeatWhile) -> Iterator[Program]:
        while True:
            yield loop.condition
            if self._truth(loop.predicate, loop) is not loop.wanted:
                return
            yield loop.body

    def _counted(self, program: CycleCount) -> Iterator[Program]:
        yield program.body
        self._memory.write_tensor(program.counter, np.zeros((self._replicas, 2), np.uint32))  # no clock here

    def _agreed(self, scalar: Tensor, program: Program) -> int:
        """The value of a scalar that decides where the program goes: the same on every replica."""
        values = self._memory.read_tensor(scalar).tolist()
        if any(value != values[0] for value in values):
            raise parted(f"{program!r} by {checks.describe(scalar)}", values, ways_of(program))
        return int(values[0])

    def _truth(self, predicate: Tensor, program: Program) -> bool:
        return self._agreed(predicate, program) != 0

    def _do(self, program: Program) -> None:
        match program:
            case Execute():
                self._execute(program)
            case Copy():
                self._copy(program)
            case Collective():
                self._memory.write_tensor(program.dst, self._collective(program))
            case CrossReplicaCopy():
                values = self._memory.read_tensor(program.src)
                self._memory.write_tensor(program.dst, values[list(program.senders)])
            case PrintTensor():
                values = self._memory.read_tensor(program.tensor)
                for replica, each in enumerate(values):
                    (self._print_tensor_stream or sys.stderr).write(print_tensor(program.title, each, replica if self._replicas > 1 else None))
            case ErrorProgram():
                shown = None if program.tensor is None else self._memory.read_tensor(program.tensor)[0]
                raise stopped(program.message, str(program.site), shown)
            case Abort():
                raise stopped(program.message, str(program.site))
            case AbortOnCondition():
                if self._memory.read_tensor(program.predicate).any():
                    raise stopped(program.message, str(program.site))
            case AssumeEqualAcrossReplicas():
                values = self._memory.read_tensor(program.tensor)
                if (error := unequal(f"{program!r}: in {checks.describe(program.tensor)} differ", list(values))) is not None:
                    raise error
            case ModifyFloatingPointBehaviour():
                if program.before is not None:
                    self._memory.write_tensor(program.before, np.full((self._replicas, *program.before.shape), self._machine.bits, np.uint32))
                self._machine.bits = self._machine.bits & ~program.clear | program.set_
            case RestoreFloatingPointBehaviour():
                self._machine.bits = behaviour_of(self._memory.read_tensor(program.state), str(program.site))
            case Sync() | WriteUndef():
                pass  # no data changes; what WriteUndef leaves is undefined, so anything may stay
            case _:
                raise ControlProgramError(f"{program!r} is of a kind that no engine runs", "use the programs of popcore.program")

    def _collective(self, program: Collective) -> Array:
        """What every replica gets, [replicas, elements]."""
        values = self._memory.read_tensor(program.src).reshape((self._replicas, -1))
        result = np.zeros((self._replicas, program.dst.num_elements), values.dtype)
        around = Around(*program.rings(), program.method, program.operator, program.partials, program.root)
        for members in program.members():
            with self._machine.computing():
                rows = exchange_rows(program.kind, [values[m] for m in members], around)
            for member, row in zip(members, rows, strict=True):
                result[member, : row.size] = row
        return result

    def _execute(self, program: Execute) -> None:
        prints: list[str] = []
        try:
            self._compute_sets[program.compute_set.id].execute(self._memory, self._machine, prints)
        finally:
            if prints:
                (self._print_stream or sys.stderr).write("".join(prints))

    def _copy(self, copy: Copy) -> None:
        memory = self._memory
        match copy.kind:
            case "tensor":
                memory.write_tensor(copy.target, memory.read_tensor(copy.source))
            case "stream_in":
                values = np.empty((self._replicas, copy.stream.elements), copy.stream.dtype.numpy)
                self._streams.fill_all(copy.stream.name, values)
                memory.write_tensor(copy.target, values)
            case "stream_out":
                values = memory.read_tensor(copy.source).reshape((self._replicas, copy.stream.elements))
                self._streams.take_all(copy.stream.name, values)
            case "remote_in":
                rows = self._remotes[copy.remote.name]
                memory.write_tensor(copy.target, np.stack([rows.read(r, self._rows(copy, r)) for r in range(self._replicas)]))
            case "remote_out":
                rows, values = self._remotes[copy.remote.name], memory.read_tensor(copy.source)
                for replica in range(self._replicas):
                    rows.write(replica, self._rows(copy, replica), values[replica])

    def _rows(self, copy: Copy, replica: int) -> Array:
        """Which rows of its remote buffer a copy moves."""
        if isinstance(copy.rows, Tensor):
            rows: Array = self._memory.read_tensor(copy.rows)[replica].reshape(-1)
            return rows
        return np.array(copy.rows, np.int64)
