"""Normalisation as both poplin and popnn need it: which activations share a mean and a deviation, and the arithmetic.

All is computed in FLOAT and rounded once to the type of the activations; means and inverse deviations are FLOAT.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from popcore.codelets.operations import FLOAT_TYPE
from popcore.errors import ElementTypeError, ShapeError, ValueRangeError
from popcore.graph import Graph, Tensor
from popcore.ops import popops
from popcore.ops.popops import common
from popcore.ops.popops.expr import Const, Max, PlaceHolder, Rsqrt
from popcore.ops.popops.widths import rounded, wide
from popcore.program import Sequence
from popcore.types import DTypeLike, as_element_type

ReduceCallback = Callable[[Graph, list[Tensor], Sequence, int, str, common.Options], list[Tensor]]
"""``(graph, tensors, prog, group_size, name, options)``: adds to ``prog`` the sums of ``tensors`` over groups of that many replicas, and returns them."""


@dataclass(frozen=True)
class Members:
    """Which activations ``(batch, channels, ...)`` share a statistic: those of a channel over the batch (``groups`` None), or of one group of channels of one example.

    Channel c is in group ``c % groups``; with ``strided=False`` in group ``c // (channels / groups)``.
    """

    groups: int | None = None
    strided: bool = True

    def view(self, acts: Tensor) -> Tensor:
        """Activations with a dimension for each part of the index that matters."""
        batch, channels, *field = acts.shape
        if self.groups is None:
            return acts.reshape((batch, channels, math.prod(field)))
        groups = self.groups if channels else 0  # without channels there is nothing to have statistics of
        each = channels // max(groups, 1)
        return acts.reshape((batch, each, groups, math.prod(field)) if self.strided else (batch, groups, each, math.prod(field)))

    @property
    def together(self) -> tuple[int, ...]:
        """Dimensions of ``view`` that one statistic is over."""
        return (0, 2) if self.groups is None else (1, 3) if self.strided else (2, 3)

    def of_statistic(self, t: Tensor, view: Tensor) -> Tensor:
        """A statistic in a shape that broadcasts to ``view``."""
        return t.reshape(tuple(1 if d in self.together else n for d, n in enumerate(view.shape)))


CHANNEL = Members()


@dataclass(frozen=True)
class Distribution:
    """How statistics become those of several replicas: by sums over ``group_size`` of them."""

    reduce: ReduceCallback | None = None
    group_size: int = 1

    @classmethod
    def over(cls, step: str, acts: Tensor, callback: ReduceCallback, norm_size: int) -> Distribution:
        """So that statistics are of ``norm_size`` examples. Raises: ValueRangeError: not a whole multiple of those of ``acts``."""
        here = acts.shape[0] if acts.rank else 0
        if norm_size <= here or not here:
            return cls()
        if norm_size % here:
            raise ValueRangeError(f"{step} of {acts!r}: statistics of {norm_size} examples, {here} a replica", f"a multiple of {here}")
        return cls(callback, norm_size // here)

    def sums(self, graph: Graph, tensors: list[Tensor], prog: Sequence, name: str) -> list[Tensor]:
        return tensors if self.reduce is None else self.reduce(graph, tensors, prog, self.group_size, name, {})


ALONE = Distribution()


def statistics(
    graph: Graph, acts: Tensor, eps: float, prog: Sequence, members: Members, unbiased: bool, stable: bool, partials_type: DTypeLike, step: str,
    among: Distribution = ALONE,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Mean, and one over the square root of variance plus ``eps``: vectors of FLOAT, one a statistic.

    ``stable``: the variance is the mean of the squares of what is off the mean, so that a large mean costs no digits; else the
    mean of the squares less the square of the mean, in one pass. Of no elements the mean is 0 and the variance too.

    Raises: ShapeError, ElementTypeError: activations that ``members`` does not fit.
    """
    view = viewed(step, acts, members)
    options = {"accumType.interTile": _partials(step, partials_type)}
    count = among.group_size * math.prod(view.shape[d] for d in members.together)
    share = 1 / max(count, 1)
    spread = count / (count - 1) if unbiased and count > 1 else 1.0
    add, square = (popops.SingleReduceOp(view, members.together, op, FLOAT_TYPE) for op in (popops.Operation.ADD, popops.Operation.SQUARE_ADD))
    sums: list[Tensor] = []
    popops.reduce_many(graph, [add] if stable else [add, square], sums, prog, step, options)
    sums = among.sums(graph, sums, prog, step)
    mean = popops.map(graph, PlaceHolder(1) * share, [sums[0]], prog, step)
    if stable:
        off = popops.map(graph, wide(1, acts.dtype) - PlaceHolder(2), [view, members.of_statistic(mean, view)], prog, step)
        squares = popops.reduce(graph, off, members.together, popops.Operation.SQUARE_ADD, prog, step, options)
        (squares,) = among.sums(graph, [squares], prog, step)
        variance, operands = PlaceHolder(1) * (share * spread), [squares]
    else:
        variance = Max(PlaceHolder(1) * share - PlaceHolder(2) * PlaceHolder(2), Const(0.0)) * spread
        operands = [sums[1], mean]
    inverse = popops.map(graph, Rsqrt(variance + float(eps)), operands, prog, step)
    return mean.flatten(), inverse.flatten()


