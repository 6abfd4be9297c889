"""Collectives over the IPUs of one replica: tensors whose first dimension is *ranks*, one IPU each or several equal ones.

Rank i of R lies on IPUs ``i * k`` to ``(i + 1) * k - 1`` of the graph's k * R, every rank in the same way. Nothing is asked of the
host: the steps of the schedule become copies and compute sets, so their cycles are those of any others.
"""

from __future__ import annotations

from collections.abc import Sequence as Items
from dataclasses import dataclass

import numpy as np

from popcore.debug import user_site
from popcore.errors import ShapeError, TileMappingError
from popcore.executable.schedules import CollectiveOperator, choose, chunk_bounds, rings_of
from popcore.graph import Graph, Tensor, concat
from popcore.ops.gcl.buckets import Tensors, by_type, like, listed, pairs
from popcore.ops.gcl.lockstep import Lockstep
from popcore.ops.gcl.options import Options, read_options
from popcore.ops.popops.cast import cast
from popcore.ops.popops.expr import Const, PlaceHolder, Square
from popcore.ops.popops.mapping import map as map_elements
from popcore.ops.popops.mapping import map_in_place
from popcore.ops.poputil import duplicate
from popcore.program import Copy, Sequence
from popcore.program.collectives import require_operator
from popcore.topology import wiring_of

Interval = tuple[int, int]


@dataclass(frozen=True)
class Chunk:
    """A share of a tensor, on one IPU.

    index    the rank that owns it: the i-th share of what all ranks hold
    offset   the IPU within the rank
    """

    tensor: Tensor
    index: int
    offset: int


@dataclass(frozen=True)
class Chunks:
    """The shares of all IPUs, by IPU. ``original_input``: what was reduced, or any tensor laid out like what a gather is to give."""

    original_input: Tensor
    chunks: tuple[Chunk, ...]


def all_reduce_within_replica(
    graph: Graph, to_reduce: Tensors, operator: CollectiveOperator, program: Sequence, name: str = "", options: Options = None
) -> Tensor | list[Tensor]:
    """A new tensor like ``to_reduce``, in each row of which, on the row's IPU, all rows are combined.

    Args:
        to_reduce: Its first dimension is ranks. Several tensors go in the same steps.
        options: As for ``all_reduce_cross_replica``.

    Raises:
        ShapeError: IPUs that the first dimension does not divide.
        TileMappingError: a row that is not on its IPU, or laid out over its rank's IPUs otherwise than the first.
        ElementTypeError: the operator has no meaning for the element type.
    Costs: a copy between neighbours and a compute set for each step of the schedule, and a copy for each step back.
    """
    results = [graph.clone(each, name=f"{name or 'all_reduce'}/result") for each in listed("all_reduce_within_replica", to_reduce)]
    all_reduce_to_destination_within_replica(graph, to_reduce, results, operator, program, name, options)
    return like(to_reduce, results)


def all_reduce_in_place_within_replica(
    graph: Graph, data: Tensors, operator: CollectiveOperator, program: Sequence, name: str = "", options: Options = None
) -> None:
    """``all_reduce_within_replica`` into ``data`` itself."""
    all_reduce_to_destination_within_replica(graph, data, data, operator, program, name, options)


def all_reduce_to_destination_within_replica(
    graph: Graph, to_reduce: Tensors, destination: Tensors, operator: CollectiveOperator, program: Sequence, name: str = "", options: Options = None
) -> None:
    """``all_reduce_within_replica`` into a tensor, or tensors, that are there already and laid out alike."""
    for group in by_type(pairs("all_reduce_within_replica", to_reduce, destination)):
        for source, target in group:
            if source.shape != target.shape or source.dtype is not target.dtype:
                raise ShapeError(f"all_reduce_within_replica ({user_site()}) of {source!r} into {target!r}", "tensors of one shape and type")
        if operator is CollectiveOperator.LOCAL:
            for source, target in group:
                if source is not target:
                    program.add(Copy(source, target, name=name))
            continue
        shares = _reduce_scatter(graph, [source for source, _ in group], operator, program, name or "all_reduce", options)
        _all_gather(graph, list(zip(shares, [target for _, target in group], strict=True)), program, name or "all_reduce", options)


