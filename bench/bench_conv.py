"""Layers of ResNet-50 by poplin.convolution over 1,472 tiles, exchange included, against NumPy: the windows as one matrix, times the weights; one thread each.

Forward, the gradient of the input and that of the weights. What is timed: the run, its operands on the tiles. What is not: building (rows of
its own), compiling, the host. The baseline counts making the matrix of windows, since the device's exchange is counted too; where PyTorch is
installed that is the baseline.

Slowest: the gradient of conv1's input, whose three channels fill three eighths of a vector (no network needs it, so it has no goal), and
gradients of weights where there is a stride, which sum over one place and the batch at a time.
"""

from __future__ import annotations

import importlib.util
import json
import math
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import popcore as pc
from bench.harness import Goal, Row, WrongAnswer, compared, run_python
from popcore import program
from popcore.ops import poplin
from popcore.ops.poplin import ConvParams, InputTransform, OutputTransform

# name: field, kernel, stride, padding, channels in and out, groups
LAYERS = {
    "conv1 7x7/2, 224, 3 to 64": (224, 7, 2, 3, 3, 64, 1),
    "conv2 1x1, 56, 64 to 64": (56, 1, 1, 0, 64, 64, 1),
    "conv2 3x3, 56, 64 to 64": (56, 3, 1, 1, 64, 64, 1),
    "conv3 3x3/2, 56, 128 to 128": (56, 3, 2, 1, 128, 128, 1),
    "conv4 3x3, 14, 256 to 256": (14, 3, 1, 1, 256, 256, 1),
    "conv5 1x1, 7, 512 to 2048": (7, 1, 1, 0, 512, 2048, 1),
    "conv4 of ResNeXt 3x3, 14, 512 to 512 in 32 groups": (14, 3, 1, 1, 512, 512, 32),
    "depthwise 3x3, 56, 144 channels": (56, 3, 1, 1, 144, 144, 144),
}
SMOKE = {"3x3, 8, 4 to 8": (8, 3, 1, 1, 4, 8, 1)}
GOAL = Goal(0.2, 0.6, more_is_better=True)
BUILD_GOAL = Goal(3, 1)
BATCH = 4
ROUNDS = 9


def rows(smoke: bool) -> Iterator[Row]:
    for name, layer in (SMOKE if smoke else LAYERS).items():
        found = run_python(["-c", _CHILD, json.dumps(layer), "float", str(int(smoke))]).json
        for what, times in found["ours"].items():
            goal = None if what == "backward" and name.startswith("conv1") else GOAL
            yield compared(f"conv/{name} {what}", times, found["baseline"][what], unit="ms", goal=goal)
        yield Row(f"conv/{name} build of all three", found["build"], "s", goal=BUILD_GOAL)


_CHILD = "import os; os.environ.update(OPENBLAS_NUM_THREADS='1', MKL_NUM_THREADS='1', OMP_NUM_THREADS='1'); from bench.bench_conv import main; main()"


def main() -> None:
    """In the child: print seconds of each round as JSON."""
    field, kernel, stride, padding, inputs, outputs, groups = json.loads(sys.argv[1])
    dtype, smoke = sys.argv[2], sys.argv[3] == "1"
    pads = InputTransform(padding_lower=(padding, padding), padding_upper=(padding, padding))
    params = ConvParams(
        dtype,
        BATCH,
        (field, field),
        (kernel, kernel),
        inputs // groups,
        outputs // groups,
        groups,
        pads,
        output_transform=OutputTransform(stride=(stride, stride)),
    )
    began = time.perf_counter()
    graph, device, programs, tensors = _programs(params, 8 if smoke else 1472)
    build = time.perf_counter() - began
    engine = pc.Engine(graph, list(programs.values()), device=device, options={"engine.threads": 1})
    rng = np.random.default_rng(0)
    host = {name: rng.standard_normal(t.shape).astype(t.dtype.numpy) for name, t in tensors.items() if name in ("data", "weights", "deltas")}
    for name, values in host.items():
        engine.write_tensor(name, values)
    baseline = _numpy(params, host) if importlib.util.find_spec("torch") is None else _torch(params, host)
    ours: dict[str, list[float]] = {}
    theirs: dict[str, list[float]] = {}
    for number, what in enumerate(programs):
        engine.run(number)
        wanted = baseline[what]()
        if not np.allclose(engine.read_tensor(what), wanted, rtol=1e-2, atol=1e-5 * np.abs(wanted).max() * math.sqrt(wanted.size)):
            raise WrongAnswer(f"{what} of {params}")
        pairs = [(_seconds(lambda n=number: engine.run(n)), _seconds(baseline[what])) for _ in range(1 if smoke else ROUNDS)]
        ours[what], theirs[what] = [p[0] for p in pairs], [p[1] for p in pairs]
    print(json.dumps({"ours": ours, "baseline": theirs, "build": build}))


