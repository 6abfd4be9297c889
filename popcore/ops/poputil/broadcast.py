"""NumPy's broadcast rules for tensors. After ``poputil/Broadcast.hpp``."""

from __future__ import annotations

from collections.abc import Sequence

from popcore.errors import ShapeError
from popcore.graph import Tensor


def expand_to_match_ranks(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """The one of lower rank gets dimensions of one element in front."""
    rank = max(a.rank, b.rank)
    return _expanded(a, rank), _expanded(b, rank)


def broadcast_to_match(*tensors: Tensor, shape: Sequence[int] | None = None) -> tuple[Tensor, ...]:
    """All in the shape that NumPy's rules give, or in ``shape``; dimensions of one element are broadcast.

    Raises: ShapeError: a dimension that is neither one nor the other's.
    """
    wanted = _common(tensors, shape)
    return tuple(_matched(t, wanted, tensors) for t in tensors)


def can_broadcast_to_match(*tensors: Tensor, shape: Sequence[int] | None = None) -> bool:
    try:
        broadcast_to_match(*tensors, shape=shape)
    except ShapeError:
        return False
    return True


def _common(tensors: Sequence[Tensor], shape: Sequence[int] | None) -> tuple[int, ...]:
    if shape is not None:
        return tuple(shape)
    rank = max(t.rank for t in tensors)
    shapes = [(1,) * (rank - t.rank) + t.shape for t in tensors]
    return tuple(next((n for n in dims if n != 1), 1) for dims in zip(*shapes, strict=True))


def _matched(t: Tensor, wanted: tuple[int, ...], tensors: Sequence[Tensor]) -> Tensor:
    if t.rank <= len(wanted):
        made = _expanded(t, len(wanted))
        if all(n in (1, w) for n, w in zip(made.shape, wanted, strict=True)):
            for dim, n in enumerate(wanted):
                if made.shape[dim] != n:
                    made = made.broadcast(n, dim)
            return made
    raise ShapeError(f"{t!r} cannot be broadcast to {wanted}, as {', '.join(map(repr, tensors))} ask for", "shapes that differ only where one has 1")


def _expanded(t: Tensor, rank: int) -> Tensor:
    return t.expand([0] * (rank - t.rank)) if t.rank < rank else t
