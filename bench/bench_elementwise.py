"""Element-wise operations of popops over all tiles of one IPU against NumPy on the same arrays, each on one thread.

What is timed: the step, its operands on the tiles, against NumPy's functions with ``out=`` given, so that neither allocates. Where NumPy
needs several calls it works in place as far as it can. What is not: compiling, the host.

All of it is more than caches hold, so what counts is how often memory is gone through: a single ``exp`` or ``tanh`` of NumPy is vector code
too, and neither can be much faster than the other there. Where a copy of as many floats took 0.31 ns each, NumPy's ``exp`` took 0.50 and ``tanh`` 0.39, so that twice
their speed is out of reach; in C, prefetching changed nothing and stores around the caches were slower.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

import popcore as pc
from bench.harness import Goal, Row, WrongAnswer, compare
from popcore import program
from popcore.graph import Graph, Tensor
from popcore.ops import popnn, popops, poputil
from popcore.ops.popops.expr import Expr, _1, _2
from popcore.types import Array

ELEMENTS = 64 << 20
TILES = 1472
Step = Callable[[Graph, list[Tensor], program.Sequence], Tensor]
Rival = Callable[[list[Array], Array, Array], object]
"""NumPy's way: the operands, the output, and another array of its size to work in."""

ADD, FUSED, CURVED, HALF = (Goal(good, moonshot, more_is_better=True) for good, moonshot in ((0.8, 1.0), (2, 4), (2, 4), (10, 30)))
_GELU_SCALE, _GELU_CUBE = math.sqrt(2 / math.pi), 0.044715


def rows(smoke: bool) -> Iterator[Row]:
    count = 10_000 if smoke else ELEMENTS
    for name, dtype, operands, step, rival, goal in CASES:
        yield _row(f"elementwise/{name}", np.dtype(dtype), operands, step, rival, goal, count, smoke)


def _row(name: str, dtype: np.dtype, operands: int, step: Step, rival: Rival, goal: Goal | None, count: int, smoke: bool) -> Row:
    device = pc.Device("M2000", num_ipus=1, tiles_per_ipu=8 if smoke else TILES)
    graph, prog = Graph(device.target), program.Sequence()
    made = [graph.add_variable(dtype, (count,), name=f"operand {i + 1}") for i in range(operands)]
    for each in made:
        poputil.map_tensor_linearly(graph, each)
        graph.create_host_write(each.name, each)
    graph.create_host_read("out", step(graph, made, prog))
    engine = pc.Engine(graph, prog, device=device, options={"engine.threads": 1})
    rng = np.random.default_rng(0)
    given = [(3 * rng.standard_normal(count, np.float32)).astype(dtype) for _ in made]
    for each, values in zip(made, given, strict=True):
        engine.write_tensor(each.name, values)
    expected, work = np.zeros(count, dtype), np.zeros(count, dtype)
    engine.run()
    rival(given, expected, work)
    if not np.allclose(engine.read_tensor("out"), expected, rtol=1e-2 if dtype.itemsize == 2 else 3e-6, atol=1e-2 if dtype.itemsize == 2 else 1e-6):
        raise WrongAnswer(name)
    return compare(name, engine.run, lambda: rival(given, expected, work), unit="ns", per=count, goal=goal, smoke=smoke)


def _map(expression: Expr) -> Step:
    return lambda graph, given, prog: popops.map(graph, expression, given, prog)


def _gelu(graph: Graph, given: list[Tensor], prog: program.Sequence) -> Tensor:
    return popnn.non_linearity(graph, popnn.NonLinearityType.GELU, given[0], prog)


def _numpy_fused(given: list[Array], out: Array, work: Array) -> None:
    a, b = given
    np.multiply(a, b, out=out)
    out += a
    np.subtract(a, b, out=work)
    out *= work
    out += np.float32(1)


def _numpy_gelu(given: list[Array], out: Array, work: Array) -> None:
    (x,) = given
    np.multiply(x, x, out=out)
    out *= x
    out *= np.float32(_GELU_CUBE)
    out += x
    out *= np.float32(_GELU_SCALE)
    np.tanh(out, out=out)
    out += np.float32(1)
    np.multiply(x, np.float32(0.5), out=work)
    out *= work


CASES: tuple[tuple[str, str, int, Step, Rival, Goal | None], ...] = (
    ("add", "float32", 2, _map(_1 + _2), lambda given, out, work: np.add(*given, out=out), ADD),
    ("mul", "float32", 2, _map(_1 * _2), lambda given, out, work: np.multiply(*given, out=out), ADD),
    ("fused, 5 operations", "float32", 2, _map((_1 * _2 + _1) * (_1 - _2) + 1.0), _numpy_fused, FUSED),
    ("exp", "float32", 1, _map(popops.expr.Exp(_1)), lambda given, out, work: np.exp(*given, out=out), CURVED),
    ("tanh", "float32", 1, _map(popops.expr.Tanh(_1)), lambda given, out, work: np.tanh(*given, out=out), CURVED),
    ("gelu", "float32", 1, _gelu, _numpy_gelu, CURVED),
    ("half add", "float16", 2, _map(_1 + _2), lambda given, out, work: np.add(*given, out=out), HALF),
)
