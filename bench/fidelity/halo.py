"""Ways to exchange the rim of a block of 100 x 100 elements on every tile, as thorbenlouw/lbm-graphcore compares them.

Blocks lie two side by side. "Implicit": a vertex reads its block, and its neighbours' rims as vectors. "Explicit": rims are copied into a border of the
block first, in two waves: rows, then columns with their corners. Every vertex is said to take 100 cycles, so that the rest is exchange.
"""

from __future__ import annotations

import numpy as np

import popcore as pc
from bench.fidelity.figures import Family, Figure
from bench.fidelity.programs import graph_of, modelled
from popcore import FLOAT, Input, Output, Vector, Vertex, program
from popcore.microbench.programs import spread

_COLUMNS = 2  # of blocks
_CYCLES = 100


class WithRims(Vertex):
    """A block, and what lies around it."""

    block: Input[Vector[FLOAT]]
    north: Input[Vector[FLOAT]]
    south: Input[Vector[FLOAT]]
    west: Input[Vector[FLOAT]]
    east: Input[Vector[FLOAT]]
    out: Output[Vector[FLOAT]]

    def compute(self) -> None:
        pass


class WithBorder(Vertex):
    """A block with its border."""

    block: Input[Vector[FLOAT]]
    out: Output[Vector[FLOAT]]

    def compute(self) -> None:
        pass


def _on_tiles(graph: pc.Graph, tiles: int, rows: int, columns: int, name: str) -> pc.Tensor:
    """A variable [tiles, rows, columns], one block on each tile."""
    return spread(graph, name, range(tiles), rows * columns).reshape((tiles, rows, columns))


def _implicit(graph: pc.Graph, size: int) -> list[program.Program]:
    tiles = graph.target.num_tiles
    blocks = [_on_tiles(graph, tiles, size, size, name) for name in ("in", "out")]
    nothing = _on_tiles(graph, tiles, 1, size + 2, "nothing")[:, 0]
    steps: list[program.Program] = []
    for source, target in (blocks, blocks[::-1]):
        work = graph.add_compute_set("stencil")
        for tile in range(tiles):
            fields = {"block": source[tile].flatten(), "out": target[tile].flatten()} | _rims(source, nothing[tile], tile)
            graph.set_perf_estimate(graph.add_vertex(work, WithRims, fields, tile), _CYCLES)
        steps.append(program.Execute(work))
    return steps


def _rims(source: pc.Tensor, nothing: pc.Tensor, tile: int) -> dict[str, pc.Tensor]:
    """What lies around a block: the row above and below with the corners, the columns to its sides."""
    tiles, size = source.shape[:2]
    left = tile % _COLUMNS == 0
    column = 0 if left else size - 1  # of the block beside this one

    def row(of: int, which: int) -> pc.Tensor:
        if not 0 <= of < tiles:
            return nothing
        corner = source[of + 1 if left else of - 1, which, column : column + 1]
        parts = [nothing[:1], source[of, which], corner]
        return pc.concat(parts if left else parts[::-1])

    sides = [nothing[:size], source[tile + 1 if left else tile - 1, :, column]]
    west, east = sides if left else sides[::-1]
    return {"north": row(tile - _COLUMNS, size - 1), "south": row(tile + _COLUMNS, 0), "west": west, "east": east}


def _explicit(graph: pc.Graph, size: int) -> list[program.Program]:
    tiles = graph.target.num_tiles
    blocks = [_on_tiles(graph, tiles, size + 2, size + 2, name) for name in ("in", "out")]
    lines = [_on_tiles(graph, tiles, 1, size + 2, name)[:, 0] for name in ("packed", "received")]
    own, left, right = np.arange(tiles), np.arange(0, tiles, _COLUMNS), np.arange(1, tiles, _COLUMNS)
    steps: list[program.Program] = []
    for source, target in (blocks, blocks[::-1]):
        lower, upper = source[:-_COLUMNS], source[_COLUMNS:]
        rows = ((lower[:, size, 1:], upper[:, 0, 1:]), (upper[:, 1, 1:], lower[:, size + 1, 1:]))
        steps.append(program.Copy(*(pc.concat([pair[i].flatten() for pair in rows]) for i in (0, 1))))
        steps += _columns(source, *lines, left, right, size)
        work = graph.add_compute_set("stencil")
        fields = {"block": source.reshape((tiles, -1)), "out": target.reshape((tiles, -1))}
        graph.add_vertices(work, WithBorder, fields, own, cycles=_CYCLES)
        steps.append(program.Execute(work))
    return steps


def _columns(source: pc.Tensor, packed: pc.Tensor, received: pc.Tensor, left: np.ndarray, right: np.ndarray, size: int) -> list[program.Program]:
    """Columns are packed, exchanged and unpacked: the profile that was published lists strided copies on the tiles."""
    pairs = source.reshape((len(left), _COLUMNS, size + 2, size + 2))
    there = [line.reshape((len(left), _COLUMNS, size + 2)) for line in (packed, received)]
    rims = pc.concat([pairs[:, 0, :, size], pairs[:, 1, :, 1]], 1)
    borders = pc.concat([pairs[:, 0, :, size + 1], pairs[:, 1, :, 0]], 1)
    crossed = pc.concat([there[1][:, 1], there[1][:, 0]], 1)
    return [
        program.Copy(rims, there[0].reshape(rims.shape)),
        program.Copy(there[0].reshape(rims.shape), crossed),
        program.Copy(there[1].reshape(borders.shape), borders),
    ]


_WAYS = {"implicit": _implicit, "explicitOneTensor2Wave": _explicit}


def total(figure: Figure) -> float:
    """Cycles of so many iterations, each there and back."""
    graph = graph_of(figure)
    way = next((made for name, made in _WAYS.items() if figure.conditions.startswith(f"{name},")), None)
    if way is None:
        raise LookupError(f"row {figure.id}: of the ways to exchange a halo only {', '.join(_WAYS)} are run, not {figure.conditions!r}")
    steps = way(graph, figure.number(r"(\d+)x\d+ block"))
    return modelled(graph, program.Repeat(figure.number(r"(\d+) iterations"), program.Sequence(*steps))).total_cycles


FAMILIES = (Family("stencil", r"LB-HX-\w+", total),)
