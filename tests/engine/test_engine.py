"""Engine: what it promises beyond what the reference engine defines."""

import gc
import threading

import numpy as np
import pytest

import popcore as pc
from popcore import FLOAT, INT, errors, program
from tests.codelets import Axpy, Check, Increment, ScaleMatrix, Spread


@pytest.fixture
def counter(graph):
    """A program that adds one to a host-visible INT."""
    x = graph.add_variable(INT, (3,), name="x", tile=2)
    cs = graph.add_compute_set("count")
    graph.add_vertex(cs, Increment, {"x": x}, tile=2)
    graph.create_host_read("x", x)
    graph.create_host_write("x", x)
    return program.Execute(cs)


def test_state_lives_across_runs_until_loaded_anew(graph, counter):
    """
    A second run goes on where the first ended; ``load`` starts over.
    """
    engine = pc.Engine(graph, program.Repeat(5, counter))
    engine.run()
    engine.run()
    assert engine.read_tensor("x").tolist() == [10, 10, 10]
    engine.load()
    assert engine.read_tensor("x").tolist() == [0, 0, 0]


def test_several_programs_share_one_memory(graph, counter):
    """
    ``run(i)`` runs the i-th program on the same tiles.
    """
    engine = pc.Engine(graph, [counter, program.Repeat(10, counter)])
    engine.run(1)
    engine.run(0)
    assert engine.read_tensor("x").tolist() == [11, 11, 11]
    with pytest.raises(errors.EngineError, match=r"run\(2\).*2 programs"):
        engine.run(2)


def test_a_second_engine_sees_later_edits(graph, counter):
    """
    The graph stays editable; an engine keeps what it was compiled from.
    """
    first = pc.Engine(graph, counter)
    y = graph.add_variable(INT, (2,), name="y", tile=0)
    cs = graph.add_compute_set("more")
    graph.add_vertex(cs, Increment, {"x": y}, tile=0)
    graph.create_host_read("y", y)
    second = pc.Engine(graph, program.Sequence(counter, program.Execute(cs)))
    for engine in (first, second):
        engine.run()
    assert second.read_tensor("y").tolist() == [1, 1]
    with pytest.raises(errors.UnknownNameError, match="y"):
        first.read_tensor("y")


def test_the_device_must_be_the_one_compiled_for(graph, counter):
    """
    Both targets are in the message.
    """
    with pytest.raises(errors.EngineError, match=r"(?s)8 tiles.*1472 tiles"):
        pc.Engine(graph, counter, device=pc.Device("M2000", num_ipus=1))


def test_a_codelet_that_raises_is_named(device, graph):
    """
    The message has the exception, codelet, file and line, vertex, tile and compute set; the cause is the exception.
    """
    x = graph.add_variable(FLOAT, (8, 2), name="x")
    cs = graph.add_compute_set("checks")
    for i in range(8):
        graph.set_tile_mapping(x[i], i)
        graph.add_vertex(cs, Check, {"x": x[i]}, tile=i)
    graph.create_host_write("x", x)
    graph.create_host_read("x", x)
    engine = pc.Engine(graph, program.Execute(cs), device=device)
    values = np.ones((8, 2), np.float32)
    values[5, 1] = -2.5
    engine.write_tensor("x", values)
    with pytest.raises(
        errors.VertexError, match=r"(?s)Check \(vertex 5 on tile 5, compute set 'checks'\).*ValueError: .*negative.*1.*-2\.5.*codelets\.py:\d+"
    ) as caught:
        engine.run()
    assert isinstance(caught.value.__cause__, ValueError)
    assert np.array_equal(engine.read_tensor("x"), values), "the engine stays readable"
    engine.write_tensor("x", np.ones((8, 2), np.float32))
    engine.run()


@pytest.mark.parametrize("threads", [1, 2])
def test_prints_come_in_a_fixed_order(threads, graph, capsys):
    """
    Tile by tile, whatever thread ran them, each with IPU, tile and worker.
    """
    x = graph.add_variable(FLOAT, (8, 3), name="x")
    cs = graph.add_compute_set("prints")
    for i in reversed(range(8)):
        graph.set_tile_mapping(x[i], i)
        graph.add_vertex(cs, Check, {"x": x[i]}, tile=i)
    graph.create_host_write("x", x)
    engine = pc.Engine(graph, program.Execute(cs), options={"engine.threads": threads})
    engine.write_tensor("x", np.arange(24, dtype=np.float32).reshape(8, 3) * 6)
    engine.run()
    lines = capsys.readouterr().err.splitlines()
    assert lines == [f"[0.{v // 3}.0] large {v % 3} {6.0 * v}" for v in range(24) if 6 * v > 100]


