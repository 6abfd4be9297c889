"""reduce, reduce_with_output, reduce_many: sums, products, extremes over dimensions of a tensor."""

from __future__ import annotations

import math
from collections.abc import Sequence as Items
from dataclasses import dataclass

from popcore.codelets.operations import FLOAT_TYPE
from popcore.errors import GraphError, ShapeError
from popcore.graph import Graph, Tensor
from popcore.ops.popops import common
from popcore.ops.popops.combine import reduce_middle
from popcore.ops.popops.expr import Cast, Const, Exp, Expr, IsFinite, Log1p, Max, Min, PlaceHolder, Select
from popcore.ops.popops.mapping import map as map_elements
from popcore.ops.popops.mapping import map_with_output
from popcore.ops.popops.operation import Operation, ReduceParams, as_params, check_types
from popcore.ops.popops.stages import Stages
from popcore.ops.poputil import map_tensor_linearly
from popcore.program import Sequence
from popcore.types import FLOAT, HALF, DTypeLike, ElementType, as_element_type

OPTIONS = {"accumType.interTile": ("float", "half"), "accumType.inVertex": ("float", "half")}
"""``accumType.interTile``: in what sums of HALF go from tile to tile; vertices accumulate in the same. Sums of FLOAT stay FLOAT."""


@dataclass(frozen=True)
class SingleReduceOp:
    """One of several reductions that are done together.

    use_output_type: The element type of its output if not that of ``data``; where an output is given that one's counts.
    """

    data: Tensor
    dims: tuple[int, ...]
    params: ReduceParams | Operation
    use_output_type: ElementType | None = None
    name: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "dims", tuple(self.dims))


def reduce(
    graph: Graph,
    t: Tensor,
    dims: Items[int],
    params: ReduceParams | Operation,
    prog: Sequence,
    name: str = "",
    options: common.Options | None = None,
    *,
    out_type: DTypeLike | None = None,
) -> Tensor:
    """``t`` without the dimensions ``dims``, each element what the operation makes of those left out.

    Sums, products and sums of squares of HALF accumulate in FLOAT and are rounded once; integers stay integers and wrap. The order
    in which elements are joined depends on the tile mapping, not on the machine. Of no elements the result is the operation's
    identity: 0, 1, the greatest or least number, true, false.

    Raises:
        ShapeError: a dimension that ``t`` does not have.
        ElementTypeError: a type that the operation does not take; the pairs are listed in docs/numerics.md.
        GraphError: ``params`` with update, which needs an output: ``reduce_with_output``.
    Costs: one compute set for what each tile has, one or more to join parts from several tiles; none where only dimensions of one element go.
    """
    params = as_params(params)
    if params.update:
        raise GraphError(f"reduce of {t!r} with update has nothing to update", "popops.reduce_with_output")
    stages = Stages(graph, common.joined(name, "reduce"))
    common.sequence_of(prog, stages.name)
    made = _reduce(stages, t, dims, params, None, options, t.dtype if out_type is None else as_element_type(out_type))
    stages.add_to(prog)
    return made


def reduce_with_output(
    graph: Graph,
    t: Tensor,
    out: Tensor,
    dims: Items[int],
    params: ReduceParams | Operation,
    prog: Sequence,
    name: str = "",
    options: common.Options | None = None,
) -> None:
    """The same, written to ``out``, or joined with what it holds if ``params.update``. Elements of it on no tile are mapped linearly."""
    stages = Stages(graph, common.joined(name, "reduce"))
    common.sequence_of(prog, stages.name)
    _reduce(stages, t, dims, as_params(params), out, options, out.dtype)
    stages.add_to(prog)


