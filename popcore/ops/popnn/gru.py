"""Gated recurrent units: forward, backward and the weights' gradients, over a sequence, with or without attention. After ``popnn/Gru.hpp``.

With x a step's input, h the state, and s the recurrent activation, a the activation: ``r, u = s(x W + h U + b)``;
``n = a(x W + (r h) U + b)``, or if the reset comes after the product ``n = a(x W + b + r (h U + b'))``; ``h' = u h + (1 - u) n``.
An attention score multiplies u by one less it. Precision, and lists for tensors that are made: as in ``lstm``.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import NamedTuple

from popcore.graph import Graph, Tensor, concat
from popcore.ops import poplin, popops
from popcore.ops.popnn import rnn
from popcore.ops.popnn.non_linearity import FUNCTIONS, SLOPES
from popcore.ops.popops import common
from popcore.ops.popops.expr import Const, Expr, PlaceHolder
from popcore.ops.popops.widths import wide
from popcore.ops.poputil import map_tensor_linearly
from popcore.program import Copy, Sequence
from popcore.types import FLOAT


class BasicGruCellUnit(enum.IntEnum):
    """What a GRU has of each: two gates and the candidate for the state."""

    RESET_GATE = 0
    UPDATE_GATE = 1
    CANDIDATE = 2


UNITS = len(BasicGruCellUnit)
_RESET, _UPDATE, _CANDIDATE = BasicGruCellUnit
_PRODUCT = UNITS  # kept of a step after its units, if the reset comes after: h U + b' of the candidate


def get_default_basic_gru_cell_order() -> tuple[BasicGruCellUnit, ...]:
    """Reset gate, update gate, candidate."""
    return tuple(BasicGruCellUnit)


@dataclass(frozen=True)
class GruParams(rnn.RnnParams):
    """Sizes and rules of a GRU.

    cell_order: Which unit each entry of the first dimension of weights and biases belongs to.
    reset_after: The reset gate multiplies the product with the state, rather than the state. Biases are then (3, 2, outputs): those of
        the input, and those of the state.
    """

    cell_order: tuple[BasicGruCellUnit, ...] = get_default_basic_gru_cell_order()
    reset_after: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        rnn.require_order(self.cell_order, BasicGruCellUnit)

    def place(self, unit: BasicGruCellUnit) -> int:
        return self.cell_order.index(unit)

    @property
    def gates(self) -> list[int]:
        """Places of the reset gate and the update gate."""
        return [self.place(_RESET), self.place(_UPDATE)]

    @property
    def per_step(self) -> int:
        """Units of a step for which a pass keeps something, the candidate twice if the reset comes after; on the way there also the state before."""
        return UNITS + self.reset_after

    @property
    def bias_shape(self) -> tuple[int, ...]:
        return (UNITS, 2) if self.reset_after else (UNITS,)


class GruWeights(NamedTuple):
    """(3, inputs, outputs), (3, outputs, outputs), and (3, outputs) or with ``reset_after`` (3, 2, outputs)."""

    input_weights: Tensor
    output_weights: Tensor
    biases: Tensor


def create_input(graph: Graph, params: GruParams, name: str = "", options: common.Options | None = None) -> Tensor:
    """A tensor (time, batch, inputs) laid out for the product with the input weights. Options: as of ``lstm.create_input``."""
    return rnn.create_input(graph, params, UNITS, name, options)


def create_initial_state(graph: Graph, params: GruParams, name: str = "") -> Tensor:
    """(batch, outputs)"""
    return rnn.create_state(graph, params, common.joined(name, "initial_state"))


def create_weights_kernel(graph: Graph, params: GruParams, name: str = "", options: common.Options | None = None) -> tuple[Tensor, Tensor]:
    """The input weights and the output weights."""
    return rnn.create_kernel(graph, params, UNITS, name, options)


def create_weights_biases(graph: Graph, params: GruParams, name: str = "") -> Tensor:
    """(3, outputs), or with ``reset_after`` (3, 2, outputs)."""
    return rnn.create_biases(graph, params, params.bias_shape, name)


def create_weights(graph: Graph, params: GruParams, name: str = "", options: common.Options | None = None) -> GruWeights:
    """All of them."""
    return GruWeights(*create_weights_kernel(graph, params, name, options), create_weights_biases(graph, params, name))


def create_attention(graph: Graph, params: GruParams, name: str = "") -> Tensor:
    """Scores (batch, time), mapped linearly."""
    made = graph.add_variable(params.data_type, (params.batch_size, params.time_steps), name=common.joined(name, "attention"))
    map_tensor_linearly(graph, made)
    return made


def gru_fwd(
    graph: Graph, params: GruParams, state_init: Tensor, in_: Tensor, weights: GruWeights, intermediates: list[Tensor] | None, prog: Sequence,
    name: str = "", options: common.Options | None = None,
) -> Tensor:  # fmt: skip
    """Run the layer over ``in_`` (time, batch, inputs).

    Args:
        intermediates: Gets what the backward pass needs.

    Returns: the outputs (time, batch, outputs), or of the last step (batch, outputs).
    Raises: ShapeError, ElementTypeError: tensors that are not those of ``params``. OptionError
    Costs: a product for all steps together, then for each step one product, or two without ``reset_after``, and four to six compute sets.
    """
    return _forward(graph, params, state_init, in_, weights, intermediates, None, prog, common.joined(name, "gru_fwd"), options)


def au_gru_fwd(
    graph: Graph, params: GruParams, state_init: Tensor, in_: Tensor, weights: GruWeights, intermediates: list[Tensor] | None, att_scores: Tensor,
    prog: Sequence, name: str = "", options: common.Options | None = None,
) -> Tensor:  # fmt: skip
    """``gru_fwd`` with attention scores (batch, time)."""
    return _forward(graph, params, state_init, in_, weights, intermediates, att_scores, prog, common.joined(name, "au_gru_fwd"), options)


def _forward(
    graph: Graph, params: GruParams, state_init: Tensor, in_: Tensor, weights: GruWeights, intermediates: list[Tensor] | None, scores: Tensor | None,
    prog: Sequence, step: str, options: common.Options | None,
) -> Tensor:  # fmt: skip
    made = rnn.product_options(step, options)
    _check(step, params, state_init, in_, weights, scores)
    dtype, full = params.data_type, params.output_full_sequence
    h = rnn.state_like(graph, params, state_init, dtype, f"{step}/state")
    prog.add(Copy(state_init, h))
    biases = weights.biases[:, 0] if params.reset_after else weights.biases
    weighted = rnn.weighted_input(graph, params, in_, weights.input_weights, biases, h, prog, step, made)
    outputs = rnn.along(graph, h, dtype, f"{step}/outputs", params.time_steps) if full else None
    saved = rnn.along(graph, h, dtype, f"{step}/intermediates", params.time_steps, params.per_step + 1) if intermediates is not None else None
    cell = _Cell(graph, params, weights, h, prog, step, made)

    def body(at: rnn.TimeStep) -> None:
        score = None if scores is None else at.read(scores.transpose(), "score").expand([1])
        if saved is not None:
            at.prog.add(Copy(h, cell.kept[:, params.per_step]))
        cell.forward(at, at.read(weighted, "weighted_input"), score)
        if outputs is not None:
            at.write(outputs, rnn.shown(at, h), "outputs")
        if saved is not None:
            at.write(saved, cell.kept, "intermediates")

    prog.add(rnn.each_step(graph, params, body, step))
    if intermediates is not None and saved is not None:
        intermediates.append(saved)
    return h if outputs is None else outputs


class _Cell:
    """A step forward: its scratch tensors, and the state ``h`` that it moves on."""

    def __init__(self, graph: Graph, params: GruParams, weights: GruWeights, h: Tensor, prog: Sequence, step: str, options: common.Options) -> None:
        self.graph, self.params, self.h, self.step, self.options = graph, params, h, step, options
        self.biases = weights.biases if params.reset_after else None
        whole = weights.output_weights
        if params.reset_after:
            self.kernel = rnn.flat_units(whole)
        else:
            parts = rnn.flat_units(rnn.picked(whole, params.gates)), whole[params.place(_CANDIDATE)]
            self.kernel, self.candidate_kernel = (rnn.arranged(graph, t, params.batch_size, prog, f"{step}/kernel", options) for t in parts)
        dtype = params.data_type
        self.kept = rnn.along(graph, h, dtype, f"{step}/kept", units=params.per_step + 1)
        """What a backward pass needs of a step: units, with ``reset_after`` the candidate's product, then the state before."""
        self.units = self.kept[:, :UNITS]
        self.product = rnn.along(graph, h, FLOAT, f"{step}/product", units=UNITS)
        self.second = self.kept[:, _PRODUCT] if params.reset_after else rnn.along(graph, h, dtype, f"{step}/reset_state")

    def _multiply(self, at: rnn.TimeStep, left: Tensor, kernel: Tensor, places: list[int]) -> None:
        out = rnn.flat(rnn.picked(self.product, places, 1))
        poplin.mat_mul_with_output(self.graph, left, kernel, out, at.prog, f"{self.step}/product", self.options)

    def forward(self, at: rnn.TimeStep, weighted: Tensor, score: Tensor | None) -> None:
        """Writes ``kept``, but for the state before, and ``h``."""
        params, dtype, h, second = self.params, self.params.data_type, self.h, self.second
        gates, place = params.gates, params.place(_CANDIDATE)
        gate, act = FUNCTIONS[params.recurrent_activation], FUNCTIONS[params.activation]
        self._multiply(at, h, self.kernel, list(range(UNITS)) if params.reset_after else gates)
        parts = [rnn.picked(t, gates, 1) for t in (weighted, self.product, self.units)]
        biases = self.biases
        if biases is None:
            at.map(gate(PlaceHolder(1) + PlaceHolder(2)), parts[:2], parts[2], "gates")
        else:
            e = gate(PlaceHolder(1) + (PlaceHolder(2) + wide(3, dtype)))
            at.map(e, [*parts[:2], rnn.picked(biases, gates)[:, 1]], parts[2], "gates")
        reset, update, candidate = (self.units[:, params.place(u)] for u in BasicGruCellUnit)
        if biases is None:
            at.map(wide(1, dtype) * wide(2, dtype), [reset, h], second, "reset_state")
            self._multiply(at, second, self.candidate_kernel, [place])
            at.map(act(PlaceHolder(1) + PlaceHolder(2)), [weighted[:, place], self.product[:, place]], candidate, "candidate")
        else:
            at.map(PlaceHolder(1) + wide(2, dtype), [self.product[:, place], biases[place, 1]], second, "candidate_product")
            at.map(act(PlaceHolder(1) + wide(2, dtype) * wide(3, dtype)), [weighted[:, place], reset, second], candidate, "candidate")
        share, more = _share(2, params, score, 4)
        n, old = wide(1, dtype), wide(3, dtype)
        at.map(n + share * (old - n), [candidate, update, h, *more], h, "state", old)


