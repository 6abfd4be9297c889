"""GRU: both engines against plain NumPy in double precision, gradients against finite differences."""

import numpy as np
import pytest

from popcore import errors, program
from popcore.ops.popnn import NonLinearityType, gru
from popcore.ops.popnn.gru import BasicGruCellUnit, GruParams
from popcore.types import FLOAT, HALF, UNSIGNED_INT
from tests.ops.popnn.test_lstm import FUNCTIONS, check_slopes
from tests.ops.popops.runs import new_graph, run

STEPS, BATCH, INPUTS, OUTPUTS = 4, 3, 5, 6
R, U, N = BasicGruCellUnit


def plain(params, steps, x, w, u, b, h, scores=None):
    """The outputs of all steps and the last state. ``steps``: of each example."""
    act, gate = FUNCTIONS[params.activation], FUNCTIONS[params.recurrent_activation]
    at = {unit: k for k, unit in enumerate(params.cell_order)}
    inner, outer = (b[:, 1], b[:, 0]) if params.reset_after else (np.zeros_like(b), b)
    outputs = []
    for t in range(len(x)):
        before = {unit: x[t] @ w[k] + outer[k] for unit, k in at.items()}
        r, z = (gate(before[unit] + h @ u[at[unit]] + inner[at[unit]]) for unit in (R, U))
        reset = r * (h @ u[at[N]] + inner[at[N]]) if params.reset_after else (r * h) @ u[at[N]]
        n = act(before[N] + reset)
        z = z if scores is None else (1 - scores[:, t : t + 1]) * z
        active = (t < steps)[:, None]
        h = np.where(active, z * h + (1 - z) * n, h)
        outputs.append(np.where(active, h, 0))
    return np.stack(outputs), h


def drawn(params, seed=0):
    rng = np.random.default_rng(seed)
    shapes = {
        "x": (STEPS, BATCH, INPUTS), "w": (3, INPUTS, OUTPUTS), "u": (3, OUTPUTS, OUTPUTS), "b": (*params.bias_shape, OUTPUTS), "h": (BATCH, OUTPUTS),
    }  # fmt: skip
    return {name: (0.6 * rng.standard_normal(shape)).astype(params.data_type.numpy) for name, shape in shapes.items()}


CASES = {
    "plain": {},
    "reset after": {"reset_after": True},
    "last output, reset after": {"output_full_sequence": False, "reset_after": True},
    "other order, reset after": {"cell_order": (U, N, R), "reset_after": True},
    "hard gates": {"recurrent_activation": NonLinearityType.HARD_SIGMOID, "activation": NonLinearityType.RELU},
    "short examples, last output": {"steps": [3, 4, 1], "output_full_sequence": False},
    "attention": {"attention": True},
    "attention, reset after, short": {"attention": True, "reset_after": True, "steps": [2, 4, 3]},
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_outputs_and_gradients_are_those_of_the_formulas(case):
    """Gradients: of a sum of outputs with drawn factors, by every input, weight, bias, state and score, against finite differences."""
    how = dict(case)
    steps, attention = how.pop("steps", None), how.pop("attention", False)
    graph, prog = new_graph(), program.Sequence()
    limits = None if steps is None else graph.add_constant(UNSIGNED_INT, (len(steps),), steps, tile=0)
    params = GruParams(FLOAT, BATCH, STEPS, (INPUTS, OUTPUTS), var_time_steps=limits, **how)
    x, state, weights = gru.create_input(graph, params), gru.create_initial_state(graph, params), gru.create_weights(graph, params)
    tensors, values, kept, d_x, d_weights, d_scores = [x, *weights, state], drawn(params, 5), [], [], [], []
    if attention:
        scores = gru.create_attention(graph, params)
        tensors.append(scores)
        values["scores"] = np.random.default_rng(9).uniform(0, 1, (BATCH, STEPS)).astype(np.float32)
        out = gru.au_gru_fwd(graph, params, state, x, weights, kept, scores, prog)
    else:
        out = gru.gru_fwd(graph, params, state, x, weights, kept, prog)
    d_out = graph.add_variable(FLOAT, out.shape, mapping="linear", name="d_out")
    if attention:
        d_state = gru.au_gru_bwd_with_wu(graph, params, prog, state, kept[0], weights, x, out, d_out, d_x, d_weights, scores, d_scores)
    else:
        d_state = gru.gru_bwd_with_wu(graph, params, prog, state, kept[0], weights, x, out, d_out, d_x, d_weights)
    factors = np.random.default_rng(6).standard_normal(out.shape).astype(np.float32)
    read = dict(zip(values, [d_x[0], *d_weights[0], d_state, *d_scores], strict=True)) | {"out": out}
    found = run(graph, prog, dict(zip([*tensors, d_out], [*values.values(), factors], strict=True)), read)
    exact = {name: v.astype(float) for name, v in values.items()}
    counts = np.full(BATCH, STEPS) if steps is None else np.broadcast_to(steps, BATCH)

    def output():
        return plain(params, counts, *exact.values())[0 if params.output_full_sequence else 1]

    np.testing.assert_allclose(found["out"], output(), rtol=1e-5, atol=1e-6)
    check_slopes(found, exact, lambda: (output() * factors).sum())


@pytest.mark.parametrize("reset_after", [False, True])
def test_half_is_float_to_its_precision(reset_after):
    found = []
    for dtype in (FLOAT, HALF):
        graph, prog = new_graph(), program.Sequence()
        params = GruParams(dtype, BATCH, STEPS, (INPUTS, OUTPUTS), reset_after=reset_after)
        x, state, weights = gru.create_input(graph, params), gru.create_initial_state(graph, params), gru.create_weights(graph, params)
        kept, d_x, back = [], [], []
        out = gru.gru_fwd(graph, params, state, x, weights, kept, prog)
        d_state = gru.gru_bwd(graph, params, prog, state, kept[0], weights, x, out, out, d_x, back)
        d_weights = gru.gru_wu(graph, params, prog, state, kept[0], back[0], weights, x, out)
        values = [v.astype(np.float16).astype(dtype.numpy) for v in drawn(GruParams(FLOAT, BATCH, STEPS, (INPUTS, OUTPUTS), reset_after=reset_after)).values()]
        read = {str(i): t for i, t in enumerate([out, d_state, *d_x, *d_weights])}
        found.append(run(graph, prog, dict(zip([x, *weights, state], values, strict=True)), read))
    for name, exact in found[0].items():
        np.testing.assert_allclose(found[1][name], exact, rtol=2e-2, atol=2e-2, err_msg=name)


def test_mistakes_are_told_at_the_call():
    graph, prog = new_graph(), program.Sequence()
    params = GruParams(FLOAT, BATCH, STEPS, (INPUTS, OUTPUTS), reset_after=True)
    x, state, weights = gru.create_input(graph, params), gru.create_initial_state(graph, params), gru.create_weights(graph, params)
    with pytest.raises(errors.ShapeError, match="biases is"):
        gru.gru_fwd(graph, params, state, x, weights._replace(biases=weights.biases[:, 0]), None, prog)
    with pytest.raises(errors.ShapeError, match="att_scores is"):
        gru.au_gru_fwd(graph, params, state, x, weights, None, gru.create_attention(graph, params).transpose(), prog)
    with pytest.raises(errors.GraphError, match="cell_order"):
        GruParams(FLOAT, BATCH, STEPS, (INPUTS, OUTPUTS), cell_order=(R, U))