def reduce_many(
    graph: Graph, reductions: Items[SingleReduceOp], outputs: list[Tensor], prog: Sequence, name: str = "", options: common.Options | None = None
) -> None:
    """Several reductions at once: their steps share compute sets.

    outputs: As many tensors as reductions, which are written; or an empty list, to which the results are appended.
    """
    if outputs and len(outputs) != len(reductions):
        raise GraphError(f"reduce_many of {len(reductions)} reductions with {len(outputs)} outputs", "an output for each, or an empty list")
    stages = Stages(graph, common.joined(name, "reduce_many"))
    common.sequence_of(prog, stages.name)
    made = []
    for i, each in enumerate(reductions):
        out = outputs[i] if outputs else None
        params = as_params(each.params)
        if params.update and out is None:
            raise GraphError(f"reduction {i} of reduce_many has update and nothing to update", "pass outputs")
        made.append(_reduce(stages, each.data, each.dims, params, out, options, out.dtype if out is not None else each.use_output_type or each.data.dtype))
    stages.add_to(prog)
    if not outputs:
        outputs.extend(made)


def _reduce(
    stages: Stages, t: Tensor, dims: Items[int], params: ReduceParams, out: Tensor | None, options: common.Options | None, dtype: ElementType
) -> Tensor:
    common.require_tensors(stages.name, t, *(() if out is None else (out,)))
    chosen = common.read_options("reduce", options, OPTIONS)
    check_types(params.op, t.dtype, dtype, params.scale is not None, stages.name)
    gone = _dimensions(t, dims, stages.name)
    shape = tuple(n for d, n in enumerate(t.shape) if d not in gone)
    if out is not None:
        common.require_writeable(stages.name, out)
        if out.shape != shape:
            raise ShapeError(f"{stages.name} of {t!r} over {sorted(gone)} gives shape {shape} and is to write {out!r}", f"an output of shape {shape}")
        _complete_mapping(stages.graph, out)
        if t.intersects_with(out):
            apart = stages.graph.clone(t, f"{stages.name}/before")
            stages.copy(0, t, apart)
            t = apart
    accumulate = _accumulator(params.op, t.dtype, chosen["accumType.interTile"])
    if not math.prod(shape):
        return out if out is not None else stages.graph.add_variable(dtype, shape, name=f"{stages.name}/out")
    if not t.num_elements:
        return _identity(stages, shape, params, dtype, out)
    return _of_something(stages, t, gone, params, accumulate, dtype, out)


def _of_something(stages: Stages, t: Tensor, gone: set[int], params: ReduceParams, accumulate: ElementType, dtype: ElementType, out: Tensor | None) -> Tensor:
    """Reduce where there is something to reduce and to write."""
    order = _memory_order(t)
    kept = [d for d in order if d not in gone]
    back = [sorted(kept).index(d) for d in kept]  # the result's dimensions, in the order in which they come out
    groups = _groups([(t.shape[d], d in gone) for d in order])
    data, level, op = t.dim_shuffle(order), 0, params.op
    finish = params.update or params.scale is not None
    direct = None if out is None or finish else out.dim_shuffle(back).flatten()
    if not any(reduced for _, reduced in groups):
        return _of_nothing(stages, t, gone, params, dtype, out)
    flat = data.flatten()
    while (at := max((i for i, (_, reduced) in enumerate(groups) if reduced), default=-1)) >= 0:
        last = sum(reduced for _, reduced in groups) == 1
        sizes = math.prod(n for n, _ in groups[:at]), groups[at][0], math.prod(n for n, _ in groups[at + 1 :])
        to = dtype if last and not finish else accumulate
        flat, level = reduce_middle(stages, level, flat, sizes, op, accumulate, to, direct if last else None)
        groups = _groups(groups[:at] + groups[at + 1 :])
        op = op.of_partials
    made = _reordered(flat.reshape(tuple(t.shape[d] for d in kept)), back)
    return _finish(stages, level, made, params, dtype, out) if finish else made if out is None else out


def _finish(stages: Stages, level: int, result: Tensor, params: ReduceParams, dtype: ElementType, out: Tensor | None) -> Tensor:
    """Scale, join with what the output holds, convert: one expression."""
    tensors, e = [result], PlaceHolder(1)
    expression: Expr = e
    if params.scale is not None:
        tensors.append(params.scale.reshape(()))
        expression = (expression if result.dtype is FLOAT else Cast(expression, FLOAT)) * PlaceHolder(len(tensors))
    if params.update and out is not None:
        tensors.append(out)
        held: Expr = PlaceHolder(len(tensors))
        wide = FLOAT if params.scale is not None else result.dtype
        expression = _join(params.op, held if out.dtype is wide else Cast(held, wide), expression)
    expression = expression if dtype is result.dtype and params.scale is None else Cast(expression, dtype)
    cs = stages.compute_set(level)
    if out is None:
        return map_elements(stages.graph, expression, tensors, cs, stages.name)
    map_with_output(stages.graph, expression, tensors, out, cs, stages.name)
    return out


