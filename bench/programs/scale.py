"""What large systems cost before they do anything, in a process of its own. Prints JSON: seconds and bytes.

Arguments: "element-wise" or "within" and tiles of each IPU, "idle", or "plan" and IPUs.
"""

import json
import sys
import time

import numpy as np
from large_graph import peak_bytes, resident_bytes, status_bytes

import popcore as pc
from popcore import FLOAT, program
from popcore.compiler.collectives import collective_cost
from popcore.ops import gcl, popops

ELEMENTS = 64  # on each tile


def element_wise(tiles):
    """One model over 64 IPUs: activations move on to the next IPU and a few functions are applied; compiled, and run where it is small."""
    target = pc.Device("POD64", tiles_per_ipu=tiles).target
    graph, prog = pc.Graph(target), program.Sequence()
    x = graph.add_variable(FLOAT, (64, tiles * ELEMENTS), mapping="linear", name="x")
    came = graph.clone(x, name="came")
    prog.add(program.Copy(pc.concat([x[63:], x[:63]]), came))
    y = popops.add(graph, popops.mul(graph, came, 0.5, prog), x, prog)
    popops.tanh_in_place(graph, y, prog)
    graph.create_host_write("x", x)
    graph.create_host_read("y", y)
    began = time.perf_counter()
    executable = pc.compile_graph(graph, prog)
    result = {"seconds": time.perf_counter() - began, "bytes": peak_bytes()}
    if tiles < 100:
        engine = pc.Engine(executable)
        values = np.random.default_rng(0).standard_normal(x.shape).astype(np.float32)
        engine.write_tensor("x", values)
        engine.run()
        assert np.allclose(engine.read_tensor("y"), np.tanh(np.roll(values, 1, axis=0) / 2 + values), rtol=1e-5, atol=1e-6)
    return result


def within(tiles):
    """An all-reduce over the 64 IPUs of one replica, every tile of which has some of the data."""
    graph, prog = pc.Graph(pc.Device("POD64", tiles_per_ipu=tiles)), program.Sequence()
    x = graph.add_variable(FLOAT, (64, tiles * ELEMENTS), mapping="linear", name="x")
    began = time.perf_counter()
    gcl.all_reduce_in_place_within_replica(graph, x, gcl.CollectiveOperator.ADD, prog)
    executable = pc.compile_graph(graph, prog)
    return {"seconds": time.perf_counter() - began, "bytes": peak_bytes(), "programs": len(prog.programs), "phases": len(executable.phases)}


def idle():
    """A Pod256 in 256 replicas, each with 200 MB of variables: memory and addresses that an engine takes; memory once an element of each is written."""
    resident, address = resident_bytes(), status_bytes("VmSize:") or 0
    graph = pc.Graph(pc.Device("POD256"), replication_factor=256)
    large = graph.add_variable(FLOAT, (50_000_000,), mapping="linear", name="large")
    graph.create_host_write("first", large[:1])
    graph.create_host_read("last", large[-1:])
    engine = pc.Engine(graph, program.Sequence())
    result = {"bytes": resident_bytes() - resident, "addresses": (status_bytes("VmSize:") or 0) - address}
    engine.write_tensor("first", np.ones(1, np.float32))
    assert not engine.read_tensor("last").any()
    return result | {"touched_bytes": resident_bytes() - resident}


def plan(ipus):
    """Collectives of every kind over all IPUs of a system."""
    graph, prog = pc.Graph(pc.Device("POD256", num_ipus=ipus), replication_factor=ipus), program.Sequence()
    x = graph.add_variable(FLOAT, (ipus, 1000), mapping="linear", name="x")
    began = time.perf_counter()
    gcl.all_reduce_in_place_cross_replica(graph, x, gcl.CollectiveOperator.ADD, prog)
    gcl.reduce_scatter_cross_replica(graph, x, gcl.CollectiveOperator.ADD, prog)
    gcl.all_to_all_cross_replica(graph, x, prog)
    cycles = [collective_cost(node).cycles for node in prog.programs]
    return {"seconds": time.perf_counter() - began, "cycles": cycles}


if __name__ == "__main__":
    print(json.dumps({"element-wise": element_wise, "within": within, "idle": idle, "plan": plan}[sys.argv[1]](*map(int, sys.argv[2:]))))