def _share(k: int, params: GruParams, score: Tensor | None, at: int) -> tuple[Expr, list[Tensor]]:
    """The update gate, placeholder ``k``, less what the attention score, placeholder ``at``, takes of it; and the tensor of that one."""
    u = wide(k, params.data_type)
    return (u, []) if score is None else (u - wide(at, score.dtype) * u, [score])


def gru_bwd(
    graph: Graph, params: GruParams, prog: Sequence, fwd_output_init: Tensor, fwd_intermediates: Tensor, weights: GruWeights, fwd_input_seq: Tensor,
    fwd_output: Tensor, grad_layer_next: Tensor, input_grad: list[Tensor] | None, bwd_intermediates: list[Tensor] | None,
    name: str = "", options: common.Options | None = None,
) -> Tensor:  # fmt: skip
    """Go back through the steps.

    Args:
        fwd_intermediates: What ``gru_fwd`` appended.
        fwd_output, grad_layer_next: What ``gru_fwd`` gave, and the gradient of it.
        input_grad: Gets the gradient of the input.
        bwd_intermediates: Gets what ``gru_wu`` needs.

    Returns: the gradient of the initial state.
    """
    back = _Back(graph, params, fwd_output_init, fwd_intermediates, weights, fwd_input_seq, fwd_output, common.joined(name, "gru_bwd"), options)
    return back.run(grad_layer_next, input_grad, bwd_intermediates, None, None, prog)


