"""Slices whose place is known at run time only: dynamic_slice, dynamic_update, and tensors that can be sliced where they are.

Each tile works on the columns that it holds of the first row of the table, and has their other rows brought to it where they
live elsewhere; ``create_sliceable_tensor`` maps so that nothing has to be brought. With a plan rows are spread as well.
"""

from __future__ import annotations

import math
from collections.abc import Sequence as Items
from typing import Any, overload

import numpy as np

from popcore.codelets import slices
from popcore.errors import ElementTypeError, GraphError, ShapeError
from popcore.graph import Graph, Tensor
from popcore.graph.tiles import as_lists, linear_intervals
from popcore.ops.popops import common, routed
from popcore.ops.popops.embedding import SlicePlan, read_plan_options
from popcore.ops.popops.placing import mapped_runs, share_out
from popcore.ops.poputil import map_tensor_linearly
from popcore.program import Sequence
from popcore.types import UNSIGNED_INT, DTypeLike, as_element_type

OPTIONS = {"remapOutOfBoundIndices": ("false", "true"), "paddingIndexUsed": ("false", "true")}
"""Of offsets outside of their dimension: they are taken for 0; the one just behind the end gives zeros, and updates nothing."""


def create_sliceable_tensor(
    graph: Graph,
    dtype: DTypeLike,
    shape: Items[int],
    dims: Items[int],
    sizes: Items[int],
    min_grain_size: int | SlicePlan = 0,
    options: common.Options | None = None,
    name: str = "",
) -> Tensor:
    """A tensor whose elements that differ only in their place along ``dims`` are on one tile, spread over the tiles otherwise.

    Args:
        min_grain_size: Elements of a row that stay together; or a plan, by which rows along the one dimension of ``dims`` are spread too.

    Raises: ShapeError: dimensions or sizes that do not exist; a plan for another table.
    """
    step = common.joined(name, "sliceable")
    read_plan_options(step, options)
    if isinstance(min_grain_size, SlicePlan):
        return create_grouped_sliceable_tensor(graph, dtype, 1, shape, dims, sizes, min_grain_size, options, name)[0]
    element = as_element_type(dtype)
    made = graph.add_variable(element, tuple(shape), name=step)
    check_slice(made, dims, sizes, "create_sliceable_tensor")
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


def create_grouped_sliceable_tensor(
    graph: Graph,
    dtype: DTypeLike,
    group_size: int,
    shape: Items[int],
    dims: Items[int],
    sizes: Items[int],
    plan: SlicePlan,
    options: common.Options | None = None,
    name: str = "",
) -> Tensor:
    """(group_size, *shape), laid out by ``plan``."""
    step = common.joined(name, "sliceable")
    read_plan_options(step, options)
    _check_planned(graph, plan, as_element_type(dtype), (group_size, *shape), dims, sizes, step)
    return _from_columns(routed.create_table(graph, plan, step), shape, dims[0])


@overload
def create_slice_tensor(graph: Graph, t: Tensor, dims: Items[int], sizes: Items[int], num_indices: int, /, name: str = "") -> Tensor: ...
@overload
def create_slice_tensor(
    graph: Graph, dtype: DTypeLike, shape: Items[int], dims: Items[int], sizes: Items[int], num_indices: int, plan: SlicePlan | None,
    options: common.Options | None = None, /, name: str = "",
) -> Tensor: ...  # fmt: skip
def create_slice_tensor(graph: Graph, t: Any, *arguments: Any, name: str = "") -> Tensor:
    """``(graph, t, dims, sizes, num_indices)``: a tensor for slices of ``t``, (num_indices, *slice), each element on the tile of its column of ``t``.
    ``(graph, dtype, shape, dims, sizes, num_indices, plan, options)``: one laid out by a plan.
    """
    step = common.joined(name, "slices")
    if isinstance(t, Tensor):
        if len(arguments) == 4 and isinstance(arguments[3], str):
            *arguments, name = arguments  # type: ignore[assignment]
            step = common.joined(name, "slices")
        if len(arguments) != 3:
            raise GraphError(f"create_slice_tensor with {len(arguments) + 2} arguments", "(graph, t, dims, sizes, num_indices)")
        return _slices_of(graph, t, *arguments, step)
    if len(arguments) not in (5, 6) or not isinstance(arguments[4], SlicePlan):
        raise GraphError(f"create_slice_tensor of {t!r:.60}", "(graph, t, dims, sizes, num_indices) or (graph, dtype, shape, dims, sizes, num_indices, plan)")
    shape, dims, sizes, count, plan, options = (*arguments, None)[:6]
    return create_grouped_slice_tensor(graph, t, 1, shape, dims, sizes, count, plan, options, name)[0]


