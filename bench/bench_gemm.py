"""Products of matrices by poplin.mat_mul, exchange included, against numpy.matmul, each on one thread; and one tile's block by itself.

What is timed: the run of the product, its operands on the tiles. What is not: building (a row of its own), compiling, the host.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator

import numpy as np

import popcore as pc
from bench.harness import Goal, Row, WrongAnswer, compared, run_python
from popcore import program
from popcore.ops import poplin

BLOCK = (292, 104, 160)  # what a tile multiplies at once of the largest
SHAPES = {(4096, 4096, 4096): Goal(0.35, 0.6, True), (1024, 1024, 1024): None, (512, 64, 512): None}
HALF_GOAL = Goal(0.8, 1.0, True)
ROUNDED_GOAL = Goal(0.7, 0.9, True)  # of sums in HALF: each is converted there and back at every 16 of k
BLOCK_GOAL = Goal(0.85, 1.0, True)
BUILD_GOAL = Goal(3, 1)
ROUNDS = 5


def rows(smoke: bool) -> Iterator[Row]:
    shapes = {(96, 64, 80): None} if smoke else SHAPES
    for shape, goal in shapes.items():
        name = "gemm/" + "x".join(map(str, shape))
        float_run = _child(shape, "float", smoke)
        half_run, rounded_run = (_child(shape, kind, smoke) for kind in ("half", "half, sums in half"))
        yield compared(name, float_run["ours"], float_run["numpy"], unit="ms", goal=goal)
        yield compared(f"{name} half, against float", half_run["ours"], float_run["ours"], unit="ms", goal=HALF_GOAL if goal else None)
        yield compared(f"{name} half, sums in half, against float", rounded_run["ours"], float_run["ours"], unit="ms", goal=ROUNDED_GOAL if goal else None)
        if goal or smoke:
            yield Row(f"{name} build", float_run["build"], "s", goal=BUILD_GOAL)
    block = _child((8, 8, 8) if smoke else BLOCK, "float", smoke, "block")
    yield compared("gemm/block of a tile", block["ours"], block["numpy"], unit="us", goal=BLOCK_GOAL)


def _child(shape: tuple[int, int, int], dtype: str, smoke: bool, what: str = "device") -> dict[str, list[float]]:
    """Time in a process of its own, whose NumPy has one thread."""
    lines = "import os; os.environ.update(OPENBLAS_NUM_THREADS='1', MKL_NUM_THREADS='1', OMP_NUM_THREADS='1'); from bench.bench_gemm import main; main()"
    found: dict[str, list[float]] = run_python(["-c", lines, *map(str, shape), dtype, what, str(int(smoke))]).json
    return found


def main() -> None:
    """In the child: print seconds of each round as JSON."""
    *shape, dtype, what, smoke = sys.argv[1:]
    m, k, n = map(int, shape)
    tiles = 1 if what == "block" else 8 if smoke == "1" else 1472
    repeats = 1 if smoke == "1" or what == "device" else 20
    engine, build = _engine(m, k, n, dtype, tiles, repeats)
    rng = np.random.default_rng(0)
    kind = np.float32 if dtype == "float" else np.float16
    a, b = (rng.standard_normal(s).astype(kind) for s in ((m, k), (k, n)))
    engine.write_tensor("a", a)
    engine.write_tensor("b", b)
    engine.run()
    left, right = a.astype(np.float32), b.astype(np.float32)
    out = left @ right
    off = 2e-6 * k if kind is np.float32 else (3e-2 if "," in dtype else 1e-3) * k**0.5
    if not np.allclose(engine.read_tensor("c"), out, rtol=1e-2, atol=off):
        raise WrongAnswer(f"the product {m}x{k}x{n} of {dtype}")
    rounds = 1 if smoke == "1" else ROUNDS if m * k * n > 1e9 else 10 * ROUNDS
    pairs = [(_seconds(engine.run, repeats), _seconds(lambda: _numpy(left, right, out, repeats), repeats)) for _ in range(rounds)]
    print(json.dumps({"ours": [p[0] for p in pairs], "numpy": [p[1] for p in pairs], "build": build}))


def _engine(m: int, k: int, n: int, dtype: str, tiles: int, repeats: int) -> tuple[pc.Engine, float]:
    device = pc.Device("M2000", num_ipus=1, tiles_per_ipu=tiles)
    dtype, options = dtype.split(",")[0], {"partialsType": "half" if "," in dtype else "float"}
    began = time.perf_counter()
    graph, step = pc.Graph(device.target), program.Sequence()
    a = poplin.create_mat_mul_input_lhs(graph, dtype, (m, k), (k, n), name="a", options=options)
    b = poplin.create_mat_mul_input_rhs(graph, dtype, (m, k), (k, n), name="b", options=options)
    c = poplin.mat_mul(graph, a, b, step, options=options)
    build = time.perf_counter() - began
    graph.create_host_write("a", a)
    graph.create_host_write("b", b)
    graph.create_host_read("c", c)
    return pc.Engine(graph, program.Repeat(repeats, step), device=device, options={"engine.threads": 1}), build


def _seconds(action: Callable[[], object], repeats: int) -> float:
    began = time.perf_counter()
    action()
    return (time.perf_counter() - began) / repeats


def _numpy(a: np.ndarray, b: np.ndarray, out: np.ndarray, repeats: int) -> None:
    for _ in range(repeats):
        np.matmul(a, b, out=out)