def reduce_scatter_within_replica(
    graph: Graph, to_reduce: Tensor, operator: CollectiveOperator, program: Sequence, name: str = "", options: Options = None
) -> Chunks:
    """All rows of ``to_reduce`` combined, of which each IPU gets a share: that of rank i the i-th of ``ceil(n / ranks)`` elements, as far as there are any.

    Raises: as ``all_reduce_within_replica``.
    """
    return _reduce_scatter(graph, [to_reduce], operator, program, name or "reduce_scatter", options)[0]


def _reduce_scatter(graph: Graph, tensors: list[Tensor], operator: CollectiveOperator, program: Sequence, step: str, options: Options) -> list[Chunks]:
    """Of tensors of one element type, all in the same steps."""
    for each in tensors:
        require_operator(operator, each, user_site())
    dtype, partials = tensors[0].dtype, read_options(options)["partials"] or tensors[0].dtype
    layouts = [_Ranks(graph, each, step) for each in tensors]
    brought = tensors if partials is dtype else [cast(graph, each, partials, program, f"{step}/partials") for each in tensors]
    if operator is CollectiveOperator.SQUARE_ADD:
        brought = [map_elements(graph, Square(PlaceHolder(1)), [each], program, f"{step}/square") for each in brought]
    sets = [one for layout, each in zip(layouts, brought, strict=True) for one in layout.sets(each)]
    count = _common(layouts, step)
    if operator is CollectiveOperator.LOCAL:
        shares = [[row[slice(*chunk_bounds(row.num_elements, count, i))] for i, row in enumerate(one)] for one in sets]
    elif count == 1:
        shares = [[duplicate(graph, one[0], program, step)] for one in sets]
    else:
        sums = (CollectiveOperator.SQUARE_ADD, CollectiveOperator.MEAN)
        lockstep = _lockstep(graph, layouts, sets, "reduce_scatter", program, step, options)
        shares = lockstep.reduce_scatter(CollectiveOperator.ADD if operator in sums else operator)
    if operator is CollectiveOperator.MEAN:
        map_in_place(graph, PlaceHolder(1) / Const(float(count)), [concat([t for one in shares for t in one])], program, f"{step}/mean")
    if partials is not dtype:
        shares = [[cast(graph, t, dtype, program, f"{step}/rounded") for t in one] for one in shares]
    found, rest = [], iter(shares)
    for layout, each in zip(layouts, tensors, strict=True):
        mine = [next(rest) for _ in range(layout.ipus_each)]
        found.append(Chunks(each, tuple(Chunk(mine[j][i], i, j) for i in range(count) for j in range(layout.ipus_each))))
    return found


def all_gather_within_replica(graph: Graph, chunks: Chunks, program: Sequence, name: str = "", options: Options = None) -> Tensor:
    """A new tensor like ``chunks.original_input`` in each row of which, on the row's IPU, all shares are in the order of their ranks."""
    result = graph.clone(chunks.original_input, name=f"{name or 'all_gather'}/result")
    all_gather_to_destination_within_replica(graph, chunks, result, program, name, options)
    return result


def all_gather_to_destination_within_replica(
    graph: Graph, chunks: Chunks, destination: Tensor, program: Sequence, name: str = "", options: Options = None
) -> None:
    """``all_gather_within_replica`` into a tensor that is there already.

    Raises: ShapeError: shares that are not those of the destination.
    """
    _all_gather(graph, [(chunks, destination)], program, name or "all_gather", options)


def _all_gather(graph: Graph, gathered: list[tuple[Chunks, Tensor]], program: Sequence, step: str, options: Options) -> None:
    layouts = [_Ranks(graph, destination, step) for _, destination in gathered]
    sets, own = [], []
    for layout, (chunks, destination) in zip(layouts, gathered, strict=True):
        rows = layout.sets(destination)
        sets += rows
        for chunk in chunks.chunks:
            row = rows[chunk.offset][chunk.index]
            begin, end = chunk_bounds(row.num_elements, layout.count, chunk.index)
            if chunk.tensor.num_elements != end - begin:
                raise ShapeError(f"{step}: the share of rank {chunk.index} is {chunk.tensor!r}, of {destination!r} it has {end - begin:,} elements")
            own.append((chunk.tensor.flatten(), row[begin:end]))
    program.add(Copy(concat([a for a, _ in own]), concat([b for _, b in own]), name=f"{step}/own"))
    if _common(layouts, step) > 1:
        _lockstep(graph, layouts, sets, "all_gather", program, step, options).all_gather(sets)


