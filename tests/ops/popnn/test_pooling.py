"""Pooling and its gradient: do both engines give what loops over windows give, for any window, type and view?"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import popcore as pc
from popcore import errors, poputil, program
from popcore.ops.popnn import PoolingType, PoolParams, pooling
from popcore.types import FLOAT, HALF, INT


def windows(params):
    """(place of the result, indices of the input) of every window, by loops."""
    low, high = params.input_truncation_or_padding_lower, params.input_truncation_or_padding_upper
    out = [(n + a + b - k) // s + 1 for n, a, b, k, s in zip(params.input_field_shape, low, high, params.kernel_shape, params.stride, strict=True)]
    for place in np.ndindex(*out):
        held = []
        for p, a, b, n, k, s in zip(place, low, high, params.input_field_shape, params.kernel_shape, params.stride, strict=True):
            first, last = max(0, -a), n - max(0, -b)
            held.append([x for x in range(p * s - a, p * s - a + k) if first <= x < last])
        yield place, np.ix_(*held)


def slow(data, params, least):
    """The result in double precision, ``least`` being a maximum of nothing, and the gradient of the input for a gradient and whether it is shared out."""
    shape = pooling.get_output_field_shape(params)
    result = np.zeros((*data.shape[:2], *shape))
    for place, held in windows(params):
        part = data[(slice(None), slice(None), *held)]
        part = part.reshape(*data.shape[:2], int(np.prod(part.shape[2:])))
        if params.pooling_type is PoolingType.MAX:
            result[(..., *place)] = part.max(-1, initial=least)
        else:
            result[(..., *place)] = part.sum(-1) / (max(1, part.shape[-1]) if params.pooling_type is PoolingType.AVG else 1)

    def gradient(given, shared):
        made = np.zeros(data.shape)
        for place, held in windows(params):
            g = given[(..., *place)].astype(np.float64).reshape(*data.shape[:2], *[1] * len(place))
            at = (slice(None), slice(None), *held)
            part = data[at]
            field = tuple(range(2, part.ndim))
            if params.pooling_type is PoolingType.MAX:
                hit = part == result[(..., *place)].reshape(g.shape)
                share = np.maximum(hit.sum(field, keepdims=True), 1) if shared else 1
                made[at] += np.where(hit, g / share, 0)
            else:
                made[at] += g / (max(1, np.prod(part.shape[2:])) if params.pooling_type is PoolingType.AVG else 1)
        return made

    return result, gradient


@st.composite
def parameters(draw):
    rank = draw(st.sampled_from([1, 2, 2, 3]))
    field = draw(st.lists(st.integers(1, 9 if rank < 3 else 4), min_size=rank, max_size=rank))
    low, high, kernel = [], [], []
    for n in field:
        low.append(draw(st.integers(-min(2, n - 1), 2)))
        high.append(draw(st.integers(-min(2, n - 1 + min(0, low[-1])), 2)))
        kernel.append(draw(st.integers(1, max(1, min(4, n + low[-1] + high[-1])))))
    stride = draw(st.lists(st.integers(1, 3), min_size=rank, max_size=rank))
    channels, batch = draw(st.sampled_from([1, 2, 3, 8, 17, 0])), draw(st.sampled_from([1, 2, 3]))
    return PoolParams(draw(st.sampled_from(PoolingType)), field, kernel, stride, low, high, channels, batch, draw(st.sampled_from([FLOAT, HALF])))


def both(graph, prog, tensors, writes, reads):
    for name, t in tensors.items():
        (graph.create_host_write if name in writes else graph.create_host_read)(name, t)
    found = []
    for engine in (pc.Engine, pc.ReferenceEngine):
        made = engine(graph, prog)
        for name, values in writes.items():
            made.write_tensor(name, values)
        made.run()
        found.append([made.read_tensor(n) for n in reads])
    assert [x.tobytes() for x in found[0]] == [x.tobytes() for x in found[1]]
    return found[0]


@given(parameters(), st.booleans(), st.booleans(), st.integers(1, 9), st.integers(0, 99))
@settings(deadline=None, max_examples=60)
def test_pooling_and_its_gradient_are_those_of_loops_over_windows(params, shared, shuffled, tiles, seed):
    graph, prog = pc.Graph(pc.Device("M2000", num_ipus=1, tiles_per_ipu=tiles).target), program.Sequence()
    shape, dtype = params.windows.input_shape, params.data_type
    data = graph.add_variable(dtype, (*shape[1:], shape[0]) if shuffled else shape, name="data")
    poputil.map_tensor_linearly(graph, data, 1, 1)
    data = data.dim_roll(data.rank - 1, 0) if shuffled else data
    out = pooling.pool(graph, params, data, prog)
    given_gradient = graph.add_variable(dtype, out.shape, "linear", name="gradient")
    needed = (data, out) if params.pooling_type is PoolingType.MAX else (None, None)
    back = pooling.pool_input_gradient(graph, params, *needed, given_gradient, shared, prog)
    assert (out.shape, out.dtype, back.shape, back.dtype) == (params.windows.output_shape, dtype, shape, dtype)
    rng = np.random.default_rng(seed)
    x, g = rng.integers(-3, 4, shape).astype(dtype.numpy), rng.standard_normal(out.shape).astype(dtype.numpy)
    tensors = {"data": data, "gradient": given_gradient, "out": out, "back": back}
    got, got_back = both(graph, prog, tensors, {"data": x, "gradient": g}, ["out", "back"])
    result, gradient = slow(x.astype(np.float64), params, -np.inf if dtype is FLOAT else -65504)
    step = np.finfo(dtype.numpy).eps
    np.testing.assert_allclose(got, result, rtol=2 * step, atol=1e-6)
    np.testing.assert_allclose(got_back, gradient(g, shared), rtol=4 * step, atol=60 * step)


def test_a_maximum_leaves_nan_out_and_of_padding_alone_it_is_minus_infinity():
    graph, prog = pc.Graph(pc.Device("M2000", num_ipus=1, tiles_per_ipu=2).target), program.Sequence()
    data = graph.add_constant(FLOAT, (1, 1, 4), np.array([[[np.nan, -5, np.nan, np.nan]]], np.float32), tile=0)
    out = pooling.pool(graph, PoolParams(PoolingType.MAX, (4,), (2,), (2,), (2,), (0,), 1, 1, FLOAT), data, prog)
    (got,) = both(graph, prog, {"out": out}, {}, ["out"])
    assert got[0, 0].tolist() == [-np.inf, -5.0, -np.inf]


def test_a_mean_is_not_over_padding():
    graph, prog = pc.Graph(pc.Device("M2000", num_ipus=1, tiles_per_ipu=2).target), program.Sequence()
    data = graph.add_constant(FLOAT, (1, 1, 3), np.array([[[3, 5, 7]]], np.float32), tile=0)
    out = pooling.pool(graph, PoolParams(PoolingType.AVG, (3,), (3,), (1,), (1,), (1,), 1, 1, FLOAT), data, prog)
    (got,) = both(graph, prog, {"out": out}, {}, ["out"])
    np.testing.assert_allclose(got[0, 0], [4, 5, 6], rtol=1e-6)


def test_what_does_not_fit_is_refused_by_name():
    graph, prog = pc.Graph(pc.Device("M2000", num_ipus=1, tiles_per_ipu=2).target), program.Sequence()
    params = PoolParams(PoolingType.MAX, (4, 4), (2, 2), (2, 2), (0, 0), (0, 0), 3, 1, FLOAT)
    acts = graph.add_variable(FLOAT, (1, 3, 4, 4), "linear", name="acts")
    with pytest.raises(errors.ShapeError, match="acts"):
        pooling.pool(graph, params, acts[:, :2], prog)
    with pytest.raises(errors.ElementTypeError, match="acts"):
        pooling.pool(graph, params, acts.reinterpret(INT), prog)
    with pytest.raises(errors.GraphError):
        pooling.pool_input_gradient(graph, params, None, None, graph.add_variable(FLOAT, (1, 3, 2, 2), "linear"), False, prog)
    with pytest.raises(errors.UnknownNameError, match=r"PoolingType\.MAX"):
        PoolParams("max", (4, 4), (2, 2), (2, 2), (0, 0), (0, 0), 3, 1, FLOAT)
    with pytest.raises(errors.ShapeError, match="another number of dimensions"):
        PoolParams(PoolingType.MAX, (4, 4), (2, 2), (2,), (0, 0), (0, 0), 3, 1, FLOAT)
    with pytest.raises(errors.OptionError, match="poolUse"):
        pooling.pool(graph, params, acts, prog, options={"poolUse": True})
    assert not prog.programs
