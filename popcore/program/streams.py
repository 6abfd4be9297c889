"""The host's side of streams and remote buffers: arrays with a cursor that wraps, callbacks, rows.

An engine asks ``HostStreams`` for each transfer; nothing here knows tiles.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from popcore.errors import EngineError, HostTransferError, PopcoreError, StreamError, UnknownNameError, near_matches
from popcore.executable.executable import RemoteBuffer, Stream
from popcore.pages import Pages
from popcore.types import Array, ElementType


class StreamCallback:
    """What a stream is connected to when the host prepares data ahead. Override what is needed.

    For each transfer of a host-to-device stream the engine calls ``prefetch``, or ``fetch`` if that had
    nothing; then the data is moved; then ``complete``; then ``prefetch`` for the transfers to come, as deep
    as the option ``exchange.prefetchDepth`` or the stream's ``buffering_depth`` says. What was
    prefetched when a run ends serves the next run. A device-to-host stream calls ``fetch`` and ``complete``.
    """

    def prefetch(self, buffer: Array) -> bool:
        """Fill ``buffer`` for a transfer that is to come. Returns False if there is nothing yet."""
        return False

    def fetch(self, buffer: Array) -> None:
        """Fill ``buffer`` for the transfer at hand; on a device-to-host stream, take what is in it."""
        raise NotImplementedError(f"{type(self).__name__}.fetch")

    def complete(self) -> None:
        """The transfer at hand is done."""

    def invalidate_prefetched(self) -> None:
        """What was prefetched and not transferred is dropped: it will be asked for again."""


Endpoint: TypeAlias = "Array | Callable[[Array], object] | StreamCallback"
"""What a stream can be connected to."""


class Wait(NamedTuple):
    """What a transfer makes the device wait for."""

    begin: bool  # a callback prepares the data, none of it prefetched
    end: bool  # a callback is told that the transfer is done

    def __or__(self, other: Wait) -> Wait:
        return Wait(self.begin or other.begin, self.end or other.end)


class Position(NamedTuple):
    """How far a stream has come: what a saved state holds of a connection."""

    handle: str
    replicas: tuple[int, ...]  # that share the connection
    elements: int  # of the array; -1: it is a callback
    cursor: int  # the element of the array that comes next
    data: bytes  # of a callback: what its buffer holds, then each transfer that was fetched ahead


READY = Wait(begin=False, end=False)  # an array is there already


class _Ring:
    """An array of k transfers; each takes or fills the next one, and the first follows the last."""

    def __init__(self, stream: Stream, array: Array) -> None:
        self._n = stream.elements
        # A view even where the array is strided: the user may change it between transfers.
        self._flat: Any = array.reshape(-1) if array.flags.c_contiguous else array.flat
        self._size = array.size
        self._cursor = 0

    def _next(self) -> slice:
        here = slice(self._cursor, self._cursor + self._n)
        self._cursor = here.stop % self._size if self._size else 0
        return here

    def fill(self, out: Array) -> Wait:
        out[:] = self._flat[self._next()]
        return READY

    def take(self, data: Array) -> Wait:
        self._flat[self._next()] = data
        return READY

    def drop(self) -> None:
        """Nothing is fetched ahead."""

    def position(self, handle: str, replicas: tuple[int, ...]) -> Position | None:
        return Position(handle, replicas, self._size, self._cursor, b"") if self._cursor else None

    def fits(self, position: Position) -> bool:
        return position.elements == self._size and 0 <= position.cursor < self._size and position.cursor % self._n == 0

    def go_to(self, position: Position | None) -> None:
        self._cursor = position.cursor if position is not None else 0


class Shuffle(Protocol):
    """Decides what may be one way or another."""

    def order(self, count: int) -> Array:
        """0 to ``count`` - 1 in some order."""

    def coin(self) -> bool: ...


class _Calls:
    """A callback. Its buffers are its own: no callback ever sees a tile's memory."""

    def __init__(self, stream: Stream, callback: StreamCallback, depth: int, shuffle: Shuffle | None) -> None:
        self._stream, self._callback, self._depth, self._shuffle = stream, callback, depth, shuffle
        self._ahead: deque[Array] = deque()
        self._buffer = self._new()

    def _new(self) -> Array:
        return np.zeros(self._stream.elements, self._stream.dtype.numpy)

    def _prefetch(self) -> None:
        while len(self._ahead) < self._depth:
            buffer = self._new()
            filled = self._callback.prefetch(buffer)
            if not isinstance(filled, (bool, np.bool_)):
                raise StreamError(
                    f"the prefetch of the callback of stream {self._stream.name!r} returned {filled!r}", "return True if it filled the buffer, else False"
                )
            if not filled:
                return
            self._ahead.append(buffer)

    def fill(self, out: Array) -> Wait:
        ready = bool(self._ahead)
        if not self._ahead:
            self._prefetch()
        if self._ahead:
            out[:] = self._ahead.popleft()
        else:
            self._callback.fetch(self._buffer)
            out[:] = self._buffer
        self._callback.complete()
        if self._shuffle is None or self._shuffle.coin():  # else before the next transfer
            self._prefetch()
        return Wait(begin=not ready, end=True)

    def take(self, data: Array) -> Wait:
        self._callback.fetch(data.copy())  # theirs to keep
        self._callback.complete()
        return Wait(begin=False, end=True)

    def drop(self) -> None:
        if self._ahead:
            self._ahead.clear()
            self._callback.invalidate_prefetched()

    def position(self, handle: str, replicas: tuple[int, ...]) -> Position | None:
        data = b"".join(buffer.tobytes() for buffer in (self._buffer, *self._ahead))
        return Position(handle, replicas, -1, 0, data) if self._ahead or self._buffer.any() else None

    def fits(self, position: Position) -> bool:
        return position.elements == -1 and len(position.data) >= self._buffer.nbytes and len(position.data) % max(self._buffer.nbytes, 1) == 0

    def go_to(self, position: Position | None) -> None:
        n, data = self._stream.elements, b"" if position is None else position.data
        transfers = np.frombuffer(data, self._stream.dtype.numpy).reshape(-1, n).copy() if data else self._new()[None]
        self._buffer = transfers[0]
        self._ahead = deque(transfers[1:])


