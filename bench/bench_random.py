"""Random numbers from the generators of 1,472 tiles, against numpy.random.Generator, each on one thread.

What is timed: a run of the program that draws. Compared with ``random``, ``standard_normal`` and ``integers`` of NumPy's default generator into an array
that is there already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import popcore as pc
from bench.harness import Goal, Row, WrongAnswer, compare
from popcore import FLOAT, HALF, INT, program
from popcore.ops import poprand

GOAL = Goal(1.0, 2.0, True)


def rows(smoke: bool) -> Iterator[Row]:
    elements = 1 << (12 if smoke else 24)
    rng, wide = np.random.default_rng(0), np.empty(elements, np.float32)

    def integers() -> None:
        rng.integers(0, 1000, elements, dtype=np.int32, endpoint=True)

    kinds: dict[str, tuple[Any, Callable[..., Any], tuple[float, ...], Callable[[], object], tuple[float, float]]] = {
        "uniform": (FLOAT, poprand.uniform, (0, 1), lambda: rng.random(dtype=np.float32, out=wide), (0.5, 12**-0.5)),
        "uniform half, against float": (HALF, poprand.uniform, (0, 1), lambda: rng.random(dtype=np.float32, out=wide), (0.5, 12**-0.5)),
        "normal": (FLOAT, poprand.normal, (0, 1), lambda: rng.standard_normal(dtype=np.float32, out=wide), (0, 1)),
        "truncated normal, against normal": (FLOAT, poprand.truncated_normal, (0, 1, 2), lambda: rng.standard_normal(dtype=np.float32, out=wide), (0, 0.88)),
        "integers": (INT, poprand.uniform, (0, 1000), integers, (500, 289)),
        "bernoulli, against uniform": (FLOAT, poprand.bernoulli, (0.25,), lambda: rng.random(dtype=np.float32, out=wide), (0.25, 0.433)),
    }
    for name, (dtype, draw, arguments, baseline, (mean, deviation)) in kinds.items():
        engine = _engine(elements, 8 if smoke else 1472, dtype, draw, arguments)
        engine.run()
        found = engine.read_tensor("out").astype(np.float64)
        if abs(found.mean() - mean) > 6 * deviation / elements**0.5 or abs(found.std() / deviation - 1) > 0.1:
            raise WrongAnswer(f"{name}: mean {found.mean()}, deviation {found.std()}, they should be {mean} and {deviation}")
        yield compare(f"random/{name}", engine.run, baseline, unit="ns", per=elements, goal=GOAL, smoke=smoke)


def _engine(elements: int, tiles: int, dtype: Any, draw: Callable[..., Any], arguments: tuple[float, ...]) -> pc.Engine:
    device = pc.Device("M2000", num_ipus=1, tiles_per_ipu=tiles)
    graph, prog = pc.Graph(device.target), program.Sequence()
    reference = graph.add_variable(dtype, (elements,), mapping="linear")
    graph.create_host_read("out", draw(graph, None, 0, reference, dtype, *arguments, prog))
    return pc.Engine(graph, prog, device=device, options={"engine.threads": 1})
