"""A convolution by its definition: four lines of loops, in double precision."""

import math

import numpy as np
from hypothesis import strategies as st

from popcore.ops.poplin import ConvParams, InputTransform, OutputTransform
from popcore.types import FLOAT, HALF


def transformed(t, how, axis):
    """Truncated, dilated, padded and flipped in the field's dimension ``axis``, which is dimension ``axis - rank`` of ``t``."""
    d = axis - len(how.dilation) + t.ndim
    size = t.shape[d]
    t = np.take(t, range(how.truncation_lower[axis], size - how.truncation_upper[axis]), d)
    dilation = how.dilation[axis]
    if t.shape[d]:
        wide = np.zeros((*t.shape[:d], 1 + (t.shape[d] - 1) * dilation, *t.shape[d + 1 :]), t.dtype)
        wide[(slice(None),) * d + (slice(None, None, dilation),)] = t
        t = wide
    pads = [(0, 0)] * t.ndim
    pads[d] = how.padding_lower[axis], how.padding_upper[axis]
    t = np.pad(t, pads)
    return np.flip(t, d) if how.flip[axis] else t


def slow(data, weights, params):
    """The result, step by step as PopLibs describes it."""
    groups, rank = params.num_conv_groups, params.rank
    for axis in range(rank):
        data, weights = transformed(data, params.input_transform, axis), transformed(weights, params.kernel_transform, axis)
    batch = data.shape[0]
    data = data.reshape((batch, groups, params.input_channels_per_conv_group, *data.shape[2:]))
    field = tuple(params.untransformed_output_size(d) for d in range(rank))
    out = np.zeros((batch, groups, params.output_channels_per_conv_group, *field))
    for place in np.ndindex(*weights.shape[3:]):
        part = data[(..., *(slice(p, p + n) for p, n in zip(place, field, strict=True)))]
        out += np.einsum("bgi...,goi->bgo...", part, weights[(..., *place)])
    how = params.output_transform
    for axis in range(rank):
        d = axis + 3
        kept = np.take(out, range(how.truncation_lower[axis], out.shape[d] - how.truncation_upper[axis]), d)
        kept = kept[(slice(None),) * d + (slice(None, None, how.stride[axis]),)]
        pads = [(0, 0)] * out.ndim
        pads[d] = how.padding_lower[axis], how.padding_upper[axis]
        out = np.pad(kept, pads)
    return out.reshape(params.output_shape)


@st.composite
def transforms(draw, sizes, least):
    """What is done to an input or kernel of ``sizes``, so that it is at least ``least`` long afterwards."""
    usual = draw(st.booleans())
    made = {name: [] for name in ("truncation_lower", "truncation_upper", "dilation", "padding_lower", "padding_upper", "flip")}
    for size, need in zip(sizes, least, strict=True):
        low = 0 if usual else draw(st.integers(0, min(2, size)))
        high = 0 if usual else draw(st.integers(0, min(2, size - low)))
        dilation = draw(st.sampled_from([1, 1, 1, 2, 3]))
        padding = draw(st.sampled_from([0, 0, 1, 2]))
        have = (1 + (size - low - high - 1) * dilation if size - low - high else 0) + padding
        values = low, high, dilation, max(need - have, draw(st.sampled_from([0, 0, 1, 3]))), padding, not usual and draw(st.booleans())
        for name, value in zip(made, values, strict=True):
            made[name].append(value)
    return InputTransform(**made)


@st.composite
def parameters(draw, ranks=(0, 1, 2, 3), dtypes=(FLOAT, HALF)):
    """Convolutions of every kind, small."""
    rank = draw(st.sampled_from(ranks))
    field = draw(st.lists(st.sampled_from([*range(10), 5, 7] if rank < 3 else [1, 2, 3, 4, 0]), min_size=rank, max_size=rank))
    kernel = draw(st.lists(st.integers(0, 4 if rank < 3 else 2), min_size=rank, max_size=rank))
    depthwise = draw(st.sampled_from([False, False, False, True]))
    groups = draw(st.integers(1, 19) if depthwise else st.sampled_from([1, 1, 1, 2, 3]))
    channels = st.just(1) if depthwise else st.sampled_from([1, 2, 3, 5, 8, 17, 33])
    sizes = [draw(st.sampled_from([1, 2, 3])), draw(channels), draw(channels), groups]
    none = draw(st.integers(0, 39))
    if none < len(sizes):
        sizes[none] = 0
    given = (draw(st.sampled_from(dtypes)), sizes[0], field, kernel, *sizes[1:])
    of_kernel = draw(transforms(kernel, [1] * rank))
    kernels = [ConvParams(*given[:2], kernel, kernel, *given[4:], of_kernel, of_kernel).transformed_kernel_size(d) for d in range(rank)]
    of_input = draw(transforms(field, kernels))
    output = OutputTransform(stride=draw(st.lists(st.sampled_from([1, 1, 2, 3]), min_size=rank, max_size=rank)))
    params = ConvParams(*given, of_input, of_kernel, output, draw(st.sampled_from([None, None, FLOAT, HALF])))
    if draw(st.booleans()):
        return params
    low = [draw(st.integers(0, min(1, params.untransformed_output_size(d)))) for d in range(rank)]
    high = [draw(st.integers(0, min(1, params.untransformed_output_size(d) - low[d]))) for d in range(rank)]
    pads = [draw(st.lists(st.integers(0, 2), min_size=rank, max_size=rank)) for _ in range(2)]
    return ConvParams(*given, of_input, of_kernel, OutputTransform(low, high, output.stride, *pads), params.output_type)


def size_of_sums(data, weights, params):
    """Sums of magnitudes: how far off sums in FLOAT may be, but for a factor."""
    return slow(np.abs(data), np.abs(weights), params)


def random(shape, dtype, seed):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype.numpy) if math.prod(shape) else np.zeros(shape, dtype.numpy)
