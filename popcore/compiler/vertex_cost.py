"""What a vertex costs a worker: by the user's word, by the codelet's formula, or by an estimate of its code. A part of the timing model."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from popcore.codelet import Codelet
from popcore.compiler.ir import GroupPlan
from popcore.errors import CodeletError
from popcore.estimate import Unknown, estimate_of
from popcore.executable import AUTOMATIC, FORMULA, STOPGAP, USER
from popcore.types import Array

STOPGAP_PROLOGUE, STOPGAP_PER_ELEMENT = 25, 3  # of a codelet that no estimate understands: PT-add_fp32 (3 a vector), as if not vectorised


@dataclass(frozen=True)
class VertexCost:
    """Worker cycles of the vertices of a group."""

    cycles: Array  # float64[n]: those that are known before it runs
    counted: Array  # bool[n]: more are counted as it runs
    origin: Array  # int64[n]: index of ``executable.ORIGINS``


class _Size:
    """Stands for a field when ``cycles(self)`` is asked: it has a size and a shape and no values."""

    def __init__(self, shape: tuple[int, ...], parts: tuple[_Size, ...] = ()) -> None:
        self.shape, self._parts = shape, parts

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: int) -> _Size:
        return self._parts[index]


def vertex_cost(codelet: Codelet, plan: GroupPlan, estimate: Array) -> VertexCost:
    """Worker cycles of each vertex of a group: the user's number, else ``cycles(self)``, else the estimate of its code.

    ``estimate``: int64[n] of ``set_perf_estimate``, -1 where it was not called. All count what one worker
    issues, as PopLibs' estimators do; with six workers sharing the tile, one such cycle takes six of the tile's.
    """
    count = len(plan.tile)
    wanted = np.flatnonzero(estimate < 0)
    cycles, origin, counted = estimate.astype(np.float64), np.full(count, USER), np.zeros(count, bool)
    if not len(wanted):
        return VertexCost(cycles, counted, origin)
    kind, first = _alike(codelet, plan)
    some = np.unique(kind[wanted])
    found = {int(number): _cost_of(codelet, plan, int(first[number])) for number in some}
    each = np.zeros((len(first), 3))
    each[some] = [found[int(number)] for number in some]
    cycles[wanted], origin[wanted], counted[wanted] = each[kind[wanted]].T
    return VertexCost(cycles, counted, origin)


def _alike(codelet: Codelet, plan: GroupPlan) -> tuple[Array, Array]:
    """For each vertex the number of its sizes, and for each number the first vertex that has them."""
    count = len(plan.tile)
    shapes = [plan.sizes[f.name].reshape(count, -1) for f in codelet.fields if f.shape != "list"]
    lists = [_list_elements(plan, f.name) for f in codelet.fields if f.shape == "list"]
    columns = np.hstack([*shapes, *(e[:, None] for e in lists)]) if shapes or lists else np.zeros((count, 1), np.int64)
    _, first, kind = np.unique(_row_numbers(columns), return_index=True, return_inverse=True)
    return kind, first


def _row_numbers(columns: Array) -> Array:
    """int64[rows]: a number for each row of a table of numbers from 0 on, the same for equal rows. Sorting numbers takes a tenth of sorting rows."""
    made = np.zeros(len(columns), np.int64)
    for column in columns.T:
        _, made = np.unique(made * (int(column.max()) + 1) + column, return_inverse=True)
    return made


def _list_elements(plan: GroupPlan, name: str) -> Array:
    first, _, _, elements = plan.pieces[name]
    total = np.concatenate([[0], np.cumsum(elements)])
    found: Array = total[first[1:]] - total[first[:-1]]
    return found


def _sizes_of(codelet: Codelet, plan: GroupPlan, vertex: int) -> dict[str, _Size]:
    sizes: dict[str, _Size] = {}
    for f in codelet.fields:
        if f.shape == "list":
            first, _, _, elements = plan.pieces[f.name]
            parts = tuple(_Size((int(n),)) for n in elements[first[vertex] : first[vertex + 1]])
            sizes[f.name] = _Size((len(parts),), parts)
        elif f.shape == "matrix":
            sizes[f.name] = _Size(tuple(int(n) for n in plan.sizes[f.name][vertex]))
        elif f.shape == "vector":
            sizes[f.name] = _Size((int(plan.sizes[f.name][vertex]),))
        else:
            sizes[f.name] = _Size(())
    return sizes


def _cost_of(codelet: Codelet, plan: GroupPlan, vertex: int) -> tuple[float, int, bool]:
    """Worker cycles of one vertex, whose word they are, and whether more are counted."""
    sizes: dict[str, Any] = _sizes_of(codelet, plan, vertex)
    own = getattr(codelet.cls, "cycles", None)
    if own is not None:
        stand_in = codelet.cls.__new__(codelet.cls)
        stand_in.__dict__.update({f.name: sizes[f.name] for f in codelet.fields if f.shape != "scalar"})
        try:
            return float(own(stand_in)), FORMULA, False
        except Exception as error:
            raise CodeletError(
                f"cycles of codelet {codelet.name} ({codelet.site}) raised {type(error).__name__}: {error}",
                "use only len(), .size and .shape of the fields there, and return a number",
            ) from error
    estimate = estimate_of(codelet)
    if estimate is not None:
        with suppress(Unknown):  # then by size alone, and the profile says so
            return estimate.fixed(sizes, codelet.workers), AUTOMATIC, estimate.counted
    most = max((sum(p.size for p in s._parts) if s._parts else s.size for s in sizes.values()), default=1)
    return (STOPGAP_PROLOGUE + STOPGAP_PER_ELEMENT * most) / codelet.workers, STOPGAP, False
