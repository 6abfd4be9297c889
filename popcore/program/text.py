"""A program as indented text, one line a node."""

from __future__ import annotations

from collections.abc import Iterator

from popcore.graph.tensor import Tensor
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
from popcore.program.walk import body_of, children, walk

Part = tuple[str, Program | None]
"""A line of text, and the program to write below it, one step further in."""

DEEPEST_INDENT = 40


def text(*programs: Program) -> str:
    """``programs`` as text, each under its number.

    A node with children that is used more than once is written out the first time, as ``#1 Sequence``, and
    referred to by its number after. Bodies of functions follow where they are first called.
    """
    lines = [f"program {i}" for i in range(len(programs))]
    out: list[str] = []
    labels = _shared(*programs)
    written: set[Program] = set()
    for title, program in zip(lines, programs, strict=True):
        out.append(title)
        stack: list[tuple[int, Iterator[Part]]] = [(1, iter([("", program)]))]
        while stack:
            depth, parts = stack[-1]
            line, inner = next(parts, (None, None))
            if line is None:
                stack.pop()
                continue
            if line:
                out.append(_indent(depth) + line)
            if inner is None:
                continue
            below = depth + bool(line)
            label = f"#{labels[inner]} " if inner in labels else ""
            if inner in written and label:
                out.append(_indent(below) + f"{label}{type(inner).__name__}, as above")
                continue
            written.add(inner)
            out.append(_indent(below) + label + headline(inner))
            stack.append((below + 1, _parts(inner)))
    return "\n".join(out) + "\n"


def _indent(depth: int) -> str:
    """Deeper than anybody reads, the depth is a number: else text would grow with its square."""
    return "  " * depth if depth <= DEEPEST_INDENT else "  " * DEEPEST_INDENT + f"[{depth}] "


def headline(program: Program) -> str:
    """A program in one line, without what is inside it."""
    return f"{_what(program)}{f' ({program.name})' if program.name else ''}"


def _what(program: Program) -> str:
    match program:
        case Sequence():
            return "Sequence"
        case Execute():
            return f"Execute {program.compute_set.name!r}"
        case Copy():
            return f"Copy {_end(program, program.src)} -> {_end(program, program.dst)}"
        case Collective():
            group = f"groups of {program.group_size} {program.group.type.value}" if program.group.type.value != "all" else "all replicas"
            return f"{program.kind} {program.operator.value} {program.method} {_tensor(program.src)} -> {_tensor(program.dst)} over {group}"
        case CrossReplicaCopy():
            return f"CrossReplicaCopy {_tensor(program.src)} -> {_tensor(program.dst)} from replicas {list(program.senders)}"
        case Repeat():
            return f"Repeat {program.count}"
        case RepeatWhile():
            return f"{type(program).__name__} {_tensor(program.predicate)}"
        case If():
            return f"If {_tensor(program.predicate)}"
        case Switch():
            return f"Switch {_tensor(program.control)}"
        case Sync():
            return f"Sync {program.kind.value}"
        case WriteUndef() | AssumeEqualAcrossReplicas():
            return f"{type(program).__name__} {_tensor(program.tensor)}"
        case PrintTensor():
            return f"PrintTensor {program.title!r} {_tensor(program.tensor)}"
        case CycleCount():
            return f"CycleCount -> {_tensor(program.counter)}"
        case ModifyFloatingPointBehaviour():
            return f"ModifyFloatingPointBehaviour clear {program.clear:#x} set {program.set_:#x}"
        case RestoreFloatingPointBehaviour():
            return f"RestoreFloatingPointBehaviour {_tensor(program.state)}"
        case ErrorProgram():
            return f"ErrorProgram {program.message!r}" + (f" {_tensor(program.tensor)}" if program.tensor is not None else "")
        case Abort():
            return f"Abort {program.message!r}"
        case AbortOnCondition():
            return f"AbortOnCondition {_tensor(program.predicate)} {program.message!r}"
    return type(program).__name__


def _tensor(tensor: Tensor) -> str:
    return f"{tensor.name}{list(tensor.shape)}"


def _end(copy: Copy, end: object) -> str:
    if isinstance(end, Tensor):
        return _tensor(end)
    if copy.kind.startswith("stream"):
        return f"stream {copy.stream.name!r}"
    rows = _tensor(copy.rows) if isinstance(copy.rows, Tensor) else ", ".join(map(str, copy.rows))
    return f"remote {copy.remote.name!r} row {rows}"


def _parts(program: Program) -> Iterator[Part]:
    """What is written below the headline of ``program``."""
    match program:
        case If():
            yield "then", program.then
            yield "else", program.otherwise
        case RepeatWhile():
            yield "condition", program.condition
            yield "body", program.body
        case Switch():
            for value, case in program.cases:
                yield f"case {value}", case
            yield "default", program.default
        case Call():
            yield "", body_of(program.function)
        case _:
            for child in children(program):
                yield "", child


def _shared(*programs: Program) -> dict[Program, int]:
    """Numbers of the nodes with children that are used more than once, in order of their first use."""
    uses: dict[Program, int] = dict.fromkeys(programs, 1)
    for node in walk(*programs):
        for child in children(node):
            if children(child):
                uses[child] = uses.get(child, 0) + 1
    shared = [program for program, count in uses.items() if count > 1]
    return {program: number + 1 for number, program in enumerate(shared)}