class _Function(StreamCallback):
    """A plain callable as a StreamCallback."""

    def __init__(self, function: Callable[[Array], object]) -> None:
        self._function = function

    def fetch(self, buffer: Array) -> None:
        self._function(buffer)


class HostStreams:
    """Every stream of an engine and what it is connected to.

    Args:
        streams: By handle.
        replicas: Of the graph. A connection made without a replica serves all of them: of an array, each
            transfer of replica 0 takes n elements, that of replica 1 the next n, and so on.
        prefetch_depth: How many transfers of a StreamCallback are fetched ahead; 0: none.
        shuffle: Gives an order to replicas that have connections of their own, and says when a callback prefetches late.
    """

    def __init__(self, streams: Mapping[str, Stream], replicas: int = 1, prefetch_depth: int = 1, shuffle: Shuffle | None = None) -> None:
        self._streams, self._replicas, self._prefetch_depth, self._shuffle = dict(streams), replicas, prefetch_depth, shuffle
        self._connected: dict[tuple[str, int], _Ring | _Calls] = {}
        self._awaited: dict[tuple[str, int], Position] = {}  # of what is not connected yet

    def connect(self, handle: str, endpoint: Endpoint, replica: int | None = None) -> None:
        """Connect, or connect anew: an array starts at its beginning, what an old callback prefetched is dropped.

        Raises:
            UnknownNameError: no stream has this handle.
            StreamError: the endpoint does not fit the stream.
        """
        stream = self._streams.get(handle)
        if stream is None:
            raise unknown_handle("stream", handle, self._streams)
        if replica is not None and replica not in range(self._replicas):
            raise StreamError(f"stream {handle!r} is connected for replica {replica!r} of {self._replicas}", f"0 to {self._replicas - 1}")
        if replica is not None and stream.broadcast and self._replicas > 1:
            raise StreamError(f"stream {handle!r} is broadcast, and is connected for replica {replica} only", "leave out the replica: one transfer is for all")
        connection = self._connection(stream, endpoint)
        whose = tuple(range(self._replicas)) if replica is None else (replica,)
        awaited = {each: self._awaited.pop((handle, each), None) for each in whose}
        if (position := awaited[whose[0]]) is not None:
            _check_position(connection, whose, position)
            connection.go_to(position)
        for each in whose:
            old = self._connected.get((handle, each))
            self._connected[handle, each] = connection
            if old is not None:
                old.drop()

    def _connection(self, stream: Stream, endpoint: Any) -> _Ring | _Calls:
        if isinstance(endpoint, np.ndarray):
            _check_ring(stream, endpoint)
            return _Ring(stream, endpoint)
        if isinstance(endpoint, StreamCallback):
            depth = max(self._prefetch_depth, stream.buffering_depth) if self._prefetch_depth else 0
            return _Calls(stream, endpoint, depth, self._shuffle)
        if callable(endpoint):
            return _Calls(stream, _Function(endpoint), 0, None)
        raise StreamError(
            f"stream {stream.name!r} is connected to {type(endpoint).__name__}, neither array nor callable", f"np.array(..., {stream.dtype.numpy.name!r})"
        )

    def require(self, handles: Mapping[str, Any]) -> None:
        """Raises StreamError if one of ``handles`` is not connected for every replica; call it before a run."""
        for handle in handles:
            for replica in range(self._replicas):
                self._of(handle, replica)

    def fill_all(self, handle: str, out: Array) -> Wait:
        """One transfer to each replica: fill the rows of ``out``, [replicas, elements]. Of a broadcast stream all get the same one.

        Returns: what the slowest of the replicas waits for.
        """
        if self._streams[handle].broadcast:
            wait = self.fill(handle, 0, out[0])
            out[1:] = out[0]
            return wait
        wait = READY
        for replica in self._replicas_in_order(handle):
            wait |= self.fill(handle, replica, out[replica])
        return wait

    def fill(self, handle: str, replica: int, out: Array) -> Wait:
        """One transfer to the device: fill ``out``, a 1-D array of the stream's elements.

        What the callback raises arrives unchanged.
        """
        return self._of(handle, replica).fill(out)

    def take_all(self, handle: str, data: Array) -> Wait:
        """One transfer from each replica: hand the rows of ``data`` over, [replicas, elements]."""
        wait = READY
        for replica in self._replicas_in_order(handle):
            wait |= self.take(handle, replica, data[replica])
        return wait

    def _replicas_in_order(self, handle: str) -> list[int]:
        """0, 1, ...: an order that is defined where one connection serves several."""
        every = list(range(self._replicas))
        if self._shuffle is None or len({id(self._of(handle, replica)) for replica in every}) < self._replicas:
            return every
        return [int(replica) for replica in self._shuffle.order(self._replicas)]

    def take(self, handle: str, replica: int, data: Array) -> Wait:
        """One transfer from the device: hand ``data`` over, a 1-D array of the stream's elements."""
        return self._of(handle, replica).take(data)

    def invalidate(self) -> None:
        """Drop everything prefetched: the device is loaded anew."""
        for connection in dict.fromkeys(self._connected.values()):
            connection.drop()

    def positions(self) -> list[Position]:
        """How far each connection has come that is not at its beginning. What the user's arrays and callbacks hold is no part of it."""
        shared: dict[tuple[str, int], tuple[_Ring | _Calls, list[int]]] = {}
        for (handle, replica), connection in sorted(self._connected.items(), key=lambda pair: pair[0]):
            shared.setdefault((handle, id(connection)), (connection, []))[1].append(replica)
        found = [connection.position(handle, tuple(replicas)) for (handle, _), (connection, replicas) in shared.items()]
        return [*(position for position in found if position is not None), *dict.fromkeys(self._awaited.values())]

    def check_positions(self, positions: Sequence[Position]) -> None:
        """Raises StreamError where something is connected that cannot go on at a position. Changes nothing."""
        for position in positions:
            for replica in position.replicas:
                if (connection := self._connected.get((position.handle, replica))) is not None:
                    whose = tuple(r for (handle, r), other in sorted(self._connected.items(), key=lambda p: p[0]) if other is connection)
                    _check_position(connection, whose, position)

    def resume(self, positions: Sequence[Position]) -> None:
        """Go on at the positions of a saved state, all others at the beginning. What is not connected yet goes on once it is.

        Needs: ``check_positions`` was fine. What was fetched ahead is dropped.
        """
        self.invalidate()
        for connection in dict.fromkeys(self._connected.values()):
            connection.go_to(None)
        self._awaited.clear()
        for position in positions:
            for replica in position.replicas:
                if (found := self._connected.get((position.handle, replica))) is not None:
                    found.go_to(position)
                else:
                    self._awaited[position.handle, replica] = position

    def _of(self, handle: str, replica: int) -> _Ring | _Calls:
        found = self._connected.get((handle, replica))
        if found is None:
            where = f" for replica {replica}" if self._replicas > 1 else ""
            raise StreamError(f"stream {handle!r} is used by the program and connected to nothing{where}", f"engine.connect_stream({handle!r}, ...)")
        return found


