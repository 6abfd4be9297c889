"""Transposes and groupings: other places, the same values."""

import numpy as np
import pytest

from popcore import errors, program
from popcore.ops import popops, poputil
from popcore.ops.poputil import GroupingInfo
from popcore.types import FLOAT, HALF
from tests.ops.popops.runs import new_graph, run, values


@pytest.mark.parametrize("shape", [(3, 4), (2, 5, 8), (0, 3)])
def test_partial_transpose(shape):
    """
    The last two dimensions; the result lies in its own order, each element on the tile it was on.
    """
    graph, prog = new_graph(), program.Sequence()
    t = graph.add_variable(HALF, shape)
    poputil.map_tensor_linearly(graph, t, 1, 1)
    cs = graph.add_compute_set()
    out = popops.rearrange.partial_transpose(graph, t, cs)
    prog.add(program.Execute(cs))
    assert out.is_contiguous
    assert graph.get_tile_mapping(out) == graph.get_tile_mapping(t.dim_roll(t.rank - 2, t.rank - 1))
    x = values(HALF, shape)
    np.testing.assert_array_equal(run(graph, prog, {t: x}, {"out": out})["out"], np.swapaxes(x, -1, -2))
    with pytest.raises(errors.ShapeError):
        popops.rearrange.partial_transpose(graph, t.flatten(), cs)


def test_regroup():
    """
    The grouping that is asked for is the one that is found; a tensor that has it stays.
    """
    graph, prog = new_graph(), program.Sequence()
    t = graph.add_variable(FLOAT, (6, 4, 8), "linear")
    out = popops.rearrange.regroup_tensor(graph, t, prog, GroupingInfo(2, 8), GroupingInfo(1, 4))
    assert poputil.detect_dim_groupings(graph, out)[0] == GroupingInfo(1, 4)
    assert popops.rearrange.regroup_if_possible(graph, out, prog, GroupingInfo(1, 4)) is out
    assert popops.rearrange.regroup_if_possible(graph, t, prog, GroupingInfo(1, 3)) is t
    again = popops.rearrange.regroup_if_beneficial(graph, t, out, prog)
    assert poputil.detect_dim_groupings(graph, again)[0] == GroupingInfo(1, 4)
    assert popops.rearrange.regroup_if_beneficial(graph, t, 8, prog) is t
    assert popops.rearrange.regroup_if_beneficial(graph, out, 1, prog) is out
    last = popops.rearrange.regroup_if_beneficial(graph, out, 8, prog)
    assert poputil.detect_innermost_grouping(graph, last) == 8
    x = values(FLOAT, t.shape)
    found = run(graph, prog, {t: x}, {"out": out, "again": again, "last": last})
    for array in found.values():
        np.testing.assert_array_equal(array, x)
    assert [popops.rearrange.get_minimum_regroup_grain_size(d) for d in ("float", "half", "char")] == [2, 4, 8]
    with pytest.raises(errors.ShapeError):
        popops.rearrange.regroup_tensor(graph, t, prog, GroupingInfo(2, 8), GroupingInfo(1, 3))
