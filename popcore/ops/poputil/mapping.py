"""Where tensors go: linear mappings, imbalance, outputs of element-wise operations. After ``poputil/TileMapping.hpp``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from popcore.errors import TileMappingError, ValueRangeError
from popcore.graph import Graph, Tensor
from popcore.graph.order import reorder_to_simplify
from popcore.graph.tiles import as_lists, each_element, linear_intervals
from popcore.types import Array, DTypeLike, as_element_type

TileMap = list[list[tuple[int, int]]]
"""For each tile the (begin, end) of the flattened tensor that it holds."""


def map_tensor_linearly(graph: Graph, t: Tensor, min_elements_per_tile: int | None = None, grain_size: int | None = None) -> None:
    """Spread ``t`` over the graph's tiles, in order.

    Every tile but the last used gets whole grains. By default a grain is a vector of the type (2 FLOAT, 4 HALF) and no tile gets
    less than 128 bytes, so that small tensors do not use all tiles.
    """
    map_tensor_linearly_with_offset(graph, t, 0, True, min_elements_per_tile, grain_size)


def map_tensor_linearly_with_offset(
    graph: Graph, t: Tensor, offset: int = 0, ascending: bool = True, min_elements_per_tile: int | None = None, grain_size: int | None = None
) -> None:
    """The same from tile ``offset`` on upward, or from ``num_tiles - 1 - offset`` downward, around the end where need be."""
    _check(min_elements_per_tile, grain_size)
    begin, length, tile = graph.linear_mapping(t.dtype, t.num_elements, min_elements_per_tile, grain_size)
    graph.map_intervals(t, begin, length, _turned(tile, graph.target.num_tiles, offset, ascending))


def calc_linear_tile_mapping(
    graph: Graph | Any,
    shape: Tensor | Sequence[int],
    min_elements_per_tile: int | None = None,
    grain_size: int | None = None,
    offset: int = 0,
    ascending: bool = True,
    *,
    dtype: DTypeLike = "float",
) -> TileMap:
    """The mapping that ``map_tensor_linearly`` would set, for a graph or a target; ``shape`` may be a tensor, which then has its own ``dtype``."""
    _check(min_elements_per_tile, grain_size)
    target = graph.target if isinstance(graph, Graph) else graph
    element = shape.dtype if isinstance(shape, Tensor) else as_element_type(dtype)
    numel = shape.num_elements if isinstance(shape, Tensor) else math.prod(shape)
    least = -(-128 // element.nbytes) if min_elements_per_tile is None else min_elements_per_tile
    grain = target.get_vector_width(element) if grain_size is None else grain_size
    begin, length, tile = linear_intervals(numel, target.num_tiles, least, grain)
    return as_lists(begin, begin + length, _turned(tile, target.num_tiles, offset, ascending), target.num_tiles)


def calc_linear_tile_mapping_and_new_offset(graph: Graph, t: Tensor, offset: int = 0) -> tuple[TileMap, int]:
    """A linear mapping from tile ``offset`` on, and the tile after the last one it uses, for the next tensor."""
    made = calc_linear_tile_mapping(graph, t, offset=offset)
    return made, (offset + sum(1 for m in made if m)) % graph.target.num_tiles


def choose_mapping_offset(num_tiles: int, shape: Sequence[int], seed: int = 0) -> int:
    """A tile that depends on a shape only, so that small tensors of different shapes do not all begin on tile 0."""
    if num_tiles < 1:
        raise ValueRangeError(f"an offset among {num_tiles} tiles", "1 or more")
    mixed = seed & 0xFFFFFFFF
    for n in shape:
        mixed = ((mixed ^ n) * 0x9E3779B1 + 0x7F4A7C15) & 0xFFFFFFFF
        mixed ^= mixed >> 15
    return mixed % num_tiles


def get_tile_imbalance(graph: Graph | TileMap, t: Tensor | None = None, min_elements_per_tile: int = 0, grain_size: int = 1) -> int:
    """How many elements the fullest tile has more than an even share: of ``t`` in ``graph``, or of a mapping."""
    if isinstance(graph, Graph):
        if t is None:
            raise TileMappingError("get_tile_imbalance of no tensor", "get_tile_imbalance(graph, tensor)")
        begin, end, tile = graph.tile_intervals(_distinct(t))
        held = np.bincount(tile, (end - begin).astype(float), minlength=graph.target.num_tiles).astype(np.int64)
    else:
        held = np.array([sum(e - b for b, e in intervals) for intervals in graph], np.int64)
    share = max(-(-int(held.sum()) // max(1, held.size)), min_elements_per_tile, grain_size)
    return max(0, int(held.max(initial=0)) - share)


def rebalance_tensor(graph: Graph, t: Tensor, max_imbalance: int = 0, min_elements_per_tile: int | None = None, grain_size: int | None = None) -> bool:
    """Map ``t`` linearly, in the order of its memory, if its imbalance is above ``max_imbalance``. Returns whether it was."""
    if get_tile_imbalance(graph, t) <= max_imbalance:
        return False
    map_tensor_linearly(graph, _distinct(t), min_elements_per_tile, grain_size)
    return True


def map_output_for_element_wise_op(
    graph: Graph, inputs: Sequence[Tensor], output: Tensor, grain_size: int | None = None, min_elements_per_tile: int | None = None
) -> None:
    """Put each element of ``output`` where an operand has it.

    The operand is the one of the output's shape, wholly mapped and without aliases, whose fullest tile holds least; of equals the
    first. Where there is none the output is mapped linearly.
    """
    best: tuple[int, Any] | None = None
    for t in inputs:
        if t.shape != output.shape or t.contains_aliases:
            continue
        begin, end, tile = graph.tile_intervals(t)
        if int((end - begin).sum()) != t.num_elements or not begin.size:
            continue
        fullest = int(np.bincount(tile, (end - begin).astype(float)).max())
        if best is None or fullest < best[0]:
            best = fullest, (begin, end - begin, tile)
    if best is None:
        map_tensor_linearly(graph, output, min_elements_per_tile, grain_size)
    else:
        graph.map_intervals(output, *best[1])


def create_output_for_element_wise_op(graph: Graph, inputs: Sequence[Tensor], dtype: DTypeLike, name: str = "") -> Tensor:
    """A tensor of the first input's shape, mapped by ``map_output_for_element_wise_op``."""
    made = graph.add_variable(dtype, inputs[0].shape, name=name)
    map_output_for_element_wise_op(graph, inputs, made)
    return made


