"""Small helpers of ``poputil``: names of generic codelets, halves, factored dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from popcore.errors import ElementTypeError, ShapeError
from popcore.graph import Tensor
from popcore.types import FLOAT, HALF, DTypeLike, ElementType, as_element_type


def template_vertex(name: str, *arguments: Any) -> str:
    """The name of a generic codelet: ``template_vertex("Scale", HALF, True)`` is ``"Scale<half,true>"``."""
    return f"{name}<{','.join(map(_argument, arguments))}>" if arguments else name


def cast_to_device_half_value(value: float) -> float:
    """The HALF nearest to ``value``, as a Python float."""
    with np.errstate(over="ignore"):
        return float(np.float16(np.float32(value)))


def check_accuracy_when_cast(value: float, source: DTypeLike, target: DTypeLike, tolerance: float) -> bool:
    """Whether ``value`` cast from ``source`` to ``target`` is off by less than ``tolerance`` times itself.

    Raises: ElementTypeError: types other than FLOAT and HALF.
    """
    pair = as_element_type(source), as_element_type(target)
    if pair == (HALF, FLOAT):
        return True
    if pair != (FLOAT, HALF):
        raise ElementTypeError(f"the accuracy of a cast from {pair[0]!r} to {pair[1]!r}", "FLOAT to HALF, or HALF to FLOAT")
    exact = float(np.float32(value))
    return abs(exact) * tolerance > abs(cast_to_device_half_value(value) - exact)


def factor_dims(t: Tensor, factors: Sequence[int], start_dim: int = 0) -> Tensor:
    """Split dimension ``start_dim + i`` into size / factors[i] and factors[i]; all the second parts follow all the first."""
    n = len(factors)
    dims = t.shape[start_dim : start_dim + n]
    if len(dims) != n or any(f < 1 or d % f for d, f in zip(dims, factors, strict=True)):
        raise ShapeError(f"factor_dims of {t!r} by {list(factors)} from dimension {start_dim}", "factors that divide the dimensions")
    split = [m for d, f in zip(dims, factors, strict=True) for m in (d // f, f)]
    apart = t.reshape_partial(start_dim, start_dim + n, split)
    order = [*range(0, 2 * n, 2), *range(1, 2 * n, 2)]
    return apart.dim_shuffle([*range(start_dim), *(start_dim + i for i in order), *range(start_dim + 2 * n, apart.rank)])


def unfactor_dims(t: Tensor, num_dims: int, start_dim: int = 0) -> Tensor:
    """Undo ``factor_dims`` of ``num_dims`` dimensions."""
    end = start_dim + 2 * num_dims
    if end > t.rank:
        raise ShapeError(f"unfactor_dims of {t!r}: dimensions {start_dim} to {end}", f"up to {t.rank}")
    pairs = [d for i in range(num_dims) for d in (start_dim + i, start_dim + num_dims + i)]
    together = t.dim_shuffle([*range(start_dim), *pairs, *range(end, t.rank)])
    sizes = [together.shape[start_dim + 2 * i] * together.shape[start_dim + 2 * i + 1] for i in range(num_dims)]
    return together.reshape_partial(start_dim, end, sizes)


def _argument(value: Any) -> str:
    if isinstance(value, ElementType):
        return value.poplar_name
    return str(value).lower() if isinstance(value, bool) else str(value)
