"""Connecting one field of one vertex, with every check; the fast path of the common cases is in vertex.py."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from popcore.codelet import Codelet, Field
from popcore.errors import GraphConnectionError, ShapeError, UnknownNameError, ValueRangeError, near_matches
from popcore.graph import values
from popcore.graph.columns import EXTRA, HELD, OPEN, UNCONNECTED, Column
from popcore.graph.tensor import Tensor, concat
from popcore.graph.variable import Variables

Label = Callable[[int, str], str]


def connect(column: Column, index: int, value: Any, home: Variables, label: Label) -> None:
    """Connect field ``column`` of vertex ``index`` to a tensor, a list of tensors, or a literal.

    Raises:
        GraphConnectionError: connected already; another number of vectors than set_field_size said; another element type, rank or graph; a constant that would be written.
        ValueRangeError: a literal that the field's type cannot hold.
    """
    field = column.field
    if not column.is_free(index):
        _check_count(column, index, value, label)
    if field.direction == "state":
        raise GraphConnectionError(
            f"{label(index, field.name)} is state and has no edge", f"set_initial_value, or declare {field.name} as Input, Output or InOut"
        )
    if field.scalars:
        value = _one_element_each(value)
    if isinstance(value, Tensor):
        _check(field, index, value, field.rank, home, label)
        place(column, index, value)
    elif _is_tensor_list(value) and (value or field.shape == "list"):
        _connect_list(column, index, value, home, label)
    else:
        _connect_literal(column, index, value, label)


def _check_count(column: Column, index: int, value: Any, label: Label) -> None:
    """A list field that only has a size so far takes a list of that size; nothing else is connected twice."""
    where, size = label(index, column.field.name), column.row_count(index)
    if column.ids[index] != OPEN or any(column.extra.was_added(index, row) for row in range(size)) or not isinstance(value, Tensor | list | tuple):
        raise GraphConnectionError(f"{where} is connected already", "connect each field once")
    if len(value) != size:
        raise GraphConnectionError(
            f"{where} has {size} vectors, as set_field_size says, and is given {len(value)}", "connect as many, or leave set_field_size out"
        )


def connect_row(column: Column, index: int, row: int, tensor: Tensor, home: Variables, label: Label) -> None:
    """Connect one vector of a list field. The field counts as connected when all up to the last one are."""
    name = f"{column.field.name}[{row}]"
    if column.field.scalars and tensor.num_elements == 1:
        tensor = tensor.flatten()
    if row < 0:
        raise ShapeError(f"{label(index, name)}: no such vector", "0 or more")
    if column.ids[index] not in (UNCONNECTED, OPEN):
        raise GraphConnectionError(f"{label(index, column.field.name)} is connected already", "connect the whole list or each vector of it")
    if column.extra.was_added(index, row):
        raise GraphConnectionError(f"{label(index, name)} is connected already", "connect each vector once")
    _check(column.field, index, tensor, 1, home, label, name)
    column.extra.add(index, row, tensor)
    column.put(index, OPEN, 0, max(row + 1, column.row_count(index)))


def _one_element_each(value: Any) -> Any:
    """What a list of single elements is connected to, as rows: of a vector each element is one."""
    if isinstance(value, Tensor):
        return value.expand([1]) if value.rank == 1 else value
    return [t.flatten() if t.num_elements == 1 else t for t in value] if _is_tensor_list(value) else value


def set_value(column: Column, index: int, value: Any, label: Label) -> None:
    """Give a state field, or an edge that nothing is connected to, its initial value."""
    field = column.field
    if field.direction != "state" and column.ids[index] != UNCONNECTED:
        raise GraphConnectionError(f"{label(index, field.name)} is connected: the tensor has the values", "set_initial_value(tensor, ...)")
    column.values.add(index, _literal(column, index, value, label))
    column.settled = None


def set_size(column: Column, index: int, size: int, label: Label) -> None:
    """Say how many elements a vector has that nothing is connected to."""
    field = column.field
    if field.shape == "list":
        if column.ids[index] not in (UNCONNECTED, OPEN) or size < column.row_count(index):
            raise GraphConnectionError(f"{label(index, field.name)} is connected to {column.row_count(index)} vectors", "set_field_size comes first")
        column.put(index, OPEN, 0, size)
        return
    if field.shape != "vector":
        raise GraphConnectionError(f"{label(index, field.name)} is a {field.shape} and takes no size", "Vector fields do")
    if field.direction != "state" and column.ids[index] != UNCONNECTED:
        raise GraphConnectionError(f"{label(index, field.name)} is connected: the tensor has a size", "set_field_size is for fields without a tensor")
    if size < 0:
        raise ValueRangeError(f"{label(index, field.name)} cannot have {size} elements", "0 or more")
    column.sizes.add(index, np.array([size]))
    column.settled = None


def unknown_field(codelet: Codelet, name: str) -> UnknownNameError:
    fields = [f.name for f in codelet.fields]
    listed = ", ".join(fields) or "none"
    hint = near_matches(name, fields, UnknownNameError.hint)
    return UnknownNameError(f"codelet {codelet.name} ({codelet.site}) has no field {name!r}; its fields: {listed}", hint)


def check_tensor(field: Field, tensor: Tensor, rank: int, home: Variables, where: str) -> None:
    """Raises: GraphConnectionError if ``field`` cannot be connected to ``tensor``; ``where`` names the field."""
    if tensor.dtype is not field.dtype:
        raise GraphConnectionError(f"{where} has element type {field.dtype!r}, {tensor!r} has {tensor.dtype!r}", "a tensor of that type, or cast it")
    if tensor.rank != rank:
        raise GraphConnectionError(f"{where} has rank {rank}, {tensor!r} has rank {tensor.rank}", _rank_hint(rank, tensor))
    if tensor._variables() is not home:
        raise GraphConnectionError(f"{where} and {tensor!r} belong to different graphs", "use tensors of the graph that has the vertex")
    if field.writes and tensor.contains_constant:
        raise GraphConnectionError(f"{where} writes, and {tensor!r} is constant", "connect a variable; clone or duplicate makes one")


def literal_values(field: Field, value: Any, where: str) -> Any:
    """A literal as elements of the field's type, of the shape given."""
    made = values.as_elements(value, field.dtype, where)
    if made.ndim > (1 if field.shape == "vector" else 0):
        raise GraphConnectionError(f"{where} is a {field.shape} and was given values of shape {made.shape}", "graph.add_constant, and connect that")
    return made


