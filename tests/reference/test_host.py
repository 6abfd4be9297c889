"""Does data get from the host and back in order, on each engine?"""

import io

import numpy as np
import pytest

from popcore import BOOL, FLOAT, HALF, INT, errors, program


@pytest.fixture
def through(graph):
    """A stream in, a variable, a stream out; and the program that copies one transfer through."""
    x = graph.add_variable(FLOAT, (2,), name="x", tile=1)
    graph.create_host_read("x", x)
    there = graph.add_host_to_device_fifo("in", FLOAT, 2)
    back = graph.add_device_to_host_fifo("out", FLOAT, 2)
    return program.Sequence(program.Copy(there, x), program.Copy(x, back))


def test_input_goes_straight_to_output(engine_class, graph, through):
    """
    Known trap G11: no compute in between.
    """
    data, result = np.arange(6, dtype=np.float32), np.zeros(6, np.float32)
    engine = engine_class(graph, program.Repeat(3, through))
    engine.connect_stream("in", data)
    engine.connect_stream("out", result)
    engine.run()
    assert np.array_equal(result, data)


def test_host_writes_come_back_without_a_run(engine_class, graph):
    """
    Known trap G11.
    """
    for name, dtype in {"a": FLOAT, "b": HALF, "c": INT, "d": BOOL}.items():
        t = graph.add_variable(dtype, (3,), name=name, tile=2)
        graph.create_host_write(name, t)
        graph.create_host_read(name, t.reverse(0))
    engine = engine_class(graph, program.Sequence())
    for name, dtype in {"a": np.float32, "b": np.float16, "c": np.int32, "d": bool}.items():
        values = np.array([0, 1, 1]).astype(dtype)
        engine.write_tensor(name, values)
        found = engine.read_tensor(name)
        assert found.tolist() == values[::-1].tolist()
        assert found.dtype == values.dtype


def test_cursors_live_on_between_runs(engine_class, graph, through):
    """
    A ring wraps; connecting anew starts over.
    """
    data = np.arange(6, dtype=np.float32)
    engine = engine_class(graph, through)
    engine.connect_stream("in", data)
    seen = []
    engine.connect_stream("out", lambda values: seen.extend(values.tolist()))
    for _ in range(4):
        engine.run()
    engine.connect_stream("in", data)
    engine.run()
    assert seen == [0, 1, 2, 3, 4, 5, 0, 1, 0, 1]


class Batches(program.StreamCallback):
    """Gives 0, 1, 2, ..."""

    def __init__(self):
        self.next = 0

    def prefetch(self, buffer):
        self.fetch(buffer)
        return True

    def fetch(self, buffer):
        buffer[:] = self.next
        self.next += 1


@pytest.mark.parametrize("depth", [1, 3])
def test_no_batch_is_lost_between_runs(engine_class, graph, through, depth):
    """
    Known trap G1: what was prefetched at the end of one run serves the next.
    """
    engine = engine_class(graph, program.Repeat(2, through), options={"exchange.prefetchDepth": depth})
    seen = []
    engine.connect_stream("in", Batches())
    engine.connect_stream("out", lambda values: seen.append(values[0]))
    engine.run()
    engine.run()
    assert seen == [0, 1, 2, 3]


def test_callbacks_come_in_the_program_s_order(engine_class, graph):
    """
    Known trap G3: per stream and across streams, every time.
    """
    log = []
    steps = program.Sequence()
    for name in "ab":
        x = graph.add_variable(INT, (1,), name=name, tile=0)
        steps.add(program.Copy(graph.add_host_to_device_fifo(name, INT, 1), x))
    engine = engine_class(graph, program.Repeat(3, steps))
    for name in "ab":
        engine.connect_stream(name, lambda buffer, name=name: log.append(name))
    engine.run()
    assert log == list("ababab")


def test_an_error_of_a_callback_arrives_unchanged(engine_class, graph, through):
    """
    The step did not happen; the engine can be read and run again.
    """
    engine = engine_class(graph, program.Repeat(2, through))
    calls, error = [], LookupError("mine")

    def fill(buffer):
        calls.append(1)
        if len(calls) == 2:
            raise error
        buffer[:] = len(calls)

    engine.connect_stream("in", fill)
    engine.connect_stream("out", lambda values: None)
    with pytest.raises(LookupError) as caught:
        engine.run()
    assert caught.value is error
    assert engine.read_tensor("x").tolist() == [1, 1]
    engine.run()
    assert engine.read_tensor("x").tolist() == [4, 4]


def test_a_stream_left_unconnected(engine_class, graph, through):
    """
    Found before anything runs; only for the program that uses it.
    """
    engine = engine_class(graph, [through, program.Sequence()])
    engine.connect_stream("in", lambda buffer: pytest.fail("it ran"))
    with pytest.raises(errors.StreamError, match=r"'out'.*connected to nothing"):
        engine.run()
    engine.run(1)


def test_connections_are_checked(engine_class, graph, through):
    """
    Handles, types, counts.
    """
    engine = engine_class(graph, through)
    with pytest.raises(errors.UnknownNameError, match="'in'"):
        engine.connect_stream("inn", np.zeros(2, np.float32))
    with pytest.raises(errors.StreamError, match=r"(?s)float32.*float64"):
        engine.connect_stream("in", np.zeros(2))
    with pytest.raises(errors.StreamError, match=r"(?s)2 elements.*3"):
        engine.connect_stream("in", np.zeros(3, np.float32))


def test_host_arrays_are_checked(engine_class, graph):
    """
    Shape and type, with both in the message.
    """
    x = graph.add_variable(FLOAT, (4,), name="x", tile=0)
    graph.create_host_write("x", x)
    engine = engine_class(graph, program.Sequence())
    with pytest.raises(errors.HostTransferError, match=r"(?s)x.*\(4,\).*\(5,\)"):
        engine.write_tensor("x", np.zeros(5, np.float32))
    with pytest.raises(errors.HostTransferError, match=r"(?s)FLOAT.*int64"):
        engine.write_tensor("x", np.zeros(4, np.int64))
    with pytest.raises(errors.HostTransferError, match=r"(?s)x.*FLOAT"):
        engine.write_tensor("x", np.array(list("abcd")))
    for call in (lambda: engine.read_tensor("x"), lambda: engine.write_tensor("y", [0]), lambda: engine.copy_from_remote_buffer("r", 0)):
        with pytest.raises(errors.UnknownNameError):
            call()


def test_what_is_read_is_the_host_s(engine_class, graph):
    """
    A copy: writing to it changes nothing on the device.
    """
    x = graph.add_variable(FLOAT, (2,), name="x", tile=0)
    graph.create_host_read("x", x)
    engine = engine_class(graph, program.Sequence())
    engine.read_tensor("x")[:] = 9
    assert engine.read_tensor("x").tolist() == [0, 0]


def test_tensors_print(engine_class, graph, capsys):
    """
    To stderr, or to where the engine is told.
    """
    x = graph.add_variable(FLOAT, (2, 2), name="x", tile=0)
    graph.set_initial_value(x, [[1, 1.5], [2, -2.5]])
    engine = engine_class(graph, program.Sequence(program.PrintTensor("x-debug", x), program.PrintTensor(x[0])))
    engine.run()
    expected = "x-debug:\n[[ 1. ,  1.5],\n [ 2. , -2.5]]\nx:\n[1. , 1.5]\n"
    assert capsys.readouterr().err == expected
    stream = io.StringIO()
    engine.set_print_tensor_stream(stream)
    engine.run()
    assert stream.getvalue() == expected
    assert capsys.readouterr().err == ""
