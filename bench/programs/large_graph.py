"""Build and compile a graph with vertices on every tile of a POD64, in a process of its own. Prints JSON: seconds and memory.

Arguments: how the vertices are added ("one by one" or "bulk"); tiles of each IPU; "build", "compile", or "run" (which checks the answer).
"""

import gc
import json
import resource
import sys
import time

import numpy as np
from codelets import Axpy

import popcore as pc
from popcore import FLOAT, program

VERTICES = 6  # on each tile
ELEMENTS = 4  # of each vertex


def status_bytes(field):
    """A field of /proc/self/status; None where there is no such file."""
    try:
        with open("/proc/self/status") as file:
            return next(1024 * int(line.split()[1]) for line in file if line.startswith(field))
    except (OSError, StopIteration):
        return None


def resident_bytes():
    """What the process holds now; where the system does not say, the most that it held so far."""
    return status_bytes("VmRSS:") or peak_bytes()


def peak_bytes():
    """The most that the process held so far."""
    if (peak := status_bytes("VmHWM:")) is not None:  # the other way counts the process that started this one, too
        return peak
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def make_graph(target):
    """A graph with x, y, z and k, mapped to all tiles, and no vertices yet; its codelet is compiled."""
    graph = pc.Graph(target)
    graph.add_codelets(Axpy)
    tiles = np.arange(target.num_tiles)
    tensors = {}
    for name, width in (("x", ELEMENTS), ("y", ELEMENTS), ("z", ELEMENTS), ("k", 1)):
        shape = (len(tiles) * VERTICES, width) if width > 1 else (len(tiles) * VERTICES,)
        tensors[name] = graph.add_variable(FLOAT, shape, name=name)
        each = VERTICES * width
        graph.map_intervals(tensors[name], tiles * each, np.full(len(tiles), each), tiles)
    return graph, tensors


def add_one_by_one(graph, compute_set, x, y, k):
    for i in range(k.shape[0]):
        graph.add_vertex(compute_set, Axpy, {"x": x[i], "y": y[i], "k": k[i]}, tile=i // VERTICES)


def add_in_bulk(graph, compute_set, x, y, k):
    tiles = np.repeat(np.arange(graph.target.num_tiles), VERTICES)
    graph.add_vertices(compute_set, Axpy, {"x": x, "y": y, "k": k}, tiles=tiles)


def run(executable, count):
    """Raises AssertionError if the answer is wrong: z comes from the next tile, then x += k * y."""
    engine = pc.Engine(executable)
    k = np.arange(count, dtype=np.float32) % 7
    z = np.arange(count * ELEMENTS, dtype=np.float32).reshape(count, ELEMENTS) % 1001
    engine.write_tensor("k", k)
    engine.write_tensor("z", z)
    engine.run()
    expected = k[:, None] * np.roll(z, -VERTICES, axis=0)
    assert np.array_equal(engine.read_tensor("x"), expected)


def main():
    add = {"one by one": add_one_by_one, "bulk": add_in_bulk}[sys.argv[1]]
    target = pc.Device("POD64", tiles_per_ipu=int(sys.argv[2])).target
    graph, tensors = make_graph(target)
    compute_set = graph.add_compute_set("axpy")
    x, y, z, k = (tensors[name] for name in "xyzk")
    gc.collect()
    before, began = resident_bytes(), time.perf_counter()
    add(graph, compute_set, x, y, k)
    result = {"build_seconds": time.perf_counter() - began, "build_bytes": resident_bytes() - before}
    if sys.argv[3] != "build":
        graph.create_host_write("k", k)
        graph.create_host_write("z", z)
        graph.create_host_read("x", x)
        shifted = pc.concat([z[VERTICES:], z[:VERTICES]])
        steps = program.Sequence(program.Copy(shifted, y), program.Execute(compute_set))
        began = time.perf_counter()
        executable = pc.compile_graph(graph, steps)
        result |= {"compile_seconds": time.perf_counter() - began, "peak_bytes": peak_bytes()}
    if sys.argv[3] == "run":
        run(executable, k.shape[0])
    print(json.dumps(result))


if __name__ == "__main__":
    main()
