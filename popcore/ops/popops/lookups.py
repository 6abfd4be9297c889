"""multi_slice, multi_update and its kin: many rows of a table, chosen at run time, at once; and their grouped forms.

Without a plan each tile looks up in the columns that it holds of the table's first row, whose other rows are brought to it; with
one see ``embedding``.
"""

from __future__ import annotations

from collections.abc import Sequence as Items
from typing import Any

from popcore.codelets import embedding as planned
from popcore.codelets import slices
from popcore.errors import ElementTypeError, OptionError, ShapeError
from popcore.graph import ComputeSet, Graph, Tensor, concat
from popcore.ops.popops import common, routed
from popcore.ops.popops.embedding import SLICE_OPTIONS, SlicePlan, read_plan_options
from popcore.ops.popops.fill import fill
from popcore.ops.popops.slicing import add_rows, as_columns, check_slice, create_slice_tensor, rule_of, slice_shape, slices_from_columns
from popcore.program import Copy, Sequence
from popcore.types import UNSIGNED_INT


def multi_slice(
    graph: Graph,
    t: Tensor,
    offsets: Tensor | Items[int],
    dims: Items[int],
    sizes: Items[int],
    prog: Sequence | ComputeSet,
    plan: SlicePlan | None = None,
    options: common.Options | None = None,
    name: str = "",
) -> Tensor:
    """Slice i of the result, (number of offsets, *slice), is what ``t`` has from ``offsets[i]`` on; zeros where that is not all within ``t``.

    Args:
        offsets: UNSIGNED_INT (n, 1); ``dims`` and ``sizes`` name one dimension. Or numbers, known now: then it is a Copy, ``prog`` is a
            Sequence, and there is neither plan nor option.
        plan: By which ``t`` was made, else it is copied to such a table first. ``prog`` is then a Sequence.
        options: See ``embedding.OPTIONS``.
    """
    step, rule = common.joined(name, "multi_slice"), _rule("multi_slice", options)
    if not isinstance(offsets, Tensor):
        if plan is not None or options:
            raise OptionError(f"{step} with offsets known when the graph is built, and a plan or options", "neither is of use there")
        return _fixed_slice(graph, t, [int(at) for at in offsets], dims, sizes, common.sequence_of(prog, step), step)
    _check_many(t, offsets, dims, sizes, step)
    if plan is not None:
        return _planned_slice(graph, t.expand([0]), _of_groups(offsets), dims, sizes, prog, plan, rule, step)[0]
    return _slice(graph, t, offsets, dims, sizes, prog, rule, step)


def grouped_multi_slice(
    graph: Graph,
    t: Tensor,
    offsets: Tensor,
    dims: Items[int],
    sizes: Items[int],
    prog: Sequence,
    plan: SlicePlan | None = None,
    options: common.Options | None = None,
    name: str = "",
) -> Tensor:
    """``multi_slice`` of ``t[g]`` by ``offsets[g]`` for each group g: (groups, number of offsets, *slice). ``dims`` are those of one group."""
    step, rule = common.joined(name, "grouped_multi_slice"), _rule("grouped_multi_slice", options)
    _check_groups(t, offsets, dims, sizes, step)
    if plan is not None:
        return _planned_slice(graph, t, offsets, dims, sizes, prog, plan, rule, step)
    cs = common.compute_set_of(graph, prog, step)
    return stacked([_slice(graph, t[g], offsets[g], dims, sizes, cs, rule, step) for g in range(t.shape[0])])


def multi_update(
    graph: Graph,
    t: Tensor,
    s: Tensor,
    offsets: Tensor,
    dims: Items[int],
    sizes: Items[int],
    prog: Sequence | ComputeSet,
    plan: SlicePlan | None = None,
    options: common.Options | None = None,
    name: str = "",
) -> None:
    """Write ``s[i]`` to ``t`` from ``offsets[i]`` on, in that order; what is not all within ``t`` is skipped.

    With a plan one of several slices for the same rows stays, and always the same one, but which of them is not said.
    """
    _update(graph, "", t, s, offsets, 1.0, dims, sizes, prog, plan, options, common.joined(name, "multi_update"))


