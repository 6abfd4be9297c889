"""Programs: what a device does step by step, as values that a user builds and an engine runs.

A program is built from the leaves up. Every node checks its arguments at the call and keeps the
user's line. Nodes do not change once made, except that ``Sequence.add`` and ``Switch.add`` append;
they compare and hash by identity, and one node may stand in several places.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from collections.abc import Sequence as Items
from dataclasses import dataclass
from typing import Any

from popcore.debug import Site, user_site
from popcore.errors import ControlProgramError, GraphError, ValueRangeError
from popcore.graph import ComputeSet, Function, Graph, Tensor
from popcore.program import checks
from popcore.types import UNSIGNED_INT


class SyncType(enum.Enum):
    """Who waits for whom."""

    INTERNAL = "internal"  # the tiles of each IPU
    EXTERNAL = "external"  # the IPUs of a replica
    GLOBAL = "global"  # all IPUs and the host


class Program:
    """Base of all programs."""

    __slots__ = ()
    name: str  # shown in profiles and errors; "" if the user gave none
    site: Site  # the user's line

    def __repr__(self) -> str:
        return f"<{type(self).__name__}{f' {self.name!r}' if self.name else ''} made at {self.site}>"


# Hand-written constructors: those that a dataclass generates stand between popcore and the user's frame.
node = dataclass(init=False, eq=False, repr=False, slots=True)


def _require_program(what: str, value: Any, site: Site) -> Program:
    if not isinstance(value, Program):
        raise ControlProgramError(f"{what} ({site}) is {value!r}, not a program", "pass a Sequence, Execute, Copy, ...; a compute set needs Execute(cs)")
    return value


@node
class Sequence(Program):
    """Programs one after another: ``Sequence(a, b)``, ``Sequence([a, b])``, ``Sequence()``."""

    programs: list[Program]
    name: str
    site: Site

    def __init__(self, *programs: Program | Iterable[Program], name: str = "") -> None:
        self.name, self.site = name, user_site()
        given: Iterable[Any] = programs
        if len(programs) == 1 and isinstance(programs[0], Iterable):
            given = programs[0]
        self.programs = [_require_program("an item of a Sequence", p, self.site) for p in given]

    def add(self, program: Program) -> None:
        """Append ``program`` itself, not a copy of it: what is added to it later runs too.

        Only a Sequence added to itself is copied, as it is now.
        """
        _require_program("what is added to a Sequence", program, user_site())
        if program is self:
            program = Sequence(list(self.programs), name=self.name)
        self.programs.append(program)

    def __len__(self) -> int:
        return len(self.programs)

    def __bool__(self) -> bool:
        return True


@node
class Execute(Program):
    """Run the vertices of a compute set: bring their inputs, compute, take their outputs."""

    compute_set: ComputeSet
    name: str
    site: Site

    def __init__(self, compute_set: ComputeSet, name: str = "") -> None:
        self.name, self.site = name, user_site()
        if not isinstance(compute_set, ComputeSet):
            raise GraphError(f"Execute ({self.site}) is given {compute_set!r}, not a compute set", "pass what graph.add_compute_set gave")
        self.compute_set = compute_set


@node
class Repeat(Program):
    """Run ``body`` ``count`` times; 0 runs nothing."""

    count: int
    body: Program
    name: str
    site: Site

    def __init__(self, count: int, body: Program, name: str = "") -> None:
        self.name, self.site = name, user_site()
        self.count = checks.require_count("the count of a Repeat", count, self.site)
        self.body = _require_program("the body of a Repeat", body, self.site)


@node
class RepeatWhile(Program):
    """Run ``condition``, test ``predicate``, run ``body``, and again, while the predicate is ``wanted``."""

    condition: Program
    predicate: Tensor
    body: Program
    wanted: bool
    name: str
    site: Site


class RepeatWhileTrue(RepeatWhile):
    """Run ``condition``; stop if ``predicate`` is zero; run ``body``; start over. The body may run no time at all."""

    __slots__ = ()

    def __init__(self, condition: Program, predicate: Tensor, body: Program, name: str = "") -> None:
        _fill_loop(self, True, condition, predicate, body, name)


class RepeatWhileFalse(RepeatWhile):
    """Run ``condition``; stop if ``predicate`` is not zero; run ``body``; start over."""

    __slots__ = ()

    def __init__(self, condition: Program, predicate: Tensor, body: Program, name: str = "") -> None:
        _fill_loop(self, False, condition, predicate, body, name)


def _fill_loop(loop: RepeatWhile, wanted: bool, condition: Program, predicate: Tensor, body: Program, name: str) -> None:
    kind = type(loop).__name__
    loop.name, loop.site, loop.wanted = name, user_site(), wanted
    loop.condition = _require_program(f"the condition program of a {kind}", condition, loop.site)
    loop.predicate = checks.require_predicate(f"the predicate of a {kind}", predicate, loop.site)
    loop.body = _require_program(f"the body of a {kind}", body, loop.site)


@node
class If(Program):
    """Run ``then`` if ``predicate`` is not zero, else ``otherwise``."""

    predicate: Tensor
    then: Program
    otherwise: Program
    name: str
    site: Site

    def __init__(self, predicate: Tensor, then: Program, else_: Program | None = None, name: str = "") -> None:
        self.name, self.site = name, user_site()
        self.predicate = checks.require_predicate("the predicate of an If", predicate, self.site)
        self.then = _require_program("the then branch of an If", then, self.site)
        self.otherwise = Sequence() if else_ is None else _require_program("the else branch of an If", else_, self.site)


@node
class Switch(Program):
    """Run the case whose value ``control`` has, or ``default`` (nothing, if not given)."""

    control: Tensor
    cases: list[tuple[int, Program]]
    default: Program
    name: str
    site: Site

    def __init__(
        self, control: Tensor, cases: Mapping[int, Program] | Iterable[tuple[int, Program]] = (), default: Program | None = None, name: str = ""
    ) -> None:
        self.name, self.site = name, user_site()
        self.control = checks.require_scalar("the control of a Switch", control, self.site)
        if not self.control.dtype.is_integral:
            raise ControlProgramError(f"the control of a Switch ({self.site}) is {checks.describe(control)}, no integer", "use If for a BOOL")
        self.default = Sequence() if default is None else _require_program("the default of a Switch", default, self.site)
        self.cases = []
        for value, program in cases.items() if isinstance(cases, Mapping) else cases:
            self.add(value, program)

    def add(self, value: int, program: Program) -> None:
        """One case more.

        Raises:
            ControlProgramError: the value has a case already, or is no whole number.
            ValueRangeError: the control's element type cannot hold the value.
        """
        site = user_site()
        value = checks.require_index("a case of a Switch", value, site)
        kind = self.control.dtype
        if kind(value) != value:
            raise ValueRangeError(f"case {value} of a Switch ({site}) can never match: {checks.describe(self.control)} cannot hold it", "a value it can hold")
        if any(value == v for v, _ in self.cases):
            raise ControlProgramError(f"case {value} of a Switch ({site}) is given twice", "give each value one case")
        self.cases.append((value, _require_program(f"case {value} of a Switch", program, site)))


@node
class Call(Program):
    """Run a function of the graph: its code exists once however often it is called."""

    function: Function
    name: str
    site: Site

    def __init__(self, function: Function, name: str = "") -> None:
        self.name, self.site = name, user_site()
        if not isinstance(function, Function):
            raise GraphError(f"Call ({self.site}) is given {function!r}, not a function", "pass what graph.add_function gave")
        self.function = function


@node
class Sync(Program):
    """A barrier. It changes no data."""

    kind: SyncType
    name: str
    site: Site

    def __init__(self, kind: SyncType | str = SyncType.INTERNAL, name: str = "") -> None:
        self.name, self.site = name, user_site()
        try:
            self.kind = SyncType(kind.lower() if isinstance(kind, str) else kind)
        except ValueError:
            raise ControlProgramError(f"Sync ({self.site}) is given {kind!r}", "one of " + ", ".join(f"SyncType.{k.name}" for k in SyncType)) from None


@node
class WriteUndef(Program):
    """The contents of ``tensor`` end here; its memory may serve others until it is written again."""

    tensor: Tensor
    name: str
    site: Site

    def __init__(self, tensor: Tensor, name: str = "") -> None:
        self.name, self.site = name, user_site()
        self.tensor = checks.require_tensor("the operand of WriteUndef", tensor, self.site)
        checks.require_writeable("WriteUndef", self.tensor, self.site)


@node
class PrintTensor(Program):
    """Print a tensor on the host: ``PrintTensor(t)`` or ``PrintTensor("title", t)``."""

    title: str
    tensor: Tensor
    name: str
    site: Site

    def __init__(self, title: str | Tensor, tensor: Tensor | None = None, name: str = "") -> None:
        self.name, self.site = name, user_site()
        self.tensor = checks.require_tensor("the operand of PrintTensor", title if tensor is None else tensor, self.site)
        if tensor is not None and not isinstance(title, str):
            raise GraphError(f"the title of a PrintTensor ({self.site}) is {title!r}, not text", 'PrintTensor("title", t)')
        self.title = title if isinstance(title, str) else self.tensor.name


@node
class ErrorProgram(Program):
    """Stop the run with a ProgramError that carries ``message`` and shows ``tensor``."""

    message: str
    tensor: Tensor | None
    name: str
    site: Site

    def __init__(self, message: str, tensor: Tensor | None = None, name: str = "") -> None:
        self.name, self.site, self.message = name, user_site(), _text("ErrorProgram", message)
        self.tensor = None if tensor is None else checks.require_tensor("the tensor of an ErrorProgram", tensor, self.site)


@node
class Abort(Program):
    """Stop the run with a ProgramError that carries ``message``."""

    message: str
    name: str
    site: Site

    def __init__(self, message: str = "", name: str = "") -> None:
        self.name, self.site, self.message = name, user_site(), _text("Abort", message)


@node
class AbortOnCondition(Program):
    """Stop the run with a ProgramError if ``predicate`` is not zero."""

    predicate: Tensor
    message: str
    name: str
    site: Site

    def __init__(self, predicate: Tensor, message: str = "", name: str = "") -> None:
        self.name, self.site, self.message = name, user_site(), _text("AbortOnCondition", message)
        self.predicate = checks.require_predicate("the predicate of an AbortOnCondition", predicate, self.site)


def _text(what: str, message: Any) -> str:
    if not isinstance(message, str):
        raise GraphError(f"the message of {what} is {message!r}, not text", f'{what}(..., "what went wrong")')
    return message


@node
class AssumeEqualAcrossReplicas(Program):
    """A promise that every replica holds the same values in ``tensor``, so that control flow may depend on it."""

    tensor: Tensor
    name: str
    site: Site

    def __init__(self, tensor: Tensor, name: str = "") -> None:
        self.name, self.site = name, user_site()
        self.tensor = checks.require_tensor("the operand of AssumeEqualAcrossReplicas", tensor, self.site)


@node
class CrossReplicaCopy(Program):
    """Replica i receives in ``dst`` what replica ``senders[i]`` holds in ``src``. All read before any writes."""

    src: Tensor
    dst: Tensor
    senders: tuple[int, ...]
    name: str
    site: Site

    def __init__(self, src: Tensor, dst: Tensor, senders: Mapping[int, int] | Items[int], name: str = "") -> None:
        what = "CrossReplicaCopy"
        self.name, self.site = name, user_site()
        self.src, self.dst = checks.require_tensor(what, src, self.site), checks.require_tensor(what, dst, self.site)
        checks.require_one_graph(what, (src, dst), self.site)
        checks.require_same_type(what, (checks.describe(src), src.dtype), (checks.describe(dst), dst.dtype), self.site)
        checks.require_same_elements(what, src, dst, self.site)
        checks.require_writeable(what, dst, self.site)
        replicas = src.graph.replication_factor
        pairs = dict(senders) if isinstance(senders, Mapping) else dict(enumerate(senders))
        if sorted(pairs) != list(range(replicas)) or not all(v in range(replicas) for v in pairs.values()):
            raise ControlProgramError(f"{what} ({self.site}): senders {senders!r} do not name one of {replicas} replicas for each", "{receiver: sender, ...}")
        self.senders = tuple(pairs[i] for i in range(replicas))


@node
class CycleCount(Program):
    """Run ``body`` and leave the cycles it took in ``counter``: low word, high word."""

    body: Program
    counter: Tensor
    sync: SyncType
    name: str
    site: Site

    def __init__(self, body: Program, counter: Tensor, sync: SyncType = SyncType.INTERNAL, name: str = "") -> None:
        self.name, self.site, self.sync = name, user_site(), sync
        self.body = _require_program("the body of a CycleCount", body, self.site)
        self.counter = checks.require_tensor("the counter of a CycleCount", counter, self.site)
        checks.require_writeable("CycleCount", counter, self.site)
        if counter.dtype is not UNSIGNED_INT or counter.shape != (2,):
            raise ControlProgramError(f"the counter of a CycleCount ({self.site}) is {checks.describe(counter)}", "a tensor of shape (2,) and UNSIGNED_INT")


def cycle_count(graph: Graph, sequence: Sequence, tile: int, sync_type: SyncType = SyncType.INTERNAL, name: str = "cycle_count") -> Tensor:
    """Measure a sequence in place: ``sequence`` becomes itself between two readings of the cycle counter.

    Returns:
        UNSIGNED_INT[2] on ``tile``: low and high word of the modelled cycles, once it has run.
        A ReferenceEngine, which models no time, leaves 0 there.
    """
    counter = graph.add_variable(UNSIGNED_INT, (2,), name=name)
    graph.set_tile_mapping(counter, tile)
    inner = Sequence(list(sequence.programs), name=sequence.name)
    sequence.programs[:] = [CycleCount(inner, counter, SyncType(sync_type), name)]
    return counter