def _check_position(connection: _Ring | _Calls, replicas: tuple[int, ...], position: Position) -> None:
    if replicas == position.replicas and connection.fits(position):
        return
    was = "a callback" if position.elements < 0 else f"an array of {position.elements:,} elements, at element {position.cursor:,}"
    shared = "" if replicas == position.replicas else f", for replicas {', '.join(map(str, position.replicas))}"
    raise StreamError(
        f"the state was saved while stream {position.handle!r} was connected to {was}{shared}, and something else is connected now",
        "connect the same as then; connecting once more starts at the beginning",
    )


def _check_ring(stream: Stream, array: Array) -> None:
    name, wanted = stream.name, stream.dtype.numpy
    if array.dtype != wanted:
        raise StreamError(
            f"stream {name!r} moves {stream.dtype.__name__} ({wanted.name}), the array connected to it holds {array.dtype.name}",
            f"array.astype({wanted.name!r})",
        )
    if array.size % stream.elements if stream.elements else array.size:
        raise StreamError(
            f"stream {name!r} moves {stream.elements:,} elements at a time, the array of shape {array.shape} connected to it has {array.size:,}",
            f"a multiple of {stream.elements:,} elements",
        )
    if stream.elements and not array.size:
        raise StreamError(f"stream {name!r} moves {stream.elements:,} elements at a time, the array connected to it is empty", "connect at least one transfer")
    if not stream.to_device and not array.flags.writeable:
        raise StreamError(f"stream {name!r} writes to the array connected to it, which is read-only", "connect a copy of it")


