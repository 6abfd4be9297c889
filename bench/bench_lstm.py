"""An LSTM layer over a sequence, forward and there and back, against PyTorch where it is installed, else NumPy; each on one thread.

What is timed: the run, its tensors on the tiles. What is not: building (a row of its own), compiling, the host.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import popcore as pc
from bench.harness import Goal, Row, WrongAnswer, compared, run_python
from popcore import program
from popcore.ops.popnn import lstm

SIZES = (64, 16, 256)  # steps, examples, inputs and outputs
GOAL = Goal(0.2, 1.0, True)
ROUNDS = 11
ORDER = (lstm.BasicLstmCellUnit.INPUT_GATE, lstm.BasicLstmCellUnit.FORGET_GATE, lstm.BasicLstmCellUnit.CANDIDATE, lstm.BasicLstmCellUnit.OUTPUT_GATE)
"""PyTorch's."""


def rows(smoke: bool) -> Iterator[Row]:
    for way in ("forward", "backward"):
        found = run_python(["-c", _CHILD, way, str(int(smoke))]).json
        name = f"lstm/{way} {found['sizes']}, against {found['baseline']}"
        yield compared(name, found["ours"], found["theirs"], unit="ms", goal=GOAL)
        yield Row(f"lstm/{way} build", found["build"], "s")


_CHILD = "import os; os.environ.update(OPENBLAS_NUM_THREADS='1', MKL_NUM_THREADS='1', OMP_NUM_THREADS='1'); from bench.bench_lstm import main; main()"


def main() -> None:
    """In the child: print seconds of each round as JSON."""
    way, smoke = sys.argv[1], sys.argv[2] == "1"
    steps, batch, width = (3, 2, 8) if smoke else SIZES
    params = lstm.LstmParams(pc.FLOAT, batch, steps, (width, width), cell_order=ORDER)
    rng = np.random.default_rng(0)
    shapes = {"x": (steps, batch, width), "w": (4, width, width), "u": (4, width, width), "b": (4, width), "h": (batch, width), "c": (batch, width)}
    values = {name: (rng.standard_normal(shape) / width**0.5).astype(np.float32) for name, shape in shapes.items()}
    engine, build = _engine(params, way, 8 if smoke else 1472)
    for name, value in values.items():
        engine.write_tensor(name, value)
    engine.run()
    outputs, back = _numpy_forward(values)
    if not np.allclose(engine.read_tensor("out"), outputs, rtol=1e-4, atol=1e-5):
        raise WrongAnswer(f"the {way} LSTM")
    baseline, theirs = _torch(values, way) if importlib.util.find_spec("torch") else ("NumPy", _numpy(values, way))
    if way == "backward" and not np.allclose(engine.read_tensor("d_x"), _numpy_backward(values, outputs, back), rtol=1e-3, atol=1e-4):
        raise WrongAnswer("the gradient of an LSTM's input")
    theirs()
    pairs = [(_seconds(engine.run), _seconds(theirs)) for _ in range(1 if smoke else ROUNDS)]
    sizes = f"{steps}x{batch}x{width}"
    print(json.dumps({"ours": [p[0] for p in pairs], "theirs": [p[1] for p in pairs], "build": build, "sizes": sizes, "baseline": baseline}))


def _engine(params: lstm.LstmParams, way: str, tiles: int) -> tuple[pc.Engine, float]:
    device = pc.Device("M2000", num_ipus=1, tiles_per_ipu=tiles)
    began = time.perf_counter()
    graph, prog = pc.Graph(device.target), program.Sequence()
    x, state, weights = lstm.create_input(graph, params), lstm.create_initial_state(graph, params), lstm.create_weights(graph, params)
    kept: list[pc.Tensor] = []
    out, _ = lstm.lstm_fwd(graph, params, state, x, weights, kept if way == "backward" else None, prog)
    if way == "backward":
        d_x: list[pc.Tensor] = []
        lstm.lstm_bwd_with_wu(graph, params, prog, state, kept[0], weights, x, out, out, None, d_x, [])
        graph.create_host_read("d_x", d_x[0])
    for name, t in zip(("x", "w", "u", "b", "h", "c"), (x, *weights, *state), strict=True):
        graph.create_host_write(name, t)
    graph.create_host_read("out", out)
    build = time.perf_counter() - began
    return pc.Engine(graph, prog, device=device, options={"engine.threads": 1}), build


def _seconds(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def _flat(weights: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(np.moveaxis(weights, 0, 1).reshape(weights.shape[1], -1))


def _numpy_forward(v: dict[str, np.ndarray]) -> tuple[np.ndarray, list[Any]]:
    """The outputs, and what the way back needs."""
    h, c, u, kept, outputs = v["h"], v["c"], _flat(v["u"]), [], []
    weighted = v["x"] @ _flat(v["w"]) + v["b"].reshape(-1)
    for step in weighted:
        i, f, g, o = np.split(step + h @ u, 4, axis=1)
        i, f, g, o = _sigmoid(i), _sigmoid(f), np.tanh(g), _sigmoid(o)
        kept.append((i, f, g, o, c, h))
        c = f * c + i * g
        h = o * np.tanh(c)
        outputs.append(h)
    return np.stack(outputs), kept


def _numpy_backward(v: dict[str, np.ndarray], outputs: np.ndarray, kept: list[Any]) -> np.ndarray:
    """The gradient of the input for that of the outputs being the outputs; on the way those of all weights, as ``lstm_bwd_with_wu``."""
    u, w, d_h, d_c, units = _flat(v["u"]).T, _flat(v["w"]).T, 0.0, 0.0, []
    for (i, f, g, o, before, _), out in zip(reversed(kept), outputs[::-1], strict=True):
        d_h = d_h + out
        shown = np.tanh(f * before + i * g)
        d_c = d_c + d_h * o * (1 - shown * shown)
        gates = (d_c * g * i * (1 - i), d_c * before * f * (1 - f), d_c * i * (1 - g * g), d_h * shown * o * (1 - o))
        units.append(np.concatenate(gates, axis=1))
        d_h, d_c = units[-1] @ u, d_c * f
    d_units = np.stack(units[::-1])
    flat = d_units.reshape(-1, d_units.shape[2])
    for left in (v["x"], np.stack([k[5] for k in kept])):
        left.reshape(-1, left.shape[2]).T @ flat  # the gradients of the weights
    flat.sum(0)
    return d_units @ w


def _numpy(v: dict[str, np.ndarray], way: str) -> Callable[[], object]:
    if way == "forward":
        return lambda: _numpy_forward(v)
    return lambda: _numpy_backward(v, *_numpy_forward(v))


def _torch(v: dict[str, np.ndarray], way: str) -> tuple[str, Callable[[], object]]:
    import torch

    torch.set_num_threads(1)
    width = v["h"].shape[1]
    layer = torch.nn.LSTM(width, width)
    tensors = {name: torch.from_numpy(array) for name, array in v.items()}
    with torch.no_grad():
        layer.weight_ih_l0.copy_(torch.from_numpy(_flat(v["w"]).T.copy()))
        layer.weight_hh_l0.copy_(torch.from_numpy(_flat(v["u"]).T.copy()))
        layer.bias_ih_l0.copy_(tensors["b"].reshape(-1))
        layer.bias_hh_l0.zero_()
    x = tensors["x"].requires_grad_(way == "backward")
    state = tensors["h"][None], tensors["c"][None]

    def run() -> None:
        with torch.set_grad_enabled(way == "backward"):
            out = layer(x, state)[0]
            if way == "backward":
                out.backward(out.detach())

    return "PyTorch", run
