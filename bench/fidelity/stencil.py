"""A 3 x 3 blur of an image of four channels, as thorbenlouw/lbm-graphcore runs it: a rectangle on each tile, cut into strips for its workers.

A strip's vertex gets its pixels and those around them as one run, so the compiler gathers them on the tile first; the pixels of other tiles
are exchanged. The cycles of a pixel are counted by hand from the source, on the footing that the compiler pairs nothing: of every vector nine
loads, a store and eleven operations; and for every pixel six steps for indices and the loop. A vector is 4 HALF, 2 FLOAT or, in the plain
codelet, one FLOAT, whose four channels each take the six steps.
"""

from __future__ import annotations

import math
import re
from functools import cache
from itertools import pairwise

import numpy as np

import popcore as pc
from bench.fidelity.figures import Family, Figure
from bench.fidelity.programs import modelled
from popcore import FLOAT, HALF, Input, Output, Vector, Vertex, program
from popcore.profile import Profile

_VECTOR, _PIXEL = 9 + 1 + 11, 6  # issues
_CYCLES = {"half4": _VECTOR + _PIXEL, "float2": 2 * _VECTOR + _PIXEL, "float": 4 * (_VECTOR + _PIXEL)}
_WORKERS = 6


class BlurHalf(Vertex):
    """One application to a strip."""

    image: Input[Vector[HALF]]
    out: Output[Vector[HALF]]

    def compute(self) -> None:
        pass


class BlurFloat(Vertex):
    """One application to a strip."""

    image: Input[Vector[FLOAT]]
    out: Output[Vector[FLOAT]]

    def compute(self) -> None:
        pass


def _cuts(length: int, parts: int) -> np.ndarray:
    return np.arange(parts + 1) * length // parts


def _rectangles(height: int, width: int, tiles: int) -> tuple[np.ndarray, np.ndarray]:
    """Cuts of rows and columns for at most so many rectangles, the largest strip of a worker as small as can be, and then the halo."""

    def load(rows: int, columns: int) -> tuple[int, float]:
        tall, wide = math.ceil(height / rows), math.ceil(width / columns)
        return math.ceil(tall / _WORKERS) * wide, tall + wide

    rows, columns = min(((rows, min(tiles // rows, width)) for rows in range(1, min(tiles, height) + 1)), key=lambda split: load(*split))
    return _cuts(height, rows), _cuts(width, columns)


@cache
def _blur(height: int, width: int, kind: str) -> Profile:
    """One application on one IPU."""
    graph = pc.Graph(pc.Device("C2", num_ipus=1).target)
    dtype, codelet = (HALF, BlurHalf) if kind == "half4" else (FLOAT, BlurFloat)
    image, out = (graph.add_variable(dtype, (height, width, 4), name=name) for name in ("image", "out"))
    edge = graph.add_variable(dtype, (1, 1, 4), name="edge")
    graph.set_tile_mapping(edge, 0)
    side, top = edge.broadcast(height, 0), edge.broadcast(width + 2, 1)
    around = pc.concat([top, pc.concat([side, image, side], 1), top], 0)
    blur = graph.add_compute_set("blur")
    rows, columns = _rectangles(height, width, graph.target.num_tiles)
    for tile in range((len(rows) - 1) * (len(columns) - 1)):
        y, x = divmod(tile, len(columns) - 1)
        left, right = columns[x], columns[x + 1]
        for t in (image, out):
            graph.set_tile_mapping(t[rows[y] : rows[y + 1], left:right], tile)
        strips = rows[y] + _cuts(rows[y + 1] - rows[y], _WORKERS)
        for first, last in pairwise(strips):
            if first < last:
                fields = {"image": around[first : last + 2, left : right + 2].flatten(), "out": out[first:last, left:right].flatten()}
                vertex = graph.add_vertex(blur, codelet, fields, tile)
                graph.set_perf_estimate(vertex, int((last - first) * (right - left)) * _CYCLES[kind])
    return modelled(graph, program.Execute(blur))


def _blurred(figure: Figure) -> Profile:
    height_width = re.search(r"(\d+)x(\d+), (half4|float2|float), 1 IPU", figure.conditions)
    if height_width is None:
        raise LookupError(f"row {figure.id}: only one IPU is modelled, not {figure.conditions!r}")
    width, height, kind = height_width.groups()
    return _blur(int(height), int(width), kind)


def phase(figure: Figure) -> float:
    """Cycles of one phase of one application."""
    return _blurred(figure).cycles_by_kind[next(kind for kind in ("compute", "exchange", "sync") if kind in figure.benchmark)]


def iterations(figure: Figure) -> float:
    """us of 100 iterations, each of two applications."""
    return 2 * figure.number(r"(\d+) iterations", 100) * _blurred(figure).device_seconds * 1e6


FAMILIES = (
    Family("stencil", r"LB-PH-\w+-1-(compute|exchange|sync)", phase),
    Family("stencil", r"LB-GB-\w+-\w+-1", iterations),
)
