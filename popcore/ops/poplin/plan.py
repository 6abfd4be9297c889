"""The planner of products and convolutions: how many parts each dimension is cut into, every part on a tile of its own.

Among all splits that fit in the memory left for temporaries it takes the one of fewest modelled cycles. Where none fits in one go the
parts of k are worked through one after the other (serial splits). Nothing is drawn and nothing timed: equal arguments give equal plans.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from popcore.compiler.cost import EXCHANGE_GENERAL, EXECUTE
from popcore.ops.poplin.cost import pass_shape, sum_cycles, work_cycles
from popcore.ops.poplin.problem import Problem
from popcore.ops.poplin.stages import stage_table
from popcore.ops.poputil import choose_mapping_offset
from popcore.target import Target
from popcore.types import Array

MOST_SERIAL = 256
MOST_CHOICES = 200_000  # splits that are priced; where there are more, counts of parts lie further apart
COARSER = (1.0, 1.2, 1.5, 2.0, 3.0, 4.0, 8.0)  # the ratio of a count to the one before it, at least


@dataclass(frozen=True)
class Plan:
    """How a problem is done. Part ``l`` of k consists of the ``serial`` blocks from ``l * serial`` on."""

    problem: Problem
    parts: tuple[int, ...]  # of each of ``problem.lengths``
    serial: int
    grains: tuple[int, int, int]  # of the batch, of k and of n: every cut but the last lies at a multiple
    num_tiles: int  # of the graph
    first_tile: int
    exchange_cycles: int  # of all serial steps
    product_cycles: int
    sum_cycles: int
    temporary_bytes: int  # on the fullest tile
    fits: bool

    @property
    def tiles(self) -> int:
        return math.prod(self.parts)

    @property
    def cycles(self) -> int:
        return self.exchange_cycles + self.product_cycles + self.sum_cycles

    @property
    def batch_parts(self) -> int:
        return self.parts[1]

    @property
    def field_parts(self) -> tuple[int, ...]:
        return self.parts[2 : 2 + self.problem.rank]

    @property
    def n_parts(self) -> int:
        return self.parts[2 + self.problem.rank]

    @property
    def kernel_parts(self) -> tuple[int, ...]:
        return self.parts[3 + self.problem.rank : -1]

    @property
    def k_parts(self) -> int:
        return self.parts[-1]

    @property
    def row_parts(self) -> int:
        """Parts of batch and field."""
        return self.batch_parts * math.prod(self.field_parts)

    @property
    def sum_parts(self) -> int:
        """Parts of kernel and k: as many partial sums are there of a result."""
        return math.prod(self.kernel_parts) * self.k_parts

    @property
    def batch_cuts(self) -> Array:
        """int64[batch_parts + 1]: where each part begins, and the end of the last."""
        return cuts(self.problem.batch, self.batch_parts, self.grains[0])

    @property
    def field_cuts(self) -> tuple[Array, ...]:
        return tuple(cuts(w.out, p, 1) for w, p in zip(self.problem.windows, self.field_parts, strict=True))

    @property
    def kernel_cuts(self) -> tuple[Array, ...]:
        return tuple(cuts(w.kernel, p, 1) for w, p in zip(self.problem.windows, self.kernel_parts, strict=True))

    @property
    def k_cuts(self) -> Array:
        return cuts(self.problem.k, self.k_parts * self.serial, self.grains[1])

    @property
    def n_cuts(self) -> Array:
        return cuts(self.problem.n, self.n_parts, self.grains[2])

    @property
    def group_part(self) -> Array:
        """int64[groups]: the part that each group is in."""
        groups = self.problem.groups
        return np.searchsorted(cuts(groups, self.parts[0], 1), np.arange(groups), "right") - 1

    def tile(self, group: Array, i: Array, j: Array, part: Array) -> Array:
        """The tile of row part ``i`` and n part ``j`` of the result for ``group``, for part ``part`` of its sum.

        Neighbours of a product take the same part of the right operand, which a pair of tiles receives at once.
        """
        if self.problem.windows:
            at = ((self.group_part[group] * self.row_parts + i) * self.n_parts + j) * self.sum_parts + part
        else:
            at = ((self.group_part[group] * self.sum_parts + part) * self.n_parts + j) * self.row_parts + i
        made: Array = (at + self.first_tile) % self.num_tiles
        return made

    def __str__(self) -> str:
        widest = [int(np.diff(c).max(initial=0)) for c in (self.batch_cuts, self.k_cuts, self.n_cuts)]
        if self.problem.windows:
            field, kernel = (" x ".join(map(str, p)) for p in (self.field_parts, self.kernel_parts))
            split = f"groups {self.parts[0]}, batch {self.batch_parts}, field {field}, n {self.n_parts}, kernel {kernel}, k {self.k_parts}"
            shape = [" x ".join(str(int(np.diff(c).max(initial=0))) for c in x) for x in (self.field_cuts, self.kernel_cuts)]
            each = f"a tile makes {widest[0]} x [{shape[0]}] of {widest[2]} channels from {widest[1]} and [{shape[1]}] of the kernel in a step"
        else:
            split = f"groups {self.parts[0]}, m {self.batch_parts}, n {self.n_parts}, k {self.k_parts}"
            each = f"a tile multiplies [{widest[0]}, {widest[1]}] by [{widest[1]}, {widest[2]}] in a step"
        return "\n".join(
            (
                f"{self.problem}, sums in {self.problem.partials!r}",
                f"  parts: {split}, serial steps over k {self.serial}",
                f"  {each}",
                f"  tiles: {self.tiles} of {self.num_tiles}, from tile {self.first_tile} on",
                f"  cycles: exchange {self.exchange_cycles}, products {self.product_cycles}, sums {self.sum_cycles}, together {self.cycles}",
                f"  temporary memory on a tile: {self.temporary_bytes} bytes" + ("" if self.fits else ", more than was allowed: nothing smaller exists"),
            )
        )


def cuts(length: int, parts: int, grain: int) -> Array:
    """Where ``parts`` parts of whole grains begin, as equal as can be, and the end of the last."""
    grains = -(-length // grain)
    return np.minimum(np.arange(parts + 1, dtype=np.int64) * grains // max(parts, 1) * grain, length)


class PlanningCache:
    """Plans that were made, by what they are for. Products and convolutions share one; so may several graphs."""

    def __init__(self) -> None:
        self._plans: dict[tuple[Target, Problem, bool, float], Plan] = {}

    def __len__(self) -> int:
        return len(self._plans)

    def plan(self, target: Target, problem: Problem, sums: bool, proportion: float) -> Plan:
        """The plan of a problem; see ``new_plan``."""
        key = target, problem, sums, proportion
        if key not in self._plans:
            self._plans[key] = new_plan(*key)
        return self._plans[key]


SHARED = PlanningCache()
"""What is used where no other is given."""


def new_plan(target: Target, problem: Problem, sums: bool, proportion: float) -> Plan:
    """The plan of a problem.

    Args:
        sums: Whether partials are kept apart from the result even where nothing that is summed over is split: it is HALF, or added to something.
        proportion: Of a tile's memory that temporaries may take.
    """
    grains = grains_of(target, problem)
    groups, batch, *rest = problem.lengths
    field, n, kernel, k = rest[: problem.rank], rest[problem.rank], rest[problem.rank + 1 : -1], rest[-1]
    if problem.whole_kernel:
        kernel = [1] * problem.rank
    limits = [max(1, x) for x in (groups, -(-batch // grains[0]), *field, -(-n // grains[2]), *kernel, -(-k // grains[1]))]
    choices = _choices(limits, 1 if problem.empty else target.num_tiles)
    allowed = int(proportion * target.bytes_per_tile)
    cycles, exchange, product, total, temporary, serial = _costs(target, problem, sums, allowed, choices, grains)
    fits = temporary <= allowed
    key = np.where(fits, cycles, np.inf) if fits.any() else temporary.astype(float)
    used = choices.prod(axis=1)
    best = int(np.lexsort((choices[:, 3 + problem.rank :].prod(axis=1), used, key))[0])
    offset = choose_mapping_offset(target.num_tiles, (groups, batch, *field, *kernel, k, n)) if int(used[best]) < target.num_tiles else 0
    return Plan(
        problem, tuple(choices[best].tolist()), int(serial[best]), grains, target.num_tiles, offset - offset % target.tiles_per_shared_exchange_bus,
        int(exchange[best]), int(product[best]), int(total[best]), int(temporary[best]), bool(fits[best]),
    )  # fmt: skip


def grains_of(target: Target, problem: Problem) -> tuple[int, int, int]:
    """Of the batch, of k and of n, in what units parts of them are."""
    depth, held = pass_shape(target, problem.dtype, problem.partials)
    if not problem.windows:
        return held, depth, 1
    return 1, 1 if problem.channelwise else depth, held


def _choices(limits: list[int], tiles: int) -> Array:
    """int64[c, dimensions]: counts of parts, at most ``tiles`` together. Of counts that give equal widest parts only the least."""
    for coarser in COARSER:
        made = np.ones((1, 0), np.int64)
        for limit in limits:
            made = _products(made, _counts(limit, tiles, coarser), tiles)
            if len(made) > MOST_CHOICES:
                break
        else:
            return made
    return np.ones((1, len(limits)), np.int64)


def _products(left: Array, right: Array, most: int) -> Array:
    """Every row of ``left`` with every number of ``right``, where the product of all is at most ``most``."""
    i, j = np.nonzero(left.prod(axis=1)[:, None] * right[None] <= most)
    return np.hstack([left[i], right[j][:, None]])


def _counts(limit: int, most: int, coarser: float) -> Array:
    """Counts of parts worth considering, dimension by dimension."""
    all_counts = np.arange(1, min(limit, most) + 1, dtype=np.int64)
    _, first = np.unique(-(-limit // all_counts), return_index=True)
    counts = np.sort(all_counts[first])
    kept = [int(counts[0])]
    for c in counts[1:].tolist():
        if c >= kept[-1] * coarser:
            kept.append(c)
    return np.array(kept, np.int64)


def _costs(
    target: Target, problem: Problem, sums: bool, memory: int, choices: Array, grains: tuple[int, int, int]
) -> tuple[Array, Array, Array, Array, Array, Array]:
    """Of each choice: cycles, those of exchange, products and sums; temporary bytes; serial steps."""
    rank, k, n = problem.rank, problem.k, problem.n
    group_parts, batch_parts, k_parts, n_parts = choices[:, 0], choices[:, 1], choices[:, -1], choices[:, 2 + rank]
    each = -(-problem.groups // group_parts)  # groups that a tile works on in one step
    batch_grains = -(-problem.batch // grains[0])
    batch = np.minimum(-(-batch_grains // batch_parts) * grains[0], problem.batch)
    rows = met = slab = batch
    width = np.ones_like(batch)
    kernel: list[Array] = []
    taps = np.ones_like(batch)
    for d, w in enumerate(problem.windows):
        out = -(-w.out // choices[:, 2 + d])
        kernel.append(-(-w.kernel // choices[:, 3 + rank + d]))
        rows, taps, slab, met = rows * out, taps * kernel[-1], slab * w.reach(out, kernel[-1]), met * w.met(out, kernel[-1])
        width = np.where(out > 1, -(-out // w.apart), width)
    k_grains, n_grains = -(-k // grains[1]), -(-n // grains[2])
    columns = np.minimum(-(-n_grains // n_parts) * grains[2], n)
    parts = choices[:, 3 + rank :].prod(axis=1)
    split = (parts > 1) | sums
    wide = problem.partials.nbytes
    partials = np.where(split, each * rows * columns * wide, 0)
    per_k = each * (slab * (columns if problem.channelwise else 1) + taps * columns) * problem.dtype.nbytes
    most = np.maximum(k_grains // k_parts, 1)  # serial steps that leave a grain in each
    wanted = np.maximum(memory - partials, 1) // np.maximum(per_k * grains[1], 1)
    widest = -(-k_grains // k_parts)
    needed = -(-widest // np.maximum(wanted, 1))
    serial = np.clip(needed, 1, np.minimum(most, MOST_SERIAL))
    depth = np.clip(-(-k_grains // (k_parts * serial)) * grains[1], 1, max(k, 1))
    blocks = per_k * depth
    speed = target.exchange_bytes_per_cycle
    moved = blocks if problem.windows else _received(target, each * rows * depth, each * columns * depth, batch_parts, n_parts) * problem.dtype.nbytes
    exchange = serial * (np.where(moved > 0, EXCHANGE_GENERAL, 0) + EXECUTE + moved // speed)
    product = serial * each * work_cycles(target, problem, rows, tuple(kernel), depth, columns, -(-met // np.maximum(taps, 1)), width)
    total = np.where(split, _summing(target, problem, parts, each * rows * columns), 0)
    gathered = np.where(parts > 1, each * rows * columns * wide, 0)  # by the first stage
    temporary = np.maximum(blocks, gathered) + partials
    return exchange + product + total, exchange, product, total, temporary, serial


def _summing(target: Target, problem: Problem, parts: Array, elements: Array) -> Array:
    """Cycles of all stages in which ``parts`` partial results of so many elements are added up, each shared out to the tiles that made them."""
    made = np.zeros(len(parts), np.int64)
    depths = stage_table(parts)
    last = np.argmax(np.cumprod(depths, axis=1) >= parts[:, None], axis=1)
    for stage, depth in enumerate(depths.T):
        elements = -(-elements // depth)
        received = np.where(depth > 1, EXCHANGE_GENERAL + elements * (depth - 1) * problem.partials.nbytes // target.exchange_bytes_per_cycle, 0)
        added = np.where(
            stage < last,
            sum_cycles(target, depth, elements, problem.partials, problem.partials),
            sum_cycles(target, depth, elements, problem.partials, problem.dtype),
        )
        made += np.where(stage <= last, EXECUTE + received + added, 0)
    return made


def _received(target: Target, left: Array, right: Array, left_parts: Array, right_parts: Array) -> Array:
    """Elements that go to a tile for a product, at the pace of a whole bus: of either operand what other tiles hold of its part.

    Both tiles of a pair take the same part of the right operand at once, where their number is even.
    """
    together = np.where(left_parts % target.tiles_per_shared_exchange_bus == 0, target.tiles_per_shared_exchange_bus, 1)
    made: Array = left * (right_parts - 1) // right_parts + right * (left_parts - 1) // (left_parts * together)
    return made
