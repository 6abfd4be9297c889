"""A convolution as planned: operands as blocks, what each vertex reads of the input, its work, vertices for each serial step."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise, product
from typing import Any

import numpy as np

from popcore.codelets.convolution import ConvAddBlock, ConvAddHalfBlock, ConvAddRoundedBlock, ConvBlock, ConvChannelwiseBlock, ConvHalfBlock, ConvRoundedBlock
from popcore.codelets.operations import FLOAT_TYPE
from popcore.graph import Graph, Tensor
from popcore.graph.regions import coalesce
from popcore.graph.tensor import from_regions
from popcore.ops.poplin.blocks import SHARE, Blocks, single, whole
from popcore.ops.poplin.conv_params import ConvParams
from popcore.ops.poplin.conv_work import LONG, Axis, axis, work_list
from popcore.ops.poplin.cost import work_cycles
from popcore.ops.poplin.params import Settings
from popcore.ops.poplin.plan import SHARED, PlanningCache
from popcore.ops.poplin.planned import Planned, typed
from popcore.ops.poplin.problem import Problem, Window
from popcore.program import Copy, Execute, Sequence
from popcore.types import INT, Array, ElementType

_CODELETS: dict[tuple[str, str], Any] = {
    ("float", "float"): (ConvBlock, ConvAddBlock),
    ("half", "float"): (ConvHalfBlock, ConvAddHalfBlock),
    ("half", "half"): (ConvRoundedBlock, ConvAddRoundedBlock),
}
"""By element types of operands and sums: of the first serial step, and of those that follow."""


@dataclass(frozen=True)
class Vertices:
    """int64[vertices] each: of the vertices of a compute set, which part of the problem is theirs."""

    g: Array
    i: Array  # row part
    j: Array  # n part
    kernel: Array  # kernel part
    part: Array  # k part
    tiles: Array
    rows: Array  # of their block of the result,
    columns: Array
    start: Array  # and where it begins
    met: Array  # rows that meet a kernel element on average,
    width: Array  # and how many of those follow each other: of the result's field, in the last dimension of more than one
    elements: tuple[Array, ...]  # kernel elements, dimension by dimension


class Convolution(Planned):
    """Tensors: the input ``[groups, batch, *field, channels]``, weights ``[groups, *kernel, k, n]``, the result ``[groups, batch, *field, n]``.

    Where every group has one channel in and one out they are channels of one group instead, each by itself (depthwise, pooling).
    """

    def __init__(
        self, graph: Graph, params: ConvParams, output: ElementType | None, settings: Settings, cache: PlanningCache | None = None, whole_kernel: bool = False
    ) -> None:
        """``output``: the type of the result; None where it is added to something."""
        self.graph = graph
        self.params = p = params if params.rank else replace(params, input_field_shape=(1,), kernel_shape=(1,))
        self.tables = [p.input_indices(d) for d in range(p.rank)]
        problem = problem_of(p, settings, whole_kernel)
        groups, self.channelwise = problem.groups, problem.channelwise
        self.plan = (SHARED if cache is None else cache).plan(graph.target, problem, output is not problem.partials, settings.proportion)
        cuts = self.plan
        channels = cuts.n_cuts if self.channelwise else cuts.k_cuts
        self.data = Blocks((single(groups), whole(p.batch_size), *(whole(x) for x in p.input_field_shape), channels))
        self.weights = Blocks((single(groups), *cuts.kernel_cuts, cuts.k_cuts, cuts.n_cuts))
        self.out = Blocks((single(groups), cuts.batch_cuts, *cuts.field_cuts, cuts.n_cuts))
        gaps = problem.single or int(self.data.widths[-1].max(initial=0)) >= LONG
        self.axes = [
            [[axis(p, d, self.tables[d], slice(*o), slice(*e), gaps) for e in pairwise(kernel)] for o in pairwise(field)]
            for d, (field, kernel) in enumerate(zip(cuts.field_cuts, cuts.kernel_cuts, strict=True))
        ]

    @property
    def nothing(self) -> bool:
        return self.plan.problem.empty or not all((t >= 0).any() for t in self.tables)

    def data_view(self, t: Tensor) -> Tensor:
        """Activations ``[batch, channels, *field]`` with the dimensions of ``data``."""
        return self._channels_last(t, tuple(self.params.input_field_shape))

    def out_view(self, t: Tensor) -> Tensor:
        """A result ``[batch, channels, *field]`` with the dimensions of ``out``."""
        return self._channels_last(t, self.params.output_field_shape)

    def weights_view(self, t: Tensor) -> Tensor:
        """Weights ``[groups, n, k, *kernel]`` with the dimensions of ``weights``."""
        kernel = tuple(self.params.kernel_shape)
        if self.channelwise:
            return t.reshape((t.shape[0], *kernel)).dim_roll(0, len(kernel)).reshape(self.weights.shape)
        rank = len(kernel)
        return t.reshape((*t.shape[:3], *kernel)).dim_shuffle([0, *range(3, 3 + rank), 2, 1])

    def as_result(self, out: Tensor) -> Tensor:
        """The opposite of ``out_view``; of the parameters' own rank."""
        rank = out.rank - 3
        shuffled = out.dim_shuffle([1, 0, out.rank - 1, *range(2, 2 + rank)])
        return shuffled.reshape((self.params.batch_size, self.params.num_output_chans, *self.params.output_field_shape))

    def as_input(self, data: Tensor) -> Tensor:
        """The opposite of ``data_view``."""
        rank = data.rank - 3
        shuffled = data.dim_shuffle([1, 0, data.rank - 1, *range(2, 2 + rank)])
        return shuffled.reshape((self.params.batch_size, self.params.num_input_chans, *self.params.input_field_shape))

    def as_weights(self, weights: Tensor) -> Tensor:
        """The opposite of ``weights_view``."""
        rank = self.params.rank
        if self.channelwise:
            return weights.reshape((*self.params.kernel_shape, weights.shape[-1])).dim_roll(rank, 0).reshape(self.params.weights_shape)
        return weights.dim_shuffle([0, rank + 2, rank + 1, *range(1, 1 + rank)])

    @property
    def weight_tiles(self) -> Array:
        """int64[groups, kernel parts, k blocks, n parts, row parts]: the tiles that use each block of the weights."""
        p = self.plan
        blocks = self.weights.size.shape
        g, part, q, j, i = np.ogrid[: blocks[0], : math.prod(p.kernel_parts), : blocks[-2], : blocks[-1], : p.row_parts]
        return p.tile(g, i, j, part * p.k_parts + q // p.serial).reshape(*blocks, p.row_parts)

    def new_data(self, dtype: ElementType, name: str) -> tuple[Tensor, Tensor]:
        """A new input, each element on a tile that uses it: as a vector, and as a tensor."""
        flat = self.graph.add_variable(dtype, (self.data.numel,), name=name)
        if self.data.numel:
            tile = self._data_tiles()
            length = np.broadcast_to(self.data.widths[-1][:, None], (tile.shape[0], *tile.shape[1:])).reshape(-1)
            tile = tile.reshape(-1)
            head = np.flatnonzero(np.diff(tile, prepend=-1))
            begin = (np.cumsum(length) - length)[head]
            self.graph.map_intervals(flat, begin, np.diff(np.append(begin, self.data.numel)), tile[head])
        return flat, self.data.tensor(flat)

    def _data_tiles(self) -> Array:
        """int64[groups, channel blocks, places]: a tile that uses the channels of a block at a place, of batch and field."""
        p, params = self.plan, self.params
        owners = [_owners(p.batch_cuts)]
        owners += [_first_users(axes, n) for axes, n in zip(self.axes, params.input_field_shape, strict=True)]
        part = rank = np.zeros((), np.int64)
        size = np.ones((), np.int64)
        for owner, parts in zip(owners, (p.batch_parts, *p.field_parts), strict=True):
            held = np.bincount(owner, minlength=parts)
            place = np.empty(owner.size, np.int64)
            order = np.argsort(owner, kind="stable")
            place[order] = np.arange(owner.size) - np.repeat(np.cumsum(held) - held, held)
            part, rank, size = part[..., None] * parts + owner, rank[..., None] * held[owner] + place, size[..., None] * held[owner]
        kernels = math.prod(p.kernel_parts)
        users = kernels if self.channelwise else kernels * p.n_parts
        width = int(self.data.widths[-1].max())
        shares = np.clip(size * width // SHARE, 1, users)
        share = (rank * shares // size).reshape(-1)
        g, q = np.ogrid[: self.data.shape[0], : self.data.widths[-1].size]
        g, q = g[..., None], q[..., None]
        i = part.reshape(-1)
        if self.channelwise:
            return p.tile(g, i, q, share)
        return p.tile(g, i, share % p.n_parts, share // p.n_parts * p.k_parts + q // p.serial)

    def arranged(self, data: Tensor, prog: Sequence, name: str) -> Tensor:
        """A vector of the input in order of its blocks: a view if that will do, else a copy."""
        view = self.data.view(data)
        if self.data.is_direct(view):
            return view
        flat, shaped = self.new_data(data.dtype, name)
        prog.add(Copy(data, shaped, name=name))
        return flat

    @cached_property
    def vertices(self) -> Vertices:
        """Of a compute set."""
        p = self.plan
        kernels, groups = math.prod(p.kernel_parts), p.problem.groups
        kernel, part, g, i, j = (x.reshape(-1) for x in np.indices((kernels, p.k_parts, groups, p.row_parts, p.n_parts)))
        sum_part = kernel * p.k_parts + part
        blocks = (groups, math.prod(self.out.size.shape[1:-1]), p.n_parts)
        columns = self.out.widths[-1][j]
        rows = self.out.size.reshape(blocks)[g, i, j] // np.maximum(columns, 1)
        start = self.out.start.reshape(blocks)[g, i, j] + sum_part * self.out.numel
        elements = [w[x] for w, x in zip(self.weights.widths[1:-2], np.unravel_index(kernel, p.kernel_parts), strict=True)]
        batch, *fields = np.unravel_index(i, (p.batch_parts, *p.field_parts))
        met, width = self.out.widths[1][batch], np.ones_like(rows)
        for axes, window, out, at, e in zip(self.axes, p.problem.windows, self.out.widths[2:-1], fields, np.unravel_index(kernel, p.kernel_parts), strict=True):
            met = met * np.array([[int((a.table >= 0).sum()) for a in row] for row in axes])[at, e]
            width = np.where(out[at] > 1, -(-out[at] // window.apart), width)
        met = -(-met // np.maximum(np.prod(elements, axis=0), 1))
        return Vertices(g, i, j, kernel, part, p.tile(g, i, j, sum_part), rows, columns, start, met, width, tuple(elements))

    def multiply(self, a: Tensor, b: Tensor, out: Tensor, prog: Sequence, name: str) -> None:
        p, v, target = self.plan, self.vertices, self.graph.target
        slabs, begin = self.slabs(self.arranged(a, prog, f"{name}/input"))
        weights = self.weights.arranged(self.graph, b, self.weight_tiles, prog, f"{name}/weights")
        kernels = math.prod(p.kernel_parts)
        first = self.weights.start.reshape(p.problem.groups, kernels, -1, p.n_parts)
        for s in range(p.serial):
            block = v.part * p.serial + s
            depth = self.weights.widths[-2][block]
            step = self.graph.add_compute_set(f"{name}/multiply" + (f" {s}" if p.serial > 1 else ""))
            codelet = typed(ConvChannelwiseBlock, p.problem.dtype) if self.channelwise else _CODELETS[p.problem.dtype.kind, p.problem.partials.kind][min(s, 1)]
            q = v.j if self.channelwise else block
            at = begin[v.g, q, v.i * kernels + v.kernel]
            connections = {
                "data": (slabs, at[..., 0], at[..., 1]),
                "weights": (weights, first[v.g, v.kernel, block, v.j], np.prod(v.elements, axis=0) * depth, v.columns),
                "work": self.work(self.data.widths[-1][q]),
                "out": (out, v.start, v.rows, v.columns),
            }
            each = work_cycles(target, p.problem, v.rows, v.elements, depth, v.columns, v.met, v.width)
            self.graph.add_vertices(step, codelet, connections, v.tiles, -(-each // target.num_worker_contexts))
            prog.add(Execute(step))

    def _part_axes(self, i: int, kernel: int) -> tuple[int, int, list[Axis]]:
        """Of row part ``i`` and kernel part ``kernel``: first batch element, their number, the axes."""
        p = self.plan
        batch, *field = np.unravel_index(i, (p.batch_parts, *p.field_parts))
        parts = np.unravel_index(kernel, p.kernel_parts)
        first, end = p.batch_cuts[batch : batch + 2].tolist()
        return first, end - first, [axes[f][e] for axes, f, e in zip(self.axes, field, parts, strict=True)]

    def slabs(self, flat: Tensor) -> tuple[Tensor, Array]:
        """What the vertices read of the input, one after the other.

        Returns: a vector; int64[groups, channel blocks, row parts * kernel parts, 2]: where in it each part of each block begins, and its length.
        """
        begins, lengths, totals = [], [], []
        for i, kernel in product(range(self.plan.row_parts), range(math.prod(self.plan.kernel_parts))):
            first, batch, axes = self._part_axes(i, kernel)
            place = np.arange(first, first + batch)
            for a, n in zip(axes, self.params.input_field_shape, strict=True):
                place = place[..., None] * n + a.first + a.step * np.arange(a.count)
            if axes[-1].step == 1 and axes[-1].count:
                begins.append(place[..., 0].reshape(-1))
                lengths.append(np.full(begins[-1].size, axes[-1].count))
            else:
                begins.append(place.reshape(-1))
                lengths.append(np.ones(place.size, np.int64))
            totals.append(place.size)
        width = self.data.widths[-1]
        start = self.data.start.reshape(-1, width.size)
        begin = start[..., None] + np.concatenate(begins) * width[:, None]
        length = np.broadcast_to(np.concatenate(lengths) * width[:, None], begin.shape)
        regions = flat.regions().select(begin.reshape(-1), length.reshape(-1))
        sizes = np.broadcast_to(np.array(totals) * width[:, None], (start.shape[0], width.size, len(totals)))
        ends = np.cumsum(sizes.reshape(-1)).reshape(sizes.shape)
        made = from_regions(flat._variables(), flat.dtype, (int(ends.max(initial=0)),), coalesce(regions.ids, regions.length), flat)
        return made, np.stack([ends - sizes, sizes], axis=-1)

    def work(self, channels: Array) -> tuple[Tensor, Array, Array]:
        """A constant of the work lists that each tile needs, on that tile; and where in it that of each vertex begins, and its length."""
        parts = np.stack([self.vertices.i, self.vertices.kernel, channels], axis=1)
        distinct, of = np.unique(parts, axis=0, return_inverse=True)
        lists: dict[tuple[object, ...], int] = {}
        kept: list[Array] = []
        kind = np.empty(len(distinct), np.int64)
        for number, (row, e, width) in enumerate(distinct.tolist()):
            _, batch, axes = self._part_axes(row, e)
            key = (batch, width, *(a.key for a in axes))
            if key not in lists:
                lists[key] = len(kept)
                kept.append(work_list(batch, axes, width, self.channelwise).reshape(-1))
            kind[number] = lists[key]
        kinds = kind[of.reshape(-1)]
        needed, of_vertex = np.unique(self.vertices.tiles.astype(np.int64) * len(kept) + kinds, return_inverse=True)
        sizes = np.array([x.size for x in kept])[needed % len(kept)]
        begins = np.cumsum(sizes) - sizes
        constant = self.graph.add_constant(INT, (int(sizes.sum()),), np.concatenate([kept[k] for k in (needed % len(kept)).tolist()]), name="work")
        some = sizes > 0
        self.graph.map_intervals(constant, begins[some], sizes[some], (needed // len(kept))[some])
        return constant, begins[of_vertex], sizes[of_vertex]

    def _channels_last(self, t: Tensor, field: tuple[int, ...]) -> Tensor:
        groups = self.plan.problem.groups
        apart = t.reshape((t.shape[0], groups, t.shape[1] // max(groups, 1), *field))
        return apart.dim_shuffle([1, 0, *range(3, apart.rank), 2])


def problem_of(params: ConvParams, settings: Settings, whole_kernel: bool = False) -> Problem:
    """What the planner is asked for a convolution. Sums of channels that are each by themselves are always FLOAT."""
    groups, k, n = params.num_conv_groups, params.input_channels_per_conv_group, params.output_channels_per_conv_group
    channelwise = k == n == 1
    if channelwise:
        groups, n = 1, groups
    step, move, spread = params.output_transform.stride, params.kernel_transform.dilation, params.input_transform.dilation
    windows = tuple(
        Window(
            params.output_size(d), params.kernel_shape[d], params.input_field_shape[d], int((params.input_indices(d) >= 0).sum()), step[d], move[d], spread[d]
        )
        for d in range(params.rank)
    )
    partials = FLOAT_TYPE if channelwise else settings.partials_of(params.types[0])
    return Problem(groups, params.batch_size, k, n, params.types[0], windows, channelwise, whole_kernel, partials)


def _owners(cuts: Array) -> Array:
    """int64[length]: the part that each index is in."""
    return np.repeat(np.arange(cuts.size - 1), np.diff(cuts))


def _first_users(axes: list[list[Axis]], length: int) -> Array:
    """int64[length]: the first part of the outputs that takes each input element; of those that none takes, the part of a neighbour."""
    owner = np.full(length, -1, np.int64)
    for part in range(len(axes) - 1, -1, -1):
        for a in axes[part]:
            if a.count:
                owner[a.first : a.first + a.step * a.count : a.step] = part
    known = np.flatnonzero(owner >= 0)
    if not known.size:
        return np.zeros(length, np.int64)
    nearest = np.searchsorted(known, np.arange(length))
    made: Array = owner[known[np.minimum(nearest, known.size - 1)]]
    return made
