"""The edges of a compute set as arrays: what each field of each vertex is connected to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from popcore.codelet import Field
from popcore.graph.regions import Regions
from popcore.graph.vertex import VertexGroup
from popcore.types import Array


@dataclass(frozen=True)
class FieldEdges:
    """One field of a group's vertices. An edge is some runs of elements in order; a list field has many a vertex."""

    vertex: Array  # int64[e]: position of each edge's vertex in the order asked for, ascending
    runs: Regions  # the runs of edge 0, then those of edge 1, ...; an edge without elements has none
    edge_of_run: Array  # int64[r], ascending
    elements: Array  # int64[e]
    rows: Array | None = None  # int64[e] of matrix fields


def field_edges(group: VertexGroup, f: Field, order: Array) -> FieldEdges:
    """The edges of field ``f`` of the vertices ``order`` (int64[n], numbers in the group)."""
    column = group.columns[f.name]
    edges = column.edges(order)
    elements = np.bincount(edges.edge_of_run, weights=edges.runs.length, minlength=len(edges.vertex)).astype(np.int64)
    rows = column.rows.astype(np.int64)[order][edges.vertex] if f.shape == "matrix" else None
    return FieldEdges(edges.vertex, edges.runs, edges.edge_of_run, elements, rows)


@dataclass(frozen=True)
class Written:
    """The runs that some fields write: disjoint, ascending."""

    begin: Array  # int64[r]
    end: Array  # int64[r]

    @staticmethod
    def by(edges: Sequence[FieldEdges]) -> Written:
        ids, length = (np.concatenate([np.zeros(0, np.int64), *(getattr(e.runs, name) for e in edges)]) for name in ("ids", "length"))
        some = np.flatnonzero(length)
        order = some[np.argsort(ids[some], kind="stable")]
        return Written(ids[order], (ids + length)[order])

    def meets(self, ids: Array, length: Array) -> Array:
        """For each run of elements the first written run that it meets, or -1."""
        at = np.searchsorted(self.end, ids, "right")
        found = np.full(len(ids), -1)
        inside = np.flatnonzero((at < len(self.begin)) & (length > 0))
        hit = inside[self.begin[at[inside]] < (ids + length)[inside]]
        found[hit] = at[hit]
        return found
