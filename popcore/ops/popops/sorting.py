"""How rows are sorted: blocks of a row on tiles of their own, sorted there, then merged in pairs by a network.

The network is Batcher's merge exchange for any number of blocks (Knuth, The Art of Computer Programming 3, 5.2.2, algorithm M),
each comparison replaced by a merge of two blocks of which one keeps the lower and one the upper half: what is moved when is
fixed when the graph is built, as an exchange needs. Where few of the elements are wanted, blocks are merged as a tree instead
and never grow beyond them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, log2
from typing import Any

import numpy as np

from popcore.codelets import sort as codelets
from popcore.compiler.cost import EXCHANGE_GENERAL, EXECUTE
from popcore.errors import ElementTypeError
from popcore.graph import Graph, Tensor
from popcore.ops.popops import common
from popcore.ops.popops.placing import spread
from popcore.program import Sequence
from popcore.target import Target
from popcore.types import CHAR, INT, LONGLONG, SHORT, UNSIGNED_CHAR, UNSIGNED_INT, UNSIGNED_SHORT, Array, ElementType

_SIGNED: dict[int, Any] = {1: CHAR, 2: SHORT, 4: INT}
_UNSIGNED: dict[int, Any] = {1: UNSIGNED_CHAR, 2: UNSIGNED_SHORT, 4: UNSIGNED_INT}
_WORTH_A_WORKER = 16  # elements
_NO_NAN = {"float": 0x7F800000, "half": 0x7C00}  # bits of infinity
EACH = 12  # cycles an element of a merge: see codelets/sort.py


@dataclass(frozen=True)
class Keys:
    """How elements of a type become codes.

    bits: The signed type in which their bits are read, which is also that of codes without a low part.
    numbers: Fields of the codelets.
    """

    bits: Any
    numbers: tuple[tuple[str, int], ...]

    @property
    def decoding(self) -> dict[str, int]:
        return {name: n for name, n in self.numbers if name not in ("largest", "nan_above")}


def keys_of(dtype: ElementType, descending: bool, step: str) -> Keys:
    """Raises: ElementTypeError: a type that is not sorted."""
    if dtype.kind == "quarter" or dtype.nbytes not in _SIGNED:
        raise ElementTypeError(f"{step} of {dtype!r}", "FLOAT, HALF, BOOL, or integers of at most 32 bits")
    largest = (1 << (8 * dtype.nbytes - 1)) - 1
    nan = _NO_NAN.get(dtype.kind, largest)
    both = -largest - 1 if dtype.kind == "uint" else 0
    negative = largest if dtype.is_floating else both
    numbers = {"largest": largest, "nan_above": nan, "flip": both, "flip_negative": negative, "descending": -int(descending)}
    return Keys(_SIGNED[dtype.nbytes], tuple(numbers.items()))


@dataclass(frozen=True)
class Order:
    """Rows of codes in ascending order, on tiles.

    codes: (rows, wanted) view of what the last step wrote.
    """

    codes: Tensor
    keys: Keys
    with_low: bool

    def write_keys(self, graph: Graph, out: Tensor, prog: Sequence, step: str) -> None:
        """Write the keys to ``out``, (rows, wanted)."""
        if out.num_elements:
            bits = out.reinterpret(self.keys.bits)
            cls: Any = codelets.DecodeKey
            numbers = {**self.keys.decoding, "shift": 32 if self.with_low else 0}
            spread(graph, common.compute_set_of(graph, prog, step), cls[self.codes.dtype, bits.dtype], bits, {"codes": self.codes}, numbers)

    def write_low(self, graph: Graph, out: Tensor, prog: Sequence, step: str) -> None:
        """Write what goes with the keys."""
        if out.num_elements:
            bits = out.reinterpret(_UNSIGNED[out.dtype.nbytes])
            cls: Any = codelets.DecodeLow
            spread(graph, common.compute_set_of(graph, prog, step), cls[self.codes.dtype, bits.dtype], bits, {"codes": self.codes}, {})


def ordered(graph: Graph, t: Tensor, low: Tensor | str | None, wanted: int, descending: bool, prog: Sequence, step: str) -> Order:
    """The first ``wanted`` of each row of ``t``, a matrix with elements, in order.

    Args:
        low: What goes with a key: nothing, "index" for its place in the row, or a tensor of the shape of ``t``.
    """
    keys = keys_of(t.dtype, descending, step)
    rows, n = t.shape
    code: Any = LONGLONG if low is not None else keys.bits
    plan = plan_sort(graph.target, rows, n, wanted, code.nbytes)
    work = _Work(graph, plan, code, prog, step)
    work.sort_blocks(t, keys, low)
    codes = work.merge_tree() if plan.tree else work.merge_network()
    return Order(codes, keys, low is not None)


@dataclass(frozen=True)
class SortPlan:
    """``blocks`` of ``length`` codes a row, each on a tile; a tree of merges, or the network."""

    rows: int
    n: int
    wanted: int
    blocks: int
    length: int
    tree: bool
    num_tiles: int
    workers: int

    @property
    def tiles(self) -> Array:
        """int32[rows, blocks]"""
        count = self.rows * self.blocks
        place = np.arange(count) if count <= self.num_tiles else np.arange(count) * self.num_tiles // count
        return place.astype(np.int32).reshape(self.rows, self.blocks)

    @property
    def chunks(self) -> Array:
        """Where the workers' parts of a block begin, and the end of the last."""
        parts = max(1, min(self.workers, self.length // _WORTH_A_WORKER))
        return np.arange(parts + 1) * self.length // parts


@lru_cache(maxsize=256)
def plan_sort(target: Target, rows: int, n: int, wanted: int, nbytes: int) -> SortPlan:
    """The plan of fewest modelled cycles. Equal arguments give equal plans."""
    most = max(1, min(target.num_tiles // max(1, rows), n))
    counts = sorted({min(most, c) for e in range(most.bit_length()) for c in (1 << e, 3 << e)} | {most})
    best: tuple[float, SortPlan] | None = None
    for count in counts:
        length = -(-n // count)
        for tree in (False, True):
            made = SortPlan(rows, n, wanted, -(-n // length), length, tree, target.num_tiles, target.num_worker_contexts)
            cost = _cycles(made, target, nbytes)
            if best is None or cost < best[0]:
                best = cost, made
    assert best is not None
    return best[1]


def _cycles(plan: SortPlan, target: Target, nbytes: int) -> float:
    workers, width = target.num_worker_contexts, target.exchange_bytes_per_cycle
    per_tile = -(-plan.rows * plan.blocks // target.num_tiles)
    chunk = -(-plan.length // (plan.chunks.size - 1))
    local = per_tile * (workers * chunk * EACH * ceil(log2(max(2, chunk))) + 3 * (EXECUTE + EACH * plan.length + 40 * workers))

    def merges(steps: int, length: int) -> float:
        return steps * (EXECUTE + EXCHANGE_GENERAL + length * nbytes / width + EACH * length + 40 * workers)

    if plan.tree:
        kept, left, total = min(plan.wanted, plan.length), plan.blocks, 0.0
        while left > 1:
            left, kept = -(-left // 2), min(plan.wanted, 2 * kept)
            total += merges(1, kept)
        return local + total
    return local + merges(len(network(plan.blocks)), plan.length)


@lru_cache(maxsize=64)
def network(n: int) -> tuple[tuple[Array, Array], ...]:
    """Steps that sort ``n`` things: each compares things ``low`` with things ``high``, (int64[c], int64[c]), none of them twice."""
    return tuple(_network(n))


def _network(n: int) -> Iterator[tuple[Array, Array]]:
    top = 1 << max(0, (n - 1).bit_length() - 1)
    p, i = top, np.arange(n)
    while p > 0 and n > 1:
        q, r, d = top, 0, p
        while True:
            low = i[(i & p) == r]
            low = low[low + d < n]
            yield low, low + d
            if q == p:
                break
            d, q, r = q - p, q // 2, p
        p //= 2


class _Work:
    """Two buffers of all blocks, and steps that go from one to the other."""

    def __init__(self, graph: Graph, plan: SortPlan, code: Any, prog: Sequence, step: str) -> None:
        self.graph, self.plan, self.code, self.prog, self.step = graph, plan, code, prog, step
        count = plan.rows * plan.blocks
        self.tile = plan.tiles.reshape(-1)
        self.buffers = graph.add_variable(code, (2, count, plan.length), name=f"{step}/blocks")
        begin = np.arange(2 * count) * plan.length
        graph.map_intervals(self.buffers, begin, np.full(2 * count, plan.length), np.tile(self.tile, 2))
        self.size = count * plan.length  # of one buffer
        self.current = np.zeros(count, np.int64)  # which buffer each block is in

    def sort_blocks(self, t: Tensor, keys: Keys, low: Tensor | str | None) -> None:
        """Every block of the first buffer in order."""
        plan, cuts = self.plan, self.plan.chunks
        place = (np.arange(plan.blocks)[:, None] * plan.length + cuts[:-1]).reshape(-1)  # in a row
        width = np.tile(np.diff(cuts), plan.blocks)
        start = np.minimum(place, plan.n)
        source = (np.arange(plan.rows)[:, None] * plan.n + start).reshape(-1)
        filled = np.tile(np.minimum(place + width, plan.n) - start, plan.rows)
        target = (np.arange(plan.rows)[:, None] * plan.blocks * plan.length + place).reshape(-1)
        length = np.tile(width, plan.rows)
        flat = self.buffers.flatten()
        fields: dict[str, Any] = {
            "x": (t.reinterpret(keys.bits).flatten(), source, filled),
            "out": (flat, target, length),
            "scratch": (flat, target + self.size, length),
            **dict(keys.numbers),
        }
        cls: Any = codelets.SortRun
        types: tuple[Any, ...] = keys.bits, self.code
        if isinstance(low, Tensor):
            values = low.reinterpret(_UNSIGNED[low.dtype.nbytes]).flatten()
            cls, types = codelets.SortRunWithValue, (*types, values.dtype)
            fields["low"] = values, source, filled
        elif low is not None:
            cls, fields["start"] = codelets.SortRunWithIndex, np.tile(place, plan.rows).astype(np.uint32)
        cs = common.compute_set_of(self.graph, self.prog, f"{self.step}/sort")
        self.graph.add_vertices(cs, cls[types], fields, np.repeat(self.tile, cuts.size - 1))
        while cuts.size > 2:
            self._merge_chunks(cuts)
            cuts = np.append(cuts[:-1:2], cuts[-1])

    def _merge_chunks(self, cuts: Array) -> None:
        """Neighbouring chunks of every block merged; a chunk without a neighbour is copied."""
        begin, end = cuts[:-1:2], np.append(cuts[2::2], cuts[-1])[: cuts[:-1:2].size]
        middle = np.append(cuts[1::2], cuts[-1])[: begin.size]
        block = self._place(np.arange(self.tile.size))[:, None]
        fields = [(block + a).reshape(-1) for a in (begin, middle)]
        sizes = [np.tile(n, self.tile.size) for n in (middle - begin, end - middle)]
        self.current ^= 1
        out = (self._place(np.arange(self.tile.size))[:, None] + begin).reshape(-1)
        self._merge((fields[0], sizes[0]), (fields[1], sizes[1]), np.zeros(out.size, np.int64), (out, sizes[0] + sizes[1]), np.repeat(self.tile, begin.size))

    def merge_network(self) -> Tensor:
        plan = self.plan
        row = np.arange(plan.rows)[:, None] * plan.blocks
        for low, high in network(plan.blocks):
            a, b = (row + low).reshape(-1), (row + high).reshape(-1)
            both = np.concatenate([a, b])
            size = np.full(both.size, plan.length)
            sources = [np.tile(self._place(x), 2) for x in (a, b)]
            self.current[both] ^= 1
            first = np.repeat([0, plan.length], a.size)
            self._merge((sources[0], size), (sources[1], size), first, (self._place(both), size), self.tile[both])
        return self._result()

    def _result(self) -> Tensor:
        """(rows, wanted): the blocks of each row, where they are."""
        plan = self.plan
        flat = self.buffers.flatten()
        if not self.current.any() or self.current.all():
            whole = self.buffers[int(self.current[0])].reshape((plan.rows, plan.blocks * plan.length))
        else:
            ids = (self._place(np.arange(self.tile.size))[:, None] + np.arange(plan.length)).reshape(-1)
            whole = flat.select(ids).reshape((plan.rows, plan.blocks * plan.length))
        return whole.slice(0, plan.wanted, 1)

    def merge_tree(self) -> Tensor:
        plan = self.plan
        kept = min(plan.wanted, plan.length)
        lists = self.buffers.flatten(), self._place(np.arange(self.tile.size)).reshape(plan.rows, plan.blocks)
        length, tiles = np.full(plan.blocks, kept), plan.tiles
        while length.size > 1:
            pairs = -(-length.size // 2)
            a, b = length[::2], np.append(length[1::2], 0)[:pairs]
            out = np.minimum(a + b, plan.wanted)
            at = np.concatenate([lists[1][:, 1::2], np.zeros((plan.rows, pairs - length.size // 2), np.int64)], axis=1)
            begin = np.arange(plan.rows)[:, None] * out.sum() + np.cumsum(out) - out
            made = self.graph.add_variable(self.code, (plan.rows * int(out.sum()),), name=f"{self.step}/merged")
            tiles = tiles[:, ::2]
            self.graph.map_intervals(made, begin.reshape(-1), np.tile(out, plan.rows), tiles.reshape(-1))
            sizes = [np.tile(n, plan.rows) for n in (a, b, out)]
            source = lists[0]
            self._merge(
                (lists[1][:, ::2].reshape(-1), sizes[0]), (at.reshape(-1), sizes[1]), np.zeros(sizes[2].size, np.int64), (begin.reshape(-1), sizes[2]),
                tiles.reshape(-1), source, made,
            )  # fmt: skip
            lists, length = (made, begin), out
        if plan.blocks > 1:
            return lists[0].reshape((plan.rows, plan.wanted))
        return self.buffers[int(self.current[0])].slice(0, plan.wanted, 1)

    def _merge(
        self, a: tuple[Array, Array], b: tuple[Array, Array], first: Array, out: tuple[Array, Array], tile: Array, source: Any = None, target: Any = None
    ) -> None:
        flat = self.buffers.flatten()
        source, target = (flat if t is None else t for t in (source, target))
        cls: Any = codelets.MergeRuns
        cs = common.compute_set_of(self.graph, self.prog, f"{self.step}/merge")
        fields = {"a": (source, *a), "b": (source, *b), "first": first.astype(np.uint32), "out": (target, *out)}
        self.graph.add_vertices(cs, cls[self.code], fields, tile)

    def _place(self, block: Array) -> Array:
        """Where blocks are in the flattened buffers."""
        made: Array = self.current[block] * self.size + block * self.plan.length
        return made