def multi_update_add(
    graph: Graph,
    t: Tensor,
    s: Tensor,
    offsets: Tensor,
    scale: float | Tensor,
    dims: Items[int],
    sizes: Items[int],
    prog: Sequence | ComputeSet,
    plan: SlicePlan | None = None,
    options: common.Options | None = None,
    name: str = "",
) -> None:
    """Add ``scale * s[i]`` to ``t`` from ``offsets[i]`` on; an offset that is there twice adds twice. ``scale`` is a number or a FLOAT scalar.

    Each sum is rounded to the type of ``t``. The order of sums to one row is that of the offsets; with a plan it is fixed by the plan.
    """
    _update(graph, "Add", t, s, offsets, scale, dims, sizes, prog, plan, options, common.joined(name, "multi_update_add"))


def multi_update_max(
    graph: Graph,
    t: Tensor,
    s: Tensor,
    offsets: Tensor,
    dims: Items[int],
    sizes: Items[int],
    prog: Sequence | ComputeSet,
    plan: SlicePlan | None = None,
    options: common.Options | None = None,
    name: str = "",
) -> None:
    """The greater of ``s[i]`` and what ``t`` holds from ``offsets[i]`` on."""
    _update(graph, "Max", t, s, offsets, 1.0, dims, sizes, prog, plan, options, common.joined(name, "multi_update_max"))


def multi_update_mul(
    graph: Graph,
    t: Tensor,
    s: Tensor,
    offsets: Tensor,
    dims: Items[int],
    sizes: Items[int],
    prog: Sequence | ComputeSet,
    plan: SlicePlan | None = None,
    options: common.Options | None = None,
    name: str = "",
) -> None:
    """``s[i]`` times what ``t`` holds from ``offsets[i]`` on."""
    _update(graph, "Mul", t, s, offsets, 1.0, dims, sizes, prog, plan, options, common.joined(name, "multi_update_mul"))


def grouped_multi_update(
    graph: Graph,
    t: Tensor,
    s: Tensor,
    offsets: Tensor,
    dims: Items[int],
    sizes: Items[int],
    prog: Sequence,
    plan: SlicePlan | None = None,
    options: common.Options | None = None,
    name: str = "",
) -> None:
    """``multi_update`` of ``t[g]`` with ``s[g]`` by ``offsets[g]`` for each group g."""
    _grouped_update(graph, "", t, s, offsets, 1.0, dims, sizes, prog, plan, options, common.joined(name, "grouped_multi_update"))


def grouped_multi_update_add(
    graph: Graph,
    t: Tensor,
    s: Tensor,
    offsets: Tensor,
    scale: float | Tensor,
    dims: Items[int],
    sizes: Items[int],
    prog: Sequence,
    plan: SlicePlan | None = None,
    options: common.Options | None = None,
    name: str = "",
) -> None:
    """``multi_update_add`` of ``t[g]`` with ``s[g]`` by ``offsets[g]`` for each group g."""
    _grouped_update(graph, "Add", t, s, offsets, scale, dims, sizes, prog, plan, options, common.joined(name, "grouped_multi_update_add"))


def grouped_multi_update_max(
    graph: Graph,
    t: Tensor,
    s: Tensor,
    offsets: Tensor,
    dims: Items[int],
    sizes: Items[int],
    prog: Sequence,
    plan: SlicePlan | None = None,
    options: common.Options | None = None,
    name: str = "",
) -> None:
    """``multi_update_max`` of ``t[g]`` with ``s[g]`` by ``offsets[g]`` for each group g."""
    _grouped_update(graph, "Max", t, s, offsets, 1.0, dims, sizes, prog, plan, options, common.joined(name, "grouped_multi_update_max"))


def grouped_multi_update_mul(
    graph: Graph,
    t: Tensor,
    s: Tensor,
    offsets: Tensor,
    dims: Items[int],
    sizes: Items[int],
    prog: Sequence,
    plan: SlicePlan | None = None,
    options: common.Options | None = None,
    name: str = "",
) -> None:
    """``multi_update_mul`` of ``t[g]`` with ``s[g]`` by ``offsets[g]`` for each group g."""
    _grouped_update(graph, "Mul", t, s, offsets, 1.0, dims, sizes, prog, plan, options, common.joined(name, "grouped_multi_update_mul"))