def au_gru_bwd(
    graph: Graph, params: GruParams, prog: Sequence, fwd_output_init: Tensor, fwd_intermediates: Tensor, weights: GruWeights, fwd_input_seq: Tensor,
    fwd_output: Tensor, grad_layer_next: Tensor, input_grad: list[Tensor] | None, bwd_intermediates: list[Tensor] | None, attentions: Tensor,
    attentions_grad: list[Tensor], name: str = "", options: common.Options | None = None,
) -> Tensor:  # fmt: skip
    """``gru_bwd`` with attention scores, whose gradient (batch, time) is appended to ``attentions_grad``."""
    back = _Back(graph, params, fwd_output_init, fwd_intermediates, weights, fwd_input_seq, fwd_output, common.joined(name, "au_gru_bwd"), options)
    return back.run(grad_layer_next, input_grad, bwd_intermediates, attentions, attentions_grad, prog)


class _Back:
    """The passes back of one layer."""

    def __init__(
        self, graph: Graph, params: GruParams, state_init: Tensor, kept: Tensor, weights: GruWeights, in_: Tensor, output: Tensor, step: str,
        options: common.Options | None,
    ) -> None:  # fmt: skip
        self.graph, self.params, self.kept, self.weights, self.in_, self.step = graph, params, kept, weights, in_, step
        self.options = rnn.product_options(step, options)
        _check(step, params, state_init, in_, weights, None)
        rnn.require(step, {"fwd_intermediates": (kept, (params.time_steps, params.batch_size, params.per_step + 1, params.outputs))}, params.data_type)
        rnn.require(step, {"the output": (output, _output_shape(params))}, params.data_type)
        self.states = kept[:, :, params.per_step]
        cand = params.place(_CANDIDATE)
        self.products = [_PRODUCT if params.reset_after and k == cand else k for k in range(UNITS)]
        """For each place of a unit, which kept gradient is that of its product with the state."""

    def run(
        self, output_grad: Tensor, input_grad: list[Tensor] | None, back: list[Tensor] | None, scores: Tensor | None, scores_grad: list[Tensor] | None,
        prog: Sequence,
    ) -> Tensor:  # fmt: skip
        """The pass of ``gru_bwd``."""
        graph, params, step = self.graph, self.params, self.step
        rnn.require(step, {"the gradient of the output": (output_grad, _output_shape(params))}, params.data_type)
        if scores is not None:
            rnn.require(step, {"attentions": (scores, (params.batch_size, params.time_steps))}, params.data_type)
        state = self.kept[0, :, 0]
        d_h = rnn.zeros(graph, state, FLOAT, prog, f"{step}/d_state")
        if not params.output_full_sequence:
            popops.scaled_add_to(graph, d_h, output_grad, 1.0, prog, name=step)
        d_units = rnn.along(graph, state, params.data_type, f"{step}/d_units", params.time_steps, params.per_step)
        d_scores = None if scores is None else graph.clone(scores, f"{step}/d_scores")
        cell = _CellBack(graph, params, self, d_h, prog)

        def body(at: rnn.TimeStep) -> None:
            grad = at.read(output_grad, "output_grad") if params.output_full_sequence else None
            score = None if scores is None else at.read(scores.transpose(), "score").expand([1])
            d_score = cell.backward(at, at.read(self.kept, "intermediates"), grad, score)
            at.write(d_units, cell.d_units, "d_units")
            if d_scores is not None and d_score is not None:
                at.write(d_scores.transpose(), d_score, "d_score")

        prog.add(rnn.each_step(graph, params, body, step, backward=True))
        if input_grad is not None and params.calc_input_gradients:
            input_grad.append(rnn.input_gradient(graph, params, d_units[:, :, :UNITS], self.weights.input_weights, prog, step, self.options))
        if back is not None:
            back.append(d_units)
        if scores_grad is not None and d_scores is not None:
            scores_grad.append(d_scores)
        return popops.cast(graph, d_h, params.data_type, prog, step)

    def weights_gradient(self, d_units: Tensor, prog: Sequence) -> GruWeights:
        """The pass of ``gru_wu``."""
        graph, params, step = self.graph, self.params, self.step
        rnn.require(step, {"bwd_intermediates": (d_units, (params.time_steps, params.batch_size, params.per_step, params.outputs))}, params.data_type)
        inputs, recurrent = d_units[:, :, :UNITS], rnn.picked(d_units, self.products, 2)
        d_inputs = rnn.weight_gradient(graph, params, self.in_, inputs, prog, f"{step}/input_weights", self.options)
        d_biases = rnn.bias_gradient(graph, inputs, prog, step)
        if params.reset_after:
            d_outputs = rnn.weight_gradient(graph, params, self.states, recurrent, prog, f"{step}/output_weights", self.options)
            both = [d_biases, rnn.bias_gradient(graph, recurrent, prog, step)]
            return GruWeights(d_inputs, d_outputs, concat([t.expand([1]) for t in both], 1))
        d_gates = rnn.weight_gradient(graph, params, self.states, rnn.picked(d_units, params.gates, 2), prog, f"{step}/gates", self.options)
        reset = popops.mul(graph, self.kept[:, :, params.place(_RESET)], self.states, prog, f"{step}/reset_states")
        cand = params.place(_CANDIDATE)
        d_candidate = rnn.weight_gradient(graph, params, reset, d_units[:, :, cand : cand + 1], prog, f"{step}/candidate", self.options)
        by_place = dict(zip([*params.gates, cand], [d_gates[0], d_gates[1], d_candidate[0]], strict=True))
        return GruWeights(d_inputs, concat([by_place[k].expand([0]) for k in range(UNITS)]), d_biases)