def large(device):
    """A compute step that is worth two threads, with exchange, half and all six workers."""
    tiles = device.target.num_tiles
    graph = pc.Graph(device.target)
    x, y = (graph.add_variable(FLOAT, (tiles, 301), name=n) for n in "xy")
    h = graph.add_variable(pc.HALF, (tiles, 4, 33), name="h")
    one, two = graph.add_compute_set("one"), graph.add_compute_set("two")
    for i in range(tiles):
        for t in (x, y, h):
            graph.set_tile_mapping(t[i], i)
        graph.add_vertex(one, Axpy, {"x": x[i], "y": y[(i + 7) % tiles], "k": 0.1}, tile=i)
        graph.add_vertex(one, ScaleMatrix, {"m": h[i], "k": 1.01}, tile=(i + 1) % tiles)
        graph.add_vertex(two, Spread, {"x": y[i]}, tile=i)
    for name, t in {"x": x, "y": y, "h": h}.items():
        graph.create_host_read(name, t)
        graph.create_host_write(name, t)
    return graph, program.Repeat(3, program.Sequence(program.Execute(one), program.Execute(two), program.Copy(x.flatten(), y.reverse(0).flatten())))


def test_threads_and_fusion_do_not_change_a_bit():
    """
    One thread or two, tiles fused or not, interpreted or compiled: the same bits.
    """
    device = pc.Device("M2000", num_ipus=1, tiles_per_ipu=300)
    graph, prog = large(device)
    rng = np.random.default_rng(0)
    data = {
        "x": rng.standard_normal((300, 301), np.float32),
        "y": rng.standard_normal((300, 301), np.float32),
        "h": rng.standard_normal((300, 4, 33)).astype(np.float16),
    }
    results = []
    for options in ({"engine.threads": 1}, {"engine.threads": 2}, {"engine.threads": 2, "engine.fuseTiles": False}):
        engine = pc.Engine(graph, prog, device=device, options=options)
        for name, values in data.items():
            engine.write_tensor(name, values)
        engine.run()
        engine.run()
        results.append({name: engine.read_tensor(name) for name in data})
    for other in results[1:]:
        for name, values in results[0].items():
            assert np.array_equal(values, other[name]), name


def test_engines_in_threads_do_not_meet(graph, counter):
    """
    Four engines of one graph run in four threads, each with its own memory.
    """
    exe = pc.compile_graph(graph, program.Repeat(1000, counter))
    engines = [pc.Engine(exe) for _ in range(4)]
    threads = [threading.Thread(target=e.run) for e in engines]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all(e.read_tensor("x").tolist() == [1000] * 3 for e in engines)


def test_an_engine_that_is_dropped_gives_its_threads_back(graph, counter):
    """
    No thread of a dropped engine stays.
    """
    before = threading.active_count()
    for _ in range(3):
        pc.Engine(graph, counter).run()
    gc.collect()
    assert threading.active_count() <= before


def test_without_compute_the_model_is_walked(graph, counter):
    """
    Cycles are those of a run; data does not exist, and says so.
    """
    prog = program.Repeat(4, program.Sequence(counter, program.Repeat(0, counter)))
    run, walked = pc.Engine(graph, prog), pc.Engine(graph, prog, options={"debug.compute": False})
    for engine in (run, walked):
        engine.run()
    assert run.profile().total_cycles == walked.profile().total_cycles > 0
    assert run.profile().steps == walked.profile().steps
    with pytest.raises(errors.EngineError, match=r"read_tensor.*debug\.compute"):
        walked.read_tensor("x")


def test_branches_on_data_cannot_be_walked(graph, counter):
    """
    A program whose way depends on data needs the data.
    """
    flag = graph.add_variable(INT, (), name="flag", tile=0)
    engine = pc.Engine(graph, program.If(flag, counter), options={"debug.compute": False})
    with pytest.raises(errors.EngineError, match="branches on data"):
        engine.run()


def test_an_interrupt_of_a_compile_leaves_the_graph_whole(graph, counter):
    """
    Ctrl-C in the middle of a compile: nothing is half done, and the next compile works.
    """

    def interrupt(name, number, passes):
        if name == "plan_memory":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pc.compile_graph(graph, counter, progress=interrupt)
    pc.Engine(graph, counter).run()


def test_cores_are_counted_where_affinity_is_unknown(graph, counter, monkeypatch):
    """
    A system that cannot tell which cores a process may use tells how many there are.
    """
    monkeypatch.delattr("os.sched_getaffinity", raising=False)
    monkeypatch.setattr("os.cpu_count", lambda: None)
    pc.Engine(graph, counter).run()
