"""A 3 x 3 blur of an image of four channels, as thorbenlouw/lbm-graphcore runs it: a rectangle on each tile, cut into strips for its workers.

A strip's vertex gets its pixels and those around them as one run, so the compiler gathers them on the tile before it ("pre"), and puts results that
do not lie in one run where they belong after it ("post"). Pixels of other tiles are exchanged. How the image is cut is the program's
(``StructuredGridUtils.hpp``, with at least one row and column on a tile).
"""

from __future__ import annotations

import math
import re
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

import popcore as pc
from bench.fidelity.figures import Family, Figure
from bench.fidelity.programs import modelled, system_of
from popcore import FLOAT, HALF, Input, Output, Vector, Vertex, program
from popcore.profile import Profile

_VECTOR = 9 + 1 + 11  # issues, by hand and nothing paired: nine loads, a store, eleven operations. A vector is 4 HALF, 2 FLOAT or one FLOAT
_STEP = 6  # for every pixel: four pointers, the count, the branch; the compiler unrolls the two or four vectors of a pixel
_PIXEL = {"half4": _VECTOR + _STEP, "float2": 2 * _VECTOR + _STEP, "float": 4 * _VECTOR + _STEP}
_ROW = 9  # for every row: four addresses, the column back to 0, is there any, count, compare, branch
_START = 12  # for a vertex: load four fields, four addresses, two shifts, is there any row, exit
_GRIDS = {1: ((1, 1),), 2: ((2, 1), (1, 2)), 4: ((2, 2),), 8: ((4, 2), (2, 4)), 16: ((4, 4),)}
"""Rows and columns of IPUs; of two the first where rows are shared out the more evenly."""


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


class Rectangle(NamedTuple):
    """Rows ``top`` to ``bottom`` and columns ``left`` to ``right`` on a tile; the last ones are outside."""

    tile: int
    top: int
    bottom: int
    left: int
    right: int


def _shares(begin: int, length: int, parts: int) -> list[tuple[int, int]]:
    """``length`` in so many parts; the first ones have one more. Empty ones are left out."""
    each, more = divmod(length, parts)
    ends = [begin + i * each + min(i, more) for i in range(parts + 1)]
    return [(a, b) for a, b in pairwise(ends) if a < b]


def ipu_rectangles(height: int, width: int, ipus: int) -> list[Rectangle]:
    """What each IPU gets; ``tile`` is its number. Raises: LookupError for a number of IPUs that the program does not know."""
    if ipus not in _GRIDS:
        raise LookupError(f"the blur runs on {', '.join(map(str, _GRIDS))} IPUs, not on {ipus}")
    uneven = (height % ipus) / height >= (width % ipus) / width
    rows, columns = _GRIDS[ipus][-1 if uneven else 0]
    parts = [(y, x) for y in _shares(0, height, rows) for x in _shares(0, width, columns)]
    return [Rectangle(number, *y, *x) for number, (y, x) in enumerate(parts)]