def create_grouped_slice_tensor(
    graph: Graph,
    dtype: DTypeLike,
    group_size: int,
    shape: Items[int],
    dims: Items[int],
    sizes: Items[int],
    num_indices: int,
    plan: SlicePlan,
    options: common.Options | None = None,
    name: str = "",
) -> Tensor:
    """(group_size, num_indices, *slice), laid out by ``plan``."""
    step = common.joined(name, "slices")
    read_plan_options(step, options)
    _check_planned(graph, plan, as_element_type(dtype), (group_size, *shape), dims, sizes, step)
    return slices_from_columns(routed.create_slices(graph, plan, num_indices, step), shape, dims[0])


def _slices_of(graph: Graph, t: Tensor, dims: Items[int], sizes: Items[int], num_indices: int, step: str) -> Tensor:
    check_slice(t, dims, sizes, "create_slice_tensor")
    made = graph.add_variable(t.dtype, (num_indices, *slice_shape(t, dims, sizes)), name=step)
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


def create_sliceable_tensor_from_slice(graph: Graph, s: Tensor, dims: Items[int], num_slices: Items[int], name: str = "") -> Tensor:
    """A tensor as long as ``num_slices[k]`` of ``s`` along ``dims[k]``, every one of them mapped as ``s`` is.

    Raises: ShapeError: a dimension that ``s`` does not have or that is there twice, or not a number of slices for each.
    """
    step = common.joined(name, "sliceable")
    common.require_tensors(step, s)
    if len(dims) != len(num_slices) or len(set(dims)) != len(dims) or any(not 0 <= d < s.rank for d in dims) or any(n < 1 for n in num_slices):
        raise ShapeError(f"{step} of {list(num_slices)} slices {s!r} over dimensions {list(dims)}", "each dimension once, 1 or more slices for each")
    made = graph.clone_n(s, math.prod(num_slices), step).reshape((*num_slices, *s.shape))
    for k in reversed(range(len(dims))):  # the last of the dimensions in front goes where it belongs
        made = made.dim_roll(k, k + dims[k] + sum(1 for d in dims[k + 1 :] if d < dims[k]))
    for d in sorted(dims):
        made = made.flatten(d, d + 2)
    return made


def create_indices_tensor(
    graph: Graph, dims: Items[int], num_indices: int, plan: SlicePlan | None = None, options: common.Options | None = None, name: str = ""
) -> Tensor:
    """An UNSIGNED_INT tensor (num_indices, number of dims) for the functions here, mapped as ``plan`` has it, or linearly."""
    if plan is not None:
        return create_grouped_indices_tensor(graph, 1, dims, num_indices, plan, options, name)[0]
    step = common.joined(name, "indices")
    read_plan_options(step, options)
    made = graph.add_variable(UNSIGNED_INT, (num_indices, len(dims)), name=step)
    map_tensor_linearly(graph, made)
    return made


def create_grouped_indices_tensor(
    graph: Graph, group_size: int, dims: Items[int], num_indices: int, plan: SlicePlan, options: common.Options | None = None, name: str = ""
) -> Tensor:
    """(group_size, num_indices, 1), mapped as ``plan`` has it."""
    step = common.joined(name, "indices")
    read_plan_options(step, options)
    if not isinstance(plan, SlicePlan) or plan.group_size != group_size or len(dims) != 1:
        raise ShapeError(f"{step} of {group_size} groups over dimensions {list(dims)} with plan {plan!s:.80}", "a plan of so many groups, one dimension")
    return routed.create_indices(graph, plan, num_indices, step).expand([2])


def get_slice_mapping(graph: Graph, t: Tensor, dims: Items[int], sizes: Items[int]) -> list[list[tuple[int, int]]]:
    """The tile mapping of a slice of ``t``, as ``dynamic_slice`` gives it: for each tile its (begin, end)."""
    made = create_slice_tensor(graph, t, dims, sizes, 1)[0]
    return as_lists(*graph.tile_intervals(made), graph.target.num_tiles)


