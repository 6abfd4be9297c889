"""Norms of channels step by step, and over replicas."""

import numpy as np
import pytest

import popcore as pc
from popcore import errors, program
from popcore.executable.schedules import CollectiveOperator
from popcore.ops import gcl, poplin
from popcore.program.collectives import CommGroup, CommGroupType
from popcore.types import FLOAT, HALF
from tests.ops.popops.runs import new_graph, run

EPS = 1e-3


def test_the_steps_make_the_whole():
    """whitened, then scaled and shifted; gradients the other way round."""
    graph, prog = new_graph(), program.Sequence()
    x, g = (graph.add_variable(HALF, (3, 4, 2), mapping="linear", name=n) for n in "xg")
    gamma, beta = poplin.create_norm_params(graph, x)
    assert gamma.shape == beta.shape == (4,)
    assert gamma.dtype is HALF
    mean, inverse = poplin.norm_statistics(graph, x, EPS, prog)
    white = poplin.norm_whiten(graph, x, mean, inverse, prog)
    out = poplin.normalise(graph, white, gamma, beta, prog)
    back = poplin.norm_statistics_gradients(graph, white, poplin.norm_gradients(graph, g, gamma, prog), inverse, prog)
    d_gamma, d_beta = poplin.norm_param_gradients(graph, white, g, prog)
    rng = np.random.default_rng(0)
    values = [rng.standard_normal(t.shape).astype(np.float16) for t in (x, g, gamma, beta)]
    read = {"white": white, "out": out, "back": back, "d_gamma": d_gamma, "d_beta": d_beta}
    found = run(graph, prog, dict(zip((x, g, gamma, beta), values, strict=True)), read)
    x, g, gamma, beta = (v.astype(float) for v in values)
    over = (0, 2)
    inverse = 1 / np.sqrt(x.var(over) + EPS)[:, None]
    white = (x - x.mean(over)[:, None]) * inverse
    scaled = g * gamma[:, None]
    back = inverse * (scaled - scaled.mean(over)[:, None] - white * (scaled * white).mean(over)[:, None])
    wanted = {"white": white, "out": white * gamma[:, None] + beta[:, None], "back": back, "d_gamma": (g * white).sum(over), "d_beta": g.sum(over)}
    for name, value in wanted.items():
        np.testing.assert_allclose(found[name], value, rtol=5e-3, atol=5e-3, err_msg=name)


def summed(graph, tensors, prog, group_size, name, options):
    group = CommGroup(CommGroupType.CONSECUTIVE, group_size)
    return [gcl.all_reduce_cross_replica(graph, t, CollectiveOperator.ADD, prog, group, name, options) for t in tensors]


@pytest.mark.parametrize("stable", [False, True])
def test_statistics_over_replicas_are_those_of_all_their_examples(stable):
    graph = pc.Graph(pc.Device("M2000", num_ipus=2, tiles_per_ipu=3).target, replication_factor=2)
    prog = program.Sequence()
    x, g = (graph.add_variable(FLOAT, (3, 4), mapping="linear", name=n) for n in "xg")
    mean, inverse = poplin.distributed_norm_statistics(graph, x, EPS, prog, True, summed, 6, stable)
    white = poplin.norm_whiten(graph, x, mean, inverse, prog)
    back = poplin.distributed_norm_statistics_gradients(graph, white, g, inverse, prog, summed, 6)
    rng = np.random.default_rng(3)
    xs, gs = (rng.standard_normal((2, 3, 4)).astype(np.float32) for _ in range(2))
    found = run(graph, prog, {x: xs, g: gs}, {"mean": mean, "inverse": inverse, "back": back})
    x, g = xs.reshape(6, 4).astype(float), gs.reshape(6, 4).astype(float)
    inverse = 1 / np.sqrt(x.var(0, ddof=1) + EPS)
    white = (x - x.mean(0)) * inverse
    back = inverse * (g - g.mean(0) - white * (g * white).mean(0))
    for name, value in {"mean": np.tile(x.mean(0), (2, 1)), "inverse": np.tile(inverse, (2, 1)), "back": back.reshape(2, 3, 4)}.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-6, err_msg=name)


def test_the_examples_of_a_norm_are_whole_replicas():
    graph, prog = new_graph(), program.Sequence()
    x = graph.add_variable(FLOAT, (3, 4), mapping="linear", name="x")
    with pytest.raises(errors.ValueRangeError, match="7 examples, 3 a replica"):
        poplin.distributed_norm_statistics(graph, x, EPS, prog, False, summed, 7)
    poplin.distributed_norm_statistics(graph, x, EPS, prog, False, None, 3)  # nobody is asked
