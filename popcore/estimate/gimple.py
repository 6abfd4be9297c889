"""What g++ writes of a function before it vectorises, ``-fdump-tree-reassoc1``: blocks, loops, and statements in single assignments."""

from __future__ import annotations

import re

from popcore.estimate.flow import Function, Loop

_HEAD = re.compile(r";; Function (.*) \((\S+), funcdef_no=")
_LOOP = re.compile(r";; Loop (\d+)$")
_SUCCESSORS = re.compile(r";; (\d+) succs \{([\d ]*)\}")
_BLOCK = re.compile(r"  <bb (\d+)> .*:$")
_PHI = re.compile(r"# (\S+) = PHI <(.*)>$")
_ARGUMENT = re.compile(r"([^,()]+(?:\(D\))?)\((\d+)\)(?:, |$)")
_DECLARED = re.compile(r"  (?:const |volatile )*(.*?) ?([A-Za-z_$][\w.$]*|_\d+);$")


def functions(text: str) -> list[Function]:
    """The functions of a dump."""
    made: list[Function] = []
    for part in re.split(r"(?m)^(?=;; Function )", text):
        head = _HEAD.match(part)
        if head is not None:
            made.append(_function(head[1], part.splitlines()[1:]))
    return made


def _function(name: str, lines: list[str]) -> Function:
    made = Function(name)
    loop: Loop | None = None
    block = -1
    for line in lines:
        if line.startswith(";;"):
            if (found := _LOOP.match(line)) is not None:
                loop = made.loops[int(found[1])] = Loop(int(found[1]))
            elif (found := _SUCCESSORS.match(line)) is not None:
                made.successors[int(found[1])] = [int(n) for n in found[2].split()]
            elif loop is not None:
                _describe(loop, line)
        elif (found := _BLOCK.match(line)) is not None:
            block = int(found[1])
            made.statements[block] = []
        elif block < 0:
            if (found := _DECLARED.match(line)) is not None:
                made.types[found[2]] = found[1]
        elif (found := _PHI.match(line.strip())) is not None:
            made.phis[found[1]] = block, [(value.strip(), int(number)) for value, number in _ARGUMENT.findall(found[2])]
        elif ((text := line.strip()).endswith(";") and not text.startswith(("goto", "<L", "return", "//"))) or text.startswith("if ("):
            made.statements[block].append(text.removesuffix(";"))
    return made


def _describe(loop: Loop, line: str) -> None:
    if (found := re.match(r";;  header (\d+), (?:latch (\d+)|multiple latches)", line)) is not None:
        loop.header, loop.latch = int(found[1]), int(found[2] or -1)
    elif (found := re.match(r";;  depth (\d+), outer (-?\d+)", line)) is not None:
        loop.depth, loop.outer = int(found[1]), int(found[2])
    elif line.startswith(";;  nodes:"):
        loop.nodes = {int(n) for n in line.removeprefix(";;  nodes:").split()}
    elif re.match(r";;\s+[\d ]+$", line) is not None:
        loop.nodes |= {int(n) for n in line.removeprefix(";;").split()}  # a long list goes on
