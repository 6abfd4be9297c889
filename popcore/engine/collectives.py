"""What the host does for a collective: moves and combines what lies in the memories of all replicas."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

import numpy as np

from popcore.dialect.environment import denormals
from popcore.engine.schedule import Shuffle
from popcore.executable import CollectiveCall
from popcore.executable.schedules import ALGORITHMS, chunk_bounds, chunk_elements, members_of, rank_chains
from popcore.kernels import objects
from popcore.kernels.behaviour import IEEE
from popcore.kernels.collectives import BLOCK_BYTES
from popcore.kernels.collectives.reduce import reduce_rows
from popcore.native import cache_folder, falls_back
from popcore.types import HALF, Array

SHARED_BYTES = 1 << 20  # data of less is not worth a second thread
LINE = 64  # bytes
_REDUCER = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)


class Reduction:
    """An all-reduce of what lies at the same places of all replicas' memories, in place, ready to run any number of times.

    Args:
        spans: int64[k, 2], (byte of a replica's memory, bytes), in the tensor's order.
        memory: uint8[replicas, bytes]
        rule: Of halves that overflow, see ``kernels.behaviour``.
        shuffle: Gives an order to the tensor's parts and to the groups.
    """

    def __init__(self, call: CollectiveCall, spans: Array, memory: Array, threads: int, rule: str, shuffle: Shuffle | None = None) -> None:
        self._call, self._spans, self._memory, self._rule = call, spans, memory, rule
        self._shuffle = shuffle
        self._idle = call.operator == "local" or not call.elements
        self._function = (
            None if self._idle or falls_back() else _reducer(call.dtype.numpy.name, call.operator, call.partials.numpy.name, rule if call.dtype is HALF else "")
        )
        self._keep: list[Array] = []
        self._contexts: list[Array] = []  # of each group, int64[threads, 8]
        if self._function is not None:
            self._prepare(threads)

    def run(self) -> None:
        """Do it once."""
        if self._idle:
            return
        if self._function is None:
            self._by_numpy()
            return
        for contexts in self._contexts:
            addresses = [each.ctypes.data for each in contexts]
            if len(addresses) == 1:
                self._compute(addresses[0])
                continue
            with ThreadPoolExecutor(len(addresses)) as pool:
                list(pool.map(self._compute, addresses))

    def _compute(self, address: int) -> None:
        assert self._function is not None
        with denormals(flush=self._rule != IEEE):
            self._function(address)

    def _prepare(self, threads: int) -> None:
        """The tables that ``kernels.collectives.native`` describes."""
        call, p = self._call, self._call.group_size
        chunk = chunk_elements(call.elements, p)
        parts = _parts(call.method, call.rings, call.inner, chunk)
        ranks = np.array([[sum(chains, ()) for chains in of_owner] for _, _, of_owner in parts], np.int64).reshape(-1, p)
        length = len(ALGORITHMS[call.method].chains(0, p, 0, call.inner)[0])
        block = BLOCK_BYTES // call.partials.nbytes
        jobs = _jobs(self._spans, call.dtype.nbytes, chunk, [(begin, end) for begin, end, _ in parts], call.elements, p, block)
        if self._shuffle is not None:
            jobs = np.ascontiguousarray(jobs[self._shuffle.order(len(jobs))])
        shares = threads if len(jobs) >= threads and call.elements * call.dtype.nbytes * p >= SHARED_BYTES else 1
        cuts = [len(jobs) * i // shares for i in range(shares + 1)]
        scratch = np.zeros((shares, 2 * BLOCK_BYTES + LINE), np.uint8)
        scratches = [-(-row.ctypes.data // LINE) * LINE for row in scratch]
        self._keep += [jobs, scratch]
        for members in _in_order(members_of(call.group_type, p, len(self._memory)), self._shuffle):
            targets = self._memory.ctypes.data + self._memory.strides[0] * np.array(members, np.int64)
            chains = np.ascontiguousarray(targets[ranks])
            self._keep += [targets, chains]
            rows = [
                (jobs.ctypes.data, cuts[i], cuts[i + 1], chains.ctypes.data, p, length, scratches[i], targets.ctypes.data)
                for i in range(shares)
            ]  # fmt: skip
            self._contexts.append(np.array(rows, np.int64))

    def _by_numpy(self) -> None:
        """The same without native code: out of the memories, and back."""
        call, spans = self._call, self._spans.tolist()
        values = np.concatenate([self._memory[:, at : at + nbytes] for at, nbytes in spans], axis=1).view(call.dtype.numpy)
        perform(call, values, values, 1, self._rule)
        out, done = values.view(np.uint8), 0
        for at, nbytes in spans:
            self._memory[:, at : at + nbytes] = out[:, done : done + nbytes]
            done += nbytes


def _in_order(groups: Sequence[Sequence[int]], shuffle: Shuffle | None) -> list[Sequence[int]]:
    """Groups of replicas, one after the other or as ``shuffle`` has it."""
    return list(groups) if shuffle is None else [groups[i] for i in shuffle.order(len(groups)).tolist()]


def _jobs(spans: Array, width: int, chunk: int, parts: Sequence[tuple[int, int]], elements: int, p: int, block: int) -> Array:
    """Runs of elements that lie in one span, one part of one chunk, and are no more than a block of so many: int64[n, 3], see ``kernels.collectives.native``."""
    span_first = np.concatenate([[0], np.cumsum(spans[:, 1] // width)])
    starts = [np.arange(begin, elements, chunk) for begin, _ in parts]
    cuts = np.unique(np.concatenate([span_first, *starts, np.arange(0, elements, block)]))
    first, count = cuts[:-1], np.diff(cuts)
    span = np.searchsorted(span_first, first, "right") - 1
    owner, within = np.divmod(first, chunk)
    part = np.searchsorted([begin for begin, _ in parts], within, "right") - 1
    at = spans[span, 0] + (first - span_first[span]) * width
    return np.ascontiguousarray(np.stack([at, count, part * p + owner], 1).astype(np.int64))


@lru_cache(maxsize=128)
def _reducer(dtype: str, operator: str, sums: str, rule: str) -> Callable[[int], int]:
    """The native reduction of an element type and an operator, summing in a type."""
    symbol = f"popcore_reduce_{dtype}_{operator}_{sums}_{rule}"

    def build() -> bytes:
        from popcore.kernels import native
        from popcore.kernels.collectives.native import make_reducer

        made: bytes = native.compile_object({symbol: make_reducer(dtype, operator, sums, rule)})
        return made

    (address,) = objects.load(objects.Cache(cache_folder()), objects.key_of("reduction", dtype, operator, sums, rule), (symbol,), build)
    return _REDUCER(address)


def perform(call: CollectiveCall, source: Array, result: Array, threads: int, rule: str, shuffle: Shuffle | None = None) -> None:
    """Do one collective, halves by a rule of overflow.

    source, result    [replicas, elements], views of the staging areas; an all-reduce has the same for both
    shuffle           gives an order to the groups
    """
    for members in _in_order(members_of(call.group_type, call.group_size, len(source)), shuffle):
        rows, to = [source[m] for m in members], [result[m] for m in members]
        match call.kind:
            case "all_reduce" | "reduce_scatter":
                _reduce(call, rows, to, threads, rule)
            case "all_gather":
                for row in to:
                    for rank, values in enumerate(rows):
                        row[rank * call.elements : (rank + 1) * call.elements] = values
            case "all_to_all":
                share = call.elements // call.group_size
                for rank, row in enumerate(to):
                    for other, values in enumerate(rows):
                        row[other * share : (other + 1) * share] = values[rank * share : (rank + 1) * share]
            case "broadcast":
                for row in to:
                    row[:] = rows[call.root]


def _reduce(call: CollectiveCall, rows: Sequence[Array], to: Sequence[Array], threads: int, rule: str) -> None:
    p, scattered = len(rows), call.kind == "reduce_scatter"
    chunk = chunk_elements(call.elements, p)
    if scattered:
        for row in to:
            row[:] = 0  # where a chunk ends early
    if call.operator == "local":
        for rank, row in enumerate(to):
            begin, end = chunk_bounds(call.elements, p, rank) if scattered else (0, call.elements)
            row[: end - begin] = rows[rank][begin:end]
        return
    if not call.elements:
        return

    def targets(owner: int) -> list[tuple[Array, int]]:
        return [(to[owner], 0)] if scattered else [(row, owner * chunk) for row in to]

    parts = _parts(call.method, call.rings, call.inner, chunk)
    reduce_rows(rows, chunk, parts, call.operator, call.partials.numpy, targets, threads, rule, lambda: denormals(flush=rule != IEEE))


@lru_cache(maxsize=64)
def _parts(method: str, rings: tuple[tuple[int, ...], ...], inner: int, chunk: int) -> tuple[Any, ...]:
    """(begin, end, chains of each owner) of each part of a chunk."""
    algorithm = ALGORITHMS[method]
    return tuple(
        (begin, end, rank_chains(algorithm, ring, part, inner))
        for part, ((begin, end), ring) in enumerate(zip(algorithm.bounds(chunk), rings, strict=False))
        if begin < end
    )
