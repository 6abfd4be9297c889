"""Known traps, group G: streams, callbacks, remote buffers, loading."""

import numpy as np
import pytest

from popcore import FLOAT, HALF, INT, UNSIGNED_INT, Device, Engine, Graph, ReferenceEngine, errors, program
from popcore.program import Copy, Execute, If, Repeat, Sequence, StreamCallback, Switch
from tests.cases.codelets import Count


class Numbers(StreamCallback):
    """Gives 0, 1, 2, ...; writes down what it was asked. Has ``ready`` numbers ahead of time, as many as wanted if None."""

    def __init__(self, ready=None):
        self.next, self.ready, self.log = 0, ready, []

    def prefetch(self, buffer):
        if self.ready is not None and self.next >= self.ready:
            self.log.append("nothing yet")
            return False
        return self._give("prefetch", buffer)

    def fetch(self, buffer):
        self._give("fetch", buffer)

    def complete(self):
        self.log.append("complete")

    def invalidate_prefetched(self):
        self.log.append("invalidate")

    def _give(self, how, buffer):
        self.log.append(f"{how} {self.next}")
        buffer[:] = self.next
        self.next += 1
        return True


@pytest.fixture
def stream(bench):
    """A stream of one INT into "x", its Copy, and "seen", to which the host is sent x after each."""
    x = bench.variable("x", [-1], INT)
    there, back = bench.graph.add_host_to_device_fifo("in", INT, 1), bench.graph.add_device_to_host_fifo("out", INT, 1)
    return Sequence(Copy(there, x), Copy(x, back))


@pytest.mark.parametrize("depth", [1, 3])
def test_g1_what_was_prefetched_when_a_run_ends_serves_the_next(any_engine, bench, stream, depth):
    """Case G1: 0, 1 and then 2, 3: nothing is lost between runs."""
    engine = any_engine(bench.graph, Repeat(2, stream), options={"exchange.prefetchDepth": depth})
    seen = []
    engine.connect_stream("in", Numbers())
    engine.connect_stream("out", lambda values: seen.extend(values.tolist()))
    engine.run()
    assert seen == [0, 1]
    engine.run()
    assert seen == [0, 1, 2, 3]


@pytest.mark.parametrize("depth", [1, 3])
def test_g1_connecting_anew_drops_what_was_prefetched(any_engine, bench, stream, depth):
    """Case G1: the old callback is told, the new one starts with its own first."""
    engine = any_engine(bench.graph, Repeat(2, stream), options={"exchange.prefetchDepth": depth})
    first, seen = Numbers(), []
    engine.connect_stream("out", lambda values: seen.extend(values.tolist()))
    engine.connect_stream("in", first)
    engine.run()
    engine.connect_stream("in", Numbers())
    engine.run()
    assert seen == [0, 1, 0, 1]
    assert first.log[-1] == "invalidate"


def test_g1_without_prefetch_each_transfer_fetches_once(any_engine, bench, stream):
    """Case G1: and completes before the next fetch."""
    engine = any_engine(bench.graph, Repeat(2, stream), options={"exchange.enablePrefetch": False})
    numbers = Numbers()
    engine.connect_stream("in", numbers)
    engine.connect_stream("out", np.zeros(2, np.int32))
    engine.run()
    assert numbers.log == ["fetch 0", "complete", "fetch 1", "complete"]


def test_g1_what_is_not_ready_ahead_is_fetched_in_time(any_engine, bench, stream):
    """Case G1: prefetch may say no; then fetch gives the same number."""
    engine = any_engine(bench.graph, Repeat(3, stream), options={"exchange.prefetchDepth": 2})
    numbers, seen = Numbers(ready=1), []
    engine.connect_stream("in", numbers)
    engine.connect_stream("out", lambda values: seen.extend(values.tolist()))
    engine.run()
    assert seen == [0, 1, 2]
    assert numbers.log[:2] == ["prefetch 0", "nothing yet"]


def test_g1_the_depth_given_with_an_executable_counts(bench, stream):
    """Case G1: options of an engine win over those the graph was compiled with."""
    executable = Engine(bench.graph, stream).executable
    engine, numbers = Engine(executable, options={"exchange.prefetchDepth": 3}), Numbers()
    engine.connect_stream("in", numbers)
    engine.connect_stream("out", np.zeros(1, np.int32))
    engine.run()
    assert numbers.log == ["prefetch 0", "prefetch 1", "prefetch 2", "complete", "prefetch 3"]


@pytest.mark.parametrize("threads", [1, 2])
def test_g3_callbacks_come_in_the_order_of_the_copies(bench, threads):
    """Case G3: across streams too, on any number of threads."""
    graph, order = bench.graph, []
    a, b = bench.variable("a", [0], INT), bench.variable("b", [0], INT, tile=7)
    streams = {name: graph.add_host_to_device_fifo(name, INT, 1) for name in "pq"}
    out = graph.add_device_to_host_fifo("r", INT, 1)
    engine = Engine(graph, Repeat(3, Sequence(Copy(streams["q"], b), Copy(streams["p"], a), Copy(b, out))), options={"engine.threads": threads})
    for name in "pqr":
        engine.connect_stream(name, lambda _buffer, name=name: order.append(name))
    engine.run()
    assert order == list("qpr") * 3


