"""Known traps of random numbers: C2, D15, J3; H16 stands with the replicas and in the tests of poprand."""

import os

import numpy as np
import pytest

import popcore as pc
from popcore import program
from popcore.ops import popops, poprand
from popcore.types import FLOAT, INT, UNSIGNED_INT

INTERPRETED = 3000  # draws, where Python makes each of them


def run(engine_class, graph, prog, reads):
    """What tensors hold after a run."""
    for name, t in reads.items():
        graph.create_host_read(name, t)
    engine = engine_class(graph, prog)
    engine.run()
    return {name: engine.read_tensor(name) for name in reads}


def seed_of(graph, *words):
    return graph.add_constant(UNSIGNED_INT, (2,), words, tile=0)


@pytest.mark.parametrize(("low", "high"), [(0, 0), (-(2**31), 2**31 - 1), (2**31 - 2, 2**31 - 1), (-5, 4)])
def test_c2_integers_stay_in_the_closed_range(graph, any_engine, low, high):
    """
    Never outside; both ends are reached, of the full range at least their neighbourhood.
    """
    many = any_engine is pc.Engine and not os.environ.get("POPCORE_INTERPRET")
    prog = program.Sequence()
    reference = graph.add_variable(INT, (10**6 if many else INTERPRETED,), "linear")
    out = poprand.uniform(graph, seed_of(graph, 1, 2), 0, reference, INT, low, high, prog)
    found = run(any_engine, graph, prog, {"out": out})["out"].astype(np.int64)
    assert found.min() >= low
    assert found.max() <= high
    if high - low < 100:
        assert set(np.unique(found)) == set(range(low, high + 1))
    else:
        near = 2**32 // found.size * 20
        assert found.min() < low + near < high - near < found.max()


def test_d15_an_exponential_sample_is_finite(graph, any_engine):
    """
    ``-log(u)`` of a u in [least, 1]: the closed range never gives the 0 below it.
    """
    prog = program.Sequence()
    reference = graph.add_variable(FLOAT, (INTERPRETED,), "linear")
    least = float(np.finfo(np.float32).tiny)
    reads = {}
    for name, draw in (("uniform", poprand.uniform), ("log_uniform", poprand.log_uniform)):
        u = draw(graph, seed_of(graph, 3, 4), 0, reference, FLOAT, least, 1, prog)
        reads[name] = popops.neg(graph, popops.log(graph, u, prog), prog)
    for found in run(any_engine, graph, prog, reads).values():
        assert np.isfinite(found).all()
        assert found.min() >= 0


def test_j3_no_two_tiles_share_a_stream():
    """
    All 1,472 tiles of an IPU with six workers each, unseeded and after seeds 1 and 2: all states differ, and so do the numbers.
    """
    graph, prog = pc.Graph(pc.Device("M2000", num_ipus=1).target), program.Sequence()
    reference = graph.add_variable(FLOAT, (1472,), [[(i, i + 1)] for i in range(1472)])
    reads = {"states": poprand.get_hw_seeds(graph, prog)}
    for value in (1, 2):
        poprand.set_seed(graph, seed_of(graph, value, 0), 0, prog)
        reads[f"states {value}"] = poprand.get_hw_seeds(graph, prog)
        reads[f"drawn {value}"] = poprand.uniform(graph, None, 0, reference, FLOAT, 0, 1, prog)
    found = run(pc.Engine, graph, prog, reads)
    states = np.concatenate([found[name].reshape(-1, 4) for name in ("states", "states 1", "states 2")])
    assert len(np.unique(states, axis=0)) == 3 * 1472 * 6
    assert np.unpackbits(states.view(np.uint8)).mean() == pytest.approx(0.5, abs=0.01)
    assert all(len(np.unique(found[f"drawn {i}"])) > 1460 for i in (1, 2))
    assert np.mean(found["drawn 1"] == found["drawn 2"]) < 0.01
