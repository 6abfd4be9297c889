"""Where elements are in the arena, once every slab has an address."""

from __future__ import annotations

import numpy as np

from popcore.compiler.ir import Layout, MemoryPlan
from popcore.graph.regions import SHIFT, Regions
from popcore.types import Array


def element_addresses(elements: Array, layout: Layout, memory: MemoryPlan) -> Array:
    """Arena bytes of single elements, given as (variable, element) rows."""
    ids = (elements[:, 0] << SHIFT) + elements[:, 1]
    _, places = layout.locate(Regions(ids, np.ones(len(ids), np.int64)))
    found: Array = memory.address[places.slab] + places.offset
    return found


def byte_runs(regions: Regions, layout: Layout, memory: MemoryPlan) -> Array:
    """The runs of bytes where ``regions`` are, in their order: int64[k, 2] of arena byte and bytes."""
    _, places = layout.locate(regions)
    start, nbytes = memory.address[places.slab] + places.offset, places.nbytes
    if not len(start):
        return np.zeros((0, 2), np.int64)
    first = np.flatnonzero(np.concatenate([[True], start[1:] != start[:-1] + nbytes[:-1]]))
    return np.stack([start[first], np.add.reduceat(nbytes, first)], 1).astype(np.int64)
