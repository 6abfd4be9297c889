"""One vertex of a C++ codelet, run by both engines on a small graph."""

from pathlib import Path

import numpy as np

import popcore as pc
from popcore import program
from popcore.bindings.unit import compile_all, open_unit
from popcore.types import as_element_type

CODELETS = Path(__file__).parent / "codelets"
TILE = 3


def compile_file(name):
    """Compile every type of a file that can be, so that its tests share two compilations."""
    unit = open_unit(CODELETS / name)
    found = [unit.find(each) for each in unit.names() if not each.startswith("Impossible")]
    compile_all(found)
    return {each.name for each in found}


class Built:
    """A graph with one vertex on TILE, its edges on other tiles.

    ``fields``: name -> array (0-d for a scalar edge), list of arrays for lists. ``state``: name -> initial value. ``mode``, ``behaviour``: of
    floating-point arithmetic. What else is given is for ``add_codelets``.
    """

    def __init__(self, file, codelet, fields, state=None, tile=TILE, runs=1, mode="device", behaviour=None, **options):
        self.graph = graph = pc.Graph(pc.Device("M2000", num_ipus=1, tiles_per_ipu=8).target)
        graph.add_codelets(*([file] if not isinstance(file, str) or "\n" in file else [CODELETS / file]), **options)
        cs = graph.add_compute_set("cs")
        self.shown = {}
        connections = {name: self._tensors(name, value) for name, value in fields.items()}
        self.vertex = graph.add_vertex(cs, codelet, connections, tile=tile)
        for name, value in (state or {}).items():
            graph.set_initial_value(self.vertex[name], value)
        self.program = program.Sequence()
        if behaviour is not None:
            pc.set_floating_point_behaviour(graph, self.program, behaviour)
        self.program.add(program.Repeat(runs, program.Sequence(program.Execute(cs))))
        self.options = {"target.floatingPoint": mode}

    def _tensors(self, name, value):
        if isinstance(value, (list, tuple)):
            return [self._tensor(f"{name}.{i}", v, i) for i, v in enumerate(value)]
        return self._tensor(name, value, len(self.shown))

    def _tensor(self, name, value, turn):
        value = np.asarray(value)
        dtype = as_element_type((getattr(value.dtype, "metadata", None) and value.dtype.metadata["popcore"]) or value.dtype)
        t = self.graph.add_variable(dtype, value.shape, name=name, tile=TILE if turn == 1 else turn % 8)
        self.graph.set_initial_value(t, value)
        self.graph.create_host_read(name, t)
        self.shown[name] = t
        return t

    def run(self, engine_class):
        engine = engine_class(self.graph, self.program, options=self.options)
        engine.run()
        return {name: engine.read_tensor(name) for name in self.shown}


def run(file, codelet, fields, state=None, **options):
    """What all edges of the vertex hold after it ran; both engines have to agree to the bit."""
    built = Built(file, codelet, fields, state, **options)
    found, reference = built.run(pc.Engine), built.run(pc.ReferenceEngine)
    for name, value in found.items():
        assert value.tobytes() == reference[name].tobytes(), name
    return found
