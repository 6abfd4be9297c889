"""Tensors that the host, or Streaming Memory, transfers well. After ``popops/HostSliceTensor.hpp``."""

from __future__ import annotations

from collections.abc import Sequence as Items
from typing import NamedTuple

from popcore.errors import ShapeError
from popcore.graph import Graph, Tensor
from popcore.ops.popops import common
from popcore.ops.poputil import map_tensor_linearly, map_tensor_linearly_with_offset
from popcore.types import UNSIGNED_INT, DTypeLike, as_element_type

PACKET_BYTES = 1024
"""What PopLibs takes a packet of a host exchange to hold: so much of a tensor stays on a tile."""


class IndicesAndTensor(NamedTuple):
    """Rows of a remote buffer: which, and what they hold."""

    indices: Tensor
    tensor: Tensor


def create_host_transferable_tensor(graph: Graph, dtype: DTypeLike, shape: Items[int], is_read: bool, offset: int = 0, name: str = "") -> Tensor:
    """A tensor mapped linearly in whole packets, from the tile on that ``offset`` bytes before it would reach.

    Args:
        is_read: Whether the host reads it; the modelled host does not care.
    """
    element = as_element_type(dtype)
    made = graph.add_variable(element, tuple(shape), name=common.joined(name, "host"))
    packet = PACKET_BYTES // element.nbytes
    map_tensor_linearly_with_offset(graph, made, offset // PACKET_BYTES % graph.target.num_tiles, True, packet, packet)
    return made


def create_host_sliceable_tensor(graph: Graph, dtype: DTypeLike, shape: Items[int], is_read: bool, offset: int = 0, name: str = "") -> IndicesAndTensor:
    """Such a tensor, (rows, elements), and an UNSIGNED_INT tensor (rows,) for a copy from or to as many rows of a remote buffer.

    Raises: ShapeError: no matrix.
    """
    if len(shape) != 2:
        raise ShapeError(f"create_host_sliceable_tensor of {list(shape)}", "(rows, elements)")
    indices = graph.add_variable(UNSIGNED_INT, (shape[0],), name=common.joined(name, "host indices"))
    map_tensor_linearly(graph, indices)
    return IndicesAndTensor(indices, create_host_transferable_tensor(graph, dtype, shape, is_read, offset, name))
