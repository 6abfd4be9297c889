"""uniform, log_uniform, normal, truncated_normal, bernoulli: new tensors of random numbers. After ``poprand/RandomGen.hpp``.

Of all of them: ``reference`` gives shape and tile mapping of the result. Without a seed the machine's generators go on; with one,
UNSIGNED_INT (2,), they are left alone, and the result depends on seed, modifier, element type and the tile mapping of ``reference`` only.
Costs: of a tile's share, those of PopLibs' vertices.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from popcore.codelets import random
from popcore.errors import ElementTypeError, GraphError, ValueRangeError
from popcore.graph import Graph, Tensor
from popcore.ops.popops import common, expr
from popcore.ops.popops.cast import cast
from popcore.ops.popops.mapping import map_in_place
from popcore.ops.poprand.draw import draw
from popcore.program import Sequence
from popcore.types import FLOAT, HALF, INT, UNSIGNED_INT, DTypeLike, ElementType, as_element_type

_FLOATS: Any = (FLOAT, HALF)
_NUMBERS: Any = (FLOAT, HALF, INT, UNSIGNED_INT)
_UNIFORM, _INTEGER, _NORMAL, _TRUNCATED, _BERNOULLI = (22, 4), (22, 6), (22, 4), (26, 49), (23, 1)
"""Cycles of a worker: once, and for each 8 bytes; those of a truncated normal with the four rounds of PopLibs' vertex."""


def uniform(
    graph: Graph, seed: Tensor | None, seed_modifier: int, reference: Tensor, out_type: DTypeLike, min_val: float, max_val: float, prog: Sequence, name: str = ""
) -> Tensor:  # fmt: skip
    """Each number of ``[min_val, max_val]`` as likely as the others.

    Of FLOAT and HALF: ``min_val + k * 2**-24 * (max_val - min_val)``, rounded, for a whole number k below 2**24; never outside of the range. Of
    integers: both ends included; the full range of the type may be asked for.

    Raises: ValueRangeError: no number of the type in the range. ElementTypeError: other than FLOAT, HALF, INT, UNSIGNED_INT.
    """
    step = common.joined(name, "uniform")
    out = _output(graph, reference, out_type, _NUMBERS, step)
    if out.dtype.is_integral:
        low, high = _whole_range(min_val, max_val, out.dtype, step)
        codelet: Any = random.UniformInteger[out.dtype]  # type: ignore[name-defined]
        draw(graph, codelet, seed, seed_modifier, out, {"low": low, "count": high - low + 1}, _INTEGER, prog, step)
        return out
    lowest, highest = _float_range(min_val, max_val, out.dtype, step)
    scale = (highest - lowest) * 2.0**-24
    fields = {"low": lowest, "scale": float(np.float32(scale)), "high": highest}
    draw(graph, random.Uniform[out.dtype], seed, seed_modifier, out, fields, _UNIFORM, prog, step)  # type: ignore[name-defined]
    return out


def log_uniform(
    graph: Graph, seed: Tensor | None, seed_modifier: int, reference: Tensor, out_type: DTypeLike, min_val: float, max_val: float, prog: Sequence,
    base: float = math.e, name: str = "",
) -> Tensor:  # fmt: skip
    """Numbers of ``[min_val, max_val]`` whose logarithm is uniform, FLOAT or HALF; to which ``base`` makes no difference.

    Raises: ValueRangeError: ``min_val`` not above 0, or a base that no logarithm has.
    """
    step = common.joined(name, "log_uniform")
    element = _element(out_type, _FLOATS, step)
    lowest, highest = _float_range(min_val, max_val, element, step)
    if not lowest > 0 or not base > 0 or base == 1:
        raise ValueRangeError(f"{step} in [{min_val}, {max_val}] to base {base}", "a range above 0, a base above 0 that is not 1")
    made = uniform(graph, seed, seed_modifier, reference, FLOAT, math.log(lowest), math.log(highest), prog, step)
    power = expr.Max(expr.Min(expr.Exp(expr.PlaceHolder(1)), expr.Const(highest)), expr.Const(lowest))
    map_in_place(graph, power, [made], prog, step)
    return cast(graph, made, element, prog, step)


def normal(
    graph: Graph, seed: Tensor | None, seed_modifier: int, reference: Tensor, out_type: DTypeLike, mean: float, std_dev: float, prog: Sequence, name: str = ""
) -> Tensor:  # fmt: skip
    """``mean + std_dev * z``, z the hardware's Gaussian: twelve uniform numbers of five bits added up (373 values from -5.8125 to 5.8125, deviation 0.9995).

    Raises: ValueRangeError: a deviation below 0, or what is not finite. ElementTypeError: neither FLOAT nor HALF.
    """
    step = common.joined(name, "normal")
    out = _output(graph, reference, out_type, _FLOATS, step)
    fields = _moments(mean, std_dev, step)
    draw(graph, random.Normal[out.dtype], seed, seed_modifier, out, fields, _NORMAL, prog, step)  # type: ignore[name-defined]
    return out


