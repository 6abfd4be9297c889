"""gather against numpy.take."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import popcore as pc
from popcore import errors, program
from popcore.ops import popops
from popcore.types import FLOAT, INT, UNSIGNED_INT
from tests.ops.popops.runs import mapped, new_graph, run, values


@settings(deadline=None, max_examples=25, suppress_health_check=list(HealthCheck))
@given(st.data(), st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple), st.lists(st.integers(0, 3), max_size=2).map(tuple))
def test_any_axis_and_indices(data, shape, of):
    """
    Of any view; indices of any shape, one alone included.
    """
    graph, prog = new_graph(), program.Sequence()
    t, view, see = data.draw(mapped(graph, FLOAT, shape))
    axis = data.draw(st.integers(0, len(shape) - 1))
    indices = graph.add_variable(data.draw(st.sampled_from([INT, UNSIGNED_INT])), of, "linear")
    out = popops.gather(graph, view, indices, axis, prog)
    x = values(FLOAT, t.shape)
    at = np.asarray(np.random.default_rng(0).integers(0, shape[axis], of)).astype(indices.dtype.numpy)
    np.testing.assert_array_equal(run(graph, prog, {t: x, indices: at}, {"out": out})["out"], np.take(see(x), at, axis))


@pytest.mark.parametrize(("shape", "axis"), [((1, 68_000, 1), 1), ((70_000, 1), 0)])
def test_an_axis_beyond_16_bits(shape, axis):
    """
    Entries on both sides of 2**16.
    """
    graph, prog = new_graph(), program.Sequence()
    t = popops.create_gather_input(graph, FLOAT, shape, axis)
    at = np.array([0, 2, 65_535, 65_536, 67_999], np.uint32)
    indices = graph.add_constant(UNSIGNED_INT, (5,), at, tile=1)
    out = popops.gather(graph, t, indices, axis, prog)
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    np.testing.assert_array_equal(run(graph, prog, {t: x}, {"out": out}, (pc.Engine,))["out"].reshape(-1), at.astype(np.float32))


def test_mistakes_and_an_index_outside():
    """
    Zeros for it.
    """
    graph, prog = new_graph(), program.Sequence()
    t = popops.create_gather_input(graph, FLOAT, (5, 4), 0)
    indices = graph.add_constant(INT, (3,), [4, 5, -1], tile=0)
    found = run(graph, prog, {t: np.ones((5, 4), np.float32)}, {"out": popops.gather(graph, t, indices, 0, prog)})["out"]
    assert found.any(axis=1).tolist() == [True, False, False]
    with pytest.raises(errors.ShapeError):
        popops.gather(graph, t, indices, 2, prog)
    with pytest.raises(errors.ElementTypeError):
        popops.gather(graph, t, t, 0, prog)
