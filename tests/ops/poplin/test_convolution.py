"""Convolutions and their gradients: do both engines give what the definition gives, for any parameters, mapping and view?"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import popcore as pc
from popcore import errors, poputil, program
from popcore.ops import poplin
from popcore.ops.poplin import ConvParams, InputTransform, OutputTransform
from popcore.ops.poplin.conv_params import channels_as_dimension
from popcore.ops.poplin.convolve import Convolution, problem_of
from popcore.ops.poplin.cost import work_cycles
from popcore.ops.poplin.params import settings_of
from popcore.types import FLOAT, HALF
from tests.ops.poplin.convolutions import parameters, random, size_of_sums, slow

OPTIONS = st.sampled_from([{}, {}, {"availableMemoryProportion": 0.0005}, {"partialsType": "half"}])


def new(tiles=8):
    return pc.Graph(pc.Device("M2000", num_ipus=1, tiles_per_ipu=tiles).target)


def run(engine, graph, prog, writes, reads):
    made = engine(graph, prog)
    for name, values in writes.items():
        made.write_tensor(name, values)
    made.run()
    return [made.read_tensor(name) for name in reads]


def both(graph, prog, tensors, writes, reads):
    """What both engines read, after they were found to agree bit for bit."""
    for name, t in tensors.items():
        if name in writes:
            graph.create_host_write(name, t)
        if name in reads:
            graph.create_host_read(name, t)
    fast, plain = (run(e, graph, prog, writes, reads) for e in (pc.Engine, pc.ReferenceEngine))
    assert [x.tobytes() for x in fast] == [x.tobytes() for x in plain]
    return fast


def close(got, wanted, size, roundings=0):
    """``roundings``: how often a sum is rounded to HALF on its way."""
    step = np.finfo(got.dtype).eps
    np.testing.assert_array_less(np.abs(got.astype(np.float64) - wanted), (1e-5 + 2**-11 * roundings) * size + step * np.abs(wanted) + 1e-7)


def roundings(params, options):
    """Of a sum, at most: after 16 products, after each row of the kernel, and parts of the sum."""
    if options.get("partialsType") != "half" or params.data_type is not HALF:
        return 0
    return np.prod(params.kernel_shape) * (params.input_channels_per_conv_group / 16 + 1) + 2


def tensor(graph, how, dtype, shape, create, name):
    """A tensor as created, or as a user has it."""
    if how == "created":
        return create()
    order = list(range(len(shape)))
    if how == "shuffled":
        order = [*order[1:], 0]
    made = graph.add_variable(dtype, [shape[i] for i in order], name=name)
    poputil.map_tensor_linearly(graph, made, 1, 1)
    return made.dim_shuffle(list(np.argsort(order))) if how == "shuffled" else made


HOW = st.sampled_from(["created", "created", "linear", "shuffled"])


@given(parameters(), st.sampled_from([1, 1, 2, 5, 9]), HOW, HOW, OPTIONS, st.integers(0, 99))
@settings(deadline=None, max_examples=80)
def test_a_convolution_is_what_the_definition_says(params, tiles, how_data, how_weights, options, seed):
    graph, prog = new(tiles), program.Sequence()
    dtype = params.data_type
    data = tensor(graph, how_data, dtype, params.input_shape, lambda: poplin.create_input(graph, params, "data", options), "data")
    weights = tensor(graph, how_weights, dtype, params.weights_shape, lambda: poplin.create_weights(graph, params, "weights", options), "weights")
    out = poplin.convolution(graph, data, weights, params, False, prog, "conv", options)
    assert (data.shape, weights.shape, out.shape, out.dtype) == (params.input_shape, params.weights_shape, params.output_shape, params.output_type)
    for t in (data, weights, out):
        graph.get_tile_mapping(t, require_complete=True)
    x, w = random(data.shape, dtype, seed), random(weights.shape, dtype, seed + 1)
    (got,) = both(graph, prog, {"data": data, "weights": weights, "out": out}, {"data": x, "weights": w}, ["out"])
    x, w = x.astype(np.float64), w.astype(np.float64)
    close(got, slow(x, w, params), size_of_sums(x, w, params), roundings(params, options))


SPLITS = {
    "batch elements on one tile": (ConvParams(FLOAT, 3, (6, 7), (3, 3), 4, 9), 1, {}, lambda p: p.tiles == 1),
    "rows along the batch": (ConvParams(FLOAT, 20, (3,), (3,), 2, 8), 1, {}, lambda p: p.tiles == 1),
    "k over tiles": (ConvParams(FLOAT, 1, (5, 5), (2, 2), 512, 8), 16, {}, lambda p: p.k_parts > 1),
    "k in steps, sums in HALF": (
        ConvParams(HALF, 2, (5, 5), (3, 3), 64, 8),
        2,
        {"availableMemoryProportion": 0.005, "partialsType": "half"},
        lambda p: p.serial > 1,
    ),
    "k in steps": (ConvParams(HALF, 2, (5, 5), (3, 3), 64, 8), 2, {"availableMemoryProportion": 0.01}, lambda p: p.serial > 1),
    "kernel over tiles": (ConvParams(FLOAT, 16, (60, 3), (58, 2), 2, 9), 12, {}, lambda p: max(p.kernel_parts) > 1),
    "channels by themselves, kernel over tiles": (ConvParams(HALF, 1, (600,), (598,), 1, 1, 9), 8, {}, lambda p: max(p.kernel_parts) > 1),
    "groups, field and n over tiles": (ConvParams(FLOAT, 2, (24, 12), (2, 3), 16, 48, 3), 64, {}, lambda p: min(p.parts[0], p.n_parts, max(p.field_parts)) > 1),
}


@pytest.mark.parametrize("case", SPLITS)
def test_every_way_to_split_gives_the_same(case):
    """
    Is the plan split as the case says, and is the result right?
    """
    params, tiles, options, is_split = SPLITS[case]
    graph, prog = new(tiles), program.Sequence()
    assert is_split(Convolution(graph, params, params.output_type, settings_of(options, "test")).plan)
    data, weights = poplin.create_input(graph, params, options=options), poplin.create_weights(graph, params, options=options)
    out = poplin.convolution(graph, data, weights, params, False, prog, options=options)
    x, w = random(data.shape, params.data_type, 0), random(weights.shape, params.data_type, 1)
    (got,) = both(graph, prog, {"data": data, "weights": weights, "out": out}, {"data": x, "weights": w}, ["out"])
    x, w = x.astype(np.float64), w.astype(np.float64)
    close(got, slow(x, w, params), size_of_sums(x, w, params), roundings(params, options))


@given(parameters(ranks=(1, 2, 3), dtypes=(FLOAT,)), st.integers(1, 9), OPTIONS, st.integers(0, 99))
@settings(deadline=None, max_examples=50)
def test_gradients_are_those_of_the_sum_of_products(params, tiles, options, seed):
    """
    The result is linear in each operand, so for any d: sum(d * conv(x, w)) = sum(x * gradient(d, w)) = sum(w * gradient(d, x)), the last also as an update.
    """
    params = poplin.ConvParams(**{**vars(params), "output_type": FLOAT})
    graph, prog = new(tiles), program.Sequence()
    data, weights = poplin.create_input(graph, params), poplin.create_weights(graph, params)
    deltas = poplin.create_conv_output(graph, params)
    backward = poplin.get_gradient_params(params)
    assert (backward.input_shape, backward.output_shape) == (params.output_shape, params.input_shape)
    of_data = poplin.convolution(graph, deltas, weights, backward, True, prog, "backward", options)
    of_weights = poplin.calculate_weight_deltas(graph, deltas, data, params, prog, "update", options)
    updated = graph.clone(weights)
    prog.add(program.Copy(weights, updated))
    poplin.convolution_weight_update(graph, deltas, updated, data, params, -0.5, prog, options=options)
    assert (of_data.shape, of_weights.shape) == (data.shape, weights.shape)
    x, w, d = (random(t.shape, FLOAT, seed + i) for i, t in enumerate((data, weights, deltas)))
    tensors = {"data": data, "weights": weights, "deltas": deltas, "of_data": of_data, "of_weights": of_weights, "updated": updated}
    writes = {"data": x, "weights": w, "deltas": d}
    got_data, got_weights, got_updated = both(graph, prog, tensors, writes, ["of_data", "of_weights", "updated"])
    x, w, d = (t.astype(np.float64) for t in (x, w, d))
    along = d * slow(x, w, params)
    size = 1e-5 * (np.abs(d) * size_of_sums(x, w, params)).sum() + 1e-6
    assert np.abs((x * got_data).sum() - along.sum()) < size
    assert np.abs((w * got_weights).sum() - along.sum()) < size
    close(got_updated, w - 0.5 * got_weights, np.abs(w) + np.abs(got_weights))


@given(parameters(ranks=(2,)), st.integers(1, 5), st.integers(0, 99))
@settings(deadline=None, max_examples=15)
def test_turned_weights_may_be_stored_or_turned_on_the_fly(params, tiles, seed):
    graph, prog = new(tiles), program.Sequence()
    groups, outputs, inputs, *kernel = params.weights_shape
    stored = graph.add_variable(params.data_type, (groups, inputs, outputs, *kernel), "linear")
    data, turned = poplin.create_input(graph, params), poplin.create_weights(graph, params)
    poplin.weights_transpose_chans_flip_xy(graph, stored, turned, prog)
    one = poplin.convolution(graph, data, turned, params, False, prog)
    other = graph.add_variable(params.output_type, params.output_shape, "linear")
    poplin.convolution_with_output(graph, data, stored, other, params, True, prog)
    writes = {"data": random(data.shape, params.data_type, seed), "stored": random(stored.shape, params.data_type, seed + 1)}
    a, b = both(graph, prog, {"data": data, "stored": stored, "one": one, "other": other}, writes, ["one", "other"])
    assert a.tobytes() == b.tobytes()


def test_biases_are_added_and_updated():
    graph, prog = new(), program.Sequence()
    activations = graph.add_variable(HALF, (2, 5, 3, 4), "linear")
    biases = poplin.create_biases(graph, activations)
    poplin.add_bias(graph, activations, biases, prog)
    poplin.convolution_bias_update(graph, activations, biases, -0.5, {}, prog)
    x, b = random(activations.shape, HALF, 0), random((5,), HALF, 1)
    acts, after = both(graph, prog, {"x": activations, "b": biases}, {"x": x, "b": b}, ["x", "b"])
    added = (x.astype(np.float32) + b.astype(np.float32)[:, None, None]).astype(np.float16)
    assert np.array_equal(acts, added)
    np.testing.assert_allclose(after, b - 0.5 * added.astype(np.float64).sum((0, 2, 3)), rtol=2e-3, atol=2e-3)


def test_scipy_agrees():
    signal = pytest.importorskip("scipy.signal")
    params = ConvParams(FLOAT, 1, (12, 9), (3, 4), 1, 1)
    graph, prog = new(4), program.Sequence()
    data, weights = poplin.create_input(graph, params), poplin.create_weights(graph, params)
    out = poplin.convolution(graph, data, weights, params, False, prog)
    x, w = random(data.shape, FLOAT, 0), random(weights.shape, FLOAT, 1)
    (got,) = both(graph, prog, {"x": data, "w": weights, "out": out}, {"x": x, "w": w}, ["out"])
    np.testing.assert_allclose(got[0, 0], signal.correlate2d(x[0, 0], w[0, 0, 0], "valid"), rtol=1e-4, atol=1e-5)


def test_operands_that_were_created_are_not_rearranged():
    graph, prog = new(64), program.Sequence()
    params = ConvParams(FLOAT, 2, (14, 14), (3, 3), 32, 32, input_transform=InputTransform(padding_lower=(1, 1), padding_upper=(1, 1)))
    data, weights = poplin.create_input(graph, params), poplin.create_weights(graph, params)
    poplin.convolution(graph, data, weights, params, False, prog)
    assert {type(p).__name__ for p in prog.programs} == {"Execute"}
    held = [sum(e - b for b, e in tile) for tile in graph.get_tile_mapping(data)]
    assert max(held) <= 4 * sum(held) / 64


def test_each_row_of_the_field_is_begun_anew():
    """
    As many results of as many channels cost more where a field's rows are shorter; what meets padding only costs nothing.
    """
    target, problem = new().target, problem_of(ConvParams(HALF, 1, (66, 66), (3, 3), 16, 16), settings_of(None, "test"))
    kernel = (np.array(3), np.array(3))
    long, short, few = (int(work_cycles(target, problem, 256, kernel, 16, 16, met, width)) for met, width in ((256, 64), (256, 4), (64, 64)))
    assert short - long >= 9 * 2 * 6 * 16 * (11 - 1)  # kernel elements, passes, workers, a row's beginning, rows of a worker
    assert few < long / 2


def test_channels_stay_by_themselves_in_the_gradient_of_their_weights():
    """
    With the batch as one more dimension of the kernel; else a product for each channel would leave most of the product unit idle.
    """
    params = ConvParams(HALF, 4, (14, 14), (3, 3), 1, 1, 32)
    assert "each by itself" in poplin.report_weight_update_plan_info(new(64), params)
    longer = channels_as_dimension(poplin.get_weight_update_params(params))
    assert (longer.input_field_shape, longer.kernel_shape, longer.output_field_shape) == ((4, 14, 14), (4, 12, 12), (1, 3, 3))


def test_a_weight_update_sums_on_all_tiles_that_have_parts():
    """
    Wherever the weights are: of weights on one tile only the last step is.
    """
    params, cycles = ConvParams(HALF, 2, (32, 32), (1, 1), 64, 64), {}
    for where in ("spread", "one tile"):
        graph, prog = new(64), program.Sequence()
        data, deltas = poplin.create_input(graph, params), poplin.create_conv_output(graph, params)
        weights = graph.add_variable(HALF, params.weights_shape, "linear" if where == "spread" else None, name="weights")
        if where == "one tile":
            graph.set_tile_mapping(weights, 5)
        poplin.convolution_weight_update(graph, deltas, weights, data, params, -1.0, prog)
        engine = pc.Engine(graph, prog, options={"debug.compute": False})
        engine.run()
        cycles[where] = engine.profile().cycles_by_kind["exchange"]
    assert cycles["one tile"] - cycles["spread"] < 2 * weights.num_elements  # words: a FLOAT for each weight


def test_planned_cycles_are_those_of_the_compiled_program():
    params = ConvParams(HALF, 4, (28, 28), (3, 3), 64, 64, input_transform=InputTransform(padding_lower=(1, 1), padding_upper=(1, 1)))
    graph, prog = new(64), program.Sequence()
    data, weights = poplin.create_input(graph, params), poplin.create_weights(graph, params)
    graph.create_host_write("data", data)
    graph.create_host_write("weights", weights)
    graph.create_host_read("out", poplin.convolution(graph, data, weights, params, False, prog))
    engine = pc.Engine(graph, prog)
    engine.write_tensor("data", np.zeros(data.shape, np.float16))
    engine.write_tensor("weights", np.zeros(weights.shape, np.float16))
    engine.run()
    costs = poplin.report_plan_estimated_costs(graph, params)
    assert sum(engine.profile().cycles_by_kind.values()) == pytest.approx(costs.cycles, rel=0.25)


def test_a_report_says_what_is_done_where():
    params = ConvParams(HALF, 4, (56, 56), (3, 3), 64, 128, output_transform=OutputTransform(stride=(2, 2)))
    text = poplin.report_plan_info(new(1472), params)
    assert "convolution of 4 x [56 x 56] with [3 x 3], to [27 x 27], 64 to 128 channels, of HALF" in text
    assert "of 1472" in text
    assert "128 channels, each by itself" in poplin.report_plan_info(new(9), ConvParams(FLOAT, 1, (8,), (3,), 1, 1, 128))
    assert "with [27 x 27]" in poplin.report_weight_update_plan_info(new(1472), params)


def test_plans_are_made_once():
    cache, graph = poplin.PlanningCache(), new(16)
    params = ConvParams(FLOAT, 1, (8, 8), (3, 3), 8, 8)
    data = poplin.create_input(graph, params, cache=cache)
    weights = poplin.create_weights(graph, params, cache=cache)
    poplin.convolution(graph, data, weights, params, False, program.Sequence(), cache=cache)
    assert len(cache) == 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kernel_shape": (3,)}, "as many dimensions"),
        ({"kernel_shape": (9, 3)}, "dimension 0: the kernel is 9 and the input 5 long"),
        ({"kernel_shape": (0, 3)}, "dimension 0: the kernel is 0"),
        ({"batch_size": -1}, "batch_size is"),
        ({"input_transform": InputTransform(truncation_lower=(0, 6))}, "6 elements are truncated of dimension 1 of the input"),
        ({"output_transform": OutputTransform(stride=(0, 1))}, "stride is [0, 1]"),
        ({"output_transform": OutputTransform(stride=(1,))}, "for a field of 2 dimensions"),
        ({"data_type": "int"}, "FLOAT or HALF"),
    ],
)
def test_parameters_that_make_no_sense_are_refused_in_words(change, words):
    with pytest.raises(errors.PopcoreError) as caught:
        ConvParams(**{"data_type": FLOAT, "batch_size": 1, "input_field_shape": (5, 5), "kernel_shape": (3, 3), "input_channels_per_conv_group": 2,
                      "output_channels_per_conv_group": 2, **change})  # fmt: skip
    assert words in str(caught.value)


def test_tensors_that_the_parameters_do_not_describe_are_refused_by_name():
    graph, prog = new(), program.Sequence()
    params = ConvParams(FLOAT, 1, (5, 5), (3, 3), 2, 4)
    data, weights = graph.add_variable(FLOAT, (1, 2, 5, 5), "linear", name="acts"), graph.add_variable(FLOAT, (1, 4, 2, 3, 3), "linear", name="kernels")
    for wrong_data, wrong_weights, kind, words in (
        (data[:, :1], weights, errors.ShapeError, "acts"),
        (data, weights[:, :3], errors.ShapeError, "kernels"),
        (data.reinterpret("int"), weights, errors.ElementTypeError, "acts"),
        (1.0, weights, errors.GraphError, "1.0"),
    ):
        with pytest.raises(kind, match=words):
            poplin.convolution(graph, wrong_data, wrong_weights, params, False, prog)
    with pytest.raises(errors.OptionError, match="partialsType"):
        poplin.convolution(graph, data, weights, params, False, prog, options={"partialsTyp": "float"})
    with pytest.raises(errors.GraphError, match="twice or is constant"):
        poplin.convolution_with_output(graph, data, weights, graph.add_constant(FLOAT, params.output_shape, 0.0), params, False, prog)
    assert not prog.programs
