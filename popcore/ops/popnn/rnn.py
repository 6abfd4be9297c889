"""What recurrent layers share: their sizes, tensors on the right tiles, and a program that goes through the time steps.

After ``popnn/Rnn.hpp``. A sequence is ``(time, ...)``; all its entries for one element of the state ``(batch, outputs)`` live on the
tile of that element, so that a step moves nothing but the operands of its products.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from popcore.errors import ElementTypeError, GraphError, OptionError, ShapeError
from popcore.graph import Graph, Tensor, concat
from popcore.ops import poplin, popops
from popcore.ops.popnn.non_linearity import NonLinearityType
from popcore.ops.popops import common
from popcore.ops.popops.expr import Const, Expr, Lt, PlaceHolder, Select
from popcore.ops.popops.placing import mapped_runs, output_like
from popcore.ops.popops.widths import rounded, wide
from popcore.ops.poputil import map_tensor_linearly
from popcore.program import Copy, Program, Sequence
from popcore.types import FLOAT, UNSIGNED_INT, DTypeLike, ElementType, as_element_type

ACTIVATIONS = (NonLinearityType.SIGMOID, NonLinearityType.HARD_SIGMOID, NonLinearityType.RELU, NonLinearityType.TANH)
"""Those whose slope follows from their value, which is what a forward pass keeps."""

OPTIONS = {
    "inferenceOnly": ("false", "true"),
    "preCalcWeights": ("false", "true"),
    "recomputationMode": ("none", "cellAndTanh", "full"),
}
"""Taken for the sake of programs that set them. Inputs are always multiplied in one product for all steps; a forward pass keeps what it is asked to."""
PRODUCT_OPTIONS = ("availableMemoryProportion", "partialsType")


@dataclass(frozen=True, kw_only=True)
class _Rules:
    activation: NonLinearityType = NonLinearityType.TANH
    recurrent_activation: NonLinearityType = NonLinearityType.SIGMOID
    var_time_steps: Tensor | None = None
    output_full_sequence: bool = True
    calc_input_gradients: bool = True


@dataclass(frozen=True)
class RnnParams(_Rules):
    """Sizes and rules of a recurrent layer.

    time_steps: Of the sequence; the most of any example.
    layer_sizes: (inputs, outputs).
    activation, recurrent_activation: Of candidates and states, and of gates. SIGMOID, HARD_SIGMOID, RELU or TANH.
    var_time_steps: An UNSIGNED_INT tensor of one element, or one an example: how many steps there really are. What comes after gives
        outputs of 0.
    output_full_sequence: Whether the output is that of all steps, or of the last one.
    calc_input_gradients: Whether a backward pass that can give the gradient of the input does.
    """

    data_type: ElementType
    batch_size: int
    time_steps: int
    layer_sizes: tuple[int, int]

    def __post_init__(self) -> None:
        object.__setattr__(self, "data_type", as_element_type(self.data_type))
        object.__setattr__(self, "layer_sizes", tuple(self.layer_sizes))
        if self.data_type.kind not in ("float", "half"):
            raise ElementTypeError(f"a recurrent layer of {self.data_type!r}", "FLOAT or HALF")
        if len(self.layer_sizes) != 2 or min(self.time_steps, self.batch_size, *self.layer_sizes) < 1:
            sizes = f"{self.time_steps} steps of {self.batch_size} examples with layer sizes {list(self.layer_sizes)}"
            raise ShapeError(f"a recurrent layer of {sizes}", "at least one of each, and layer_sizes (inputs, outputs)")
        for kind in (self.activation, self.recurrent_activation):
            if kind not in ACTIVATIONS:
                raise GraphError(f"a recurrent layer with activation {kind}", ", ".join(f"NonLinearityType.{k.name}" for k in ACTIVATIONS))
        steps = self.var_time_steps
        if steps is not None and (steps.dtype is not UNSIGNED_INT or steps.shape not in ((), (1,), (self.batch_size,))):
            raise ShapeError(f"the time steps of a recurrent layer are {steps!r}", f"UNSIGNED_INT, one element or {self.batch_size}")

    @property
    def inputs(self) -> int:
        return self.layer_sizes[0]

    @property
    def outputs(self) -> int:
        return self.layer_sizes[1]

    @property
    def state_shape(self) -> tuple[int, int]:
        return self.batch_size, self.outputs


def product_options(call: str, options: common.Options | None) -> dict[str, Any]:
    """Those of ``options`` that products take; the rest are checked. Raises: OptionError"""
    given = dict(options or {})
    kept = {k: given.pop(k) for k in PRODUCT_OPTIONS if k in given}
    accumulators = str(given.pop("weightAccumulatorsType", "float"))
    if accumulators not in ("float", "half"):
        raise OptionError(f"option 'weightAccumulatorsType' of {call} is {accumulators!r}", "'float' or 'half': sums are FLOAT for both")
    common.read_options(call, given, OPTIONS)
    return kept


def create_input(graph: Graph, params: RnnParams, units: int, name: str, options: common.Options | None) -> Tensor:
    """A tensor (time, batch, inputs) laid out for the product with all input weights."""
    kept = product_options("create_input", options)
    rows = params.time_steps * params.batch_size
    made = poplin.create_mat_mul_input_lhs(graph, params.data_type, (rows, params.inputs), (params.inputs, units * params.outputs), name, kept)
    return made.reshape((params.time_steps, params.batch_size, params.inputs))


def create_kernel(graph: Graph, params: RnnParams, units: int, name: str, options: common.Options | None) -> tuple[Tensor, Tensor]:
    """Input weights (units, inputs, outputs) and recurrent weights (units, outputs, outputs), each laid out for its product."""
    kept = product_options("create_weights", options)
    width = units * params.outputs
    made = [
        poplin.create_mat_mul_input_rhs(graph, params.data_type, (rows, depth), (depth, width), common.joined(name, what), kept)
        for what, rows, depth in (
            ("input_weights", params.time_steps * params.batch_size, params.inputs),
            ("output_weights", params.batch_size, params.outputs),
        )
    ]
    return unflat_units(made[0], units), unflat_units(made[1], units)


def create_biases(graph: Graph, params: RnnParams, shape: tuple[int, ...], name: str) -> Tensor:
    """A tensor (*shape, outputs), mapped linearly."""
    made = graph.add_variable(params.data_type, (*shape, params.outputs), name=common.joined(name, "biases"))
    map_tensor_linearly(graph, made)
    return made


def create_state(graph: Graph, params: RnnParams, name: str) -> Tensor:
    """A tensor (batch, outputs) spread over as many tiles as can be, in grains of up to 16 elements as PopLibs does: they hold all that a step computes."""
    made = graph.add_variable(params.data_type, params.state_shape, name=name)
    grain = math.gcd(16, params.outputs)
    map_tensor_linearly(graph, made, grain, grain)
    return made


def flat_units(weights: Tensor) -> Tensor:
    """(units, rows, outputs) as the matrix (rows, units * outputs)."""
    units, rows, outputs = weights.shape
    return weights.dim_shuffle([1, 0, 2]).reshape((rows, units * outputs))


def unflat_units(matrix: Tensor, units: int) -> Tensor:
    """The opposite."""
    rows, width = matrix.shape
    return matrix.reshape((rows, units, width // units)).dim_shuffle([1, 0, 2])


def flat(t: Tensor) -> Tensor:
    """(..., batch, units, outputs) as the matrix (... * batch, units * outputs)."""
    return t.reshape((math.prod(t.shape[:-2]), t.shape[-2] * t.shape[-1]))


def state_like(graph: Graph, params: RnnParams, given: Tensor, dtype: ElementType, name: str) -> Tensor:
    """A new tensor (batch, outputs), where ``given`` is if that can be."""
    return output_like(graph, [given], params.state_shape, dtype, name)


def along(graph: Graph, state: Tensor, dtype: DTypeLike, name: str, steps: int | None = None, units: int | None = None) -> Tensor:
    """A new tensor like ``state``, or (batch, units, outputs); with ``steps`` one for each: each element is on the tile of its place in ``state``."""
    batch, outputs = state.shape
    begin, length, tile = mapped_runs(graph, state.flatten())
    if units is not None:  # runs of single examples, once for each unit
        first = np.unique(np.concatenate([begin, np.arange(batch) * outputs]))
        tile = np.repeat(tile[np.searchsorted(begin, first, "right") - 1], units)
        length = np.repeat(np.diff(first, append=state.num_elements), units)
        row, column = np.divmod(first[:, None], outputs)
        begin = ((row * units + np.arange(units)) * outputs + column).reshape(-1)
    shape = (batch, outputs) if units is None else (batch, units, outputs)
    made = graph.add_variable(dtype, shape if steps is None else (steps, *shape), name=name)
    count = 1 if steps is None else steps
    graph.map_intervals(made, (np.arange(count)[:, None] * math.prod(shape) + begin).reshape(-1), np.tile(length, count), np.tile(tile, count))
    return made


def zeros(graph: Graph, state: Tensor, dtype: DTypeLike, prog: Sequence, name: str) -> Tensor:
    """A new tensor of 0 like ``state``."""
    made = along(graph, state, dtype, name)
    popops.zero(graph, made, prog, name)
    return made


def weighted_input(
    graph: Graph, params: RnnParams, in_: Tensor, weights: Tensor, biases: Tensor, state: Tensor, prog: Sequence, name: str, options: common.Options
) -> Tensor:
    """``in_`` of all steps times the input weights, plus ``biases`` (units, outputs): (time, batch, units, outputs) of FLOAT."""
    units = weights.shape[0]
    made = along(graph, state, FLOAT, f"{name}/weighted_input", params.time_steps, units)
    rows = in_.reshape((params.time_steps * params.batch_size, params.inputs))
    poplin.mat_mul_with_output(graph, rows, flat_units(weights), flat(made), prog, f"{name}/weigh_input", options)
    popops.map_in_place(graph, PlaceHolder(1) + wide(2, biases.dtype), [made, biases], prog, f"{name}/biases")
    return made


def arranged(graph: Graph, kernel: Tensor, rows: int, prog: Sequence, name: str, options: common.Options) -> Tensor:
    """A copy of ``kernel`` laid out for products with a left side of ``rows``, so that a loop does not move it again and again."""
    depth = kernel.shape[0]
    made = poplin.create_mat_mul_input_rhs(graph, kernel.dtype, (rows, depth), kernel.shape, name, options)
    prog.add(Copy(kernel, made, name=name))
    return made


class TimeStep:
    """One round of the loop over time, under construction."""

    def __init__(self, graph: Graph, params: RnnParams, counter: Tensor, prog: Sequence, name: str) -> None:
        self.graph, self.params, self.counter, self.prog, self.name = graph, params, counter, prog, name

    def read(self, sequence: Tensor, what: str) -> Tensor:
        """This step's entry of ``sequence``, a new tensor."""
        return popops.dynamic_slice(self.graph, sequence, self.counter, [0], [1], self.prog, f"{self.name}/{what}")[0]

    def write(self, sequence: Tensor, value: Tensor, what: str) -> None:
        """``value`` becomes this step's entry."""
        popops.dynamic_update(self.graph, sequence, value.expand([0]), self.counter, [0], [1], self.prog, f"{self.name}/{what}")

    def map(self, e: Expr, tensors: list[Tensor], out: Tensor, what: str, otherwise: Expr | None = None) -> None:
        """``out`` becomes ``e``, which is FLOAT; with ``otherwise`` that, for examples that do not have this step."""
        limit = self.params.var_time_steps
        if limit is not None and otherwise is not None:
            limits = limit.reshape((self.params.batch_size, 1) if limit.num_elements > 1 else ())
            tensors = [*tensors, self.counter.reshape(()), limits]
            e = Select(e, otherwise, Lt(PlaceHolder(len(tensors) - 1), PlaceHolder(len(tensors))))
        popops.map_with_output(self.graph, rounded(e, out.dtype), tensors, out, self.prog, f"{self.name}/{what}")


