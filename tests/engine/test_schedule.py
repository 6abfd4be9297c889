"""debug.schedule_seed: does a right program give the same bits in every order, and are the orders really others?"""

import io

import numpy as np
import pytest

import popcore as pc
from popcore import FLOAT, HALF, INT, InOut, Input, MultiVertex, Output, Vector, VectorList, Vertex, errors, program
from popcore.engine.schedule import Shuffle, order_of_workers, shuffled
from popcore.executable.opcodes import Batch
from popcore.ops import gcl

SEEDS = range(1, 9)


class Mix(Vertex):
    parts: Input[VectorList[FLOAT]]
    y: Output[Vector[FLOAT]]

    def compute(self):
        for i in range(len(self.parts)):
            self.y[i] = self.parts[i][0] * 3.0 + len(self.parts[i])


class Spread(MultiVertex):
    x: InOut[Vector[HALF]]

    def compute(self, worker):
        for i in range(2 * worker, len(self.x), 12):
            self.x[i] = self.x[i] * HALF(1.1)
            if i + 1 < len(self.x):
                self.x[i + 1] = self.x[i + 1] + HALF(0.1)
        print("worker", worker)


class Order(MultiVertex):
    """Not right: what is left depends on the order of its workers."""

    y: InOut[Vector[INT]]

    def compute(self, worker):
        self.y[0] = self.y[0] * 6 + worker


class Prints(Vertex):
    y: InOut[INT]

    def compute(self):
        print("vertex", self.y)


@pytest.fixture(params=["compiled", "interpreted"])
def mode(request, monkeypatch):
    """Codelets as machine code, and as Python: the same orders."""
    monkeypatch.setenv("POPCORE_INTERPRET", str(int(request.param == "interpreted")))


def tensor(graph, name, dtype, shape, value=0):
    """A variable of one row for each tile."""
    made = graph.add_variable(dtype, shape, name=name)
    for tile in range(shape[0]):
        graph.set_tile_mapping(made[tile], tile)
    graph.set_initial_value(made, np.broadcast_to(np.asarray(value, dtype.numpy), shape))
    graph.create_host_read(name, made)
    return made


def many(graph):
    """A program with lists, halves, exchanges of every kind of group, and several vertices of two codelets on each tile."""
    rng = np.random.default_rng(1)
    x, y = tensor(graph, "x", FLOAT, (8, 24), rng.standard_normal((8, 24))), tensor(graph, "y", FLOAT, (8, 24))
    h = tensor(graph, "h", HALF, (8, 51), rng.standard_normal((8, 51)))
    cs = graph.add_compute_set("work")
    for tile in range(8):
        for k in range(4):
            graph.add_vertex(cs, Mix, {"parts": [x[(tile + k) % 8, i : i + k + 1] for i in range(6)], "y": y[tile, 6 * k : 6 * k + 6]}, tile=tile)
        graph.add_vertex(cs, Spread, {"x": h[tile, :25]}, tile=tile)
        graph.add_vertex(cs, Spread, {"x": h[tile, 26:]}, tile=tile)
    turned = program.Copy(y.transpose().reshape((8, 24)), x)
    return program.Repeat(3, program.Sequence(program.Execute(cs), turned, program.Copy(h[:4, 1:8], h[4:, 30:37])))


def run(made, options, prints=None):
    engine = pc.Engine(*made, options=options)
    engine.set_print_stream(io.StringIO() if prints is None else prints)
    engine.run()
    return engine, {handle.name: engine.read_tensor(handle.name) for handle in engine.executable.reads}


@pytest.mark.parametrize("check", ["off", "full"])
def test_a_right_program_gives_the_same_bits(device, mode, check):
    """
    For each seed, with checks too, stochastic rounding included; prints come in the same order.
    """
    graph = pc.Graph(device.target)
    prog = program.Sequence()
    pc.set_floating_point_behaviour(graph, prog, pc.FloatingPointBehaviour(esr=True))
    prog.add(many(graph))
    shown = [io.StringIO(), io.StringIO()]
    _, wanted = run((graph, prog), {"debug.check": check}, shown[0])
    for seed in SEEDS if check == "off" else (3,):
        _, got = run((graph, prog), {"debug.check": check, "debug.schedule_seed": seed}, shown[1])
        assert {name: values.tobytes() for name, values in got.items()} == {name: values.tobytes() for name, values in wanted.items()}
        assert shown[1].getvalue() == shown[0].getvalue()
        shown[1] = io.StringIO()


def test_the_order_is_another_one(graph):
    """
    Every vertex, tile and entry of an exchange is there once, in another place; of two seeds each has its own, and the same again.
    """
    made = pc.Engine(graph, many(graph)).executable
    first, again, second = (shuffled(made, Shuffle(seed)) for seed in (1, 1, 2))
    for name in ("tiles", "vertex_ids", "rows", "words", "spans", "groups", "batches", "phases"):
        assert np.array_equal(getattr(first, name), getattr(again, name))
    for name in ("vertex_ids", "words", "batches"):
        assert not np.array_equal(getattr(first, name), getattr(second, name))
    assert (first.batches[:, Batch.ROWS_COUNT] == 1).all()
    assert sorted(first.words.reshape(-1, 2).tolist()) == sorted(made.words.reshape(-1, 2).tolist())
    assert len(first.tiles) == (made.batches[:, Batch.TILES_COUNT] * made.batches[:, Batch.ROWS_COUNT]).sum()
    assert len({order_of_workers(Shuffle(seed)) for seed in SEEDS}) == len(SEEDS)


