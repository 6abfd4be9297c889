"""What a convolution is: shapes, and what is done to input, kernel and output. After ``poplin/ConvParams.hpp`` and ``ConvUtil.hpp``.

Input and kernel are truncated, dilated (zeros between), padded with zeros and flipped, in that order; one is slid over the other; of the
result some is truncated, every ``stride``-th element is kept, and zeros are padded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from popcore.errors import ShapeError, ValueRangeError
from popcore.ops.poplin.params import floating
from popcore.types import Array, DTypeLike, ElementType

Sizes = tuple[int, ...]


@dataclass(frozen=True)
class InputTransform:
    """What is done to each dimension of an input or kernel; an empty tuple: nothing."""

    truncation_lower: Sequence[int] = ()
    truncation_upper: Sequence[int] = ()
    dilation: Sequence[int] = ()
    padding_lower: Sequence[int] = ()
    padding_upper: Sequence[int] = ()
    flip: Sequence[bool] = ()


@dataclass(frozen=True)
class OutputTransform:
    """What is done to each dimension of a result; an empty tuple: nothing."""

    truncation_lower: Sequence[int] = ()
    truncation_upper: Sequence[int] = ()
    stride: Sequence[int] = ()
    padding_lower: Sequence[int] = ()
    padding_upper: Sequence[int] = ()


_NEUTRAL = {"dilation": 1, "stride": 1, "flip": False}


@dataclass(frozen=True)
class ConvParams:
    """Activations ``[batch_size, groups * input channels, *input_field_shape]``, weights ``[groups, output channels, input channels, *kernel_shape]``.

    Channels are counted per group. ``output_type`` is ``data_type`` if not given. Sums are always FLOAT.

    Raises: ShapeError, ValueRangeError: what does not fit, names the field and dimension. ElementTypeError: neither FLOAT nor HALF.
    """

    data_type: DTypeLike
    batch_size: int
    input_field_shape: Sequence[int]
    kernel_shape: Sequence[int]
    input_channels_per_conv_group: int
    output_channels_per_conv_group: int
    num_conv_groups: int = 1
    input_transform: InputTransform = field(default_factory=InputTransform)
    kernel_transform: InputTransform = field(default_factory=InputTransform)
    output_transform: OutputTransform = field(default_factory=OutputTransform)
    output_type: DTypeLike | None = None

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "data_type", floating(self.data_type, "ConvParams"))
        put(self, "output_type", self.data_type if self.output_type is None else floating(self.output_type, "ConvParams"))
        put(self, "input_field_shape", _sizes("input_field_shape", self.input_field_shape))
        put(self, "kernel_shape", _sizes("kernel_shape", self.kernel_shape))
        for name in ("batch_size", "input_channels_per_conv_group", "output_channels_per_conv_group", "num_conv_groups"):
            put(self, name, _sizes(name, [getattr(self, name)])[0])
        if len(self.kernel_shape) != self.rank:
            raise ShapeError(f"ConvParams: a kernel {list(self.kernel_shape)} for a field {list(self.input_field_shape)}", "as many dimensions in both")
        for name in ("input_transform", "kernel_transform", "output_transform"):
            put(self, name, _complete(name, getattr(self, name), self.rank))
        for d in range(self.rank):
            self._check(d)

    @property
    def rank(self) -> int:
        """Dimensions of the field."""
        return len(self.input_field_shape)

    @property
    def types(self) -> tuple[ElementType, ElementType]:
        """Element types of the operands and of the result."""
        return floating(self.data_type, "ConvParams"), floating(self.output_type or self.data_type, "ConvParams")

    @property
    def num_input_chans(self) -> int:
        return self.input_channels_per_conv_group * self.num_conv_groups

    @property
    def num_output_chans(self) -> int:
        return self.output_channels_per_conv_group * self.num_conv_groups

    @property
    def input_shape(self) -> Sizes:
        """Of the activations."""
        return (self.batch_size, self.num_input_chans, *self.input_field_shape)

    @property
    def weights_shape(self) -> Sizes:
        return (self.num_conv_groups, self.output_channels_per_conv_group, self.input_channels_per_conv_group, *self.kernel_shape)

    @property
    def output_shape(self) -> Sizes:
        """Of the result."""
        return (self.batch_size, self.num_output_chans, *self.output_field_shape)

    @property
    def output_field_shape(self) -> Sizes:
        return tuple(self.output_size(d) for d in range(self.rank))

    def transformed_input_size(self, d: int) -> int:
        return _transformed(self.input_field_shape[d], self.input_transform, d)

    def transformed_kernel_size(self, d: int) -> int:
        return _transformed(self.kernel_shape[d], self.kernel_transform, d)

    def untransformed_output_size(self, d: int) -> int:
        """Before the output's transform."""
        return self.transformed_input_size(d) - self.transformed_kernel_size(d) + 1

    def output_size(self, d: int) -> int:
        t = self.output_transform
        kept = self.untransformed_output_size(d) - t.truncation_lower[d] - t.truncation_upper[d]
        return t.padding_lower[d] + -(-kept // t.stride[d]) + t.padding_upper[d]

    def input_indices(self, d: int) -> Array:
        """int64[output size, kernel size]: the input element of dimension ``d`` that meets each kernel element at each output; -1: none."""
        i, k, out = self.input_transform, self.kernel_transform, self.output_transform
        o, e = np.arange(self.output_size(d)), np.arange(self.kernel_shape[d])
        at = (o - out.padding_lower[d]) * out.stride[d] + out.truncation_lower[d]
        there = (o >= out.padding_lower[d]) & (o < o.size - out.padding_upper[d])
        element = (e - k.truncation_lower[d]) * k.dilation[d] + k.padding_lower[d]
        used = (e >= k.truncation_lower[d]) & (e < e.size - k.truncation_upper[d])
        if k.flip[d]:
            element = self.transformed_kernel_size(d) - 1 - element
        x = at[:, None] + element[None]
        if i.flip[d]:
            x = self.transformed_input_size(d) - 1 - x
        x = x - i.padding_lower[d]
        held = self.input_field_shape[d] - i.truncation_lower[d] - i.truncation_upper[d]
        valid = there[:, None] & used[None] & (x >= 0) & (x % i.dilation[d] == 0) & (x < held * i.dilation[d])
        made: Array = np.where(valid, x // i.dilation[d] + i.truncation_lower[d], -1)
        return made

    def _check(self, d: int) -> None:
        for what, size, t in (
            ("input", self.input_field_shape[d], self.input_transform),
            ("kernel", self.kernel_shape[d], self.kernel_transform),
            ("output", None, self.output_transform),
        ):
            size = self.untransformed_output_size(d) if size is None else size
            cut = t.truncation_lower[d] + t.truncation_upper[d]
            if cut > size:
                raise ShapeError(f"ConvParams: {cut} elements are truncated of dimension {d} of the {what}, which has {size}", "truncate fewer")
            if what == "kernel":
                have, want = self.transformed_input_size(d), self.transformed_kernel_size(d)
                if not want or have < want:
                    text = f"ConvParams: dimension {d}: the kernel is {want} and the input {have} long, after truncation, dilation and padding"
                    raise ShapeError(text, "a kernel of 1 or more, and an input at least as long: pad it")


def _transformed(size: int, t: InputTransform, d: int) -> int:
    return t.padding_lower[d] + get_dilated_size(size - t.truncation_lower[d] - t.truncation_upper[d], t.dilation[d]) + t.padding_upper[d]


def get_dilated_size(size: int, dilation: int) -> int:
    """The length with zeros between the elements."""
    return 1 + (size - 1) * dilation if size > 0 else 0


def _sizes(name: str, given: Any) -> Sizes:
    try:
        made = tuple(int(x) for x in given)
    except (TypeError, ValueError):
        raise ShapeError(f"ConvParams: {name} is {given!r:.80}", "whole numbers") from None
    if any(x < 0 for x in made):
        raise ValueRangeError(f"ConvParams: {name} is {list(made)}", "0 or more")
    return made


def _complete(name: str, given: Any, rank: int) -> Any:
    """A transform with a number for each dimension in each field.

    Raises: ShapeError, ValueRangeError
    """
    made: dict[str, Sizes] = {}
    for f in fields(given):
        values = getattr(given, f.name)
        values = _sizes(f"{name}.{f.name}", values) if len(values) else (_NEUTRAL.get(f.name, 0),) * rank
        if len(values) != rank:
            raise ShapeError(f"ConvParams: {name}.{f.name} is {list(values)} for a field of {rank} dimensions", "one number for each, or none at all")
        if f.name in ("dilation", "stride") and 0 in values:
            raise ValueRangeError(f"ConvParams: {name}.{f.name} is {list(values)}", "1 or more; 1 changes nothing")
        made[f.name] = tuple(bool(v) for v in values) if f.name == "flip" else values
    return replace(given, **made)


def get_gradient_params(params: ConvParams) -> ConvParams:
    """The convolution that gives the gradient of the input, from that of the output and weights with channels transposed and flipped."""
    i, k, o, r = params.input_transform, params.kernel_transform, params.output_transform, range(params.rank)
    reach = [params.transformed_kernel_size(d) - 1 for d in r]
    return replace(
        params,
        input_field_shape=params.output_field_shape,
        input_channels_per_conv_group=params.output_channels_per_conv_group,
        output_channels_per_conv_group=params.input_channels_per_conv_group,
        input_transform=InputTransform(
            o.padding_lower,
            o.padding_upper,
            o.stride,
            [o.truncation_lower[d] + reach[d] for d in r],
            [o.truncation_upper[d] + _unreached(params, d) + reach[d] for d in r],
            i.flip,
        ),
        kernel_transform=InputTransform(
            k.truncation_upper, k.truncation_lower, k.dilation, k.padding_upper, k.padding_lower, [k.flip[d] != i.flip[d] for d in r]
        ),
        output_transform=OutputTransform(i.padding_lower, i.padding_upper, i.dilation, i.truncation_lower, i.truncation_upper),
    )


def get_weight_update_params(fwd_params: ConvParams) -> ConvParams:
    """The convolution of the activations with the gradient of the output, batch and channels changing places, that gives the gradient of the weights."""
    i, k, o, r = fwd_params.input_transform, fwd_params.kernel_transform, fwd_params.output_transform, range(fwd_params.rank)
    return replace(
        fwd_params,
        batch_size=fwd_params.input_channels_per_conv_group,
        kernel_shape=fwd_params.output_field_shape,
        input_channels_per_conv_group=fwd_params.batch_size,
        input_transform=replace(i, flip=[i.flip[d] != k.flip[d] for d in r]),
        kernel_transform=InputTransform(
            o.padding_lower,
            o.padding_upper,
            o.stride,
            o.truncation_lower,
            [o.truncation_upper[d] + _unreached(fwd_params, d) for d in r],
            k.flip,
        ),
        output_transform=OutputTransform(k.padding_lower, k.padding_upper, k.dilation, k.truncation_lower, k.truncation_upper),
    )


def channels_as_dimension(params: ConvParams) -> ConvParams:
    """The same sums with the input channels of a group as a first dimension of field and kernel, and one input channel."""
    channels = params.input_channels_per_conv_group

    def longer(transform: InputTransform | OutputTransform) -> dict[str, Any]:
        return {name: (_NEUTRAL.get(name, 0), *values) for name, values in vars(transform).items()}

    return replace(
        params,
        input_field_shape=(channels, *params.input_field_shape),
        kernel_shape=(channels, *params.kernel_shape),
        input_channels_per_conv_group=1,
        input_transform=InputTransform(**longer(params.input_transform)),
        kernel_transform=InputTransform(**longer(params.kernel_transform)),
        output_transform=OutputTransform(**longer(params.output_transform)),
    )


def _unreached(params: ConvParams, d: int) -> int:
    """Outputs after the last one that the stride keeps."""
    t = params.output_transform
    kept = params.untransformed_output_size(d) - t.truncation_lower[d] - t.truncation_upper[d]
    return kept - get_dilated_size(-(-kept // t.stride[d]), t.stride[d])


def get_fwd_flops(params: ConvParams) -> int:
    """Multiplications and additions of the convolution; those with padding are not counted."""
    used = math.prod(int((params.input_indices(d) >= 0).sum()) for d in range(params.rank))
    channels = params.num_conv_groups * params.input_channels_per_conv_group * params.output_channels_per_conv_group
    return 2 * params.batch_size * channels * used


def get_bwd_flops(params: ConvParams) -> int:
    """Multiplications and additions of the gradient of the input; those with padding are not counted."""
    return get_fwd_flops(get_gradient_params(params))


def get_wu_flops(params: ConvParams) -> int:
    """Multiplications and additions of the gradient of the weights; those with padding are not counted."""
    return get_fwd_flops(get_weight_update_params(params))
