"""Replicated graphs as views of one: the older way to make them, and what is refused."""

import numpy as np
import pytest

import popcore as pc
from popcore import FLOAT, errors
from popcore.program import Copy


@pytest.fixture
def top():
    return pc.Graph(pc.Device("POD16", num_ipus=4, tiles_per_ipu=3).target)


def test_each_replica_has_its_share_of_the_ipus(top):
    """
    The top-level graph keeps the whole target; both are one graph, which an engine may be made of through either.
    """
    replicated = top.create_replicated_graph(2)
    assert (replicated.target.num_ipus, replicated.replication_factor) == (2, 2)
    assert (top.target.num_ipus, top.replication_factor) == (4, 1)
    virtual = replicated.create_virtual_graph(3, 6)
    assert replicated.get_top_level_graph() is virtual.get_top_level_graph() is top.get_top_level_graph() is top
    x = virtual.add_variable(FLOAT, (6,), mapping="linear", name="x")
    y = top.add_variable(FLOAT, (6,), tile=5, name="y")
    for name, each in zip("xy", (x, y), strict=True):
        top.create_host_write(name, each)
        top.create_host_read(name, each)
    for engine_class in (pc.Engine, pc.ReferenceEngine):
        engine = engine_class(top, Copy(x, y))
        engine.write_tensor("x", np.arange(12, dtype=np.float32).reshape(2, 6))
        engine.run()
        assert engine.read_tensor("y").tolist() == np.arange(12.0).reshape(2, 6).tolist()
    with pytest.raises(errors.TileMappingError, match="num_tiles = 6"):
        top.add_variable(FLOAT, (1,), tile=6)


def test_a_graph_that_is_not_replicated_is_its_own_top_level_graph(top):
    assert top.get_top_level_graph() is top
    assert top.create_virtual_graph(2).get_top_level_graph() is top


def test_what_cannot_be_replicated(top):
    """
    A factor that does not divide, a view, a graph that has something.
    """
    with pytest.raises(errors.GraphError, match="3 does not divide the 4 IPUs"):
        top.create_replicated_graph(3)
    with pytest.raises(errors.GraphError, match="a view of another"):
        top.create_virtual_graph(3).create_replicated_graph(1)
    top.add_variable(FLOAT, (1,))
    with pytest.raises(errors.GraphError, match="not empty"):
        top.create_replicated_graph(2)
    replicated = pc.Graph(top.target).create_replicated_graph(2)
    with pytest.raises(errors.GraphError, match="a view of another"):
        replicated.create_replicated_graph(2)