def whiten(graph: Graph, acts: Tensor, mean: Tensor, inv_std_dev: Tensor, prog: Sequence, members: Members, step: str) -> Tensor:
    """(acts - mean) * inv_std_dev"""
    view = viewed(step, acts, members, mean, inv_std_dev)
    e = (wide(1, acts.dtype) - wide(2, mean.dtype)) * wide(3, inv_std_dev.dtype)
    operands = [view, members.of_statistic(mean, view), members.of_statistic(inv_std_dev, view)]
    return popops.map(graph, rounded(e, acts.dtype), operands, prog, step).reshape(acts.shape)


def statistics_gradients(
    graph: Graph, acts_whitened: Tensor, grads_in: Tensor, inv_std_dev: Tensor, prog: Sequence, members: Members, partials_type: DTypeLike, step: str,
    among: Distribution = ALONE,
) -> Tensor:  # fmt: skip
    """inv_std_dev * (g - mean(g) - whitened * mean(g * whitened)), g being ``grads_in``; of the type of ``acts_whitened``."""
    acts, grads = viewed(step, acts_whitened, members, inv_std_dev), viewed(step, grads_in, members)
    options = {"accumType.interTile": _partials(step, partials_type)}
    product = popops.map(graph, wide(1, grads.dtype) * wide(2, acts.dtype), [grads, acts], prog, step)
    sums: list[Tensor] = []
    both = [popops.SingleReduceOp(t, members.together, popops.Operation.ADD, FLOAT_TYPE) for t in (grads, product)]
    popops.reduce_many(graph, both, sums, prog, step, options)
    total, along = (members.of_statistic(t, acts) for t in among.sums(graph, sums, prog, step))
    share = 1 / max(among.group_size * math.prod(acts.shape[d] for d in members.together), 1)
    e = wide(1, grads.dtype) - PlaceHolder(2) * share - wide(3, acts.dtype) * PlaceHolder(4) * share
    operands = [grads, total, acts, along, members.of_statistic(inv_std_dev, acts)]
    return popops.map(graph, rounded(e * wide(5, inv_std_dev.dtype), acts.dtype), operands, prog, step).reshape(acts_whitened.shape)


def by_channel(graph: Graph, t: Tensor, gamma: Tensor, dtype: DTypeLike, prog: Sequence, step: str) -> Tensor:
    """t * gamma, one gamma a channel, rounded to ``dtype`` once."""
    view = viewed(step, t, CHANNEL, gamma)
    e = rounded(wide(1, view.dtype) * wide(2, gamma.dtype), as_element_type(dtype))
    return popops.map(graph, e, [view, CHANNEL.of_statistic(gamma, view)], prog, step).reshape(t.shape)


def viewed(step: str, acts: Tensor, members: Members, *statistics: Tensor) -> Tensor:
    """``members.view(acts)``, after checks. Raises: GraphError, ElementTypeError, ShapeError."""
    common.require_tensors(step, acts, *statistics)
    if acts.dtype.kind not in ("float", "half"):
        raise ElementTypeError(f"{step} of {acts!r}", "FLOAT or HALF")
    if acts.rank < 2:
        raise ShapeError(f"{step} of {acts!r}", "(batch, channels, ...)")
    groups = members.groups
    if groups is not None and acts.shape[1] and (groups < 1 or acts.shape[1] % groups):
        raise ShapeError(f"{step} of {acts!r}: {groups} groups of {acts.shape[1]} channels", "a number of groups that divides the channels")
    wanted = acts.shape[1] if groups is None or not acts.shape[1] else acts.shape[0] * groups
    for t in statistics:
        if t.num_elements != wanted or t.dtype.kind not in ("float", "half"):
            raise ShapeError(f"{step} of {acts!r} with {t!r}", f"FLOAT or HALF, {wanted} elements: one a statistic")
    return members.view(acts)


def _partials(step: str, dtype: DTypeLike) -> str:
    """What sums go from tile to tile in."""
    element = as_element_type(dtype)
    if element.kind not in ("float", "half"):
        raise ElementTypeError(f"{step} with partials of {element!r}", "FLOAT or HALF")
    return element.kind