def _check(field: Field, index: int, tensor: Tensor, rank: int, home: Variables, label: Label, name: str = "") -> None:
    if tensor.dtype is field.dtype and len(tensor.shape) == rank and tensor._variables() is home and not (field.writes and tensor.contains_constant):
        return
    check_tensor(field, tensor, rank, home, label(index, name or field.name))


def place(column: Column, index: int, tensor: Tensor) -> None:
    """Write the entry of a tensor that was checked."""
    if column.field.shape == "list" and (rows := _equal_rows(tensor)) is not None:
        column.put(index, *rows)
    elif column.field.shape != "list" and (simple := tensor.simple) is not None:
        variable = tensor.variables()[0]
        column.put(index, variable.base + simple[1], simple[2], tensor.shape[0] if column.rank == 2 else 0)
    else:
        for row, t in enumerate(tensor if column.field.shape == "list" else [tensor]):
            column.extra.add(index, row, t)
        column.put(index, EXTRA, tensor.shape[1] if column.field.shape == "list" else tensor.num_elements, tensor.shape[0] if column.rank == 2 else 0)


def _equal_rows(tensor: Tensor) -> tuple[int, int, int, int] | None:
    """(first id, elements of a row, rows, stride) of a rank-2 view whose rows are each one run."""
    if tensor.variable is None or (tensor.shape[1] > 1 and tensor.strides[1] != 1):
        return None
    return tensor.variable.base + (tensor.offset if tensor.num_elements else 0), tensor.shape[1], tensor.shape[0], tensor.strides[0]


def _connect_list(column: Column, index: int, parts: Sequence[Tensor], home: Variables, label: Label) -> None:
    field = column.field
    if field.shape == "vector":  # several tensors to one vector: as one view
        joined = concat([t.flatten() for t in parts])
        _check(field, index, joined, 1, home, label)
        place(column, index, joined)
        return
    if field.shape != "list":
        raise GraphConnectionError(
            f"{label(index, field.name)} is a {field.shape} and was given a list of {len(parts)} tensors", "declare it VectorList, or concat them"
        )
    for row, t in enumerate(parts):
        _check(field, index, t, 1, home, label, f"{field.name}[{row}]")
    for row, t in enumerate(parts):
        column.extra.add(index, row, t)
    column.put(index, EXTRA, 0, len(parts))


def _connect_literal(column: Column, index: int, value: Any, label: Label) -> None:
    field = column.field
    if field.direction != "in":
        raise GraphConnectionError(f"{label(index, field.name)} writes, and {value!r:.60} is a literal", "connect a variable")
    made = _literal(column, index, value, label)
    column.put(index, HELD, made.size)
    column.values.add(index, made)


def _literal(column: Column, index: int, value: Any, label: Label) -> Any:
    """A literal as an array; the same number for vertex after vertex is checked once."""
    known, made = column.last_literal
    if value.__class__ in (int, float) and value.__class__ is known.__class__ and value == known and value:  # 0.0 == -0.0
        return made
    made = literal_values(column.field, value, label(index, column.field.name)).reshape(-1)
    column.last_literal = value, made
    return made


def _is_tensor_list(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(t, Tensor) for t in value)


def _rank_hint(rank: int, tensor: Tensor) -> str:
    if rank == 0:
        return "one element of it, as t[0]" if tensor.num_elements == 1 else "index it down to one element"
    if rank == 1:
        return "t.flatten()" if tensor.rank > 1 else "t.expand([0]) makes a vector of a scalar"
    return "t.expand([0]), or reshape it to rows and columns" if tensor.rank < 2 else "reshape it to rows and columns"
