"""Long short-term memory: forward, backward and the weights' gradients, over a sequence. After ``popnn/Lstm.hpp``.

With x a step's input, h and c the state, and s the recurrent activation, a the activation:
``f, i, o = s(x W + h U + b)``, ``g = a(x W + h U + b)``, each with its own weights; ``c' = f c + i g``; ``h' = o a(c')``.
Products and what is added to them are FLOAT; gates, states and their gradients are rounded to the layer's data type as they are kept.
Where PopLibs takes a pointer for a tensor that is made, a list is taken here, to which it is appended; None if it is not wanted.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence as Items
from dataclasses import dataclass
from typing import NamedTuple

from popcore.graph import Graph, Tensor, concat
from popcore.ops import poplin, popops
from popcore.ops.popnn import rnn
from popcore.ops.popnn.non_linearity import FUNCTIONS, SLOPES
from popcore.ops.popops import common
from popcore.ops.popops.expr import Cast, Const, Expr, PlaceHolder
from popcore.ops.popops.widths import rounded, wide
from popcore.program import Copy, Sequence
from popcore.types import FLOAT


class BasicLstmCellUnit(enum.IntEnum):
    """What an LSTM has of each: three gates and the candidate for the cell state."""

    FORGET_GATE = 0
    INPUT_GATE = 1
    CANDIDATE = 2
    OUTPUT_GATE = 3


UNITS = len(BasicLstmCellUnit)
_FORGET, _INPUT, _CANDIDATE, _OUTPUT = BasicLstmCellUnit
_CELL, _HIDDEN = UNITS, UNITS + 1  # kept of a step after its units: the state before it
KEPT = UNITS + 2


def get_default_basic_lstm_cell_order() -> tuple[BasicLstmCellUnit, ...]:
    """Forget gate, input gate, candidate, output gate."""
    return tuple(BasicLstmCellUnit)


@dataclass(frozen=True)
class LstmParams(rnn.RnnParams):
    """Sizes and rules of an LSTM.

    cell_order: Which unit each entry of the first dimension of weights and biases belongs to.
    preserve_final_state: An example with fewer steps (``var_time_steps``) keeps its state to the end; otherwise it becomes 0.
    """

    cell_order: tuple[BasicLstmCellUnit, ...] = get_default_basic_lstm_cell_order()
    preserve_final_state: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        rnn.require_order(self.cell_order, BasicLstmCellUnit)

    def place(self, unit: BasicLstmCellUnit) -> int:
        return self.cell_order.index(unit)


class LstmState(NamedTuple):
    """Both (batch, outputs)."""

    output: Tensor
    cell_state: Tensor

    def get_as_tensor(self) -> Tensor:
        """(2, batch, outputs)"""
        return concat([self.output.expand([0]), self.cell_state.expand([0])])


class LstmWeights(NamedTuple):
    """(4, inputs, outputs), (4, outputs, outputs) and (4, outputs), units in the order of ``LstmParams.cell_order``."""

    input_weights: Tensor
    output_weights: Tensor
    biases: Tensor


def create_input(graph: Graph, params: LstmParams, name: str = "", options: common.Options | None = None) -> Tensor:
    """A tensor (time, batch, inputs) laid out for the product with the input weights.

    Options of all functions here: ``availableMemoryProportion`` and ``partialsType`` of the products; see ``rnn.OPTIONS`` for the rest.
    """
    return rnn.create_input(graph, params, UNITS, name, options)


def create_initial_output(graph: Graph, params: LstmParams, name: str = "") -> Tensor:
    """(batch, outputs)"""
    return rnn.create_state(graph, params, common.joined(name, "initial_output"))


def create_initial_cell_state(graph: Graph, params: LstmParams, name: str = "") -> Tensor:
    """(batch, outputs)"""
    return rnn.create_state(graph, params, common.joined(name, "initial_cell_state"))


def create_initial_state(graph: Graph, params: LstmParams, name: str = "") -> LstmState:
    """Both."""
    return LstmState(create_initial_output(graph, params, name), create_initial_cell_state(graph, params, name))


def zero_initial_state(graph: Graph, initial_state: LstmState, prog: Sequence, name: str = "") -> None:
    """A step that makes both 0."""
    for t in initial_state:
        popops.zero(graph, t, prog, common.joined(name, "zero_initial_state"))


def create_weights_kernel(graph: Graph, params: LstmParams, name: str = "", options: common.Options | None = None) -> tuple[Tensor, Tensor]:
    """The input weights and the output weights."""
    return rnn.create_kernel(graph, params, UNITS, name, options)


def create_weights_biases(graph: Graph, params: LstmParams, name: str = "") -> Tensor:
    """(4, outputs)"""
    return rnn.create_biases(graph, params, (UNITS,), name)


def create_weights(graph: Graph, params: LstmParams, name: str = "", options: common.Options | None = None) -> LstmWeights:
    """All of them."""
    return LstmWeights(*create_weights_kernel(graph, params, name, options), create_weights_biases(graph, params, name))


def lstm_fwd(
    graph: Graph, params: LstmParams, state_init: LstmState, in_: Tensor, weights: LstmWeights, intermediates: list[Tensor] | None, prog: Sequence,
    name: str = "", options: common.Options | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Run the layer over ``in_`` (time, batch, inputs).

    Args:
        intermediates: Gets what the backward pass needs.

    Returns: the outputs (time, batch, outputs), or of the last step (batch, outputs); and the last cell state.
    Raises: ShapeError, ElementTypeError: tensors that are not those of ``params``. OptionError
    Costs: a product for all steps together, then for each step a product and four to eight compute sets.
    """
    step = common.joined(name, "lstm_fwd")
    made = rnn.product_options("lstm_fwd", options)
    _check(step, params, state_init, in_, weights)
    dtype = params.data_type
    h, c = (rnn.state_like(graph, params, t, dtype, f"{step}/{what}") for t, what in zip(state_init, ("output", "cell_state"), strict=True))
    prog.add(Sequence(Copy(state_init.output, h), Copy(state_init.cell_state, c)))
    weighted = rnn.weighted_input(graph, params, in_, weights.input_weights, weights.biases, h, prog, step, made)
    outputs = rnn.along(graph, h, dtype, f"{step}/outputs", params.time_steps) if params.output_full_sequence else None
    saved = rnn.along(graph, h, dtype, f"{step}/intermediates", params.time_steps, KEPT) if intermediates is not None else None
    product = rnn.along(graph, h, FLOAT, f"{step}/product", units=UNITS)
    kept = rnn.along(graph, h, dtype, f"{step}/kept", units=UNITS if saved is None else KEPT)
    kernel = rnn.flat_units(weights.output_weights)

    def body(at: rnn.TimeStep) -> None:
        if saved is not None:
            at.prog.add(Sequence(Copy(c, kept[:, _CELL]), Copy(h, kept[:, _HIDDEN])))
        poplin.mat_mul_with_output(graph, h, kernel, rnn.flat(product), at.prog, f"{step}/product", made)
        _cell(at, params, at.read(weighted, "weighted_input"), product, kept[:, :UNITS], h, c)
        if outputs is not None:
            at.write(outputs, rnn.shown(at, h) if params.preserve_final_state else h, "outputs")
        if saved is not None:
            at.write(saved, kept, "intermediates")

    prog.add(rnn.each_step(graph, params, body, step))
    if intermediates is not None and saved is not None:
        intermediates.append(saved)
    return (h if outputs is None else outputs), c


