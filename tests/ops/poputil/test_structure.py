"""Groupings and partitions of tensors."""

import numpy as np
import pytest

from popcore import errors
from popcore.ops import poputil
from popcore.ops.poputil import GroupingInfo
from popcore.types import FLOAT, HALF
from tests.ops.popops.runs import new_graph


def test_groupings_from_the_innermost_outward():
    """
    What lies together in memory and on a tile; the same dimension twice.
    """
    graph = new_graph()
    base = graph.add_variable(FLOAT, (3, 5, 2, 4))
    for i in range(3):
        for j in range(5):
            graph.set_tile_mapping(base[i, j], (i + j) % 6)
    t = base.dim_shuffle([3, 0, 2, 1]).reshape((4, 3, 10))  # the last: 2 of stride 4, each of 5 apart
    assert poputil.detect_innermost_grouping(graph, t) == 1
    assert poputil.detect_dim_groupings(graph, t)[0] == GroupingInfo(0, 4)
    u = base.reshape((3, 5, 8))
    assert poputil.detect_innermost_grouping(graph, u) == 8
    assert poputil.detect_dim_groupings(graph, u) == [GroupingInfo(2, 8)]
    assert poputil.detect_innermost_grouping(graph, u[:0]) == 1
    for call in (poputil.detect_innermost_grouping, poputil.detect_dim_groupings):
        with pytest.raises(errors.ShapeError):
            call(graph, u[0, 0, 0])


def test_partitions_lie_together():
    """
    Each is one run of memory, and iterating gives them all.
    """
    graph = new_graph()
    t = poputil.create_partitionable_tensor(graph, HALF, (5, 7, 2), (2, 3, 1))
    seen = np.zeros((5, 7, 2), int)
    parts = {}
    poputil.iterate_tensor_partitions(t, (2, 3, 1), lambda index, part: parts.update({index: part}))
    assert len(parts) == 6
    assert all(p.is_contiguous for p in parts.values())
    assert [parts[i, 0, 0].shape[0] for i in range(2)] == [3, 2]
    assert [parts[0, j, 0].shape[1] for j in range(3)] == [3, 2, 2]
    assert sum(p.num_elements for p in parts.values()) == seen.size
    with pytest.raises(errors.ShapeError):
        poputil.create_partitionable_tensor(graph, HALF, (5, 7), (2,))
    assert poputil.create_partitionable_tensor(graph, HALF, (0, 7), (2, 2)).shape == (0, 7)


def test_profile_values():
    """
    Plain numbers, texts and dictionaries.
    """
    graph = new_graph()
    t = graph.add_variable(HALF, (2, 3), name="t")
    cs = graph.add_compute_set("cs")
    found = poputil.to_profile_value({"t": t, "type": HALF, "n": (1, 2.5, None, True), "set": cs, "other": {1}})
    assert found["t"] == {"shape": [2, 3], "type": "half", "name": "t", "variables": [0]}
    assert found["type"] == "half"
    assert found["n"] == [1, 2.5, "<nullptr>", True]
    assert found["set"]["name"] == "cs"
    assert found["other"] == "{1}"
