"""sort, sort_key_value and their forms in place: rows along one dimension in ascending order. After ``popops/Sort.hpp``.

NaN comes last and -0 before +0; all NaNs come out as one. See ``sorting`` for how.
"""

from __future__ import annotations

from popcore.errors import ElementTypeError, GraphError, ShapeError
from popcore.graph import Graph, Tensor
from popcore.ops.popops import common
from popcore.ops.popops.placing import output_like
from popcore.ops.popops.sorting import keys_of, ordered
from popcore.program import Sequence


def sort(graph: Graph, t: Tensor, dim: int, prog: Sequence, name: str = "") -> Tensor:
    """A tensor with the elements of ``t`` in ascending order along ``dim``, mapped as ``t`` is.

    Raises: ShapeError: no such dimension. ElementTypeError: integers of 64 bits, FP8.
    Costs: with n elements along ``dim`` on p tiles, log2(p) * (log2(p) + 1) / 2 steps in which every tile sends what it holds.
    """
    step = common.joined(name, "sort")
    _check(step, dim, t)
    made = output_like(graph, [t], t.shape, t.dtype, f"{step}/out")
    _sort(graph, t, made, dim, prog, step)
    return made


def sort_in_place(graph: Graph, t: Tensor, dim: int, prog: Sequence, name: str = "") -> None:
    """The same, written to ``t``."""
    step = common.joined(name, "sort_in_place")
    _check(step, dim, t)
    common.require_writeable(step, t)
    _sort(graph, t, t, dim, prog, step)


def sort_key_value(graph: Graph, k: Tensor, v: Tensor, dim: int, prog: Sequence, name: str = "") -> Tensor:
    """The elements of ``v`` in the order in which those of ``k``, of the same shape, are ascending; of equal keys the lesser bits first."""
    step = common.joined(name, "sort_key_value")
    _check(step, dim, k, v)
    made = output_like(graph, [v], v.shape, v.dtype, f"{step}/out")
    _sort_pairs(graph, k, v, (None, made), dim, prog, step)
    return made


def sort_key_value_in_place(graph: Graph, k: Tensor, v: Tensor, dim: int, prog: Sequence, name: str = "") -> None:
    """The same, written to ``v``; ``k`` is sorted too.

    Raises: as ``sort``; GraphError: the two meet.
    """
    step = common.joined(name, "sort_key_value_in_place")
    _check(step, dim, k, v)
    for t in (k, v):
        common.require_writeable(step, t)
    if k.intersects_with(v):
        raise GraphError(f"{step} of keys {k!r} and values {v!r}: they have elements in common", "a copy of one: poputil.duplicate")
    _sort_pairs(graph, k, v, (k, v), dim, prog, step)


def _sort(graph: Graph, t: Tensor, out: Tensor, dim: int, prog: Sequence, step: str) -> None:
    rows = as_rows(t, dim)
    if rows.num_elements:
        ordered(graph, rows, None, rows.shape[1], False, prog, step).write_keys(graph, as_rows(out, dim), prog, step)


def _sort_pairs(graph: Graph, k: Tensor, v: Tensor, out: tuple[Tensor | None, Tensor], dim: int, prog: Sequence, step: str) -> None:
    rows = as_rows(k, dim)
    if rows.num_elements:
        order = ordered(graph, rows, as_rows(v, dim), rows.shape[1], False, prog, step)
        if out[0] is not None:
            order.write_keys(graph, as_rows(out[0], dim), prog, step)
        order.write_low(graph, as_rows(out[1], dim), prog, step)


def as_rows(t: Tensor, dim: int) -> Tensor:
    """A matrix whose rows go along ``dim``."""
    return t.dim_roll(dim, t.rank - 1).flatten(0, t.rank - 1)


def _check(step: str, dim: int, *tensors: Tensor) -> None:
    common.require_tensors(step, *tensors)
    first = tensors[0]
    keys_of(first.dtype, False, step)
    check_values(step, *tensors)
    if not 0 <= dim < first.rank:
        raise ShapeError(f"{step} of {first!r} along dimension {dim}", f"0 to {first.rank - 1}" if first.rank else "a tensor with dimensions")


def check_values(step: str, keys: Tensor, *values: Tensor) -> None:
    """Raises: ShapeError, ElementTypeError: values that do not fit the keys."""
    for v in values:
        if v.shape != keys.shape:
            raise ShapeError(f"{step} of keys {keys!r} and values {v!r}", "tensors of one shape")
        if v.dtype.nbytes > 4:
            raise ElementTypeError(f"{step} of values {v!r}", "a type of at most 32 bits")
