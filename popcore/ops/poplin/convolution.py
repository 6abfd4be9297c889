"""Convolutions of any rank and their gradients. After ``poplin/Convolution.hpp``, in snake_case.

Activations are ``[batch, groups * channels, *field]``, weights ``[groups, output channels, input channels, *kernel]``; ``ConvParams`` says
the rest. Options of all of them: ``availableMemoryProportion`` (0.6: of a tile's memory that temporaries may take), ``partialsType``
("float"; "half" as in ``mat_mul``), ``pass`` (one of PopLibs' names; layouts are the same for all). All take a ``cache`` of plans; without one
the process has its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from popcore import program
from popcore.errors import ElementTypeError, GraphError, ShapeError
from popcore.graph import Graph, Tensor
from popcore.ops import popops
from popcore.ops.poplin.conv_params import ConvParams, channels_as_dimension, get_weight_update_params
from popcore.ops.poplin.convolve import Convolution
from popcore.ops.poplin.params import CONV_PASSES, Options, factor, settings_of
from popcore.ops.poplin.plan import PlanningCache
from popcore.ops.popops import common
from popcore.ops.poputil import map_tensor_linearly
from popcore.program import Copy
from popcore.types import FLOAT, ElementType

Cache = PlanningCache | None


@dataclass(frozen=True)
class PlanCosts:
    """What a plan is expected to take: cycles, and temporary bytes on the fullest tile."""

    cycles: int
    memory: int


def create_input(graph: Graph, params: ConvParams, name: str = "", options: Options = None, cache: Cache = None) -> Tensor:
    """Activations for ``convolution``, laid out and spread over tiles so that it moves as little as can be.

    Raises: OptionError
    """
    made = _convolution(graph, params, options, "create_input", cache)
    return made.as_input(made.new_data(params.types[0], name)[1]).reshape(params.input_shape)


def create_weights(graph: Graph, params: ConvParams, name: str = "", options: Options = None, cache: Cache = None) -> Tensor:
    """Weights for ``convolution``, laid out and spread as ``create_input`` does activations.

    Raises: OptionError
    """
    made = _convolution(graph, params, options, "create_weights", cache)
    return made.as_weights(made.weights.create(graph, params.types[0], made.weight_tiles, name)[1]).reshape(params.weights_shape)


def create_conv_output(graph: Graph, params: ConvParams, name: str = "", options: Options = None, cache: Cache = None) -> Tensor:
    """A result for ``convolution_with_output``, laid out and spread as ``convolution`` does its own.

    Raises: OptionError
    """
    made = _convolution(graph, params, options, "create_conv_output", cache)
    return made.as_result(made.new_output(params.types[1], name)).reshape(params.output_shape)


def create_biases(graph: Graph, activations: Tensor, name: str = "biases") -> Tensor:
    """A vector of one element a channel of ``activations``, ``[batch, channels, ...]``, in their type; mapped linearly.

    Raises: ShapeError
    """
    made = graph.add_variable(activations.dtype, (_channels(activations, "create_biases"),), name=name)
    map_tensor_linearly(graph, made)
    return made


def convolution(
    graph: Graph,
    activations: Tensor,
    weights: Tensor,
    params: ConvParams,
    transpose_and_flip_weights: bool,
    prog: program.Sequence,
    name: str = "",
    options: Options = None,
    cache: Cache = None,
) -> Tensor:
    """``activations`` convolved with ``weights``: ``[batch, groups * output channels, *output field]``, summed in FLOAT (or as ``partialsType`` says) and rounded once.

    Any views on any tiles; ones that ``create_input`` and ``create_weights`` made are moved least.

    Args:
        transpose_and_flip_weights: ``weights`` are those of the forward pass and ``params`` its ``get_gradient_params``: channels of input and
            output change places, and the kernel is turned around in every dimension.

    Raises:
        ShapeError, ElementTypeError: tensors that ``params`` does not describe.
        OptionError: an option that does not exist.
    Costs: build time linear in the tiles used and in the runs of neighbours that their inputs consist of; see ``report_plan_info`` for cycles.
    """
    call = name or "convolution"
    made, operands = _checked(graph, activations, weights, params, transpose_and_flip_weights, options, call, cache)
    out = made.new_output(params.types[1], call)
    made.put(*operands, out, prog, call)
    return made.as_result(out).reshape(params.output_shape)


def convolution_with_output(
    graph: Graph,
    activations: Tensor,
    weights: Tensor,
    out: Tensor,
    params: ConvParams,
    transpose_and_flip_weights: bool,
    prog: program.Sequence,
    name: str = "",
    options: Options = None,
    cache: Cache = None,
) -> None:
    """``convolution`` into ``out``, which stays where it is mapped."""
    call = name or "convolution_with_output"
    made, operands = _checked(graph, activations, weights, params, transpose_and_flip_weights, options, call, cache)
    _check(call, "out", out, params.output_shape, params.types[1])
    _check_written(call, out)
    made.put(*operands, made.out_view(out), prog, call)


def weights_transpose_chans_flip_xy(graph: Graph, weights_in: Tensor, weights_out: Tensor, prog: program.Sequence, name: str = "") -> None:
    """Copy weights with the channels of input and output changing places and the kernel turned around in every dimension.

    Raises: ShapeError, ElementTypeError: ``weights_out`` is no place for that.
    """
    del graph  # the names and order are PopLibs'
    call = name or "weights_transpose_chans_flip_xy"
    turned = _turned(weights_in, call)
    _check(call, "weights_out", weights_out, turned.shape, weights_in.dtype)
    prog.add(Copy(turned, weights_out, name=call))


def calculate_weight_deltas(
    graph: Graph,
    z_deltas: Tensor,
    activations: Tensor,
    params: ConvParams,
    prog: program.Sequence,
    name: str = "",
    options: Options = None,
    cache: Cache = None,
) -> Tensor:
    """The gradient of the weights, in ``params.data_type``, from that of the result.

    Args:
        params: Those of the forward pass.

    Raises: as ``convolution``.
    """
    call = name or "calculate_weight_deltas"
    made, operands = _weight_update(graph, z_deltas, activations, params, options, call, cache)
    out = made.new_output(params.types[0], call)
    made.put(*operands, out, prog, call)
    groups, outputs, inputs, *kernel = params.weights_shape
    by_input = made.as_result(out).reshape((inputs, groups, outputs, *kernel))
    return by_input.dim_shuffle([1, 2, 0, *range(3, by_input.rank)])


def convolution_weight_update(
    graph: Graph,
    z_deltas: Tensor,
    weights: Tensor,
    activations: Tensor,
    params: ConvParams,
    scale: float | Tensor,
    prog: program.Sequence,
    name: str = "",
    options: Options = None,
    cache: Cache = None,
) -> None:
    """``weights += scale * gradient``, in FLOAT, rounded to their type once. ``scale`` is minus the learning rate, a number or a scalar tensor.

    Raises: as ``convolution``.
    """
    call = name or "convolution_weight_update"
    _check(call, "weights", weights, params.weights_shape, params.types[0])
    _check_written(call, weights)
    made, operands = _weight_update(graph, z_deltas, activations, params, options, call, cache)
    groups, outputs, inputs, *_ = params.weights_shape
    by_input = weights.dim_shuffle([2, 0, 1, *range(3, weights.rank)]).reshape((inputs, groups * outputs, *made.params.output_field_shape))
    if made.plan.sum_parts == 1:
        made.add(*operands, made.out_view(by_input), factor(scale, call), prog, call)
        return
    gradient = made.new_output(FLOAT, f"{call}/gradient")  # on all tiles that have parts of it: the weights may be on a few
    made.put(*operands, gradient, prog, call)
    popops.scaled_add_to(graph, made.out_view(by_input), gradient, factor(scale, call), prog, call)


def add_bias(graph: Graph, activations: Tensor, biases: Tensor, prog: program.Sequence, name: str = "") -> None:
    """``activations[:, c] += biases[c]``

    Raises: ShapeError, ElementTypeError, GraphError
    """
    call = name or "add_bias"
    _check(call, "biases", biases, (_channels(activations, call),), activations.dtype)
    popops.add_in_place(graph, activations, biases.reshape((1, biases.num_elements, *(1,) * (activations.rank - 2))), prog, name=call)


def convolution_bias_update(
    graph: Graph, z_deltas: Tensor, biases: Tensor, scale: float | Tensor, options: Options, prog: program.Sequence, name: str = ""
) -> None:
    """``biases[c] += scale *`` the sum of ``z_deltas[:, c]``, summed in FLOAT.

    Raises: ShapeError, ElementTypeError, OptionError
    """
    call = name or "convolution_bias_update"
    settings_of(options, call, "pass", CONV_PASSES)
    _check(call, "biases", biases, (_channels(z_deltas, call),), biases.dtype)
    _check_written(call, biases)
    total = popops.reduce(graph, z_deltas, (0, *range(2, z_deltas.rank)), popops.Operation.ADD, prog, call, out_type=FLOAT)
    popops.scaled_add_to(graph, biases, total, factor(scale, call), prog, name=call)


def report_plan_info(graph: Graph, params: ConvParams, options: Options = None, cache: Cache = None) -> str:
    """What ``convolution`` would do, as text: splits, tiles, modelled cycles and memory."""
    return str(_convolution(graph, params, options, "report_plan_info", cache).plan)


def report_weight_update_plan_info(graph: Graph, fwd_params: ConvParams, options: Options = None, cache: Cache = None) -> str:
    """What ``calculate_weight_deltas`` of a forward pass would do, as text."""
    return str(_convolution(graph, _update_params(fwd_params), options, "report_weight_update_plan_info", cache).plan)


def report_plan_estimated_costs(graph: Graph, params: ConvParams, options: Options = None, cache: Cache = None) -> PlanCosts:
    """What ``convolution`` is expected to take."""
    made = _convolution(graph, params, options, "report_plan_estimated_costs", cache).plan
    return PlanCosts(made.cycles, made.temporary_bytes)


def _convolution(graph: Graph, params: ConvParams, options: Options, call: str, cache: Cache, added: bool = False) -> Convolution:
    """``added``: whether the result is to be added to something."""
    if not isinstance(params, ConvParams):
        raise GraphError(f"{call}: params are {params!r:.80}", "a ConvParams")
    return Convolution(graph, params, None if added else params.types[1], settings_of(options, call, "pass", CONV_PASSES), cache)


def _checked(
    graph: Graph, activations: Tensor, weights: Tensor, params: ConvParams, turned: bool, options: Options, call: str, cache: Cache
) -> tuple[Convolution, tuple[Tensor, Tensor]]:
    """The convolution, and its operands with the dimensions of its blocks."""
    made = _convolution(graph, params, options, call, cache)
    _check(call, "activations", activations, params.input_shape, params.types[0])
    if turned:
        groups, outputs, inputs, *kernel = params.weights_shape
        _check(call, "weights", weights, (groups, inputs, outputs, *kernel), params.types[0])
        weights = _turned(weights, call)
    _check(call, "weights", weights, params.weights_shape, params.types[0])
    return made, (made.data_view(activations), made.weights_view(weights))


def _update_params(params: ConvParams) -> ConvParams:
    """The convolution that gives the gradient of the weights. Where channels are by themselves they stay so, and the batch is one more dimension of the kernel."""
    made = get_weight_update_params(params)
    alone = params.input_channels_per_conv_group == params.output_channels_per_conv_group == 1
    return channels_as_dimension(made) if alone and params.batch_size else made


def _weight_update(
    graph: Graph, z_deltas: Tensor, activations: Tensor, params: ConvParams, options: Options, call: str, cache: Cache
) -> tuple[Convolution, tuple[Tensor, Tensor]]:
    """The convolution whose result is ``[input channels, groups * output channels, *kernel]`` of the weights; its operands."""
    _check(call, "z_deltas", z_deltas, params.output_shape, params.types[0])
    _check(call, "activations", activations, params.input_shape, params.types[0])
    groups, batch, inputs, outputs = params.num_conv_groups, params.batch_size, params.input_channels_per_conv_group, params.output_channels_per_conv_group
    data = activations.reshape((batch, groups, inputs, *params.input_field_shape))
    deltas = z_deltas.reshape((batch, groups, outputs, *params.output_field_shape))
    changed = _update_params(params)
    if changed.rank > params.rank:
        data = data.dim_shuffle([2, 1, 0, *range(3, data.rank)])
        deltas = deltas.dim_shuffle([1, 2, 0, *range(3, deltas.rank)]).expand([1])
    else:
        data = data.dim_shuffle([2, 1, 0, *range(3, data.rank)]).reshape((inputs, groups * batch, *params.input_field_shape))
        deltas = deltas.dim_shuffle([1, 2, 0, *range(3, deltas.rank)])
    made = _convolution(graph, changed, options, call, cache, added=True)
    return made, (made.data_view(data), made.weights_view(deltas))


def _turned(weights: Tensor, call: str) -> Tensor:
    if weights.rank < 3:
        raise ShapeError(f"{call}: weights {weights!r}", "[groups, output channels, input channels, *kernel]")
    made = weights.dim_shuffle([0, 2, 1, *range(3, weights.rank)])
    for d in range(3, made.rank):
        made = made.reverse(d)
    return made


def _channels(activations: Any, call: str) -> int:
    common.require_tensors(call, activations)
    if activations.rank < 2:
        raise ShapeError(f"{call} of {activations!r}", "(batch, channels, ...)")
    return int(activations.shape[1])


def _check(call: str, what: str, t: Any, shape: tuple[int, ...], dtype: ElementType) -> None:
    common.require_tensors(call, t)
    if t.shape != tuple(shape):
        raise ShapeError(f"{call}: {what} {t!r} have shape {list(t.shape)}, the parameters say {list(shape)}", f"{what} of {list(shape)}")
    if t.dtype is not dtype:
        raise ElementTypeError(f"{call}: {what} {t!r} are {t.dtype!r}, the parameters say {dtype!r}", "cast them, or other parameters")


def _check_written(call: str, t: Tensor) -> None:
    if not t.is_parallel_writeable:
        raise GraphError(f"{call}: {t!r} cannot be written, an element of it appears twice or is constant", "graph.add_variable or graph.clone")
