"""Makes faults happen: looks each up in the program of an engine, waits for its step, and does to the run what it is to do."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from popcore.compiler.links import busiest_seconds
from popcore.engine.engine import Engine
from popcore.engine.stepping import Parts, Step, stepped
from popcore.errors import CompileError, EngineError, HostTimeoutError, IpuLostError, LinkDownError, TileLostError, TransferError
from popcore.executable import KINDS, Executable
from popcore.faults.kinds import BitFlip, CallbackFails, CallbackLate, DeadTile, Fault, IpuLost, LinkDown, LinkSlow, TruncatedTransfer
from popcore.faults.memory import Memory
from popcore.program.streams import unknown_handle
from popcore.target import Target
from popcore.topology import LINK_KINDS, Link, route

HOST, EXCHANGE = KINDS.index("host"), KINDS.index("exchange")
BETWEEN_IPUS = ("rung", "cross", "rail")


class Injection:
    """The faults of one engine.

    Attributes:
        happened: What has, in order, a line each.
        pending: Faults whose step or transfer has not come yet.
    """

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.pending: list[Fault] = list(faults)
        self.happened: list[str] = []
        self._lasting: list[DeadTile | IpuLost | LinkDown | LinkSlow] = []
        self._transfers: Counter[str] = Counter()

    def install(self, parts: Parts) -> Injection:
        """For an engine. Raises: UnknownNameError, EngineError: there is no such thing as a fault is about."""
        self._parts = parts
        for fault in self.pending:
            _check(fault, parts.executable)
        self._memory = Memory(parts, self.happened)
        self._links = _links(parts.executable)
        return self

    def withdraw(self) -> None:
        """The machine is whole again."""
        self._memory.withdraw()

    def transfer(self, phase: int, what: str) -> None:
        """See ``stepping.Watcher``."""
        self._memory.transfer(phase, what)

    def before(self, step: Step) -> None:
        """See ``stepping.Watcher``."""
        for fault in [f for f in self.pending if not isinstance(f, CallbackFails | CallbackLate | TruncatedTransfer) and _is_due(f, step)]:
            self.pending.remove(fault)
            if isinstance(fault, BitFlip):
                self._memory.flip(fault, step)
            else:
                self._lasting.append(fault)
                self.happened.append(f"{step}: {fault}")
        self._memory.before(step)
        for fault in self._lasting:
            _LASTING[type(fault)](self, fault, step)
        if step.request is not None and step.request.kind.startswith(("stream", "remote")):
            self._host(step)

    def _host(self, step: Step) -> None:
        """Faults of a transfer that the host is about to do."""
        assert step.request is not None
        executable, host = self._parts.executable, self._parts.host
        streams = step.request.kind.startswith("stream")
        name = (executable.streams if streams else executable.remotes)[step.request.index].name
        key = f"{'stream' if streams else 'remote buffer'} {name!r}"
        number = self._transfers[key]
        self._transfers[key] += 1
        for fault in list(self.pending):
            match fault:
                case CallbackFails(stream=stream, transfer=at) if streams and (stream, at) == (name, number):
                    self._now(fault, step)
                    error = fault.error or RuntimeError(f"the callback of stream {name!r} failed")
                    error.add_note(f"transfer {number} of stream {name!r} in {step}")
                    raise error
                case CallbackLate(stream=stream, transfer=at) if streams and (stream, at) == (name, number):
                    self._now(fault, step)
                    self._late(fault, step)
                case TruncatedTransfer(remote=remote, transfer=at) if not streams and (remote, at) == (name, number):
                    self._now(fault, step)
                    host.move_rows(step.request, fault.elements)
                    whole, way = math.prod(step.request.shape), "from" if step.request.kind == "remote_in" else "to"
                    raise TransferError(
                        f"transfer {number} {way} remote buffer {name!r} in {step}: {fault.elements:,} of {whole:,} elements arrived",
                        remote=name, elements=fault.elements, step=step.number,
                    )  # fmt: skip

    def _now(self, fault: Fault, step: Step) -> None:
        self.pending.remove(fault)
        self.happened.append(f"{step}: {fault}")

    def _late(self, fault: CallbackLate, step: Step) -> None:
        limit = float(self._parts.options["target.hostSyncTimeout"])
        if fault.seconds > limit:
            raise HostTimeoutError(
                f"the host did not answer within {limit:g} s at transfer {fault.transfer} of stream {fault.stream!r} in {step}",
                stream=fault.stream,
                step=step.number,
            )
        self._parts.waited[step.instruction, HOST] += math.ceil(fault.seconds * self._parts.executable.target.clock_hz)

    def _tile(self, fault: DeadTile, step: Step) -> None:
        if step.phase < 0 and step.request is not None and step.request.kind not in ("collective", "cross_copy", "equal", "error_if"):
            return  # the host's alone
        target = self._parts.executable.target
        ipu, within = divmod(fault.tile, target.tiles_per_ipu)
        of = f" of replica {fault.replica}" if self._parts.executable.replicas > 1 else ""
        raise TileLostError(
            f"tile {fault.tile} (tile {within} of IPU {fault.replica * target.num_ipus + ipu}){of} did not come to the barrier before {step}",
            tile=fault.tile, replica=fault.replica, step=step.number,
        )  # fmt: skip

    def _ipu(self, fault: IpuLost, step: Step) -> None:
        executable = self._parts.executable
        replica = fault.ipu // executable.target.num_ipus
        where = f"IPU {fault.ipu} (replica {replica})" if executable.replicas > 1 else f"IPU {fault.ipu}"
        if step.request is not None and step.request.kind == "collective":
            call = executable.collectives[step.request.index]
            done = min(fault.ring_steps, call.steps)
            what = f"{where} was lost in the {call.kind.replace('_', '-')} {call.name!r} of {call.group_size} replicas, {step}: after {done} of {call.steps} steps of the ring"
            raise IpuLostError(what, ipu=fault.ipu, step=step.number, collective=call.name)
        if step.phase >= 0 or (step.request is not None and step.request.kind in ("cross_copy", "equal", "error_if")):
            raise IpuLostError(f"{where} did not come to the barrier before {step}", ipu=fault.ipu, step=step.number, collective="")

    def _down(self, fault: LinkDown, step: Step) -> None:
        for link, nbytes in self._links.get(step.instruction, {}).items():
            if {link.source, link.target} == {fault.one, fault.other}:
                raise LinkDownError(
                    f"the IPU-Links from IPU {link.source} to IPU {link.target} carry nothing, and {step} sends {nbytes:,} B over them",
                    source=link.source, target=link.target, step=step.number,
                )  # fmt: skip

    def _slow(self, fault: LinkSlow, step: Step) -> None:
        loads = self._links.get(step.instruction, {})
        slowed = {link: nbytes * (fault.factor if {link.source, link.target} == {fault.one, fault.other} else 1) for link, nbytes in loads.items()}
        whole = _whole(self._parts.executable)
        seconds = busiest_seconds(whole, slowed) - busiest_seconds(whole, loads)
        self._parts.waited[step.instruction, EXCHANGE] += math.ceil(seconds * whole.clock_hz)


_LASTING: dict[type, Callable[[Injection, Any, Step], None]] = {
    DeadTile: Injection._tile,
    IpuLost: Injection._ipu,
    LinkDown: Injection._down,
    LinkSlow: Injection._slow,
}


@contextmanager
def inject(engine: Engine, faults: Sequence[Fault]) -> Iterator[Injection]:
    """Inside, the engine's machine has these faults; afterwards it is whole again, but for bits that flipped without parity.

    Steps, executions and transfers are counted from here on, over all runs inside.

    Raises: UnknownNameError, EngineError: the program or machine has no such thing as a fault is about; the engine is running.
    """
    injection = Injection(faults)
    with stepped(engine, injection.install):
        try:
            yield injection
        finally:
            injection.withdraw()


def _is_due(fault: BitFlip | DeadTile | IpuLost | LinkDown | LinkSlow, step: Step) -> bool:
    if not step.begins:
        return False
    return step.number == fault.at if isinstance(fault.at, int) else (step.name, step.execution) == (fault.at, fault.execution)


def _whole(executable: Executable) -> Target:
    return executable.target.with_ipus(executable.target.num_ipus * executable.replicas)


def _links(executable: Executable) -> dict[int, dict[Link, int]]:
    """The bundles between IPUs that each instruction sends over, numbered over all replicas, and how many bytes."""
    found: dict[int, dict[Link, int]] = {}
    for instruction, kind, source, target, nbytes, shared in executable.costs.links.tolist():
        if LINK_KINDS[kind] in BETWEEN_IPUS:
            for replica in range(1 if shared else executable.replicas):
                first = replica * executable.target.num_ipus
                link = Link(LINK_KINDS[kind], source + first, target + first)
                loads = found.setdefault(instruction, {})
                loads[link] = loads.get(link, 0) + nbytes
    return found


def _check(fault: Fault, executable: Executable) -> None:
    """Raises for what the program or the machine does not have."""
    at = getattr(fault, "at", 0)
    if isinstance(at, str) and at not in executable.costs.labels:
        raise unknown_handle("step", at, dict.fromkeys(executable.costs.labels))
    for name in ("execution", "transfer", "ring_steps"):
        _within(fault, name, getattr(fault, name, 0), 1 << 62)
    _within(fault, "at", 0 if isinstance(at, str) else at, 1 << 62)
    _within(fault, "replica", getattr(fault, "replica", 0), executable.replicas)
    match fault:
        case BitFlip():
            handle = _named("host read or write", fault.tensor, (*executable.reads, *executable.writes))
            _within(fault, "element", fault.element, math.prod(handle.shape))
            _within(fault, "bit", fault.bit, 8 * handle.dtype.nbytes)
        case DeadTile():
            _within(fault, "tile", fault.tile, executable.target.num_tiles)
        case IpuLost():
            _within(fault, "ipu", fault.ipu, _whole(executable).num_ipus)
        case LinkDown() | LinkSlow():
            _check_neighbours(fault, _whole(executable))
        case CallbackFails() | CallbackLate():
            _named("stream", fault.stream, executable.streams)
        case TruncatedTransfer():
            _named("remote buffer", fault.remote, executable.remotes)
            sizes = [math.prod(y.shape) for y in executable.yields if y.kind.startswith("remote") and executable.remotes[y.index].name == fault.remote]
            _within(fault, "elements", fault.elements, min(sizes, default=1))
    for name, least in (("factor", 1.0), ("seconds", 0.0)):
        value = getattr(fault, name, least)
        if not (np.isfinite(value) and value >= least):
            raise EngineError(f"{fault}: {name} is {value!r}", f"a number from {least:g}")


def _check_neighbours(fault: LinkDown | LinkSlow, whole: Target) -> None:
    for name, ipu in (("one", fault.one), ("other", fault.other)):
        _within(fault, name, ipu, whole.num_ipus)
    near = [ipu for ipu in range(whole.num_ipus) if _joined(whole, fault.one, ipu)]
    if fault.other not in near:
        raise EngineError(
            f"{fault}: no IPU-Link joins IPU {fault.one} and IPU {fault.other}", f"neighbours of {fault.one}: {', '.join(map(str, near)) or 'none'}"
        )


def _joined(whole: Target, one: int, other: int) -> bool:
    try:
        links = route(whole, one, other)
    except CompileError:
        return False
    return len(links) == 1 and links[0].kind in BETWEEN_IPUS


def _named(kind: str, name: str, known: Sequence[Any]) -> Any:
    found = next((each for each in known if each.name == name), None)
    if found is None:
        raise unknown_handle(kind, name, {each.name: each for each in known})
    return found


def _within(fault: Fault, name: str, value: int, count: int) -> None:
    if value not in range(count):
        raise EngineError(f"{fault}: {name} is {value!r}", f"0 to {count - 1:,}")
