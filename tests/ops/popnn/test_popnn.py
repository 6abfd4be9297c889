"""Non-linearities, softmax and losses: what both engines give against NumPy in double precision."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import popcore as pc
from popcore import errors, poputil, program
from popcore.ops import popnn, popops
from popcore.ops.popnn import LossType, NonLinearityType
from popcore.types import FLOAT, HALF, INT, UNSIGNED_INT

ELEMENT_WISE = [k for k in NonLinearityType if not k.is_softmax]
OF_INPUT = [NonLinearityType.GELU, NonLinearityType.GELU_ERF, NonLinearityType.SWISH]
erf = np.vectorize(math.erf, otypes=[float])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True, initial=-np.inf))
    return e / e.sum(-1, keepdims=True)


FUNCTIONS = {
    NonLinearityType.SIGMOID: sigmoid,
    NonLinearityType.HARD_SIGMOID: lambda x: np.clip(0.2 * x + 0.5, 0, 1),
    NonLinearityType.RELU: lambda x: np.maximum(x, 0),
    NonLinearityType.TANH: np.tanh,
    NonLinearityType.GELU: lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    NonLinearityType.GELU_ERF: lambda x: 0.5 * x * (1 + erf(x / np.sqrt(2))),
    NonLinearityType.SWISH: lambda x: x * sigmoid(x),
    NonLinearityType.SOFTMAX: softmax,
    NonLinearityType.SOFTMAX_STABLE: softmax,
    NonLinearityType.SOFTMAX_SCALED: lambda x: NonLinearityType.SOFTMAX_SCALED.scaling * softmax(x),
}


def new(tiles=5):
    return pc.Graph(pc.Device("M2000", num_ipus=1, tiles_per_ipu=tiles).target)


def variable(graph, dtype, shape, name, prog_writes):
    t = graph.add_variable(dtype, shape, name=name)
    poputil.map_tensor_linearly(graph, t, 1, 1)
    graph.create_host_write(name, t)
    prog_writes.append(name)
    return t


def both(graph, prog, writes, reads):
    """What is read from the two engines, after it was found to be the same bits."""
    found = []
    for engine in (pc.Engine, pc.ReferenceEngine):
        made = engine(graph, prog)
        for name, values in writes.items():
            made.write_tensor(name, values)
        made.run()
        found.append([made.read_tensor(name) for name in reads])
    for fast, slow in zip(*found, strict=True):
        assert fast.tobytes() == slow.tobytes()
    return found[0]


def close(got, wanted, scale=1.0):
    step = 2e-6 if got.dtype == np.float32 else 6e-4
    np.testing.assert_allclose(got.astype(np.float64), wanted, rtol=step, atol=2e-6 * scale if got.dtype == np.float32 else 2e-4 * scale)


shapes = st.sampled_from([(0,), (1,), (7,), (3, 5), (2, 1), (4, 0), (2, 3, 4), (33, 2)])


@given(st.sampled_from(list(NonLinearityType)), st.sampled_from([FLOAT, HALF]), shapes, st.integers(1, 6), st.booleans(), st.booleans())
@settings(deadline=None, max_examples=60)
def test_non_linearities(kind, dtype, shape, tiles, in_place, turned):
    graph, prog, names = new(tiles), program.Sequence(), []
    x = variable(graph, dtype, shape, "x", names)
    view = x.dim_shuffle(list(reversed(range(x.rank)))) if turned else x
    if in_place:
        popnn.non_linearity_in_place(graph, kind, view, prog)
        out = view
    else:
        out = popnn.non_linearity(graph, kind, view, prog, name="layer")
        assert (out.shape, out.dtype) == (view.shape, dtype)
    graph.create_host_read("out", out)
    values = (4 * np.random.default_rng(0).standard_normal(shape)).astype(dtype.numpy)
    (got,) = both(graph, prog, {"x": values}, ["out"])
    with np.errstate(invalid="ignore"):
        close(got, FUNCTIONS[kind]((values.T if turned else values).astype(np.float64)), 4 * kind.scaling)


@pytest.mark.parametrize("dtype", [FLOAT, HALF])
@pytest.mark.parametrize("kind", [*ELEMENT_WISE, NonLinearityType.SOFTMAX, NonLinearityType.SOFTMAX_SCALED])
def test_gradients_are_slopes(kind, dtype):
    graph, prog, names = new(), program.Sequence(), []
    act, grad = (variable(graph, dtype, (6, 7), n, names) for n in ("act", "grad"))
    out = popnn.non_linearity_input_gradient(graph, kind, act, grad, prog)
    graph.create_host_read("out", out)
    rng = np.random.default_rng(1)
    x, g = 2 * rng.standard_normal((6, 7)), rng.standard_normal((6, 7)).astype(dtype.numpy)
    given_act = (x if kind in OF_INPUT else FUNCTIONS[kind](x)).astype(dtype.numpy)
    (got,) = both(graph, prog, {"act": given_act, "grad": g}, ["out"])
    if kind.is_softmax:
        y = given_act.astype(np.float64)
        wanted = y * (g - (y * g / kind.scaling).sum(-1, keepdims=True))
    else:
        if kind in OF_INPUT:
            x = given_act.astype(np.float64)
        h = 1e-6
        wanted = g * (FUNCTIONS[kind](x + h) - FUNCTIONS[kind](x - h)) / (2 * h)
    np.testing.assert_allclose(got.astype(np.float64), wanted, rtol=1e-4 if dtype is FLOAT else 4e-3, atol=kind.scaling * (1e-5 if dtype is FLOAT else 4e-3))


@pytest.mark.parametrize("dtype", [FLOAT, HALF])
def test_softmax_of_large_numbers_does_not_overflow(dtype):
    graph, prog, names = new(), program.Sequence(), []
    x = variable(graph, dtype, (3, 4), "x", names)
    graph.create_host_read("softmax", popnn.softmax(graph, x, prog))
    graph.create_host_read("log", popnn.log_softmax(graph, x, prog))
    popnn.log_softmax_in_place(graph, x, prog)
    graph.create_host_read("same", x)
    values = np.array([[1000, 1001, -1000, 0], [0, 0, 0, 0], [-3e4, 3e4, 1, 2]], dtype.numpy)
    soft, log, same = both(graph, prog, {"x": values}, ["softmax", "log", "same"])
    wide = values.astype(np.float64)
    shifted = wide - wide.max(-1, keepdims=True)
    close(soft, softmax(wide))
    wanted = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    np.testing.assert_allclose(log.astype(np.float64), wanted.astype(dtype.numpy), rtol=1e-3)
    assert same.tobytes() == log.tobytes()


@pytest.mark.parametrize("labels", [INT, UNSIGNED_INT])
@pytest.mark.parametrize("dtype", [FLOAT, HALF])
@pytest.mark.parametrize("kind", list(LossType))
def test_losses(kind, dtype, labels):
    graph, prog, names = new(), program.Sequence(), []
    x = variable(graph, dtype, (9, 5), "x", names)
    label = variable(graph, labels, (9,), "label", names)
    loss = graph.add_variable(dtype, (9,), name="loss", tile=1)
    deltas = graph.clone(x, "deltas")
    correct = graph.add_variable(UNSIGNED_INT, (), name="correct", tile=2)
    popnn.calc_loss(graph, x, label, loss, deltas, kind, prog, deltas_scale=4.0, num_correct=correct)
    for t in (loss, deltas, correct):
        graph.create_host_read(t.name, t)
    rng = np.random.default_rng(3)
    p = softmax(2 * rng.standard_normal((9, 5))).astype(dtype.numpy)
    right = rng.integers(0, 5, 9)
    right[0] = p[0].argmax()
    codes = right.astype(labels.numpy)
    codes[4] = -1 if labels is INT else popops.MASKED_LABEL_CODE
    got_loss, got_deltas, got_correct = both(graph, prog, {"x": p, "label": codes}, ["loss", "deltas", "correct"])
    wide, hot = p.astype(np.float64), np.eye(5)[right]
    off = wide - hot
    wanted = (0.5 * off**2).sum(1) if kind is LossType.SUM_SQUARED_LOSS else -np.log((wide * hot).sum(1))
    off[4] = wanted[4] = 0
    close(got_loss, wanted, 4)
    close(got_deltas, 4 * off, 4)
    assert got_correct == np.count_nonzero(np.delete(wide.argmax(1) == right, 4))


@given(st.integers(0, 6), st.integers(1, 9), st.sampled_from([FLOAT, HALF, INT]), st.booleans())
@settings(deadline=None, max_examples=20)
def test_extremes_are_the_first_of_equals(rows, columns, dtype, turned):
    graph, prog, names = new(), program.Sequence(), []
    x = variable(graph, dtype, (columns, rows) if turned else (rows, columns), "x", names)
    view = x.transpose() if turned else x
    high, at = popnn.max_and_arg_max(graph, view, prog)
    low, lowest = popnn.min_and_arg_min(graph, view, prog)
    made = {"high": high, "at": at, "low": low, "lowest": lowest, "max": popnn.arg_max(graph, view, prog), "min": popnn.arg_min(graph, view, prog)}
    for name, t in made.items():
        graph.create_host_read(name, t)
    values = np.random.default_rng(0).integers(-3, 3, x.shape).astype(dtype.numpy)
    got = dict(zip(made, both(graph, prog, {"x": values}, made), strict=True))
    values = values.T if turned else values
    assert np.array_equal(got["at"], values.argmax(1))
    assert np.array_equal(got["max"], values.argmax(1))
    assert np.array_equal(got["lowest"], values.argmin(1))
    assert np.array_equal(got["min"], values.argmin(1))
    assert np.array_equal(got["high"], values.max(1))
    assert np.array_equal(got["low"], values.min(1))


def test_mistakes_are_told_at_the_call():
    graph, prog = new(), program.Sequence()
    x, i, s = (graph.add_variable(d, shape, name=n, tile=0) for d, shape, n in ((FLOAT, (2, 3), "x"), (INT, (2,), "i"), (FLOAT, (), "s")))
    relu = NonLinearityType.RELU
    with pytest.raises(errors.UnknownNameError, match="'relu'"):
        popnn.non_linearity(graph, "relu", x, prog)
    with pytest.raises(errors.ElementTypeError, match="'i' INT"):
        popnn.non_linearity(graph, relu, i, prog)
    with pytest.raises(errors.GraphError, match="element twice"):
        popnn.non_linearity_in_place(graph, relu, x.broadcast(2, 0), prog)
    with pytest.raises(errors.ShapeError, match="gradient for each"):
        popnn.non_linearity_input_gradient(graph, relu, x, x[0], prog)
    with pytest.raises(errors.ShapeError, match="last dimension"):
        popnn.softmax(graph, s, prog)
    with pytest.raises(errors.ShapeError, match="at least one element"):
        popnn.arg_max(graph, x[:, 0:0], prog)
    with pytest.raises(errors.TileMappingError, match="row 0"):
        popnn.arg_max(graph, graph.add_variable(FLOAT, (2, 2)), prog)
    loss = graph.add_variable(FLOAT, (3,), name="loss", tile=0)
    with pytest.raises(errors.ShapeError, match=r"the loss to .*'loss'"):
        popnn.calc_loss(graph, x, i, loss, x, LossType.SUM_SQUARED_LOSS, prog)
    with pytest.raises(errors.ShapeError, match="labels"):
        popnn.calc_loss(graph, x, x, loss[:2], x, LossType.SUM_SQUARED_LOSS, prog)
    with pytest.raises(errors.GraphError, match="loss_type is 3"):
        popnn.calc_loss(graph, x, i, loss[:2], graph.clone(x), 3, prog)
    with pytest.raises(errors.ElementTypeError, match="UNSIGNED_INT"):
        popnn.calc_accuracy(graph, x, i, s, prog)


def test_scales_of_losses_are_numbers_or_tensors():
    """Outputs of a scaled softmax give the loss of plain ones; the gradients are multiplied by what one says."""
    values = np.abs(np.random.default_rng(3).standard_normal((4, 3))).astype(np.float32)
    values /= values.sum(-1, keepdims=True)
    found = []
    for scaling in (1.0, 62000.0, "tensors"):
        graph, prog, names = new(), program.Sequence(), []
        p = variable(graph, FLOAT, (4, 3), "p", names)
        labels = graph.add_constant(UNSIGNED_INT, (4,), [0, 2, 0xFFFFFFFF, 1], tile=0)
        loss, deltas = (graph.add_variable(FLOAT, s, mapping="linear", name=n) for n, s in (("loss", (4,)), ("deltas", (4, 3))))
        scales = [graph.add_constant(d, (), v, tile=0) for d, v in ((HALF, 4.0), (FLOAT, 62000.0))] if scaling == "tensors" else [4.0, scaling]
        popnn.calc_loss(graph, p, labels, loss, deltas, LossType.CROSS_ENTROPY_LOSS, prog, deltas_scale=scales[0], model_output_scaling=scales[1])
        graph.create_host_read("loss", loss)
        graph.create_host_read("deltas", deltas)
        found.append(both(graph, prog, {"p": values * np.float32(1.0 if scaling == 1 else 62000.0)}, ["loss", "deltas"]))
        with pytest.raises(errors.ElementTypeError, match="scale"):
            popnn.calc_loss(graph, p, labels, loss, deltas, LossType.CROSS_ENTROPY_LOSS, prog, deltas_scale=labels)
    for loss, deltas in found:
        np.testing.assert_allclose(loss, [-np.log(values[0, 0]), -np.log(values[1, 2]), 0, -np.log(values[3, 1])], rtol=1e-5)
        np.testing.assert_allclose(deltas[1], 4 * (values[1] - [0, 0, 1]), rtol=1e-5, atol=1e-6)
        assert not deltas[2].any()


def test_non_linearities_have_names():
    """Each is what its type gives, in place or not."""
    graph, prog, names = new(), program.Sequence(), []
    x = variable(graph, FLOAT, (3, 4), "x", names)
    kinds = {"scaled_softmax_stable": NonLinearityType.SOFTMAX_SCALED, "softmax_stable": NonLinearityType.SOFTMAX_STABLE}
    named = [n for n in popnn.named.__all__ if not n.endswith("_in_place")]
    assert len(named) * 2 == len(popnn.named.__all__) == 16
    for n in named:
        again = graph.add_variable(FLOAT, (3, 4), mapping="linear")
        prog.add(program.Copy(x, again))
        getattr(popnn, f"{n}_in_place")(graph, again, prog)
        graph.create_host_read(n, getattr(popnn, n)(graph, x, prog))
        graph.create_host_read(f"{n} in place", again)
        graph.create_host_read(f"{n} by type", popnn.non_linearity(graph, kinds.get(n) or NonLinearityType[n.upper()], x, prog))
    values = np.random.default_rng(4).standard_normal((3, 4)).astype(np.float32)
    for n in named:
        new_, in_place, by_type = both(graph, prog, {"x": values}, [n, f"{n} in place", f"{n} by type"])
        np.testing.assert_array_equal(new_, by_type)
        np.testing.assert_array_equal(in_place, by_type)


@pytest.mark.parametrize("dtype", [FLOAT, HALF])
@pytest.mark.parametrize("shape", [(2, 3, 5), (3, 1, 4)])
def test_the_expected_place_of_a_peak(shape, dtype):
    graph, prog, names = new(), program.Sequence(), []
    fields = variable(graph, dtype, shape, "fields", names)
    out, heat = popnn.spatial_soft_max_2d(graph, prog, fields, 0.5)
    graph.create_host_read("out", out)
    graph.create_host_read("heat", heat)
    values = np.random.default_rng(5).standard_normal(shape).astype(dtype.numpy)
    got, temperature = both(graph, prog, {"fields": values}, ["out", "heat"])
    chances = softmax(values.astype(float).reshape(shape[0], -1) / 0.5).reshape(shape)
    rows, columns = (np.linspace(-1, 1, n) for n in shape[1:])
    wanted = np.stack([(chances * rows[:, None]).sum((1, 2)), (chances * columns).sum((1, 2))], 1)
    np.testing.assert_allclose(got, wanted, **({"rtol": 1e-5, "atol": 1e-6} if dtype is FLOAT else {"rtol": 5e-3, "atol": 5e-3}))
    assert temperature == 0.5
    with pytest.raises(errors.ShapeError, match="rows, columns"):
        popnn.spatial_soft_max_2d(graph, prog, fields[0], 0.5)