def _of_nothing(stages: Stages, t: Tensor, gone: set[int], params: ReduceParams, dtype: ElementType, out: Tensor | None) -> Tensor:
    """Only dimensions of one element go: a copy, unless each element changes."""
    result = t.squeeze(sorted(gone))
    changes = params.op is Operation.SQUARE_ADD or params.scale is not None or params.update or dtype is not t.dtype
    if not changes:
        made = stages.graph.clone(result, f"{stages.name}/out") if out is None else out
        stages.copy(0, result, made)
        return made
    if params.op is Operation.SQUARE_ADD:
        e = PlaceHolder(1) if t.dtype is not HALF else Cast(PlaceHolder(1), FLOAT)
        result = map_elements(stages.graph, e * e, [result], stages.compute_set(0), stages.name)
    return _finish(stages, int(params.op is Operation.SQUARE_ADD), result, params, dtype, out)


def _identity(stages: Stages, shape: tuple[int, ...], params: ReduceParams, dtype: ElementType, out: Tensor | None) -> Tensor:
    made = out
    if made is None:
        made = stages.graph.add_variable(dtype, shape, "linear", name=f"{stages.name}/out")
    if not params.update:
        map_with_output(stages.graph, Const(params.op.identity(dtype), dtype), [], made, stages.compute_set(0), stages.name)
    return made


def _join(op: Operation, a: Expr, b: Expr) -> Expr:
    match op:
        case Operation.ADD | Operation.SQUARE_ADD:
            return a + b
        case Operation.MUL:
            return a * b
        case Operation.MIN:
            return Min(a, b)
        case Operation.MAX:
            return Max(a, b)
        case Operation.LOGICAL_AND:
            return a & b
        case Operation.LOGICAL_OR:
            return a | b
        case Operation.LOG_ADD:
            high = Max(a, b)
            return Select(high + Log1p(Exp(Min(a, b) - high)), high, IsFinite(high))


def _accumulator(op: Operation, data: ElementType, between_tiles: str) -> ElementType:
    extreme = op in (Operation.MIN, Operation.MAX)
    return FLOAT_TYPE if data is HALF and not extreme and between_tiles == "float" else data


def _dimensions(t: Tensor, dims: Items[int], what: str) -> set[int]:
    for d in dims:
        if isinstance(d, bool) or not hasattr(d, "__index__") or not 0 <= d < t.rank:
            raise ShapeError(f"{what} of {t!r} over dimension {d!r}", f"0 to {t.rank - 1}" if t.rank else "a scalar has no dimensions: an empty list")
    return {int(d) for d in dims}


def _memory_order(t: Tensor) -> list[int]:
    """The dimensions of an affine view as they lie in memory, the farthest apart first; else as they are."""
    if t.variable is None:
        return list(range(t.rank))
    return sorted(range(t.rank), key=lambda d: -abs(t.strides[d]) if t.shape[d] > 1 else 0)


def _groups(dims: Items[tuple[int, bool]]) -> list[tuple[int, bool]]:
    """(size, whether it goes) of dimensions, those of one element left out and neighbours that share their fate joined."""
    made: list[tuple[int, bool]] = []
    for n, reduced in dims:
        if n == 1:
            continue
        if made and made[-1][1] == reduced:
            made[-1] = (made[-1][0] * n, reduced)
        else:
            made.append((n, reduced))
    return made


def _reordered(t: Tensor, back: list[int]) -> Tensor:
    """The inverse of ``dim_shuffle(back)``."""
    return t.dim_shuffle([back.index(d) for d in range(t.rank)]) if back != list(range(t.rank)) else t


def _complete_mapping(graph: Graph, out: Tensor) -> None:
    begin, end, _ = graph.tile_intervals(out)
    if int((end - begin).sum()) != out.num_elements:
        map_tensor_linearly(graph, out)
