"""Do collectives over replicas do what their calls say: into new tensors, given ones, several at once, in every group?"""

import numpy as np
import pytest

import popcore as pc
from popcore import BOOL, FLOAT, HALF, INT, errors
from popcore.executable.schedules import members_of
from popcore.ops import gcl
from popcore.program import If, RepeatWhileTrue, Sequence, Switch
from tests.ops.gcl.collectives import data

ADD = gcl.CollectiveOperator.ADD
GROUPS = {"all": gcl.CommGroup(), "consecutive": gcl.CommGroup(gcl.CommGroupType.CONSECUTIVE, 3), "orthogonal": gcl.CommGroup(gcl.CommGroupType.ORTHOGONAL, 3)}
GROUPS["none"] = gcl.CommGroup(gcl.CommGroupType.NONE)


def replicated(replicas=6, name="POD16"):
    return pc.Graph(pc.Device(name, num_ipus=replicas, tiles_per_ipu=4).target, replication_factor=replicas)


def variable(graph, name, dtype, shape):
    made = graph.add_variable(dtype, shape, mapping="linear", name=name)
    graph.create_host_read(name, made)
    graph.create_host_write(name, made)
    return made


def totals(values, group):
    """For each replica, the rows of its group."""
    size = {"all": len(values), "none": 1}.get(group, 3)
    found = [None] * len(values)
    for members in members_of(group, size, len(values)):
        for rank, member in enumerate(members):
            found[member] = (rank, values[list(members)])
    return found


