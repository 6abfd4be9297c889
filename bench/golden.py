"""``python -m bench.golden``: writes the modelled cycles of some twenty small programs to ``tests/golden/cycles.json``, where a test finds them.

A change of the timing model changes that file, so a review sees what it does to programs of every kind.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

import popcore as pc
from popcore import FLOAT, HALF, UNSIGNED_INT, Input, Matrix, Output, Vector, Vertex, program
from popcore.microbench.programs import spread
from popcore.ops import gcl, poplin, popnn, popops, poprand

CYCLES = Path(__file__).parents[1] / "tests" / "golden" / "cycles.json"
SYSTEM, TILES = "M2000", 16

Build = Callable[[pc.Graph, program.Sequence], None]


class Dot(Vertex):
    """A row of a matrix times a vector; its cycles are estimated from its code."""

    row: Input[Matrix[FLOAT]]
    vector: Input[Vector[FLOAT]]
    out: Output[FLOAT]

    def compute(self) -> None:
        total = 0.0
        for i in range(len(self.vector)):
            total += self.row[0, i] * self.vector[i]
        self.out = total


def _linear(graph: pc.Graph, *shape: int, dtype: pc.ElementType = FLOAT) -> pc.Tensor:
    return graph.add_variable(dtype, shape, mapping="linear")


def _vertices(graph: pc.Graph, prog: program.Sequence) -> None:
    compute = graph.add_compute_set("dots")
    matrix, vector, out = _linear(graph, 100, 1, 40), _linear(graph, 40), _linear(graph, 100)
    graph.add_vertices(compute, Dot, {"row": matrix, "vector": vector, "out": out}, np.arange(100) % TILES)
    prog.add(program.Execute(compute))


def _exchange(sources: range, targets: range, words: int = 100, same: bool = False) -> Build:
    def build(graph: pc.Graph, prog: program.Sequence) -> None:
        source, target = spread(graph, "source", sources, words), spread(graph, "target", targets, words)
        if same:
            source = source.broadcast(len(targets), 0)
        prog.add(program.Copy(source.flatten().reshape(target.shape), target))

    return build


def _one_sided(gathers: bool) -> Build:
    def build(graph: pc.Graph, prog: program.Sequence) -> None:
        one, many = spread(graph, "one", range(1), 1500).reshape((15, 100)), spread(graph, "many", range(1, 16), 100)
        prog.add(program.Copy(many, one) if gathers else program.Copy(one, many))

    return build


def _map(graph: pc.Graph, prog: program.Sequence) -> None:
    popops.add(graph, popops.mul(graph, _linear(graph, 10_000), _linear(graph, 10_000), prog), _linear(graph, 10_000), prog)


def _reduce(graph: pc.Graph, prog: program.Sequence) -> None:
    popops.reduce(graph, _linear(graph, 200, 300), [0], popops.Operation.ADD, prog)


def _sort(graph: pc.Graph, prog: program.Sequence) -> None:
    popops.sort(graph, _linear(graph, 1000), 0, prog)


def _slices(graph: pc.Graph, prog: program.Sequence) -> None:
    table, offsets = _linear(graph, 500, 64), graph.add_variable(UNSIGNED_INT, (20, 1), mapping="linear")
    popops.multi_slice(graph, table, offsets, [0], [1], prog)


def _product(graph: pc.Graph, prog: program.Sequence) -> None:
    a, b = (make(graph, HALF, (64, 96), (96, 128)) for make in (poplin.create_mat_mul_input_lhs, poplin.create_mat_mul_input_rhs))
    poplin.mat_mul(graph, a, b, prog)


def _convolution(graph: pc.Graph, prog: program.Sequence) -> None:
    params = poplin.ConvParams(HALF, 1, (12, 12), (3, 3), 16, 32)
    poplin.convolution(graph, poplin.create_input(graph, params), poplin.create_weights(graph, params), params, False, prog)


def _gradient(graph: pc.Graph, prog: program.Sequence) -> None:
    params = poplin.ConvParams(HALF, 2, (12, 12), (3, 3), 16, 32)
    weights, deltas = poplin.create_weights(graph, params), poplin.create_conv_output(graph, params)
    poplin.convolution_weight_update(graph, deltas, weights, poplin.create_input(graph, params), params, -0.5, prog)


def _recurrent(graph: pc.Graph, prog: program.Sequence) -> None:
    params = popnn.lstm.LstmParams(HALF, 4, 3, (32, 64))
    state, weights = popnn.lstm.create_initial_state(graph, params), popnn.lstm.create_weights(graph, params)
    popnn.lstm.lstm_fwd(graph, params, state, popnn.lstm.create_input(graph, params), weights, None, prog)


def _softmax(graph: pc.Graph, prog: program.Sequence) -> None:
    popnn.non_linearity(graph, popnn.NonLinearityType.SOFTMAX, _linear(graph, 32, 100), prog)


def _random(graph: pc.Graph, prog: program.Sequence) -> None:
    poprand.uniform(graph, None, 0, _linear(graph, 4000), FLOAT, 0.0, 1.0, prog)


def _loop(graph: pc.Graph, prog: program.Sequence) -> None:
    body, t = program.Sequence(), _linear(graph, 1000)
    popops.scaled_add_to(graph, t, _linear(graph, 1000), 0.5, body)
    prog.add(program.Repeat(10, body))


def _stream(graph: pc.Graph, prog: program.Sequence) -> None:
    data = _linear(graph, 5000)
    prog.add(program.Copy(graph.add_host_to_device_fifo("in", FLOAT, 5000), data))
    prog.add(program.Copy(data, graph.add_device_to_host_fifo("out", FLOAT, 5000)))


def _all_reduce(graph: pc.Graph, prog: program.Sequence) -> None:
    gcl.all_reduce_in_place_cross_replica(graph, _linear(graph, 3000), gcl.CollectiveOperator.ADD, prog)


PROGRAMS: dict[str, tuple[Build, int, int]] = {
    "vertices": (_vertices, 1, 1),
    "exchange: from tile to tile": (_exchange(range(8), range(8, 16)), 1, 1),
    "exchange: gather": (_one_sided(gathers=True), 1, 1),
    "exchange: scatter": (_one_sided(gathers=False), 1, 1),
    "exchange: the same to pairs": (_exchange(range(1), range(2, 16), same=True), 1, 1),
    "exchange: the same to every other tile": (_exchange(range(1), range(2, 16, 2), same=True), 1, 1),
    "exchange: on the tile": (_exchange(range(16), range(16)), 1, 1),
    "exchange: to the partner": (_exchange(range(16), range(16, 32)), 2, 1),
    "exchange: along a rail": (_exchange(range(16), range(32, 48)), 4, 1),
    "exchange: the same to all IPUs": (_exchange(range(1), range(1, 64), same=True), 4, 1),
    "element by element": (_map, 1, 1),
    "reduction": (_reduce, 1, 1),
    "reduction over IPUs": (_reduce, 2, 1),
    "sort": (_sort, 1, 1),
    "slices": (_slices, 1, 1),
    "product": (_product, 1, 1),
    "convolution": (_convolution, 1, 1),
    "gradient of a convolution": (_gradient, 1, 1),
    "recurrent layer": (_recurrent, 1, 1),
    "softmax": (_softmax, 1, 1),
    "random numbers": (_random, 1, 1),
    "loop": (_loop, 1, 1),
    "streams": (_stream, 1, 1),
    "all-reduce": (_all_reduce, 4, 4),
}
"""What builds each, its IPUs, and the replicas that share them."""


def cycles_of(name: str) -> dict[str, int]:
    """By kind, of one run, without data."""
    build, ipus, replicas = PROGRAMS[name]
    device = pc.Device(SYSTEM, num_ipus=ipus, tiles_per_ipu=TILES)
    graph, prog = pc.Graph(device.target, replication_factor=replicas), program.Sequence()
    build(graph, prog)
    engine = pc.Engine(graph, prog, options={"debug.compute": False})
    for stream in ("in", "out"):
        if stream in graph.streams:
            engine.connect_stream(stream, np.zeros(5000, np.float32))
    engine.run()
    return {kind: int(cycles) for kind, cycles in engine.profile().cycles_by_kind.items()}


def main() -> None:
    CYCLES.write_text(json.dumps({name: cycles_of(name) for name in PROGRAMS}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
