"""Where the peak of a field is expected to be. After ``popnn/SpatialSoftMax.hpp``."""

from __future__ import annotations

import numpy as np

from popcore.errors import ElementTypeError, ShapeError
from popcore.graph import Graph, Tensor
from popcore.ops import poplin, popops, poputil
from popcore.ops.popnn.softmax import softmax
from popcore.ops.popops import common
from popcore.ops.popops.widths import rounded, wide
from popcore.program import Sequence
from popcore.types import Array


def spatial_soft_max_2d(
    graph: Graph, prog: Sequence, fields: Tensor, temperature: float, disable_softmax: bool = False, name: str = ""
) -> tuple[Tensor, Tensor]:
    """The expected row and column, from -1 to 1, of each of ``fields`` (fields, rows, columns), with its softmax as the chances.

    Args:
        temperature: What the fields are divided by before the softmax, at first; see below.
        disable_softmax: The fields are chances already.

    Returns: (fields, 2); and the temperature, a scalar variable that may be trained.
    Raises: ShapeError, ElementTypeError: fields of another rank, or neither FLOAT nor HALF.
    """
    step = common.joined(name, "spatial_soft_max_2d")
    common.require_tensors(step, fields)
    if fields.rank != 3:
        raise ShapeError(f"{step} of {fields!r}", "(fields, rows, columns)")
    if fields.dtype.kind not in ("float", "half"):
        raise ElementTypeError(f"{step} of {fields!r}", "FLOAT or HALF")
    count, rows, columns = fields.shape
    heat = graph.add_variable(fields.dtype, (), name=f"{step}/temperature", tile=0)
    graph.set_initial_value(heat, temperature)
    chances = fields.reshape((count, rows * columns))
    if not disable_softmax:
        scaled = popops.map(graph, rounded(wide(1, fields.dtype) / wide(2, fields.dtype), fields.dtype), [chances, heat], prog, step)
        chances = softmax(graph, scaled, prog, step)
    grid = np.stack(np.meshgrid(_places(rows), _places(columns), indexing="ij"), -1).reshape(-1, 2)
    places = graph.add_constant(fields.dtype, grid.shape, grid, name=f"{step}/places")
    poputil.map_tensor_linearly(graph, places)
    return poplin.mat_mul(graph, chances, places, prog, name=step), heat


def _places(n: int) -> Array:
    """``n`` numbers from -1 to 1, exactly 0 in the middle."""
    return (2 * np.arange(n) - (n - 1)) / (n - 1) if n > 1 else np.full(n, -1.0)