class _CellBack:
    """A step back: its scratch tensors, and the gradient ``d_h`` of the state that it moves back."""

    def __init__(self, graph: Graph, params: GruParams, layer: _Back, d_h: Tensor, prog: Sequence) -> None:
        self.graph, self.params, self.layer, self.d_h, self.step = graph, params, layer, d_h, layer.step
        kernel, batch = layer.weights.output_weights, params.batch_size
        self.d_units = rnn.along(graph, d_h, params.data_type, f"{self.step}/d_units", units=params.per_step)
        self.d_total, self.product, self.d_share = (rnn.along(graph, d_h, FLOAT, f"{self.step}/{what}") for what in ("d_total", "product", "d_share"))
        self.places = list(range(UNITS)) if params.reset_after else params.gates
        picked = rnn.flat_units(rnn.picked(kernel, self.places))
        self.kernel = rnn.arranged(graph, picked.transpose(), batch, prog, f"{self.step}/kernel", layer.options)
        if not params.reset_after:
            self.d_reset_state = rnn.along(graph, d_h, FLOAT, f"{self.step}/d_reset_state")
            self.candidate_kernel = rnn.arranged(
                graph, kernel[params.place(_CANDIDATE)].transpose(), batch, prog, f"{self.step}/candidate_kernel", layer.options
            )

    def backward(self, at: rnn.TimeStep, kept: Tensor, output_grad: Tensor | None, score: Tensor | None) -> Tensor | None:
        """Writes ``d_units`` and ``d_h``. Returns: the gradient of the score, if there is one."""
        params, dtype, d_total, d_h = self.params, self.params.data_type, self.d_total, self.d_h
        reset, update, candidate = (kept[:, params.place(u)] for u in BasicGruCellUnit)
        before = kept[:, params.per_step]
        d_reset, d_update, d_candidate = (self.d_units[:, params.place(u)] for u in BasicGruCellUnit)
        incoming = PlaceHolder(1) if output_grad is None else PlaceHolder(1) + wide(2, output_grad.dtype)
        at.map(incoming, [d_h] if output_grad is None else [d_h, output_grad], d_total, "d_total", Const(0.0, FLOAT))
        share, more = _share(2, params, score, 4)
        slope = SLOPES[params.activation]
        at.map(PlaceHolder(1) * (Const(1.0) - share) * slope(wide(3, dtype)), [d_total, update, candidate, *more], d_candidate, "d_candidate")
        at.map(PlaceHolder(1) * (wide(2, dtype) - wide(3, dtype)), [d_total, before, candidate], self.d_share, "d_share")
        gate = SLOPES[params.recurrent_activation]
        through = PlaceHolder(1) * gate(wide(2, dtype))
        at.map(through if score is None else through * (Const(1.0) - wide(3, dtype)), [self.d_share, update, *more], d_update, "d_update_gate")
        if params.reset_after:
            self._through_product(at, kept[:, _PRODUCT], reset, d_reset, d_candidate)
        else:
            self._through_state(at, before, reset, d_reset, d_candidate)
        left = rnn.flat(rnn.picked(self.d_units, [self.layer.products[k] for k in self.places], 1))
        poplin.mat_mul_with_output(self.graph, left, self.kernel, self.product, at.prog, f"{self.step}/product", self.layer.options)
        e, tensors = PlaceHolder(1) + PlaceHolder(2) * _share(3, params, score, 5)[0], [self.product, d_total, update, d_h, *more]
        if not params.reset_after:
            k = len(tensors)
            e, tensors = e + PlaceHolder(k + 1) * wide(k + 2, dtype), [*tensors, self.d_reset_state, reset]
        at.map(e, tensors, d_h, "d_state", PlaceHolder(4))
        return None if score is None else self._score(at, update)

    def _through_product(self, at: rnn.TimeStep, product: Tensor, reset: Tensor, d_reset: Tensor, d_candidate: Tensor) -> None:
        """The reset gate multiplied ``product``."""
        dtype, gate = self.params.data_type, SLOPES[self.params.recurrent_activation]
        at.map(wide(1, dtype) * wide(2, dtype) * gate(wide(3, dtype)), [d_candidate, product, reset], d_reset, "d_reset_gate")
        at.map(wide(1, dtype) * wide(2, dtype), [d_candidate, reset], self.d_units[:, _PRODUCT], "d_candidate_product")

    def _through_state(self, at: rnn.TimeStep, before: Tensor, reset: Tensor, d_reset: Tensor, d_candidate: Tensor) -> None:
        """The reset gate multiplied the state ``before``."""
        dtype, gate = self.params.data_type, SLOPES[self.params.recurrent_activation]
        poplin.mat_mul_with_output(
            self.graph, d_candidate, self.candidate_kernel, self.d_reset_state, at.prog, f"{self.step}/candidate_product", self.layer.options
        )
        at.map(PlaceHolder(1) * wide(2, dtype) * gate(wide(3, dtype)), [self.d_reset_state, before, reset], d_reset, "d_reset_gate")

    def _score(self, at: rnn.TimeStep, update: Tensor) -> Tensor:
        taken = popops.map(self.graph, -(PlaceHolder(1) * wide(2, update.dtype)), [self.d_share, update], at.prog, f"{self.step}/d_score")
        return popops.reduce(self.graph, taken, [1], popops.Operation.ADD, at.prog, f"{self.step}/d_score", out_type=update.dtype)


