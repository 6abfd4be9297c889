"""Known traps, group H and those of G and J about replicas: collectives, streams, control flow."""

import io
import mmap
from pathlib import Path

import numpy as np
import pytest

import popcore as pc
from popcore import BOOL, FLOAT, HALF, INT, UNSIGNED_INT, errors, program
from popcore.ops import gcl
from popcore.program import Copy, Execute, If, Repeat, Sequence, Switch
from tests.cases.codelets import AddTo, Count, Refuse, Talk

ADD = gcl.CollectiveOperator.ADD
METHODS = list(gcl.ALGORITHMS)


def replicated(replicas, ipus=1, tiles=4):
    """A graph of some replicas of some IPUs each."""
    return pc.Graph(pc.Device("POD64", num_ipus=replicas * ipus, tiles_per_ipu=tiles).target, replication_factor=replicas)


def variable(graph, name, dtype, shape):
    """A variable that the host reads and writes under its name."""
    made = graph.add_variable(dtype, shape, mapping="linear", name=name)
    graph.create_host_read(name, made)
    graph.create_host_write(name, made)
    return made


def reduced(engine_class, values, dtype=FLOAT, operator=ADD, group=gcl.CommGroup(), method="ring"):  # noqa: B008  # frozen
    """``values``, [replicas, elements], after an all-reduce in place, and the engine."""
    graph = replicated(len(values))
    x, prog = variable(graph, "x", dtype, values.shape[1:]), Sequence()
    gcl.all_reduce_in_place_cross_replica(graph, x, operator, prog, group, options={"method": method})
    engine = engine_class(graph, prog)
    engine.write_tensor("x", values)
    engine.run()
    return engine.read_tensor("x"), engine


def test_g2_a_broadcast_stream_brings_the_same_to_all(any_engine):
    """Case G2: 4 replicas, 16 batches: each sees batch i at step i."""
    graph = replicated(4)
    stream = graph.add_host_to_device_fifo("in", INT, 1, pc.ReplicatedStreamMode.BROADCAST)
    back = graph.add_device_to_host_fifo("out", INT, 1)
    x = variable(graph, "x", INT, (1,))
    engine = any_engine(graph, Repeat(16, Sequence(Copy(stream, x), Copy(x, back))))
    seen = [[] for _ in range(4)]
    engine.connect_stream("in", np.arange(16, dtype=np.int32))
    for replica, values in enumerate(seen):
        engine.connect_stream("out", lambda buffer, values=values: values.extend(buffer.tolist()), replica=replica)
    engine.run()
    assert seen == [list(range(16))] * 4
    with pytest.raises(errors.StreamError, match="broadcast"):
        engine.connect_stream("in", np.arange(16, dtype=np.int32), replica=1)


def test_a_stream_of_all_serves_replica_after_replica(any_engine):
    """One array for all: consecutive chunks at each Copy. Connected for some only: the run is refused."""
    graph = replicated(3)
    stream, x = graph.add_host_to_device_fifo("in", INT, 2), variable(graph, "x", INT, (2,))
    engine = any_engine(graph, Copy(stream, x))
    engine.connect_stream("in", np.arange(2, dtype=np.int32), replica=1)
    with pytest.raises(errors.StreamError, match=r"'in'.*replica 0"):
        engine.run()
    with pytest.raises(errors.StreamError, match="replica 3 of 3"):
        engine.connect_stream("in", np.arange(2, dtype=np.int32), replica=3)
    engine.connect_stream("in", np.arange(12, dtype=np.int32))
    engine.run()
    assert engine.read_tensor("x").tolist() == [[0, 1], [2, 3], [4, 5]]
    engine.run()
    assert engine.read_tensor("x").tolist() == [[6, 7], [8, 9], [10, 11]]


