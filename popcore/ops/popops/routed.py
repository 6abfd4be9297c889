"""Look-ups and updates of a planned table: the steps that ``embedding`` plans."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from popcore.codelets import embedding as codelets
from popcore.codelets.slices import PADDING, REMAP, VALIDATE
from popcore.errors import GraphError, ShapeError
from popcore.graph import ComputeSet, Graph, Tensor, concat
from popcore.graph.tensor import whole
from popcore.ops.popops import common
from popcore.ops.popops.embedding import Route, SlicePlan
from popcore.ops.popops.fill import fill
from popcore.ops.popops.operation import Operation
from popcore.ops.popops.reduce import reduce
from popcore.program import RepeatWhileTrue, Sequence
from popcore.types import BOOL, UNSIGNED_INT, Array, ElementType


def create_table(graph: Graph, plan: SlicePlan, name: str) -> Tensor:
    """(groups, rows, columns), each part on its tile."""
    return _spread(graph, plan, plan.num_entries, plan.row_cuts, plan.column_cuts, _table_tiles(plan), name)


def create_slices(graph: Graph, plan: SlicePlan, lookups: int, name: str) -> Tensor:
    """(groups, look-ups, columns), each part where it is placed or picked."""
    route = plan.route(lookups)
    return _spread(graph, plan, lookups, route.cuts, _slice_columns(plan, route), _slice_tiles(plan, route), name)


def create_indices(graph: Graph, plan: SlicePlan, lookups: int, name: str) -> Tensor:
    """(groups, look-ups) of UNSIGNED_INT."""
    made = graph.add_variable(UNSIGNED_INT, (plan.group_size, lookups), name=name)
    if lookups:
        route = plan.route(lookups)
        begin = (np.arange(plan.group_size)[:, None] * lookups + route.cuts[:-1]).reshape(-1)
        length = np.tile(np.diff(route.cuts), plan.group_size)
        tile = _list_tiles(plan, route)[:, 0].reshape(-1)
        graph.map_intervals(made, begin[length > 0], length[length > 0], tile[length > 0])
    return made


def look_up(graph: Graph, plan: SlicePlan, t: Tensor, indices: Tensor, rule: int, prog: Sequence, step: str) -> Tensor:
    """(groups, look-ups, columns) of the rows ``indices``, (groups, look-ups), of ``t``; zeros for rows that are not there."""
    made = create_slices(graph, plan, indices.shape[1], f"{step}/slices")
    if not made.num_elements:
        return made
    work = _Routes(graph, plan, indices, rule, prog, step)
    values, table, slices = work.values(t.dtype, by_row=True), work.parts_of_table(t), work.parts_of_slices(made)
    fill(graph, made if slices.base is None else slices.base, prog, 0, step)
    read: Any = codelets.RouteRead
    place: Any = codelets.RoutePlace

    def round_(body: Sequence) -> None:
        cs = common.compute_set_of(graph, body, f"{step}/read")
        for at in work.table_parts():
            out = values[at.group, at.row].slice(at.begin * work.listed, at.end * work.listed)
            fields = {"rows": work.rows[at.group, at.row].flatten(), "width": at.width // work.route.splits, "table": table[at], "out": out}
            vertex = graph.add_vertex(cs, read[t.dtype], fields, at.tile)
            graph.set_perf_estimate(vertex, codelets.read_cycles(work.listed, at.width * t.dtype.nbytes))
        cs = common.compute_set_of(graph, body, f"{step}/place")
        for at in work.slice_parts():
            found = work.block(values, at, at.row, work.listed)
            slots = work.slots[at.group, :, at.row].flatten()
            vertex = graph.add_vertex(cs, place[t.dtype], {"slots": slots, "values": found, "slices": slices[at]}, at.tile)
            graph.set_perf_estimate(vertex, codelets.move_cycles(slots.num_elements, at.last - at.first, at.width * t.dtype.nbytes))

    work.add_rounds(round_)
    return made


def update(graph: Graph, plan: SlicePlan, cls: Any, t: Tensor, s: Tensor, indices: Tensor, scale: float | Tensor, rule: int, prog: Sequence, step: str) -> None:
    """Join ``s``, (groups, look-ups, columns), with the rows ``indices`` of ``t``."""
    if not s.num_elements:
        return
    work = _Routes(graph, plan, indices, rule, prog, step)
    values, table, slices = work.values(t.dtype, by_row=False), work.parts_of_table(t), work.parts_of_slices(s)
    amount = scale.reshape(()) if isinstance(scale, Tensor) else float(scale)
    returned = plan.row_parts * work.route.capacity
    pick: Any = codelets.RoutePick

    def round_(body: Sequence) -> None:
        cs = common.compute_set_of(graph, body, f"{step}/pick")
        for at in work.slice_parts():
            out = values[at.group, at.row].slice(at.begin * returned, at.end * returned)
            slots = work.slots[at.group, :, at.row].flatten()
            vertex = graph.add_vertex(cs, pick[t.dtype], {"slots": slots, "slices": slices[at], "out": out}, at.tile)
            graph.set_perf_estimate(vertex, codelets.move_cycles(slots.num_elements, at.last - at.first, at.width * t.dtype.nbytes))
        cs = common.compute_set_of(graph, body, f"{step}/join")
        for at in work.table_parts():
            parts = [work.block(values, each, at.row, returned) for each in at.split(work.route.splits)]
            fields = {"rows": work.rows[at.group, at.row].flatten(), "width": at.width // work.route.splits, "scale": amount, "table": table[at]}
            vertex = graph.add_vertex(cs, cls[t.dtype], {**fields, "values": concat(parts)}, at.tile)
            graph.set_perf_estimate(vertex, codelets.update_cycles(work.listed, at.width * t.dtype.nbytes))

    work.add_rounds(round_)


class _Part(NamedTuple):
    """Rows ``first`` to ``last``, part ``row`` of all, and columns ``begin`` to ``end`` of a tensor (groups, rows, columns), on a tile."""

    group: int
    row: int
    first: int
    last: int
    begin: int
    end: int
    tile: int

    @property
    def width(self) -> int:
        return self.end - self.begin

    def split(self, n: int) -> list[_Part]:
        """Equal parts of the columns."""
        width = self.width // n
        return [self._replace(begin=self.begin + i * width, end=self.begin + (i + 1) * width) for i in range(n)]


class _Routes:
    """Lists of one set of look-ups.

    rows, slots: (groups, row parts, look-up parts, capacity)
    listed: Places in all lists of one row part.
    """

    def __init__(self, graph: Graph, plan: SlicePlan, indices: Tensor, rule: int, prog: Sequence, step: str) -> None:
        self.graph, self.plan, self.prog, self.step = graph, plan, prog, step
        self.indices, self.rule, self.route = indices, rule, plan.route(indices.shape[1])
        shape = (plan.group_size, plan.row_parts, self.route.parts)
        self.listed = self.route.parts * self.route.capacity
        self.tiles = _list_tiles(plan, self.route).reshape(-1)
        self.rows = self._mapped(UNSIGNED_INT, (*shape, self.route.capacity), "rows")
        self.slots = self._mapped(UNSIGNED_INT, (*shape, self.route.capacity), "slots")
        self.cursor = self._mapped(UNSIGNED_INT, shape, "cursor")
        self.pending = self._mapped(BOOL, shape, "pending")

    def _mapped(self, dtype: Any, shape: tuple[int, ...], name: str) -> Tensor:
        made = self.graph.add_variable(dtype, shape, name=f"{self.step}/{name}")
        each = made.num_elements // self.tiles.size
        self.graph.map_intervals(made, np.arange(self.tiles.size) * each, np.full(self.tiles.size, each), self.tiles)
        return made

    def values(self, dtype: Any, *, by_row: bool) -> Tensor:
        """What goes between table and slices. By row: (groups, row parts, columns * listed) on the tiles of the table; of each part of the
        slices' columns all lists one after the other, a block of the part's width for each place. Else (groups, look-up parts,
        columns * row parts * capacity) on those of the slices, likewise.
        """
        plan, route = self.plan, self.route
        if by_row:
            outer, each, cuts, tiles = plan.row_parts, self.listed, plan.column_cuts, _table_tiles(plan)
        else:
            outer, each, cuts, tiles = route.parts, plan.row_parts * route.capacity, _slice_columns(plan, route), _slice_tiles(plan, route)
        made = self.graph.add_variable(dtype, (plan.group_size, outer, plan.output_size * each), name=f"{self.step}/values")
        begin = (np.arange(plan.group_size * outer)[:, None] * cuts[-1] * each + cuts[:-1] * each).reshape(-1)
        self.graph.map_intervals(made, begin, np.tile(np.diff(cuts) * each, plan.group_size * outer), tiles.reshape(-1))
        return made

    def block(self, values: Tensor, at: _Part, which: int, each: int) -> Tensor:
        """Of the columns of ``at`` what list ``which`` has in every part of ``values``, one after the other."""
        size = self.route.capacity * at.width
        first = at.begin * each + which * size
        return values[at.group, :, first : first + size].flatten()

    def parts_of_table(self, t: Tensor) -> _Parts:
        return _Parts(t, self.plan.column_cuts)

    def parts_of_slices(self, t: Tensor) -> _Parts:
        return _Parts(t, _slice_columns(self.plan, self.route))

    def table_parts(self) -> list[_Part]:
        return _parts(self.plan, self.plan.row_cuts, self.plan.column_cuts, _table_tiles(self.plan))

    def slice_parts(self) -> list[_Part]:
        return _parts(self.plan, self.route.cuts, _slice_columns(self.plan, self.route), _slice_tiles(self.plan, self.route))

    def add_rounds(self, round_: Callable[[Sequence], None]) -> None:
        """Rounds until no look-up is left; one where lists hold all of them."""
        prog, graph, step = self.prog, self.graph, self.step
        if self.rule & VALIDATE and not self.rule & REMAP:
            self._check()
        fill(graph, self.cursor, prog, 0, step)
        body = Sequence(name=step)
        self._lists(common.compute_set_of(graph, body, f"{step}/list"))
        round_(body)
        if self.route.once:
            prog.add(body)
            return
        fill(graph, self.pending, prog, 1, step)
        test = Sequence()
        left = reduce(graph, self.pending.flatten(), [0], Operation.LOGICAL_OR, test, f"{step}/left")
        prog.add(RepeatWhileTrue(test, left, body, name=step))

    def _lists(self, cs: ComputeSet) -> None:
        plan, route, n = self.plan, self.route, self.plan.group_size * self.plan.row_parts
        rows, cuts = plan.row_cuts, route.cuts
        group = np.repeat(np.arange(plan.group_size), plan.row_parts)
        begin = (group[:, None] * route.lookups + cuts[:-1]).reshape(-1)
        capacity = np.arange(self.tiles.size) * route.capacity
        lists = {name: (t.flatten(), capacity, np.full(self.tiles.size, route.capacity)) for name, t in (("rows", self.rows), ("slots", self.slots))}
        fields = {
            "indices": (self.indices.flatten(), begin, np.tile(np.diff(cuts), n)),
            "first": np.repeat(np.tile(rows[:-1], plan.group_size), route.parts).astype(np.uint32),
            "count": np.repeat(np.tile(np.diff(rows), plan.group_size), route.parts).astype(np.uint32),
            "entries": plan.num_entries,
            "rule": self.rule,
            "cursor": self.cursor.flatten(),
            "pending": self.pending.flatten(),
            **lists,
        }
        self.graph.add_vertices(cs, codelets.RouteList, fields, self.tiles)

    def _check(self) -> None:
        plan, cuts = self.plan, self.route.cuts
        begin = (np.arange(plan.group_size)[:, None] * self.route.lookups + cuts[:-1]).reshape(-1)
        tile = _list_tiles(plan, self.route)[:, 0].reshape(-1)
        fields: dict[str, Any] = {"indices": (self.indices.flatten(), begin, np.tile(np.diff(cuts), plan.group_size))}
        fields |= {"limit": plan.num_entries + bool(self.rule & PADDING), "entries": plan.num_entries}
        self.graph.add_vertices(common.compute_set_of(self.graph, self.prog, f"{self.step}/check"), codelets.RouteCheck, fields, tile)


def check_plan(plan: SlicePlan, graph: Graph, shape: tuple[int, int, int], dtype: ElementType, sizes: tuple[int, ...], what: str) -> None:
    """Raises: ShapeError, GraphError: a plan for another table, (groups, rows, columns), or graph; slices of more than one row."""
    if not isinstance(plan, SlicePlan):
        raise GraphError(f"the plan of {what} is {plan!r:.60}", "popops.embedding.plan(...)")
    wanted = (plan.group_size, plan.num_entries, plan.output_size)
    if shape != wanted or dtype is not plan.dtype or sizes != (1,) or plan.num_tiles != graph.target.num_tiles:
        raise ShapeError(
            f"{what}, {dtype!r}, by {list(sizes)} on {graph.target.num_tiles} tiles with the plan of a {plan}",
            "a plan for this table and graph; slices of 1 row",
        )


def _slice_columns(plan: SlicePlan, route: Route) -> Array:
    """Where the column parts of slices begin, and the end of the last."""
    cuts = plan.column_cuts
    inner = cuts[:-1, None] + np.diff(cuts)[:, None] // route.splits * np.arange(route.splits)
    return np.append(inner.reshape(-1), cuts[-1])


def _table_tiles(plan: SlicePlan) -> Array:
    """int64[groups, row parts, column parts]"""
    return _grid(plan, np.arange(plan.row_parts), plan.column_parts)


def _slice_tiles(plan: SlicePlan, route: Route) -> Array:
    """int64[groups, look-up parts, column parts of slices]"""
    return _grid(plan, np.arange(route.parts) // route.slices_per_tile, plan.column_parts * route.splits)


def _list_tiles(plan: SlicePlan, route: Route) -> Array:
    """int64[groups, row parts, look-up parts]"""
    width = -(-route.parts // route.lists_per_tile)
    return _grid(plan, np.arange(plan.row_parts), width)[:, :, np.arange(route.parts) // route.lists_per_tile]


def _grid(plan: SlicePlan, outer: Array, inner: int) -> Array:
    first = np.array([plan.first_tile(g) for g in range(plan.group_size)])
    made: Array = first[:, None, None] + outer[:, None] * inner + np.arange(inner)
    return made


def _parts(plan: SlicePlan, rows: Array, columns: Array, tiles: Array) -> list[_Part]:
    r, c = rows.tolist(), columns.tolist()
    return [
        _Part(g, i, r[i], r[i + 1], c[k], c[k + 1], int(tiles[g, i, k]))
        for g in range(plan.group_size)
        for i in range(len(r) - 1)
        if r[i + 1] > r[i]
        for k in range(len(c) - 1)
    ]


def _spread(graph: Graph, plan: SlicePlan, rows: int, row_cuts: Array, column_cuts: Array, tiles: Array, name: str) -> Tensor:
    """(groups, rows, columns), parts of rows and columns each on a tile; in memory the rows of one column part lie together."""
    made = graph.add_variable(plan.dtype, (plan.group_size, plan.output_size * rows), name=name)
    if not rows:
        return made.reshape((plan.group_size, rows, plan.output_size))
    begin = column_cuts[:-1, None] * rows + row_cuts[:-1] * np.diff(column_cuts)[:, None]
    length = np.diff(column_cuts)[:, None] * np.diff(row_cuts)
    begin = np.arange(plan.group_size)[:, None] * made.shape[1] + begin.reshape(-1)
    length, tile = np.tile(length.reshape(-1), plan.group_size), tiles.transpose(0, 2, 1).reshape(-1)
    graph.map_intervals(made, begin.reshape(-1)[length > 0], length[length > 0], tile[length > 0])
    return _by_row(made, rows, column_cuts)


def _by_row(base: Tensor, rows: int, cuts: Array) -> Tensor:
    """(groups, rows, columns) of column parts that lie one after the other."""
    return concat([base[:, b * rows : e * rows].reshape((base.shape[0], rows, e - b)) for b, e in pairwise(cuts.tolist())], dim=2)


class _Parts:
    """Parts of a tensor (groups, rows, columns). Where ``_spread`` made it they are known to be runs, whatever it takes to see it."""

    def __init__(self, t: Tensor, cuts: Array) -> None:
        self.t, self.base = t, None
        found = t.variables()
        if t.variable is None and len(found) == 1 and found[0].shape == (t.shape[0], t.shape[1] * t.shape[2]):
            base = whole(found[0])
            ours, wanted = t.regions(), _by_row(base, t.shape[1], cuts).regions()
            self.base = base if np.array_equal(ours.ids, wanted.ids) and np.array_equal(ours.length, wanted.length) else None

    def __getitem__(self, at: _Part) -> Tensor:
        if self.base is None:
            return self.t[at.group, at.first : at.last, at.begin : at.end]
        begin = at.begin * self.t.shape[1]
        return self.base[at.group, begin + at.first * at.width : begin + at.last * at.width].reshape((at.last - at.first, at.width))