@pytest.mark.parametrize("group", GROUPS)
def test_several_tensors_in_one_collective(engine_class, group):
    """
    Two of FLOAT, one of INT: two collectives for three tensors; each in its own shape, and each chunk that of its tensor.
    """
    graph, prog = replicated(), Sequence()
    names = {"a": (FLOAT, (2, 5)), "b": (FLOAT, (7,)), "c": (INT, (4,))}
    given = [variable(graph, name, *what) for name, what in names.items()]
    reduced = gcl.all_reduce_cross_replica(graph, given, ADD, prog, GROUPS[group])
    shares = gcl.reduce_scatter_cross_replica(graph, given, gcl.CollectiveOperator.MAX, prog, GROUPS[group])
    gathered = gcl.all_gather_cross_replica(graph, given, prog, GROUPS[group])
    assert len([p for p in prog.programs if type(p).__name__ == "Collective"]) == 6
    for kind, made in (("sum", reduced), ("share", shares), ("gather", gathered)):
        for name, each in zip(names, made, strict=True):
            graph.create_host_read(f"{kind} {name}", each)
    engine = engine_class(graph, prog)
    values = {name: data(dtype, 6, int(np.prod(shape)), seed).reshape(6, *shape) for seed, (name, (dtype, shape)) in enumerate(names.items())}
    for name, each in values.items():
        engine.write_tensor(name, each)
    engine.run()
    for name, each in values.items():
        found = {kind: engine.read_tensor(f"{kind} {name}") for kind in ("sum", "share", "gather")}
        for replica, (rank, rows) in enumerate(totals(each, group)):
            np.testing.assert_allclose(found["sum"][replica], rows.sum(0, dtype=each.dtype), rtol=1e-4, atol=1e-3)
            most = rows.max(0).reshape(-1)
            chunk = -(-most.size // len(rows))
            mine = most[rank * chunk : (rank + 1) * chunk]
            assert np.array_equal(found["share"][replica], np.pad(mine, (0, chunk - mine.size)))
            assert np.array_equal(found["gather"][replica], rows)


def test_sharding_goes_there_and_back(engine_class):
    """
    Replicated tensor sharding: each replica keeps a share of the sum, updates it, and gathers the whole for use; the fill is cut off.
    """
    graph, prog = replicated(4), Sequence()
    gradient, weights = variable(graph, "gradient", FLOAT, (3, 5)), variable(graph, "weights", FLOAT, (3, 5))
    share = graph.add_variable(FLOAT, (4,), mapping="linear", name="share")
    whole = graph.add_variable(FLOAT, (4, 4), mapping="linear", name="whole")
    gcl.reduce_scatter_to_destination_cross_replica(graph, gradient, share, ADD, prog)
    gcl.all_gather_to_destination_cross_replica(graph, share, whole, prog)
    prog.add(pc.program.Copy(whole.flatten()[:15], weights.flatten()))
    engine = engine_class(graph, prog)
    values = data(FLOAT, 4, 15).reshape(4, 3, 5)
    engine.write_tensor("gradient", values)
    engine.run()
    found = engine.read_tensor("weights")
    np.testing.assert_allclose(found[0], values.sum(0), rtol=1e-5, atol=1e-4)
    assert all(np.array_equal(found[0], each) for each in found)


@pytest.mark.parametrize(
    ("system", "replicas", "method", "group"),
    [
        ("POD64", 64, "quad_directional_ring", gcl.CommGroup()),
        ("POD64", 64, "two_level", gcl.CommGroup(gcl.CommGroupType.ORTHOGONAL, 16)),
        ("POD128", 128, "auto", gcl.CommGroup()),
    ],
)
def test_whole_pods_have_the_bits_of_their_steps(system, replicas, method, group):
    """
    Rings as they lie on a torus and over two: the Engine and the reference, which goes step by step.
    """
    graph, prog = pc.Graph(pc.Device(system, num_ipus=replicas, tiles_per_ipu=1), replication_factor=replicas), Sequence()
    x = variable(graph, "x", FLOAT, (131,))
    gcl.all_reduce_in_place_cross_replica(graph, x, ADD, prog, group, options={"method": method})
    assert prog.programs[0].method == ("two_level" if method == "auto" else method)
    values, found = data(FLOAT, replicas, 131), []
    for engine_class in (pc.Engine, pc.ReferenceEngine):
        engine = engine_class(graph, prog)
        engine.write_tensor("x", values)
        engine.run()
        found.append(engine.read_tensor("x").tobytes())
    assert found[0] == found[1]


def test_float_partials_of_half(engine_class):
    """
    0.1 eight times: 0.8 rounded once, where halves lose a bit at a hop.
    """
    found = {}
    for partials in ("half", "float"):
        graph, prog = replicated(8), Sequence()
        x = variable(graph, "x", HALF, (3,))
        gcl.all_reduce_in_place_cross_replica(graph, x, ADD, prog, options={"method": "clockwise_ring", "partialsType": partials})
        engine = engine_class(graph, prog)
        engine.write_tensor("x", np.full(3, 0.1, np.float16))
        engine.run()
        found[partials] = engine.read_tensor("x")[0, 0]
    assert found["float"] == np.float16(8 * float(np.float16(0.1)))
    assert found["half"] != found["float"]


def test_methods_and_groups_that_are_none_are_refused():
    graph, prog = replicated(), Sequence()
    x, c = variable(graph, "x", FLOAT, (4,)), variable(graph, "c", INT, (4,))
    with pytest.raises(errors.OptionError, match=r"(?s)'spiral'.*'quad_directional_ring'"):
        gcl.all_reduce_in_place_cross_replica(graph, x, ADD, prog, options={"method": "spiral"})
    with pytest.raises(errors.OptionError, match=r"(?s)'methods'.*'method'"):
        gcl.all_reduce_in_place_cross_replica(graph, x, ADD, prog, options={"methods": "ring"})
    with pytest.raises(errors.OptionError, match=r"(?s)'double'.*'float'"):
        gcl.all_reduce_in_place_cross_replica(graph, x, ADD, prog, options={"partialsType": "double"})
    with pytest.raises(errors.ElementTypeError, match=r"(?s)'c'.*partials"):
        gcl.all_reduce_in_place_cross_replica(graph, c, ADD, prog, options={"partialsType": "float"})
    with pytest.raises(errors.ShapeError, match="2 tensors to 1 destinations"):
        gcl.all_reduce_to_destination_cross_replica(graph, [x, x], [x], ADD, prog)
    with pytest.raises(errors.ShapeError, match=r"over 6 replicas.*\n.*24 elements"):
        gcl.all_gather_to_destination_cross_replica(graph, x, c, prog)
    with pytest.raises(errors.GraphError, match="no tensor"):
        gcl.all_reduce_cross_replica(graph, [], ADD, prog)
    with pytest.raises(errors.ValueRangeError, match="groups of 4"):
        gcl.all_reduce_cross_replica(graph, x, ADD, prog, gcl.CommGroup(gcl.CommGroupType.CONSECUTIVE, 4))


def test_replicas_that_would_wait_for_each_other_are_told_so(engine_class):
    """
    Collectives in another order, one that some never come to: who would wait where for whom.
    """
    graph = replicated(4)
    flag, number, x = variable(graph, "flag", BOOL, ()), variable(graph, "number", INT, ()), variable(graph, "x", FLOAT, (4,))
    one, other = Sequence(), Sequence()
    gcl.all_reduce_in_place_cross_replica(graph, x, ADD, one, name="gradients")
    gcl.all_gather_cross_replica(graph, x, one, name="weights")
    gcl.all_gather_cross_replica(graph, x, other, name="weights")
    gcl.all_reduce_in_place_cross_replica(graph, x, ADD, other, name="gradients")
    loop = RepeatWhileTrue(Sequence(), flag, one)
    engine = engine_class(graph, [If(flag, one, other), loop, Switch(number, {3: Sequence(one), 4: Sequence()}, other)])
    engine.write_tensor("flag", np.array([True, False, True, True]))
    engine.write_tensor("number", np.array([3, 4, 5, 3], np.int32))
    with pytest.raises(errors.ProgramError) as caught:
        engine.run(0)
    assert "replicas 0, 2, 3 would wait at all_reduce 'gradients' (test_cross.py:" in str(caught.value)
    assert "for replica 1\n" in str(caught.value)
    assert "replica 1 would wait at all_gather 'weights' (test_cross.py:" in str(caught.value)
    with pytest.raises(errors.ProgramError, match=r"(?s)replicas 0, 2, 3 would wait at all_reduce.*for replica 1\n.*replica 1 would meet nobody there"):
        engine.run(1)
    with pytest.raises(errors.ProgramError, match=r"(?s)replicas 0, 3 .*all_reduce.*for replicas 1, 2.*replica 2 .*all_gather.*replica 1 would meet nobody"):
        engine.run(2)
