"""Normalisation: statistics, outputs and gradients of both engines against NumPy in double precision."""

import numpy as np
import pytest

import popcore as pc
from popcore import errors, poputil, program
from popcore.ops.popnn import norms
from popcore.ops.popnn.norms import BATCH, LAYER, Norm
from popcore.types import FLOAT, HALF, INT

NORMS = {"batch": BATCH, "layer": LAYER, "instance": Norm(6), "group": Norm(2), "neighbours": Norm(2, strided=False)}
EPS = 1e-3


def members(norm, x):
    """For each element the number of its statistic, as a matrix of 0 and 1: (elements, statistics)."""
    batch, channels, _ = x.shape
    n, c = np.arange(batch)[:, None, None], np.arange(channels)[None, :, None]
    if norm.groups is None:
        which, count = c + 0 * n, channels
    else:
        group = c % norm.groups if norm.strided else c // (channels // norm.groups)
        which, count = n * norm.groups + group, batch * norm.groups
    return np.broadcast_to(which, x.shape), count


def mean_of(x, which, count):
    return np.bincount(which.ravel(), x.ravel(), count) / np.bincount(which.ravel(), minlength=count)


def forward(x, gamma, beta, which, count):
    mean = mean_of(x, which, count)
    inverse = 1 / np.sqrt(mean_of((x - mean[which]) ** 2, which, count) + EPS)
    white = (x - mean[which]) * inverse[which]
    return mean, inverse, white, white * gamma[:, None] + beta[:, None]


def build(norm, dtype):
    graph, prog = pc.Graph(pc.Device("M2000", num_ipus=1, tiles_per_ipu=5).target), program.Sequence()
    made = {n: graph.add_variable(dtype, s, name=n) for n, s in {"x": (4, 6, 5), "g": (4, 6, 5), "gamma": (6,), "beta": (6,)}.items()}
    for t in made.values():
        poputil.map_tensor_linearly(graph, t, 1, 1)
        graph.create_host_write(t.name, t)
    x, g, gamma, beta = made.values()
    mean, inverse = norms.norm_statistics(graph, x, EPS, prog, norm)
    out, white = norms.normalise(graph, x, gamma, beta, mean, inverse, prog, norm)
    d_gamma, d_beta = norms.norm_param_gradients(graph, white, g, prog)
    d_x = norms.norm_gradients(graph, white, g, inverse, gamma, prog, norm)
    read = {"mean": mean, "inverse": inverse, "white": white, "out": out, "d_x": d_x, "d_gamma": d_gamma, "d_beta": d_beta}
    for name, t in read.items():
        graph.create_host_read(name, t)
    return graph, prog, list(read)


@pytest.mark.parametrize("dtype", [FLOAT, HALF])
@pytest.mark.parametrize("norm", NORMS.values(), ids=NORMS)
def test_normalisation_and_its_gradients(norm, dtype):
    graph, prog, names = build(norm, dtype)
    rng = np.random.default_rng(0)
    x, g = (rng.standard_normal((4, 6, 5)).astype(dtype.numpy) for _ in range(2))
    gamma, beta = (rng.standard_normal(6).astype(dtype.numpy) for _ in range(2))
    found = []
    for engine in (pc.Engine, pc.ReferenceEngine):
        made = engine(graph, prog)
        for name, values in {"x": x, "g": g, "gamma": gamma, "beta": beta}.items():
            made.write_tensor(name, values)
        made.run()
        found.append({name: made.read_tensor(name) for name in names})
    fast, slow = found
    assert all(fast[n].tobytes() == slow[n].tobytes() for n in names)
    x, g, gamma, beta = (t.astype(np.float64) for t in (x, g, gamma, beta))
    which, count = members(norm, x)
    mean, inverse, white, out = forward(x, gamma, beta, which, count)
    h = 1e-6
    slope = np.zeros(x.shape)
    for i in np.ndindex(x.shape):  # how the sum of g * out changes with one activation
        step = np.zeros(x.shape)
        step[i] = h
        up, down = (forward(x + s, gamma, beta, which, count)[3] for s in (step, -step))
        slope[i] = (g * (up - down)).sum() / (2 * h)
    wanted = {"mean": mean, "inverse": inverse, "white": white, "out": out, "d_x": slope, "d_gamma": (g * white).sum((0, 2)), "d_beta": g.sum((0, 2))}
    for name in names:
        tolerance = 2e-5 if dtype is FLOAT else 1e-2
        np.testing.assert_allclose(fast[name], wanted[name], rtol=tolerance, atol=tolerance, err_msg=name)


def test_mistakes_are_told_at_the_call():
    graph, prog = pc.Graph(pc.Device("M2000", num_ipus=1, tiles_per_ipu=2).target), program.Sequence()
    x, one, i = (graph.add_variable(d, s, name="x", tile=0) for d, s in ((FLOAT, (2, 6)), (FLOAT, (1, 6)), (INT, (2, 6))))
    with pytest.raises(errors.ShapeError, match="4 groups of 6 channels"):
        norms.norm_statistics(graph, x, EPS, prog, Norm(4))
    with pytest.raises(errors.ShapeError, match="norm_statistics"):
        norms.norm_statistics(graph, x[0], EPS, prog)
    with pytest.raises(errors.ElementTypeError, match="INT"):
        norms.norm_statistics(graph, i, EPS, prog)
    with pytest.raises(errors.ValueRangeError, match="1 elements"):
        norms.norm_statistics(graph, one, EPS, prog, unbiased_var_estimate=True)
