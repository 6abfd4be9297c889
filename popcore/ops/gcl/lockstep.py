"""Collectives over the IPUs of one replica, written out as copies between IPUs and compute sets: all IPUs in step, as their schedule says."""

from __future__ import annotations

from collections.abc import Sequence as Items

from popcore.executable.schedules import Algorithm, CollectiveOperator, chunk_bounds, chunk_elements, rank_chains
from popcore.graph import Graph, Tensor, concat
from popcore.ops.popops.expr import And, Expr, Lt, NotEqual, Or, PlaceHolder, Select
from popcore.ops.popops.mapping import map_in_place
from popcore.program import Copy, Sequence

_A, _B = PlaceHolder(1), PlaceHolder(2)  # what came, and one's own
_COMBINE: dict[CollectiveOperator, Expr] = {
    CollectiveOperator.ADD: _A + _B,
    CollectiveOperator.MUL: _A * _B,
    CollectiveOperator.MIN: Select(_A, _B, Or(Lt(_A, _B), NotEqual(_A, _A))),  # a NaN stays
    CollectiveOperator.MAX: Select(_A, _B, Or(Lt(_B, _A), NotEqual(_A, _A))),
    CollectiveOperator.LOGICAL_AND: And(_A, _B),
    CollectiveOperator.LOGICAL_OR: Or(_A, _B),
}


class Lockstep:
    """Some tensors that are alike, one on each of p ranks; several such sets go at once.

    Args:
        sets: Of each set the tensor of each rank, flat: all of its elements on one IPU, say.
        rings, inner: ``schedules.rings_of``.
    """

    def __init__(
        self, graph: Graph, sets: Items[Items[Tensor]], algorithm: Algorithm, rings: Items[Items[int]], inner: int, program: Sequence, name: str
    ) -> None:
        self._graph, self._sets, self._algorithm, self._program, self._name = graph, sets, algorithm, program, name
        self._rings, self._inner, self._p = rings, inner, len(rings[0])

    def reduce_scatter(self, operator: CollectiveOperator) -> list[list[Tensor]]:
        """Of each set, for each rank its chunk of the result, where that rank has it."""
        parts = range(self._algorithm.parts)
        totals = [self._chains(one, rank, part) for one in range(len(self._sets)) for rank in range(self._p) for part in parts]
        longest = max(len(chain) for chains in totals for chain in chains)
        some = [chains for chains in totals if chains[0][0].num_elements]
        for hop in range(1, longest if some else 0):
            self._step([(chain, hop) for chains in some for chain in chains if hop < len(chain)], operator, f"{self._name}/step{hop}")
        for number in range(1, max(map(len, some), default=0)):
            self._join(some, number, operator)
        found = iter(chains[-1][-1] for chains in totals)
        return [[concat([next(found) for _ in parts]) for _ in range(self._p)] for _ in self._sets]

    def all_gather(self, results: Items[Items[Tensor]]) -> None:
        """Of each set hand every rank's chunk on to all. Needs: rank i's chunk i of ``results`` is there."""
        for number, hops in enumerate(self._algorithm.hand_on(self._p, self._inner)):
            pairs: list[tuple[Tensor, Tensor]] = []
            for part, sender, receiver, owner in hops:
                ring = self._rings[part]
                for rows in results:
                    begin, end = self._bounds(rows[0].num_elements, ring[owner], part)
                    if begin < end:
                        pairs.append((rows[ring[sender]][begin:end], rows[ring[receiver]][begin:end]))
            self._copy(pairs, f"{self._name}/gather{number}")

    def _bounds(self, elements: int, owner: int, part: int) -> tuple[int, int]:
        """Begin and end of a part of a chunk."""
        begin, end = chunk_bounds(elements, self._p, owner)
        low, high = self._algorithm.bounds(chunk_elements(elements, self._p))[part]
        return min(begin + low, end), min(begin + high, end)

    def _chains(self, one: int, owner: int, part: int) -> list[list[Tensor]]:
        """What each rank of each chain brings; as hops are made, it becomes the sum up to there."""
        rows = self._sets[one]
        begin, end = self._bounds(rows[0].num_elements, owner, part)
        chains = rank_chains(self._algorithm, self._rings[part], part, self._inner)[owner]
        return [[rows[rank][begin:end] for rank in chain] for chain in chains]

    def _step(self, hops: list[tuple[list[Tensor], int]], operator: CollectiveOperator, name: str) -> None:
        """Send the sum before each hop to it, and combine."""
        made = [self._graph.clone(chain[hop], name=f"{name}/received") for chain, hop in hops]
        self._copy([(chain[hop - 1], to) for (chain, hop), to in zip(hops, made, strict=True)], name)
        self._combine(made, [chain[hop] for chain, hop in hops], operator, name)
        for (chain, hop), to in zip(hops, made, strict=True):
            chain[hop] = to

    def _join(self, totals: list[list[list[Tensor]]], number: int, operator: CollectiveOperator) -> None:
        """Combine the sum of the chains before with that of one chain; where they meet, the sum of the second goes to the first."""
        name = f"{self._name}/join{number}"
        if self._algorithm.meets:
            made = [self._graph.clone(chains[0][-1], name=f"{name}/received") for chains in totals]
            self._copy([(chains[number][-1], to) for chains, to in zip(totals, made, strict=True)], name)
            self._combine([chains[0][-1] for chains in totals], made, operator, name)
            for chains in totals:
                chains[number][-1] = chains[0][-1]
            return
        made = [self._graph.clone(chains[number][-1], name=f"{name}/received") for chains in totals]
        self._copy([(chains[number - 1][-1], to) for chains, to in zip(totals, made, strict=True)], name)
        self._combine(made, [chains[number][-1] for chains in totals], operator, name)
        for chains, to in zip(totals, made, strict=True):
            chains[number][-1] = to

    def _copy(self, pairs: list[tuple[Tensor, Tensor]], name: str) -> None:
        if pairs:  # else all chunks of this step are empty
            self._program.add(Copy(*_flat(pairs), name=name))

    def _combine(self, totals: list[Tensor], own: list[Tensor], operator: CollectiveOperator, name: str) -> None:
        map_in_place(self._graph, _COMBINE[operator], list(_flat(list(zip(totals, own, strict=True)))), self._program, name)


def _flat(pairs: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    return concat([a for a, _ in pairs]), concat([b for _, b in pairs])
