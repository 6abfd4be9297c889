"""A small first program as a whole process: a constant, streams both ways, a print of a tensor, an exchange, a codelet, a profile. Argument: "warm" if none needs compiling."""

import sys

import numpy as np
from codelets import Axpy

import popcore as pc
from popcore import FLOAT, program

device = pc.Device("M2000")
graph = pc.Graph(device.target)

weights = graph.add_constant(FLOAT, (6,), [0.5, 1.0, 1.5, 2.0, 2.5, 3.0], name="weights", tile=3)
rows = graph.add_variable(FLOAT, (6, 5), name="rows")
totals = graph.add_variable(FLOAT, (6, 5), name="totals")
spread = graph.add_variable(FLOAT, (6,), name="spread")
for i in range(6):
    graph.set_tile_mapping(spread[i], i)
pc.poputil.map_tensor_linearly(graph, rows, 5, 5)
pc.poputil.map_tensor_linearly(graph, totals, 5, 5)
add = graph.add_compute_set("add")
for i in range(6):
    graph.add_vertex(add, Axpy, {"x": totals[i], "y": rows[i], "k": spread[i]}, tile=i)
arriving = graph.add_host_to_device_fifo("rows", FLOAT, 30)
leaving = graph.add_device_to_host_fifo("totals", FLOAT, 30)
graph.create_host_write("start", totals)
graph.create_host_read("spread", spread)

steps = program.Sequence(
    program.Copy(weights, spread),
    program.PrintTensor("weights, one a tile", spread),
    program.Copy(arriving, rows),
    program.Execute(add),
    program.Copy(totals, leaving),
)
engine = pc.Engine(graph, steps, device=device)
sent = np.arange(30, dtype=np.float32)
received = np.zeros(30, dtype=np.float32)
engine.connect_stream("rows", sent)
engine.connect_stream("totals", received)
engine.write_tensor("start", np.ones((6, 5), np.float32))
engine.run()

by_tile = engine.read_tensor("spread")
assert by_tile.tolist() == [0.5, 1.0, 1.5, 2.0, 2.5, 3.0]
assert np.array_equal(received.reshape(6, 5), 1 + by_tile[:, None] * sent.reshape(6, 5))
profile = engine.profile()
assert profile.total_cycles > 0
print(profile.summary())
assert "numba" not in sys.modules or "warm" not in sys.argv, "a warm start loads no compiler"