def _cell(at: rnn.TimeStep, params: LstmParams, weighted: Tensor, product: Tensor, gates: Tensor, h: Tensor, c: Tensor) -> None:
    """The gates of a step from what goes into them, then the new state."""
    dtype = params.data_type
    recurrent = [params.place(u) for u in (_FORGET, _INPUT, _OUTPUT)]
    for places, kind, what in ((recurrent, params.recurrent_activation, "gates"), ([params.place(_CANDIDATE)], params.activation, "candidate")):
        parts = [rnn.picked(t, places, 1) for t in (weighted, product, gates)]
        at.map(FUNCTIONS[kind](PlaceHolder(1) + PlaceHolder(2)), parts[:2], parts[2], what)
    f, i, g, o = (gates[:, params.place(u)] for u in BasicLstmCellUnit)
    at.map(_new_cell(params), [f, c, i, g], c, "cell_state", wide(2, dtype) if params.preserve_final_state else Const(0.0, FLOAT))
    output = wide(1, dtype) * FUNCTIONS[params.activation](wide(2, dtype))
    at.map(output, [o, c, h], h, "output", wide(3, dtype) if params.preserve_final_state else Const(0.0, FLOAT))


def _new_cell(params: LstmParams) -> Expr:
    """The cell state after a step, of its forget gate, the state before, its input gate and its candidate."""
    f, before, i, g = (wide(k, params.data_type) for k in range(1, 5))
    return f * before + i * g


