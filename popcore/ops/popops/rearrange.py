"""How elements lie in memory, changed by copies: transposes and groupings. After ``popops/Rearrange.hpp``.

An IPU transposes faster than it exchanges single elements, and PopLibs chooses between the two. Here a rearrangement is one copy,
which the compiler plans; what a grouping changes is which elements lie together, and never a value.
"""

from __future__ import annotations

import math

from popcore.errors import ShapeError
from popcore.graph import ComputeSet, Graph, Tensor
from popcore.ops.popops import common
from popcore.ops.popops.expr import PlaceHolder
from popcore.ops.popops.mapping import map_with_output
from popcore.ops.poputil import GroupingInfo, detect_dim_groupings, map_tensor_linearly
from popcore.program import Sequence
from popcore.types import DTypeLike, as_element_type


def partial_transpose(graph: Graph, t: Tensor, compute_set: ComputeSet | Sequence, name: str = "") -> Tensor:
    """A new tensor with the last two dimensions of ``t`` swapped, its elements in memory in that order, each on the tile it was on.

    Raises: ShapeError: fewer than two dimensions. TileMappingError: ``t`` is not wholly mapped.
    """
    step = common.joined(name, "partial_transpose")
    common.require_tensors(step, t)
    if t.rank < 2:
        raise ShapeError(f"{step} of {t!r}", "two dimensions or more")
    turned = t.dim_roll(t.rank - 2, t.rank - 1)
    made = graph.add_variable(t.dtype, turned.shape, name=f"{step}/out")
    begin, end, tile = graph.tile_intervals(turned)
    graph.map_intervals(made, begin, end - begin, tile)
    map_with_output(graph, PlaceHolder(1), [turned], made, compute_set, step)
    return made


def get_minimum_regroup_grain_size(dtype: DTypeLike) -> int:
    """The least grouping that is worth having: elements of 8 bytes."""
    return 8 // as_element_type(dtype).nbytes or 1


def regroup_tensor(graph: Graph, t: Tensor, copies: Sequence, from_: GroupingInfo, to: GroupingInfo, name: str = "") -> Tensor:
    """A new tensor with the elements of ``t``, of which ``to.size`` neighbours along ``to.dim`` lie together; the others in row-major order.

    Args:
        copies: Gets the copy. There is no compute set as in PopLibs, since nothing is left for it.
        from_: The grouping that ``t`` has; a copy needs not know.

    Raises: ShapeError: a dimension that does not exist, a size that does not divide it.
    """
    step = common.joined(name, "regroup")
    common.require_tensors(step, t)
    dim, size = to
    if not 0 <= dim < t.rank or size < 1 or t.shape[dim] % size:
        raise ShapeError(f"{step} of {t!r} from {tuple(from_)} to {size} entries of dimension {dim}", "a dimension, and a number that divides it")
    if t.rank == 1:
        return t
    others = [n // size if d == dim else n for d, n in enumerate(t.shape)]
    flat = graph.add_variable(t.dtype, (*others, size), name=step)
    map_tensor_linearly(graph, flat, grain_size=math.lcm(size, graph.target.get_vector_width(t.dtype)))
    made = flat.dim_roll(t.rank, dim + 1).flatten(dim, dim + 2)
    common.copy(copies, t, made, step)
    return made


def regroup_if_possible(graph: Graph, t: Tensor, prog: Sequence, to: GroupingInfo, name: str = "") -> Tensor:
    """``regroup_tensor``; ``t`` itself where it is a vector, has that grouping already, or ``to`` does not divide it."""
    dim, size = to
    if t.rank < 2 or not 0 <= dim < t.rank or size < 1 or t.shape[dim] % size or not t.num_elements:
        return t
    found = detect_dim_groupings(graph, t)
    if size == 1 or (found and found[0].dim == dim and found[0].size % size == 0):
        return t
    return regroup_tensor(graph, t, prog, found[0] if found else GroupingInfo(t.rank - 1, 1), GroupingInfo(dim, size), name)


def regroup_if_beneficial(graph: Graph, t: Tensor, reference: Tensor | int, prog: Sequence, name: str = "") -> Tensor:
    """``t`` with the innermost grouping of ``reference``, or with so many entries of its last dimension together; ``t`` itself where it has that,
    or where nothing is gained: the grouping is below ``get_minimum_regroup_grain_size``, or what is found is no larger.
    """
    step = common.joined(name, "regroup")
    common.require_tensors(step, t)
    if isinstance(reference, Tensor):
        found = detect_dim_groupings(graph, reference) if reference.rank else []
        if not found or reference.rank != t.rank:
            return t
        to = GroupingInfo(found[0].dim, math.gcd(found[0].size, t.shape[found[0].dim]))
    else:
        to = GroupingInfo(t.rank - 1, math.gcd(reference, t.shape[-1]) if t.rank else 1)
    return t if to.size < get_minimum_regroup_grain_size(t.dtype) else regroup_if_possible(graph, t, prog, to, step)
