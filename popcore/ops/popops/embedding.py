"""Plans of look-ups in a table: over how many tiles its rows and columns are spread, and how look-ups find their rows.

Which tile a row is on is known at run time only, while what is sent where is fixed. So look-ups are dealt out to tiles in parts;
for each part and each of the table's row parts a list is made of what they have in common, which is short and of a fixed length.
Lists go to the tiles of their rows and values come back along the same fixed ways. What a list cannot hold waits for another round.
"""

from __future__ import annotations

from collections.abc import Sequence as Items
from dataclasses import dataclass, field
from functools import lru_cache
from math import sqrt
from typing import Any

import numpy as np

from popcore.compiler.cost import EXCHANGE_GENERAL, EXECUTE
from popcore.errors import OptionError, OutOfTileMemoryError, ShapeError
from popcore.graph import Graph
from popcore.ops.popops import common
from popcore.target import Target
from popcore.types import Array, DTypeLike, ElementType, as_element_type

SLICE_OPTIONS = {"validateIndices": ("false", "true"), "remapOutOfBoundIndices": ("false", "true"), "paddingIndexUsed": ("false", "true")}
"""Of indices outside of the table: stop the run; take row 0; ``paddingIndexUsed`` is taken as said (its rows are zeros anyway)."""
OPTIONS = SLICE_OPTIONS | {
    "usedForSlice": ("true", "false"),
    "usedForUpdate": ("true", "false"),
    "operationForUpdate": ("add", "none", "max", "mul"),
    "indicesDistribution": ("uniform", "onePoint"),
    "indicesAreSorted": ("false", "true"),
    "planMinimisationTarget": ("cycles", "memory"),
    "partialType": ("float", "half"),
    "availableMemoryProportion": None,
}
"""Of plans and of what is planned. ``indicesAreSorted``, ``operationForUpdate`` and ``partialType`` change nothing here: there are no partial sums."""
PROPORTION = 0.6
SPREAD = 4.5  # standard deviations above its mean that a list holds: one in some 10**5 is longer


