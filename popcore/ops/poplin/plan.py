"""The planner of products: how many parts of groups, m, n and k a product is cut into, each on a tile of its own.

Among all splits that fit in the memory left for temporaries it takes the one of fewest modelled cycles. Where none fits in one go the
parts of k are worked through one after the other (serial splits). Nothing is drawn and nothing timed: equal arguments give equal plans.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from popcore.compiler.cost import EXCHANGE_GENERAL, EXECUTE
from popcore.ops.poplin.cost import pass_shape, product_cycles, sum_cycles
from popcore.ops.poputil import choose_mapping_offset
from popcore.target import Target
from popcore.types import Array, ElementType

MOST_SERIAL = 256


@dataclass(frozen=True)
class Plan:
    """How ``[groups, m, k] @ [groups, k, n]`` is done. Part ``l`` of k consists of the ``serial`` blocks from ``l * serial`` on."""

    groups: int
    m: int
    k: int
    n: int
    dtype: ElementType
    group_parts: int
    m_parts: int
    k_parts: int
    n_parts: int
    serial: int
    grains: tuple[int, int]  # of k and of n: every cut but the last lies at a multiple
    num_tiles: int  # of the graph
    first_tile: int
    exchange_cycles: int  # of all serial steps
    product_cycles: int
    sum_cycles: int
    temporary_bytes: int  # on the fullest tile
    fits: bool

    @property
    def tiles(self) -> int:
        return self.group_parts * self.m_parts * self.k_parts * self.n_parts

    @property
    def cycles(self) -> int:
        return self.exchange_cycles + self.product_cycles + self.sum_cycles

    @property
    def m_cuts(self) -> Array:
        """int64[m_parts + 1]: where each part begins, and the end of the last."""
        return cuts(self.m, self.m_parts, 1)

    @property
    def k_cuts(self) -> Array:
        return cuts(self.k, self.k_parts * self.serial, self.grains[0])

    @property
    def n_cuts(self) -> Array:
        return cuts(self.n, self.n_parts, self.grains[1])

    @property
    def group_part(self) -> Array:
        """int64[groups]: the part that each group is in."""
        return np.searchsorted(cuts(self.groups, self.group_parts, 1), np.arange(self.groups), "right") - 1

    def tile(self, group: Array, i: Array, j: Array, part: Array) -> Array:
        """The tile of part (i, j) of the product of ``group``, for part ``part`` of k."""
        at = ((self.group_part[group] * self.m_parts + i) * self.n_parts + j) * self.k_parts + part
        made: Array = (at + self.first_tile) % self.num_tiles
        return made

    def __str__(self) -> str:
        shape = f"[{self.m}, {self.k}] @ [{self.k}, {self.n}]" + (f" x {self.groups} groups" if self.groups > 1 else "")
        widest = [int(np.diff(c).max(initial=0)) for c in (self.m_cuts, self.k_cuts, self.n_cuts)]
        return "\n".join(
            (
                f"product {shape} of {self.dtype!r}, sums in FLOAT",
                f"  parts: groups {self.group_parts}, m {self.m_parts}, n {self.n_parts}, k {self.k_parts}, serial steps over k {self.serial}",
                f"  a tile multiplies [{widest[0]}, {widest[1]}] by [{widest[1]}, {widest[2]}] in a step",
                f"  tiles: {self.tiles} of {self.num_tiles}, from tile {self.first_tile} on",
                f"  cycles: exchange {self.exchange_cycles}, products {self.product_cycles}, sums {self.sum_cycles}, together {self.cycles}",
                f"  temporary memory on a tile: {self.temporary_bytes} bytes" + ("" if self.fits else ", more than was allowed: nothing smaller exists"),
            )
        )


def cuts(length: int, parts: int, grain: int) -> Array:
    """Where ``parts`` parts of whole grains begin, as equal as can be, and the end of the last."""
    grains = -(-length // grain)
    return np.minimum(np.arange(parts + 1, dtype=np.int64) * grains // max(parts, 1) * grain, length)


@lru_cache(maxsize=1024)
def plan(target: Target, groups: int, m: int, k: int, n: int, dtype: ElementType, sums: bool, proportion: float) -> Plan:
    """The plan of a product.

    Args:
        sums: Whether partials are kept apart from the result even where k is not split: it is HALF, or added to something.
        proportion: Of a tile's memory that temporaries may take.
    """
    k_grain, n_grain = pass_shape(target, dtype)
    empty = not (groups and m and k and n)
    limits = [max(1, x) for x in (groups, m, -(-k // k_grain), -(-n // n_grain))]
    choices = _choices(limits, 1 if empty else target.num_tiles)
    found = _costs(target, (groups, m, k, n), dtype, sums, int(proportion * target.bytes_per_tile), choices, (k_grain, n_grain))
    cycles, exchange, product, total, temporary, serial = found
    fits = temporary <= int(proportion * target.bytes_per_tile)
    key = np.where(fits, cycles, np.inf) if fits.any() else temporary.astype(float)
    used = choices.prod(axis=1)
    best = int(np.lexsort((choices[:, 2], used, key))[0])
    parts = choices[best].tolist()
    spare = int(used[best]) < target.num_tiles
    return Plan(
        groups, m, k, n, dtype, parts[0], parts[1], parts[2], parts[3], int(serial[best]), (k_grain, n_grain), target.num_tiles,
        choose_mapping_offset(target.num_tiles, (groups, m, k, n)) if spare else 0,
        int(exchange[best]), int(product[best]), int(total[best]), int(temporary[best]), bool(fits[best]),
    )  # fmt: skip


def _choices(limits: list[int], tiles: int) -> Array:
    """int64[c, 4]: parts of groups, m, k and n, at most ``tiles`` together. Of counts that give equal widest parts only the least."""
    groups, rows, depth, columns = (_counts(limit, tiles) for limit in limits)
    pairs = _products(_products(groups[:, None], rows, tiles), depth, tiles)
    return _products(pairs, columns, tiles)


def _products(left: Array, right: Array, most: int) -> Array:
    """Every row of ``left`` with every number of ``right``, where the product of all is at most ``most``."""
    i, j = np.nonzero(left.prod(axis=1)[:, None] * right[None] <= most)
    return np.hstack([left[i], right[j][:, None]])


def _counts(limit: int, most: int) -> Array:
    """Counts of parts worth considering, dimension by dimension."""
    all_counts = np.arange(1, min(limit, most) + 1, dtype=np.int64)
    _, first = np.unique(-(-limit // all_counts), return_index=True)
    return np.sort(all_counts[first])


def _costs(
    target: Target, sizes: tuple[int, int, int, int], dtype: ElementType, sums: bool, memory: int, choices: Array, grains: tuple[int, int]
) -> tuple[Array, Array, Array, Array, Array, Array]:
    """Of each choice: cycles, those of exchange, products and sums; temporary bytes; serial steps."""
    groups, m, k, n = sizes
    group_parts, m_parts, k_parts, n_parts = choices.T
    each = -(-groups // group_parts)  # groups that a tile works on in one step
    rows = -(-m // m_parts)
    k_grains, n_grains = -(-k // grains[0]), -(-n // grains[1])
    columns = np.minimum(-(-n_grains // n_parts) * grains[1], n)
    split = (k_parts > 1) | sums
    partials = np.where(split, each * rows * columns * 4, 0)
    per_k = each * (rows + columns) * dtype.nbytes
    most = np.maximum(k_grains // k_parts, 1)  # serial steps that leave a grain in each
    wanted = np.maximum(memory - partials, 1) // np.maximum(per_k * grains[0], 1)
    widest = -(-k_grains // k_parts)
    needed = -(-widest // np.maximum(wanted, 1))
    serial = np.clip(needed, 1, np.minimum(most, MOST_SERIAL))
    depth = np.clip(-(-k_grains // (k_parts * serial)) * grains[0], 1, max(k, 1))
    blocks = per_k * depth
    width = target.exchange_bytes_per_cycle
    exchange = serial * (EXCHANGE_GENERAL + EXECUTE + blocks // width)
    product = serial * each * product_cycles(target, dtype, rows, depth, columns)
    share = -(-(each * rows * columns) // k_parts)  # of a result that is shared out to the tiles of its parts
    received = np.where(k_parts > 1, EXCHANGE_GENERAL + share * (k_parts - 1) * 4 // width, 0)
    total = np.where(split, EXECUTE + received + sum_cycles(target, k_parts, share), 0)
    gathered = np.where(k_parts > 1, share * k_parts * 4, 0)
    temporary = np.maximum(blocks, gathered) + partials
    return exchange + product + total, exchange, product, total, temporary, serial