def _programs(params: ConvParams, tiles: int) -> tuple[pc.Graph, pc.Device, dict[str, program.Sequence], dict[str, pc.Tensor]]:
    device = pc.Device("M2000", num_ipus=1, tiles_per_ipu=tiles)
    graph = pc.Graph(device.target)
    forward, backward, update = program.Sequence(), program.Sequence(), program.Sequence()
    tensors = {
        "data": poplin.create_input(graph, params, name="data"),
        "weights": poplin.create_weights(graph, params, name="weights"),
        "deltas": poplin.create_conv_output(graph, params, name="deltas"),
    }
    data, weights, deltas = tensors.values()
    tensors["forward"] = poplin.convolution(graph, data, weights, params, False, forward)
    tensors["backward"] = poplin.convolution(graph, deltas, weights, poplin.get_gradient_params(params), True, backward)
    tensors["update"] = poplin.calculate_weight_deltas(graph, deltas, data, params, update)
    for name, t in tensors.items():
        if name in ("data", "weights", "deltas"):
            graph.create_host_write(name, t)
        else:
            graph.create_host_read(name, t)
    return graph, device, {"forward": forward, "backward": backward, "update": update}, tensors


def _numpy(params: ConvParams, host: dict[str, np.ndarray]) -> dict[str, Callable[[], np.ndarray]]:
    """The windows of the input as rows of a matrix; gradients go through the same matrix."""
    groups, outputs, inputs, *kernel = params.weights_shape
    batch, _, *out = params.output_shape
    (pad, _), (stride, _) = params.input_transform.padding_lower, params.output_transform.stride
    data, weights, deltas = (host[n].astype(np.float32) for n in ("data", "weights", "deltas"))
    flat = weights.reshape(groups, outputs, -1)

    def windows() -> np.ndarray:
        padded = np.pad(data, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
        views = np.lib.stride_tricks.sliding_window_view(padded, tuple(kernel), (2, 3))[:, :, ::stride, ::stride]
        apart = views.reshape(batch, groups, inputs, *out, *kernel)
        return np.ascontiguousarray(apart.transpose(1, 2, 5, 6, 0, 3, 4)).reshape(groups, inputs * math.prod(kernel), -1)

    def rows_of(t: np.ndarray) -> np.ndarray:
        return t.reshape(batch, groups, outputs, -1).transpose(1, 2, 0, 3).reshape(groups, outputs, -1)

    def forward() -> np.ndarray:
        return (flat @ windows()).reshape(groups, outputs, batch, *out).transpose(2, 0, 1, 3, 4).reshape(params.output_shape)

    def backward() -> np.ndarray:
        columns = (flat.transpose(0, 2, 1) @ rows_of(deltas)).reshape(groups, inputs, *kernel, batch, *out)
        height, width = params.input_field_shape
        padded = np.zeros((batch, groups, inputs, height + 2 * pad, width + 2 * pad), np.float32)
        for y, x in np.ndindex(*kernel):
            there = padded[..., y : y + stride * out[0] : stride, x : x + stride * out[1] : stride]
            there += columns[:, :, y, x].transpose(2, 0, 1, 3, 4)
        return padded[..., pad : pad + height, pad : pad + width].reshape(params.input_shape)

    def update() -> np.ndarray:
        return (rows_of(deltas) @ windows().transpose(0, 2, 1)).reshape(params.weights_shape)

    return {"forward": forward, "backward": backward, "update": update}


def _torch(params: ConvParams, host: dict[str, np.ndarray]) -> dict[str, Callable[[], Any]]:
    torch = importlib.import_module("torch")
    torch.set_num_threads(1)
    data, weights, deltas = (torch.from_numpy(host[n].astype(np.float32)) for n in ("data", "weights", "deltas"))
    weights = weights.reshape(params.num_output_chans, params.input_channels_per_conv_group, *params.kernel_shape)
    pad, stride, groups = params.input_transform.padding_lower, params.output_transform.stride, params.num_conv_groups
    grad = torch.nn.grad
    return {
        "forward": lambda: torch.nn.functional.conv2d(data, weights, None, stride, pad, 1, groups).numpy(),
        "backward": lambda: grad.conv2d_input(data.shape, weights, deltas, stride, pad, 1, groups).numpy(),
        "update": lambda: grad.conv2d_weight(data, weights.shape, deltas, stride, pad, 1, groups).numpy().reshape(params.weights_shape),
    }


def _seconds(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began
