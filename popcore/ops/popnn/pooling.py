"""Pooling over windows of a field of any rank, and its gradient. After ``popnn/Pooling.hpp``, in snake_case.

Activations are ``[batch, channels, *field]``. Padding belongs to no window: a mean is over what of its window lies in the input.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from popcore import program
from popcore.codelets.operations import FLOAT_TYPE
from popcore.codelets.pooling import PoolMax, PoolMaxGradient, PoolMaxMatches, PoolSum
from popcore.errors import ElementTypeError, OptionError, ShapeError, UnknownNameError
from popcore.graph import Graph, Tensor
from popcore.ops import popops
from popcore.ops.poplin.conv_params import ConvParams, InputTransform, OutputTransform, get_gradient_params
from popcore.ops.poplin.conv_params import get_fwd_flops as conv_flops
from popcore.ops.poplin.convolve import Convolution
from popcore.ops.poplin.cost import pool_cycles
from popcore.ops.poplin.params import Options, Settings
from popcore.ops.poplin.planned import typed
from popcore.ops.popops import common
from popcore.ops.popops.expr import Cast, Const, Expr, Max, PlaceHolder
from popcore.ops.poputil import map_tensor_linearly
from popcore.types import FLOAT, DTypeLike, ElementType, as_element_type

_SUM = as_element_type("float")


class PoolingType(enum.Enum):
    """What becomes of a window: its largest element, its mean, its sum."""

    MAX = "max"
    AVG = "avg"
    SUM = "sum"


@dataclass(frozen=True)
class PoolParams:
    """Windows of ``kernel_shape`` at every ``stride``, over a field that is padded with nothing, or truncated where the number is negative.

    Raises: ShapeError, ValueRangeError, ElementTypeError: what does not fit.
    """

    pooling_type: PoolingType
    input_field_shape: Sequence[int]
    kernel_shape: Sequence[int]
    stride: Sequence[int]
    input_truncation_or_padding_lower: Sequence[int]
    input_truncation_or_padding_upper: Sequence[int]
    num_channels: int
    batch_size: int
    data_type: DTypeLike

    def __post_init__(self) -> None:
        if not isinstance(self.pooling_type, PoolingType):
            raise UnknownNameError(f"there is no pooling {self.pooling_type!r}", ", ".join(f"PoolingType.{k}" for k in PoolingType.__members__))
        _ = self.windows

    @property
    def windows(self) -> ConvParams:
        """The convolution, each channel by itself, that has these windows."""
        low, high = self.input_truncation_or_padding_lower, self.input_truncation_or_padding_upper
        parts = [[max(0, sign * x) for x in given] for sign in (-1, 1) for given in (low, high)]
        ranks = {len(x) for x in (self.input_field_shape, self.kernel_shape, self.stride, low, high)}
        if len(ranks) != 1:
            raise ShapeError(
                f"PoolParams of a field {list(self.input_field_shape)}: kernel, stride or padding has another number of dimensions", "one number each"
            )
        return ConvParams(
            self.data_type,
            self.batch_size,
            self.input_field_shape,
            self.kernel_shape,
            1,
            1,
            self.num_channels,
            InputTransform(parts[0], parts[1], (), parts[2], parts[3]),
            output_transform=OutputTransform(stride=self.stride),
        )

    @property
    def output_field_shape(self) -> tuple[int, ...]:
        return self.windows.output_field_shape


def get_output_field_shape(params: PoolParams) -> tuple[int, ...]:
    """The field of the result."""
    return params.output_field_shape


def get_fwd_flops(params: PoolParams) -> int:
    """One for each element of each window, and one for each mean."""
    windows = params.windows
    means = math.prod(windows.output_shape) if params.pooling_type is PoolingType.AVG else 0
    return conv_flops(windows) // 2 + means


def pool(graph: Graph, params: PoolParams, activations: Tensor, prog: program.Sequence, name: str = "", options: Options = None) -> Tensor:
    """The windows' maxima, means or sums: ``[batch, channels, *output field]``. Sums are in FLOAT and rounded once.

    A window without any element gives minus infinity (of HALF -65504), 0 and 0. A maximum leaves NaN out.

    Args:
        options: ``poolUseIntrospectiveMapping``, ``optimizeForSpeed``, ``useFloatPartialsWhereBeneficial``: PopLibs' names; nothing depends on them here.

    Raises: ShapeError, ElementTypeError: activations that ``params`` do not describe. OptionError.
    """
    call = name or "pool"
    windows = _checked(call, params, options, activations=activations)
    made = _Pooling(graph, windows)
    dtype = windows.types[0]
    if params.pooling_type is PoolingType.MAX:
        out = made.new_output(dtype, call)
        least = popops.Operation.MAX.identity(dtype)
        if made.nothing:
            popops.fill(graph, out, prog, least, name=call)
        else:
            made.place(PoolMax, {"data": activations}, {}, out, prog, call, least=least)
        return made.as_result(out).reshape(windows.output_shape)
    total = made.sums(PoolSum, {"data": activations}, {}, prog, call).reshape(windows.output_shape)
    if params.pooling_type is PoolingType.SUM:
        return _rounded(graph, total, dtype, prog, call)
    return _scaled(graph, total, windows, dtype, prog, call)


def pool_input_gradient(
    graph: Graph,
    params: PoolParams,
    activations: Tensor | None,
    pooled: Tensor | None,
    pooled_gradient: Tensor,
    use_scaled_gradient: bool,
    prog: program.Sequence,
    name: str = "",
    options: Options = None,
) -> Tensor:
    """The gradient of the activations, from that of the result.

    Args:
        activations, pooled: What was pooled, and the result: of a maximum. Of means and sums they are not needed: None.
        use_scaled_gradient: Where several elements of a window are its maximum, share the gradient out to them; else each gets all of it.

    Raises: ShapeError, ElementTypeError, OptionError
    """
    call = name or "pool_input_gradient"
    windows = _checked(call, params, options, pooled_gradient=pooled_gradient)
    backward, dtype = get_gradient_params(windows), windows.types[0]
    gradient = pooled_gradient
    if params.pooling_type is not PoolingType.MAX:
        if params.pooling_type is PoolingType.AVG:
            gradient, backward = _scaled(graph, gradient, windows, _SUM, prog, call), get_gradient_params(_of_type(windows, _SUM))
        made = _Pooling(graph, backward)
        return _rounded(graph, made.sums(PoolSum, {"data": gradient}, {}, prog, call).reshape(windows.input_shape), dtype, prog, call)
    _checked(call, params, options, activations=activations, pooled=pooled)
    if use_scaled_gradient:
        count = _Pooling(graph, windows).sums(PoolMaxMatches, {"data": activations}, {"pooled": pooled}, prog, f"{call}/count")
        share = _wide(1, dtype) / Max(PlaceHolder(2), Const(1.0))
        gradient = popops.map(graph, share if dtype is FLOAT else Cast(share, dtype), [gradient, count.reshape(windows.output_shape)], prog, f"{call}/scale")
    made = _Pooling(graph, backward)
    total = made.sums(PoolMaxGradient, {"data": gradient, "pooled": pooled}, {"acts": activations}, prog, call)
    return _rounded(graph, total.reshape(windows.input_shape), dtype, prog, call)


class _Pooling(Convolution):
    """Windows over tiles, planned as a convolution in which each channel is by itself."""

    def __init__(self, graph: Graph, windows: ConvParams) -> None:
        super().__init__(graph, windows, FLOAT_TYPE, Settings(), whole_kernel=True)

    def sums(self, codelet: Any, data: Mapping[str, Any], aligned: Mapping[str, Any], prog: program.Sequence, name: str) -> Tensor:
        """``place`` into a new FLOAT tensor ``[batch, channels, *field]``; 0 where there is nothing to sum."""
        out = self.new_output(FLOAT, name)
        if self.nothing:
            popops.zero(self.graph, out, prog, name)
        else:
            self.place(codelet, data, aligned, out, prog, name)
        return self.as_result(out)

    def place(self, codelet: Any, data: Mapping[str, Any], aligned: Mapping[str, Any], out: Tensor, prog: program.Sequence, name: str, **values: float) -> None:
        """Add vertices of ``codelet`` that write ``out``, new and with the dimensions of its blocks.

        Args:
            data: Fields that see the windows' elements; ``[batch, channels, *field]`` of the input.
            aligned: Fields that see what lies where the result does.
            values: Fields that hold the same number in all vertices.
        """
        p, v, target = self.plan, self.vertices, self.graph.target
        connections: dict[str, Any] = {**values, "work": self.work(v.columns), "out": (self.out.view(out), v.start, v.rows, v.columns)}
        for field, t in data.items():
            slabs, begin = self.slabs(self.arranged(self.data_view(t), prog, f"{name}/{field}"))
            at = begin[v.g, v.j, v.i]
            connections[field] = slabs, at[..., 0], at[..., 1]
        for field, t in aligned.items():
            there = self.out.arranged(self.graph, self.out_view(t), self.out_tiles, prog, f"{name}/{field}")
            connections[field] = there, v.start, v.rows, v.columns
        each = pool_cycles(target, p.problem, v.rows, v.elements, v.columns, len(data) > 1)
        step = self.graph.add_compute_set(name)
        self.graph.add_vertices(step, typed(codelet, p.problem.dtype), connections, v.tiles, -(-each // target.num_worker_contexts))
        prog.add(program.Execute(step))


def _of_type(windows: ConvParams, dtype: ElementType) -> ConvParams:
    return ConvParams(**{**vars(windows), "data_type": dtype, "output_type": dtype})


def _wide(k: int, dtype: ElementType) -> Expr:
    return PlaceHolder(k) if dtype is FLOAT else Cast(PlaceHolder(k), FLOAT)


def _rounded(graph: Graph, t: Tensor, dtype: ElementType, prog: program.Sequence, name: str) -> Tensor:
    return t if dtype is t.dtype else popops.cast(graph, t, dtype, prog, name=f"{name}/cast")


def _scaled(graph: Graph, t: Tensor, windows: ConvParams, dtype: ElementType, prog: program.Sequence, name: str) -> Tensor:
    """``t``, of a result's shape, over the number of elements in each window, as ``dtype``; 0 for a window without any."""
    held = np.ones((), np.int64)
    for d in range(windows.rank):
        held = held[..., None] * (windows.input_indices(d) >= 0).sum(axis=1)
    factors = np.where(held > 0, 1 / np.maximum(held, 1), 0).astype(np.float32)
    scale = graph.add_constant(FLOAT, (1, 1, *factors.shape), factors[None, None], name=f"{name}/scale")
    map_tensor_linearly(graph, scale)
    e = _wide(1, t.dtype) * PlaceHolder(2)
    return popops.map(graph, e if dtype is FLOAT else Cast(e, dtype), [t, scale], prog, f"{name}/scale")


def _checked(call: str, params: PoolParams, options: Options, **tensors: Any) -> ConvParams:
    """Raises: GraphError, ShapeError, ElementTypeError, OptionError"""
    for option in options or {}:
        if option not in ("poolUseIntrospectiveMapping", "optimizeForSpeed", "useFloatPartialsWhereBeneficial"):
            raise OptionError(f"{call}: there is no option {option!r}", "poolUseIntrospectiveMapping, optimizeForSpeed, useFloatPartialsWhereBeneficial")
    windows = params.windows
    for name, t in tensors.items():
        common.require_tensors(call, t)
        shape = windows.input_shape if name == "activations" else windows.output_shape
        if t.shape != shape:
            raise ShapeError(f"{call}: {name} {t!r} is {list(t.shape)}, the parameters say {list(shape)}", f"{name} of {list(shape)}")
        if t.dtype is not windows.types[0]:
            raise ElementTypeError(f"{call}: {name} {t!r} is {t.dtype!r}, the parameters say {windows.types[0]!r}", "cast it, or other parameters")
    return windows
