"""LSTM: both engines against plain NumPy in double precision, gradients against finite differences."""

import numpy as np
import pytest

from popcore import errors, program
from popcore.ops.popnn import NonLinearityType, lstm
from popcore.ops.popnn.lstm import BasicLstmCellUnit, LstmParams, LstmState
from popcore.types import FLOAT, HALF, INT, UNSIGNED_INT
from tests.ops.popops.runs import new_graph, run

STEPS, BATCH, INPUTS, OUTPUTS = 4, 3, 5, 6
F, I, G, O = BasicLstmCellUnit  # noqa: E741
FUNCTIONS = {
    NonLinearityType.TANH: np.tanh,
    NonLinearityType.SIGMOID: lambda x: 1 / (1 + np.exp(-x)),
    NonLinearityType.RELU: lambda x: np.maximum(x, 0),
    NonLinearityType.HARD_SIGMOID: lambda x: np.clip(0.2 * x + 0.5, 0, 1),
}


def plain(params, steps, x, w, u, b, h, c):
    """The outputs of all steps and the last state. ``steps``: of each example."""
    act, gate = FUNCTIONS[params.activation], FUNCTIONS[params.recurrent_activation]
    outputs = []
    for t in range(len(x)):
        z = {unit: x[t] @ w[k] + h @ u[k] + b[k] for k, unit in enumerate(params.cell_order)}
        active = (t < steps)[:, None]
        kept = params.preserve_final_state
        c = np.where(active, gate(z[F]) * c + gate(z[I]) * act(z[G]), c if kept else 0)
        h = np.where(active, gate(z[O]) * act(c), h if kept else 0)
        outputs.append(np.where(active, h, 0))
    return np.stack(outputs), h, c


def drawn(dtype, seed=0, scale=0.6):
    rng = np.random.default_rng(seed)
    shapes = {
        "x": (STEPS, BATCH, INPUTS),
        "w": (4, INPUTS, OUTPUTS),
        "u": (4, OUTPUTS, OUTPUTS),
        "b": (4, OUTPUTS),
        "h": (BATCH, OUTPUTS),
        "c": (BATCH, OUTPUTS),
    }
    return {name: (scale * rng.standard_normal(shape)).astype(dtype.numpy) for name, shape in shapes.items()}


def build(params, graph, prog):
    """The tensors of a layer, in the order of ``drawn``; and what a forward pass gives."""
    x, state, weights = lstm.create_input(graph, params, "x"), lstm.create_initial_state(graph, params), lstm.create_weights(graph, params)
    kept = []
    out, c = lstm.lstm_fwd(graph, params, state, x, weights, kept, prog)
    return [x, *weights, *state], state, weights, out, c, kept[0]


@pytest.mark.parametrize("dtype", [FLOAT, HALF])
@pytest.mark.parametrize("full", [True, False])
def test_the_forward_pass_is_that_of_the_formulas(dtype, full):
    params = LstmParams(dtype, BATCH, STEPS, (INPUTS, OUTPUTS), output_full_sequence=full)
    graph, prog = new_graph(), program.Sequence()
    tensors, _, _, out, c, _ = build(params, graph, prog)
    values = drawn(dtype)
    found = run(graph, prog, dict(zip(tensors, values.values(), strict=True)), {"out": out, "c": c})
    outputs, h, cell = plain(params, np.full(BATCH, STEPS), *(v.astype(float) for v in values.values()))
    tolerance = {"rtol": 1e-5, "atol": 1e-6} if dtype is FLOAT else {"rtol": 4e-3, "atol": 2e-3}
    np.testing.assert_allclose(found["out"], outputs if full else h, **tolerance)
    np.testing.assert_allclose(found["c"], cell, **tolerance)


def check_slopes(found, exact, total):
    """Whether ``found`` has how much ``total()`` changes with each element of ``exact``, arrays by name."""
    for name, value in exact.items():
        wanted = np.zeros(value.shape)
        for i in np.ndindex(value.shape):
            value[i] += 1e-6
            up = total()
            value[i] -= 2e-6
            wanted[i] = (up - total()) / 2e-6
            value[i] += 1e-6
        np.testing.assert_allclose(found[name], wanted, rtol=2e-4, atol=2e-4, err_msg=name)


