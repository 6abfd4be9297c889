"""On the tiles themselves: memory, the product unit, reductions, random numbers, and what a launch costs."""

from __future__ import annotations

import numpy as np

import popcore as pc
from bench.fidelity.figures import Family, Figure
from bench.fidelity.programs import graph_of, library_call, modelled
from popcore import FLOAT, HALF, Input, MultiVertex, Output, Vector, Vertex, program
from popcore.microbench.programs import spread
from popcore.ops import popops, poprand


class Load(MultiVertex):
    """Reads a block, so many bits at a load."""

    data: Input[Vector[FLOAT]]

    def compute(self, worker: int) -> None:
        pass


class Product(MultiVertex):
    """[rows, 16] @ [16, 16] in HALF, partials of HALF: what poplin, whose sums are FLOAT, has not."""

    rows: Input[Vector[HALF]]
    out: Output[Vector[HALF]]

    def compute(self, worker: int) -> None:
        pass


class Loop(Vertex):
    """A hundred rounds that load a volatile word, add to it and store it."""

    word: Output[Vector[FLOAT]]

    def compute(self) -> None:
        pass


def local_memory(figure: Figure) -> float:
    """TB/s of all tiles that read 64 KiB each: one load an issue."""
    graph, words = graph_of(figure), 16_384
    tiles = graph.target.num_tiles
    data, reads = spread(graph, "data", range(tiles), words), graph.add_compute_set("reads")
    loads = words * 32 // figure.number(r"load width (\d+) bit")
    graph.add_vertices(reads, Load, {"data": data}, np.arange(tiles), cycles=-(-loads // graph.target.num_worker_contexts))
    return tiles * words * 4 / modelled(graph, program.Execute(reads)).device_seconds / 1e12


def product_unit(figure: Figure) -> float:
    """TFLOP/s of all tiles that multiply [N, 16] @ [16, 16] in HALF, each its own.

    The vertex says what PopLibs' estimator of its 1 x 1 vertex says with 16 units and partials of HALF, and 45 for launch and completion as
    ``poplin`` does (rows TS-AMP): 179 for the supervisor, 39 for a pass and its weights, and for a worker of n rows 30 + 4 (n - 3).
    """
    graph, rows = graph_of(figure), figure.number(r"N=(\d+)")
    tiles, workers = graph.target.num_tiles, graph.target.num_worker_contexts
    data, out = spread(graph, "rows", range(tiles), rows * 16, HALF), spread(graph, "out", range(tiles), rows * 16, HALF)
    products = graph.add_compute_set("products")
    each = -(-rows // workers)
    cycles = (134 + 45 + 39) / workers + 30 + 4 * (each - 3)
    graph.add_vertices(products, Product, {"rows": data, "out": out}, np.arange(tiles), cycles=round(cycles))
    profile = modelled(graph, program.Execute(products))
    seconds = profile.cycles_by_kind["compute"] / graph.target.clock_hz  # the row's counter has its own overhead removed
    return tiles * 2 * rows * 16 * 16 / seconds / 1e12


def reduction(figure: Figure) -> float:
    """us of popops.reduce of so many operands on one tile."""
    graph, steps = graph_of(figure), program.Sequence()
    data = spread(graph, "data", [0], figure.number(r"(\d+) fp32"))
    popops.reduce(graph, data.flatten(), [0], popops.Operation.ADD, steps)
    return library_call(graph, steps).device_seconds * 1e6


def reduction_bandwidth(figure: Figure) -> float:
    """GB/s of popops.reduce over tiles and IPUs, to one number."""
    graph, steps = graph_of(figure, figure.number(r"(\d+) IPUs", 1)), program.Sequence()
    words = figure.number(r"([\d,]+) fp32 per tile")
    tiles = figure.number(r"(\d+) tiles?", graph.target.num_tiles)
    data = spread(graph, "data", range(tiles), words)
    popops.reduce(graph, data.flatten(), [0], popops.Operation.ADD, steps)
    return tiles * words * 4 / library_call(graph, steps).device_seconds / 1e9


def random_numbers(figure: Figure) -> float:
    """10^9 numbers a second of poprand.uniform, 20,000 on each tile."""
    graph, steps = graph_of(figure), program.Sequence()
    like = spread(graph, "like", range(graph.target.num_tiles), 20_000)
    poprand.uniform(graph, None, 0, like, FLOAT, 0.0, 1.0, steps)
    return like.num_elements / modelled(graph, steps).device_seconds / 1e9


def launches(figure: Figure) -> float:
    """Cycles of the loop's vertex executed once or twice, or of 100 rounds more. A round takes a worker six issues: load, add, store, count, compare, branch."""
    graph = graph_of(figure)
    rounds = 200 if "more" in figure.benchmark else 100

    def cycles(rounds: int) -> int:
        loop = graph.add_compute_set("loop")
        graph.add_vertices(loop, Loop, {"word": spread(graph, f"word {rounds}", [0], 1)}, [0], cycles=6 * rounds)
        return modelled(graph, *[program.Execute(loop)] * (2 if "two" in figure.benchmark else 1)).total_cycles

    return cycles(rounds) - (cycles(100) if rounds > 100 else 0)


def to_host(figure: Figure) -> float:
    """GB/s of 100 MB from one IPU to the host."""
    graph = pc.Graph(pc.Device("M2000", num_ipus=1).target)
    data = graph.add_variable(FLOAT, (25_000_000,), mapping="linear", name="data")
    stream = graph.add_device_to_host_fifo("stream", FLOAT, data.num_elements)
    engine = pc.Engine(graph, program.Copy(data, stream), options={"debug.compute": False})
    engine.run()
    return 1e8 / engine.profile().device_seconds / 1e9


FAMILIES = (
    Family("memory", r"J-MEM-[1-5]", local_memory),
    Family("product unit", r"TS-AMP-\d+", product_unit),
    Family("reduction", r"J-RED1-\d+", reduction),
    Family("reduction", r"J-REDB-\w+", reduction_bandwidth),
    Family("random numbers", r"J-PRNG", random_numbers),
    Family("launch", r"LP-[123]", launches),
    Family("host", r"ED-1", to_host),
)