class RemoteRows:
    """The rows of one remote buffer, on every replica; zero at first.

    Costs: address space, and memory for the pages that are touched: a buffer may be larger than the host's memory.

    Attributes:
        data: [replicas, rows, elements].
        pages: That hold it.
    """

    def __init__(self, remote: RemoteBuffer, replicas: int = 1) -> None:
        self.remote, self.replicas = remote, replicas
        shape, dtype = (replicas, remote.repeats, remote.elements), remote.dtype
        self.pages = Pages(math.prod(shape) * dtype.nbytes, f"remote buffer {remote.name!r}")
        self.data: Array = self.pages.memory.view(dtype.numpy).reshape(shape)

    def clear(self) -> None:
        """Zero everywhere."""
        self.pages.clear()

    def check_replica(self, replica: int) -> int:
        """``replica``. Raises: EngineError: there is no such one."""
        if replica not in range(self.replicas):
            raise EngineError(f"replica {replica!r} of remote buffer {self.remote.name!r}: the graph has {self.replicas}", f"0 to {self.replicas - 1}")
        return replica

    def check_rows(self, rows: Array) -> Array:
        """``rows`` as int64.

        Raises:
            EngineError: one of them does not exist.
        """
        wide = np.asarray(rows).astype(np.int64).reshape(-1)
        for row in wide[(wide < 0) | (wide >= self.remote.repeats)][:1]:
            raise EngineError(f"row {row} of remote buffer {self.remote.name!r}: it has {self.remote.repeats:,} rows", f"0 to {self.remote.repeats - 1}")
        return wide

    def read(self, replica: int, rows: Array) -> Array:
        """The named rows, one after another, 1-D."""
        read: Array = self.data[replica, self.check_rows(rows)].reshape(-1)
        return read

    def write(self, replica: int, rows: Array, values: Array) -> None:
        """Write rows in order; of a row named twice the last one stays."""
        wide = self.check_rows(rows)
        for row, part in zip(wide, values.reshape(wide.size, self.remote.elements), strict=True):
            self.data[replica, row] = part


