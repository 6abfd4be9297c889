"""What has to lie in the interleaved part of a tile's memory, since a field of a codelet in C++ loads 16 bytes of it at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from popcore.codelet import Field
from popcore.compiler.ir import Code, ComputeStep, GroupPlan, Layout, StepPlan
from popcore.errors import OutOfTileMemoryError
from popcore.graph import Graph
from popcore.types import Array


@dataclass(frozen=True)
class Interleaved:
    """Needs of all steps together."""

    slabs: Array  # bool[slabs]: fields lie in it directly
    buffer_bytes: Array  # int64[num_tiles]: of what is gathered for fields, the most that a step has at once


def find_interleaved(code: Code, layout: Layout, plans: Sequence[StepPlan]) -> Interleaved:
    """What the fields of all compute sets ask for."""
    slabs, buffers = np.zeros(layout.num_slabs, bool), np.zeros(layout.num_tiles, np.int64)
    for step, plan in zip(code.steps, plans, strict=True):
        if not isinstance(step, ComputeStep):
            continue
        gathered: list[Array] = []
        for group, placed in zip(step.compute_set.groups.values(), plan.groups, strict=True):
            for f in group.codelet.fields:
                if not f.interleaved:
                    continue
                slab, offset, elements = _edges(f, placed)
                own = slab < layout.num_slabs
                slabs[slab[own & (slab >= 0)]] = True
                gathered.append(np.stack([slab, offset, elements * f.dtype.nbytes], 1)[~own])
        if gathered:
            once = np.unique(np.concatenate(gathered), axis=0)  # vertices may share a buffer
            here = np.bincount(once[:, 0] - layout.num_slabs, weights=once[:, 2], minlength=layout.num_tiles)
            np.maximum(buffers, here.astype(np.int64), out=buffers)
    return Interleaved(slabs, buffers)


def _edges(f: Field, placed: GroupPlan) -> tuple[Array, Array, Array]:
    """Slab, offset and elements of the edges of a field; slab -1 for one without elements."""
    if f.shape == "list":
        _, slab, offset, elements = placed.pieces[f.name]
        return slab, offset, elements
    return placed.slab[f.name], placed.offset[f.name], placed.sizes[f.name]


def check_interleaved(graph: Graph, layout: Layout, slot: Array, needs: Interleaved) -> None:
    """Whether the interleaved region of each tile has room; variables that share a slot share their bytes.

    Raises: OutOfTileMemoryError, naming the tile and the variables that have to lie there.
    """
    slabs = np.flatnonzero(needs.slabs)
    places, inverse = np.unique(np.stack([layout.slab_tile[slabs], slot[layout.slab_variable[slabs]]], 1), axis=0, return_inverse=True)
    largest = np.zeros(len(places), np.int64)
    np.maximum.at(largest, inverse.reshape(-1), layout.slab_bytes[slabs])
    total = needs.buffer_bytes + np.bincount(places[:, 0], weights=largest, minlength=layout.num_tiles).astype(np.int64)
    tile, available = int(np.argmax(total)), sum(region.nbytes for region in graph.target.memory_regions if region.interleaved)
    if total[tile] <= available:
        return
    rows = [("(exchange buffers)", int(needs.buffer_bytes[tile]))] if needs.buffer_bytes[tile] else []
    for slab in slabs[layout.slab_tile[slabs] == tile].tolist():
        variable = graph.variables[layout.slab_variable[slab]]
        rows.append((f"{variable.name} ({variable.site})", int(layout.slab_bytes[slab])))
    rows.sort(key=lambda row: (-row[1], row[0]))
    raise OutOfTileMemoryError(tile=tile, needed=int(total[tile]), available=available, largest=rows, region="interleaved memory")
