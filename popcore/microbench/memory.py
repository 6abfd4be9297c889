"""Memory of the tiles: the four kernels of STREAM, and a pointer chase.

STREAM is McCalpin's; each of a tile's six workers has a stretch of its own. The cycles are those that popcore estimates of any codelet: nothing here
says what it takes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from popcore.codelet import Input, MultiVertex, Output, Vector, Vertex
from popcore.graph import Graph
from popcore.microbench.programs import modelled, spread
from popcore.microbench.sweep import Sweep, powers
from popcore.program import Execute
from popcore.target import Target
from popcore.types import FLOAT, UNSIGNED_INT

_WORKERS = 6


class StreamCopy(MultiVertex):
    """c = a"""

    a: Input[Vector[FLOAT]]
    c: Output[Vector[FLOAT]]

    def compute(self, worker: int) -> None:
        for i in range(worker * len(self.a) // _WORKERS, (worker + 1) * len(self.a) // _WORKERS):
            self.c[i] = self.a[i]


class StreamScale(MultiVertex):
    """c = 3 a"""

    a: Input[Vector[FLOAT]]
    c: Output[Vector[FLOAT]]

    def compute(self, worker: int) -> None:
        for i in range(worker * len(self.a) // _WORKERS, (worker + 1) * len(self.a) // _WORKERS):
            self.c[i] = 3.0 * self.a[i]


class StreamAdd(MultiVertex):
    """c = a + b"""

    a: Input[Vector[FLOAT]]
    b: Input[Vector[FLOAT]]
    c: Output[Vector[FLOAT]]

    def compute(self, worker: int) -> None:
        for i in range(worker * len(self.a) // _WORKERS, (worker + 1) * len(self.a) // _WORKERS):
            self.c[i] = self.a[i] + self.b[i]


class StreamTriad(MultiVertex):
    """c = a + 3 b"""

    a: Input[Vector[FLOAT]]
    b: Input[Vector[FLOAT]]
    c: Output[Vector[FLOAT]]

    def compute(self, worker: int) -> None:
        for i in range(worker * len(self.a) // _WORKERS, (worker + 1) * len(self.a) // _WORKERS):
            self.c[i] = self.a[i] + 3.0 * self.b[i]


class Chase(Vertex):
    """Follows ``following`` for as many steps as it has places: each load needs the one before."""

    following: Input[Vector[UNSIGNED_INT]]
    end: Output[UNSIGNED_INT]

    def compute(self) -> None:
        at = self.following[0]
        for _ in range(len(self.following)):
            at = self.following[at]
        self.end = at


def _stream(codelet: Any, names: str) -> Callable[[Target, int], float]:
    """TB/s of one IPU whose tiles all run the codelet on arrays of so many elements."""

    def measure(target: Target, elements: int) -> float:
        graph = Graph(target.with_ipus(1))
        tiles = np.arange(graph.target.num_tiles)
        arrays = {name: spread(graph, name, tiles, elements) for name in names}
        step = graph.add_compute_set("stream")
        graph.add_vertices(step, codelet, arrays, tiles)
        profile = modelled(graph, Execute(step))
        moved = graph.target.num_tiles * len(names) * elements * 4
        return moved / (profile.cycles_by_kind["compute"] / target.clock_hz) / 1e12

    return measure


def _chase(target: Target, words: int) -> float:
    """Cycles of the tile for each load of one worker."""
    graph = Graph(target.virtual(1))
    step = graph.add_compute_set("chase")
    following, end = spread(graph, "following", [0], words, UNSIGNED_INT).flatten(), spread(graph, "end", [0], 1, UNSIGNED_INT)[0, 0]
    graph.add_vertex(step, Chase, {"following": following, "end": end}, tile=0)
    return modelled(graph, Execute(step)).cycles_by_kind["compute"] / words


def _elements(target: Target) -> list[int]:
    """Three arrays fit in three quarters of a tile."""
    return powers(192, target.bytes_per_tile // 16 // 48 * 48)


SWEEPS = (
    *(
        Sweep(f"stream {name}", "floats a tile", "TB/s", _elements, _stream(codelet, fields))
        for name, codelet, fields in (("copy", StreamCopy, "ac"), ("scale", StreamScale, "ac"), ("add", StreamAdd, "abc"), ("triad", StreamTriad, "abc"))
    ),
    Sweep("pointer chase", "words", "cycles/load", lambda target: powers(16, 4096), _chase),
)
