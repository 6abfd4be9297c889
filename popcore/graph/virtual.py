"""Virtual graphs: a graph seen through some of its tiles, renumbered from 0."""

from __future__ import annotations

import operator
from collections.abc import Sequence

import numpy as np

from popcore.errors import TileMappingError
from popcore.graph.graph import Graph


class VirtualGraph(Graph):
    """Shares variables, compute sets, handles and all else with its parent; only tile numbers and ``target`` differ."""

    def __init__(self, parent: Graph, tiles: int | Sequence[int], upper: int | None = None) -> None:
        chosen = _chosen(parent, tiles, upper)
        self.__dict__.update(parent.__dict__)  # the same lists and dicts, so that what one adds the other has
        self.target = parent.target.virtual(chosen.tolist())
        self._num_tiles = chosen.size
        self._translation = (chosen if parent._translation is None else parent._translation[chosen]).astype(np.int32)
        self._inverse = np.full(self.variables.graph.target.num_tiles, -1, np.int32)
        self._inverse[self._translation] = np.arange(chosen.size, dtype=np.int32)


def _chosen(parent: Graph, tiles: int | Sequence[int], upper: int | None) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    n = parent._num_tiles
    if isinstance(tiles, Sequence) or hasattr(tiles, "__array__"):
        made = np.asarray(tiles, np.int64).reshape(-1)
    else:
        low, high = (0, operator.index(tiles)) if upper is None else (operator.index(tiles), operator.index(upper))
        made = np.arange(low, high, dtype=np.int64)
    bad = made[(made < 0) | (made >= n)]
    if bad.size:
        raise TileMappingError(f"a virtual graph with tile {int(bad[0])}, the target has num_tiles = {n}", f"tiles 0 to {n - 1}")
    if not made.size or np.unique(made).size != made.size:
        raise TileMappingError(f"a virtual graph of {made.size} tiles, {np.unique(made).size} different", "at least one tile, each once")
    return made
