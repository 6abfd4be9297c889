"""Programs of the vendor's tutorials: tutorial 6 of Poplar, a product of a matrix and a vector."""

from __future__ import annotations

import re

import numpy as np

import popcore as pc
from bench.fidelity.figures import Family, Figure
from bench.fidelity.programs import graph_of, modelled
from popcore import FLOAT, Input, Output, Vector, Vertex, program
from popcore.profile import Profile

_PARTS = 7  # of a row: what the tutorial's own search finds best for 10,000 x 1,000


class DotProduct(Vertex):
    """A part of a row times as much of the vector."""

    row: Input[Vector[FLOAT]]
    vector: Input[Vector[FLOAT]]
    out: Output[FLOAT]

    def compute(self) -> None:
        pass


class Sum(Vertex):
    """The parts of a row together."""

    parts: Input[Vector[FLOAT]]
    out: Output[FLOAT]

    def compute(self) -> None:
        pass


def _steps(graph: pc.Graph, rows: int, columns: int) -> tuple[list[program.Program], program.Program]:
    """What brings the operands where they are used, and the product.

    The matrix comes from the host in its own order, a stretch on every tile, and is exchanged from there. Vertices say what the tutorial says of them.
    """
    tiles = graph.target.num_tiles
    matrix, vector = (graph.add_variable(FLOAT, shape, name=name) for name, shape in (("matrix", (rows, columns)), ("vector", (columns,))))
    arrived = graph.add_variable(FLOAT, (rows, columns), mapping="linear", name="arrived")
    partials = graph.add_variable(FLOAT, (rows, _PARTS), name="partials")
    result = graph.add_variable(FLOAT, (rows,), name="result")
    part, row = (each.ravel() for each in np.meshgrid(np.arange(_PARTS), np.arange(rows), indexing="ij"))
    tile = (part * rows + row) * tiles // (_PARTS * rows)
    begin, end = part * columns // _PARTS, (part + 1) * columns // _PARTS
    graph.map_intervals(matrix, row * columns + begin, end - begin, tile)
    graph.map_intervals(partials, row * _PARTS + part, np.ones(len(row), np.int64), tile)
    graph.map_intervals(vector, np.arange(columns), np.ones(columns, np.int64), np.arange(columns) * tiles // columns)
    _, first, piece = np.unique(tile * _PARTS + part, return_index=True, return_inverse=True)  # what a tile's vertices read of the vector comes once
    size = (end - begin)[first]
    start = np.cumsum(size) - size
    pieces = graph.add_variable(FLOAT, (int(size.sum()),), name="pieces")
    graph.map_intervals(pieces, start, size, tile[first])
    products, sums = graph.add_compute_set("products"), graph.add_compute_set("sums")
    fields = {"row": (matrix, row * columns + begin, end - begin), "vector": (pieces, start[piece], size[piece]), "out": (partials, row * _PARTS + part)}
    graph.add_vertices(products, DotProduct, fields, tile, cycles=5 + (end - begin + 1) // 2)
    home = np.arange(rows) * tiles // rows
    graph.map_intervals(result, np.arange(rows), np.ones(rows, np.int64), home)
    graph.add_vertices(sums, Sum, {"parts": partials, "out": result}, home, cycles=5 + (_PARTS + 1) // 2)
    product = program.Sequence(program.Copy(vector.select(begin[first], size), pieces), program.Execute(products), program.Execute(sums))
    return [program.Copy(arrived, matrix)], product


def _run(figure: Figure, whole: bool) -> Profile:
    """Of the product, or of the whole program."""
    graph = graph_of(figure)
    found = re.search(r"(\d+)x(\d+)", figure.benchmark)
    rows, columns = (int(n) for n in found.groups()) if found else (10_000, 1_000)
    before, product = _steps(graph, rows, columns)
    return modelled(graph, *(before if whole else ()), product)


def compute(figure: Figure) -> float:
    """Cycles of the product's larger compute set."""
    return max(step.cycles_by_kind["compute"] for step in _run(figure, whole=False).steps)


def exchange(figure: Figure) -> float:
    """Cycles of all exchanges inside the chip."""
    return _run(figure, whole=True).cycles_by_kind["exchange"]


FAMILIES = (
    Family("tutorial", r"T6-3", compute),
    Family("tutorial", r"T6-4", exchange),
)
