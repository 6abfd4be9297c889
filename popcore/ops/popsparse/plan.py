"""The planner: into how many parts rows, columns and batch of a product are cut, each part on a tile of its own; and what vertices cost.

The structure is that of PopLibs' estimators for popsparse, with their constants: a worker's start, a start for each row, a loop over the row's entries for each
vector of the batch; of blocks, loading each into the product unit and a pass over the batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from popcore.compiler.cost import EXCHANGE_GENERAL, EXECUTE
from popcore.ops.poplin.cost import sum_cycles
from popcore.ops.poplin.plan import cuts
from popcore.ops.popsparse.formats import Sides
from popcore.ops.popsparse.params import Settings, Sizes
from popcore.target import Target
from popcore.types import Array, ElementType

_SUPERVISOR, _WORKER, _ROW = 30, {"float": 30, "half": 33}, {"float": 13, "half": 12}
_VECTOR, _ENTRY = {"float": (4, 12), "half": (8, 16)}, 3  # elements and start of a loop over a row's entries; cycles of an entry in it
_REST, _REST_ENTRY = {"float": 8, "half": 13}, 2
_BLOCK_SUPERVISOR, _BLOCK_LOAD, _BLOCK_PASS_LOAD, _BLOCK_WORKER = 40, 3, 12, 26
_BLOCK_START = {4: {"float": 14, "half": 19}, 8: {"float": 23, "half": 23}, 16: {"half": 24}}
_BLOCK_PASS = {4: {"float": 4, "half": 2}, 8: {"float": 8, "half": 4}, 16: {"half": 4}}
_ZEROS = 10  # a worker's cycles before it writes zeros, two FLOAT sums a cycle
_BUCKET = {True: 47 + 46, False: 46 + 56}  # of the supervisor: to find what is its own in a bucket of elements, of blocks
_SIGMAS, _SPARE = 5, 2  # room in a bucket for the spread of a random pattern: so many deviations of a count, and blocks


@dataclass(frozen=True)
class Plan:
    """How ``[m, k]``, sparse, times ``[k, n]`` is done."""

    sizes: Sizes
    sides: Sides
    m_parts: int
    k_parts: int
    n_parts: int
    capacity: int  # blocks of a bucket whose pattern is not known
    cycles: int

    @property
    def m_cuts(self) -> Array:
        """int64[m_parts + 1]: where each part begins, and the end of the last; elements."""
        return cuts(self.sizes.m, self.m_parts, self.sides[0])

    @property
    def k_cuts(self) -> Array:
        return cuts(self.sizes.k, self.k_parts, self.sides[1])

    def n_cuts(self, n: int) -> Array:
        """Of a batch, which need not be the planned one."""
        return cuts(n, self.n_parts, 1)

    @property
    def buckets(self) -> int:
        return self.m_parts * self.k_parts

    @property
    def area(self) -> int:
        return self.sides[0] * self.sides[1]

    def tile(self, i: Array, q: Array, j: Array) -> Array:
        """The tile of part i of the rows, q of the columns, j of the batch."""
        made: Array = (i * self.k_parts + q) * self.n_parts + j
        return made

    @property
    def bucket_tiles(self) -> Array:
        """int64[m_parts, k_parts]: where the non-zero values of each part are kept, and multiplied by the first part of the batch."""
        i, q = np.ogrid[: self.m_parts, : self.k_parts]
        return self.tile(i, q, np.zeros((1, 1), np.int64))

    def __str__(self) -> str:
        s = self.sizes
        return (
            f"sparse [{s.m}, {s.k}] @ [{s.k}, {s.n}] in blocks of {list(self.sides)}\n"
            f"  parts: rows {self.m_parts}, columns {self.k_parts}, batch {self.n_parts}; {self.capacity} blocks in a bucket\n"
            f"  cycles: {self.cycles}"
        )


@lru_cache(maxsize=256)
def plan(target: Target, sizes: Sizes, sides: Sides, blocks: int, dtype: ElementType, settings: Settings, known: bool) -> Plan:
    """The plan of a product with ``blocks`` non-zero blocks.

    Args:
        known: The pattern will be known when the graph is built: then parts get only those rows of the dense operand that they need.

    Costs: array operations over some thousands of splits.
    """
    grid = max(1, sizes.m // sides[0]), max(1, sizes.k // sides[1])
    m, k, n = _choices(grid[0], grid[1], max(1, sizes.n), target.num_tiles)
    rows, columns, batch = -(-grid[0] // m) * sides[0], -(-grid[1] // k) * sides[1], -(-max(1, sizes.n) // n)
    entries = blocks / (m * k)
    capacity = np.minimum(_room(entries, settings.oversize), -(-grid[0] // m) * -(-grid[1] // k))
    held = entries if known else capacity
    needed = np.minimum(columns, entries * sides[1]) if known else columns
    received = needed * batch * dtype.nbytes + np.where(n > 1, held * (sides[0] * sides[1] * dtype.nbytes + 4), 0)
    width = target.exchange_bytes_per_cycle
    partials = rows * batch * 4
    share = -(-(rows * batch) // k)
    summed = np.where(k > 1, EXECUTE + EXCHANGE_GENERAL + share * (k - 1) * 4 // width + sum_cycles(target, k, share), 0)
    compute = product_cycles(target, dtype, sides, rows, entries, batch, known)
    cycles = EXECUTE + EXCHANGE_GENERAL + received // width + compute + summed
    temporary = received + partials + np.where(k > 1, share * k * 4, 0)
    fits = temporary <= settings.memory * target.bytes_per_tile
    key = np.where(fits, cycles, np.inf) if fits.any() else temporary
    best = int(np.lexsort((m * k * n, key))[0])
    return Plan(sizes, sides, int(m[best]), int(k[best]), int(n[best]), max(1, int(capacity[best])), int(cycles[best]))


def _room(entries: Array, oversize: float) -> Array:
    """Blocks of a bucket whose even share is ``entries``."""
    made: Array = np.ceil(entries * (1 + oversize) + _SIGMAS * np.sqrt(entries) + _SPARE)
    return made


def oversize_for(entries: float, wanted: int) -> float:
    """The proportion with which a bucket has room for ``wanted`` blocks, in tenths."""
    least = max(0.0, (wanted - _SPARE - _SIGMAS * entries**0.5) / max(entries, 1e-9) - 1)
    return float(np.ceil(least * 10) / 10)


def product_cycles(target: Target, dtype: ElementType, sides: Sides, rows: Array, blocks: Array, batch: Array, known: bool) -> Array:
    """Cycles of a tile for ``blocks`` non-zero blocks in ``rows`` rows of elements times ``batch`` columns. All may be arrays.

    Args:
        known: The pattern is part of the program; else it is read from a bucket, and the sums of elements too begin with zeros.
    """
    workers, kind, elements = target.num_worker_contexts, dtype.kind, sides == (1, 1)
    bucket = 0 if known else _BUCKET[elements]
    zeros = _ZEROS + -(-np.asarray(rows) * np.asarray(batch) // (2 * workers))
    if elements:
        vector, start = _VECTOR[kind]
        per_row = np.asarray(blocks) / np.maximum(rows, 1)
        loops, rest = np.asarray(batch) // vector, np.asarray(batch) % vector
        row = _ROW[kind] + np.where(loops > 0, start + loops * _ENTRY * per_row, 0) + np.where(rest > 0, _REST[kind] + _REST_ENTRY * per_row * rest, 0)
        made: Array = _SUPERVISOR + bucket + workers * (_WORKER[kind] + (0 if known else zeros) + -(-np.asarray(rows) // workers) * row)
        return made.astype(np.int64)
    largest = 16 if kind == "half" else 8  # PopLibs has no code for the product unit with larger ones of FLOAT
    side = next(s for s in (4, 8, 16) if s >= min(max(sides), largest))
    each = -(-np.asarray(batch) // workers)
    parts = -(-sides[0] // side) * -(-sides[1] // side)
    passes = parts * (-(-side // target.fp16_in_fp32_out_conv_units_per_tile) if kind == "half" else 1)
    load = sides[0] * sides[1] * dtype.nbytes // 8 + _BLOCK_LOAD * parts + _BLOCK_PASS_LOAD * passes
    worker = _BLOCK_WORKER + zeros + np.asarray(blocks) * passes * (_BLOCK_START[side][kind] + each * _BLOCK_PASS[side][kind])
    made = _BLOCK_SUPERVISOR + bucket + np.asarray(blocks) * load + workers * worker
    return made.astype(np.int64)


def _choices(rows: int, columns: int, batch: int, tiles: int) -> tuple[Array, Array, Array]:
    """Splits worth considering: of each dimension the counts that give different widest parts."""
    made = [(i, q, j) for q in _counts(columns, tiles) for j in _counts(batch, tiles // q) for i in _counts(rows, tiles // (q * j))]
    m, k, n = np.array(made, np.int64).T
    return m, k, n


def _counts(limit: int, most: int) -> list[int]:
    """Powers of two and what uses all tiles or cuts evenly, up to ``most``."""
    top = min(limit, most)
    powers = [1 << i for i in range(top.bit_length()) if 1 << i <= top]
    even = [c for c in (top, *(-(-limit // w) for w in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64))) if 1 <= c <= top]
    return sorted({*powers, *even})