def each_step(graph: Graph, params: RnnParams, body: Callable[[TimeStep], None], name: str, backward: bool = False) -> Program:
    """A loop over the time steps, from the first on or from the last back."""

    def inside(counter: Tensor) -> Program:
        prog = Sequence()
        body(TimeStep(graph, params, counter.reinterpret(UNSIGNED_INT), prog, name))
        return prog

    if backward:
        return popops.counted_loop(graph, params.time_steps - 1, -1, -1, inside, name=name)
    return popops.counted_loop(graph, params.time_steps, inside, name=name)


def require(call: str, shapes: Mapping[str, tuple[Tensor, tuple[int, ...]]], dtype: ElementType) -> None:
    """Raises: GraphError, ShapeError, ElementTypeError: a tensor, by its name in the call, that is not (tensor, shape) and of ``dtype``."""
    for name, (t, shape) in shapes.items():
        common.require_tensors(call, t)
        if t.shape != shape:
            raise ShapeError(f"{call}: {name} is {t!r}", f"shape {shape}")
        if t.dtype is not dtype:
            raise ElementTypeError(f"{call}: {name} is {t!r}", f"{dtype!r}, the data type of the layer")


def require_order(order: tuple[Any, ...], units: type[enum.IntEnum]) -> None:
    """Raises: GraphError: ``order`` does not have each of ``units`` once."""
    if sorted(order) != sorted(units):
        raise GraphError(f"cell_order is {order!r}", f"each {units.__name__} once")


