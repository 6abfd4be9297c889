"""Does the host's side of a stream hand out the right elements, in order, whatever it is connected to?"""

import numpy as np
import pytest

from popcore import BOOL, FLOAT, HALF, errors, program
from popcore.program.streams import HostStreams, RemoteBuffer, RemoteRows, Stream, as_host_array


def streams(n=2, replicas=1, dtype=FLOAT, depth=1, buffering=1):
    """A stream in and a stream out of n elements."""
    made = {"in": Stream("in", dtype, n, True, buffering), "out": Stream("out", dtype, n, False)}
    return HostStreams(made, replicas, depth)


def taken(host, times, replica=0, n=2):
    """The next transfers from the host, as one list."""
    out = np.zeros((times, n), np.float32)
    for row in out:
        host.fill("in", replica, row)
    return out.reshape(-1).tolist()


def test_an_array_is_a_ring():
    """
    Each transfer takes the next n; the first follows the last.
    """
    host = streams()
    host.connect("in", np.arange(6, dtype=np.float32))
    assert taken(host, 4) == [0, 1, 2, 3, 4, 5, 0, 1]
    assert taken(host, 1) == [2, 3]


def test_an_array_is_used_in_place():
    """
    What the host changes between transfers is seen, in a strided array too.
    """
    host = streams()
    data = np.zeros((2, 2), np.float32).T
    host.connect("in", data)
    data[0] = 5
    assert taken(host, 2) == [5, 5, 0, 0]


def test_an_array_out_is_filled_in_order():
    """
    And wraps.
    """
    host, out = streams(), np.zeros((2, 2), np.float32)
    host.connect("out", out)
    for i in range(3):
        host.take("out", 0, np.full(2, i + 1, np.float32))
    assert out.tolist() == [[3, 3], [2, 2]]


def test_connecting_anew_starts_at_the_beginning():
    """
    The cursor belongs to the connection.
    """
    host, data = streams(), np.arange(4, dtype=np.float32)
    host.connect("in", data)
    taken(host, 1)
    host.connect("in", data)
    assert taken(host, 1) == [0, 1]


def test_a_callable_fills_or_takes_one_transfer():
    """
    What it does not fill stays as it was; what it takes is its own.
    """
    host, seen, calls = streams(), [], []

    def fill(buffer):
        calls.append(buffer.shape)
        buffer[0] += 1

    host.connect("in", fill)
    host.connect("out", seen.append)
    assert taken(host, 3) == [1, 0, 2, 0, 3, 0]
    assert calls == [(2,)] * 3
    data = np.ones(2, np.float32)
    host.take("out", 0, data)
    data[:] = 2
    host.take("out", 0, data)
    assert [s.tolist() for s in seen] == [[1, 1], [2, 2]]


def test_replicas_take_turns_on_one_connection():
    """
    Unless each has its own.
    """
    host = streams(replicas=2)
    host.connect("in", np.arange(8, dtype=np.float32))
    assert [taken(host, 1, replica=r) for r in (0, 1, 0)] == [[0, 1], [2, 3], [4, 5]]
    host.connect("in", np.full(2, 9, np.float32), replica=1)
    assert [taken(host, 1, replica=r) for r in (0, 1, 0)] == [[6, 7], [9, 9], [0, 1]]
    with pytest.raises(errors.StreamError, match="replica 2 of 2"):
        host.connect("in", np.zeros(2, np.float32), replica=2)


class Counting(program.StreamCallback):
    """Gives 0, 1, 2, ... and writes down what it was asked."""

    def __init__(self, available=True):
        self.value, self.log, self.available = 0, [], available

    def _give(self, buffer):
        buffer[:] = self.value
        self.value += 1

    def prefetch(self, buffer):
        self.log.append("prefetch")
        if self.available:
            self._give(buffer)
        return self.available

    def fetch(self, buffer):
        self.log.append("fetch")
        self._give(buffer)

    def complete(self):
        self.log.append("complete")

    def invalidate_prefetched(self):
        self.log.append("invalidate")


def test_prefetch_runs_ahead():
    """
    One transfer ahead by default; fetch is not needed then.
    """
    host, callback = streams(), Counting()
    host.connect("in", callback)
    assert taken(host, 2) == [0, 0, 1, 1]
    assert callback.log == ["prefetch", "complete", "prefetch", "complete", "prefetch"]


def test_fetch_where_nothing_was_prefetched():
    """
    Asked for each time all the same.
    """
    host, callback = streams(), Counting(available=False)
    host.connect("in", callback)
    assert taken(host, 1) == [0, 0]
    assert callback.log == ["prefetch", "fetch", "complete", "prefetch"]


def test_prefetch_can_be_switched_off():
    """
    The option exchange.enablePrefetch.
    """
    host, callback = streams(depth=0), Counting()
    host.connect("in", callback)
    taken(host, 2)
    assert callback.log == ["fetch", "complete"] * 2


@pytest.mark.parametrize(("depth", "buffering"), [(3, 1), (1, 3)])
def test_prefetch_depth(depth, buffering):
    """
    The option or the stream's own buffering, whichever is deeper.
    """
    host, callback = streams(depth=depth, buffering=buffering), Counting()
    host.connect("in", callback)
    taken(host, 1)
    assert callback.log == ["prefetch"] * 3 + ["complete", "prefetch"]


