"""One vertex on each tile draws what the tile holds of a tensor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from popcore.codelets.random import share
from popcore.graph import Graph, Tensor
from popcore.graph.regions import Regions
from popcore.graph.tensor import from_regions
from popcore.ops.popops import common
from popcore.ops.popops.placing import by_tile, mapped_runs
from popcore.ops.poprand.seeds import states_for
from popcore.program import Sequence
from popcore.types import Array

_VECTOR_BYTES = 8


def draw(
    graph: Graph, codelet: Any, seed: Tensor | None, seed_modifier: int, out: Tensor, fields: Mapping[str, Any], cost: tuple[int, int], prog: Sequence, step: str,
    x: Tensor | None = None,
) -> None:  # fmt: skip
    """Add a step in which ``codelet`` writes all of ``out``.

    Args:
        fields: Numbers that all vertices are connected to.
        cost: Cycles of a worker: once, and for each vector of 8 bytes.
        x: A tensor of the shape of ``out``; the codelet reads it as ``x``.

    Raises: TileMappingError: ``out`` is not wholly mapped.
    """
    if not out.num_elements:
        return
    flat = out.flatten()
    begin, length, tile = mapped_runs(graph, flat)
    order = np.argsort(tile, kind="stable")
    runs = Regions(begin[order], length[order])
    start, size, tiles = by_tile(length[order], tile[order])
    states = states_for(graph, seed, seed_modifier, tiles.astype(np.int64), prog, step)
    vectors = {"out": (_arranged(flat, runs), start, size)}
    if x is not None:
        vectors["x"] = (_arranged(x.flatten(), runs), start, size)
    compute_set = common.compute_set_of(graph, prog, step)
    graph.add_vertices(compute_set, codelet, {"state": states, **vectors, **fields}, tiles, _cycles(size, out.dtype.nbytes, cost))


def _arranged(flat: Tensor, runs: Regions) -> Tensor:
    """The elements of a vector in the order of ``runs``."""
    return from_regions(flat._variables(), flat.dtype, flat.shape, flat.regions().select(runs.ids, runs.length), flat)


def _cycles(size: Array, nbytes: int, cost: tuple[int, int]) -> Array:
    once, each = cost
    shares = np.minimum(size, [share(int(n)) for n in size])
    made: Array = once + each * -(-shares * nbytes // _VECTOR_BYTES)
    return made
