"""Vertex state, literals and scratch become hidden variables, so that every field is a column over variables."""

from __future__ import annotations

from typing import Any

import numpy as np

from popcore.errors import GraphConnectionError, ShapeError
from popcore.graph.columns import HELD, UNCONNECTED, Column
from popcore.graph.regions import expand
from popcore.graph.variable import Variable, Variables
from popcore.graph.vertex import ComputeSet, VertexGroup
from popcore.types import Array


def finalise(variables: Variables, compute_sets: list[ComputeSet], hidden: dict[Any, Variable]) -> None:
    """Create, or bring up to date, the hidden variables of every field that has no tensor.

    Gives: of every Column, ``var`` and ``start`` of a state field, a literal, or a field with a size of its own say where its elements are.
        One hidden variable a field of a group, elements in order of the vertices, each on its vertex's tile. The same calls give the same variables.
    Raises: GraphConnectionError: a vector of a list field connected twice; ShapeError: a state vector with more or fewer values than its size.
    Costs: array operations; nothing of note for fields that are all connected.
    """
    for compute_set in compute_sets:
        for group in compute_set.groups.values():
            for column in group.columns.values():
                _check_rows(group, column)
                if column.settled is None and (column.field.direction == "state" or len(column.values) or len(column.sizes)):
                    _settle(variables, group, column, hidden)
                elif (key := _key(group, column)) in hidden:
                    _settle(variables, group, column, hidden) if _grown(group, column) else _map(hidden[key], group, column)


def _check_rows(group: VertexGroup, column: Column) -> None:
    """The one mistake that is not seen at its call: a vector of a list connected twice, with other vertices in between."""
    if len(column.extra) and (twice := column.extra.counts(group.count)[1]) is not None:
        raise GraphConnectionError(f"{group.label(int(twice[0]), f'{column.field.name}[{twice[1]}]')} is connected twice", "connect each vector once")


def _settle(variables: Variables, group: VertexGroup, column: Column, hidden: dict[Any, Variable]) -> None:
    field = column.field
    at, count, first, data = column.values.entries()
    sized, _, which, sizes = column.sizes.entries()
    size = np.zeros(group.count, np.int64)
    if field.direction == "state":
        mine = np.ones(group.count, bool)
        ids, lengths = np.empty(group.count, np.int64), np.empty(group.count, np.int64)
    else:
        ids, lengths = column.ids.array().copy(), np.array(column.length)
        mine = np.zeros(group.count, bool)
        mine[at], mine[sized] = True, True
        mine &= (ids == UNCONNECTED) | (ids == HELD)
    size[mine] = 1 if column.rank == 0 else 0
    if column.rank:
        size[at] = count
        size[sized] = sizes[which]
        if (bad := np.flatnonzero((count > 1) & (size[at] != count) & mine[at])).size:
            vertex, i = int(at[bad[0]]), int(bad[0])
            said = f"{group.label(vertex, field.name)} was given {count[i]} values and a size of {size[vertex]}"
            raise ShapeError(said, "as many values as the size says, or one for all")
    size[~mine] = 0
    end = np.cumsum(size)
    total = int(end[-1]) if end.size else 0
    variable = _hidden(variables, group, column, hidden, total)
    ids[mine], lengths[mine] = variable.base + (end - size)[mine], size[mine]
    column.settled = ids, lengths
    variable.initial, variable.has_initial = _initial(column, size, end, at, count, first, data, total)
    _map(variable, group, column)


def _initial(column: Column, size: Array, end: Array, at: Array, count: Array, first: Array, data: Array, total: int) -> tuple[Array | None, Array | None]:
    """What the elements start with. Scalars and vectors of state start at 0; a scratch buffer starts with nothing."""
    made = np.zeros(total, column.field.dtype.numpy)
    # one value for a whole vector fills it
    begin = (end - size)[at]
    reach = np.where(count == 1, size[at], np.minimum(count, size[at]))
    source = np.repeat(first, reach) + np.where(np.repeat(count == 1, reach), 0, expand(np.zeros_like(reach), reach))
    places = expand(begin, reach)
    made[places] = data[source]
    if column.field.direction == "state":
        return made, None
    has = np.zeros(total, bool)
    has[places] = True
    return (made, None if has.all() else has) if has.any() else (None, None)


def _hidden(variables: Variables, group: VertexGroup, column: Column, hidden: dict[Any, Variable], total: int) -> Variable:
    key = _key(group, column)
    found = hidden.get(key)
    if found is None:
        field = column.field
        name = f"{group.compute_set.name}/{group.codelet.name}.{field.name}"
        found = hidden[key] = Variable(variables, field.dtype, (total,), name, group.site, constant=field.direction == "in", hidden=True)
    found.resize((total,))
    return found


def _map(variable: Variable, group: VertexGroup, column: Column) -> None:
    """Each element to its vertex's tile, which may have changed."""
    assert column.settled is not None
    ids, length = column.settled
    mine = (ids >= variable.base) & (ids < variable.base + variable.numel) & (length > 0)
    variable.mapping.clear()
    variable.mapping.assign(ids[mine] - variable.base, length[mine], group.tile[mine])


def _grown(group: VertexGroup, column: Column) -> bool:
    return column.settled is None or column.settled[0].size != group.count


def _key(group: VertexGroup, column: Column) -> tuple[int, str, str]:
    return group.compute_set.id, group.codelet.name, column.field.name
