"""Sums in stages: do they add up everything, as few at a time as said, and alike in both engines?"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import popcore as pc
from popcore import program
from popcore.ops import poplin
from popcore.ops.poplin.stages import MOST, stage_table, stages
from popcore.types import FLOAT, HALF


@given(st.integers(1, 1472))
def test_stages_add_up_everything_a_few_at_a_time(parts):
    """Of fewer than 16 in one stage, of fewer than 125 in two, else in three; then a tile receives few more sums than the root of their number."""
    left = parts
    for depth in stages(parts):
        left = -(-left // depth)
    assert left == 1
    count = 1 + (parts >= 16) + (parts >= 125)
    assert len(stages(parts)) == count <= MOST
    assert max(stages(parts)) <= parts ** (1 / count) + 2


def test_the_table_has_the_stages_of_each():
    assert stage_table(np.array([1, 22, 200, 22])).tolist() == [[1, 1, 1], [*stages(22), 1], list(stages(200)), [*stages(22), 1]]


@pytest.mark.parametrize(("dtype", "partials"), [(FLOAT, "float"), (HALF, "float"), (HALF, "half")])
@pytest.mark.parametrize("added", [False, True])
def test_a_long_sum_is_made_in_stages_and_right(dtype, partials, added):
    graph, prog = pc.Graph(pc.Device("M2000", num_ipus=1, tiles_per_ipu=24).target), program.Sequence()
    options, (m, k, n) = {"partialsType": partials}, (5, 2000, 6)
    a = poplin.create_mat_mul_input_lhs(graph, dtype, (m, k), (k, n), "a", options)
    b = poplin.create_mat_mul_input_rhs(graph, dtype, (m, k), (k, n), "b", options)
    if added:
        c = graph.add_variable(dtype, (m, n), "linear", name="c")
        poplin.mat_mul_acc(graph, c, 1.0, a, b, prog, options=options)
    else:
        c = poplin.mat_mul(graph, a, b, prog, options=options)
    assert [c.name for c in graph.compute_sets if c.name.endswith("/stage")]
    for name, t in (("a", a), ("b", b)):
        graph.create_host_write(name, t)
    graph.create_host_read("c", c)
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(s).astype(dtype.numpy) for s in ((m, k), (k, n)))
    found = []
    for kind in (pc.Engine, pc.ReferenceEngine):
        engine = kind(graph, prog)
        engine.write_tensor("a", x)
        engine.write_tensor("b", y)
        engine.run()
        found.append(engine.read_tensor("c"))
    assert found[0].tobytes() == found[1].tobytes()
    wanted = x.astype(np.float64) @ y.astype(np.float64)
    tolerance = 1e-3 if dtype is FLOAT else 0.1 if partials == "float" else 2.0
    np.testing.assert_allclose(found[0].astype(np.float64), wanted, atol=tolerance)
