"""Normalisation: statistics, outputs and gradients of both engines against NumPy in double precision."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from popcore import errors, poputil, program
from popcore.ops.popnn import bn, gn, in_, ln
from popcore.types import FLOAT, HALF, INT
from tests.ops.popops.runs import mapped, new_graph, run, values

EPS = 1e-3
NEIGHBOURS = {"groupNormStridedChannelGrouping": "false"}
KINDS = ["batch", "layer", "instance", "group", "neighbours"]


def statistics(kind, graph, x, prog, **how):
    match kind:
        case "batch":
            return bn.batch_norm_statistics(graph, x, EPS, prog, **how)
        case "layer":
            return ln.layer_norm_statistics(graph, x, EPS, prog, **how)
        case "instance":
            return in_.instance_norm_statistics(graph, x, EPS, prog, **how)
    return gn.group_norm_statistics(graph, x, EPS, prog, 2, options=NEIGHBOURS if kind == "neighbours" else None, **how)


def rest(kind):
    """normalise, parameters' gradients, gradients; and the options of the kind."""
    module, prefix = {"batch": (bn, "batch"), "layer": (ln, "layer"), "instance": (in_, "instance")}.get(kind, (gn, "group"))
    functions = (f"{prefix}_normalise", f"{prefix}_norm_param_gradients", f"{prefix}_norm_gradients")
    return *(getattr(module, f) for f in functions), {"options": NEIGHBOURS} if kind == "neighbours" else {}


def members(kind, shape):
    """For each element the number of its statistic, and how many there are."""
    batch, channels = shape[:2]
    n, c = np.arange(batch)[:, None, None], np.arange(channels)[None, :, None]
    groups = {"layer": 1, "instance": channels, "group": 2, "neighbours": 2}.get(kind, 0)
    if kind == "batch":
        which, count = c + 0 * n, channels
    else:
        group = c // (channels // groups) if kind == "neighbours" else c % groups
        which, count = n * groups + group, batch * groups
    return np.broadcast_to(which, shape), count


def mean_of(x, which, count):
    return np.bincount(which.ravel(), x.ravel(), count) / np.bincount(which.ravel(), minlength=count)


def forward(x, gamma, beta, which, count):
    mean = mean_of(x, which, count)
    inverse = 1 / np.sqrt(mean_of((x - mean[which]) ** 2, which, count) + EPS)
    white = (x - mean[which]) * inverse[which]
    return mean, inverse, white, white * gamma[:, None] + beta[:, None]


def build(kind, dtype, stable):
    graph, prog = new_graph(), program.Sequence()
    made = {n: graph.add_variable(dtype, s, name=n) for n, s in {"x": (4, 6, 5), "g": (4, 6, 5), "gamma": (6,), "beta": (6,)}.items()}
    for t in made.values():
        poputil.map_tensor_linearly(graph, t, 1, 1)
    x, g, gamma, beta = made.values()
    normalise, param_gradients, gradients, options = rest(kind)
    mean, inverse = statistics(kind, graph, x, prog, stable_algo=stable)
    out, white = normalise(graph, x, gamma, beta, mean, inverse, prog, **options)
    if stable:  # the two forms of each call
        d_gamma, d_beta = param_gradients(graph, x, g, mean, inverse, prog, **options)
        d_x = gradients(graph, x, g, mean, inverse, gamma, prog, **options)
    else:
        d_gamma, d_beta = param_gradients(graph, white, g, prog, **options)
        d_x = gradients(graph, white, g, inverse, gamma, prog, **options)
    return graph, prog, made, {"mean": mean, "inverse": inverse, "white": white, "out": out, "d_x": d_x, "d_gamma": d_gamma, "d_beta": d_beta}