def concat_chunks(graph: Graph, chunks: Chunks) -> Tensor:
    """All shares as one flat tensor, in the order of what was reduced; each stays where it is."""
    ranks = _Ranks(graph, chunks.original_input, "concat_chunks")
    of_offset = [concat([c.tensor.flatten() for c in sorted(chunks.chunks, key=lambda c: c.index) if c.offset == j]) for j in range(ranks.ipus_each)]
    return ranks.whole(of_offset)


class _Ranks:
    """How the rows of a tensor lie over the IPUs."""

    def __init__(self, graph: Graph, tensor: Tensor, what: str) -> None:
        ipus, site = graph.target.num_ipus, user_site()
        self.count = tensor.shape[0] if tensor.rank else 0
        if not self.count or ipus % self.count:
            raise ShapeError(f"{what} ({site}) of {tensor!r} on {ipus} IPUs", f"a first dimension of ranks, a divisor of {ipus}")
        self.ipus_each = ipus // self.count
        self._places = self._of_row(graph, tensor[0].flatten(), 0, what)
        for rank in range(1, self.count):
            if self._of_row(graph, tensor[rank].flatten(), rank, what) != self._places:
                raise TileMappingError(f"{what} ({site}) of {tensor!r}: row {rank} lies over its IPUs otherwise than row 0", "the same for every rank")

    def sets(self, tensor: Tensor) -> list[list[Tensor]]:
        """For each IPU of a rank, what each rank has there."""
        rows = [row.flatten() for row in tensor]
        return [[_joined(row, intervals) for row in rows] for intervals in self._places]

    def whole(self, of_offset: Items[Tensor]) -> Tensor:
        """The reverse for one row."""
        pieces: list[tuple[int, Tensor]] = []
        for tensor, intervals in zip(of_offset, self._places, strict=True):
            done = 0
            for begin, end in intervals:
                pieces.append((begin, tensor[done : done + end - begin]))
                done += end - begin
        return concat([piece for _, piece in sorted(pieces, key=lambda each: each[0])]) if pieces else of_offset[0]

    def _of_row(self, graph: Graph, row: Tensor, rank: int, what: str) -> list[list[Interval]]:
        """For each IPU of the rank the intervals of the row that lie there."""
        begin, end, tile = graph.tile_intervals(row)
        ipu = tile // graph.target.tiles_per_ipu - rank * self.ipus_each
        if int((end - begin).sum()) != row.num_elements or (len(ipu) and (ipu.min() < 0 or ipu.max() >= self.ipus_each)):
            first, last = rank * self.ipus_each, (rank + 1) * self.ipus_each - 1
            where = f"IPU {first}" if first == last else f"IPUs {first} to {last}"
            raise TileMappingError(f"{what} ({user_site()}): row {rank}, {row!r}, is not all on {where}", f"map it to {where}")
        found: list[list[Interval]] = [[] for _ in range(self.ipus_each)]
        heads = np.flatnonzero(np.diff(ipu, prepend=-1))
        lasts = np.append(heads[1:], ipu.size) - 1
        for head, last in zip(heads.tolist(), lasts[: heads.size].tolist(), strict=True):
            found[int(ipu[head])].append((int(begin[head]), int(end[last])))
        return found


def _joined(row: Tensor, intervals: Items[Interval]) -> Tensor:
    return concat([row[begin:end] for begin, end in intervals]) if intervals else row[0:0]


def _common(layouts: list[_Ranks], what: str) -> int:
    counts = {layout.count for layout in layouts}
    if len(counts) > 1:
        raise ShapeError(f"{what} ({user_site()}) of tensors of {sorted(counts)} ranks at once", "as many ranks in each")
    return counts.pop()


def _lockstep(graph: Graph, layouts: list[_Ranks], sets: list[list[Tensor]], kind: str, program: Sequence, name: str, options: Options) -> Lockstep:
    count, ipus_each = layouts[0].count, layouts[0].ipus_each
    firsts = [rank * ipus_each for rank in range(count)]
    nbytes = sum(one[0].num_elements for one in sets) * sets[0][0].dtype.nbytes // (1 if kind == "reduce_scatter" else count)
    algorithm = choose(read_options(options)["method"], kind, count, nbytes, wiring_of(graph.target, firsts, ipus_each))
    return Lockstep(graph, sets, algorithm, *rings_of(algorithm, graph.target, firsts, ipus_each), program, name)
