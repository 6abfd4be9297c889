"""Does a ReferenceEngine run replicas in step?"""

import numpy as np
import pytest

import popcore as pc
from popcore import BOOL, FLOAT, INT, errors, program


@pytest.fixture
def twins(graph):
    """A graph of two replicas."""
    graph.replication_factor = 2
    return graph


def variable(graph, dtype, shape, name):
    """A variable that the host writes and reads."""
    made = graph.add_variable(dtype, shape, name=name, tile=0)
    graph.create_host_write(name, made)
    graph.create_host_read(name, made)
    return made


def test_each_replica_has_its_own_memory(twins):
    """
    One array for all, or one with a leading dimension.
    """
    variable(twins, FLOAT, (2,), "x")
    engine = pc.ReferenceEngine(twins, program.Sequence())
    engine.write_tensor("x", np.array([1, 2], np.float32))
    assert engine.read_tensor("x").tolist() == [[1, 2], [1, 2]]
    engine.write_tensor("x", np.array([[1, 2], [3, 4]], np.float32))
    assert engine.read_tensor("x").tolist() == [[1, 2], [3, 4]]


def test_copies_between_replicas_all_read_first(twins):
    """
    A swap in place.
    """
    x = variable(twins, FLOAT, (2,), "x")
    engine = pc.ReferenceEngine(twins, program.CrossReplicaCopy(x, x, {0: 1, 1: 0}))
    engine.write_tensor("x", np.array([[1, 2], [3, 4]], np.float32))
    engine.run()
    assert engine.read_tensor("x").tolist() == [[3, 4], [1, 2]]


def test_replicas_may_not_part_ways(twins):
    """
    Known trap J1: a predicate that differs ends the run, and so does a promise that does not hold.
    """
    flag = variable(twins, BOOL, (), "flag")
    engine = pc.ReferenceEngine(twins, [program.If(flag, program.Sequence()), program.AssumeEqualAcrossReplicas(flag)])
    for run in (0, 1):
        engine.write_tensor("flag", np.array([True, True]).reshape(2))
        engine.run(run)
        engine.write_tensor("flag", np.array([True, False]).reshape(2))
        with pytest.raises(errors.ProgramError, match="flag"):
            engine.run(run)


def test_streams_and_remote_buffers_are_each_replica_s(twins):
    """
    Replica 0 takes the first transfer, replica 1 the next.
    """
    x = variable(twins, INT, (2,), "x")
    there, back = twins.add_host_to_device_fifo("in", INT, 2), twins.add_device_to_host_fifo("out", INT, 2)
    store = twins.add_remote_buffer("store", INT, 2)
    engine = pc.ReferenceEngine(twins, program.Sequence(program.Copy(there, x), program.Copy(x, store), program.Copy(x, back)))
    result = np.zeros((2, 2), np.int32)
    engine.connect_stream("in", np.arange(6, dtype=np.int32))
    engine.connect_stream("out", result)
    engine.run()
    assert result.tolist() == [[0, 1], [2, 3]]
    assert [engine.copy_from_remote_buffer("store", replica=r).tolist() for r in (0, 1)] == [[0, 1], [2, 3]]
    engine.run()
    assert result.tolist() == [[4, 5], [0, 1]]


def test_each_replica_prints(twins, capsys):
    """
    With its number.
    """
    x = twins.add_variable(INT, (), name="x", tile=0)
    pc.ReferenceEngine(twins, program.PrintTensor(x)).run()
    assert capsys.readouterr().err == "x (replica 0):\n0\nx (replica 1):\n0\n"
