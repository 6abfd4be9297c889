"""Do two vertices of a compute set meet in an element that one of them writes? Marks every element, which is slow and plain."""

from __future__ import annotations

from collections.abc import Sequence

from popcore.codelet import Field
from popcore.errors import RaceError
from popcore.graph.regions import PLACE, SHIFT, Regions
from popcore.graph.vertex import ComputeSet

Edges = Sequence[tuple[Field, tuple[Regions, ...]]]
"""What one vertex is connected to."""


def check_races(compute_set: ComputeSet, vertices: Sequence[tuple[str, Edges]]) -> None:
    """Needs: ``vertices`` with a label each.

    Raises: RaceError: naming the variable, the element and both vertices.
    """
    writers: dict[int, int] = {}  # element id: the vertex that writes it
    for number, (_, edges) in enumerate(vertices):
        for field, pieces in edges:
            if field.writes:
                _claim(compute_set, vertices, writers, number, pieces)
    for number, (_, edges) in enumerate(vertices):
        for field, pieces in edges:
            if field.writes:
                continue
            for element in (e for piece in pieces for e in piece.element_ids().tolist()):
                if writers.get(element, number) != number:
                    raise _race(compute_set, vertices, element, writers[element], number, "reads")


def _claim(compute_set: ComputeSet, vertices: Sequence[tuple[str, Edges]], writers: dict[int, int], number: int, pieces: tuple[Regions, ...]) -> None:
    """Write down that vertex ``number`` writes ``pieces``, each element once."""
    mine: set[int] = set()
    for element in (e for piece in pieces for e in piece.element_ids().tolist()):
        if writers.setdefault(element, number) != number or element in mine:
            raise _race(compute_set, vertices, element, writers[element], number, "writes")
        mine.add(element)


def _race(compute_set: ComputeSet, vertices: Sequence[tuple[str, Edges]], element: int, writer: int, other: int, does: str) -> RaceError:
    variable = compute_set.graph.variables[element >> SHIFT]
    return RaceError(
        f"element {element & PLACE} of {variable} in compute set {compute_set.name!r}:\n"
        f"  {vertices[writer][0]} writes it\n  {vertices[other][0]} {does} it{' again' if writer == other else ''}"
    )