@pytest.mark.parametrize("dtype", [FLOAT, HALF])
@pytest.mark.parametrize("kind", KINDS)
def test_normalisation_and_its_gradients_are_those_of_the_formulas(kind, dtype):
    """In double precision; the gradient is how the sum of g * out changes with each activation."""
    stable = kind in ("batch", "group")
    graph, prog, made, read = build(kind, dtype, stable)
    rng = np.random.default_rng(0)
    x, g = (rng.standard_normal((4, 6, 5)).astype(dtype.numpy) for _ in range(2))
    gamma, beta = (rng.standard_normal(6).astype(dtype.numpy) for _ in range(2))
    found = run(graph, prog, dict(zip(made.values(), (x, g, gamma, beta), strict=True)), read)
    x, g, gamma, beta = (t.astype(np.float64) for t in (x, g, gamma, beta))
    which, count = members(kind, x.shape)
    mean, inverse, white, out = forward(x, gamma, beta, which, count)
    h = 1e-6
    slope = np.zeros(x.shape)
    for i in np.ndindex(x.shape):
        step = np.zeros(x.shape)
        step[i] = h
        up, down = (forward(x + s, gamma, beta, which, count)[3] for s in (step, -step))
        slope[i] = (g * (up - down)).sum() / (2 * h)
    wanted = {"mean": mean, "inverse": inverse, "white": white, "out": out, "d_x": slope, "d_gamma": (g * white).sum((0, 2)), "d_beta": g.sum((0, 2))}
    tolerance = 2e-5 if dtype is FLOAT else 1e-2
    for name, value in wanted.items():
        np.testing.assert_allclose(found[name], value, rtol=tolerance, atol=tolerance, err_msg=name)


@pytest.mark.parametrize("kind", KINDS)
def test_an_unbiased_variance_divides_by_one_less(kind):
    graph, prog = new_graph(), program.Sequence()
    x = graph.add_variable(FLOAT, (3, 4, 5), mapping="linear", name="x")
    drawn = np.random.default_rng(1).standard_normal((3, 4, 5)).astype(np.float32)
    found = run(graph, prog, {x: drawn}, {"inverse": statistics(kind, graph, x, prog, unbiased_var_estimate=True)[1]})
    which, count = members(kind, x.shape)
    of = [drawn.astype(float)[which == k] for k in range(count)]
    np.testing.assert_allclose(found["inverse"], [1 / np.sqrt(v.var(ddof=1) + EPS) for v in of], rtol=1e-5)


def test_the_stable_algorithm_keeps_what_a_large_mean_would_cost():
    """The mean of the squares less the square of the mean has no digits left of a deviation of 1 about 30000."""
    values = (np.random.default_rng(2).standard_normal((1, 1, 4096)) + 30000).astype(np.float32)
    off = []
    for stable in (False, True):
        graph, prog = new_graph(), program.Sequence()
        x = graph.add_variable(FLOAT, values.shape, mapping="linear", name="x")
        found = run(graph, prog, {x: values}, {"inverse": ln.layer_norm_statistics(graph, x, EPS, prog, stable_algo=stable)[1]})
        off.append(abs(found["inverse"][0] * np.sqrt(values.astype(float).var() + EPS) - 1))
    assert off[1] < 1e-4 < off[0]


@pytest.mark.parametrize(
    ("shape", "fill", "unbiased", "means"),
    [
        ((0, 3, 0), 1, False, 0),
        ((0, 5), 1, False, 0),
        ((1, 3, 0), 1, False, 1),
        ((1, 0, 3), 1, False, 0),
        ((3, 3, 0), 1, False, 3),
        ((1, 3, 3), 0, False, 1),
        ((2, 1, 1), 7, True, 2),
    ],
)
def test_statistics_of_nothing_have_a_mean_of_0_and_no_variance(shape, fill, unbiased, means):
    """Case A3, as PopLibs' tests have it, with an eps of 1."""
    for stable in (False, True):
        graph, prog = new_graph(), program.Sequence()
        x = graph.add_variable(FLOAT, shape, mapping="linear", name="x")
        mean, inverse = gn.group_norm_statistics(graph, x, 1.0, prog, 1, unbiased, stable)
        found = run(graph, prog, {x: np.full(shape, fill, np.float32)}, {"mean": mean, "inverse": inverse})
        np.testing.assert_array_equal(found["mean"], np.full(means, fill if x.num_elements else 0))
        np.testing.assert_array_equal(found["inverse"], np.ones(means))