def dynamic_slice(
    graph: Graph,
    t: Tensor,
    offset: Tensor,
    dims: Items[int],
    sizes: Items[int],
    prog: Sequence,
    name: str = "",
    options: common.Options | None = None,
) -> Tensor:
    """The part of ``t`` with ``sizes[k]`` entries along ``dims[k]`` from ``offset[k]`` on, around the end of the dimension; the rest whole.

    Where an offset is no entry of its dimension nothing is written: the result is undefined, but for what ``options`` say (see ``OPTIONS``).

    Raises: ShapeError: as many offsets as dimensions are missing, a size above the dimension. ElementTypeError: offsets that are not UNSIGNED_INT.
    Costs: one compute set for each of ``dims``.
    """
    step = common.joined(name, "dynamic_slice")
    offsets, rule = _offsets(t, offset, dims, sizes, step), rule_of(step, options, OPTIONS)
    if not dims:
        made = graph.clone(t, f"{step}/out")
        common.copy(prog, t, made, step)
        return made
    for at, d, size in zip(offsets, dims, sizes, strict=True):
        out = create_slice_tensor(graph, t, [d], [size], 1, name=step)[0]
        add_rows(graph, slices.DynamicSlice[t.dtype], t, d, {"out": (out, d)}, {"offset": at, "rule": rule}, prog, step)  # type: ignore[name-defined]
        t = out
    return t


def create_dynamic_slice_output(
    graph: Graph, t: Tensor, offset: Tensor, dims: Items[int], sizes: Items[int], name: str = "", options: common.Options | None = None
) -> Tensor:
    """A tensor for what ``dynamic_slice`` would give, mapped as that would be."""
    step = common.joined(name, "dynamic_slice")
    _offsets(t, offset, dims, sizes, step)
    rule_of(step, options, OPTIONS)
    return create_slice_tensor(graph, t, dims, sizes, 1, name=step)[0]


def dynamic_slice_with_output(
    graph: Graph,
    output: Tensor,
    t: Tensor,
    offset: Tensor,
    dims: Items[int],
    sizes: Items[int],
    prog: Sequence,
    name: str = "",
    options: common.Options | None = None,
) -> None:
    """``dynamic_slice`` written to ``output``."""
    step = common.joined(name, "dynamic_slice")
    common.require_tensors(step, output)
    common.require_writeable(step, output)
    if output.shape != slice_shape(t, dims, sizes) or output.dtype is not t.dtype:
        raise ShapeError(f"{step} of {t!r} to {output!r}", f"{slice_shape(t, dims, sizes)} of the same type")
    common.copy(prog, dynamic_slice(graph, t, offset, dims, sizes, prog, name, options), output, step)


def dynamic_update(
    graph: Graph,
    t: Tensor,
    s: Tensor,
    offset: Tensor,
    dims: Items[int],
    sizes: Items[int],
    prog: Sequence,
    name: str = "",
    options: common.Options | None = None,
) -> None:
    """Write ``s`` to the part of ``t`` that ``dynamic_slice`` would give; nothing where an offset is no entry of its dimension."""
    step = common.joined(name, "dynamic_update")
    offsets, rule = _offsets(t, offset, dims, sizes, step), rule_of(step, options, OPTIONS)
    common.require_writeable(step, t)
    if s.shape != slice_shape(t, dims, sizes) or s.dtype is not t.dtype:
        raise ShapeError(f"{step} of {t!r} by {s!r}", f"{slice_shape(t, dims, sizes)} of the same type")
    if not dims:
        common.copy(prog, s, t, step)
        return
    if len(dims) > 1:
        part = dynamic_slice(graph, t, offset[:1], dims[:1], sizes[:1], prog, step, options)
        dynamic_update(graph, part, s, offset[1:], dims[1:], sizes[1:], prog, step, options)
        s = part
    fields = {"offset": offsets[0], "rule": rule}
    add_rows(graph, slices.DynamicUpdate[t.dtype], t, dims[0], {"part": (s, dims[0])}, fields, prog, step)  # type: ignore[name-defined]


