"""histogram: how many elements lie between levels. After ``popops/GatherStatistics.hpp``."""

from __future__ import annotations

from typing import Any

import numpy as np

from popcore.codelets.statistics import Histogram
from popcore.errors import ElementTypeError, OptionError, ShapeError
from popcore.graph import Graph, Tensor
from popcore.ops.popops import common
from popcore.ops.popops.cast import cast
from popcore.ops.popops.operation import Operation, ReduceParams
from popcore.ops.popops.placing import mapped_runs, share_out
from popcore.ops.popops.reduce import reduce, reduce_with_output
from popcore.program import Sequence
from popcore.types import FLOAT, UNSIGNED_INT

OPTIONS = {"useFloatArithmetic": ("false", "true"), "useFloatArithmeticWithUnsignedIntOutput": ("false", "true")}
"""The first makes the result FLOAT; counts are whole numbers, of 32 bits, in either case."""


def histogram(
    graph: Graph, t: Tensor, levels: Tensor, absolute_of_input: bool, prog: Sequence, name: str = "", options: common.Options | None = None
) -> Tensor:  # fmt: skip
    """(levels + 1,) of UNSIGNED_INT: how many elements of ``t`` are below ``levels[0]``, from there and below ``levels[1]``, ..., from the last on.

    Args:
        t: FLOAT or HALF. NaN counts as below all levels.
        levels: (n,) of the same type, ascending.
        absolute_of_input: Whether absolute values are counted.
    """
    step = common.joined(name, "histogram")
    found = common.read_options(step, options, OPTIONS)
    if set(found.values()) == {"true"}:
        raise OptionError(f"{step} with useFloatArithmetic and useFloatArithmeticWithUnsignedIntOutput", "one of them")
    made = reduce(graph, _partial(graph, t, levels, absolute_of_input, prog, step), [0], Operation.ADD, prog, step)
    return cast(graph, made, FLOAT, prog, step) if found["useFloatArithmetic"] == "true" else made


def histogram_with_output(
    graph: Graph, t: Tensor, output: Tensor, update_output: bool, levels: Tensor, absolute_of_input: bool, prog: Sequence, name: str = "",
    options: common.Options | None = None,
) -> None:  # fmt: skip
    """The same written to ``output``, (levels + 1,) of UNSIGNED_INT, or added to it."""
    step = common.joined(name, "histogram")
    common.read_options(step, options, {k: v for k, v in OPTIONS.items() if k != "useFloatArithmetic"})
    common.require_tensors(step, output)
    common.require_writeable(step, output)
    if output.dtype is not UNSIGNED_INT or output.shape != (levels.num_elements + 1,):
        raise ShapeError(f"{step} of {t!r} by {levels!r} to {output!r}", "one more element than levels, UNSIGNED_INT")
    partial = _partial(graph, t, levels, absolute_of_input, prog, step)
    reduce_with_output(graph, partial, output, [0], ReduceParams(Operation.ADD, update_output), prog, step)


def _partial(graph: Graph, t: Tensor, levels: Tensor, absolute: bool, prog: Sequence, step: str) -> Tensor:
    """(workers, levels + 1): counts of each worker, where it is."""
    common.require_tensors(step, t, levels)
    if t.dtype.kind not in ("float", "half") or levels.dtype is not t.dtype:
        raise ElementTypeError(f"{step} of {t!r} by {levels!r}", "FLOAT or HALF, both the same")
    if levels.rank != 1:
        raise ShapeError(f"{step} by {levels!r}", "a vector of levels")
    flat, _ = graph.reorder_to_simplify(t)
    begin, size, tile = share_out(*mapped_runs(graph, flat), graph.target.num_worker_contexts, graph.target.get_vector_width(t.dtype))
    each = levels.num_elements + 1
    made = graph.add_variable(UNSIGNED_INT, (begin.size, each), name=f"{step}/partial")
    if begin.size:
        graph.map_intervals(made, np.arange(begin.size) * each, np.full(begin.size, each), tile)
        cls: Any = Histogram
        fields = {"data": (flat, begin, size), "levels": levels, "absolute": bool(absolute), "counts": made}
        graph.add_vertices(common.compute_set_of(graph, prog, step), cls[t.dtype], fields, tile)
    return made
