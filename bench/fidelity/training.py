"""A training step of popxl-addons' tutorial on remote variables: four dense layers, four replicas, Adam, its state on the chip or in Streaming Memory.

The tutorial's own settings: 8 images a replica, 8 times accumulated. Every variable is updated by itself, and its state (first moments in HALF, second in
FLOAT, a step count) has a remote buffer each. Of variables of at least so many elements gradients are scattered, the state is a quarter, and the result is
gathered. A step is a run: images and labels come from callbacks that read ahead, the loss goes to one; and a run begins with two copies from the host
that tell the chip what to run (the tutorial on lightweight profiling, from which rows LP are).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import popcore as pc
from bench.fidelity.figures import Family, Figure
from bench.fidelity.programs import system_of
from popcore import FLOAT, HALF, INT, program
from popcore.ops import gcl, poplin, popnn, popops
from popcore.ops.popops.expr import Cast, Const, Sqrt, Square, _1, _2, _3
from popcore.program import StreamCallback

_REPLICAS, _IMAGES, _TIMES = 4, 8, 8
_SIZES = (784, 512, 512, 512, 10)
_RATE, _FIRST, _SECOND, _LEAST = 1e-3, 0.9, 0.999, 1e-5
_ON_CHIP, _NEVER = -1, 10**10


class _ReadAhead(StreamCallback):
    def prefetch(self, buffer: object) -> bool:
        return True

    def fetch(self, buffer: object) -> None:
        pass


@dataclass(frozen=True)
class _Variable:
    value: pc.Tensor
    gradient: pc.Tensor


def _variables(graph: pc.Graph) -> list[tuple[_Variable, _Variable]]:
    """Weights and biases of each layer."""
    made = []
    for number, (inputs, outputs) in enumerate(pairwise(_SIZES)):
        weights = poplin.create_mat_mul_input_rhs(graph, FLOAT, (_IMAGES, inputs), (inputs, outputs), name=f"weights {number}")
        biases = graph.add_variable(FLOAT, (outputs,), mapping="linear", name=f"biases {number}")
        made.append(tuple(_Variable(t, graph.clone(t, name=f"{t.name}/gradient")) for t in (weights, biases)))
    return made


def _micro_step(graph: pc.Graph, layers: list[tuple[_Variable, _Variable]]) -> program.Sequence:
    """Load, forward, loss, backward."""
    step = program.Sequence()
    images = graph.add_variable(FLOAT, (_IMAGES, _SIZES[0]), mapping="linear", name="images")
    labels = graph.add_variable(INT, (_IMAGES,), mapping="linear", name="labels")
    loss = graph.add_variable(FLOAT, (), tile=0, name="loss")
    step.add(program.Copy(graph.add_host_to_device_fifo("images", FLOAT, images.num_elements), images))
    step.add(program.Copy(graph.add_host_to_device_fifo("labels", INT, _IMAGES), labels))
    gelu, x, seen = popnn.NonLinearityType.GELU, images, []
    for number, (weights, biases) in enumerate(layers):
        made = popops.add(graph, poplin.mat_mul(graph, x, weights.value, step), biases.value, step)
        seen.append((x, made))
        x = popnn.non_linearity(graph, gelu, made, step) if number + 1 < len(layers) else made
    odds = popnn.softmax(graph, x, step)
    truth = popops.cast(graph, popops.eq(graph, labels.expand([1]), _classes(graph), step), FLOAT, step)
    dx = popops.sub(graph, odds, truth, step)
    popops.reduce_with_output(graph, popops.mul(graph, dx, dx, step).flatten(), loss, [0], popops.Operation.ADD, step)
    step.add(program.Copy(loss, graph.add_device_to_host_fifo("loss", FLOAT, 1)))
    for number, ((weights, biases), (before, made)) in reversed(list(enumerate(zip(layers, seen, strict=True)))):
        if number + 1 < len(layers):
            dx = popnn.non_linearity_input_gradient(graph, gelu, made, dx, step)
        poplin.mat_mul_acc(graph, weights.gradient, 1.0, before.transpose(), dx, step)
        popops.add_in_place(graph, biases.gradient, popops.reduce(graph, dx, [0], popops.Operation.ADD, step), step)
        if number:
            dx = poplin.mat_mul(graph, dx, weights.value.transpose(), step)
    return step


def _classes(graph: pc.Graph) -> pc.Tensor:
    made = graph.add_constant(INT, (1, _SIZES[-1]), range(_SIZES[-1]), name="classes")
    graph.set_tile_mapping(made, 0)
    return made


def _update(graph: pc.Graph, variable: _Variable, threshold: int, step: program.Sequence) -> None:
    """Combine the gradient over the replicas, and Adam."""
    elements, mean, value = variable.value.num_elements, gcl.CollectiveOperator.MEAN, variable.value
    sharded = 0 <= threshold <= elements and elements % _REPLICAS == 0
    if sharded:
        gradient = gcl.reduce_scatter_cross_replica(graph, variable.gradient, mean, step)
        value = gcl.reduce_scatter_cross_replica(graph, value, gcl.CollectiveOperator.LOCAL, step)
    else:
        gcl.all_reduce_in_place_cross_replica(graph, variable.gradient, mean, step)
        gradient = variable.gradient
    state = [graph.clone(gradient, name=f"{variable.value.name}/{name}", dtype=dtype) for name, dtype in (("first", HALF), ("second", FLOAT))]
    count = graph.add_variable(FLOAT, (), tile=0, name=f"{variable.value.name}/count")
    remotes = []
    if threshold != _ON_CHIP:
        remotes = [(graph.add_remote_buffer(t.name, t.dtype, t.num_elements), t.flatten()) for t in (*state, count)]
    for remote, t in remotes:
        step.add(program.Copy(remote, t))
    first, second = state
    popops.map_in_place(graph, Cast(Cast(_1, FLOAT) * Const(_FIRST) + _2 * Const(1 - _FIRST), HALF), [first, gradient], step)
    popops.map_in_place(graph, _1 * Const(_SECOND) + Square(_2) * Const(1 - _SECOND), [second, gradient], step)
    popops.map_in_place(graph, _1 + Const(1.0), [count], step)
    popops.map_in_place(graph, _1 - Const(_RATE) * Cast(_2, FLOAT) / (Sqrt(_3) + Const(_LEAST)), [value, first, second], step)
    for remote, t in remotes:
        step.add(program.Copy(t, remote))
    if sharded:
        whole = gcl.all_gather_cross_replica(graph, value, step)
        step.add(program.Copy(whole.flatten(), variable.value.flatten()))


@cache
def _step_seconds(system: str, threshold: int) -> float:
    graph = pc.Graph(pc.Device(system, num_ipus=_REPLICAS).target, replication_factor=_REPLICAS)
    layers = _variables(graph)
    control = graph.add_variable(INT, (1,), mapping="linear", name="control")
    control_stream = graph.add_host_to_device_fifo("control", INT, 1)
    step = program.Sequence(*[program.Copy(control_stream, control)] * 2)
    for variable in (v for layer in layers for v in layer):
        popops.zero(graph, variable.gradient, step)
    step.add(program.Repeat(_TIMES, _micro_step(graph, layers)))
    for variable in (v for layer in layers for v in layer):
        _update(graph, variable, threshold, step)
    engine = pc.Engine(graph, step)
    for name in ("control", "images", "labels"):
        engine.connect_stream(name, _ReadAhead())
    engine.connect_stream("loss", lambda buffer: None)
    engine.run()
    first = engine.profile().device_seconds
    engine.run()
    return engine.profile().device_seconds - first


def throughput(figure: Figure) -> float:
    """Images a second."""
    named = figure.conditions
    found = re.search(r"threshold (\d+)", named)
    thresholds = {"on-chip": _ON_CHIP, "no sharding": _NEVER, "all state sharded": 512, "weights": 1024, "fc1": 262_145}
    threshold = int(found.group(1)) if found else next((t for name, t in thresholds.items() if name in named), None)
    if threshold is None:
        raise LookupError(f"row {figure.id}: the conditions {named!r} say neither where the state is nor what is sharded")
    return _REPLICAS * _IMAGES * _TIMES / _step_seconds(system_of(figure), threshold)


FAMILIES = (Family("training", r"PX-[\w-]+", throughput),)
