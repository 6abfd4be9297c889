"""Slices whose place is known at run time only: dynamic_slice, dynamic_update, multi_slice, multi_update and its kin.

Each tile works on the columns that it holds of the first row of the table, and has their other rows brought to it where they
live elsewhere; ``create_sliceable_tensor`` maps so that nothing has to be brought.
"""

from __future__ import annotations

import math
from collections.abc import Sequence as Items
from typing import Any

import numpy as np

from popcore.codelets import slices
from popcore.errors import ElementTypeError, ShapeError
from popcore.graph import ComputeSet, Graph, Tensor
from popcore.graph.tiles import linear_intervals
from popcore.ops.popops import common
from popcore.ops.popops.placing import mapped_runs, share_out
from popcore.ops.poputil import map_tensor_linearly
from popcore.program import Sequence
from popcore.types import UNSIGNED_INT, DTypeLike, as_element_type

OPTIONS = {"validateIndices": ("false", "true"), "remapOutOfBoundIndices": ("false", "true"), "paddingIndexUsed": ("false", "true")}
"""Of indices outside of the table: stop the run; take row 0; ``paddingIndexUsed`` is taken as said (its rows are zeros anyway)."""


def create_sliceable_tensor(
    graph: Graph, dtype: DTypeLike, shape: Items[int], dims: Items[int], sizes: Items[int], min_grain_size: int = 0, name: str = ""
) -> Tensor:
    """A tensor whose elements that differ only in their place along ``dims`` are on one tile, spread over the tiles otherwise."""
    element = as_element_type(dtype)
    made = graph.add_variable(element, tuple(shape), name=common.joined(name, "sliceable"))
    _check_slice(made, dims, sizes, "create_sliceable_tensor")
    if not made.num_elements:
        return made
    if len(set(dims)) in (0, made.rank):
        graph.set_tile_mapping(made, 0) if dims else map_tensor_linearly(graph, made)
        return made
    rest = [d for d in range(made.rank) if d not in dims]
    columns = math.prod(made.shape[d] for d in rest)
    begin, length, tile = linear_intervals(columns, graph.target.num_tiles, 1, max(min_grain_size, graph.target.get_vector_width(element)))
    rows = made.dim_shuffle([*sorted(dims), *rest]).flatten()
    count = made.num_elements // columns
    first = (np.arange(count)[:, None] * columns + begin).reshape(-1)
    graph.map_intervals(rows, first, np.tile(length, count), np.tile(tile, count))
    return made


def create_slice_tensor(graph: Graph, t: Tensor, dims: Items[int], sizes: Items[int], num_indices: int, name: str = "") -> Tensor:
    """A tensor for ``num_indices`` slices of ``t``, (num_indices, *slice), each element on the tile of its column of ``t``."""
    _check_slice(t, dims, sizes, "create_slice_tensor")
    shape = _slice_shape(t, dims, sizes)
    made = graph.add_variable(t.dtype, (num_indices, *shape), name=common.joined(name, "slices"))
    one = t
    for d in dims:
        one = one.slice(0, min(1, one.shape[d]), d)
    if not made.num_elements:
        return made
    rows = made.dim_shuffle([0, *(1 + d for d in sorted(dims)), *(1 + d for d in range(t.rank) if d not in dims)]).flatten()
    begin, length, tile = mapped_runs(graph, one.flatten())
    count = made.num_elements // one.num_elements
    first = (np.arange(count)[:, None] * one.num_elements + begin).reshape(-1)
    graph.map_intervals(rows, first, np.tile(length, count), np.tile(tile, count))
    return made


def create_indices_tensor(graph: Graph, dims: Items[int], num_indices: int, plan: None = None, options: common.Options | None = None, name: str = "") -> Tensor:
    """An UNSIGNED_INT tensor (num_indices, number of dims) for the functions here, mapped linearly."""
    common.read_options("create_indices_tensor", options, OPTIONS)
    made = graph.add_variable(UNSIGNED_INT, (num_indices, len(dims)), name=common.joined(name, "indices"))
    map_tensor_linearly(graph, made)
    return made


def dynamic_slice(graph: Graph, t: Tensor, offset: Tensor, dims: Items[int], sizes: Items[int], prog: Sequence, name: str = "") -> Tensor:
    """The part of ``t`` with ``sizes[k]`` entries along ``dims[k]`` from ``offset[k]`` on, around the end of the dimension; the rest whole.

    Where an offset is no entry of its dimension nothing is written: the result is undefined.

    Raises: ShapeError: as many offsets as dimensions are missing, a size above the dimension. ElementTypeError: offsets that are not UNSIGNED_INT.
    Costs: one compute set for each of ``dims``.
    """
    step = common.joined(name, "dynamic_slice")
    offsets = _offsets(t, offset, dims, sizes, step)
    if not dims:
        made = graph.clone(t, f"{step}/out")
        common.copy(prog, t, made, step)
        return made
    for at, d, size in zip(offsets, dims, sizes, strict=True):
        out = create_slice_tensor(graph, t, [d], [size], 1, step)[0]
        _rows(graph, slices.DynamicSlice[t.dtype], t, d, {"out": (out, d)}, {"offset": at}, prog, step)  # type: ignore[name-defined]
        t = out
    return t


