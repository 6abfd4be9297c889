"""Exchange between the tiles of one IPU: latency and bandwidth by pattern, after Jia et al. 2019, chapter 4."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from popcore.graph import Graph, Tensor, concat
from popcore.microbench.programs import modelled, spread
from popcore.microbench.sweep import Sweep, powers
from popcore.profile import Profile
from popcore.program import Copy
from popcore.target import Target

_LARGE = 8_192  # words of a message that shows bandwidth


def _copied(target: Target, pattern: Callable[[Graph], tuple[Tensor, Tensor]]) -> Profile:
    graph = Graph(target.with_ipus(1))
    return modelled(graph, Copy(*pattern(graph)))


def distance(target: Target, away: int) -> float:
    """ns of a word from tile 0 to a tile so many further, the barrier included."""
    return _copied(target, lambda g: (spread(g, "source", [0], 1), spread(g, "target", [away], 1))).device_seconds * 1e9


def one_pair(target: Target, nbytes: int) -> float:
    """GB/s of a message between two tiles."""
    words = nbytes // 4
    return nbytes / _copied(target, lambda g: (spread(g, "source", [0], words), spread(g, "target", [2], words))).device_seconds / 1e9


def permutation(target: Target, count: int) -> float:
    """us for so many words at once, each from a tile to another one, drawn at random."""
    source = np.random.default_rng(1).permutation(target.tiles_per_ipu)[:count]
    return _copied(target, lambda g: (spread(g, "source", source, 1), spread(g, "target", np.roll(source, 1), 1))).device_seconds * 1e6


def aggregate(target: Target, count: int) -> float:
    """GB/s of so many tiles that each send a large message to the next."""
    tiles = np.arange(count)
    profile = _copied(target, lambda g: (spread(g, "source", tiles, _LARGE), spread(g, "target", np.roll(tiles, 1), _LARGE)))
    return count * _LARGE * 4 / profile.device_seconds / 1e9


def _receivers(count: int) -> Any:
    """Whole pairs of tiles, and not tile 0's own."""
    return np.arange(2, count + 2)


def broadcast(target: Target, count: int, words: int = 1) -> float:
    """us for the same word from tile 0 to so many others."""
    tiles = _receivers(count)
    return _copied(target, lambda g: (spread(g, "source", [0], words).broadcast(count, 0), spread(g, "target", tiles, words))).device_seconds * 1e6


def broadcast_bandwidth(target: Target, nbytes: int) -> float:
    """GB/s received by all other tiles together."""
    count = target.tiles_per_ipu - 2
    return count * nbytes / broadcast(target, count, nbytes // 4) / 1e3


def gather(target: Target, count: int) -> float:
    """us for a word from each of so many tiles to tile 0."""
    tiles = _receivers(count)
    return _copied(target, lambda g: (spread(g, "source", tiles, 1).flatten(), spread(g, "target", [0], count).flatten())).device_seconds * 1e6


def scatter(target: Target, count: int) -> float:
    """us for a word of its own from tile 0 to each of so many tiles."""
    tiles = _receivers(count)
    return _copied(target, lambda g: (spread(g, "source", [0], count).flatten(), spread(g, "target", tiles, 1).flatten())).device_seconds * 1e6


def all_to_all(target: Target, count: int) -> float:
    """us for a word from each of so many tiles to each other one."""

    def pattern(graph: Graph) -> tuple[Tensor, Tensor]:
        source, received = (spread(graph, name, range(count), count) for name in ("source", "target"))
        sent = source.transpose()
        return tuple(concat([part for i in range(count) for part in (t[i][:i], t[i][i + 1 :])]) for t in (sent, received))  # type: ignore[return-value]

    return _copied(target, pattern).device_seconds * 1e6


def _tiles(least: int, spare: int = 0, most: int = 1 << 20) -> Callable[[Target], list[int]]:
    return lambda target: powers(least, min(target.tiles_per_ipu - spare, most))


SWEEPS = (
    Sweep("latency by distance", "tiles away", "ns", _tiles(1, spare=1), distance),
    Sweep("bandwidth of a pair", "bytes", "GB/s", lambda target: powers(64, 65_536) if target.tiles_per_ipu > 2 else [], one_pair),
    Sweep("permutation", "tiles", "us", _tiles(2), permutation),
    Sweep("broadcast", "tiles", "us", _tiles(2, spare=2), broadcast),
    Sweep("gather", "tiles", "us", _tiles(2, spare=2), gather),
    Sweep("scatter", "tiles", "us", _tiles(2, spare=2), scatter),
    Sweep("all-to-all", "tiles", "us", _tiles(2, most=256), all_to_all),
    Sweep("aggregate bandwidth", "tiles", "GB/s", _tiles(2), aggregate),
    Sweep("broadcast bandwidth", "bytes", "GB/s", lambda target: powers(64, 65_536) if target.tiles_per_ipu > 2 else [], broadcast_bandwidth),
)