@dataclass(frozen=True)
class SlicePlan:
    """How a table of ``group_size`` times ``num_entries`` rows and ``output_size`` columns is spread over tiles."""

    num_tiles: int
    dtype: ElementType
    group_size: int
    num_entries: int
    output_size: int
    row_parts: int
    column_parts: int
    grain: int  # of columns
    one_point: bool
    memory: int  # bytes of a tile for temporaries
    least_memory: bool
    workers: int
    exchange_bytes_per_cycle: int

    @property
    def group_tiles(self) -> int:
        return max(1, self.num_tiles // self.group_size)

    @property
    def row_cuts(self) -> Array:
        return np.arange(self.row_parts + 1) * self.num_entries // self.row_parts

    @property
    def column_cuts(self) -> Array:
        grains = -(-self.output_size // self.grain)
        return np.minimum(np.arange(self.column_parts + 1) * grains // self.column_parts * self.grain, self.output_size)

    def first_tile(self, group: int) -> int:
        return group * self.num_tiles // self.group_size if self.group_size > self.num_tiles else group * self.group_tiles

    def route(self, lookups: int) -> Route:
        """How so many look-ups are dealt out."""
        return _route(self, lookups)

    def __str__(self) -> str:
        groups = f"{self.group_size} x " if self.group_size > 1 else ""
        return (
            f"table {groups}[{self.num_entries}, {self.output_size}] of {self.dtype!r}: rows in {self.row_parts} parts, columns in {self.column_parts}, "
            f"{self.row_parts * self.column_parts * min(self.group_size, self.num_tiles)} of {self.num_tiles} tiles"
        )


@dataclass(frozen=True)
class Route:
    """Look-ups in parts, each with a list of ``capacity`` for every row part. A tile makes ``lists_per_tile`` lists.

    Slices are in the same parts, ``slices_per_tile`` of them on a tile, their columns cut into ``splits`` parts of each of the table's.
    """

    lookups: int
    parts: int
    lists_per_tile: int
    slices_per_tile: int
    splits: int
    capacity: int
    cycles: float
    temporary_bytes: int

    @property
    def cuts(self) -> Array:
        """Where parts begin, in whole fours, and the end of the last."""
        fours = -(-self.lookups // 4)
        return np.minimum(np.arange(self.parts + 1) * fours // self.parts * 4, self.lookups)

    @property
    def once(self) -> bool:
        """Whether lists always hold everything."""
        return bool(np.diff(self.cuts).max(initial=0) <= self.capacity)


def plan(
    graph: Graph,
    dtype: DTypeLike,
    num_entries: int,
    output_size: int,
    num_lookups: Items[int],
    options: common.Options | None = None,
    name: str = "",
    *,
    group_size: int = 1,
) -> SlicePlan:
    """A plan for tables of ``num_entries`` rows by ``output_size`` columns, and ``num_lookups`` look-ups at a time.

    Pass it to ``create_sliceable_tensor``, ``create_slice_tensor``, ``create_indices_tensor`` and then to ``multi_slice`` and ``multi_update`` and their kin.

    Raises:
        ShapeError: a size below 1.
        OptionError: a name or value that does not exist; a use for neither slices nor updates.
        OutOfTileMemoryError: the table does not fit on the graph's tiles.
    """
    step = common.joined(name, "embedding.plan")
    chosen, proportion = read_plan_options(step, options)
    if chosen["usedForSlice"] == chosen["usedForUpdate"] == "false":
        raise OptionError(f"{step}: usedForSlice and usedForUpdate are both false", "one of them true")
    lookups = list(num_lookups)
    if min([num_entries, output_size, group_size]) < 1 or any(n < 0 for n in lookups):
        raise ShapeError(f"{step} of {group_size} x [{num_entries}, {output_size}] with look-ups {lookups}", "sizes of 1 or more")
    element, target = as_element_type(dtype), graph.target
    one_point, least = chosen["indicesDistribution"] == "onePoint", chosen["planMinimisationTarget"] == "memory"
    found = _plan(target, element, group_size, num_entries, output_size, max(lookups, default=0), proportion, one_point, least)
    if found is None:
        size = -(-group_size * num_entries * output_size * element.nbytes // target.num_tiles)
        name = f"{step}: {group_size} x [{num_entries}, {output_size}] of {element!r}, and lists of {max(lookups, default=0)} look-ups"
        raise OutOfTileMemoryError(tile=0, needed=size + _RESERVED, available=target.bytes_per_tile, largest=[(name, size)])
    return found


@dataclass(frozen=True)
class SlicePlanningParameters:
    """What ``plan`` takes, for ``plan_multiple``."""

    graph: Graph
    dtype: DTypeLike
    num_entries: int
    output_size: int
    num_lookups: Items[int]
    options: common.Options = field(default_factory=dict)
    group_size: int = 1


def plan_multiple(parameters: Items[SlicePlanningParameters]) -> list[SlicePlan]:
    """A plan for each."""
    return [plan(p.graph, p.dtype, p.num_entries, p.output_size, p.num_lookups, p.options, group_size=p.group_size) for p in parameters]


def read_plan_options(step: str, options: common.Options | None) -> tuple[dict[str, str], float]:
    """Options by name, and the proportion of memory.

    Raises: OptionError, with near matches.
    """
    given = dict(options or {})
    value = given.pop("availableMemoryProportion", PROPORTION)
    known: dict[str, Items[Any]] = {name: allowed for name, allowed in OPTIONS.items() if allowed is not None}
    if set(given) - set(known):  # so that near matches see all of them
        known |= {"availableMemoryProportion": (PROPORTION,)}
    chosen = common.read_options(step, given, known)
    try:
        proportion = float(value)
    except (TypeError, ValueError):
        proportion = -1.0
    if not 0 <= proportion <= 1:
        raise OptionError(f"{step}: availableMemoryProportion {value!r}", "a number from 0 to 1")
    return chosen, proportion


@lru_cache(maxsize=256)
def _plan(
    target: Target, dtype: ElementType, groups: int, entries: int, columns: int, lookups: int, proportion: float, one_point: bool, least: bool
) -> SlicePlan | None:
    """The plan of fewest cycles, or of least memory, of those that fit."""
    tiles = max(1, target.num_tiles // groups)
    grain = min(target.get_vector_width(dtype), columns)
    memory = int(proportion * target.bytes_per_tile)
    best: tuple[float, SlicePlan] | None = None
    for column_parts in counts(min(max(1, columns * dtype.nbytes // _LEAST_ROW), tiles)):
        for row_parts in counts(min(entries, tiles // column_parts)):
            rows, width = -(-entries // row_parts), -(-columns // (column_parts * grain)) * grain
            held = -(-groups // target.num_tiles) * rows * width * dtype.nbytes
            messages = 2 * _MESSAGE * rows if column_parts > 1 else 0  # of what the host writes and reads
            left = min(memory, target.bytes_per_tile - _RESERVED - held - messages)
            if left <= 0:
                continue
            made = SlicePlan(
                target.num_tiles, dtype, groups, entries, columns, row_parts, column_parts, grain, one_point, left, least,
                target.num_worker_contexts, target.exchange_bytes_per_cycle,
            )  # fmt: skip
            route = made.route(lookups)
            cost = float(held + route.temporary_bytes) if least else route.cycles * (1 if route.temporary_bytes <= left else 1000)
            if best is None or cost < best[0]:
                best = cost, made
    return best[1] if best else None


_RESERVED = 64 << 10  # bytes of a tile for code and messages
_MESSAGE = 8  # bytes of code
_LEAST_ROW, _LEAST_SLICE = 64, 16  # bytes of a row that stay together: the host and whoever reads rows would move crumbs else


def counts(most: int) -> list[int]:
    """Numbers of parts that are worth considering: powers of two, three times those, and ``most``."""
    return sorted({min(most, c) for e in range(most.bit_length()) for c in (1 << e, 3 << e)} | {most})


@lru_cache(maxsize=1024)
def _route(plan: SlicePlan, lookups: int) -> Route:
    tiles, widths = plan.group_tiles, np.diff(plan.column_cuts)
    least = -(-_LEAST_SLICE // (plan.grain * plan.dtype.nbytes)) * plan.grain
    splits = [n for n in counts(int(widths.max())) if n == 1 or (not np.any(widths % (n * plan.grain)) and widths.min() >= n * least)]
    best: Route | None = None
    for lists in (1, 2, 3, plan.workers, 2 * plan.workers):
        for parts in counts(max(1, min(lists * (tiles // plan.row_parts), -(-lookups // 4)))):
            for n in splits:
                fewest = -(-parts // max(1, tiles // (plan.column_parts * n)))
                for slices in sorted({fewest, max(fewest, plan.workers)}):
                    if plan.column_parts * n * -(-parts // slices) > tiles:
                        continue
                    made = _estimate(plan, lookups, parts, lists, slices, n)
                    if best is None or _key(plan, made) < _key(plan, best):
                        best = made
    assert best is not None
    return best


def _key(plan: SlicePlan, route: Route) -> tuple[bool, float]:
    fits = route.temporary_bytes <= plan.memory
    return not fits, route.temporary_bytes if plan.least_memory or not fits else route.cycles


def _estimate(plan: SlicePlan, lookups: int, parts: int, lists: int, slices: int, splits: int) -> Route:
    """Cycles of one round: lists, reading or updating, placing or picking; the constants are those of codelets/embedding.py."""
    widest, workers, nbytes = int(np.diff(plan.column_cuts).max()), plan.workers, plan.dtype.nbytes
    each = -(-lookups // (4 * parts)) * 4
    mean = each / plan.row_parts
    capacity = each if plan.one_point or plan.row_parts == 1 else min(each, 2 * int(np.ceil((mean + SPREAD * sqrt(mean) + 2) / 2)))
    listed, returned, width = parts * capacity, plan.row_parts * capacity, widest // splits
    exchanged = 4 * (each * lists + listed + returned * slices) + width * nbytes * returned * slices
    making = workers * -(-lists // workers) * (30 + 8 * each + 19 * capacity)
    table = workers * (30 + -(-listed // workers) * (19 + widest))
    place = workers * -(-slices // workers) * (30 + 8 * returned + each * (11 + width))
    cycles = 4 * (EXECUTE + EXCHANGE_GENERAL) + exchanged / plan.exchange_bytes_per_cycle + making + table + place
    kept = (listed * widest + returned * slices * width + 2 * width * each * slices) * nbytes + 16 * capacity * lists  # of a slice and an update
    temporary = kept + max(4 * each * lists, listed * (4 + widest * nbytes), returned * slices * (4 + width * nbytes))
    return Route(lookups, parts, lists, slices, splits, capacity, cycles, temporary)