def dynamic_update(graph: Graph, t: Tensor, s: Tensor, offset: Tensor, dims: Items[int], sizes: Items[int], prog: Sequence, name: str = "") -> None:
    """Write ``s`` to the part of ``t`` that ``dynamic_slice`` would give; nothing where an offset is no entry of its dimension."""
    step = common.joined(name, "dynamic_update")
    offsets = _offsets(t, offset, dims, sizes, step)
    common.require_writeable(step, t)
    if s.shape != _slice_shape(t, dims, sizes) or s.dtype is not t.dtype:
        raise ShapeError(f"{step} of {t!r} by {s!r}", f"{_slice_shape(t, dims, sizes)} of the same type")
    if not dims:
        common.copy(prog, s, t, step)
        return
    if len(dims) > 1:
        part = dynamic_slice(graph, t, offset[:1], dims[:1], sizes[:1], prog, step)
        dynamic_update(graph, part, s, offset[1:], dims[1:], sizes[1:], prog, step)
        s = part
    _rows(graph, slices.DynamicUpdate[t.dtype], t, dims[0], {"part": (s, dims[0])}, {"offset": offsets[0]}, prog, step)  # type: ignore[name-defined]


def multi_slice(
    graph: Graph, t: Tensor, offsets: Tensor, dims: Items[int], sizes: Items[int], prog: Sequence | ComputeSet, plan: None = None,
    options: common.Options | None = None, name: str = "",
) -> Tensor:  # fmt: skip
    """Slice i of the result, (number of offsets, *slice), is what ``t`` has from ``offsets[i]`` on; zeros where that is not all within ``t``.

    Args:
        offsets: UNSIGNED_INT (n, 1); ``dims`` and ``sizes`` name one dimension.
    """
    step = common.joined(name, "multi_slice")
    rule = _rule(options)
    _check_many(t, offsets, dims, sizes, step)
    made = create_slice_tensor(graph, t, dims, sizes, offsets.shape[0], step)
    if made.num_elements:
        rows = made.dim_roll(1 + dims[0], 1).flatten(0, 2)
        _rows(graph, slices.MultiSlice[t.dtype], t, dims[0], {"out": (rows, 0)}, {"indices": offsets.flatten(), "rule": rule}, prog, step)  # type: ignore[name-defined]
    return made


def multi_update(
    graph: Graph, t: Tensor, s: Tensor, offsets: Tensor, dims: Items[int], sizes: Items[int], prog: Sequence | ComputeSet, plan: None = None,
    options: common.Options | None = None, name: str = "",
) -> None:  # fmt: skip
    """Write ``s[i]`` to ``t`` from ``offsets[i]`` on, in that order; what is not all within ``t`` is skipped."""
    _update(graph, slices.MultiUpdate, t, s, offsets, 1.0, dims, sizes, prog, options, common.joined(name, "multi_update"))


def multi_update_add(
    graph: Graph, t: Tensor, s: Tensor, offsets: Tensor, scale: float | Tensor, dims: Items[int], sizes: Items[int], prog: Sequence | ComputeSet,
    plan: None = None, options: common.Options | None = None, name: str = "",
) -> None:  # fmt: skip
    """Add ``scale * s[i]`` to ``t`` from ``offsets[i]`` on; an offset that is there twice adds twice. ``scale`` is a number or a FLOAT scalar."""
    if t.dtype.kind not in ("float", "half"):
        raise ElementTypeError(f"multi_update_add of {t!r}", "FLOAT or HALF")
    _update(graph, slices.MultiUpdateAdd, t, s, offsets, scale, dims, sizes, prog, options, common.joined(name, "multi_update_add"))


def multi_update_max(
    graph: Graph, t: Tensor, s: Tensor, offsets: Tensor, dims: Items[int], sizes: Items[int], prog: Sequence | ComputeSet, plan: None = None,
    options: common.Options | None = None, name: str = "",
) -> None:  # fmt: skip
    """The greater of ``s[i]`` and what ``t`` holds from ``offsets[i]`` on."""
    _update(graph, slices.MultiUpdateMax, t, s, offsets, 1.0, dims, sizes, prog, options, common.joined(name, "multi_update_max"))


def multi_update_mul(
    graph: Graph, t: Tensor, s: Tensor, offsets: Tensor, dims: Items[int], sizes: Items[int], prog: Sequence | ComputeSet, plan: None = None,
    options: common.Options | None = None, name: str = "",
) -> None:  # fmt: skip
    """``s[i]`` times what ``t`` holds from ``offsets[i]`` on."""
    _update(graph, slices.MultiUpdateMul, t, s, offsets, 1.0, dims, sizes, prog, options, common.joined(name, "multi_update_mul"))