def tile_rectangles(of: Rectangle, tiles: int) -> list[Rectangle]:
    """What each tile of an IPU gets."""
    height, width = of.bottom - of.top, of.right - of.left
    columns = int(min(tiles, width, math.ceil(math.sqrt(tiles * width / height))))
    rows = min(height, tiles // columns)
    parts = [(y, x) for y in _shares(of.top, height, rows) for x in _shares(of.left, width, columns)]
    return [Rectangle(of.tile * tiles + number, *y, *x) for number, (y, x) in enumerate(parts)]


def strips(of: Rectangle, workers: int) -> list[Rectangle]:
    """What each worker of a tile gets: rows, or columns where these are shared out more evenly."""
    height, width = of.bottom - of.top, of.right - of.left
    if (height % workers) / height <= (width % workers) / width:
        return [Rectangle(of.tile, *y, of.left, of.right) for y in _shares(of.top, height, min(height, workers))]
    return [Rectangle(of.tile, of.top, of.bottom, *x) for x in _shares(of.left, width, min(width, workers))]


class _Runs(NamedTuple):
    """Runs of elements, of one rectangle after the other: first of each run, its elements, and the tile."""

    begin: np.ndarray
    length: np.ndarray
    tile: np.ndarray


def _runs(rectangles: list[Rectangle], width: int) -> _Runs:
    """The rows of rectangles in an image ``width`` pixels wide."""
    r = np.array(rectangles, np.int64)
    rows = r[:, 2] - r[:, 1]
    which = np.repeat(np.arange(len(r)), rows)
    y = np.arange(len(which)) - np.repeat(np.cumsum(rows) - rows, rows) + r[which, 1]
    return _Runs((y * width + r[which, 3]) * 4, (r[which, 4] - r[which, 3]) * 4, r[which, 0])


def _bordered(graph: pc.Graph, image: pc.Tensor, parts: list[Rectangle]) -> pc.Tensor:
    """The image with a pixel of zeros all around, each on the tile that reads it."""
    height, width = image.shape[:2]
    top, bottom = (graph.add_variable(image.dtype, (1, width + 2, 4), name=name) for name in ("top", "bottom"))
    left, right = (graph.add_variable(image.dtype, (height, 1, 4), name=name) for name in ("left", "right"))
    for edge, side in ((top, "top"), (bottom, "bottom")):
        for p in parts:
            if getattr(p, side) == (0 if side == "top" else height):
                graph.set_tile_mapping(edge[:, p.left + (p.left > 0) : p.right + 1 + (p.right == width)], p.tile)
    for edge, side in ((left, "left"), (right, "right")):
        for p in parts:
            if getattr(p, side) == (0 if side == "left" else width):
                graph.set_tile_mapping(edge[p.top : p.bottom], p.tile)
    return pc.concat([top, pc.concat([left, image, right], 1), bottom], 0)


@cache
def _blur(height: int, width: int, kind: str, ipus: int, idle: bool = False, reads: bool = True, system: str = "C2") -> Profile:
    """One application. ``idle``: its vertices take no time; ``reads``: they get the image."""
    graph = pc.Graph(pc.Device(system, num_ipus=ipus).target)
    target = graph.target
    dtype, codelet = (HALF, BlurHalf) if kind == "half4" else (FLOAT, BlurFloat)
    image, out = (graph.add_variable(dtype, (height, width, 4), name=name) for name in ("image", "out"))
    parts = [p for whole in ipu_rectangles(height, width, ipus) for p in tile_rectangles(whole, target.tiles_per_ipu)]
    where = _runs(parts, width)
    for t in (image, out):
        graph.map_intervals(t, *where)
    of = [strip for p in parts for strip in strips(p, target.num_worker_contexts)]
    around = [Rectangle(s.tile, s.top, s.bottom + 2, s.left, s.right + 2) for s in of]
    rows, columns = np.array([(s.bottom - s.top, s.right - s.left) for s in of]).T
    halo, own = _runs(around, width + 2), _runs(of, width)
    fields = {"out": (out.flatten().select(own.begin, own.length), *_starts(rows * columns * 4))}
    if reads:
        padded = _bordered(graph, image, parts).flatten()
        fields["image"] = (padded.select(halo.begin, halo.length), *_starts((rows + 2) * (columns + 2) * 4))
    else:
        nothing = graph.add_variable(dtype, (len(of), 1), name="nothing")
        graph.map_intervals(nothing, np.arange(len(of)), np.ones(len(of), np.int64), np.array([s.tile for s in of]))
        fields["image"] = nothing
    blur = graph.add_compute_set("blur")
    cycles = _PIXEL[kind] * rows * columns + _ROW * rows + _START
    graph.add_vertices(blur, codelet, fields, np.array([s.tile for s in of]), cycles=np.zeros_like(cycles) if idle else cycles)
    return modelled(graph, program.Execute(blur))


def _starts(sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Begin and length of parts one behind the other."""
    return np.cumsum(sizes) - sizes, sizes


def _understood(figure: Figure) -> tuple[int, int, str, int, str]:
    """Height, width, kind, IPUs and system of a row."""
    found = re.search(r"(\d+)x(\d+), (\w+), (\d+) IPU", figure.conditions)
    if found is None or found.group(3) not in _PIXEL:
        raise LookupError(f"row {figure.id}: the conditions {figure.conditions!r} do not name an image of {', '.join(_PIXEL)} and IPUs")
    width, height, kind, ipus = found.groups()
    return int(height), int(width), kind, int(ipus), system_of(figure)


def phase(figure: Figure) -> float:
    """Cycles of one phase of one application."""
    height, width, kind, ipus, system = _understood(figure)
    named = re.findall(r"\b(compute|exchange|global|pre|post|sync)\b", figure.benchmark.rpartition(":")[2])
    if not named:
        raise LookupError(f"row {figure.id}: the benchmark {figure.benchmark!r} names no phase")

    def cycles(of: str, ipus: int = ipus, **how: bool) -> int:
        return _blur(height, width, kind, ipus, system=system, **how).cycles_by_kind[of]

    match named[-1 if named[0] != "global" else 0]:
        case "compute":
            return cycles("compute") - cycles("compute", idle=True)
        case "pre":
            return cycles("compute", idle=True) - cycles("compute", idle=True, reads=False)
        case "post":
            return cycles("compute", idle=True, reads=False)
        case "sync":
            return cycles("sync")
    alone = ipu_rectangles(height, width, ipus)[0]
    inside = _blur(alone.bottom, alone.right, kind, 1, system=system).cycles_by_kind["exchange"]
    return inside if named[0] == "exchange" else cycles("exchange") - inside


def iterations(figure: Figure) -> float:
    """us of 100 iterations, each of two applications."""
    height, width, kind, ipus, system = _understood(figure)
    return 2 * figure.number(r"(\d+) iterations", 100) * _blur(height, width, kind, ipus, system=system).device_seconds * 1e6


FAMILIES = (
    Family("stencil", r"LB-PH-\w+-\d+-\w+", phase),
    Family("stencil", r"LB-GB-\w+-\w+-\d+", iterations),
)