def lstm_bwd(
    graph: Graph, params: LstmParams, prog: Sequence, fwd_state_init: LstmState, fwd_intermediates: Tensor, weights: LstmWeights, in_: Tensor,
    output: Tensor, output_grad: Tensor, last_step_state_grad: LstmState | Tensor | None, input_grad: list[Tensor] | None,
    bwd_intermediates: list[Tensor] | None, name: str = "", options: common.Options | None = None,
) -> LstmState:  # fmt: skip
    """Go back through the steps.

    Args:
        fwd_intermediates: What ``lstm_fwd`` appended.
        output, output_grad: What ``lstm_fwd`` gave, and the gradient of it.
        last_step_state_grad: The gradient of the last state, or of the last cell state alone.
        input_grad: Gets the gradient of ``in_``.
        bwd_intermediates: Gets what ``lstm_wu`` needs.

    Returns: the gradient of the initial state.
    """
    step = common.joined(name, "lstm_bwd")
    made = rnn.product_options("lstm_bwd", options)
    _check(step, params, fwd_state_init, in_, weights)
    _check_kept(step, params, fwd_intermediates, output=output, output_grad=output_grad)
    state = fwd_intermediates[0, :, _CELL]
    d_h, d_c = (rnn.zeros(graph, state, FLOAT, prog, f"{step}/d_{what}") for what in ("output", "cell_state"))
    last = last_step_state_grad
    given = [(d_c, last)] if isinstance(last, Tensor) else [] if last is None else [(d_h, last.output), (d_c, last.cell_state)]
    for sum_, t in given if params.output_full_sequence else [(d_h, output_grad), *given]:
        popops.scaled_add_to(graph, sum_, t, 1.0, prog, name=step)
    d_units = rnn.along(graph, state, params.data_type, f"{step}/d_units", params.time_steps, UNITS)
    kernel = rnn.arranged(graph, rnn.flat_units(weights.output_weights).transpose(), params.batch_size, prog, f"{step}/kernel", made)
    new_d_h, d_out, total = (rnn.along(graph, state, FLOAT, f"{step}/{what}") for what in ("product", "d_out", "d_total"))
    d_gates = rnn.along(graph, state, params.data_type, f"{step}/d_gates", units=UNITS)

    def body(at: rnn.TimeStep) -> None:
        kept = at.read(fwd_intermediates, "intermediates")
        incoming = [d_h, at.read(output_grad, "output_grad")] if params.output_full_sequence else [d_h]
        _cell_back(at, params, kept, incoming, d_out, total, d_c, d_gates)
        at.write(d_units, d_gates, "d_units")
        poplin.mat_mul_with_output(graph, rnn.flat(d_gates), kernel, new_d_h, at.prog, f"{step}/product", made)
        at.map(PlaceHolder(1), [new_d_h, d_h], d_h, "d_output", PlaceHolder(2) if params.preserve_final_state else Const(0.0, FLOAT))

    prog.add(rnn.each_step(graph, params, body, step, backward=True))
    if input_grad is not None and params.calc_input_gradients:
        input_grad.append(rnn.input_gradient(graph, params, d_units, weights.input_weights, prog, step, made))
    if bwd_intermediates is not None:
        bwd_intermediates.append(d_units)
    return LstmState(*(popops.cast(graph, t, params.data_type, prog, step) for t in (d_h, d_c)))