def _update(
    graph: Graph, cls: Any, t: Tensor, s: Tensor, offsets: Tensor, scale: Any, dims: Items[int], sizes: Items[int], prog: Any, options: Any, step: str
) -> None:
    rule = _rule(options)
    _check_many(t, offsets, dims, sizes, step)
    common.require_tensors(step, s)
    common.require_writeable(step, t)
    wanted = (offsets.shape[0], *_slice_shape(t, dims, sizes))
    if s.shape != wanted or s.dtype is not t.dtype:
        raise ShapeError(f"{step} of {t!r} by {s!r}", f"{wanted} of the same type")
    if s.num_elements:
        rows = s.dim_roll(1 + dims[0], 1).flatten(0, 2)
        fields = {"indices": offsets.flatten(), "rule": rule, "scale": scale.reshape(()) if isinstance(scale, Tensor) else float(scale)}
        _rows(graph, cls[t.dtype], t, dims[0], {"part": (rows, 0)}, fields, prog, step)


def _rows(graph: Graph, cls: Any, t: Tensor, dim: int, others: dict[str, tuple[Tensor, int]], fields: dict[str, Any], prog: Any, step: str) -> None:
    """Vertices that have all rows of ``t`` along ``dim``, each with some columns, as do those of ``others`` along theirs."""
    table = _as_rows(t, dim)
    seen = {name: _as_rows(o, d) for name, (o, d) in others.items()}
    if not table.num_elements or not all(o.num_elements for o in seen.values()):
        return
    begin, size, tile = share_out(*mapped_runs(graph, table[0]), graph.target.num_worker_contexts, graph.target.get_vector_width(t.dtype))
    cs = common.compute_set_of(graph, prog, step)
    for b, n, where in zip(begin.tolist(), size.tolist(), tile.tolist(), strict=True):
        parts = {name: o.slice(b, b + n, 1) for name, o in seen.items()}
        graph.add_vertex(cs, cls, {"data": table.slice(b, b + n, 1), **parts, **fields}, where)


def _as_rows(t: Tensor, dim: int) -> Tensor:
    return t.dim_roll(dim, 0).flatten(1, t.rank) if t.rank > 1 else t.expand([1])


def _slice_shape(t: Tensor, dims: Items[int], sizes: Items[int]) -> tuple[int, ...]:
    size = dict(zip(dims, sizes, strict=True))
    return tuple(size.get(d, n) for d, n in enumerate(t.shape))


def _check_slice(t: Tensor, dims: Items[int], sizes: Items[int], step: str) -> None:
    if len(dims) != len(sizes) or len(set(dims)) != len(dims) or any(not 0 <= d < t.rank for d in dims):
        raise ShapeError(f"{step} of {t!r} over dimensions {list(dims)} by {list(sizes)}", "each dimension once, a size for each")
    for d, size in zip(dims, sizes, strict=True):
        if not 0 <= size <= t.shape[d]:
            raise ShapeError(f"{step} of {size} entries of dimension {d} of {t!r}", f"0 to {t.shape[d]}")


def _offsets(t: Tensor, offset: Tensor, dims: Items[int], sizes: Items[int], step: str) -> list[Tensor]:
    common.require_tensors(step, t, offset)
    _check_slice(t, dims, sizes, step)
    if offset.dtype is not UNSIGNED_INT:
        raise ElementTypeError(f"the offset of {step} is {offset!r}", "UNSIGNED_INT")
    if offset.num_elements != len(dims):
        raise ShapeError(f"{step} over {len(dims)} dimensions with offset {offset!r}", "one element for each")
    return [offset.flatten()[k] for k in range(len(dims))]


def _check_many(t: Tensor, offsets: Tensor, dims: Items[int], sizes: Items[int], step: str) -> None:
    common.require_tensors(step, t, offsets)
    _check_slice(t, dims, sizes, step)
    if len(dims) != 1:
        raise ShapeError(f"{step} over dimensions {list(dims)} is not available yet in this version", "one dimension")
    if offsets.dtype is not UNSIGNED_INT:
        raise ElementTypeError(f"the offsets of {step} are {offsets!r}", "UNSIGNED_INT")
    if offsets.shape not in ((offsets.num_elements,), (offsets.num_elements, 1)):
        raise ShapeError(f"{step} with offsets {offsets!r}", "(n, 1)")


def _rule(options: common.Options | None) -> int:
    found = common.read_options("multi_slice", options, OPTIONS)
    return slices.VALIDATE if found["validateIndices"] == "true" else slices.REMAP if found["remapOutOfBoundIndices"] == "true" else 0