@pytest.mark.parametrize(("operator", "accumulation", "wanted"), [("MEAN", 1, 3), ("ADD", 1, 12), ("MEAN", 3, 9), ("ADD", 3, 36)])
def test_h1_a_mean_is_over_the_replicas(any_engine, operator, accumulation, wanted):
    """Case H1: gradients 1, 2, 3, 6 on 4 replicas; the mean over both divides by the accumulation too."""
    graph = replicated(4)
    gradient, total, prog = variable(graph, "gradient", FLOAT, (3,)), variable(graph, "total", FLOAT, (3,)), Sequence()
    cs = graph.add_compute_set("accumulate")
    graph.add_vertex(cs, AddTo[FLOAT], {"x": gradient, "y": total}, tile=0)
    prog.add(Repeat(accumulation, Execute(cs)))
    gcl.all_reduce_in_place_cross_replica(graph, total, gcl.CollectiveOperator[operator], prog)
    engine = any_engine(graph, prog)
    engine.write_tensor("gradient", np.repeat(np.array([1, 2, 3, 6], np.float32), 3).reshape(4, 3))
    engine.write_tensor("total", np.zeros(3, np.float32))
    engine.run()
    assert (engine.read_tensor("total") == wanted).all()
    if operator == "MEAN":
        assert (engine.read_tensor("total") / accumulation == 3).all()


