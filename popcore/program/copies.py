"""``Copy``: from tensor to tensor, and between a tensor and the host or Streaming Memory."""

from __future__ import annotations

from collections.abc import Sequence as Items
from typing import Any, TypeAlias

import numpy as np

from popcore.debug import Site, user_site
from popcore.errors import ControlProgramError, GraphError, ShapeError, ValueRangeError
from popcore.executable.executable import RemoteBuffer, Stream
from popcore.graph.tensor import Tensor
from popcore.program import checks
from popcore.program.nodes import Program, node
from popcore.types import INT, UNSIGNED_INT

Rows: TypeAlias = "tuple[int, ...] | Tensor"
"""Which rows of a remote buffer a copy moves: fixed numbers, or a tensor of them read at run time."""


@node
class Copy(Program):
    """Move elements: ``Copy(src, dst)``. All of ``src`` is read before anything of ``dst`` is written.

    ``kind`` says what the two ends are:

    ============ ======================= ==============================================================
    kind         ends                    elements
    ============ ======================= ==============================================================
    "tensor"     tensor to tensor        equal shapes, or equal counts if one side has rank 1 or 0
    "stream_in"  Stream to tensor        exactly the stream's count
    "stream_out" tensor to Stream        exactly the stream's count
    "remote_in"  RemoteBuffer to tensor  rows x the buffer's count; ``offset`` says which rows
    "remote_out" tensor to RemoteBuffer  likewise; of a row named twice the last one stays
    ============ ======================= ==============================================================

    Args:
        offset: Row or rows of a remote buffer: an int, ints, or an INT or UNSIGNED_INT tensor of rank 0 or 1.
            May be left out where the buffer has one row.
        dont_outline: Taken for programs written for Poplar; it changes nothing here.

    Raises:
        ElementTypeError, ShapeError: the two ends do not fit; both are named with their shapes.
        ControlProgramError: the destination is constant, or contains an element twice.
        ValueRangeError: a row that the remote buffer does not have.
    """

    kind: str
    src: Tensor | Stream | RemoteBuffer
    dst: Tensor | Stream | RemoteBuffer
    rows: Rows
    name: str
    site: Site

    def __init__(
        self,
        src: Tensor | Stream | RemoteBuffer,
        dst: Tensor | Stream | RemoteBuffer,
        offset: int | Items[int] | Tensor | None = None,
        name: str = "",
        dont_outline: bool = False,
    ) -> None:
        self.name, self.site, self.src, self.dst, self.rows = name, user_site(), src, dst, ()
        if isinstance(src, Tensor) and isinstance(dst, Tensor):
            self.kind = "tensor"
            _check_tensors(src, dst, self.site)
        elif isinstance(src, Stream) and isinstance(dst, Tensor):
            self.kind = "stream_in"
            _check_stream(src, dst, True, self.site)
        elif isinstance(src, Tensor) and isinstance(dst, Stream):
            self.kind = "stream_out"
            _check_stream(dst, src, False, self.site)
        elif isinstance(src, RemoteBuffer) and isinstance(dst, Tensor):
            self.kind = "remote_in"
            self.rows = _check_remote(src, dst, offset, self.site)
        elif isinstance(src, Tensor) and isinstance(dst, RemoteBuffer):
            self.kind = "remote_out"
            self.rows = _check_remote(dst, src, offset, self.site)
        else:
            raise GraphError(f"Copy ({self.site}) is given {src!r} and {dst!r}", "one side is a tensor, the other a tensor, stream or remote buffer")
        if self.kind.endswith("in") or self.kind == "tensor":
            checks.require_writeable("Copy", self.target, self.site)
        if offset is not None and not self.kind.startswith("remote"):
            raise ControlProgramError(f"Copy ({self.site}) is given an offset, and neither side is a remote buffer", "slice the tensor instead")

    @property
    def source(self) -> Tensor:
        """``src`` of a copy that reads a tensor."""
        return _tensor(self.src)

    @property
    def target(self) -> Tensor:
        """``dst`` of a copy that writes a tensor."""
        return _tensor(self.dst)

    @property
    def stream(self) -> Stream:
        """The stream of a stream copy."""
        end = self.src if self.kind == "stream_in" else self.dst
        assert isinstance(end, Stream)
        return end

    @property
    def remote(self) -> RemoteBuffer:
        """The remote buffer of a remote copy."""
        end = self.src if self.kind == "remote_in" else self.dst
        assert isinstance(end, RemoteBuffer)
        return end


def _tensor(end: Any) -> Tensor:
    assert isinstance(end, Tensor)
    return end


def _check_tensors(src: Tensor, dst: Tensor, site: Site) -> None:
    checks.require_one_graph("Copy", (src, dst), site)
    if src.dtype is not dst.dtype:
        checks.require_same_type("Copy", (checks.describe(src), src.dtype), (checks.describe(dst), dst.dtype), site)
    checks.require_same_elements("Copy", src, dst, site)


def _check_stream(stream: Stream, tensor: Tensor, to_device: bool, site: Site) -> None:
    if stream.to_device is not to_device:
        way = ("host to device", "device to host")[to_device]
        raise ControlProgramError(f"Copy ({site}) uses stream {stream.name!r}, which goes from {way}, the other way round", "swap the two arguments")
    checks.require_same_type("Copy", (f"stream {stream.name!r}", stream.dtype), (checks.describe(tensor), tensor.dtype), site)
    if tensor.num_elements != stream.elements:
        raise ShapeError(
            f"Copy ({site}): stream {stream.name!r} moves {stream.elements:,} elements at a time, {checks.describe(tensor)} has {tensor.num_elements:,}",
            "declare the stream with the tensor's number of elements",
        )


def _check_remote(remote: RemoteBuffer, tensor: Tensor, offset: Any, site: Site) -> Rows:
    checks.require_same_type("Copy", (f"remote buffer {remote.name!r}", remote.dtype), (checks.describe(tensor), tensor.dtype), site)
    if offset is None and remote.repeats != 1:
        raise ControlProgramError(f"Copy ({site}): remote buffer {remote.name!r} has {remote.repeats:,} rows and no offset says which", "Copy(src, dst, row)")
    rows = _rows(remote, 0 if offset is None else offset, site)
    count = rows.num_elements if isinstance(rows, Tensor) else len(rows)
    if tensor.num_elements != count * remote.elements:
        raise ShapeError(
            f"Copy ({site}): {count} rows of {remote.elements:,} elements of remote buffer {remote.name!r}, "
            f"{checks.describe(tensor)} has {tensor.num_elements:,} elements",
            "slice or flatten the tensor to rows x elements",
        )
    return rows


def _rows(remote: RemoteBuffer, offset: Any, site: Site) -> Rows:
    what = f"the offset of a Copy with remote buffer {remote.name!r}"
    if isinstance(offset, Tensor):
        if not (offset.dtype is INT or offset.dtype is UNSIGNED_INT) or offset.rank > 1:
            raise ControlProgramError(f"{what} ({site}) is {checks.describe(offset)}", "an INT or UNSIGNED_INT tensor of rank 0 or 1")
        return offset
    given = offset if isinstance(offset, (list, tuple, range, np.ndarray)) else [offset]
    rows = tuple(checks.require_index(what, i, site) for i in given)
    for row in rows:
        if not 0 <= row < remote.repeats:
            raise ValueRangeError(f"{what} ({site}) is {row}: it has {remote.repeats:,} rows", f"0 to {remote.repeats - 1}")
    return rows
