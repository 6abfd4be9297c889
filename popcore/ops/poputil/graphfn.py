"""Parts of a graph used again for other data, as functions: arguments are copied in and results out. After ``poputil/GraphFunction.hpp``."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from popcore.errors import GraphError
from popcore.graph import Function, Graph, Tensor
from popcore.program import Call, Copy, Program
from popcore.program import Sequence as Steps


class ArgType(enum.Enum):
    INPUT = "copied in"
    OUTPUT = "copied out"
    INOUT = "copied in and out"
    CREATED = "made by the function, and a copy of it by each call"


@dataclass(frozen=True)
class ArgSig:
    """An argument: its kind, and a tensor that it is like."""

    kind: ArgType
    similar: Tensor | None = None
    name: str = ""


def input(similar: Tensor, name: str = "") -> ArgSig:  # PopLibs' name
    return ArgSig(ArgType.INPUT, similar, name)


def output(similar: Tensor, name: str = "") -> ArgSig:
    return ArgSig(ArgType.OUTPUT, similar, name)


def inout(similar: Tensor, name: str = "") -> ArgSig:
    return ArgSig(ArgType.INOUT, similar, name)


def created(name: str = "") -> ArgSig:
    return ArgSig(ArgType.CREATED, None, name)


class VoidFunction:
    """``function(params, prog)`` is called once, here, with tensors like those of the signature, and adds its steps to ``prog``.

    Places of ``params`` that are CREATED hold None: the function puts a tensor there. With ``inlined`` a call repeats the steps instead of
    calling one copy of them.
    """

    def __init__(
        self, graph: Graph, signature: Sequence[ArgSig], function: Callable[[list[Tensor], Steps], object], inlined: bool = False, name: str = ""
    ) -> None:
        self.graph, self.signature = graph, list(signature)
        self.program = Steps(name=name)
        self.params: list[Tensor] = [None if s.similar is None else graph.clone(s.similar, s.name or name) for s in self.signature]  # type: ignore[misc]
        function(self.params, self.program)
        for s, t in zip(self.signature, self.params, strict=True):
            if not isinstance(t, Tensor):
                raise GraphError(f"graph function {name!r} did not make its argument {s.name!r}: it is {t!r:.40}", "params[i] = ... in the function")
        self.function: Function | None = None if inlined else graph.add_function(self.program, name)

    def __call__(self, arguments: list[Tensor], prog: Steps, name: str = "") -> None:
        """Add a call to ``prog``. Places of ``arguments`` that are CREATED are filled.

        Raises: GraphError: more or fewer arguments than the signature has.
        """
        if len(arguments) != len(self.signature):
            raise GraphError(f"a graph function of {len(self.signature)} arguments is called with {len(arguments)}", "one for each, None where created")
        for i, s in enumerate(self.signature):
            if s.kind is ArgType.CREATED:
                arguments[i] = self.graph.clone(self.params[i], s.name or name)
        self._copy((ArgType.INPUT, ArgType.INOUT), arguments, self.params, prog, name)
        prog.add(self.program if self.function is None else Call(self.function))
        self._copy((ArgType.OUTPUT, ArgType.INOUT, ArgType.CREATED), self.params, arguments, prog, name)

    def _copy(self, kinds: tuple[ArgType, ...], source: list[Tensor], target: list[Tensor], prog: Steps, name: str) -> None:
        for s, a, b in zip(self.signature, source, target, strict=True):
            if s.kind in kinds:
                prog.add(Copy(a, b, name=name))


class ProgramFunction:
    """The same of a function that returns a program; a call returns one."""

    def __init__(self, graph: Graph, signature: Sequence[ArgSig], function: Callable[[list[Tensor]], Program], inlined: bool = False, name: str = "") -> None:
        self._function = VoidFunction(graph, signature, lambda params, prog: prog.add(function(params)), inlined, name)

    def __call__(self, arguments: list[Tensor], name: str = "") -> Program:
        made = Steps(name=name)
        self._function(arguments, made, name)
        return made


class TensorFunction:
    """The same of a function that returns a tensor; a call returns a copy of it."""

    def __init__(
        self, graph: Graph, signature: Sequence[ArgSig], function: Callable[[list[Tensor], Steps], Tensor], inlined: bool = False, name: str = ""
    ) -> None:
        def make(params: list[Tensor], prog: Steps) -> None:
            params[-1] = function(params[:-1], prog)

        self._function = VoidFunction(graph, [*signature, created(name)], make, inlined, name)

    def __call__(self, arguments: Sequence[Tensor], prog: Steps, name: str = "") -> Tensor:
        filled: list[Tensor] = [*arguments, None]  # type: ignore[list-item]
        self._function(filled, prog, name)
        return filled[-1]
