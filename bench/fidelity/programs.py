"""What the families share: the device of a row, variables spread in a given way, and the modelled cost of a program."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

import popcore as pc
from bench.fidelity.figures import Figure
from popcore import FLOAT, program
from popcore.profile import Profile

_SYSTEMS = ((r"\bG?C2\b", "C2"), ("Bow", "BOW-2000"), ("GC200|M2000|Mk2|IPU Pod", "M2000"), ("Mk1", "C2"))


def system_of(figure: Figure) -> str:
    """The system that the row was measured on. Where it names GC200 and Bow, GC200."""
    first = figure.device.split("/")[0]
    for pattern, name in _SYSTEMS:
        if re.search(pattern, first):
            return name
    raise LookupError(f"row {figure.id}: no system is known for the device {figure.device!r}")


def graph_of(figure: Figure, ipus: int = 1) -> pc.Graph:
    """A graph for so many IPUs of the row's system."""
    return pc.Graph(pc.Device(system_of(figure), num_ipus=ipus).target)


def spread(graph: pc.Graph, name: str, tiles: Sequence[int], elements: int, dtype: type = FLOAT) -> pc.Tensor:
    """A variable [tiles, elements], one row on each tile."""
    made = graph.add_variable(dtype, (len(tiles), elements), name=name)
    count = len(tiles)
    graph.map_intervals(made, np.arange(count) * elements, np.full(count, elements), np.array(tiles))
    return made


def modelled(graph: pc.Graph, *steps: program.Program) -> Profile:
    """The profile of a program that runs once. Its data is neither moved nor computed: cycles do not depend on it."""
    engine = pc.Engine(graph, program.Sequence(*steps), options={"debug.compute": False, "debug.allowOutOfMemory": True})
    engine.run()
    return engine.profile()


def microseconds(graph: pc.Graph, *steps: program.Program) -> float:
    return modelled(graph, *steps).device_seconds * 1e6
