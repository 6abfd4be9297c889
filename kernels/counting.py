"""Cycles that codelets count as they run: from the counters of a phase's vertices to the cycles of its slowest tile."""

from popcore.kernels import status as s
from popcore.kernels.native import larger, load64, part, store64


@part
def add_total(context, codelet, taken):
    """Add to what all vertices of a codelet have counted."""
    total = load64(context + s.TOTALS * 8) + codelet * 8
    store64(total, load64(total) + taken)
    return 0


@part
def count_replica(context, counts, replica):
    """Add up what the vertices of one replica have counted. Returns tile cycles of its slowest tile."""
    row, end, tile = load64(counts + s.COUNTS_VERTICES * 8), load64(counts + s.COUNTS_VERTICES_END * 8), load64(counts + s.COUNTS_TILES * 8)
    away = replica * load64(context + s.COUNTED_STRIDE * 8)
    slowest, longest, worker, together = 0, 0, 0, 0
    codelet, total = load64(row + s.COUNTED_CODELET * 8), 0
    while row < end:
        taken = load64(load64(row) + away)
        if load64(row + s.COUNTED_CODELET * 8) != codelet:
            if replica == 0:
                add_total(context, codelet, total)
            codelet, total = load64(row + s.COUNTED_CODELET * 8), 0
        total += taken
        start = load64(row + s.COUNTED_START * 8)
        if start == -2:
            together += taken * s.WORKERS
        else:
            worker = (worker if start == -1 else start) + taken * s.WORKERS
            longest = larger(longest, worker)
        if load64(row + s.COUNTED_LAST * 8) != 0:
            slowest = larger(slowest, larger(longest, load64(tile)) + load64(tile + 8) + together)
            longest, together = 0, 0
            tile += 16
        row += s.COUNTED_WORDS * 8
    if replica == 0:
        add_total(context, codelet, total)
    return (slowest + s.COUNTED_UNIT - 1) // s.COUNTED_UNIT


@part
def count_phase(context, counts, pc):
    """After a phase with counters: add what its slowest tile took, beyond what the costs have of it, to its instruction."""
    slowest = 0
    for replica in range(load64(context + s.REPLICAS * 8)):
        slowest = larger(slowest, count_replica(context, counts, replica))
    at = load64(context + s.TAKEN * 8) + pc * 8
    known = load64(counts + s.COUNTS_KNOWN * 8)
    store64(at, load64(at) + larger(slowest - known, 0))
    return 0
