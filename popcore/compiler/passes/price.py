"""Put modelled cycles beside every instruction. What a step costs is decided in ``compiler.cost``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from popcore.codelet import Codelet
from popcore.compiler import cost
from popcore.compiler.collectives import CollectiveCost, cross_copy_flows
from popcore.compiler.ir import Code, ComputeStep, Layout, StepPlan
from popcore.compiler.links import busiest_seconds, link_loads
from popcore.compiler.passes.count import CountedStep, CountedVertices
from popcore.compiler.vertex_cost import vertex_cost
from popcore.executable import ORIGINS, Costs, Yield
from popcore.executable.opcodes import Op
from popcore.target import Target
from popcore.topology import LINK_KINDS, Link
from popcore.types import Array

Loads = tuple[tuple[Link, float], ...]
COLUMNS = 9  # five kinds of cycles, then exchange, link, host and remote bytes


def price(
    code: Code,
    plans: Sequence[StepPlan],
    layout: Layout,
    codelets: Sequence[Codelet],
    moved: Array,
    target: Target,
    replicas: int = 1,
    collectives: Sequence[CollectiveCost] = (),
) -> tuple[Costs, list[CountedStep]]:
    """Cycles and bytes of one execution of each instruction; and the steps of which a part is counted as they run.

    Needs:  ``moved``, int64[n + 1]: where each instruction of ``code`` went; a step of two phases takes two rows.
    """
    number = {c: i for i, c in enumerate(codelets)}
    before, after = np.zeros((len(plans) or 1, COLUMNS), np.int64), np.zeros((len(plans) or 1, COLUMNS), np.int64)
    by_codelet: list[list[tuple[int, int, int]]] = []
    links: list[list[Loads]] = []  # of each step, of its phases
    origins = np.zeros((len(codelets), len(ORIGINS)), np.int64)
    counted: list[CountedStep] = []
    for index, (step, plan) in enumerate(zip(code.steps, plans, strict=True)):
        exchanges = [cost.exchange_cost(moves, layout, target) for moves in (plan.before[: len(plan.before) - plan.keeping], plan.after)]
        before[index], after[index] = map(_row, exchanges)
        links.append([each.links for each in exchanges])
        by_codelet.append([])
        if isinstance(step, ComputeStep):
            made = _compute_set(step, plan, number, target)
            before[index] += _row(cost.StepCost(compute=cost.slowest_tile(made.load), control=cost.EXECUTE))
            by_codelet[-1] += made.rows
            for of, found in made.origins:
                origins[of] += np.bincount(found, minlength=len(ORIGINS))
            if made.counted:
                counted.append(CountedStep(index, made.load, made.counted))
    streamed = _streamed(code, plans, layout, target)
    tiles = _sending_tiles(code, plans, layout, target)
    served = [_host_cost(request, streamed[i], tiles[i], target, replicas, collectives) for i, request in enumerate(code.yields)]
    hosts = np.array([_row(each) for each in served], np.int64).reshape(-1, COLUMNS)
    table = _instruction_table(code, before, after, hosts, moved, target)
    costs = Costs(
        cycles=table[:, :5],
        exchange_bytes=table[:, 5],
        link_bytes=table[:, 6],
        host_bytes=table[:, 7],
        remote_bytes=table[:, 8],
        labels=code.labels,
        label=np.repeat(code.label, np.diff(moved)).astype(np.int32),
        head=_heads(code, moved),
        worker_codelet=_worker_rows(code, by_codelet, moved),
        origins=origins,
        links=_link_rows(code, links, [each.links for each in served], moved),
    )
    return costs, counted


@dataclass(frozen=True)
class _ComputeSet:
    """What the vertices of a compute set cost."""

    load: Array  # see ``cost.tile_loads``
    rows: list[tuple[int, int, int]]  # codelet, vertices, worker cycles
    origins: list[tuple[int, Array]]  # codelet, and whose word the cycles of each vertex are
    counted: list[CountedVertices]


def _compute_set(step: ComputeStep, plan: StepPlan, number: dict[Codelet, int], target: Target) -> _ComputeSet:
    groups = list(zip(step.compute_set.groups.values(), plan.groups, strict=True))
    costs = [vertex_cost(group.codelet, placed, np.asarray(group.cycles, np.int64)[placed.vertices]) for group, placed in groups]
    load, slots = cost.tile_loads([(group.codelet, placed, each.cycles) for (group, placed), each in zip(groups, costs, strict=True)], target)
    rows, origins, counted = [], [], []
    for (group, placed), each, slot in zip(groups, costs, slots, strict=True):
        codelet = number[group.codelet]
        rows.append((codelet, len(placed.tile), int(np.ceil(each.cycles.sum() * group.codelet.workers))))
        origins.append((codelet, each.origin))
        if each.counted.any():
            counted.append(CountedVertices(codelet, placed.vertices[each.counted], slot[each.counted]))
    return _ComputeSet(load, rows, origins, counted)


def _row(part: cost.StepCost) -> tuple[int, ...]:
    return (*part.cycles, part.exchange_bytes, part.link_bytes, part.host_bytes, part.remote_bytes)


def _instruction_table(code: Code, before: Array, after: Array, hosts: Array, moved: Array, target: Target) -> Array:
    table = np.zeros((int(moved[-1]), COLUMNS), np.int64)
    op, operand, at = code.instructions[:, 0], code.instructions[:, 1], moved[:-1]
    run = op == Op.RUN
    table[at[run]] = before[operand[run]]
    second = run & (np.diff(moved) == 2)
    table[at[second] + 1] = after[operand[second]]
    yields = op == Op.YIELD
    if yields.any():
        table[at[yields]] = hosts[operand[yields]]
    syncs = (op == Op.NOP) & np.array([name.startswith("sync") for name in code.labels] or [False])[code.label]
    table[at[syncs]] = _row(cost.barrier_cost(target))
    control = ~(run | yields | np.isin(op, (Op.HALT, Op.RETURN, Op.NOP)))
    table[at[control]] = _row(cost.StepCost(control=cost.CONTROL))
    return table


def _streamed(code: Code, plans: Sequence[StepPlan], layout: Layout, target: Target) -> Array:
    """Bytes that each IPU gets from the staging area, or puts there, in the step beside each yield. int64[yields, IPUs]"""
    made = np.zeros((len(code.yields), target.num_ipus), np.int64)
    for at in np.flatnonzero(code.instructions[:, 0] == Op.YIELD).tolist():
        number = int(code.instructions[at, 1])
        kind = code.yields[number].kind
        if kind.startswith("stream"):
            plan = plans[int(code.instructions[at + (1 if kind == "stream_in" else -1), 1])]
            for moves in (plan.before, plan.after):
                tile = layout.tile_of(moves.target if kind == "stream_in" else moves.source).astype(np.int64)
                made[number] += np.bincount(tile // target.tiles_per_ipu, weights=moves.nbytes, minlength=target.num_ipus)[: target.num_ipus].astype(np.int64)
    return made


def _sending_tiles(code: Code, plans: Sequence[StepPlan], layout: Layout, target: Target) -> list[int]:
    """For each yield the most tiles of an IPU that put something into the staging area in the step before it, if it is for other replicas; else 1."""
    made = [1] * len(code.yields)
    for at in np.flatnonzero(code.instructions[:, 0] == Op.YIELD).tolist():
        number = int(code.instructions[at, 1])
        if code.yields[number].kind == "cross_copy":
            plan = plans[int(code.instructions[at - 1, 1])]
            tiles = np.unique(np.concatenate([layout.tile_of(moves.source) for moves in (plan.before, plan.after)]))
            made[number] = int(np.bincount(tiles // target.tiles_per_ipu, minlength=1).max())
    return made


def _host_cost(request: Yield, streamed: Array, tiles: int, target: Target, replicas: int, collectives: Sequence[CollectiveCost]) -> cost.StepCost:
    nbytes = int(np.prod(request.shape, dtype=np.int64)) * request.dtype.nbytes if request.dtype else 0
    if request.kind.startswith("stream"):
        return cost.stream_cost(streamed, target, replicas)
    if request.kind.startswith("remote"):
        return cost.remote_cost(nbytes, target, replicas)
    whole = target.with_ipus(target.num_ipus * replicas)
    if request.kind == "collective":
        made = collectives[request.index]
        return cost.StepCost(exchange=made.cycles, link_bytes=-(-made.bytes_on_links // replicas), links=tuple(made.links.items()))
    if request.kind == "cross_copy":
        delay, load = link_loads(whole, cross_copy_flows(target.num_ipus, request.rows, nbytes, tiles))
        seconds = delay + busiest_seconds(whole, load)
        moved = any(sender != receiver for receiver, sender in enumerate(request.rows))
        return cost.StepCost(exchange=int(np.ceil(seconds * target.clock_hz)), link_bytes=nbytes * moved, links=tuple(load.items()))
    if request.kind in ("equal", "error_if"):
        return cost.barrier_cost(whole)
    return cost.StepCost()


def _heads(code: Code, moved: Array) -> Array:
    """The first phase of each step; of what has no phase, every instruction. bool[n]"""
    run = code.instructions[:, 0] == Op.RUN
    with_phase = np.zeros(len(code.labels), bool)
    with_phase[code.label[run]] = True
    heads = np.zeros(int(moved[-1]), bool)
    heads[moved[:-1]] = run | ~with_phase[code.label]
    return heads


def _worker_rows(code: Code, by_codelet: Sequence[Sequence[tuple[int, int, int]]], moved: Array) -> Array:
    """(instruction, codelet, vertices, worker cycles) of every RUN of a compute set, int64[k, 4]."""
    runs = np.flatnonzero(code.instructions[:, 0] == Op.RUN)
    steps = code.instructions[runs, 1]
    parts = [np.zeros((0, 4), np.int64)]
    for step in np.unique(steps).tolist():
        if by_codelet[step]:
            at = moved[runs[steps == step]]
            rows = np.array(by_codelet[step], np.int64)
            parts.append(np.column_stack([np.repeat(at, len(rows)), np.tile(rows, (len(at), 1))]))
    return np.concatenate(parts)


def _link_rows(code: Code, of_steps: Sequence[Sequence[Loads]], of_yields: Sequence[Loads], moved: Array) -> Array:
    """(instruction, kind, source, target, bytes, of the whole system) of every bundle that an instruction uses, int64[k, 6]."""
    rows: list[tuple[int, ...]] = []
    for at, (op, operand) in enumerate(code.instructions[:, :2].tolist()):
        if op == Op.RUN:
            for phase, links in enumerate(of_steps[operand]):
                rows += [(int(moved[at]) + phase, LINK_KINDS.index(k), a, b, round(n), 0) for (k, a, b), n in links]
        elif op == Op.YIELD:
            rows += [(int(moved[at]), LINK_KINDS.index(k), a, b, round(n), 1) for (k, a, b), n in of_yields[operand]]
    return np.array(rows, np.int64).reshape(-1, 6)