@pytest.mark.parametrize("factor", [1, 2, 3])
def test_h2_an_update_is_made_once_all_its_micro_batches_are_there(any_engine, factor):
    """Case H2: 7 micro-batches: floor(7 / k) updates, the accumulator empty before each; what is left over serves the next run."""
    graph, step = replicated(2), Sequence()
    stream = graph.add_host_to_device_fifo("batches", FLOAT, 1)
    batch, total, weight, updates = (
        variable(graph, name, dtype, (1,)) for name, dtype in zip(["batch", "total", "weight", "updates"], [FLOAT] * 3 + [INT], strict=True)
    )
    accumulate, apply, count = (graph.add_compute_set(name) for name in ("accumulate", "apply", "count"))
    graph.add_vertex(accumulate, AddTo[FLOAT], {"x": batch, "y": total}, tile=0)
    graph.add_vertex(apply, AddTo[FLOAT], {"x": total, "y": weight}, tile=0)
    graph.add_vertex(count, Count, {"x": updates.reshape(()), "by": 1}, tile=0)
    zero = graph.add_constant(FLOAT, (1,), 0, tile=0)
    step.add(Repeat(factor, Sequence(Copy(stream, batch), Execute(accumulate))))
    gcl.all_reduce_in_place_cross_replica(graph, total, ADD, step)
    step.add(Sequence(Execute(apply), Execute(count), Copy(zero, total)))
    engine = any_engine(graph, [Repeat(7 // factor, step), Copy(stream, batch)])
    for replica in (0, 1):
        engine.connect_stream("batches", np.arange(1, 8, dtype=np.float32) * (1 + replica), replica=replica)
    engine.run()
    used = 7 // factor * factor
    assert engine.read_tensor("updates").tolist() == [[7 // factor]] * 2
    assert engine.read_tensor("weight").tolist() == [[3 * used * (used + 1) / 2]] * 2
    assert engine.read_tensor("total").tolist() == [[0], [0]]
    engine.run(1)
    following = used % 7 + 1
    assert engine.read_tensor("batch").tolist() == [[following], [2 * following]]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("p", [1, 2, 3, 4, 5, 7, 8, 64])
def test_h4_any_number_of_elements_is_reduced(p, method):
    """Cases H4 and H5: n = 0, 1, p-1, p, p+1, 2p+3; in place and into another tensor."""
    sizes = sorted({0, 1, p - 1, p, p + 1, 2 * p + 3})
    graph, prog = replicated(p), Sequence()
    for n in sizes:
        x, y = (variable(graph, f"{name}{n}", INT, (n,)) for name in "xy")
        gcl.all_reduce_to_destination_cross_replica(graph, x, y, ADD, prog, options={"method": method})
        gcl.all_reduce_in_place_cross_replica(graph, x, ADD, prog, options={"method": method})
    engine = pc.Engine(graph, prog)
    rng = np.random.default_rng(p)
    data = {n: rng.integers(-100, 100, (p, n), np.int32) for n in sizes}
    for n, values in data.items():
        engine.write_tensor(f"x{n}", values)
    engine.run()
    for n, values in data.items():
        for name in (f"x{n}", f"y{n}"):
            assert np.array_equal(np.reshape(engine.read_tensor(name), (p, n)), np.tile(values.sum(0, dtype=np.int32), (p, 1))), name


def test_h6_a_tensor_smaller_than_the_group_leaves_empty_shares(any_engine):
    """Case H6: p = 64, n = 10: chunks of ceil(n / p) = 1; ranks from 10 on get a zero."""
    graph, prog = replicated(64), Sequence()
    x = variable(graph, "x", INT, (10,))
    graph.create_host_read("share", gcl.reduce_scatter_cross_replica(graph, x, ADD, prog))
    engine = any_engine(graph, prog)
    engine.write_tensor("x", np.arange(10, dtype=np.int32))
    engine.run()
    assert engine.read_tensor("share").ravel().tolist() == [64 * i for i in range(10)] + [0] * 54


def test_h7_bytes_on_links_are_those_of_a_ring():
    """Case H7: p = 2 and many elements: the sum is right, and 2(p - 1)/p of the data crosses."""
    values = np.arange(2 * 30_000, dtype=np.int32).reshape(2, 30_000)
    found, engine = reduced(pc.Engine, values, INT)
    assert np.array_equal(found[1], values.sum(0))
    collective = engine.profile().collectives[0]
    assert (collective.bytes_on_links_per_replica, collective.steps, collective.executions) == (30_000 * 4, 2, 1)
    assert engine.profile().bytes.ipu_links == 30_000 * 4


@pytest.mark.parametrize(
    ("kind", "wanted"), [("CONSECUTIVE", [1, 1, 5, 5, 9, 9, 13, 13]), ("ORTHOGONAL", [4, 6, 8, 10, 4, 6, 8, 10]), ("NONE", list(range(8)))]
)
def test_h8_only_a_group_is_reduced(any_engine, kind, wanted):
    """Case H8: values 0 to 7, groups of 2."""
    kind = gcl.CommGroupType[kind]
    values = np.arange(8, dtype=np.int32).reshape(8, 1)
    found, _ = reduced(any_engine, values, INT, group=gcl.CommGroup(kind, 2 if kind is not gcl.CommGroupType.NONE else 0))
    assert found.ravel().tolist() == wanted
    with pytest.raises(errors.ValueRangeError, match=r"groups of 3.*8 replicas"):
        reduced(any_engine, values, INT, group=gcl.CommGroup(gcl.CommGroupType.ORTHOGONAL, 3))


@pytest.mark.parametrize("operator", ["ADD", "MEAN", "MAX", "LOCAL"])
def test_h14_one_replica_is_left_as_it_is(operator):
    """Case H14: no bytes, no time."""
    values = np.array([[1.5, -2.0]], np.float32)
    found, engine = reduced(pc.Engine, values, operator=gcl.CollectiveOperator[operator])
    assert found.tolist() == [1.5, -2.0]
    collective = engine.profile().collectives[0]
    assert (collective.bytes_on_links_per_replica, collective.cycles) == (0, 0)


def test_h15_integers_wrap_and_halves_round_at_every_hop(any_engine):
    """Case H15: INT_MAX + 1; 64 halves of 0.1, each sum rounded to half on its way round."""
    limit = np.iinfo(np.int32).max
    found, _ = reduced(any_engine, np.array([[limit], [1]], np.int32), INT)
    assert found.ravel().tolist() == [-limit - 1] * 2
    found, _ = reduced(any_engine, np.full((64, 3), 0.1, np.float16), HALF)
    total = np.float16(0)
    for _ in range(64):
        total = np.float16(total + np.float16(0.1))
    assert found.tolist() == [[float(total)] * 3] * 64
    with pytest.raises(errors.ElementTypeError, match="LOGICAL_AND"):
        reduced(any_engine, np.zeros((2, 1), np.float32), operator=gcl.CollectiveOperator.LOGICAL_AND)
    with pytest.raises(errors.ElementTypeError, match="MEAN"):
        reduced(any_engine, np.zeros((2, 1), np.int32), INT, gcl.CollectiveOperator.MEAN)


@pytest.mark.parametrize(("operator", "wanted"), [("LOGICAL_AND", [False, True]), ("LOGICAL_OR", [True, True]), ("LOCAL", None)])
def test_h15_flags_are_combined(any_engine, operator, wanted):
    """Case H15: AND, OR and LOCAL of BOOL."""
    values = np.array([[True, True], [False, True], [False, True]])
    found, _ = reduced(any_engine, values, BOOL, gcl.CollectiveOperator[operator])
    assert found.tolist() == (values.tolist() if wanted is None else [wanted] * 3)


def test_h16_sizes_are_those_of_one_replica(any_engine):
    """Case H16: the graph's target, a tensor and a host read are of one replica; the host has a dimension more."""
    graph = replicated(4, ipus=2)
    assert (graph.target.num_ipus, graph.target.num_tiles, graph.replication_factor) == (2, 8, 4)
    state = variable(graph, "state", UNSIGNED_INT, (graph.target.num_tiles, 4))
    index = graph.add_replication_index_constant()
    graph.set_tile_mapping(index, 7)
    engine = any_engine(graph, Copy(index.reshape((1,)).broadcast(32, 0).reshape((8, 4)), state))
    engine.run()
    found = engine.read_tensor("state")
    assert found.shape == (4, 8, 4)
    assert found[:, 7, 3].tolist() == [0, 1, 2, 3]
    engine.load()
    engine.run()
    assert engine.read_tensor("state")[:, 0, 0].tolist() == [0, 1, 2, 3]


def test_j1_control_flow_may_not_diverge(any_engine):
    """Case J1: If and Switch on values that differ are stopped, with which and what; after an all-gather they agree."""
    graph = replicated(3)
    flag, number, x = variable(graph, "flag", BOOL, ()), variable(graph, "number", INT, ()), variable(graph, "x", INT, ())
    cs = graph.add_compute_set("count")
    graph.add_vertex(cs, Count, {"x": x, "by": 1}, tile=0)
    agreed = Sequence()
    gathered = gcl.all_gather_cross_replica(graph, flag, agreed)
    agreed.add(If(gathered[1], Execute(cs)))
    engine = any_engine(graph, [If(flag, Execute(cs)), Switch(number, {-1: Execute(cs)}), program.AssumeEqualAcrossReplicas(flag), agreed])
    engine.write_tensor("x", 0)
    engine.write_tensor("flag", np.array([False, True, False]))
    engine.write_tensor("number", np.array([-1, -1, 2], np.int32))
    with pytest.raises(errors.ProgramError, match=r"(?s)part ways.*If.*'flag'.*False on replica 0, True on replica 1") as caught:
        engine.run(0)
    assert caught.value.values == (False, True, False)
    with pytest.raises(errors.ProgramError, match=r"(?s)part ways.*'number'.*-1 on replica 0, 2 on replica 2"):
        engine.run(1)
    with pytest.raises(errors.ProgramError, match=r"AssumeEqual.*'flag'.*differ: replica 1"):
        engine.run(2)
    engine.run(3)
    assert engine.read_tensor("x").tolist() == [1, 1, 1]
    engine.write_tensor("flag", True)
    engine.write_tensor("number", -1)
    for run in range(3):
        engine.run(run)
    assert engine.read_tensor("x").tolist() == [3, 3, 3]


def test_one_replica_that_aborts_stops_all(any_engine):
    graph = replicated(3)
    flag = variable(graph, "flag", BOOL, ())
    engine = any_engine(graph, program.AbortOnCondition(flag, "too large"))
    engine.write_tensor("flag", False)
    engine.run()
    engine.write_tensor("flag", np.array([False, False, True]))
    with pytest.raises(errors.ProgramError, match="too large"):
        engine.run()


def test_replicas_copy_from_each_other(any_engine):
    """All read before any writes: a rotation in place."""
    graph = replicated(3)
    x = variable(graph, "x", INT, (2,))
    engine = any_engine(graph, program.CrossReplicaCopy(x, x, {0: 1, 1: 2, 2: 0}))
    engine.write_tensor("x", np.arange(6, dtype=np.int32).reshape(3, 2))
    engine.run()
    assert engine.read_tensor("x").tolist() == [[2, 3], [4, 5], [0, 1]]


def test_every_replica_has_remote_rows_of_its_own(any_engine):
    """Written by the host for one replica or all; the row is read from a tensor, which differs."""
    graph = replicated(2)
    remote, row, x = graph.add_remote_buffer("rows", INT, 2, 3), variable(graph, "row", INT, ()), variable(graph, "x", INT, (2,))
    engine = any_engine(graph, Sequence(Copy(remote, x, row), Copy(x, remote, 0)))
    engine.copy_to_remote_buffer(np.array([1, 2], np.int32), "rows", 1)
    engine.copy_to_remote_buffer(np.array([3, 4], np.int32), "rows", 2, replica=1)
    engine.write_tensor("row", np.array([1, 2], np.int32))
    engine.run()
    assert engine.read_tensor("x").tolist() == [[1, 2], [3, 4]]
    assert [engine.copy_from_remote_buffer("rows", 0, replica=r).tolist() for r in (0, 1)] == [[1, 2], [3, 4]]
    with pytest.raises(errors.EngineError, match="replica 2 of remote buffer 'rows'"):
        engine.copy_from_remote_buffer("rows", 0, replica=2)
    with pytest.raises(errors.EngineError, match="row 3 of remote buffer"):
        engine.copy_from_remote_buffer("rows", 3)


def test_remote_buffers_must_fit_the_machines():
    """128 GB a machine, shared by its four replicas; what fits is not touched until it is used."""
    graph = replicated(4)
    graph.add_remote_buffer("rows", FLOAT, 1_000_000, 8_001)
    with pytest.raises(errors.CompileError, match=r"(?s)4 replicas need 128,016,000,000 B.*1 machines.*'rows'"):
        pc.Engine(graph, Sequence())
    fits = replicated(4, tiles=16)
    remote, x = fits.add_remote_buffer("rows", FLOAT, 1_000_000, 200), variable(fits, "x", FLOAT, (1_000_000,))
    engine = pc.Engine(fits, Copy(remote, x, 199))
    engine.copy_to_remote_buffer(np.full(1_000_000, 3, np.float32), "rows", 199, replica=2)
    engine.run()
    assert engine.read_tensor("x")[:, -1].tolist() == [0, 0, 3, 0]


def test_prints_and_faults_say_which_ipu_and_replica(any_engine):
    """IPUs are counted over the whole device."""
    graph = replicated(2, ipus=2)
    x = variable(graph, "x", INT, ())
    talk, refuse = graph.add_compute_set("talk"), graph.add_compute_set("refuse")
    graph.add_vertex(talk, Talk, {"x": x}, tile=5)
    graph.add_vertex(refuse, Refuse, {"x": x, "limit": 5}, tile=1)
    engine, prints, shown = any_engine(graph, Sequence(Execute(talk), program.PrintTensor("x", x), Execute(refuse))), io.StringIO(), io.StringIO()
    engine.set_print_stream(prints)
    engine.set_print_tensor_stream(shown)
    engine.write_tensor("x", np.array([1, 9], np.int32))
    with pytest.raises(errors.VertexError, match=r"tile 1, replica 1, compute set 'refuse'"):
        engine.run()
    assert prints.getvalue() == "[1.1.0] x is 1\n[3.1.0] x is 9\n"
    assert shown.getvalue() == "x (replica 0):\n1\nx (replica 1):\n9\n"


def test_all_to_all_and_broadcast(any_engine):
    graph, prog = replicated(3), Sequence()
    x = variable(graph, "x", INT, (3, 2))
    graph.create_host_read("swapped", gcl.all_to_all_cross_replica(graph, x, prog))
    graph.create_host_read("second", gcl.broadcast_cross_replica(graph, x, prog, root=1))
    engine = any_engine(graph, prog)
    values = np.arange(18, dtype=np.int32).reshape(3, 3, 2)
    engine.write_tensor("x", values)
    engine.run()
    assert np.array_equal(engine.read_tensor("swapped"), values.swapaxes(0, 1))
    assert np.array_equal(engine.read_tensor("second"), np.stack([values[1]] * 3))
    with pytest.raises(errors.ShapeError, match="groups of 3"):
        gcl.all_to_all_cross_replica(graph, x[:2], prog)


def test_several_tensors_are_reduced_at_once(any_engine):
    """One bucket, one collective."""
    graph, prog = replicated(2), Sequence()
    tensors = [variable(graph, name, FLOAT, shape) for name, shape in (("a", (2, 3)), ("b", ()), ("c", (5,)))]
    gcl.all_reduce_in_place_cross_replica(graph, tensors, ADD, prog)
    engine = any_engine(graph, prog)
    for name in "abc":
        engine.write_tensor(name, np.ones(engine.read_tensor(name).shape, np.float32))
    engine.run()
    assert all((engine.read_tensor(name) == 2).all() for name in "abc")


@pytest.mark.parametrize("threads", [1, 2, 3, 5])
def test_threads_share_replicas_and_change_no_bit(threads):
    """More threads than replicas share tiles, fewer share replicas."""
    graph = pc.Graph(pc.Device("POD64", num_ipus=3, tiles_per_ipu=64).target, replication_factor=3)
    x, y = (variable(graph, name, FLOAT, (64, 700)) for name in "xy")
    cs, prog = graph.add_compute_set("add"), Sequence()
    for tile in range(64):
        graph.add_vertex(cs, AddTo[FLOAT], {"x": x[tile], "y": y[(tile + 9) % 64]}, tile=tile)
    prog.add(Repeat(3, Sequence(Execute(cs), Copy(y, x))))
    gcl.all_reduce_in_place_cross_replica(graph, x, ADD, prog)
    data = np.random.default_rng(1).standard_normal((3, 64, 700)).astype(np.float32)
    results = []
    for number in (1, threads):
        engine = pc.Engine(graph, prog, options={"engine.threads": number})
        engine.write_tensor("x", data)
        engine.write_tensor("y", data[::-1].copy())
        engine.run()
        results.append(engine.read_tensor("x"))
    assert results[0].tobytes() == results[1].tobytes()


def test_a_replicated_executable_is_stored(tmp_path):
    """Replicas, collectives and decisions come back from a file."""
    graph, prog = replicated(4), Sequence()
    x, flag = variable(graph, "x", INT, (5,)), variable(graph, "flag", BOOL, ())
    gcl.all_reduce_in_place_cross_replica(graph, x, ADD, prog, gcl.CommGroup(gcl.CommGroupType.CONSECUTIVE, 2), name="sum")
    prog.add(If(flag, Copy(x[:2], x[2:4])))
    pc.compile_graph(graph, prog).save(tmp_path / "file")
    engine = pc.Engine(pc.Executable.load(tmp_path / "file"), device=pc.Device("POD64", num_ipus=4, tiles_per_ipu=4))
    engine.write_tensor("flag", np.array([True, True, True, False]))
    engine.write_tensor("x", np.arange(20, dtype=np.int32).reshape(4, 5))
    with pytest.raises(errors.ProgramError, match="False on replica 3"):
        engine.run()
    assert engine.read_tensor("x")[:, 0].tolist() == [5, 5, 25, 25]
    assert engine.profile().collectives[0].name == "sum"
    with pytest.raises(errors.EngineError, match=r"POD64 \(4 x GC200.*the device is POD64 \(1 x"):
        pc.Engine(pc.Executable.load(tmp_path / "file"), device=pc.Device("POD64", num_ipus=1, tiles_per_ipu=4))


def test_an_idle_pod_costs_nothing():
    """51 GB of variables on 256 replicas of a whole chip: addresses alone until they are written."""
    statm, page = Path("/proc/self/statm"), mmap.PAGESIZE
    before = int(statm.read_text().split()[1]) * page if statm.exists() else 0
    graph = pc.Graph(pc.Device("POD256"), replication_factor=256)
    graph.create_host_read("x", graph.add_variable(FLOAT, (50_000_000,), mapping="linear", name="x"))
    engine = pc.Engine(graph, Sequence())
    engine.run()
    held = int(statm.read_text().split()[1]) * page if statm.exists() else 0
    assert held - before < 256 << 20