def as_host_array(what: str, dtype: ElementType, shape: tuple[int, ...], values: Any, replicas: int = 1) -> Array:
    """``values`` as an array of shape ``(replicas, *shape)``, for a host write.

    Arrays must have the element type and the shape, be flat with as many elements, or have a leading dimension
    of ``replicas``; without one, every replica gets the same. Python numbers and lists take the element type.

    Raises:
        HostTransferError: they do not fit; both element types or both shapes are named.
    """
    array: Array = values if isinstance(values, np.ndarray) else _from_plain(what, dtype, values)
    if array.dtype != dtype.numpy:
        raise HostTransferError(
            f"{what} has element type {dtype.__name__} ({dtype.numpy.name}), the host's array has {array.dtype.name}", f"array.astype({dtype.numpy.name!r})"
        )
    count = int(np.prod(shape, dtype=np.int64))
    if array.shape in (shape, (count,)):
        return np.broadcast_to(array.reshape(shape), (replicas, *shape))
    if array.shape in ((replicas, *shape), (replicas, count)):
        return array.reshape((replicas, *shape))
    each = f" or {(replicas, *shape)}" if replicas > 1 else ""
    raise HostTransferError(f"{what} has shape {shape}{each}, the host's array has {array.shape}", "pass an array of the tensor's shape, or a flat one")


def _from_plain(what: str, dtype: ElementType, values: Any) -> Array:
    """Lists and numbers: only where the element type holds every value."""
    try:
        plain = np.asarray(values)
        numbers = plain.dtype.kind in "iufb" or plain.size == 0
        made = plain.astype(dtype.numpy) if numbers else plain
    except (TypeError, ValueError) as error:
        raise HostTransferError(
            f"{what} has element type {dtype.__name__}, the host's data is no array: {error}", f"np.array(..., {dtype.numpy.name!r})"
        ) from None
    if not numbers or (not dtype.is_floating and not np.array_equal(made, plain)):
        raise HostTransferError(f"{what} has element type {dtype.__name__}, which cannot hold the host's {plain.dtype.name} values", "pass values it can hold")
    return made


def unknown_handle(kind: str, handle: Any, known: Mapping[str, Any]) -> PopcoreError:
    """The error for a handle that the graph did not declare, with near ones."""
    otherwise = "one of " + ", ".join(map(repr, known)) if known else "declare it on the graph before the engine is made"
    return UnknownNameError(f"the graph declares no {kind} {handle!r}", near_matches(handle, known, otherwise))