def stacked(parts: list[Tensor]) -> Tensor:
    """Tensors of one shape as one, a dimension in front."""
    return concat([p.expand([0]) for p in parts])


def _slice(graph: Graph, t: Tensor, offsets: Tensor, dims: Items[int], sizes: Items[int], prog: Sequence | ComputeSet, rule: int, step: str) -> Tensor:
    made = create_slice_tensor(graph, t, dims, sizes, offsets.shape[0], name=step)
    if made.num_elements:
        rows = made.dim_roll(1 + dims[0], 1).flatten(0, 2)
        cls: Any = slices.MultiSlice
        add_rows(graph, cls[t.dtype], t, dims[0], {"out": (rows, 0)}, {"indices": offsets.flatten(), "rule": rule}, prog, step)
    return made


def _fixed_slice(graph: Graph, t: Tensor, offsets: Items[int], dims: Items[int], sizes: Items[int], prog: Sequence, step: str) -> Tensor:
    common.require_tensors(step, t)
    check_slice(t, dims, sizes, step)
    if len(dims) != 1:
        raise ShapeError(f"{step} over dimensions {list(dims)}: PopLibs takes one, and so does popcore", "one dimension; flatten those that are sliced")
    made = create_slice_tensor(graph, t, dims, sizes, len(offsets), name=step)
    inside = {i: at for i, at in enumerate(offsets) if 0 <= at <= t.shape[dims[0]] - sizes[0]}
    taken = [t.slice(at, at + sizes[0], dims[0]).expand([0]) for at in inside.values()]
    if taken:
        prog.add(Copy(concat(taken), concat([made[i : i + 1] for i in inside])))
    if zeros := [made[i : i + 1] for i in range(len(offsets)) if i not in inside]:
        fill(graph, concat(zeros), prog, 0, step)
    return made


def _planned_slice(
    graph: Graph, t: Tensor, offsets: Tensor, dims: Items[int], sizes: Items[int], prog: Any, plan: SlicePlan, rule: int, step: str
) -> Tensor:  # fmt: skip
    table = _planned_table(graph, t, dims, sizes, plan, step)
    found = routed.look_up(graph, plan, table, offsets.flatten(1), rule, common.sequence_of(prog, step), step)
    return slices_from_columns(found, t.shape[1:], dims[0])


def _planned_table(graph: Graph, t: Tensor, dims: Items[int], sizes: Items[int], plan: SlicePlan, step: str) -> Tensor:
    table = as_columns(t, dims[0])
    routed.check_plan(plan, graph, (table.shape[0], table.shape[1], table.shape[2]), t.dtype, tuple(sizes), f"{step} of {t!r}")
    return table


def _update(
    graph: Graph, kind: str, t: Tensor, s: Tensor, offsets: Tensor, scale: Any, dims: Items[int], sizes: Items[int], prog: Any, plan: SlicePlan | None,
    options: Any, step: str,
) -> None:  # fmt: skip
    rule = _rule(step, options)
    _check_many(t, offsets, dims, sizes, step)
    _check_update(t, s, (offsets.shape[0], *slice_shape(t, dims, sizes)), kind, step)
    if plan is not None:
        _planned_update(graph, kind, t.expand([0]), s.expand([0]), _of_groups(offsets), scale, dims, sizes, prog, plan, rule, step)
    else:
        _unplanned_update(graph, kind, t, s, offsets, scale, dims, prog, rule, step)


