"""Between the IPUs of a system: latency and bandwidth from IPU 0 to each of some others."""

from __future__ import annotations

import numpy as np

from popcore.graph import Graph
from popcore.microbench.programs import modelled, spread
from popcore.microbench.sweep import Sweep, powers
from popcore.program import Copy
from popcore.target import Target

_WORDS = 2_048  # of each tile's message where bandwidth is measured


def _seconds(target: Target, partner: int, tiles: int, words: int) -> float:
    graph = Graph(target)
    here = np.arange(tiles)
    there = here + partner * target.tiles_per_ipu
    return modelled(graph, Copy(spread(graph, "source", here, words), spread(graph, "target", there, words))).device_seconds


def latency(target: Target, partner: int) -> float:
    """us of a word from a tile of IPU 0 to one of another IPU, the barrier included."""
    return _seconds(target, partner, 1, 1) * 1e6


def bandwidth(target: Target, partner: int) -> float:
    """GB/s from all tiles of IPU 0 to their like on another IPU."""
    return target.tiles_per_ipu * _WORDS * 4 / _seconds(target, partner, target.tiles_per_ipu, _WORDS) / 1e9


def _partners(target: Target) -> list[int]:
    return powers(1, target.num_ipus - 1, 2)


SWEEPS = (Sweep("latency by IPU", "to IPU", "us", _partners, latency), Sweep("bandwidth by IPU", "to IPU", "GB/s", _partners, bandwidth))
