"""The states of the tiles' generators: where they are kept, seeding them, reading and writing them.

A graph has one state for each worker of each tile, made when an operation first needs it. It lives on from call to call and from run to run;
when an engine loads, it is as if seeded by (tile, worker, replica), so that no two streams are alike. After ``poplar/RandomSeed.hpp`` and
``poprand::setSeed``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from popcore.codelets.random import WORDS, WORKERS, SeedFirst, SetSeed
from popcore.errors import ElementTypeError, ShapeError, ValueRangeError
from popcore.graph import Graph, Tensor
from popcore.graph.regions import expand
from popcore.ops.popops import common
from popcore.program import Sequence
from popcore.types import UNSIGNED_INT, Array

_NAME = "generator states"
_ROW = WORKERS * WORDS


def set_seed(graph: Graph, master_seed: Tensor, seed_modifier: int, prog: Sequence, name: str = "") -> None:
    """Seed the generators of all tiles of ``graph``.

    What operations without a seed of their own draw afterwards depends on master seed, modifier and tile mappings only. Replicas given
    the same master seed draw the same.

    Args:
        master_seed: UNSIGNED_INT (2,).
        seed_modifier: 0 to 2**32 - 1.

    Raises: ShapeError, ElementTypeError, ValueRangeError
    """
    step = common.joined(name, "set_seed")
    tiles = np.arange(graph.target.num_tiles)
    _seed(graph, master_seed, seed_modifier, tiles, _machine_field(graph, tiles), prog, step)


def get_hw_seeds(graph: Graph, prog: Sequence, name: str = "") -> Tensor:
    """A copy of the generators' states, UNSIGNED_INT (tiles, 6, 4): of each worker four words, the low half of each 64-bit word first.

    Reading it on a replicated graph gives (replicas, tiles, 6, 4).
    """
    step = common.joined(name, "get_hw_seeds")
    tiles = np.arange(graph.target.num_tiles)
    graph.add_vertices(common.compute_set_of(graph, prog, step), SeedFirst, {"state": _machine_field(graph, tiles)}, tiles)
    states = _machine_states(graph)
    made = graph.clone(states, f"{step}/seeds")
    common.copy(prog, states, made, step)
    return made


def set_hw_seeds(graph: Graph, hw_seeds: Tensor, prog: Sequence, name: str = "") -> None:
    """Give the generators the states that ``get_hw_seeds`` read.

    Args:
        hw_seeds: UNSIGNED_INT (tiles, 6, 4). A worker whose first two words are 0 is taken for one that has not been seeded.
    """
    step = common.joined(name, "set_hw_seeds")
    common.require_tensors(step, hw_seeds)
    states = _machine_states(graph)
    if hw_seeds.shape != states.shape:
        raise ShapeError(f"{step} of {hw_seeds!r}", f"{states.shape}: tiles, workers, words")
    if hw_seeds.dtype is not UNSIGNED_INT:
        raise ElementTypeError(f"{step} of {hw_seeds!r}", "UNSIGNED_INT")
    common.copy(prog, hw_seeds, states, step)


def states_for(graph: Graph, seed: Tensor | None, seed_modifier: int, tiles: Array, prog: Sequence, step: str) -> tuple[Tensor, Array, Array]:
    """What the state fields of vertices on ``tiles``, each there once, connect to.

    The machine's states; with a seed temporary ones, which ``prog`` first makes of it: those of the machine stay as they are.
    """
    if seed is None:
        _check_modifier(seed_modifier, step)
        return _machine_field(graph, tiles)
    made = graph.add_variable(UNSIGNED_INT, (tiles.size, _ROW), name=f"{step}/states")
    begin, length = np.arange(tiles.size) * _ROW, np.full(tiles.size, _ROW)
    if tiles.size:
        graph.map_intervals(made, begin, length, tiles)
    _seed(graph, seed, seed_modifier, tiles, (made, begin, length), prog, f"{step}/seed")
    return made, begin, length


def _machine_states(graph: Graph) -> Tensor:
    """The states of this graph's tiles, UNSIGNED_INT (tiles, 6, 4), each on its tile."""
    whole: Graph = graph.variables.graph
    tiles = whole.target.num_tiles
    if _NAME not in whole.machine_state:
        made = whole.add_variable(UNSIGNED_INT, (tiles, WORKERS, WORDS), name=_NAME)
        whole.map_intervals(made, np.arange(tiles) * _ROW, np.full(tiles, _ROW), np.arange(tiles))
        initial = np.zeros(made.shape, np.uint32)  # not seeded yet: zeros, then what the seed is to be made of
        initial[:, :, 2] = np.arange(tiles * WORKERS).reshape(tiles, WORKERS)
        whole.set_initial_value(made, initial)
        if whole.replication_factor > 1:
            whole.replica_indices.append(made[:, :, 3])
        whole.machine_state[_NAME] = made
    states = whole.machine_state[_NAME]
    if graph is whole:
        return states
    own = _physical(graph, np.arange(graph.target.num_tiles))
    return states.flatten().select(expand(own * _ROW, np.full(own.size, _ROW))).reshape((own.size, WORKERS, WORDS))


def _machine_field(graph: Graph, tiles: Array) -> tuple[Tensor, Array, Array]:
    return _machine_states(graph.variables.graph), _physical(graph, tiles) * _ROW, np.full(tiles.size, _ROW)


def _physical(graph: Graph, tiles: Array) -> Array:
    """The whole target's numbers of tiles of a virtual graph: no two of them share a stream, whichever graphs they are seen through."""
    return np.array([graph.tile_of(t, _NAME) for t in tiles.tolist()], np.int64)


def _check_modifier(modifier: Any, step: str) -> None:
    if isinstance(modifier, bool) or not isinstance(modifier, int | np.integer) or not 0 <= int(modifier) < 1 << 32:
        raise ValueRangeError(f"the seed modifier of {step} is {modifier!r}", "0 to 2**32 - 1")


def _seed(graph: Graph, seed: Any, modifier: int, tiles: Array, field: tuple[Tensor, Array, Array], prog: Sequence, step: str) -> None:
    common.require_tensors(step, seed)
    _check_modifier(modifier, step)
    if seed.shape != (2,):
        raise ShapeError(f"the seed of {step} is {seed!r}", "(2,)")
    if seed.dtype is not UNSIGNED_INT:
        raise ElementTypeError(f"the seed of {step} is {seed!r}", "UNSIGNED_INT")
    fields = {"seed": seed, "modifier": int(modifier), "tile": _physical(graph, tiles).astype(np.uint32), "state": field}
    graph.add_vertices(common.compute_set_of(graph, prog, step), SetSeed, fields, tiles)
