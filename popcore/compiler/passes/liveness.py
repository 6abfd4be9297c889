"""When each variable holds something that somebody will still read.

A variable whose contents always are written anew before they are read need not keep its memory in between;
``plan_memory`` lets such variables share it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from popcore.compiler.edges import field_edges
from popcore.compiler.ir import DEVICE_TO_HOST, Code, ComputeStep, CopyStep, Step
from popcore.executable.opcodes import Op
from popcore.graph import Graph
from popcore.graph.regions import Regions, sorted_union
from popcore.types import Array

ALWAYS = -1
"""Begin of the life of a variable that is alive throughout."""


def find_lives(graph: Graph, code: Code, used: Array) -> Array:
    """The instructions between which each variable is alive.

    Gives:  int64[variables, 2]: first and last instruction, both included; (ALWAYS, ALWAYS) for variables that the
            host can reach, that have initial values, or that carry something from one run to the next.
    Costs:  a pass over the code for each change that a loop carries backwards, as bits of one integer.
    """
    lives = np.full((len(graph.variables), 2), ALWAYS, np.int64)
    kept = _kept(graph, code)
    candidates = [v for v in np.flatnonzero(used).tolist() if v not in kept]
    if not candidates:
        return lives
    bit = {v: 1 << i for i, v in enumerate(candidates)}
    effects = [_effects(step, graph) for step in code.steps]
    masks = [(_mask(reads, bit), _mask(kills, bit), _mask(touched, bit)) for reads, kills, touched in effects]
    live_in, entering = _solve(code, masks, bit)
    for v in candidates:
        if entering & bit[v]:
            continue
        alive = [pc for pc, state in enumerate(live_in) if state & bit[v]]
        lives[v] = (alive[0], alive[-1]) if alive else (0, len(live_in) - 1)
    return lives


def _kept(graph: Graph, code: Code) -> set[int]:
    kept = {v.id for v in graph.variables if v.constant or v.initial is not None or v.hidden}
    for tensor in (*graph.host_reads.values(), *graph.host_writes.values()):
        kept.update(tensor.regions().var.tolist())
    kept.update(code.predicates[:, 0].tolist())
    for node in code.collectives:
        if node.kind == "all_reduce":  # combined in place, by no step
            kept.update(node.dst.regions().var.tolist())
    return kept


def _effects(step: Step, graph: Graph) -> tuple[set[int], set[int], set[int]]:
    """The variables a step reads, those it writes as a whole before any read, and all it touches."""
    if isinstance(step, ComputeStep):
        reads: set[int] = set()
        written: list[Regions] = []
        touched: set[int] = set()
        for group in step.compute_set.groups.values():
            for f in group.codelet.fields:
                regions = field_edges(group, f, np.arange(group.count)).runs
                variables = set(np.unique(regions.var).tolist())
                touched |= variables
                if f.direction == "out":
                    written.append(regions)
                else:
                    reads |= variables
        return reads, _whole(written, graph) - reads, touched
    if isinstance(step, CopyStep):
        reads = set(np.unique(step.source.var).tolist())
        return reads, _whole([step.target], graph) - reads, reads | set(np.unique(step.target.var).tolist())
    touched = set(np.unique(step.regions.var).tolist())
    if step.direction == DEVICE_TO_HOST:
        return touched, set(), touched
    return set(), _whole([step.regions], graph), touched


def _whole(written: Sequence[Regions], graph: Graph) -> set[int]:
    """The variables of which every element is written."""
    if not written:
        return set()
    ids, length = sorted_union(np.concatenate([r.ids for r in written]), np.concatenate([r.length for r in written]))
    var = Regions(ids, length).var
    total = np.bincount(var, weights=length, minlength=len(graph.variables))
    return {v for v in np.unique(var).tolist() if int(total[v]) == graph.variables[v].numel}


def _mask(variables: set[int], bit: dict[int, int]) -> int:
    mask = 0
    for v in variables:
        mask |= bit.get(v, 0)
    return mask


def _solve(code: Code, masks: Sequence[tuple[int, int, int]], bit: dict[int, int]) -> tuple[list[int], int]:
    """Backward data flow to a fixed point.

    Returns: for each instruction what is alive or touched there, and what is alive when a program begins.
    """
    rows = code.instructions.tolist()
    count = len(rows)
    live = [0] * (count + 1)
    entering = 0
    returns: dict[int, list[int]] = {}  # subroutine entry: where its calls return to
    owner = _subroutine_of(rows)
    for pc, (op, a, _, _) in enumerate(rows):
        if op == Op.CALL:
            returns.setdefault(a, []).append(pc + 1)
    undefined = {pc: _mask(set(v), bit) for pc, v in code.undefined.items()}
    changed = True
    while changed:
        changed = False
        entering = 0
        for entry in code.entries.tolist():
            entering |= live[entry]
        for pc in range(count - 1, -1, -1):
            op, a, b, c = rows[pc]
            if op == Op.HALT:
                state = entering
            elif op == Op.RUN:
                reads, kills, _ = masks[a]
                state = (live[pc + 1] & ~kills) | reads
            elif op == Op.REPEAT:
                state = live[pc + 1] if b else 0
                state |= live[c]
            elif op == Op.END:
                state = live[pc + 1] | live[b]
            elif op == Op.BRANCH:
                state = live[pc + 1] | live[c]
            elif op == Op.JUMP:
                state = live[a]
            elif op == Op.SWITCH:
                cases = int(code.switches[c, 0])
                state = live[int(code.switches[c, 1])]
                for row in range(c + 1, c + 1 + cases):
                    state |= live[int(code.switches[row, 1])]
            elif op == Op.CALL:
                state = live[a]
            elif op == Op.RETURN:
                state = 0
                for back in returns.get(owner[pc], ()):
                    state |= live[back]
            else:
                state = live[pc + 1] & ~undefined.get(pc, 0)
            if state != live[pc]:
                live[pc] = state
                changed = True
    for pc, (op, a, _, _) in enumerate(rows):
        if op == Op.RUN:
            live[pc] |= masks[a][2]
    return live[:count], entering


def _subroutine_of(rows: Sequence[Sequence[int]]) -> list[int]:
    """For each instruction the entry of the subroutine it lies in; subroutines end with RETURN and follow the programs."""
    entries = sorted({row[1] for row in rows if row[0] == Op.CALL})
    owner, current, next_entry = [], -1, 0
    for pc in range(len(rows)):
        if next_entry < len(entries) and entries[next_entry] == pc:
            current, next_entry = pc, next_entry + 1
        owner.append(current)
    return owner
