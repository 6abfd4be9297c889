"""Where replicas would go that disagree on a test, and at which program each would wait for the others."""

from __future__ import annotations

from popcore.program.collectives import Collective
from popcore.program.nodes import AbortOnCondition, AssumeEqualAcrossReplicas, CrossReplicaCopy, If, Program, RepeatWhile, Switch
from popcore.program.walk import walk

Ways = tuple[tuple[int | None, str], ...]
"""Values of a test, None for any other, and the first program on that way at which all replicas have to meet; "" where there is none."""


def ways_of(program: Program) -> Ways:
    """The ways from an If, a Switch or a loop."""
    match program:
        case If():
            return ((0, _meeting(program.otherwise)), (None, _meeting(program.then)))
        case RepeatWhile():
            on = _meeting(program.body) or _meeting(program.condition)
            return ((0, "" if program.wanted else on), (None, on if program.wanted else ""))
        case Switch():
            return (*((value, _meeting(body)) for value, body in program.cases), (None, _meeting(program.default)))
    return ()


def _meeting(program: Program) -> str:
    for each in walk(program):
        if isinstance(each, Collective):
            return f"{each.kind} {each.name!r} ({each.site})"
        if isinstance(each, CrossReplicaCopy | AssumeEqualAcrossReplicas | AbortOnCondition):
            return f"{type(each).__name__}{f' {each.name!r}' if each.name else ''} ({each.site})"
    return ""
