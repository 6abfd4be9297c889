"""Work lists: which rows of its input a vertex of a convolution multiplies with which rows of its weights, and where it adds the products.

A piece of work is eight numbers: rows ``out``, ``out + out_step``, ... of the result get the products of ``depth`` elements of the
input, from ``data``, ``data + data_step``, ... on and ``hop`` apart, with ``depth`` rows of the weights from ``weight`` on. The pieces
leave out what would be multiplied with padding. Input and weights have channels innermost, so that a run of kernel elements whose
inputs are neighbours is one sum of ``depth`` elements.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from popcore.ops.poplin.conv_params import ConvParams
from popcore.types import Array

FIELDS = ("out", "data", "weight", "rows", "depth", "out_step", "data_step", "hop")
LONG = 16  # elements: input elements that no output takes are left out where channels are runs of at least that many


@dataclass(frozen=True, eq=False)
class Axis:
    """One dimension of a vertex's part.

    table           int64[outputs, kernel elements]: the input element that meets each kernel element, -1: none; counted in ``inputs``
    first, step, count  The input elements: of the whole dimension, first + step * arange(count)
    out_step        Outputs that meet one kernel element are so far apart,
    in_step         and their inputs so far
    kernel_step     How far apart the inputs of neighbouring kernel elements are; 0: neighbours never meet one output
    """

    table: Array
    first: int
    step: int
    count: int
    out_step: int
    in_step: int
    kernel_step: int

    @cached_property
    def key(self) -> bytes:
        """Equal for parts that do the same work."""
        return repr((self.table.shape, self.count)).encode() + self.table.tobytes()

    @cached_property
    def pairs(self) -> tuple[Array, Array, Array]:
        """(output, input, kernel element) of all that meet."""
        out, kernel = np.nonzero(self.table >= 0)
        return out, self.table[out, kernel], kernel

    def runs(self, any_distance: bool) -> tuple[Array, Array, Array, Array]:
        """(output, input, kernel element, length): ``pairs``, those of one output and neighbouring kernel elements joined where inputs are neighbours too.

        Args:
            any_distance: Whether inputs that are further apart, all equally, are joined as well.
        """
        out, data, kernel = self.pairs
        if not out.size or self.kernel_step < 1 or (self.kernel_step > 1 and not any_distance):
            return out, data, kernel, np.ones_like(out)
        joined = (np.diff(out) == 0) & (np.diff(kernel) == 1) & (np.diff(data) == self.kernel_step)
        head = np.flatnonzero(np.concatenate(([True], ~joined)))
        return out[head], data[head], kernel[head], np.diff(np.append(head, out.size))


def axis(params: ConvParams, d: int, whole: Array, outputs: slice, kernel: slice, gaps: bool) -> Axis:
    """The part of dimension ``d`` that makes ``outputs`` from ``kernel``.

    Args:
        whole: ``params.input_indices(d)``
        gaps: Whether to leave out input elements that lie between those taken.
    """
    table = whole[outputs, kernel]
    used = np.unique(table[table >= 0])
    first = int(used[0]) if used.size else 0
    step = int(np.gcd.reduce(used - first)) if gaps and used.size > 1 else 1
    step = max(step, 1)
    count = (int(used[-1]) - first) // step + 1 if used.size else 0
    dilation, stride = params.input_transform.dilation[d], params.output_transform.stride[d]
    common = math.gcd(dilation, stride)
    backward = params.input_transform.flip[d]
    in_step = stride // common * (-1 if backward else 1)
    kernel_step = 0
    if params.kernel_transform.dilation[d] % dilation == 0:
        kernel_step = params.kernel_transform.dilation[d] // dilation * (-1 if backward != params.kernel_transform.flip[d] else 1)
    local = np.where(table >= 0, (table - first) // step, -1)
    return Axis(local, first, step, count, dilation // common, _scaled(in_step, step), _scaled(kernel_step, step))


def _scaled(distance: int, step: int) -> int:
    """In units of ``step``; what is no multiple of it joins nothing, and any value will do."""
    return distance // step if distance % step == 0 else 0


def work_list(batch: int, axes: Sequence[Axis], channels: int, channelwise: bool) -> Array:
    """int32[pieces, 8]: the work of a vertex, in the order in which it is done.

    Needs: the input of ``batch`` x the axes' inputs x ``channels``, the weights of the axes' kernel elements x ``channels`` rows, the result
    of ``batch`` x the axes' outputs rows. With ``channelwise`` each channel is by itself, and weights have no rows for channels.
    """
    last = axes[-1]
    single = channelwise or channels == 1  # the elements of a sum are those of the kernel alone
    unit = 1 if channelwise else channels
    out, data, kernel, length = last.runs(single)
    outs, datas, kernels = _all_pairs(axes[:-1], last)
    made: Array = np.zeros((outs.size, out.size, len(FIELDS)), np.int64)
    made[..., 0] = outs[:, None] + out
    made[..., 1] = (datas[:, None] + data) * channels
    made[..., 2] = (kernels[:, None] + kernel) * unit
    made[..., 3] = 1
    made[..., 4] = length * unit
    made[..., 7] = max(last.kernel_step, 1) * channels if single else 1
    made = made.reshape(-1, len(FIELDS))
    out_size, data_size = math.prod(a.table.shape[0] for a in axes), math.prod(a.count for a in axes) * channels
    steps = [(last.out_step, last.in_step * channels)]
    if len(axes) > 1:  # single rows, at the edges of the field, may follow each other in the dimension before
        steps.append((axes[-2].out_step * last.table.shape[0], axes[-2].in_step * last.count * channels))
    along = _joined(made, steps)
    if len(made) < batch * len(along):
        made[:, 3], made[:, 5], made[:, 6] = batch, out_size, data_size
        return made[np.lexsort((made[:, 0], made[:, 2]))].astype(np.int32)
    made = np.repeat(made[None], batch, axis=0)
    made[..., 0] += np.arange(batch)[:, None] * out_size
    made[..., 1] += np.arange(batch)[:, None] * data_size
    return _joined(made.reshape(-1, len(FIELDS)), steps).astype(np.int32)


def _all_pairs(axes: Sequence[Axis], last: Axis) -> tuple[Array, Array, Array]:
    """(row of the result, input element, kernel element) at which the last dimension begins, of all pairs of the others."""
    outs = datas = kernels = np.zeros(1, np.int64)
    for a in axes:
        out, data, kernel = a.pairs
        outs = (outs[:, None] * a.table.shape[0] + out).reshape(-1)
        datas = (datas[:, None] * a.count + data).reshape(-1)
        kernels = (kernels[:, None] * a.table.shape[1] + kernel).reshape(-1)
    return outs * last.table.shape[0], datas * last.count, kernels * last.table.shape[1]


def _joined(work: Array, steps: Sequence[tuple[int, int]]) -> Array:
    """Pieces of one row, joined where rows of result and input follow each other at one of these distances; in order of weights and then rows."""
    for out_step, data_step in steps:
        one = work[:, 3] == 1
        if not one.any():
            break
        rows = work[one]
        rows = rows[np.lexsort((rows[:, 0], rows[:, 4], rows[:, 2]))]
        move = np.diff(rows, axis=0)
        follows = (move[:, 0] == out_step) & (move[:, 1] == data_step) & (move[:, 2] == 0) & (move[:, 4] == 0)
        head = np.flatnonzero(np.concatenate(([True], ~follows)))
        made = rows[head]
        made[:, 3] = np.diff(np.append(head, len(rows)))
        made[:, 5], made[:, 6] = out_step, data_step
        work = np.concatenate((work[~one], made))
    return work[np.lexsort((work[:, 0], work[:, 2]))]