def _grouped_update(
    graph: Graph, kind: str, t: Tensor, s: Tensor, offsets: Tensor, scale: Any, dims: Items[int], sizes: Items[int], prog: Any, plan: SlicePlan | None,
    options: Any, step: str,
) -> None:  # fmt: skip
    rule = _rule(step, options)
    _check_groups(t, offsets, dims, sizes, step)
    shape = (t.shape[0], offsets.shape[1], *slice_shape(t[0], dims, sizes)) if t.shape[0] else (0, *s.shape[1:])
    _check_update(t, s, shape, kind, step)
    if plan is not None:
        _planned_update(graph, kind, t, s, offsets, scale, dims, sizes, prog, plan, rule, step)
        return
    cs = common.compute_set_of(graph, prog, step)
    for g in range(t.shape[0]):
        _unplanned_update(graph, kind, t[g], s[g], offsets[g], scale, dims, cs, rule, step)


def _unplanned_update(graph: Graph, kind: str, t: Tensor, s: Tensor, offsets: Tensor, scale: Any, dims: Items[int], prog: Any, rule: int, step: str) -> None:
    if s.num_elements:
        rows = s.dim_roll(1 + dims[0], 1).flatten(0, 2)
        fields = {"indices": offsets.flatten(), "rule": rule, "scale": scale.reshape(()) if isinstance(scale, Tensor) else float(scale)}
        add_rows(graph, getattr(slices, f"MultiUpdate{kind}")[t.dtype], t, dims[0], {"part": (rows, 0)}, fields, prog, step)


def _planned_update(
    graph: Graph, kind: str, t: Tensor, s: Tensor, offsets: Tensor, scale: Any, dims: Items[int], sizes: Items[int], prog: Any, plan: SlicePlan,
    rule: int, step: str,
) -> None:  # fmt: skip
    table = _planned_table(graph, t, dims, sizes, plan, step)
    found = s.dim_roll(2 + dims[0], 2).flatten(2)
    cls = getattr(planned, f"RouteUpdate{kind}")
    routed.update(graph, plan, cls, table, found, offsets.flatten(1), scale, rule, common.sequence_of(prog, step), step)


def _of_groups(offsets: Tensor) -> Tensor:
    """Of one group."""
    return offsets.flatten().expand([0])


def _check_update(t: Tensor, s: Tensor, wanted: tuple[int, ...], kind: str, step: str) -> None:
    common.require_tensors(step, s)
    common.require_writeable(step, t)
    if kind == "Add" and t.dtype.kind not in ("float", "half"):
        raise ElementTypeError(f"{step} of {t!r}", "FLOAT or HALF")
    if s.shape != wanted or s.dtype is not t.dtype:
        raise ShapeError(f"{step} of {t!r} by {s!r}", f"{wanted} of the same type")


def _check_many(t: Tensor, offsets: Tensor, dims: Items[int], sizes: Items[int], step: str) -> None:
    common.require_tensors(step, t, offsets)
    check_slice(t, dims, sizes, step)
    if len(dims) != 1:
        raise ShapeError(f"{step} over dimensions {list(dims)}: PopLibs takes one, and so does popcore", "one dimension; flatten those that are sliced")
    if offsets.dtype is not UNSIGNED_INT:
        raise ElementTypeError(f"the offsets of {step} are {offsets!r}", "UNSIGNED_INT")
    if offsets.shape not in ((offsets.num_elements,), (offsets.num_elements, 1)):
        raise ShapeError(f"{step} with offsets {offsets!r}", "(n, 1)")


def _check_groups(t: Tensor, offsets: Tensor, dims: Items[int], sizes: Items[int], step: str) -> None:
    common.require_tensors(step, t, offsets)
    if t.rank < 2 or offsets.rank not in (2, 3) or offsets.shape[0] != t.shape[0] or offsets.shape[2:] not in ((), (1,)):
        raise ShapeError(f"{step} of {t!r} with offsets {offsets!r}", "(groups, *shape) and (groups, n, 1)")
    if offsets.dtype is not UNSIGNED_INT:
        raise ElementTypeError(f"the offsets of {step} are {offsets!r}", "UNSIGNED_INT")
    if t.shape[0]:
        _check_many(t[0], offsets[0], dims, sizes, step)


def _rule(step: str, options: common.Options | None) -> int:
    read_plan_options(step, options)
    return rule_of(step, {k: v for k, v in (options or {}).items() if k in SLICE_OPTIONS}, SLICE_OPTIONS)