def gru_wu(
    graph: Graph, params: GruParams, prog: Sequence, fwd_output_init: Tensor, fwd_intermediates: Tensor, bwd_intermediates: Tensor,
    weights: GruWeights, in_: Tensor, output: Tensor, name: str = "", options: common.Options | None = None,
) -> GruWeights:  # fmt: skip
    """The gradients of weights and biases, from what the two passes kept."""
    step = common.joined(name, "gru_wu")
    return _Back(graph, params, fwd_output_init, fwd_intermediates, weights, in_, output, step, options).weights_gradient(bwd_intermediates, prog)


au_gru_wu = gru_wu


def gru_bwd_with_wu(
    graph: Graph, params: GruParams, prog: Sequence, fwd_output_init: Tensor, fwd_intermediates: Tensor, weights: GruWeights, in_: Tensor,
    output: Tensor, output_grad: Tensor, input_grad: list[Tensor] | None, weights_grad: list[GruWeights], name: str = "",
    options: common.Options | None = None,
) -> Tensor:  # fmt: skip
    """``gru_bwd``, then ``gru_wu``, whose result is appended to ``weights_grad``."""
    back = _Back(graph, params, fwd_output_init, fwd_intermediates, weights, in_, output, common.joined(name, "gru_bwd_with_wu"), options)
    return _both(back, output_grad, input_grad, weights_grad, None, None, prog)