def add_rows(graph: Graph, cls: Any, t: Tensor, dim: int, others: dict[str, tuple[Tensor, int]], fields: dict[str, Any], prog: Any, step: str) -> None:
    """Vertices that have all rows of ``t`` along ``dim``, each with some columns, as do those of ``others`` along theirs."""
    table = rows_of(t, dim)
    seen = {name: rows_of(o, d) for name, (o, d) in others.items()}
    if not table.num_elements or not all(o.num_elements for o in seen.values()):
        return
    begin, size, tile = share_out(*mapped_runs(graph, table[0]), graph.target.num_worker_contexts, graph.target.get_vector_width(t.dtype))
    cs = common.compute_set_of(graph, prog, step)
    for b, n, where in zip(begin.tolist(), size.tolist(), tile.tolist(), strict=True):
        parts = {name: o.slice(b, b + n, 1) for name, o in seen.items()}
        graph.add_vertex(cs, cls, {"data": table.slice(b, b + n, 1), **parts, **fields}, where)


def rows_of(t: Tensor, dim: int) -> Tensor:
    """A matrix whose rows are the entries of ``dim``."""
    return t.dim_roll(dim, 0).flatten(1, t.rank) if t.rank > 1 else t.expand([1])


def slice_shape(t: Tensor, dims: Items[int], sizes: Items[int]) -> tuple[int, ...]:
    """The shape of a slice of ``t``."""
    size = dict(zip(dims, sizes, strict=True))
    return tuple(size.get(d, n) for d, n in enumerate(t.shape))


def check_slice(t: Tensor, dims: Items[int], sizes: Items[int], step: str) -> None:
    """Raises: ShapeError: dimensions or sizes that ``t`` does not have."""
    if len(dims) != len(sizes) or len(set(dims)) != len(dims) or any(not 0 <= d < t.rank for d in dims):
        raise ShapeError(f"{step} of {t!r} over dimensions {list(dims)} by {list(sizes)}", "each dimension once, a size for each")
    for d, size in zip(dims, sizes, strict=True):
        if not 0 <= size <= t.shape[d]:
            raise ShapeError(f"{step} of {size} entries of dimension {d} of {t!r}", f"0 to {t.shape[d]}")


def _offsets(t: Tensor, offset: Tensor, dims: Items[int], sizes: Items[int], step: str) -> list[Tensor]:
    common.require_tensors(step, t, offset)
    check_slice(t, dims, sizes, step)
    if offset.dtype is not UNSIGNED_INT:
        raise ElementTypeError(f"the offset of {step} is {offset!r}", "UNSIGNED_INT")
    if offset.num_elements != len(dims):
        raise ShapeError(f"{step} over {len(dims)} dimensions with offset {offset!r}", "one element for each")
    return [offset.flatten()[k] for k in range(len(dims))]


def rule_of(step: str, options: common.Options | None, known: Any) -> int:
    """What becomes of indices outside of the table, for the codelets of ``slices``.

    Raises: OptionError, with near matches.
    """
    found = common.read_options(step, options, known)
    names = {"validateIndices": slices.VALIDATE, "remapOutOfBoundIndices": slices.REMAP, "paddingIndexUsed": slices.PADDING}
    return sum(bit for name, bit in names.items() if found.get(name) == "true")


def as_columns(t: Tensor, dim: int) -> Tensor:
    """(groups, rows, columns) of (groups, *shape), whose dimension ``dim`` of the shape is that of the rows."""
    return t.dim_roll(1 + dim, 1).flatten(2, t.rank) if t.rank > 2 else t.expand([2])


def slices_from_columns(t: Tensor, shape: Items[int], dim: int) -> Tensor:
    """(groups, slices, *shape with one entry along ``dim``) of (groups, slices, columns)."""
    rest = [n for d, n in enumerate(shape) if d != dim]
    return t.reshape((*t.shape[:2], 1, *rest)).dim_roll(2, 2 + dim)


def _from_columns(t: Tensor, shape: Items[int], dim: int) -> Tensor:
    """Undo ``as_columns``."""
    rest = [n for d, n in enumerate(shape) if d != dim]
    return t.reshape((*t.shape[:2], *rest)).dim_roll(1, 1 + dim)


def _check_planned(graph: Graph, plan: Any, dtype: Any, shape: tuple[int, ...], dims: Items[int], sizes: Items[int], step: str) -> None:
    if len(dims) != 1 or not 0 <= dims[0] < len(shape) - 1:
        raise ShapeError(f"{step} of {list(shape)} over dimensions {list(dims)} with a plan", "one dimension")
    rows = shape[1 + dims[0]]
    routed.check_plan(plan, graph, (shape[0], rows, math.prod(shape[1:]) // max(1, rows)), dtype, tuple(sizes), f"{step} of {list(shape)}")
