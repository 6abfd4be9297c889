"""Engines of one codelet each, in one process with an empty cache. Prints JSON: seconds of the machine, then of each codelet."""

import json
import sys
import time

import numpy as np
from codelets import CONSTANTS, make_codelets

import popcore as pc
from popcore import FLOAT, program

DEVICE = pc.Device("M2000", num_ipus=1, tiles_per_ipu=8)


def seconds_of(codelet):
    """From the graph to an engine that can run; without a codelet a program that copies."""
    began = time.perf_counter()  # a codelet compiles when it is added
    graph = pc.Graph(DEVICE.target)
    x = graph.add_variable(FLOAT, (8,), name="x", tile=0)
    y = graph.add_variable(FLOAT, (8,), name="y", tile=0)
    step = program.Copy(x, y)
    if codelet is not None:
        compute_set = graph.add_compute_set("one")
        graph.add_vertex(compute_set, codelet, {"x": x, "y": y}, tile=0)
        step = program.Execute(compute_set)
    graph.create_host_write("x", x)
    graph.create_host_read("y", y)
    engine = pc.Engine(graph, step, device=DEVICE)
    seconds = time.perf_counter() - began
    engine.write_tensor("x", np.arange(8, dtype=np.float32))
    engine.run()
    if codelet is None or codelet.__name__.startswith("Scale"):
        factor = 1 if codelet is None else CONSTANTS[0]
        assert engine.read_tensor("y").tolist() == [factor * i for i in range(8)]
    return seconds


machine = seconds_of(None)
print(json.dumps({"machine": machine, "codelets": [seconds_of(c) for c in make_codelets(CONSTANTS[0])[: int(sys.argv[1])]]}))
