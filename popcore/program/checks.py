"""What the builders of programs check at the call, while the user's line is on the stack."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

from popcore.debug import Site
from popcore.errors import ControlProgramError, ElementTypeError, GraphError, ShapeError
from popcore.graph.tensor import Tensor
from popcore.types import BOOL, ElementType

COUNT_LIMIT = 1 << 32
"""A loop counter of a tile has 32 bits."""


def describe(tensor: Tensor) -> str:
    """A tensor as messages name it: its variables, shape and element type."""
    return f"{tensor.name!r} {tensor.shape} {tensor.dtype.__name__}"


def require_tensor(what: str, value: Any, site: Site) -> Tensor:
    if not isinstance(value, Tensor):
        raise GraphError(f"{what} ({site}) is {value!r}, not a tensor", "pass what graph.add_variable gave, or a view of it")
    return value


def require_one_graph(what: str, tensors: Iterable[Tensor], site: Site) -> None:
    first: Tensor | None = None
    for tensor in tensors:
        if first is not None and tensor.graph is not first.graph:
            raise GraphError(f"{what} ({site}): {describe(first)} and {describe(tensor)} belong to different graphs", "use tensors of one graph")
        first = first if first is not None else tensor


def require_writeable(what: str, tensor: Tensor, site: Site) -> None:
    """Refuse a destination that is constant, or where one element appears twice."""
    if tensor.simple is not None and tensor.variable is not None and not tensor.variable.constant:
        return  # one run of a variable, as most are
    if tensor.contains_constant:
        raise ControlProgramError(f"{what} ({site}) would write to the constant {describe(tensor)}", "copy into a variable")
    if tensor.contains_aliases:
        raise ControlProgramError(
            f"{what} ({site}): an element of {describe(tensor)} appears more than once in the destination, so two values would meet there",
            "copy into the tensor that was broadcast or repeated, and broadcast after",
        )


def require_same_type(what: str, left: tuple[str, ElementType], right: tuple[str, ElementType], site: Site) -> None:
    if left[1] is not right[1]:
        raise ElementTypeError(
            f"{what} ({site}): {left[0]} has element type {left[1].__name__}, {right[0]} has {right[1].__name__}",
            "cast, or reinterpret if the types have one size",
        )


def require_same_elements(what: str, source: Tensor, target: Tensor, site: Site) -> None:
    """Equal shapes, or equal counts where one side is flat."""
    if source.shape == target.shape:
        return
    both = f"{what} ({site}): {describe(source)} to {describe(target)}"
    if source.num_elements != target.num_elements:
        raise ShapeError(f"{both}: {source.num_elements:,} elements to {target.num_elements:,}", "slice or broadcast one of them")
    if source.rank > 1 and target.rank > 1:
        raise ShapeError(f"{both}: the shapes differ", "flatten or reshape one of them, to say which element goes where")


def require_scalar(what: str, value: Any, site: Site) -> Tensor:
    tensor = require_tensor(what, value, site)
    if tensor.rank != 0:
        raise ControlProgramError(f"{what} ({site}) is {describe(tensor)}: not a scalar", "index one element of it, as in t[0], or t.reshape(())")
    return tensor


def require_predicate(what: str, value: Any, site: Site) -> Tensor:
    tensor = require_scalar(what, value, site)
    if not (tensor.dtype is BOOL or tensor.dtype.is_integral):
        raise ControlProgramError(f"{what} ({site}) is {describe(tensor)}: neither BOOL nor an integer", "compare it with something, which gives a BOOL")
    return tensor


def require_index(what: str, value: Any, site: Site) -> int:
    """A whole number, as Python means it; True and 2.0 are none."""
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise ControlProgramError(f"{what} ({site}) is {value!r}, not a whole number", "pass an int; a tensor cannot say it, use RepeatWhileTrue") from None


def require_count(what: str, value: Any, site: Site) -> int:
    count = require_index(what, value, site)
    if not 0 <= count < COUNT_LIMIT:
        raise ControlProgramError(f"{what} ({site}) is {count:,}, outside 0 to {COUNT_LIMIT - 1:,}", "0 runs nothing; nest two loops for more")
    return count