CASES = {
    "plain": {},
    "other order": {"cell_order": (G, O, F, I)},
    "hard gates": {"recurrent_activation": NonLinearityType.HARD_SIGMOID, "activation": NonLinearityType.RELU},
    "short examples": {"steps": [4, 2, 1]},
    "short examples, state kept": {"steps": [3, 4, 1], "preserve_final_state": True},
    "short examples, last output": {"steps": [3, 4, 1], "preserve_final_state": True, "output_full_sequence": False},
    "one count for all": {"steps": [2]},
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_gradients_are_those_of_finite_differences(case):
    """Of a sum of outputs and last cell state with drawn factors, by every input, weight, bias and state."""
    how = dict(case)
    steps = how.pop("steps", None)
    graph, prog = new_graph(), program.Sequence()
    limits = None if steps is None else graph.add_constant(UNSIGNED_INT, (len(steps),), steps, tile=0)
    params = LstmParams(FLOAT, BATCH, STEPS, (INPUTS, OUTPUTS), var_time_steps=limits, **how)
    tensors, state, weights, out, c, kept = build(params, graph, prog)
    d_out, d_c = graph.add_variable(FLOAT, out.shape, mapping="linear", name="d_out"), graph.add_variable(FLOAT, c.shape, mapping="linear", name="d_c")
    d_x, d_weights = [], []
    d_state = lstm.lstm_bwd_with_wu(graph, params, prog, state, kept, weights, tensors[0], out, d_out, d_c, d_x, d_weights)
    values = drawn(FLOAT, 5)
    rng = np.random.default_rng(6)
    factors = [rng.standard_normal(t.shape).astype(np.float32) for t in (out, c)]
    read = dict(zip(values, [d_x[0], *d_weights[0], *d_state], strict=True))
    found = run(graph, prog, dict(zip([*tensors, d_out, d_c], [*values.values(), *factors], strict=True)), read | {"out": out})
    exact = {name: v.astype(float) for name, v in values.items()}
    counts = np.full(BATCH, STEPS) if steps is None else np.broadcast_to(steps, BATCH)

    def total():
        outputs, h, cell = plain(params, counts, *exact.values())
        return ((outputs if params.output_full_sequence else h) * factors[0]).sum() + (cell * factors[1]).sum()

    np.testing.assert_allclose(found["out"], plain(params, counts, *exact.values())[0 if params.output_full_sequence else 1], rtol=1e-5, atol=1e-6)
    check_slopes(found, exact, total)


def test_the_gradient_of_a_whole_last_state_and_of_half():
    """In half the same steps as in float, to its precision."""
    found = []
    for dtype in (FLOAT, HALF):
        graph, prog = new_graph(), program.Sequence()
        params = LstmParams(dtype, BATCH, STEPS, (INPUTS, OUTPUTS))
        tensors, state, weights, out, _, kept = build(params, graph, prog)
        last = LstmState(*(graph.add_variable(dtype, params.state_shape, mapping="linear", name=n) for n in ("d_h", "d_c")))
        d_out = graph.add_variable(dtype, out.shape, mapping="linear", name="d_out")
        d_x, back = [], []
        d_state = lstm.lstm_bwd(graph, params, prog, state, kept, weights, tensors[0], out, d_out, last, d_x, back)
        d_weights = lstm.lstm_wu(graph, params, prog, state, kept, back[0], weights, tensors[0], out)
        values = [v.astype(np.float16).astype(dtype.numpy) for v in drawn(FLOAT, 7).values()]
        grads = [np.random.default_rng(8).standard_normal(t.shape).astype(np.float16).astype(dtype.numpy) for t in (*last, d_out)]
        read = {str(i): t for i, t in enumerate([*d_state, *d_weights, *d_x])}
        found.append(run(graph, prog, dict(zip([*tensors, *last, d_out], [*values, *grads], strict=True)), read))
    for name, exact in found[0].items():
        np.testing.assert_allclose(found[1][name], exact, rtol=2e-2, atol=2e-2, err_msg=name)


def test_an_initial_state_can_be_zeroed_and_seen_as_one_tensor():
    graph, prog = new_graph(), program.Sequence()
    params = LstmParams(HALF, BATCH, STEPS, (INPUTS, OUTPUTS))
    state = lstm.create_initial_state(graph, params)
    lstm.zero_initial_state(graph, state, prog)
    whole = state.get_as_tensor()
    found = run(graph, prog, {t: np.ones(params.state_shape, np.float16) for t in state}, {"state": whole})
    assert whole.shape == (2, BATCH, OUTPUTS)
    assert not found["state"].any()


def test_mistakes_are_told_at_the_call():
    graph, prog = new_graph(), program.Sequence()
    params = LstmParams(FLOAT, BATCH, STEPS, (INPUTS, OUTPUTS))
    tensors, state, weights, _, _, _ = build(params, graph, prog)
    with pytest.raises(errors.ShapeError, match="the input is"):
        lstm.lstm_fwd(graph, params, state, tensors[0][1:], weights, None, prog)
    with pytest.raises(errors.OptionError, match="availableMemoryProportio'"):
        lstm.create_input(graph, params, options={"availableMemoryProportio": 0.1})
    with pytest.raises(errors.GraphError, match="activation"):
        LstmParams(FLOAT, BATCH, STEPS, (INPUTS, OUTPUTS), activation=NonLinearityType.GELU)
    with pytest.raises(errors.GraphError, match="cell_order"):
        LstmParams(FLOAT, BATCH, STEPS, (INPUTS, OUTPUTS), cell_order=(F, I, G, G))
    with pytest.raises(errors.ShapeError, match="0 steps"):
        LstmParams(FLOAT, BATCH, 0, (INPUTS, OUTPUTS))
    with pytest.raises(errors.ElementTypeError, match="INT"):
        LstmParams(INT, BATCH, STEPS, (INPUTS, OUTPUTS))
    with pytest.raises(errors.ShapeError, match="time steps"):
        LstmParams(FLOAT, BATCH, STEPS, (INPUTS, OUTPUTS), var_time_steps=tensors[0])


def test_a_new_state_is_spread_over_all_tiles_that_a_grain_is_for():
    """
    What a step computes is where the state is: in grains of 16, not in the 128 bytes of other small tensors.
    """
    graph = new_graph(8)
    for t in lstm.create_initial_state(graph, LstmParams(HALF, 2, STEPS, (INPUTS, 64))):
        assert [sum(e - b for b, e in held) for held in graph.get_tile_mapping(t)] == [16] * 8
