"""The ends of a graph that the host sees: reads and writes by handle, streams, remote buffers."""

from __future__ import annotations

import enum
from typing import Any

from popcore.debug import Site, user_site
from popcore.errors import GraphError, ValueRangeError
from popcore.executable.executable import RemoteBuffer, Stream
from popcore.graph.tensor import Tensor
from popcore.types import DTypeLike, as_element_type


class ReplicatedStreamMode(enum.Enum):
    """What a stream to a replicated graph brings to each replica."""

    REPLICATE = "replicate"  # each has transfers of its own
    BROADCAST = "broadcast"  # one transfer is for all of them


class HostEnds:
    """The part of Graph that declares handles. Each kind of handle is given once."""

    def __init__(self) -> None:
        self.host_reads: dict[str, Tensor] = {}
        self.host_writes: dict[str, Tensor] = {}
        self.streams: dict[str, Stream] = {}
        self.remotes: dict[str, RemoteBuffer] = {}
        self._handle_sites: dict[tuple[str, str], Site] = {}

    def add_host_to_device_fifo(
        self,
        handle: str,
        dtype: DTypeLike,
        num_elements: int,
        mode: ReplicatedStreamMode = ReplicatedStreamMode.REPLICATE,
        *,
        buffering_depth: int = 1,
    ) -> Stream:
        """A stream of ``num_elements`` per Copy, from the host; ``engine.connect_stream(handle, ...)`` feeds it."""
        return self._add_fifo(handle, dtype, num_elements, True, buffering_depth, ReplicatedStreamMode(mode) is ReplicatedStreamMode.BROADCAST)

    def add_device_to_host_fifo(self, handle: str, dtype: DTypeLike, num_elements: int, *, buffering_depth: int = 1) -> Stream:
        """A stream of ``num_elements`` per Copy, to the host."""
        return self._add_fifo(handle, dtype, num_elements, False, buffering_depth)

    def create_host_write(self, handle: str, tensor: Tensor) -> None:
        """``engine.write_tensor(handle, array)`` writes ``tensor``.

        Raises: GraphError: the handle is taken, or the tensor is constant or shows an element twice.
        """
        self._own_tensor(tensor, f"host write {handle!r}")
        if not tensor.is_parallel_writeable:
            why = "is constant" if tensor.contains_constant else "shows an element more than once"
            raise GraphError(f"host write {handle!r} of {tensor!r}, which {why}", "write a variable, each element once")
        self._take("host write", handle)
        self.host_writes[handle] = tensor

    def create_host_read(self, handle: str, tensor: Tensor) -> None:
        """``engine.read_tensor(handle)`` gives ``tensor``'s values."""
        self._own_tensor(tensor, f"host read {handle!r}")
        self._take("host read", handle)
        self.host_reads[handle] = tensor

    def add_remote_buffer(self, handle: str, dtype: DTypeLike, num_elements: int, repeats: int = 1) -> RemoteBuffer:
        """``repeats`` rows of ``num_elements`` in Streaming Memory."""
        made = RemoteBuffer(
            handle, as_element_type(dtype), _count(num_elements, f"elements of remote buffer {handle!r}"), _count(repeats, f"rows of {handle!r}")
        )
        self._take("remote buffer", handle)
        self.remotes[handle] = made
        return made

    def _add_fifo(self, handle: str, dtype: DTypeLike, elements: int, to_device: bool, depth: int, broadcast: bool = False) -> Stream:
        elements, depth = _count(elements, f"elements of stream {handle!r}"), _count(depth, f"buffering_depth of {handle!r}")
        made = Stream(handle, as_element_type(dtype), elements, to_device, depth, broadcast)
        self._take("stream", handle)
        self.streams[handle] = made
        return made

    def _take(self, kind: str, handle: str) -> None:
        if not isinstance(handle, str) or not handle:
            raise GraphError(f"the handle of a {kind} is {handle!r}", "a string")
        if (earlier := self._handle_sites.get((kind, handle))) is not None:
            raise GraphError(f"{kind} {handle!r} was declared already ({earlier})", "give each a handle of its own")
        self._handle_sites[kind, handle] = user_site()

    def _own_tensor(self, tensor: Any, what: str) -> None:
        raise NotImplementedError  # Graph does


def _count(n: Any, what: str) -> int:
    if isinstance(n, bool) or not hasattr(n, "__index__") or n.__index__() < 0:
        raise ValueRangeError(f"{what}: {n!r}", "a whole number of 0 or more")
    return int(n.__index__())
