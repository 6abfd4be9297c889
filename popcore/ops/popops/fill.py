"""fill, zero, iota: values that do not depend on what a tensor holds."""

from __future__ import annotations

from typing import Any

from popcore.codelets.iota import Iota
from popcore.errors import ElementTypeError
from popcore.graph import ComputeSet, Graph, Tensor
from popcore.graph.regions import Regions, coalesce, sorted_union
from popcore.graph.tensor import from_regions
from popcore.graph.values import as_elements
from popcore.ops.popops import common
from popcore.ops.popops.expr import Parameter
from popcore.ops.popops.mapping import map_with_output
from popcore.ops.popops.placing import mapped_runs, share_out
from popcore.program import Sequence


def fill(graph: Graph, t: Tensor, prog: Sequence | ComputeSet, value: Any, name: str = "") -> None:
    """Write ``value`` to all of ``t``; an element that ``t`` shows twice is written once.

    Raises:
        GraphError: ``t`` is constant.
        ValueRangeError: a value that its type cannot hold.
        TileMappingError: ``t`` is not wholly mapped.
    """
    step = common.joined(name, "fill")
    common.require_tensors(step, t)
    once = t if not t.contains_aliases else _each_once(t)
    map_with_output(graph, Parameter(as_elements(value, t.dtype, f"the value of {step}")[()], t.dtype), [], once, prog, step)


def zero(graph: Graph, t: Tensor, prog: Sequence | ComputeSet, name: str = "") -> None:
    """Write 0 to all of ``t``. See ``fill``."""
    fill(graph, t, prog, 0, common.joined(name, "zero"))


def iota(graph: Graph, t: Tensor, start: int, prog: Sequence | ComputeSet, name: str = "") -> None:
    """Write ``start``, ``start + 1``, ... to the elements of ``t``, an INT or UNSIGNED_INT tensor, in row-major order; it wraps at the type's limit."""
    step = common.joined(name, "iota")
    common.require_tensors(step, t)
    common.require_writeable(step, t)
    if not t.dtype.is_integral or t.dtype.nbytes != 4:
        raise ElementTypeError(f"{step} of {t!r}", "INT or UNSIGNED_INT")
    first = as_elements(start, t.dtype, f"the start of {step}")
    if not t.num_elements:
        return
    flat = t.flatten()
    begin, size, tile = share_out(*mapped_runs(graph, flat), graph.target.num_worker_contexts, graph.target.get_vector_width(t.dtype))
    graph.add_vertices(
        common.compute_set_of(graph, prog, step),
        Iota[t.dtype],  # type: ignore[name-defined]  # an element type stands for a class
        {"start": t.dtype.numpy.type(first) + begin.astype(t.dtype.numpy), "out": (flat, begin, size)},
        tile,
    )


def _each_once(t: Tensor) -> Tensor:
    regions: Regions = coalesce(*sorted_union(t.regions().ids, t.regions().length))
    return from_regions(t._variables(), t.dtype, (regions.numel,), regions, t)
