"""What the host does when the machine yields: streams, remote buffers, prints, and the stop of a program."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from typing import Any, TextIO

import numpy as np

from popcore.engine.collectives import Reduction, perform
from popcore.engine.schedule import Shuffle
from popcore.engine.shadow import ShadowMemory
from popcore.errors import EngineError
from popcore.executable import Executable, Yield, executable
from popcore.executable.schedules import members_of
from popcore.kernels.behaviour import arithmetic_of
from popcore.program.printing import behaviour_of, print_tensor, stopped, unequal
from popcore.program.streams import READY, HostStreams, RemoteRows, Wait
from popcore.types import Array, ElementType


class Host:
    """The host's side of one engine.

    Args:
        options: Engine options.
        memory: uint8[replicas, bytes], of each replica. Its staging area is where the Executable says.
        cycles: Tells the modelled cycles so far.
        shuffle: Gives an order to what has none.

    Attributes:
        behaviour: The machine's floating-point state, bits of ``kernels.behaviour``; requests change it.
        shadow: What was written, where that is checked.
    """

    def __init__(
        self,
        executable: Executable,
        options: Mapping[str, Any],
        memory: Array,
        cycles: Callable[[], int],
        threads: int = 1,
        shadow: ShadowMemory | None = None,
        shuffle: Shuffle | None = None,
    ) -> None:
        depth = int(options["exchange.prefetchDepth"]) if options["exchange.enablePrefetch"] else 0
        self.streams = HostStreams({s.name: s for s in executable.streams}, executable.replicas, depth, shuffle)
        self.remotes = {r.name: RemoteRows(r, executable.replicas) for r in executable.remotes}
        self.print_tensor_stream: TextIO | None = None
        self._executable, self._cycles, self._memory = executable, cycles, memory
        place = executable.memory
        self._staging = memory[:, place.staging : place.staging + place.staging_bytes]
        self._reductions: dict[tuple[int, str], Reduction] = {}
        self._ieee = options["target.floatingPoint"] == "ieee"
        self.behaviour = 0
        self._threads, self._shadow, self._shuffle = threads, shadow, shuffle
        self._began: dict[int, int] = {}

    def view(self, dtype: ElementType, shape: tuple[int, ...], offset: int = 0) -> Array:
        """A part of the staging areas as an array, [replicas, *shape]."""
        nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.nbytes
        return self._staging[:, offset : offset + nbytes].view(dtype.numpy).reshape((len(self._staging), *shape))

    def serve(self, row: int) -> Wait:
        """Do what ``executable.yields[row]`` asks. What a callback raises arrives unchanged.

        Returns: what the device waits for meanwhile, beyond the cost of the step itself.
        """
        request = self._executable.yields[row]
        if self._shadow is not None:
            self._look(request, self._shadow)
        match request.kind:
            case executable.MODIFY:
                if request.dtype is not None:
                    self.view(request.dtype, request.shape)[...] = self.behaviour
                self.behaviour = self.behaviour & ~request.clear | request.set
            case executable.RESTORE:
                assert request.dtype is not None
                self.behaviour = behaviour_of(self.view(request.dtype, request.shape), request.site)
            case "collective":
                self._collective(request)
            case "stream_in" | "stream_out":
                return self._stream(request)
            case "remote_in" | "remote_out":
                self._remote(request)
            case "print":
                assert request.dtype is not None
                for replica, values in enumerate(self.view(request.dtype, request.shape)):
                    shown = print_tensor(request.title, values[...], replica if self._executable.replicas > 1 else None)
                    (self.print_tensor_stream or sys.stderr).write(shown)
            case "error":
                raise stopped(request.title, request.site, None if request.dtype is None else self.view(request.dtype, request.shape)[0, ...].copy())
            case "cross_copy" | "equal" | "error_if":
                self._together(request)
            case "cycles_begin":
                self._began[row] = self._cycles()
            case "cycles_end":
                assert request.dtype is not None
                if (began := self._began.pop(request.index, None)) is None:
                    raise EngineError("the Executable ends a count of cycles that never began", "compile the graph again")
                spent = self._cycles() - began
                self.view(request.dtype, request.shape)[...] = spent & 0xFFFFFFFF, (spent >> 32) & 0xFFFFFFFF
            case "defined" | "undefine":
                pass  # the shadow's alone
            case _:
                raise EngineError(f"the Executable asks the host for {request.kind!r}, which this version does not know", "compile the graph again")
        return READY

    def _look(self, request: Yield, shadow: ShadowMemory) -> None:
        """What a request means for the shadow of memory."""
        match request.kind:
            case "defined":
                assert request.dtype is not None
                shadow.tested(request.title, request.offset, request.dtype.nbytes)
            case "undefine":
                shadow.end(request.index)
            case "stream_out" | "print" if request.dtype is not None:
                what = f"stream {self._executable.streams[request.index].name!r}" if request.kind == "stream_out" else f"PrintTensor {request.title!r}"
                shadow.host_read(what, math.prod(request.shape) * request.dtype.nbytes, request.dtype.nbytes)
            case "collective" if self._executable.collectives[request.index].kind == "all_reduce":
                call = self._executable.collectives[request.index]
                groups = members_of(call.group_type, call.group_size, self._executable.replicas)
                shadow.combined(self._executable.collective_spans[call.span_begin : call.span_end], groups)
            case _:
                shadow.host_wrote()

    def _stream(self, request: Yield) -> Wait:
        stream = self._executable.streams[request.index]
        data = self.view(stream.dtype, (stream.elements,))
        if request.kind == "stream_in":
            return self.streams.fill_all(stream.name, data)
        return self.streams.take_all(stream.name, data)

    def _collective(self, request: Yield) -> None:
        call = self._executable.collectives[request.index]
        rule = arithmetic_of(self.behaviour, self._ieee).rule
        if call.kind == "all_reduce":  # where the tensor is
            key = (request.index, rule)
            if key not in self._reductions:
                spans = self._executable.collective_spans[call.span_begin : call.span_end]
                self._reductions[key] = Reduction(call, spans, self._memory, self._threads, rule, self._shuffle)
            self._reductions[key].run()
            return
        source, result = self.view(call.dtype, (call.elements,)), self.view(call.dtype, (call.result_elements,), call.result_offset)
        perform(call, source, result, self._threads, rule, self._shuffle)

    def _together(self, request: Yield) -> None:
        """What all replicas do with each other."""
        assert request.dtype is not None
        values = self.view(request.dtype, request.shape)
        if request.kind == "cross_copy":
            values[...] = values[list(request.rows)]
        elif request.kind == "equal":
            if (error := unequal(request.title, list(values))) is not None:
                raise error
        elif values.any():
            raise stopped(request.title, request.site)

    def _remote(self, request: Yield) -> None:
        self.move_rows(request, math.prod(request.shape))

    def move_rows(self, request: Yield, elements: int) -> None:
        """Move the first ``elements`` of a remote transfer."""
        rows = self.remotes[self._executable.remotes[request.index].name]
        which = np.broadcast_to(np.array(request.rows, np.int64), (len(self._staging), len(request.rows)))
        if request.rows_dtype is not None:
            which = self.view(request.rows_dtype, request.shape[:1], request.rows_at)
        for replica, data in enumerate(self.view(rows.remote.dtype, (math.prod(request.shape),))):
            if request.kind == "remote_in":
                data[:elements] = rows.read(replica, which[replica])[:elements]
                continue
            content = data.copy()
            if elements < len(content):
                content[elements:] = rows.read(replica, which[replica])[elements:]
            rows.write(replica, which[replica], content)