def test_replacing_a_callback_drops_what_it_prefetched():
    """
    And tells it so; a load does the same.
    """
    host, old, new = streams(), Counting(), Counting()
    host.connect("in", old)
    taken(host, 1)
    host.connect("in", new)
    assert old.log[-1] == "invalidate"
    taken(host, 1)
    host.invalidate()
    host.invalidate()
    assert new.log[-2:] == ["prefetch", "invalidate"]


def test_a_prefetch_that_says_nothing_is_refused():
    """
    None could mean either.
    """
    host, callback = streams(), Counting()
    callback.available = None
    host.connect("in", callback)
    with pytest.raises(errors.StreamError, match="returned None"):
        taken(host, 1)


def test_an_error_of_a_callback_arrives_unchanged():
    """
    It is the user's own.
    """
    error = KeyError("mine")

    def fill(buffer):
        raise error

    host = streams()
    host.connect("in", fill)
    with pytest.raises(KeyError) as caught:
        taken(host, 1)
    assert caught.value is error


@pytest.mark.parametrize(("endpoint", "words"), [
    (np.zeros(2), "FLOAT.*float32.*float64"),
    (np.zeros(3, np.float32), r"2 elements at a time.*\(3,\)"),
    (np.zeros(0, np.float32), "empty"),
    ([0.0, 1.0], "list, neither array nor callable"),
    (None, "NoneType"),
])  # fmt: skip
def test_what_does_not_fit_is_refused(endpoint, words):
    """
    When it is connected, with both types or counts.
    """
    with pytest.raises(errors.StreamError, match=f"(?s)'in'.*{words}"):
        streams().connect("in", endpoint)


def test_half_streams_hold_float16():
    """
    Known trap E22 of the API notes: raw 16-bit integers, or floats, are no halves.
    """
    host = streams(dtype=HALF)
    for wrong in (np.float32, np.uint16):
        with pytest.raises(errors.StreamError, match="HALF"):
            host.connect("in", np.zeros(2, wrong))
    host.connect("in", np.zeros(2, np.float16))


def test_a_read_only_array_cannot_take_a_stream():
    """
    Found when connected, not in the middle of a run.
    """
    array = np.zeros(2, np.float32)
    array.flags.writeable = False
    with pytest.raises(errors.StreamError, match="read-only"):
        streams().connect("out", array)
    streams().connect("in", array)


def test_handles_are_looked_up():
    """
    With near ones in the message.
    """
    with pytest.raises(errors.UnknownNameError, match=r"(?s)no stream 'inn'.*'in'"):
        streams().connect("inn", np.zeros(2, np.float32))
    with pytest.raises(errors.StreamError, match="connected to nothing"):
        streams().require({"in": None})


def test_streams_of_no_elements():
    """
    Nothing is moved, and callbacks are still called.
    """
    host, calls = streams(n=0), []
    host.connect("in", np.zeros(0, np.float32))
    host.fill("in", 0, np.zeros(0, np.float32))
    host.connect("in", lambda b: calls.append(b.size))
    host.fill("in", 0, np.zeros(0, np.float32))
    assert calls == [0]


def test_remote_rows():
    """
    Read and written by number; of a row named twice the last one stays.
    """
    rows = RemoteRows(RemoteBuffer("r", FLOAT, 2, 3))
    rows.write(0, np.array([1, 0, 1], np.uint32), np.arange(6, dtype=np.float32))
    assert rows.read(0, np.array([0, 1, 2])).tolist() == [2, 3, 4, 5, 0, 0]
    for bad in (-1, 3):
        with pytest.raises(errors.EngineError, match=f"row {bad} of remote buffer 'r'"):
            rows.read(0, np.array([0, bad]))


def test_host_arrays_fit_or_are_refused():
    """
    One shape or flat; one dtype; lists where the type can hold them.
    """
    assert as_host_array("x", FLOAT, (2, 2), np.arange(4, dtype=np.float32)).tolist() == [[[0, 1], [2, 3]]]
    assert as_host_array("x", FLOAT, (2,), [1, 2.5]).tolist() == [[1, 2.5]]
    assert as_host_array("x", BOOL, (), True).tolist() == [True]
    assert as_host_array("x", HALF, (2,), np.ones(2, np.float16), replicas=3).tolist() == [[1, 1]] * 3
    assert as_host_array("x", HALF, (2,), np.ones((3, 2), np.float16), replicas=3).shape == (3, 2)
    for values, words in [
        (np.zeros(5, np.float32), r"x has shape \(4,\), the host's array has \(5,\)"),
        (np.zeros(4), "float32.*float64"),
        (np.array(list("abcd")), "FLOAT.*<U1|FLOAT.*str"),
        (list("abcd"), "FLOAT"),
        ([[1], [2, 3]], "no array"),
    ]:
        with pytest.raises(errors.HostTransferError, match=f"(?s){words}"):
            as_host_array("x", FLOAT, (4,), values)
    with pytest.raises(errors.HostTransferError, match="cannot hold"):
        as_host_array("x", BOOL, (2,), [0, 2])
