"""Batch, group, instance and layer normalisation of activations ``(batch, channels, ...)``: statistics, normalising, gradients.

After ``popnn/BatchNorm.hpp`` and its siblings, whose functions differ only in which elements belong together: ``Norm`` says that. All
is computed in FLOAT and rounded once to the type of the activations; means and inverse deviations are FLOAT.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from popcore.errors import ElementTypeError, ShapeError, ValueRangeError
from popcore.graph import Graph, Tensor
from popcore.ops import popops
from popcore.ops.popops import common
from popcore.ops.popops.expr import Cast, Expr, PlaceHolder, Rsqrt
from popcore.program import Sequence
from popcore.types import FLOAT, DTypeLike, ElementType


@dataclass(frozen=True)
class Norm:
    """Which activations share a mean and a deviation: those of a channel over the batch (``groups`` None), or of one group of channels of one example.

    Channel c is in group ``c % groups``, as PopLibs has it by default; ``strided=False``: in group ``c // (channels / groups)``.
    """

    groups: int | None = None
    strided: bool = True

    def view(self, acts: Tensor) -> Tensor:
        """Activations with a dimension for each part of the index that matters."""
        batch, channels, *field = acts.shape
        if self.groups is None:
            return acts.reshape((batch, channels, math.prod(field)))
        each = channels // self.groups
        return acts.reshape((batch, each, self.groups, math.prod(field)) if self.strided else (batch, self.groups, each, math.prod(field)))

    @property
    def together(self) -> tuple[int, ...]:
        """Dimensions of ``view`` that one mean is over."""
        return (0, 2) if self.groups is None else (1, 3) if self.strided else (2, 3)

    def of_statistic(self, t: Tensor, view: Tensor) -> Tensor:
        """A statistic in a shape that broadcasts to ``view``."""
        return t.reshape(tuple(1 if d in self.together else n for d, n in enumerate(view.shape)))

    def of_channel(self, t: Tensor, view: Tensor) -> Tensor:
        """A value a channel, likewise."""
        return t.reshape((1, *view.shape[1:-1], 1))


BATCH = Norm()
LAYER = Norm(1)


def norm_statistics(
    graph: Graph, acts: Tensor, eps: float, prog: Sequence, norm: Norm = BATCH, unbiased_var_estimate: bool = False, name: str = ""
) -> tuple[Tensor, Tensor]:
    """Mean, and one over the square root of variance plus ``eps``: vectors of one FLOAT a channel (of one a group and example).

    The variance is the mean of the squares of what is off the mean, so that a large mean costs no digits.

    Raises: ShapeError, ElementTypeError: activations that ``norm`` does not fit. ValueRangeError: nothing to take a mean of.
    """
    step = common.joined(name, "norm_statistics")
    view = _viewed(step, acts, norm)
    count = math.prod(view.shape[d] for d in norm.together)
    divisor = count - 1 if unbiased_var_estimate else count
    if divisor < 1:
        raise ValueRangeError(f"{step} of {acts!r}: a statistic of {count} elements", "more elements; or unbiased_var_estimate=False")
    x = _wide(1, acts.dtype)
    wide = view if acts.dtype is FLOAT else popops.map(graph, x, [view], prog, step)
    total = popops.reduce(graph, wide, norm.together, popops.Operation.ADD, prog, step)
    mean = popops.map(graph, PlaceHolder(1) * (1 / count), [total], prog, step)
    off = popops.map(graph, PlaceHolder(1) - PlaceHolder(2), [wide, norm.of_statistic(mean, view)], prog, step)
    squares = popops.reduce(graph, off, norm.together, popops.Operation.SQUARE_ADD, prog, step)
    inverse = popops.map(graph, Rsqrt(PlaceHolder(1) * (1 / divisor) + eps), [squares], prog, step)
    return mean.flatten(), inverse.flatten()


def norm_whiten(graph: Graph, acts: Tensor, mean: Tensor, inv_std_dev: Tensor, prog: Sequence, norm: Norm = BATCH, name: str = "") -> Tensor:
    """(acts - mean) * inv_std_dev"""
    step = common.joined(name, "norm_whiten")
    view = _viewed(step, acts, norm)
    e = (_wide(1, acts.dtype) - PlaceHolder(2)) * PlaceHolder(3)
    operands = [view, norm.of_statistic(mean, view), norm.of_statistic(inv_std_dev, view)]
    return popops.map(graph, _narrow(e, acts.dtype), operands, prog, step).reshape(acts.shape)


def normalise(
    graph: Graph, acts: Tensor, gamma: Tensor, beta: Tensor, mean: Tensor, inv_std_dev: Tensor, prog: Sequence, norm: Norm = BATCH, name: str = ""
) -> tuple[Tensor, Tensor]:
    """whitened * gamma + beta, a gamma and beta a channel. Returns: that, and the whitened activations."""
    step = common.joined(name, "normalise")
    whitened = norm_whiten(graph, acts, mean, inv_std_dev, prog, norm, name)
    view = norm.view(whitened)
    e = _wide(1, acts.dtype) * _wide(2, gamma.dtype) + _wide(3, beta.dtype)
    operands = [view, norm.of_channel(gamma, view), norm.of_channel(beta, view)]
    return popops.map(graph, _narrow(e, acts.dtype), operands, prog, step).reshape(acts.shape), whitened


def norm_param_gradients(
    graph: Graph, acts_whitened: Tensor, grads_in: Tensor, prog: Sequence, name: str = "", partials_type: DTypeLike = "float"
) -> tuple[Tensor, Tensor]:
    """The gradients of gamma and beta, one a channel, in ``partials_type``."""
    step = common.joined(name, "norm_param_gradients")
    acts, grads = _viewed(step, acts_whitened, BATCH), _viewed(step, grads_in, BATCH)
    product = popops.map(graph, _wide(1, acts.dtype) * _wide(2, grads.dtype), [acts, grads], prog, step)
    made = (popops.reduce(graph, t, (0, 2), popops.Operation.ADD, prog, step, out_type=partials_type) for t in (product, grads))
    gamma, beta = made
    return gamma, beta


def norm_gradients(
    graph: Graph, acts_whitened: Tensor, grads_in: Tensor, inv_std_dev: Tensor, gamma: Tensor, prog: Sequence, norm: Norm = BATCH, name: str = ""
) -> Tensor:
    """The gradient of the activations: inv_std_dev * (g - mean(g) - whitened * mean(g * whitened)) with g = grads_in * gamma."""
    step = common.joined(name, "norm_gradients")
    acts, grads = _viewed(step, acts_whitened, norm), _viewed(step, grads_in, norm)
    count = math.prod(acts.shape[d] for d in norm.together)
    g = popops.map(graph, _wide(1, grads.dtype) * _wide(2, gamma.dtype), [grads, norm.of_channel(gamma, grads)], prog, step)
    product = popops.map(graph, PlaceHolder(1) * _wide(2, acts.dtype), [g, acts], prog, step)
    total, along = (norm.of_statistic(popops.reduce(graph, t, norm.together, popops.Operation.ADD, prog, step), acts) for t in (g, product))
    share = 1 / max(count, 1)
    e = (PlaceHolder(1) - PlaceHolder(2) * share - _wide(3, acts.dtype) * PlaceHolder(4) * share) * PlaceHolder(5)
    operands = [g, total, acts, along, norm.of_statistic(inv_std_dev, acts)]
    return popops.map(graph, _narrow(e, grads_in.dtype), operands, prog, step).reshape(grads_in.shape)


def _viewed(step: str, acts: Tensor, norm: Norm) -> Tensor:
    common.require_tensors(step, acts)
    if acts.dtype.kind not in ("float", "half"):
        raise ElementTypeError(f"{step} of {acts!r}", "FLOAT or HALF")
    if acts.rank < 2:
        raise ShapeError(f"{step} of {acts!r}", "(batch, channels, ...)")
    if norm.groups is not None and (norm.groups < 1 or acts.shape[1] % norm.groups):
        raise ShapeError(f"{step} of {acts!r}: {norm.groups} groups of {acts.shape[1]} channels", "a number of groups that divides the channels")
    return norm.view(acts)


def _wide(k: int, dtype: ElementType) -> Expr:
    return PlaceHolder(k) if dtype is FLOAT else Cast(PlaceHolder(k), FLOAT)


def _narrow(e: Expr, dtype: ElementType) -> Expr:
    return e if dtype is FLOAT else Cast(e, dtype)
