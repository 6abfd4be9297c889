"""Plans made ahead: are they the ones that the calls use?"""

import popcore as pc
from popcore import program
from popcore.ops import poplin
from popcore.ops.poplin import ConvParams, PlanningCache, fc
from popcore.types import FLOAT, HALF


def test_calls_find_the_plans_that_were_made_ahead():
    graph, prog, cache = pc.Graph(pc.Device("M2000", num_ipus=1, tiles_per_ipu=8).target), program.Sequence(), PlanningCache()
    layer = fc.FullyConnectedParams(2, 4, 16, 8)
    mat_muls = fc.get_mat_mul_pre_plan_parameters(layer, {"availableMemoryProportion": 0.5}, HALF, False)
    assert [o["fullyConnectedPass"] for _, o in mat_muls] == ["TRAINING_FWD", "TRAINING_BWD", "TRAINING_WU"]
    assert all(o["availableMemoryProportion"] == 0.5 for _, o in mat_muls)
    conv = ConvParams(FLOAT, 1, (6, 6), (3, 3), 4, 4)
    poplin.preplan([(graph.target, conv, {})], [(graph.target, p, o) for p, o in mat_muls], cache)
    assert len(cache) == 4
    acts = poplin.create_mat_mul_grouped_input_lhs(graph, HALF, (2, 4, 16), (2, 16, 8), options=mat_muls[0][1], cache=cache)
    weights = poplin.create_mat_mul_grouped_input_rhs(graph, HALF, (2, 4, 16), (2, 16, 8), options=mat_muls[0][1], cache=cache)
    deltas = poplin.mat_mul_grouped(graph, acts, weights, prog, options=mat_muls[0][1], cache=cache)
    poplin.mat_mul_grouped(graph, deltas, weights.dim_shuffle([0, 2, 1]), prog, options=mat_muls[1][1], cache=cache)
    poplin.mat_mul_grouped(graph, acts.dim_shuffle([0, 2, 1]), deltas, prog, options=mat_muls[2][1], cache=cache)
    poplin.convolution(graph, poplin.create_input(graph, conv, cache=cache), poplin.create_weights(graph, conv, cache=cache), conv, False, prog, cache=cache)
    assert len(cache) == 4


def test_inference_needs_one_product():
    (only,) = fc.get_mat_mul_pre_plan_parameters(fc.FullyConnectedParams(1, 2, 3, 4), None, FLOAT, True)
    assert only == (poplin.MatMulParams(FLOAT, FLOAT, (1, 2, 3), (1, 3, 4)), {"fullyConnectedPass": "INFERENCE_FWD"})
