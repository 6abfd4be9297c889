"""What the host does when the machine yields: streams, remote buffers, prints, and the stop of a program."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, TextIO

import numpy as np

from popcore.errors import EngineError
from popcore.executable import Executable, Yield
from popcore.program.printing import print_tensor, stopped
from popcore.program.streams import HostStreams, RemoteRows
from popcore.types import Array, ElementType


class Host:
    """The host's side of one engine.

    Args:
        options: Engine options.
        staging: uint8, the staging area of the arena.
        cycles: Tells the modelled cycles so far.
    """

    def __init__(self, executable: Executable, options: Mapping[str, Any], staging: Array, cycles: Callable[[], int]) -> None:
        depth = int(options["exchange.prefetchDepth"]) if options["exchange.enablePrefetch"] else 0
        self.streams = HostStreams({s.name: s for s in executable.streams}, 1, depth)
        self.remotes = {r.name: RemoteRows(r) for r in executable.remotes}
        self.print_tensor_stream: TextIO | None = None
        self._executable, self._staging, self._cycles = executable, staging, cycles
        self._began: dict[int, int] = {}

    def view(self, dtype: ElementType, shape: tuple[int, ...], offset: int = 0) -> Array:
        """A part of the staging area as an array."""
        nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.nbytes
        return self._staging[offset : offset + nbytes].view(dtype.numpy).reshape(shape)

    def serve(self, row: int) -> None:
        """Do what ``executable.yields[row]`` asks. What a callback raises arrives unchanged."""
        request = self._executable.yields[row]
        match request.kind:
            case "stream_in" | "stream_out":
                self._stream(request)
            case "remote_in" | "remote_out":
                self._remote(request)
            case "print":
                assert request.dtype is not None
                (self.print_tensor_stream or sys.stderr).write(print_tensor(request.title, self.view(request.dtype, request.shape)))
            case "error":
                shown = None if request.dtype is None else self.view(request.dtype, request.shape).copy()
                raise stopped(request.title, request.site, shown)
            case "cycles_begin":
                self._began[row] = self._cycles()
            case "cycles_end":
                assert request.dtype is not None
                spent = self._cycles() - self._began.pop(request.index)
                self.view(request.dtype, request.shape)[:] = spent & 0xFFFFFFFF, (spent >> 32) & 0xFFFFFFFF
            case _:
                raise EngineError(f"the Executable asks the host for {request.kind!r}, which this version does not know", "compile the graph again")

    def _stream(self, request: Yield) -> None:
        stream = self._executable.streams[request.index]
        data = self.view(stream.dtype, (stream.elements,))
        if request.kind == "stream_in":
            self.streams.fill(stream.name, 0, data)
        else:
            self.streams.take(stream.name, 0, data)

    def _remote(self, request: Yield) -> None:
        rows = self.remotes[self._executable.remotes[request.index].name]
        which = np.array(request.rows, np.int64)
        if request.rows_dtype is not None:
            which = self.view(request.rows_dtype, request.shape[:1], request.rows_at)
        data = self.view(rows.remote.dtype, request.shape).reshape(-1)
        if request.kind == "remote_in":
            data[:] = rows.read(0, which)
        else:
            rows.write(0, which, data.copy())