def test_g5_loads_and_stores_of_one_remote_row_keep_their_order(any_engine, bench):
    """Case G5: a load sees the last store before it."""
    graph = bench.graph
    remote = graph.add_remote_buffer("remote", INT, 2, 3)
    value = {n: graph.add_constant(INT, (2,), n, tile=n) for n in (1, 2, 3)}
    t0, t1 = bench.variable("t0", [0, 0], INT), bench.variable("t1", [0, 0], INT)
    steps = [Copy(value[1], remote, 0), Copy(value[2], remote, 1), Copy(remote, t0, 0), Copy(value[3], remote, 0), Copy(remote, t1, 0)]
    engine = bench.run(any_engine, *steps)
    assert (engine.read_tensor("t0").tolist(), engine.read_tensor("t1").tolist()) == ([1, 1], [3, 3])
    assert [engine.copy_from_remote_buffer("remote", row).tolist() for row in range(3)] == [[3, 3], [2, 2], [0, 0]]


def test_g5_rows_may_come_from_a_tensor_that_the_program_changes(any_engine, bench):
    """Case G5: each round of a loop loads the next row."""
    graph = bench.graph
    remote = graph.add_remote_buffer("remote", HALF, 3, 4)
    row, x = bench.variable("row", 0, UNSIGNED_INT), bench.variable("x", np.zeros(3), HALF, tile=1)
    out = graph.add_device_to_host_fifo("out", HALF, 3)
    bench.vertex(Count, {"x": row.reinterpret("int"), "by": 1})
    engine = any_engine(graph, Repeat(4, Sequence(Copy(remote, x, row), Copy(x, out), Execute(bench.compute_set))))
    result = np.zeros((4, 3), np.float16)
    engine.connect_stream("out", result)
    for i in range(4):
        engine.copy_to_remote_buffer(np.full(3, i + 0.5, np.float16), "remote", i)
    engine.run()
    assert result.tolist() == [[i + 0.5] * 3 for i in range(4)]


def test_g5_a_row_that_does_not_exist_stops_the_run(any_engine, bench):
    """Case G5: nothing beside the buffer is read, and the message has row and rows."""
    remote = bench.graph.add_remote_buffer("remote", INT, 2, 3)
    x, row = bench.variable("x", [5, 5], INT), bench.variable("row", 3, INT)
    engine = any_engine(bench.graph, Copy(remote, x, row))
    with pytest.raises(errors.EngineError, match=r"(?s)row 3.*'remote'.*3 rows.*try: 0 to 2"):
        engine.run()
    assert engine.read_tensor("x").tolist() == [5, 5]


def test_g8_engines_on_one_device_do_not_see_each_other(any_engine, device, bench):
    """Case G8: what one holds is there after another was made, loaded and run."""
    x = bench.variable("x", [1, 2], INT)
    one, other = (any_engine(bench.graph, Copy(x.reverse(0), x), device=device) for _ in range(2))
    one.write_tensor("x", np.array([7, 8], np.int32))
    other.run()
    other.load()
    assert one.read_tensor("x").tolist() == [7, 8]
    assert other.read_tensor("x").tolist() == [1, 2]


def test_g8_loading_again_starts_over(any_engine, bench):
    """Case G8: initial values, vertex state and remote rows are as at first; what was written is gone."""
    x = bench.variable("x", 7, INT)
    vertex = bench.vertex(Count, {"x": x, "by": 1})
    bench.graph.add_remote_buffer("remote", INT, 1)
    engine = bench.run(any_engine)
    engine.copy_to_remote_buffer(np.array([9], np.int32), "remote")
    engine.load()
    assert (engine.read_tensor("x"), engine.copy_from_remote_buffer("remote")) == (7, [0])
    engine.run()
    assert engine.read_tensor("x") == 8
    assert vertex.tile == 3


def test_g9_a_program_runs_after_each_load(any_engine, bench):
    """Case G9: loading does not lose it."""
    engine = bench.run(any_engine, Repeat(3, Copy(bench.variable("a", 1, INT), bench.variable("b", 0, INT))))
    for _ in range(2):
        engine.load()
        assert engine.read_tensor("b") == 0
        engine.run()
        assert engine.read_tensor("b") == 1


@pytest.mark.parametrize("length", [10, 0, 3])
def test_g10_an_array_that_is_no_whole_number_of_transfers_is_refused(any_engine, bench, length):
    """Case G10: a short last batch never arrives as something else."""
    x = bench.variable("x", np.zeros(4), FLOAT)
    engine = any_engine(bench.graph, Copy(bench.graph.add_host_to_device_fifo("batches", FLOAT, 4), x))
    with pytest.raises(errors.StreamError, match=rf"(?s)'batches'.*4 elements.*({length}|empty).*try:"):
        engine.connect_stream("batches", np.zeros(length, np.float32))


