"""Several tensors as one: a collective costs a time for each of its steps, however little it moves."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence as Items

from popcore.debug import user_site
from popcore.errors import GraphError, ShapeError
from popcore.graph import Tensor, concat

Tensors = Tensor | Items[Tensor]


def listed(what: str, data: Tensors) -> list[Tensor]:
    """Raises: GraphError where there is none."""
    tensors = [data] if isinstance(data, Tensor) else list(data)
    if not tensors:
        raise GraphError(f"{what} ({user_site()}) is given no tensor", "a tensor, or a list of at least one")
    return tensors


def like(data: Tensors, made: list[Tensor]) -> Tensor | list[Tensor]:
    """``made`` as ``data`` was given: one, or a list."""
    return made[0] if isinstance(data, Tensor) else made


def pairs(what: str, data: Tensors, destination: Tensors) -> list[tuple[Tensor, Tensor]]:
    """Raises: ShapeError where there are more of one than of the other."""
    sources, targets = listed(what, data), listed(what, destination)
    if len(sources) != len(targets):
        raise ShapeError(f"{what} ({user_site()}) of {len(sources)} tensors to {len(targets)} destinations", "one destination for each")
    return list(zip(sources, targets, strict=True))


def by_type(tensors: list[tuple[Tensor, Tensor]]) -> Iterator[list[tuple[Tensor, Tensor]]]:
    """Pairs grouped by the element type of their first: each group is one collective."""
    groups: dict[object, list[tuple[Tensor, Tensor]]] = {}
    for pair in tensors:
        groups.setdefault(pair[0].dtype, []).append(pair)
    yield from groups.values()


def joined(tensors: list[Tensor], rows: int = 1) -> Tensor:
    """Flat, one after the other; of ``rows`` equal parts of each, first all first parts. One tensor stays what it is."""
    if len(tensors) == 1:
        return tensors[0]
    return concat([t.reshape((rows, t.num_elements // rows)) for t in tensors], 1).flatten()
