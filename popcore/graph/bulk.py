"""Many vertices in one call, from arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from popcore.errors import GraphConnectionError, ShapeError, TileMappingError
from popcore.graph import connect, values
from popcore.graph.columns import EXTRA, HELD, UNCONNECTED, Column
from popcore.graph.pieces import Pieces
from popcore.graph.tensor import Tensor
from popcore.graph.vertex import VertexGroup, VertexRange
from popcore.types import Array


@dataclass
class _Entries:
    """What a column gets: arrays over the new vertices; ``extra`` counts the new vertices from 0."""

    ids: Array
    length: Array | int = 0
    rows: Array | int = 0
    stride: Array | int = 0
    extra: Pieces | None = None
    literals: Array | None = None


def add_many(group: VertexGroup, connections: Mapping[str, Any], tiles: Array, cycles: Any = None) -> VertexRange:
    """Append one vertex for each tile of ``tiles``; see ``Graph.add_vertices``.

    Raises: as ``add_vertex``; the group is then as it was.
    Costs: some array operations a field, unless a vertex's part of a tensor is not one run.
    """
    n = tiles.size
    entries: dict[str, _Entries] = {}
    for name, what in connections.items():
        column = group.column(name)
        where = f"{group.codelet.name}.{name} of {n} vertices in compute set {group.compute_set.name!r}"
        entries[name] = _entries(column, what, n, where, group)
    estimates = None if cycles is None else np.array(np.broadcast_to(np.asarray(cycles, np.int64), (n,)))
    first = group.count
    for name, column in group.columns.items():
        made = entries.get(name)
        if made is not None and made.literals is not None:
            column.values.extend(np.arange(first, first + n), made.literals)
        if column.field.direction == "state":
            column.settled = None
            continue
        made = made or _Entries(np.broadcast_to(np.int64(UNCONNECTED), (n,)))
        for numbers, given, kind in zip(column.numbers, (made.ids, made.length, made.rows, made.stride), "qqiq", strict=False):
            numbers.extend(np.array(np.broadcast_to(given, (n,)), kind))
        if made.extra is not None:
            column.extra.extend(made.extra, first)
    group.extend_tiles(tiles)
    if estimates is not None:
        group.set_estimates(first, estimates)
    return VertexRange(group, first, n)


def checked_tiles(tiles: Any, num_tiles: int, what: str) -> Array:
    """Raises: TileMappingError, naming the first tile that the target does not have."""
    made = np.asarray(tiles)
    if not made.size:
        made = made.astype(np.int32)
    if made.ndim != 1 or made.dtype.kind not in "iu":
        raise TileMappingError(f"tiles of {what}: {made.dtype} of shape {made.shape}", "a one-dimensional array of whole numbers")
    bad = (made < 0) | (made >= num_tiles)
    if bad.any():
        i = int(np.argmax(bad))
        raise TileMappingError(f"vertex {i} of {what} is put on tile {made[i]}, the target has {num_tiles} tiles", f"tiles 0 to {num_tiles - 1}")
    return np.array(made, np.int32)


def _entries(column: Column, what: Any, n: int, where: str, group: VertexGroup) -> _Entries:
    field = column.field
    if isinstance(what, tuple) and what and isinstance(what[0], Tensor):
        return _ranges(column, what, n, where, group)
    if isinstance(what, Tensor):
        if field.direction == "state":
            raise GraphConnectionError(f"{where} is state and has no edge to connect {what!r} to", "pass values, or declare it as an edge")
        shared = what.rank == column.rank
        connect.check_tensor(field, what, column.rank if shared else column.rank + 1, group.home, where)
        if not shared and what.shape[0] != n:
            raise ShapeError(f"{where}: {what!r} has {what.shape[0]} rows", f"one row a vertex: {n}")
        return _one_each(column, what.broadcast(n, 0) if what.rank and shared and n == 0 else what.expand([0]).broadcast(n, 0) if shared else what, n)
    if field.direction not in ("in", "state"):
        raise GraphConnectionError(f"{where} writes, and {what!r:.60} is a literal", "connect a variable")
    if field.shape != "scalar":
        raise GraphConnectionError(f"{where} is a {field.shape}, and {what!r:.60} is a literal", "graph.add_constant, and connect that")
    made = values.as_elements(what, field.dtype, where)
    if made.ndim > 1 or (made.ndim == 1 and made.size != n):
        raise ShapeError(f"{where}: values of shape {made.shape}", f"one value, or {n}")
    return _Entries(np.broadcast_to(np.int64(HELD), (n,)), literals=np.array(np.broadcast_to(made, (n,))))


def _one_each(column: Column, t: Tensor, n: int) -> _Entries:
    """``t[i]`` for vertex i."""
    if t.variable is None:
        if column.rank == 0:
            return _Entries(t.regions().element_ids())
        return _slow(column, [t[i] for i in range(n)])
    ids = t.variable.base + (t.offset + t.strides[0] * np.arange(n, dtype=np.int64) if t.num_elements else np.zeros(n, np.int64))
    if column.rank == 0:
        return _Entries(ids)
    row = t[0] if n else t
    if n and column.field.shape == "list" and (row.shape[1] <= 1 or row.strides[1] == 1):
        return _Entries(ids, row.shape[1], row.shape[0], row.strides[0])
    if n and row.simple is None:
        return _slow(column, [t[i] for i in range(n)])
    return _Entries(ids, row.num_elements, row.shape[0] if column.rank == 2 else 0)


def _ranges(column: Column, what: tuple[Any, ...], n: int, where: str, group: VertexGroup) -> _Entries:
    """(tensor, start[n], length[n]): elements of the flattened tensor; for a matrix (tensor, start[n], rows[n], columns[n])."""
    tensor, wanted = what[0], 4 if column.field.shape == "matrix" else 2 if column.rank == 0 else 3
    if len(what) not in (wanted, 3 if column.rank == 0 else wanted) or column.field.shape == "list":
        parts = {2: "start", 3: "start, length", 4: "start, rows, columns"}[wanted]
        raise ShapeError(f"{where}: a tuple of {len(what)}", "one 3-D tensor" if column.field.shape == "list" else f"(tensor, {parts})")
    connect.check_tensor(column.field, tensor, tensor.rank, group.home, where)
    start, *sizes = (_whole_numbers(a, n, where) for a in what[1:])
    rows = sizes[0] if column.field.shape == "matrix" else 0
    length = rows * sizes[1] if column.field.shape == "matrix" else sizes[0] if sizes else np.broadcast_to(np.int64(1), (n,))
    bad = (start < 0) | (length < 0) | (start + length > tensor.num_elements)
    if column.rank == 0:
        bad |= length != 1
    if bad.any():
        i = int(np.argmax(bad))
        raise ShapeError(
            f"{where}: vertex {i} is given elements [{start[i]}, {start[i] + length[i]}) of {tensor!r}, which has {tensor.num_elements}",
            "ranges within the flattened tensor",
        )
    if tensor.variable is not None and (simple := tensor.simple) is not None:
        return _Entries(tensor.variable.base + simple[1] + start, length, rows)
    return _ranges_of_runs(column, tensor, start, length, rows)


def _ranges_of_runs(column: Column, tensor: Tensor, start: Array, length: Array, rows: Array | int) -> _Entries:
    flat = tensor.flatten()
    if not flat.num_elements:
        return _Entries(np.full(start.size, flat.variables()[0].base), length, rows)
    # a vertex that gets no element has to begin somewhere
    ids, sizes, owner = flat.regions().pieces(np.minimum(start, flat.num_elements - 1), np.maximum(length, 1))
    head = np.flatnonzero(np.diff(owner, prepend=-1))
    runs = np.diff(np.append(head, owner.size))
    split = runs > 1
    first = np.where(split, EXTRA, ids[head])
    extra = Pieces()
    many = np.repeat(split, runs)
    extra.add_many(np.flatnonzero(split), runs[split], ids[many], sizes[many])
    return _Entries(first, length, rows, extra=extra)


def _slow(column: Column, parts: list[Tensor]) -> _Entries:
    """One tensor a vertex, where arithmetic on offsets does not do."""
    made = Column(column.field)
    for i, t in enumerate(parts):
        connect.place(made, i, t)
    return _Entries(made.ids.array(), made.length, made.rows, made.stride, extra=made.extra)


def _whole_numbers(a: Any, n: int, where: str) -> Array:
    made = np.asarray(a)
    if made.dtype.kind not in "iu" or made.shape not in ((), (n,)):
        raise ShapeError(f"{where}: {made.dtype} of shape {made.shape}", f"whole numbers, one a vertex: {n}")
    return np.broadcast_to(made.astype(np.int64), (n,))