def au_gru_bwd_with_wu(
    graph: Graph, params: GruParams, prog: Sequence, fwd_output_init: Tensor, fwd_intermediates: Tensor, weights: GruWeights, in_: Tensor,
    output: Tensor, output_grad: Tensor, input_grad: list[Tensor] | None, weights_grad: list[GruWeights], attentions: Tensor,
    attentions_grad: list[Tensor], name: str = "", options: common.Options | None = None,
) -> Tensor:  # fmt: skip
    """The same with attention scores."""
    back = _Back(graph, params, fwd_output_init, fwd_intermediates, weights, in_, output, common.joined(name, "au_gru_bwd_with_wu"), options)
    return _both(back, output_grad, input_grad, weights_grad, attentions, attentions_grad, prog)


def _both(
    back: _Back, output_grad: Tensor, input_grad: list[Tensor] | None, weights_grad: list[GruWeights], scores: Tensor | None,
    scores_grad: list[Tensor] | None, prog: Sequence,
) -> Tensor:  # fmt: skip
    kept: list[Tensor] = []
    state = back.run(output_grad, input_grad, kept, scores, scores_grad, prog)
    weights_grad.append(back.weights_gradient(kept[0], prog))
    return state


def _output_shape(params: GruParams) -> tuple[int, ...]:
    return (params.time_steps, *params.state_shape) if params.output_full_sequence else params.state_shape


def _check(call: str, params: GruParams, state: Tensor, in_: Tensor, weights: GruWeights, scores: Tensor | None) -> None:
    inputs, outputs = params.layer_sizes
    shapes: dict[str, tuple[Tensor, tuple[int, ...]]] = {
        "the initial state": (state, params.state_shape),
        "the input": (in_, (params.time_steps, params.batch_size, inputs)),
        "input_weights": (weights.input_weights, (UNITS, inputs, outputs)),
        "output_weights": (weights.output_weights, (UNITS, outputs, outputs)),
        "biases": (weights.biases, (*params.bias_shape, outputs)),
    }
    if scores is not None:
        shapes["att_scores"] = (scores, (params.batch_size, params.time_steps))
    rnn.require(call, shapes, params.data_type)