def test_parameters_are_moved_by_the_scaled_gradients():
    graph, prog = new_graph(), program.Sequence()
    gamma, beta, d_gamma, d_beta = (graph.add_variable(FLOAT, (3,), mapping="linear", name=n) for n in ("gamma", "beta", "d_gamma", "d_beta"))
    bn.batch_norm_param_update(graph, d_gamma, d_beta, -0.5, gamma, beta, prog)
    values = {gamma: 1.0, beta: 2.0, d_gamma: 4.0, d_beta: 8.0}
    found = run(graph, prog, {t: np.full(3, v, np.float32) for t, v in values.items()}, {"gamma": gamma, "beta": beta})
    assert found["gamma"].tolist() == [-1.0] * 3
    assert found["beta"].tolist() == [-2.0] * 3


def test_fixed_statistics_can_be_folded_into_two_vectors():
    graph, prog = new_graph(), program.Sequence()
    x = graph.add_variable(FLOAT, (2, 3), mapping="linear", name="x")
    times, plus = (graph.add_variable(FLOAT, (3,), mapping="linear", name=n) for n in ("times", "plus"))
    out = bn.batch_normalise(graph, x, times, plus, prog)
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    found = run(graph, prog, {x: values, times: np.float32([1, 2, 3]), plus: np.float32([4, 5, 6])}, {"out": out})
    np.testing.assert_array_equal(found["out"], values * [1, 2, 3] + [4, 5, 6])


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_any_shape_any_view_any_mapping(data):
    """Statistics and normalised activations of tensors that are mapped and seen somehow."""
    graph, prog = new_graph(), program.Sequence()
    kind, dtype = data.draw(st.sampled_from(KINDS)), data.draw(st.sampled_from([FLOAT, HALF]))
    shape = (data.draw(st.integers(1, 4)), 2 * data.draw(st.integers(1, 3)), *data.draw(st.lists(st.integers(1, 4), max_size=2)))
    variable, x, see = data.draw(mapped(graph, dtype, shape, "x"))
    gamma, beta = (graph.add_constant(FLOAT, (shape[1],), v, tile=1) for v in (2.0, -1.0))
    mean, inverse = statistics(kind, graph, x, prog, stable_algo=data.draw(st.booleans()))
    normalise, _, _, options = rest(kind)
    out, _ = normalise(graph, x, gamma, beta, mean, inverse, prog, **options)
    given_ = values(dtype, variable.shape, 3)
    found = run(graph, prog, {variable: given_}, {"out": out, "mean": mean})
    exact = see(given_).astype(float).reshape(*shape[:2], -1)
    which, count = members(kind, exact.shape)
    means, _, _, wanted = forward(exact, np.full(shape[1], 2.0), np.full(shape[1], -1.0), which, count)
    tolerance = 1e-4 if dtype is FLOAT else 2e-2
    np.testing.assert_allclose(found["mean"], means, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found["out"].reshape(exact.shape), wanted, rtol=tolerance, atol=tolerance)


def test_mistakes_are_told_at_the_call():
    graph, prog = new_graph(), program.Sequence()
    x, i = (graph.add_variable(d, (2, 6), name="x", tile=0) for d in (FLOAT, INT))
    with pytest.raises(errors.ShapeError, match="4 groups of 6 channels"):
        gn.group_norm_statistics(graph, x, EPS, prog, 4)
    with pytest.raises(errors.ShapeError, match="norm_statistics"):
        bn.batch_norm_statistics(graph, x[0], EPS, prog)
    with pytest.raises(errors.ElementTypeError, match="INT"):
        ln.layer_norm_statistics(graph, i, EPS, prog)
    with pytest.raises(errors.OptionError, match="groupNormStridedChannelGrouping"):
        gn.group_norm_statistics(graph, x, EPS, prog, 2, options={"groupNormStridedChannelGroupin": "true"})
    mean, inverse = ln.layer_norm_statistics(graph, x, EPS, prog)
    with pytest.raises(errors.ShapeError, match="one a statistic"):
        bn.batch_norm_whiten(graph, x, mean, inverse, prog)
    with pytest.raises(errors.GraphError, match="3 tensors and a program or 2 tensors"):
        ln.layer_norm_gradients(graph, x, x, inverse, prog)
