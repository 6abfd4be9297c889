"""Cut every variable in use into the slabs its tiles hold."""

from __future__ import annotations

import numpy as np

from popcore.compiler.ir import Layout
from popcore.graph import Graph
from popcore.graph.regions import SHIFT
from popcore.types import Array


def lay_out(graph: Graph, used: Array) -> Layout:
    """Where every element of every variable in use lives, up to the addresses of slabs.

    Needs:  ``used``, bool[variables]; those variables are mapped completely (``verify``).
    Gives:  slabs ordered by variable, then tile; within a slab the variable's elements in their order, packed.
    """
    variables = graph.variables
    width = np.array([v.dtype.nbytes for v in variables], np.int64)
    runs = [(v.id, *v.mapping.intervals()) for v, wanted in zip(variables, used, strict=True) if wanted]
    owner = _concatenate([np.full(len(tiles), number, np.int64) for number, _, _, tiles in runs])
    start = _concatenate([starts for _, starts, _, _ in runs]) + (owner << SHIFT)
    end = _concatenate([ends for _, _, ends, _ in runs]) + (owner << SHIFT)
    tile = _concatenate([tiles for _, _, _, tiles in runs])
    num_tiles = graph.target.num_tiles
    by_slab = np.lexsort((start, tile, owner))
    key = (owner * (num_tiles + 1) + tile)[by_slab]
    new = np.concatenate([[True], key[1:] != key[:-1]]) if len(key) else np.zeros(0, bool)
    slab = np.cumsum(new) - 1
    nbytes = ((end - start) * width[owner])[by_slab]
    total = np.cumsum(nbytes)
    first = np.flatnonzero(new)
    before = total - nbytes
    offset = before - before[first][slab] if len(key) else before
    run_slab, run_offset = np.empty_like(slab), np.empty_like(offset)
    run_slab[by_slab], run_offset[by_slab] = slab, offset
    slab_bytes = np.add.reduceat(nbytes, first) if len(first) else np.zeros(0, np.int64)
    return Layout(
        element_bytes=width,
        start=start,
        end=end,
        run_slab=run_slab,
        run_offset=run_offset,
        slab_variable=owner[by_slab][first].astype(np.int32),
        slab_tile=tile[by_slab][first].astype(np.int32),
        slab_bytes=slab_bytes,
        num_tiles=num_tiles,
    )


def _concatenate(parts: list[Array]) -> Array:
    return np.concatenate(parts).astype(np.int64) if parts else np.zeros(0, np.int64)
