"""Combine the rows of a group of replicas, chunk by chunk, each in the order that it is told; NumPy on plain arrays.

A single pass over the data: what a ring would send around is summed in the ring's order in a block that stays in the cache, and
written to all rows at once. The result has the same bits as that of the ring.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

BLOCK_BYTES = 64 << 10  # of one row: sums stay in the second level of caches
TOGETHER_BYTES = 16 << 10  # chunks of less are combined all at once, since a call of NumPy costs as much as some 10 KB
SHARED_BYTES = 2 << 20  # data of less is not worth a second thread


def _keep_smaller(total, values, out):
    """As the native code has it: a NaN stays, and of two equal values the second is taken, which tells 0 from -0."""
    np.copyto(out, values, where=~((total < values) | (total != total)))


def _keep_larger(total, values, out):
    np.copyto(out, values, where=~((total > values) | (total != total)))


_COMBINE = {
    "add": np.add,
    "square_add": np.add,
    "mean": np.add,
    "mul": np.multiply,
    "min": _keep_smaller,
    "max": _keep_larger,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
}


def _taken(operator, values, sums):
    """A copy of what a row brings into a combination, in the type of the sums."""
    made = values.astype(sums)
    return np.multiply(made, made) if operator == "square_add" else made


def _add_next(operator, total, values):
    if operator == "square_add" or values.dtype != total.dtype:
        values = _taken(operator, values, total.dtype)
    _COMBINE[operator](total, values, out=total)


def _along(operator, chains, values, sums):
    """The total over chains of keys; ``values(key)`` is what a key brings."""
    total = None
    for chain in chains:
        part = _taken(operator, values(chain[0]), sums)
        for key in chain[1:]:
            _add_next(operator, part, values(key))
        if total is None:
            total = part
        else:
            _COMBINE[operator](total, part, out=total)
    return total


def reduce_rows(rows: Any, chunk: int, parts: Any, operator: str, sums: Any, targets: Any, threads: int) -> None:
    """Combine ``rows`` and write every chunk's result to the ``targets`` of its owner.

    rows       p arrays of n elements, which may be views into one larger array
    chunk      elements of a chunk; owner i has those from ``i * chunk`` on, as far as there are any
    parts      (begin, end, chains) of each part of a chunk: ``chains[owner]`` is tuples of row numbers
    sums       dtype that is summed in
    targets    ``targets(owner)``: (row, offset) pairs; the chunk is written to ``row[offset:]``
    """
    p, n = len(rows), len(rows[0])
    item = rows[0].itemsize
    with np.errstate(all="ignore"):
        if chunk * item < TOGETHER_BYTES:
            _together(rows, chunk, parts, operator, sums, targets)
            return
        step = max(1, BLOCK_BYTES // item)
        jobs = [
            (owner, at, min(at + step, owner * chunk + end, n), chains[owner])
            for owner in range(p)
            for begin, end, chains in parts
            for at in range(owner * chunk + begin, min(owner * chunk + end, n), step)
        ]
        if threads == 1 or p * n * item < SHARED_BYTES:
            _blocks(rows, chunk, operator, sums, targets, jobs)
            return
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(lambda k: _blocks(rows, chunk, operator, sums, targets, jobs[k::threads]), range(threads)))


def _blocks(rows, chunk, operator, sums, targets, jobs):
    p = len(rows)
    with np.errstate(all="ignore"):  # it belongs to the thread
        for owner, begin, end, chains in jobs:
            total = _along(operator, chains, lambda row, b=begin, e=end: rows[row][b:e], sums)
            _finish(operator, total, p)
            for row, offset in targets(owner):
                at = offset + begin - owner * chunk
                row[at : at + end - begin] = total


def _together(rows, chunk, parts, operator, sums, targets):
    """All chunks at once: one call of NumPy for each place in the chains."""
    p, n = len(rows), len(rows[0])
    padded = np.zeros((p, p * chunk), rows[0].dtype)
    for i, row in enumerate(rows):
        padded[i, :n] = row
    values = padded.reshape(p, p, chunk)
    owners = np.arange(p)
    totals = np.empty((p, chunk), sums)
    for begin, end, chains in parts:
        lines = [tuple(np.array([chains[o][c][k] for o in range(p)]) for k in range(len(chains[0][c]))) for c in range(len(chains[0]))]
        totals[:, begin:end] = _along(operator, lines, lambda ranks, b=begin, e=end: values[ranks, owners, b:e], sums)
    _finish(operator, totals, p)
    for owner in range(p):
        length = min(chunk, max(n - owner * chunk, 0))
        for row, offset in targets(owner):
            row[offset : offset + length] = totals[owner, :length]


def _finish(operator, total, p):
    if operator == "mean":
        np.divide(total, total.dtype.type(p), out=total)
