"""What the benchmarks share: variables spread over tiles in a given way, and the modelled cost of a program."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from popcore.engine.engine import Engine
from popcore.graph import Graph, Tensor
from popcore.profile import Profile
from popcore.program import Program
from popcore.program import Sequence as Steps
from popcore.types import FLOAT, DTypeLike


def spread(graph: Graph, name: str, tiles: Sequence[int] | np.ndarray, elements: int, dtype: DTypeLike = FLOAT) -> Tensor:
    """A variable [len(tiles), elements], row i on ``tiles[i]``."""
    made, count = graph.add_variable(dtype, (len(tiles), elements), name=name), len(tiles)
    graph.map_intervals(made, np.arange(count) * elements, np.full(count, elements), np.asarray(tiles))
    return made


def modelled(graph: Graph, *steps: Program) -> Profile:
    """The profile of a program that runs once. Its data is neither moved nor computed where cycles do not depend on it."""
    engine = Engine(graph, Steps(*steps), options={"debug.compute": False, "engine.progress": False})
    engine.run()
    return engine.profile()