def dim_is_split_over_tiles(graph: Graph, t: Tensor, dim: int) -> bool:
    """Whether entries of ``dim`` that differ in no other index are on different tiles."""
    return _is_split(_tile_of_each(graph, t), t.shape, dim)


def dim_is_split_over_ipus(graph: Graph, t: Tensor, dim: int) -> bool:
    """The same for IPUs."""
    return _is_split(_tile_of_each(graph, t) // graph.target.tiles_per_ipu, t.shape, dim)


def create_broadcast_operand(graph: Graph, full: Tensor, dtype: DTypeLike, dim: int, name: str = "") -> Tensor:
    """A vector as long as ``full`` is along ``dim``, each element on a tile that holds an entry of ``full`` with that index.

    Entries of several tiles are dealt out to those tiles in turn, so that no tile gets all of the vector.
    """
    made = graph.add_variable(dtype, (full.dim(dim),), name=name)
    tiles = np.moveaxis(_tile_of_each(graph, full).reshape(full.shape), dim, 0).reshape(made.num_elements, -1)
    if not tiles.size:
        return made
    ordered = np.sort(tiles, axis=1)
    fresh = np.diff(ordered, axis=1, prepend=-2) > 0
    fresh &= ordered >= 0
    count = fresh.sum(axis=1)
    if not count.all():
        raise TileMappingError(f"{full!r} is not wholly mapped", "map it before the operands it is broadcast with")
    run = np.arange(made.num_elements)
    place = run * count // max(1, made.num_elements)  # neighbours with the same tiles stay together
    rank = np.cumsum(fresh, axis=1) - 1
    chosen = ordered[run, np.argmax((rank == place[:, None]) & fresh, axis=1)]
    graph.map_intervals(made, run, np.ones_like(run), chosen)
    return made


def transform_tile_index(tile: int, num_tiles: int, offset: int, ascending: bool) -> int:
    """The position of ``tile`` in an order that begins at ``offset``."""
    return (tile - offset) % num_tiles if ascending else (num_tiles - 1 - offset - tile) % num_tiles


def inv_transform_tile_index(position: int, num_tiles: int, offset: int, ascending: bool) -> int:
    """The tile at ``position`` of an order that begins at ``offset``."""
    return (position + offset) % num_tiles if ascending else (num_tiles - 1 - offset - position) % num_tiles


def _turned(tile: Array, num_tiles: int, offset: int, ascending: bool) -> Array:
    return ((tile + offset) % num_tiles if ascending else (num_tiles - 1 - offset - tile) % num_tiles).astype(np.int32)


def _check(least: int | None, grain: int | None) -> None:
    if (least is not None and least < 0) or (grain is not None and grain < 1):
        raise ValueRangeError(f"min_elements_per_tile is {least}, grain_size {grain}", "0 or more; 1 or more")


def _distinct(t: Tensor) -> Tensor:
    """The elements of ``t`` in order of memory, each once."""
    simple, _ = reorder_to_simplify(t)
    if not t.contains_aliases:
        return simple
    _, first = np.unique(simple.regions().element_ids(), return_index=True)
    return simple.select(first)


def _tile_of_each(graph: Graph, t: Tensor) -> Array:
    begin, end, tile = graph.tile_intervals(t)
    return each_element(begin, end, tile, t.num_elements)


def _is_split(owner: Array, shape: tuple[int, ...], dim: int) -> bool:
    entries = np.moveaxis(owner.reshape(shape), dim, 0)
    return bool(entries.size) and not bool(np.all(entries == entries[0]))
