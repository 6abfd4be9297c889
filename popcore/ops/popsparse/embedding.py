"""Rows of a sparse table looked up and added to. After ``popsparse/Embedding.hpp``: the table is that of a fully connected layer's weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from popcore.errors import ElementTypeError, ShapeError
from popcore.graph import Graph, Tensor
from popcore.ops.popops import common
from popcore.ops.popsparse import buckets, dense
from popcore.ops.popsparse.buckets import SparseTensor
from popcore.ops.popsparse.fully_connected import FullyConnectedParams
from popcore.ops.popsparse.params import Options, dense_operand, floating
from popcore.program import Sequence
from popcore.types import FLOAT, UNSIGNED_INT, DTypeLike


def create_indices_tensor(graph: Graph, params: FullyConnectedParams, num_indices: int, options: Options = None, name: str = "") -> Tensor:
    """UNSIGNED_INT (num_indices,)."""
    planned = params.plan(graph.target, FLOAT, options, "create_indices_tensor")
    return buckets.create_indices(graph, planned, num_indices, name or "indices")


def create_slice_tensor(
    graph: Graph, data_type: DTypeLike, params: FullyConnectedParams, num_indices: int, name: str = "", options: Options = None, cache: Any = None
) -> Tensor:
    """[num_indices, input channels], on the tiles that update from it."""
    planned = params.plan(graph.target, data_type, options, "create_slice_tensor")
    parts = dense.parts_of(np.array([0, num_indices]), planned.k_cuts)
    return dense.create(graph, floating(data_type, "create_slice_tensor"), parts, planned.bucket_tiles.T[None], name or "slices")


def embedding_slice(
    graph: Graph, t: SparseTensor, indices: Tensor, prog: Sequence, params: FullyConnectedParams, name: str = "", options: Options = None, cache: Any = None
) -> Tensor:
    """Row ``indices[i]`` of the table as row i, dense: [len(indices), input channels]; zeros for an index that is no row."""
    step = name or "embedding_slice"
    _check(t, indices, step)
    return buckets.take_rows(graph, t, indices, prog, step)


def embedding_update_add(
    graph: Graph, t: SparseTensor, slices: Tensor, indices: Tensor, scale: Tensor | float, prog: Sequence, params: FullyConnectedParams, name: str = "",
    options: Options = None, cache: Any = None,
) -> None:  # fmt: skip
    """Add ``scale`` times row i of ``slices`` to row ``indices[i]`` of the table, where that has entries; an index that is there twice adds twice.

    Args:
        scale: A number, or a FLOAT scalar. Each sum is made in FLOAT and rounded.
    """
    step = name or "embedding_update_add"
    _check(t, indices, step)
    matrix = dense_operand(slices, (indices.num_elements, t.plan.sizes.k), t.nz_values.dtype, False, step)
    if isinstance(scale, Tensor) and (scale.num_elements != 1 or scale.dtype is not FLOAT):
        raise ShapeError(f"{step}: scale is {scale!r}", "a FLOAT tensor of one element, or a number")
    buckets.add_rows(graph, t, matrix, indices, scale.reshape(()) if isinstance(scale, Tensor) else float(scale), prog, step)


def _check(t: SparseTensor, indices: Tensor, step: str) -> None:
    buckets.check(t, step)
    common.require_tensors(step, indices)
    if indices.rank != 1:
        raise ShapeError(f"{step} with indices {indices!r}", "a vector")
    if indices.dtype is not UNSIGNED_INT:
        raise ElementTypeError(f"{step} with indices {indices!r}", "UNSIGNED_INT")
