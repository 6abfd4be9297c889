"""A whole program of many codelets: declares them, compiles the graph, loads, runs, checks. Arguments: how many; "warm" if none needs compiling."""

import sys

import numpy as np
from codelets import CONSTANTS, make_codelets

import popcore as pc
from popcore import FLOAT, program

chosen = [codelet for c in CONSTANTS for codelet in make_codelets(c)][: int(sys.argv[1])]
device = pc.Device("M2000", num_ipus=1)
graph = pc.Graph(device.target)
x = graph.add_variable(FLOAT, (len(chosen), 8), name="x")
y = graph.add_variable(FLOAT, (len(chosen), 8), name="y")
steps = graph.add_compute_set("all")
for tile, codelet in enumerate(chosen):
    graph.set_tile_mapping(x[tile], tile)
    graph.set_tile_mapping(y[tile], tile)
    graph.add_vertex(steps, codelet, {"x": x[tile], "y": y[tile]}, tile=tile)
graph.create_host_write("x", x)
graph.create_host_read("y", y)

engine = pc.Engine(graph, program.Execute(steps), device=device)
data = np.arange(8 * len(chosen), dtype=np.float32).reshape(-1, 8)
engine.write_tensor("x", data)
engine.run()
assert np.array_equal(engine.read_tensor("y")[0], data[0] * np.float32(CONSTANTS[0]))
assert "numba" not in sys.modules or "warm" not in sys.argv, "a warm start loads no compiler"
