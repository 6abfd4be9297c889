"""encode_one_hot: indices as rows with one entry set."""

from __future__ import annotations

from typing import Any

import numpy as np

from popcore.errors import ElementTypeError, ShapeError
from popcore.graph import Graph, Tensor
from popcore.ops.popops import common
from popcore.ops.popops.expr import Equal, Expr, Parameter, PlaceHolder, Select
from popcore.ops.popops.mapping import map_with_output
from popcore.ops.poputil import map_tensor_linearly
from popcore.program import Sequence

MASKED_LABEL_CODE = 0xFFFFFFFF
"""An index that stands for none: its row is off throughout."""


def encode_one_hot(graph: Graph, indices: Tensor, encoded: Tensor, prog: Sequence, on: Any = 1, off: Any = 0, name: str = "") -> None:
    """Row i of ``encoded`` becomes ``off``, but ``on`` at ``indices[i]``; an index outside of the row leaves it off.

    Args:
        indices: (n,), INT or UNSIGNED_INT.
        encoded: (n, classes) of any type.
        on, off: Numbers, or tensors of one element of the type of ``encoded``.
    """
    step = common.joined(name, "encode_one_hot")
    common.require_tensors(step, indices, encoded)
    if not indices.dtype.is_integral or indices.dtype.nbytes != 4:
        raise ElementTypeError(f"{step} of {indices!r}", "INT or UNSIGNED_INT indices")
    if encoded.rank != 2 or indices.rank != 1 or encoded.shape[0] != indices.shape[0]:
        raise ShapeError(f"{step} of {indices!r} into {encoded!r}", "(n,) and (n, classes)")
    classes = graph.add_constant(indices.dtype, (encoded.shape[1],), np.arange(encoded.shape[1]), name=f"{step}/classes")
    map_tensor_linearly(graph, classes)
    tensors = [indices.expand([1]), classes.expand([0])]
    values: list[Expr] = []
    for value in (on, off):
        if isinstance(value, Tensor):
            tensors.append(value.reshape(()))
            values.append(PlaceHolder(len(tensors)))
        else:
            values.append(Parameter(value, encoded.dtype))
    map_with_output(graph, Select(values[0], values[1], Equal(PlaceHolder(1), PlaceHolder(2))), tensors, encoded, prog, step)
