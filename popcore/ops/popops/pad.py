"""pad: a tensor with a border, made of views and constants."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

from popcore.errors import ShapeError
from popcore.graph import Graph, Tensor, concat
from popcore.ops.popops import common
from popcore.ops.poputil import map_tensor_linearly


class PaddingType(enum.Enum):
    """What a border holds where it is no constant."""

    EDGE = "the nearest element"
    REFLECT = "the elements inside, mirrored about the first or last"


class PaddingMapping(enum.Enum):
    """Where a constant border lives."""

    NONE = "on no tile: the caller maps it"
    ZERO = "on tile 0"
    EDGE = "on the tiles of the nearest elements"


def pad(
    graph: Graph,
    t: Tensor,
    lower: Sequence[int] | int,
    upper: Sequence[int] | int,
    value: Any = 0,
    mapping: PaddingMapping | int = PaddingMapping.EDGE,
    dim: int | None = None,
) -> Tensor:
    """A view with ``lower[d]`` entries before dimension d and ``upper[d]`` after it; negative ones are cut off.

    Args:
        lower, upper: One number a dimension; or one number, with ``dim`` the only dimension to be padded.
        value: What the border holds: a number, or a PaddingType.
        mapping: Where a border of numbers lives.

    Raises: ShapeError: as many numbers as dimensions are missing; more is cut off, or mirrored, than there is.
    """
    common.require_tensors("pad", t)
    if isinstance(lower, int) and isinstance(upper, int):
        at = t.rank - 1 if dim is None else dim
        if not 0 <= at < t.rank:
            raise ShapeError(f"pad of dimension {at} of {t!r}", "a dimension it has")
        lower, upper = [lower if d == at else 0 for d in range(t.rank)], [upper if d == at else 0 for d in range(t.rank)]
    if isinstance(lower, int) or isinstance(upper, int) or len(lower) != t.rank or len(upper) != t.rank:
        raise ShapeError(f"pad of {t!r} by {lower!r} and {upper!r}", f"{t.rank} numbers each")
    for d, (low, high) in enumerate(zip(lower, upper, strict=True)):
        t = _padded(graph, _cropped(t, d, low, high), d, max(0, low), max(0, high), value, mapping)
    return t


def _cropped(t: Tensor, dim: int, low: int, high: int) -> Tensor:
    begin, end = max(0, -low), t.shape[dim] - max(0, -high)
    if begin > end:
        raise ShapeError(f"pad of dimension {dim} of {t!r} by {low} and {high} cuts off more than there is", "fewer")
    return t.slice(begin, end, dim)


def _padded(graph: Graph, t: Tensor, dim: int, low: int, high: int, value: Any, mapping: PaddingMapping | int) -> Tensor:
    n = t.shape[dim]
    parts = []
    for count, first in ((low, True), (high, False)):
        if not count:
            continue
        if value is PaddingType.EDGE:
            if not n:
                raise ShapeError(f"pad by the edge of {t!r}, which has none along dimension {dim}", "pad by a number")
            part = t.slice(0 if first else n - 1, 1 if first else n, dim).broadcast(count, dim)
        elif value is PaddingType.REFLECT:
            if count >= n:
                raise ShapeError(f"pad of dimension {dim} of {t!r} by {count} mirrored entries", f"at most {n - 1}")
            part = (t.slice(1, count + 1, dim) if first else t.slice(n - count - 1, n - 1, dim)).reverse(dim)
        else:
            part = _border(graph, t, dim, count, first, value, mapping)
        parts.append((first, part))
    return concat([*(p for first, p in parts if first), t, *(p for first, p in parts if not first)], dim) if parts else t


def _border(graph: Graph, t: Tensor, dim: int, count: int, first: bool, value: Any, mapping: PaddingMapping | int) -> Tensor:
    shape = (*t.shape[:dim], count, *t.shape[dim + 1 :])
    made = graph.add_constant(t.dtype, shape, value, name=f"{t.name}/padding")
    if mapping is PaddingMapping.NONE or not made.num_elements:
        return made
    if mapping is PaddingMapping.ZERO or isinstance(mapping, int):
        graph.set_tile_mapping(made, 0 if isinstance(mapping, PaddingMapping) else mapping)
        return made
    n = t.shape[dim]
    if not n:
        map_tensor_linearly(graph, made)
        return made
    edge = t.slice(0 if first else n - 1, 1 if first else n, dim)
    begin, end, tile = graph.tile_intervals(edge)
    for i in range(count):
        graph.map_intervals(made.slice(i, i + 1, dim), begin, end - begin, tile)
    return made