def test_g10_a_callback_gets_a_buffer_of_one_transfer(any_engine, bench):
    """Case G10: whatever is left of the data, the buffer has the declared length."""
    x = bench.variable("x", np.zeros(4), FLOAT)
    engine, items, seen = any_engine(bench.graph, Repeat(3, Copy(bench.graph.add_host_to_device_fifo("batches", FLOAT, 4), x))), list(range(10)), []

    def fill(buffer):
        part, items[:] = items[:4], items[4:]
        seen.append((buffer.shape, len(part)))
        buffer[:] = 0
        buffer[: len(part)] = part

    engine.connect_stream("batches", fill)
    engine.run()
    assert seen == [((4,), 4), ((4,), 4), ((4,), 2)]
    assert engine.read_tensor("x").tolist() == [8, 9, 0, 0]


def test_g11_input_goes_straight_to_output(any_engine, bench, stream):
    """Case G11: a program without any compute set."""
    data, result = np.arange(5, dtype=np.int32), np.zeros(5, np.int32)
    engine = any_engine(bench.graph, Repeat(5, stream))
    engine.connect_stream("in", data)
    engine.connect_stream("out", result)
    engine.run()
    assert np.array_equal(result, data)


def test_g11_what_the_host_writes_it_reads_without_a_run(any_engine, bench):
    """Case G11: through two handles of one tensor in different orders."""
    x = bench.variable("x", np.zeros((2, 3)), HALF)
    bench.graph.set_tile_mapping(x[1], 6)
    bench.graph.create_host_read("transposed", x.transpose())
    engine = any_engine(bench.graph, Sequence())
    values = np.arange(6, dtype=np.float16).reshape(2, 3)
    engine.write_tensor("x", values)
    assert np.array_equal(engine.read_tensor("x"), values)
    assert np.array_equal(engine.read_tensor("transposed"), values.T)


USES = {
    "at once": lambda copy, flag: copy,
    "in a branch that is not taken": lambda copy, flag: If(flag, copy),
    "in a Repeat of 0": lambda copy, flag: Repeat(0, copy),
    "in a case": lambda copy, flag: Switch(flag.reinterpret("unsigned char"), {1: copy}),
    "in a function": lambda copy, flag: program.Call(flag.graph.add_function(copy)),
}


@pytest.mark.parametrize("where", USES)
def test_g12_a_stream_that_nobody_connected_stops_the_run_at_once(any_engine, bench, where):
    """Case G12: before the first step, whether or not the Copy would be reached; nobody waits."""
    flag, x, y = bench.variable("flag", False, "bool"), bench.variable("x", [1], INT), bench.variable("y", [0], INT)
    copy = Copy(bench.graph.add_host_to_device_fifo("forgotten", INT, 1), x)
    engine = any_engine(bench.graph, Sequence(Copy(x, y), USES[where](copy, flag)))
    with pytest.raises(errors.StreamError, match=r"(?s)'forgotten'.*try: engine\.connect_stream"):
        engine.run()
    assert engine.read_tensor("y").tolist() == [0]


@pytest.mark.parametrize("missing", range(4))
def test_g12_a_pipeline_whose_stage_gets_no_stream_says_which(any_engine, missing):
    """Case G12: four stages on four IPUs; nobody waits, since the stage's stream is told before the first step of any other."""
    graph = Graph(Device("M2000", num_ipus=4, tiles_per_ipu=8).target)
    steps, called = Sequence(), []
    state = [graph.add_variable(FLOAT, (2,), name=f"stage {ipu}", tile=8 * ipu) for ipu in range(4)]
    for i in range(4):
        stream = graph.add_host_to_device_fifo(f"weights {i}", FLOAT, 2)
        steps.add(Copy(stream, state[i]))
        if i:
            steps.add(Copy(state[i - 1], state[i]))
    engine = any_engine(graph, steps)
    for i in range(4):
        if i != missing:
            engine.connect_stream(f"weights {i}", called.append)
    with pytest.raises(errors.StreamError, match=f"'weights {missing}' is used by the program and connected to nothing"):
        engine.run()
    assert called == []


def test_g12_a_stream_of_another_program_need_not_be_connected(any_engine, bench, stream):
    """Case G12: only what the program that runs uses."""
    x, y = bench.variable("a", [1], INT), bench.variable("b", [0], INT)
    engine = any_engine(bench.graph, [stream, Copy(x, y)])
    engine.run(1)
    assert engine.read_tensor("b").tolist() == [1]


@pytest.mark.parametrize("engine_class", [ReferenceEngine, Engine])
def test_g12_a_handle_that_does_not_exist_is_refused_with_near_ones(engine_class, bench, stream):
    """Case G12: a misspelled stream is not silently left out."""
    engine = engine_class(bench.graph, stream)
    with pytest.raises(errors.UnknownNameError, match=r"(?s)'inn'.*try: 'in'"):
        engine.connect_stream("inn", np.zeros(1, np.int32))
