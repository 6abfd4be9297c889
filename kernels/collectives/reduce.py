"""Combine the rows of a group of replicas, chunk by chunk, each in the order that it is told; NumPy on plain arrays.

A single pass over the data: what a ring would send around is summed in the ring's order in a block that stays in the cache, and
written to all rows at once. The result has the same bits as that of the ring.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from popcore.kernels.behaviour import IEEE, LARGEST, NAN, OVERFLOWS

BLOCK_BYTES = 64 << 10  # of one row: sums stay in the second level of caches
TOGETHER_BYTES = 16 << 10  # chunks of less are combined all at once, since a call of NumPy costs as much as some 10 KB
SHARED_BYTES = 2 << 20  # data of less is not worth a second thread


def _keep_smaller(total, values, out):
    """As the native code has it: a NaN stays, and of two equal values the second is taken, which tells 0 from -0."""
    np.copyto(out, values, where=~((total < values) | (total != total)))
    _flush(out)


def _keep_larger(total, values, out):
    np.copyto(out, values, where=~((total > values) | (total != total)))
    _flush(out)


def _flush(chosen):
    """Denormals of what was chosen become zero where the processor flushes them; the native code cannot but do so."""
    if chosen.dtype == np.float32:
        np.multiply(chosen, np.float32(1), out=chosen)


def _of_floats(operation):
    """An operation (left, right, out, rule): halves are computed in float32 and rounded once, by ``rule``."""

    def combine(left, right, out, rule):
        if out.dtype == np.float16 and rule != IEEE:
            out[...] = _narrowed(operation(np.asarray(left, np.float32), np.asarray(right, np.float32)), rule)
        else:
            operation(left, right, out=out)

    return combine


def _narrowed(wide, rule):
    """As ``half.narrow`` has it: infinity gives NaN, too much is cut off."""
    if rule != IEEE:
        wide = wide - (wide - wide)
        wide = np.where(np.abs(wide) >= OVERFLOWS, np.float32(np.nan), wide) if rule == NAN else np.clip(wide, np.float32(-LARGEST), np.float32(LARGEST))
    return wide.astype(np.float16)


def _whatever(operation):
    return lambda left, right, out, rule: operation(left, right, out=out)


_ADD, _MULTIPLY, _DIVIDE = (_of_floats(operation) for operation in (np.add, np.multiply, np.divide))

_COMBINE = {
    "add": _ADD,
    "square_add": _ADD,
    "mean": _ADD,
    "mul": _MULTIPLY,
    "min": _whatever(_keep_smaller),
    "max": _whatever(_keep_larger),
    "logical_and": _whatever(np.logical_and),
    "logical_or": _whatever(np.logical_or),
}


def _taken(operator, values, sums, rule):
    """A copy of what a row brings into a combination, in the type of the sums."""
    made = values.astype(sums)
    if operator == "square_add":
        _MULTIPLY(made, made, made, rule)
    return made


def _add_next(operator, total, values, rule):
    if operator == "square_add" or values.dtype != total.dtype:
        values = _taken(operator, values, total.dtype, rule)
    _COMBINE[operator](total, values, total, rule)


def _along(operator, chains, values, sums, rule):
    """The total over chains of keys; ``values(key)`` is what a key brings."""
    total = None
    for chain in chains:
        part = _taken(operator, values(chain[0]), sums, rule)
        for key in chain[1:]:
            _add_next(operator, part, values(key), rule)
        if total is None:
            total = part
        else:
            _COMBINE[operator](total, part, total, rule)
    return total


def reduce_rows(rows: Any, chunk: int, parts: Any, operator: str, sums: Any, targets: Any, threads: int, rule: str, computing: Any) -> None:
    """Combine ``rows`` and write every chunk's result to the ``targets`` of its owner.

    rows       p arrays of n elements, which may be views into one larger array
    chunk      elements of a chunk; owner i has those from ``i * chunk`` on, as far as there are any
    parts      (begin, end, chains) of each part of a chunk: ``chains[owner]`` is tuples of row numbers
    sums       dtype that is summed in
    targets    ``targets(owner)``: (row, offset) pairs; the chunk is written to ``row[offset:]``
    rule       of halves that overflow, see ``behaviour``
    computing  makes a context manager that each thread computes in
    """
    p, n = len(rows), len(rows[0])
    item = rows[0].itemsize
    with np.errstate(all="ignore"):
        if chunk * item < TOGETHER_BYTES:
            with computing():
                _together(rows, chunk, parts, operator, sums, targets, rule)
            return
        step = max(1, BLOCK_BYTES // item)
        jobs = [
            (owner, at, min(at + step, owner * chunk + end, n), chains[owner])
            for owner in range(p)
            for begin, end, chains in parts
            for at in range(owner * chunk + begin, min(owner * chunk + end, n), step)
        ]
        if threads == 1 or p * n * item < SHARED_BYTES:
            _blocks(rows, chunk, operator, sums, targets, jobs, rule, computing)
            return
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(lambda k: _blocks(rows, chunk, operator, sums, targets, jobs[k::threads], rule, computing), range(threads)))


def _blocks(rows, chunk, operator, sums, targets, jobs, rule, computing):
    p = len(rows)
    with np.errstate(all="ignore"), computing():  # both belong to the thread
        for owner, begin, end, chains in jobs:
            total = _along(operator, chains, lambda row, b=begin, e=end: rows[row][b:e], sums, rule)
            _finish(operator, total, p, rule)
            for row, offset in targets(owner):
                at = offset + begin - owner * chunk
                row[at : at + end - begin] = _as(row.dtype, total, rule)


def _together(rows, chunk, parts, operator, sums, targets, rule):
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
        totals[:, begin:end] = _along(operator, lines, lambda ranks, b=begin, e=end: values[ranks, owners, b:e], sums, rule)
    _finish(operator, totals, p, rule)
    for owner in range(p):
        length = min(chunk, max(n - owner * chunk, 0))
        for row, offset in targets(owner):
            row[offset : offset + length] = _as(row.dtype, totals[owner, :length], rule)


def _as(dtype, total, rule):
    """A total in the type of the rows."""
    return total if total.dtype == dtype else _narrowed(total, rule)


def _finish(operator, total, p, rule):
    if operator == "mean":
        _DIVIDE(total, total.dtype.type(p), total, rule)