def test_workers_run_in_the_order_of_the_seed(graph, mode):
    """
    Each of them once; the same one again with the same seed.
    """
    y = tensor(graph, "y", INT, (1, 1))
    cs = graph.add_compute_set("work")
    graph.add_vertex(cs, Order, {"y": y[0]}, tile=0)
    got = [int(run((graph, program.Execute(cs)), {"debug.schedule_seed": seed})[1]["y"][0, 0]) for seed in (0, *SEEDS, 1)]
    digits = [[value // 6**i % 6 for i in range(5, -1, -1)] for value in got]
    assert digits[0] == [5, 4, 3, 2, 1, 0]
    assert all(sorted(order) == [0, 1, 2, 3, 4, 5] for order in digits)
    assert len({tuple(order) for order in digits}) == len(SEEDS) + 1
    assert digits[1] == digits[-1]


def test_prints_come_in_the_usual_order(graph, mode):
    """
    By tile, then vertex, whenever they ran.
    """
    y = tensor(graph, "y", INT, (4, 3), np.arange(12).reshape(4, 3))
    cs = graph.add_compute_set("work")
    for i in range(12):
        graph.add_vertex(cs, Prints, {"y": y[i // 3, i % 3]}, tile=i // 3)
    for seed in (0, 1, 2):
        shown = io.StringIO()
        run((graph, program.Execute(cs)), {"debug.schedule_seed": seed}, shown)
        assert [line.split()[-1] for line in shown.getvalue().splitlines()] == [str(i) for i in range(12)]


def test_what_goes_wrong_names_the_seed(graph):
    """
    In a note of the error, beside vertex and tile as ever.
    """
    y, cs = tensor(graph, "y", FLOAT, (8, 4)), graph.add_compute_set("work")
    for tile in range(8):
        graph.add_vertex(cs, Mix, {"parts": [y[tile, :1]] * (5 if tile == 5 else 1), "y": tensor(graph, f"z{tile}", FLOAT, (1, 2))[0]}, tile=tile)
    engine = pc.Engine(graph, program.Execute(cs), options={"debug.schedule_seed": 4, "debug.check": "bounds"})
    with pytest.raises(errors.VertexError, match="vertex 5 on tile 5") as caught:
        engine.run()
    assert "debug.schedule_seed was 4" in caught.value.__notes__[0]


class Counting(program.StreamCallback):
    """Gives 0, 1, 2, ...; keeps when it was asked."""

    def __init__(self, log, name):
        self.next, self.log, self.name = 0, log, name

    def prefetch(self, buffer):
        self.log.append((self.name, "prefetch"))
        buffer[:], self.next = self.next, self.next + 1
        return True

    def fetch(self, buffer):
        raise AssertionError("it prefetched")


def test_callbacks_come_in_another_order(mode):
    """
    Of replicas with connections of their own, and earlier or later; each gives what it gave before.
    """
    graph = pc.Graph(pc.Device("M2000", num_ipus=4, tiles_per_ipu=8).target, replication_factor=4)
    x, total = tensor(graph, "x", FLOAT, (1, 2)), tensor(graph, "total", FLOAT, (1, 6))
    stream = graph.add_host_to_device_fifo("in", FLOAT, 2)
    steps = [program.Sequence(program.Copy(stream, x), program.Copy(x[0], total[0, 2 * i : 2 * i + 2])) for i in range(3)]
    logs = []
    for seed in (0, 1, 2):
        engine, log = pc.Engine(graph, program.Sequence(*steps), options={"debug.schedule_seed": seed}), []
        for replica in range(4):
            engine.connect_stream("in", Counting(log, replica), replica)
        engine.run()
        assert engine.read_tensor("total").tolist() == [[[0, 0, 1, 1, 2, 2]]] * 4
        logs.append(log)
    assert logs[0] != logs[1] != logs[2] != logs[0]


@pytest.mark.parametrize("reduce", [True, False])
def test_collectives_give_the_same_bits(reduce):
    """
    Groups and pieces in another order; sums of halves are rounded at each hop, so that an order of hops would show.
    """
    graph = pc.Graph(pc.Device("M2000", num_ipus=4, tiles_per_ipu=8).target, replication_factor=4)
    h = tensor(graph, "h", HALF, (8, 301), 0.1 * np.arange(8 * 301).reshape(8, 301) % 7)
    graph.create_host_write("in", h)
    prog = program.Sequence()
    group = gcl.CommGroup(gcl.CommGroupType.CONSECUTIVE, 2)
    if reduce:
        gcl.all_reduce_in_place_cross_replica(graph, h, gcl.CollectiveOperator.ADD, prog, group)
    else:
        graph.create_host_read("result", gcl.all_gather_cross_replica(graph, h, prog, group))
    values = np.random.default_rng(2).standard_normal((4, 8, 301)).astype(np.float16)
    seen = []
    for seed in (0, 1, 2):
        engine = pc.Engine(graph, prog, options={"debug.schedule_seed": seed})
        engine.write_tensor("in", values)
        engine.run()
        seen.append(engine.read_tensor("h" if reduce else "result").tobytes())
    assert seen[0] == seen[1] == seen[2]