def picked(t: Tensor, places: list[int], dim: int = 0) -> Tensor:
    """Entries of one dimension as one tensor."""
    return concat([t.slice(p, p + 1, dim) for p in places], dim)


def shown(at: TimeStep, state: Tensor) -> Tensor:
    """What a step's output is: the state, but 0 where an example that keeps its state does not have the step."""
    if at.params.var_time_steps is None:
        return state
    made = along(at.graph, state, state.dtype, f"{at.name}/shown")
    at.map(wide(1, state.dtype), [state], made, "shown", Const(0.0, FLOAT))
    return made


def input_gradient(graph: Graph, params: RnnParams, d_units: Tensor, weights: Tensor, prog: Sequence, name: str, options: common.Options) -> Tensor:
    """The gradient (time, batch, inputs) of the input, from that of all units."""
    made = poplin.mat_mul(graph, flat(d_units), flat_units(weights).transpose(), prog, name=f"{name}/input_gradient", options=options)
    return made.reshape((params.time_steps, params.batch_size, params.inputs))


def weight_gradient(graph: Graph, params: RnnParams, sequence: Tensor, d_units: Tensor, prog: Sequence, name: str, options: common.Options) -> Tensor:
    """The gradient (units, rows, outputs) of weights that ``sequence`` (time, batch, rows) was multiplied by."""
    rows = sequence.reshape((params.time_steps * params.batch_size, sequence.shape[2])).transpose()
    return unflat_units(poplin.mat_mul(graph, rows, flat(d_units), prog, name=name, options=options), d_units.shape[2])


def bias_gradient(graph: Graph, d_units: Tensor, prog: Sequence, name: str) -> Tensor:
    """The gradient (units, outputs) of what was added to all units."""
    return popops.reduce(graph, d_units, (0, 1), popops.Operation.ADD, prog, f"{name}/biases")
