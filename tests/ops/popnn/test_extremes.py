"""Where the extremes of long rows are: their parts go to many workers."""

import numpy as np
import pytest

import popcore as pc
from popcore import program
from popcore.ops import popnn
from popcore.types import FLOAT, HALF, INT
from tests.ops.popops.runs import new_graph, run


@pytest.mark.parametrize("dtype", [FLOAT, HALF, INT], ids=repr)
def test_long_rows(dtype):
    """
    The first of equals, in whichever part it is; rows of an odd length.
    """
    graph, prog = new_graph(64), program.Sequence()
    t = graph.add_variable(dtype, (3, 5001), "linear")
    high, at = popnn.max_and_arg_max(graph, t, prog)
    low, lowest = popnn.min_and_arg_min(graph, t, prog)
    assert max(sum(g.count for g in cs.groups.values()) for cs in graph.compute_sets) > 30
    x = np.random.default_rng(0).integers(-50, 50, (3, 5001)).astype(dtype.numpy)
    found = run(graph, prog, {t: x}, {"high": high, "at": at, "low": low, "lowest": lowest}, (pc.Engine,))
    np.testing.assert_array_equal(found["at"], x.argmax(1))
    np.testing.assert_array_equal(found["lowest"], x.argmin(1))
    np.testing.assert_array_equal(found["high"], x.max(1))
    np.testing.assert_array_equal(found["low"], x.min(1))


@pytest.mark.parametrize("columns", [4, 1024])
def test_a_nan_counts_only_if_it_comes_first(columns):
    """
    Of the row; one that is the first of a part is passed over.
    """
    graph, prog = new_graph(), program.Sequence()
    t = graph.add_variable(FLOAT, (3, columns), "linear")
    x = np.tile(np.arange(columns, dtype=np.float32), (3, 1))
    x[0, 0] = x[1, columns // 4 :: columns // 4] = np.nan
    x[2, columns // 2 :] = np.nan
    found = run(graph, prog, {t: x}, {"at": popnn.arg_max(graph, t, prog), "low": popnn.arg_min(graph, t, prog)})
    last = columns - 1 if columns > 4 else 0
    assert found["at"].tolist() == [0, last, columns // 2 - 1]
    assert found["low"].tolist() == [0, 0, 0]
