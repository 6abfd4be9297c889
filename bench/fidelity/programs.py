"""What the families share: the device of a row, variables spread in a given way, and the modelled cost of a program."""

from __future__ import annotations

import re

import popcore as pc
from bench.fidelity.figures import Figure
from popcore import FLOAT, Output, Vertex, program
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


def modelled(graph: pc.Graph, *steps: program.Program) -> Profile:
    """The profile of a program that runs once. Its data is neither moved nor computed: cycles do not depend on it."""
    engine = pc.Engine(graph, program.Sequence(*steps), options={"debug.compute": False, "debug.allowOutOfMemory": True})
    engine.run()
    return engine.profile()


LIBRARY_CALL = 960
"""Cycles that a call of a library on one IPU took in Jia et al. 2019 besides its steps: row J-RED1-1216, less what ``popops.reduce`` is modelled to take.

Where they went is not known; cycle stamps stood around the call.
"""


class Call(Vertex):
    """What takes ``LIBRARY_CALL``."""

    word: Output[FLOAT]

    def compute(self) -> None:
        pass


def library_call(graph: pc.Graph, steps: program.Sequence) -> Profile:
    """``modelled`` of steps that one call of a library made, as Jia et al. timed it: on one IPU by cycle stamps; on several by the host, many at once."""
    if graph.target.num_ipus > 1:
        return modelled(graph, steps)
    call, word = graph.add_compute_set("call"), graph.add_variable(FLOAT, (), name="call")
    graph.set_tile_mapping(word, 0)
    vertex = graph.add_vertex(call, Call, {"word": word})
    graph.set_tile_mapping(vertex, 0)
    graph.set_perf_estimate(vertex, (LIBRARY_CALL - 20 - 6) // graph.target.num_worker_contexts)  # an Execute and a launch are 26
    return modelled(graph, program.Execute(call), steps)


def microseconds(graph: pc.Graph, *steps: program.Program) -> float:
    return modelled(graph, *steps).device_seconds * 1e6
