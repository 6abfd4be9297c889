"""Profile: what a run left. Frozen, and it carries its configuration, so that no number leaves without it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from popcore.executable import COUNTED_UNIT, KINDS, ORIGINS, Executable
from popcore.executable.opcodes import Op
from popcore.target import Target
from popcore.topology import LINK_KINDS, Link, bytes_per_second
from popcore.types import Array


@dataclass(frozen=True)
class StepProfile:
    """One step of the program, over all its executions."""

    name: str
    executions: int
    cycles: int
    cycles_by_kind: Mapping[str, int]


@dataclass(frozen=True)
class CodeletProfile:
    """One codelet."""

    name: str
    vertices: int  # in the graph
    executions: int  # of a vertex
    worker_cycles: int  # summed over all workers that ran it; not device time
    cycles_from: Mapping[str, int]  # whose word the cycles of its vertices are, see ``executable.ORIGINS``: how many vertices of each
    counted: bool  # some of them were counted as it ran, since data decides


@dataclass(frozen=True)
class BytesMoved:
    """Bytes by what carried them."""

    exchange: int  # between tiles, IPU-Links included
    ipu_links: int
    host: int
    streaming_memory: int


@dataclass(frozen=True)
class CollectiveProfile:
    """One collective over replicas. Steps, bytes and cycles are of one execution; cycles are of each replica, all run in step."""

    name: str
    kind: str  # "all_reduce", "reduce_scatter", "all_gather", "all_to_all" or "broadcast"
    operator: str
    method: str
    replicas: int  # of a group
    groups: int
    executions: int
    steps: int
    bytes_on_links_per_replica: int  # that one sends to others, the mean over all
    cycles: int


@dataclass(frozen=True)
class LinkProfile:
    """A link bundle in one direction, over all executions; ``topology.Link`` says what its ends are. Of the whole system, all replicas."""

    kind: str
    source: int
    target: int
    bytes: int
    busy_seconds: float  # bytes by bandwidth


@dataclass(frozen=True)
class TileMemory:
    """Bytes of each tile, int64[tiles], by category; estimates except for variables and exchange buffers."""

    by_category: Mapping[str, Array]

    @property
    def total(self) -> Array:
        total: Array = np.sum(list(self.by_category.values()), axis=0)
        return total


@dataclass(frozen=True)
class Profile:
    """Modelled cycles of everything an engine has run so far. Wall time stands apart and is the emulator's own.

    Of several replicas, cycles, bytes and memory are those of each: all run in step.
    """

    target: Target  # of one replica
    replicas: int
    options: Mapping[str, Any]
    versions: Mapping[str, str]
    total_cycles: int
    cycles_by_kind: Mapping[str, int]
    device_seconds: float  # total_cycles by the target's clock
    steps: tuple[StepProfile, ...]
    codelets: Mapping[str, CodeletProfile]
    collectives: tuple[CollectiveProfile, ...]
    bytes: BytesMoved
    links: tuple[LinkProfile, ...]  # the busiest first
    memory: TileMemory
    statistics: Mapping[str, int]
    runs: int
    wall_seconds: float  # what the emulator took to run, on this machine

    def summary(self) -> str:
        """The profile as text of some 30 lines."""
        from popcore.profile.views.summary import summary

        return summary(self)

    def __str__(self) -> str:
        return self.summary()


@dataclass(frozen=True)
class Ran:
    """What a machine counted."""

    counts: Array  # int64[instructions], how often each was executed
    waited: Array  # int64[instructions, kinds], cycles that each took beyond its cost: waiting for the host, for links that are slow
    taken: Array  # int64[instructions], cycles that its vertices counted themselves; of kind "compute"
    totals: Array  # int64[codelets], those of all vertices, in units of a worker cycle


def make_profile(executable: Executable, ran: Ran, runs: int, wall_seconds: float) -> Profile:
    """Executions times modelled costs, and what was counted besides."""
    counts = ran.counts
    costs = executable.costs
    spent = costs.cycles * counts[:, None] + ran.waited
    spent[:, KINDS.index("compute")] += ran.taken
    total = int(spent.sum())
    return Profile(
        target=executable.target,
        replicas=executable.replicas,
        options=dict(executable.options),
        versions=_versions(),
        total_cycles=total,
        cycles_by_kind={kind: int(c) for kind, c in zip(KINDS, spent.sum(axis=0), strict=True)},
        device_seconds=total / executable.target.clock_hz,
        steps=_steps(executable, counts, spent),
        codelets=_codelets(executable, ran),
        collectives=_collectives(executable, counts),
        bytes=BytesMoved(*(int((column * counts).sum()) for column in (costs.exchange_bytes, costs.link_bytes, costs.host_bytes, costs.remote_bytes))),
        links=_links(executable, counts),
        memory=TileMemory(executable.memory.by_category),
        statistics=dict(executable.statistics),
        runs=runs,
        wall_seconds=wall_seconds,
    )


def _steps(executable: Executable, counts: Array, spent: Array) -> tuple[StepProfile, ...]:
    costs = executable.costs
    by_label = np.zeros((len(costs.labels), len(KINDS)), np.int64)
    np.add.at(by_label, costs.label, spent)
    executions = np.zeros(len(costs.labels), np.int64)
    np.add.at(executions, costs.label[costs.head], counts[costs.head])
    rows = [
        StepProfile(name, int(executions[i]), int(by_label[i].sum()), dict(zip(KINDS, by_label[i].tolist(), strict=True)))
        for i, name in enumerate(costs.labels)
        if executions[i]
    ]
    return tuple(sorted(rows, key=lambda s: -s.cycles))


def _codelets(executable: Executable, ran: Ran) -> dict[str, CodeletProfile]:
    found: dict[str, CodeletProfile] = {}
    rows, origins = executable.costs.worker_codelet, executable.costs.origins
    batches = executable.batches
    counted = set(executable.counting.vertices[:, 2].tolist())
    for number, codelet in enumerate(executable.codelets):
        mine = rows[rows[:, 1] == number]
        executed = ran.counts[mine[:, 0]]
        vertices = int((batches[batches[:, 0] == number, 2] * batches[batches[:, 0] == number, 4]).sum())
        cycles = int((executed * mine[:, 3]).sum()) + int(ran.totals[number]) * codelet.workers // COUNTED_UNIT
        by = {name: count for name, count in zip(ORIGINS, origins[number].tolist(), strict=True) if count}
        found[codelet.name] = CodeletProfile(codelet.name, vertices, int((executed * mine[:, 2]).sum()), cycles, by, number in counted)
    return found


def _collectives(executable: Executable, counts: Array) -> tuple[CollectiveProfile, ...]:
    served = [request.index if request.kind == "collective" else -1 for request in executable.yields]
    yields = executable.code[:, 0] == Op.YIELD
    index = np.where(yields, np.array([*served, -1], np.int64)[np.where(yields, executable.code[:, 1], -1)], -1)
    return tuple(
        CollectiveProfile(
            name=call.name,
            kind=call.kind,
            operator=call.operator,
            method=call.method,
            replicas=call.group_size,
            groups=executable.replicas // call.group_size,
            executions=int(counts[index == number].sum()),
            steps=call.steps,
            bytes_on_links_per_replica=-(-call.bytes_on_links // executable.replicas),
            cycles=call.cycles,
        )
        for number, call in enumerate(executable.collectives)
    )


def _links(executable: Executable, counts: Array) -> tuple[LinkProfile, ...]:
    replicas, one = executable.replicas, executable.target
    whole = one.with_ipus(one.num_ipus * replicas)
    carried: dict[Link, int] = defaultdict(int)
    for instruction, number, source, target, nbytes, shared in executable.costs.links.tolist():
        if total := nbytes * int(counts[instruction]):
            kind = LINK_KINDS[number]
            apart = one.num_ipus // (one.system.ipus_per_machine if kind.startswith("gateway") else 1)
            for replica in range(1 if shared else replicas):
                carried[Link(kind, source + replica * apart, target + replica * apart)] += total
    made = [LinkProfile(*link, nbytes, nbytes / bytes_per_second(whole, link)) for link, nbytes in carried.items()]
    return tuple(sorted(made, key=lambda each: (-each.busy_seconds, each.kind, each.source, each.target)))


def _versions() -> dict[str, str]:
    made: dict[str, str] = {}
    for name in ("popcore", "numpy", "numba", "llvmlite"):
        try:
            made[name] = version(name)
        except PackageNotFoundError:  # an uninstalled checkout
            made[name] = "not installed"
    return made
