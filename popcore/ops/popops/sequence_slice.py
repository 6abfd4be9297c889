"""sequence_slice: runs of rows copied from one tensor to another. After ``popops/SequenceSlice.hpp``."""

from __future__ import annotations

import math
from typing import Any

from popcore.codelets.statistics import SequenceSlice
from popcore.errors import ElementTypeError, ShapeError
from popcore.graph import Graph, Tensor
from popcore.ops.popops import common
from popcore.ops.popops.slicing import add_rows
from popcore.program import Sequence
from popcore.types import UNSIGNED_INT


def sequence_slice(
    graph: Graph, source: Tensor, out: Tensor, count: Tensor, source_offset: Tensor, out_offset: Tensor, zero_unused: bool, prog: Sequence, name: str = ""
) -> None:
    """``out[out_offset[i] : out_offset[i] + count[i]] = source[source_offset[i] : source_offset[i] + count[i]]`` for each i; rows outside are skipped.

    Args:
        source, out: Two dimensions or more; those behind the first have as many elements in both.
        count, source_offset, out_offset: (n,) of UNSIGNED_INT.
        zero_unused: Whether rows of ``out`` that nothing is copied to become 0.
    """
    step = common.joined(name, "sequence_slice")
    common.require_tensors(step, source, out, count, source_offset, out_offset)
    common.require_writeable(step, out)
    if min(source.rank, out.rank) < 2 or math.prod(source.shape[1:]) != math.prod(out.shape[1:]) or source.dtype is not out.dtype:
        raise ShapeError(f"{step} of {source!r} to {out!r}", "two dimensions or more, rows of one size and type")
    for t in (count, source_offset, out_offset):
        if t.dtype is not UNSIGNED_INT:
            raise ElementTypeError(f"{step} by {t!r}", "UNSIGNED_INT")
        if t.rank != 1 or t.shape != count.shape:
            raise ShapeError(f"{step} by {count!r}, {source_offset!r} and {out_offset!r}", "three vectors of one size")
    cls: Any = SequenceSlice
    fields = {"count": count, "source_at": source_offset, "target_at": out_offset, "zero_unused": bool(zero_unused)}
    add_rows(graph, cls[out.dtype], out.flatten(1), 0, {"source": (source.flatten(1), 0)}, fields, prog, step)
