"""Going through programs without recursion: children, every node once, cycles."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence as Items

from popcore.errors import ControlProgramError
from popcore.executable.executable import Stream
from popcore.graph import Function
from popcore.program.copies import Copy
from popcore.program.nodes import Call, CycleCount, If, Program, Repeat, RepeatWhile, Sequence, Switch


def children(program: Program) -> Items[Program]:
    """The programs right inside ``program``, in the order they would run; the body of a called function too."""
    match program:
        case Sequence():
            return program.programs
        case Repeat() | CycleCount():
            return (program.body,)
        case RepeatWhile():
            return (program.condition, program.body)
        case If():
            return (program.then, program.otherwise)
        case Switch():
            return (*(p for _, p in program.cases), program.default)
        case Call():
            return (body_of(program.function),)
    return ()


def body_of(function: Function) -> Program:
    """The program that a function of the graph runs."""
    body = function.program
    if not isinstance(body, Program):
        raise ControlProgramError(f"function {function!r} has the body {body!r}, not a program", "graph.add_function(program)")
    return body


def walk(*roots: Program) -> Iterator[Program]:
    """Every node under ``roots`` once, parents before children, however often it is used.

    Costs one set entry a node; nests to any depth.
    """
    seen: set[Program] = set()
    stack: list[Iterator[Program]] = [iter(roots)]
    while stack:
        program = next(stack[-1], None)
        if program is None:
            stack.pop()
        elif program not in seen:
            seen.add(program)
            yield program
            if inside := children(program):
                stack.append(iter(inside))


def check_acyclic(*roots: Program) -> None:
    """Refuse a program that contains itself: a function that calls itself, a Sequence added to one of its parts.

    Raises:
        ControlProgramError: with the way from the program back to itself.
    """
    done: set[Program] = set()
    path: dict[Program, None] = {}
    stack: list[tuple[Program | None, Iterator[Program]]] = [(None, iter(roots))]
    while stack:
        parent, todo = stack[-1]
        program = next(todo, None)
        if program is None:
            stack.pop()
            if parent is not None:
                del path[parent]
                done.add(parent)
        elif program in path:
            raise _cycle(list(path), program)
        elif program not in done:
            if inside := children(program):
                path[program] = None
                stack.append((program, iter(inside)))
            else:
                done.add(program)


def _cycle(path: list[Program], again: Program) -> ControlProgramError:
    way = [*path[path.index(again) :], again]
    shown = way if len(way) <= 6 else [*way[:3], *way[-3:]]
    lines = "\n".join(f"  {type(p).__name__}{f' {p.name!r}' if p.name else ''} ({p.site})" for p in shown)
    if any(isinstance(p, Call) for p in way):
        return ControlProgramError(f"a function calls itself; a tile has no stack for that:\n{lines}", "write the recursion as a RepeatWhileTrue")
    return ControlProgramError(f"a program contains itself:\n{lines}", "build the inner program apart and add it to the outer one")


def streams_used(*roots: Program) -> dict[str, Stream]:
    """The streams that the copies under ``roots`` move, by handle, in order of first use."""
    used: dict[str, Stream] = {}
    for program in walk(*roots):
        if isinstance(program, Copy) and program.kind.startswith("stream"):
            used.setdefault(program.stream.name, program.stream)
    return used