def _cell_back(at: rnn.TimeStep, params: LstmParams, kept: Tensor, incoming: Items[Tensor], d_out: Tensor, total: Tensor, d_c: Tensor, d_gates: Tensor) -> None:
    """``d_gates``, and ``d_c`` of the step before, from what the step kept and the gradients of its state. ``d_out`` and ``total`` are scratch."""
    dtype, nothing = params.data_type, Const(0.0, FLOAT)
    act, gate = params.activation, params.recurrent_activation
    f, i, g, o = (kept[:, params.place(u)] for u in BasicLstmCellUnit)
    before = kept[:, _CELL]
    d_f, d_i, d_g, d_o = (d_gates[:, params.place(u)] for u in BasicLstmCellUnit)
    sum_ = PlaceHolder(1) if len(incoming) == 1 else PlaceHolder(1) + wide(2, incoming[1].dtype)
    at.map(sum_, list(incoming), d_out, "d_out", nothing)
    c = rounded(_new_cell(params), dtype)  # as it was rounded on the way there
    shown = FUNCTIONS[act](c if dtype is FLOAT else Cast(c, FLOAT))
    o_, d_out_, d_c_ = wide(5, dtype), PlaceHolder(6), PlaceHolder(7)
    tensors = [f, before, i, g, o, d_out, d_c]
    at.map(d_c_ + d_out_ * o_ * SLOPES[act](shown), tensors, total, "d_cell", nothing)
    at.map(d_out_ * shown * SLOPES[gate](o_), tensors[:6], d_o, "d_output_gate")
    for d, y, other, kind, what in ((d_f, f, before, gate, "d_forget_gate"), (d_i, i, g, gate, "d_input_gate"), (d_g, g, i, act, "d_candidate")):
        at.map(PlaceHolder(1) * wide(2, dtype) * SLOPES[kind](wide(3, dtype)), [total, other, y], d, what)
    at.map(PlaceHolder(1) * wide(2, dtype), [total, f, d_c], d_c, "d_cell_state", PlaceHolder(3) if params.preserve_final_state else nothing)


def lstm_wu(
    graph: Graph, params: LstmParams, prog: Sequence, fwd_state_init: LstmState, fwd_intermediates: Tensor, bwd_intermediates: Tensor,
    weights: LstmWeights, in_: Tensor, output: Tensor, name: str = "", options: common.Options | None = None,
) -> LstmWeights:  # fmt: skip
    """The gradients of weights and biases, from what the two passes kept."""
    step = common.joined(name, "lstm_wu")
    made = rnn.product_options("lstm_wu", options)
    _check(step, params, fwd_state_init, in_, weights)
    _check_kept(step, params, fwd_intermediates, output=output)
    rnn.require(step, {"bwd_intermediates": (bwd_intermediates, (params.time_steps, params.batch_size, UNITS, params.outputs))}, params.data_type)
    d_inputs = rnn.weight_gradient(graph, params, in_, bwd_intermediates, prog, f"{step}/input_weights", made)
    d_outputs = rnn.weight_gradient(graph, params, fwd_intermediates[:, :, _HIDDEN], bwd_intermediates, prog, f"{step}/output_weights", made)
    return LstmWeights(d_inputs, d_outputs, rnn.bias_gradient(graph, bwd_intermediates, prog, step))


def lstm_bwd_with_wu(
    graph: Graph, params: LstmParams, prog: Sequence, fwd_state_init: LstmState, fwd_intermediates: Tensor, weights: LstmWeights, in_: Tensor,
    output: Tensor, output_grad: Tensor, last_step_state_grad: LstmState | Tensor | None, input_grad: list[Tensor] | None,
    weights_grad: list[LstmWeights], name: str = "", options: common.Options | None = None,
) -> LstmState:  # fmt: skip
    """``lstm_bwd``, then ``lstm_wu``, whose result is appended to ``weights_grad``."""
    kept: list[Tensor] = []
    state = lstm_bwd(
        graph, params, prog, fwd_state_init, fwd_intermediates, weights, in_, output, output_grad, last_step_state_grad, input_grad, kept, name, options
    )
    weights_grad.append(lstm_wu(graph, params, prog, fwd_state_init, fwd_intermediates, kept[0], weights, in_, output, name, options))
    return state


def _check(call: str, params: LstmParams, state: LstmState, in_: Tensor, weights: LstmWeights) -> None:
    inputs, outputs = params.layer_sizes
    shapes = {
        "the initial output": (state.output, params.state_shape),
        "the initial cell state": (state.cell_state, params.state_shape),
        "the input": (in_, (params.time_steps, params.batch_size, inputs)),
        "input_weights": (weights.input_weights, (UNITS, inputs, outputs)),
        "output_weights": (weights.output_weights, (UNITS, outputs, outputs)),
        "biases": (weights.biases, (UNITS, outputs)),
    }
    rnn.require(call, shapes, params.data_type)


def _check_kept(call: str, params: LstmParams, kept: Tensor, **outputs: Tensor) -> None:
    shape = (params.time_steps, *params.state_shape) if params.output_full_sequence else params.state_shape
    rnn.require(call, {"fwd_intermediates": (kept, (params.time_steps, params.batch_size, KEPT, params.outputs))}, params.data_type)
    rnn.require(call, {name: (t, shape) for name, t in outputs.items()}, params.data_type)