def truncated_normal(
    graph: Graph, seed: Tensor | None, seed_modifier: int, reference: Tensor, out_type: DTypeLike, mean: float, std_dev: float, alpha: float, prog: Sequence,
    name: str = "",
) -> Tensor:  # fmt: skip
    """``normal`` with z drawn anew until it is from -alpha to alpha.

    Raises: ValueRangeError: as ``normal``; alpha not above 0.
    """
    step = common.joined(name, "truncated_normal")
    out = _output(graph, reference, out_type, _FLOATS, step)
    fields = _moments(mean, std_dev, step)
    if not alpha > 0:
        raise ValueRangeError(f"{step}: alpha is {alpha}", "a number above 0")
    fields["alpha"] = min(float(alpha), 6.0)  # z is never so far away
    draw(graph, random.TruncatedNormal[out.dtype], seed, seed_modifier, out, fields, _TRUNCATED, prog, step)  # type: ignore[name-defined]
    return out


def bernoulli(
    graph: Graph, seed: Tensor | None, seed_modifier: int, reference: Tensor, out_type: DTypeLike, prob: float, prog: Sequence, name: str = ""
) -> Tensor:  # fmt: skip
    """1 with probability ``prob`` (to 2**-32), else 0: FLOAT, HALF, INT or UNSIGNED_INT.

    Raises: ValueRangeError: a probability outside of [0, 1].
    """
    step = common.joined(name, "bernoulli")
    out = _output(graph, reference, out_type, _NUMBERS, step)
    fields = {"threshold": threshold(prob, step)}
    draw(graph, random.Bernoulli[out.dtype], seed, seed_modifier, out, fields, _BERNOULLI, prog, step)  # type: ignore[name-defined]
    return out


def threshold(prob: float, step: str) -> int:
    """How many of 2**32 numbers stand for 1."""
    if not 0 <= prob <= 1:
        raise ValueRangeError(f"a probability of {prob} in {step}", "0 to 1")
    return round(prob * 2**32)


def _output(graph: Graph, reference: Tensor, out_type: DTypeLike, allowed: tuple[ElementType, ...], step: str) -> Tensor:
    common.require_tensors(step, reference)
    return output_like(graph, reference, _element(out_type, allowed, step), step)


def output_like(graph: Graph, reference: Tensor, dtype: ElementType, step: str) -> Tensor:
    """A new tensor with shape and mapping of ``reference``, each element its own."""
    if reference.contains_aliases:
        raise GraphError(f"the reference of {step}, {reference!r}, shows an element twice", "a tensor without aliases: poputil.duplicate")
    return graph.clone(reference, f"{step}/out", dtype=dtype)


def _element(out_type: DTypeLike, allowed: tuple[ElementType, ...], step: str) -> ElementType:
    element = as_element_type(out_type)
    if element not in allowed:
        raise ElementTypeError(f"{step} of {element!r}", " or ".join(map(repr, allowed)))
    return element


def _moments(mean: float, std_dev: float, step: str) -> dict[str, float]:
    if not (math.isfinite(mean) and math.isfinite(std_dev) and std_dev >= 0):
        raise ValueRangeError(f"{step} of mean {mean} and deviation {std_dev}", "finite numbers, the deviation 0 or more")
    return {"mean": float(mean), "deviation": float(std_dev)}


def _float_range(low: float, high: float, dtype: ElementType, step: str) -> tuple[float, float]:
    """The least and the greatest number of the type within."""
    kind = dtype.numpy.type
    with np.errstate(over="ignore"):
        a, b = kind(low), kind(high)
    finite = np.isfinite(a) and np.isfinite(b)
    if float(a) < low:
        a = np.nextafter(a, kind(np.inf))
    if float(b) > high:
        b = np.nextafter(b, kind(-np.inf))
    if not (finite and a <= b and float(b) - float(a) <= np.finfo(np.float32).max):
        raise ValueRangeError(
            f"{step} in [{low}, {high}]", f"limits that are finite as {dtype!r}, with one between them, and not further apart than a FLOAT can say"
        )
    return float(a), float(b)


def _whole_range(low: float, high: float, dtype: ElementType, step: str) -> tuple[int, int]:
    limits = np.iinfo(dtype.numpy)
    if not (math.isfinite(low) and math.isfinite(high)) or math.ceil(low) < limits.min or math.floor(high) > limits.max or math.ceil(low) > math.floor(high):
        raise ValueRangeError(f"{step} in [{low}, {high}]", f"whole numbers of {dtype!r}: {limits.min} to {limits.max}")
    return math.ceil(low), math.floor(high)
