"""Flatten programs into one list of instructions over steps.

Loops become slots and jumps, functions become subroutines. A program node that stands in several places gives
one step; a Sequence that does becomes a subroutine, so that sharing never multiplies code. Nothing here
recurses: programs nest to any depth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from popcore.compiler.code_builder import CodeBuilder
from popcore.compiler.ir import DEVICE_TO_HOST, HOST_TO_DEVICE, Code, ComputeStep, CopyStep
from popcore.compiler.passes import lower_replicas
from popcore.errors import ControlProgramError
from popcore.executable import Decision, Yield
from popcore.executable.executable import MODIFY, RESTORE
from popcore.executable.opcodes import Op
from popcore.graph import Graph, Tensor
from popcore.graph.regions import Regions
from popcore.program import checks, copies, nodes
from popcore.program.behaviour import ModifyFloatingPointBehaviour, RestoreFloatingPointBehaviour
from popcore.program.collectives import Collective
from popcore.program.parting import ways_of
from popcore.program.walk import body_of, children, streams_used, walk

OUTLINE = 8  # children a shared Sequence needs before it becomes a subroutine


def lower_programs(graph: Graph, programs: Sequence[nodes.Program], shadowed: bool = False) -> Code:
    """Flatten ``programs``, and add a step for every host read and write of the graph.

    Args:
        shadowed: Add what the full check needs: a look at what a branch tests, and the ends of variables at WriteUndef.

    Needs:  programs without cycles (``verify``).
    Gives:  code whose RUN operands are step numbers and whose predicates are elements, to be placed later.
    """
    lowering = _Lowering(graph, shadowed)
    lowering.shared = _shared_sequences(programs)
    for program in programs:
        lowering.entries.append(len(lowering.code))
        lowering.emit_all([program])
        lowering.add(Op.HALT)
    lowering.emit_subroutines()
    for name, tensor in graph.host_reads.items():
        lowering.reads[name] = lowering.host_step(tensor, DEVICE_TO_HOST, f"read {name!r}")
    for name, tensor in graph.host_writes.items():
        lowering.writes[name] = lowering.host_step(tensor, HOST_TO_DEVICE, f"write {name!r}")
    return lowering.finish(tuple(tuple(streams_used(p)) for p in programs))


def _shared_sequences(programs: Sequence[nodes.Program]) -> set[nodes.Program]:
    uses: dict[nodes.Program, int] = {}
    for program in walk(*programs):
        if isinstance(program, nodes.Call):
            continue
        for child in children(program):
            uses[child] = uses.get(child, 0) + 1
    return {p for p, count in uses.items() if count > 1 and isinstance(p, nodes.Sequence) and len(p) >= OUTLINE}


@dataclass
class _Lowering(CodeBuilder):
    """Programs on their way to code."""

    entries: list[int] = field(default_factory=list)
    switches: list[tuple[int, int]] = field(default_factory=list)
    predicates: list[tuple[int, int]] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    reads: dict[str, int] = field(default_factory=dict)
    writes: dict[str, int] = field(default_factory=dict)
    undefined: dict[int, tuple[int, ...]] = field(default_factory=dict)
    ended: list[Regions] = field(default_factory=list)
    loop_slots: int = 0
    shared: set[nodes.Program] = field(default_factory=set)
    subroutines: dict[nodes.Program, list[int]] = field(default_factory=dict)  # body: rows of the CALLs that wait for it
    emitted: dict[nodes.Program, int] = field(default_factory=dict)
    calls: dict[nodes.Program | None, set[nodes.Program]] = field(default_factory=dict)
    inside: nodes.Program | None = None

    def predicate(self, tensor: Tensor, program: nodes.Program) -> tuple[int, int]:
        """The row of ``predicates`` and the width of a scalar tensor, which the next instruction tests."""
        where = f"{program!r} by {checks.describe(tensor)}"
        regions = tensor.regions()
        self.predicates.append((int(regions.var[0]), int(regions.start[0])))
        if self.shadowed:
            self.add(Op.YIELD, self.yield_row(Yield("defined", index=len(self.predicates) - 1, title=where, dtype=tensor.dtype)), name="check")
        if self.graph.replication_factor > 1:
            self.decisions.append(Decision(len(self.code), where, tensor.dtype, ways_of(program)))
        return len(self.predicates) - 1, tensor.dtype.nbytes

    # Nodes

    def emit_all(self, programs: Sequence[nodes.Program]) -> None:
        """Emit programs in order; what a node does after its children is kept on the same stack."""
        stack: list[nodes.Program | Callable[[], None]] = list(reversed(programs))
        while stack:
            item = stack.pop()
            if not isinstance(item, nodes.Program):
                item()
            elif item in self.shared and item is not self.inside:
                self.call(item)
            else:
                stack.extend(reversed(self.emit(item)))

    def emit(self, program: nodes.Program) -> list[nodes.Program | Callable[[], None]]:
        match program:
            case nodes.Sequence():
                return list(program.programs)
            case nodes.Execute():
                cs = program.compute_set
                self.add(Op.RUN, self.step(("execute", cs.id), lambda: ComputeStep(cs, cs.name)), name=cs.name)
            case copies.Copy():
                self.copy(program)
            case nodes.Repeat():
                return self.repeat(program)
            case nodes.RepeatWhile():
                return self.repeat_while(program)
            case nodes.If():
                return self.branch(program)
            case nodes.Switch():
                return self.switch(program)
            case nodes.Call():
                self.call(body_of(program.function))
            case _:
                return self.emit_rare(program)
        return []

    def emit_rare(self, program: nodes.Program) -> list[nodes.Program | Callable[[], None]]:
        match program:
            case nodes.Sync():
                self.add(Op.NOP, name=f"sync {program.kind.value}")
            case nodes.WriteUndef():
                row = self.add(Op.NOP, name="write_undef")
                regions = program.tensor.regions()
                whole = regions.length == np.array([self.graph.variables[v].numel for v in regions.var.tolist()], np.int64)
                self.undefined[row] = tuple(regions.var[whole].tolist())
                if self.shadowed:
                    self.add(Op.YIELD, self.yield_row(Yield("undefine", index=len(self.ended))), name="write_undef")
                    self.ended.append(regions)
            case nodes.PrintTensor():
                self.show("print", program.title, program.tensor, str(program.site))
            case nodes.ErrorProgram():
                self.show("error", program.message, program.tensor, str(program.site))
            case nodes.Abort():
                self.show("error", program.message, None, str(program.site))
            case nodes.AbortOnCondition() if self.graph.replication_factor > 1:
                lower_replicas.compare(self, "error_if", program.predicate, program.message, str(program.site), "abort_on_condition")
            case nodes.AbortOnCondition():
                row, width = self.predicate(program.predicate, program)
                skip = self.add(Op.BRANCH, row, width)
                self.show("error", program.message, None, str(program.site))
                self.patch(skip, 3, len(self.code))
            case Collective():
                lower_replicas.collective(self, program)
            case nodes.AssumeEqualAcrossReplicas():
                if self.graph.replication_factor > 1:  # one replica always agrees with itself
                    lower_replicas.assume_equal(self, program)
            case nodes.CrossReplicaCopy() if self.graph.replication_factor > 1:
                lower_replicas.cross_copy(self, program)
            case nodes.CrossReplicaCopy():
                self.add(Op.RUN, self.step(program, lambda: CopyStep(program.src.regions(), program.dst.regions(), program.name or "cross_replica_copy")))
            case ModifyFloatingPointBehaviour():
                self.modify_behaviour(program)
            case RestoreFloatingPointBehaviour():
                self.add(Op.RUN, self.host_step(program.state, DEVICE_TO_HOST, RESTORE), name=RESTORE)
                request = Yield(RESTORE, dtype=program.state.dtype, shape=program.state.shape, site=str(program.site))
                self.add(Op.YIELD, self.yield_row(request), name=RESTORE)
            case nodes.CycleCount():
                return self.cycle_count(program)
            case _:
                raise ControlProgramError(f"{program!r} is no program that can be compiled", "use the classes of popcore.program")
        return []

    def show(self, kind: str, title: str, tensor: Tensor | None, site: str) -> None:
        if tensor is not None:
            self.add(Op.RUN, self.host_step(tensor, DEVICE_TO_HOST, kind), name=kind)
        shown = (tensor.dtype, tensor.shape) if tensor is not None else (None, ())
        self.add(Op.YIELD, self.yield_row(Yield(kind, title=title, dtype=shown[0], shape=shown[1], site=site)), name=kind)

    def cycle_count(self, program: nodes.CycleCount) -> list[nodes.Program | Callable[[], None]]:
        counter = program.counter
        index = len(self.yields)
        begin = self.yield_row(Yield("cycles_begin", index=index, site=str(program.site)))

        def after() -> None:
            self.add(Op.YIELD, self.yield_row(Yield("cycles_end", index=begin, dtype=counter.dtype, shape=counter.shape)), name="cycle_count")
            self.add(Op.RUN, self.host_step(counter, HOST_TO_DEVICE, "cycle_count"), name="cycle_count")

        self.add(Op.YIELD, begin, name="cycle_count")
        return [program.body, after]

    def modify_behaviour(self, program: ModifyFloatingPointBehaviour) -> None:
        before = program.before
        told = (before.dtype, before.shape) if before is not None else (None, ())
        request = Yield(MODIFY, clear=program.clear, set=program.set_, dtype=told[0], shape=told[1])
        self.add(Op.YIELD, self.yield_row(request), name=MODIFY)
        if before is not None:
            self.add(Op.RUN, self.host_step(before, HOST_TO_DEVICE, MODIFY), name=MODIFY)

    def copy(self, program: copies.Copy) -> None:
        if program.kind == "tensor":
            name = program.name or "copy"
            source, target = program.source, program.target
            key = ("copy", id(source), id(target), name)
            self.add(Op.RUN, self.step(key, lambda: CopyStep(source.regions(), target.regions(), name)), name=name)
        elif program.kind.startswith("stream"):
            self.stream_copy(program)
        else:
            self.remote_copy(program)

    def stream_copy(self, program: copies.Copy) -> None:
        stream = program.stream
        index = list(self.graph.streams).index(stream.name)
        name = program.name or stream.name
        if program.kind == "stream_in":
            request = Yield("stream_in", index=index, dtype=stream.dtype, shape=(stream.elements,))
            self.add(Op.YIELD, self.yield_row(request), name=name)
            self.add(Op.RUN, self.host_step(program.target, HOST_TO_DEVICE, f"stream {stream.name!r}"), name=name)
        else:
            self.add(Op.RUN, self.host_step(program.source, DEVICE_TO_HOST, f"stream {stream.name!r}"), name=name)
            self.add(Op.YIELD, self.yield_row(Yield("stream_out", index=index, dtype=stream.dtype, shape=(stream.elements,))), name=name)

    def remote_copy(self, program: copies.Copy) -> None:
        remote = program.remote
        index = list(self.graph.remotes).index(remote.name)
        name = program.name or remote.name
        tensor = program.target if program.kind == "remote_in" else program.source
        data = tensor.num_elements * tensor.dtype.nbytes
        rows: dict[str, object] = {}
        if isinstance(program.rows, Tensor):
            rows_at = -(-data // 8) * 8
            rows = {"rows_at": rows_at, "rows_dtype": program.rows.dtype, "shape": (program.rows.num_elements, remote.elements)}
            self.add(Op.RUN, self.host_step(program.rows, DEVICE_TO_HOST, f"rows of {remote.name!r}", rows_at), name=name)
        else:
            rows = {"rows": program.rows, "shape": (len(program.rows), remote.elements)}
        request = Yield(program.kind, index=index, title=name, dtype=remote.dtype, **rows)  # type: ignore[arg-type]  # fields of Yield
        if program.kind == "remote_in":
            self.add(Op.YIELD, self.yield_row(request), name=name)
            self.add(Op.RUN, self.host_step(tensor, HOST_TO_DEVICE, f"remote {remote.name!r}"), name=name)
        else:
            self.add(Op.RUN, self.host_step(tensor, DEVICE_TO_HOST, f"remote {remote.name!r}"), name=name)
            self.add(Op.YIELD, self.yield_row(request), name=name)

    # Control

    def repeat(self, program: nodes.Repeat) -> list[nodes.Program | Callable[[], None]]:
        slot, self.loop_slots = self.loop_slots, self.loop_slots + 1
        head = self.add(Op.REPEAT, slot, program.count)

        def end() -> None:
            self.add(Op.END, slot, head + 1)
            self.patch(head, 3, len(self.code))

        return [program.body, end]

    def repeat_while(self, program: nodes.RepeatWhile) -> list[nodes.Program | Callable[[], None]]:
        begin = len(self.code)
        leave: list[int] = []

        def test() -> None:
            row, width = self.predicate(program.predicate, program)
            branch = self.add(Op.BRANCH, row, width)
            if program.wanted:
                leave.append(branch)
            else:  # a zero predicate goes on past the jump that leaves
                out = self.add(Op.JUMP)
                self.patch(branch, 3, len(self.code))
                leave.append(out)

        def end() -> None:
            self.add(Op.JUMP, begin)
            self.patch(leave[0], 3 if program.wanted else 1, len(self.code))

        return [program.condition, test, program.body, end]

    def branch(self, program: nodes.If) -> list[nodes.Program | Callable[[], None]]:
        row, width = self.predicate(program.predicate, program)
        test = self.add(Op.BRANCH, row, width)
        leave: list[int] = []

        def otherwise() -> None:
            leave.append(self.add(Op.JUMP))
            self.patch(test, 3, len(self.code))

        return [program.then, otherwise, program.otherwise, lambda: self.patch(leave[0], 1, len(self.code))]

    def switch(self, program: nodes.Switch) -> list[nodes.Program | Callable[[], None]]:
        row, width = self.predicate(program.control, program)
        signed = program.control.dtype.kind == "int"
        table = len(self.switches)
        self.switches.extend([(len(program.cases), -1), *((value, -1) for value, _ in program.cases)])
        self.add(Op.SWITCH, row, -width if signed else width, table)
        leave: list[int] = []

        def begin(entry: int) -> Callable[[], None]:
            return lambda: self.switches.__setitem__(entry, (self.switches[entry][0], len(self.code)))

        def end() -> None:
            leave.append(self.add(Op.JUMP))

        def finish() -> None:
            for jump in leave:
                self.patch(jump, 1, len(self.code))

        todo: list[nodes.Program | Callable[[], None]] = []
        for number, (_, body) in enumerate(program.cases):
            todo += [begin(table + 1 + number), body, end]
        return [*todo, begin(table), program.default, finish]

    # Subroutines

    def call(self, body: nodes.Program) -> None:
        self.calls.setdefault(self.inside, set()).add(body)
        row = self.add(Op.CALL, self.emitted.get(body, 0))
        if body not in self.emitted:
            self.subroutines.setdefault(body, []).append(row)

    def emit_subroutines(self) -> None:
        while self.subroutines:
            body = next(iter(self.subroutines))
            self.inside = body
            self.emitted[body] = len(self.code)
            for row in self.subroutines.pop(body):
                self.patch(row, 1, self.emitted[body])
            self.emit_all([body])
            self.add(Op.RETURN)
        self.inside = None

    def call_depth(self) -> int:
        """The deepest nest of calls; bodies were emitted callers first."""
        depth: dict[nodes.Program | None, int] = {}
        order: list[nodes.Program | None] = []
        seen: set[nodes.Program | None] = set()
        stack: list[tuple[nodes.Program | None, bool]] = [(None, False)]
        while stack:
            body, done = stack.pop()
            if done:
                order.append(body)
            elif body not in seen:
                seen.add(body)
                stack.append((body, True))
                stack.extend((c, False) for c in self.calls.get(body, ()))
        for body in order:
            depth[body] = max((1 + depth[c] for c in self.calls.get(body, ())), default=0)
        return depth[None]

    def finish(self, streams_of: tuple[tuple[str, ...], ...]) -> Code:
        return Code(
            instructions=np.array(self.code, np.int64).reshape(-1, 4),
            labels=tuple(self.labels),
            label=np.array(self.label, np.int32),
            entries=np.array(self.entries, np.int64),
            switches=np.array(self.switches, np.int64).reshape(-1, 2),
            loop_slots=self.loop_slots,
            call_depth=self.call_depth(),
            steps=tuple(self.steps),
            predicates=np.array(self.predicates, np.int64).reshape(-1, 2),
            yields=tuple(self.yields),
            collectives=tuple(self.collectives),
            decisions=tuple(self.decisions),
            streams_of=streams_of,
            reads=self.reads,
            writes=self.writes,
            undefined=self.undefined,
            ended=tuple(self.ended),
        )
