"""normalise_image: images of three channels scaled, with a fourth channel of zeros. After ``popops/NormaliseImage.hpp``."""

from __future__ import annotations

from collections.abc import Sequence as Items

from popcore.errors import ElementTypeError, ShapeError
from popcore.graph import Graph, Tensor
from popcore.ops.popops import common
from popcore.ops.popops.expr import Cast, Const, PlaceHolder
from popcore.ops.popops.fill import zero
from popcore.ops.popops.mapping import map_with_output
from popcore.ops.poputil import map_tensor_linearly
from popcore.program import Sequence
from popcore.types import FLOAT, HALF, UNSIGNED_CHAR, DTypeLike, ElementType, as_element_type

CHANNELS = 3


def create_normalise_image_input(graph: Graph, dtype: DTypeLike, shape: Items[int], name: str = "") -> Tensor:
    """A tensor of UNSIGNED_CHAR, HALF or FLOAT whose last dimension is of 3 channels, whole pixels on each tile."""
    step = common.joined(name, "image")
    made = graph.add_variable(as_element_type(dtype), tuple(shape), name=step)
    _check(made, step)
    map_tensor_linearly(graph, made, 12, 12)
    return made


def normalise_image(graph: Graph, prog: Sequence, t: Tensor, in_scale: float, offsets: Tensor, scales: Tensor, name: str = "") -> Tensor:
    """(*t.shape[:-1], 4): ``(t * in_scale - offsets) * scales`` for each channel, computed in FLOAT and rounded once, and a channel of zeros.

    The result is of the type of ``t``, HALF for UNSIGNED_CHAR; ``offsets`` and ``scales``, (3,), are of that type too.
    """
    step = common.joined(name, "normalise_image")
    common.require_tensors(step, t, offsets, scales)
    dtype = _check(t, step)
    for each in (offsets, scales):
        if each.shape != (CHANNELS,) or each.dtype is not dtype:
            raise ShapeError(f"{step} of {t!r} with {each!r}", f"(3,) of {dtype!r}")
    made = graph.add_variable(dtype, (*t.shape[:-1], CHANNELS + 1), name=f"{step}/out")
    map_tensor_linearly(graph, made, 16, 16)
    x, offset, scale = (Cast(PlaceHolder(k), FLOAT) for k in (1, 2, 3))
    pixels = made.slice(0, CHANNELS, made.rank - 1)
    map_with_output(graph, Cast((x * Const(float(in_scale), FLOAT) - offset) * scale, dtype), [t, offsets, scales], pixels, prog, step)
    zero(graph, made.slice(CHANNELS, CHANNELS + 1, made.rank - 1), prog, step)
    return made


def _check(t: Tensor, step: str) -> ElementType:
    """The type of the result."""
    if not t.rank or t.shape[-1] != CHANNELS:
        raise ShapeError(f"{step} of {t!r}", "a last dimension of 3 channels")
    kinds: tuple[object, ...] = (UNSIGNED_CHAR, HALF, FLOAT)
    if t.dtype not in kinds:
        raise ElementTypeError(f"{step} of {t!r}", "UNSIGNED_CHAR, HALF or FLOAT")
    return as_element_type(HALF) if t.dtype is UNSIGNED_CHAR else t.dtype
