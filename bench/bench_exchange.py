"""Exchange bandwidth: ``program.Copy`` of many messages against ``np.copyto`` of the same number of bytes, on one thread.

What is timed: moving the bytes, in a Repeat where one round is short. What is not: planning and compiling the exchange.

all-to-all  every tile sends one message to every tile
broadcast   one tile sends the same messages to all tiles
shuffle     messages go from random places to random places
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isqrt

import numpy as np

import popcore as pc
from bench.harness import Goal, Row, check_equal, compare
from popcore import UNSIGNED_INT, program
from popcore.graph import Tensor

TILES = 1472
TILE_WORDS = 150 << 10  # a tile holds a little more
SIZES = (4, 16, 64, 256, 1024, 4096)  # bytes of a message
SCATTERED, LONG, BROADCAST = (Goal(good, moonshot, more_is_better=True) for good, moonshot in ((0.4, 0.6), (0.85, 1.0), (0.85, 1.3)))
ROUND_BYTES = 32 << 20  # a run moves at least so much


def rows(smoke: bool) -> Iterator[Row]:
    for pattern, make in (("all-to-all", all_to_all), ("broadcast", broadcast), ("shuffle", shuffle)):
        for size in SIZES:
            yield _row(f"exchange/{pattern} {_text(size)}", *make(size // 4, _total_words(size // 4, smoke)), goal(pattern, size), smoke)


def goal(pattern: str, size: int) -> Goal | None:
    if size < 64:
        return None
    if pattern == "broadcast":
        return BROADCAST
    return LONG if size >= 4096 else SCATTERED


def _text(size: int) -> str:
    return f"{size} B" if size < 1024 else f"{size // 1024} KiB"


def _total_words(words: int, smoke: bool) -> int:
    """Of all messages: more than caches hold, unless that were millions of them."""
    if smoke:
        return 64 * words
    return 1 << 24 if words >= 64 else max(400_000 * words, 1 << 22)


def _map_rows(graph: pc.Graph, tensor: Tensor, rows_of: np.ndarray) -> None:
    """Map each row of a tensor to a tile."""
    words = tensor.num_elements // len(rows_of)
    graph.map_intervals(tensor, np.arange(len(rows_of)) * words, np.full(len(rows_of), words), rows_of)


def _pair(shape_from: tuple[int, ...], shape_to: tuple[int, ...], tiles: int) -> tuple[pc.Graph, Tensor, Tensor]:
    graph = pc.Graph(pc.Device("M2000", num_ipus=1, tiles_per_ipu=tiles).target)
    made = [graph.add_variable(UNSIGNED_INT, shape, name=name) for shape, name in ((shape_from, "from"), (shape_to, "to"))]
    return graph, *made


def all_to_all(words: int, total: int):
    """Returns: graph, what is copied, what to, the data to send, what should arrive; so do the other patterns."""
    tiles = max(2, min(TILES, isqrt(total // words), TILE_WORDS // (2 * words)))
    graph, source, target = _pair((tiles, tiles, words), (tiles, tiles, words), tiles)
    for tensor in (source, target):
        _map_rows(graph, tensor, np.arange(tiles))
    data = _data(source)
    return graph, source, source.dim_shuffle([1, 0, 2]), target, data, data.transpose(1, 0, 2)


def broadcast(words: int, total: int):
    tiles = min(TILES, total // words)
    messages = max(1, total // words // tiles)
    graph, source, target = _pair((messages, words), (tiles, messages, words), tiles)
    graph.set_tile_mapping(source, 0)
    _map_rows(graph, target, np.arange(tiles))
    data = _data(source)
    return graph, source, source.expand([0]).broadcast(tiles, 0), target, data, np.broadcast_to(data, (tiles, messages, words))


def shuffle(words: int, total: int):
    messages = total // words
    tiles = min(TILES, messages)
    graph, source, target = _pair((messages, words), (messages, words), tiles)
    rng = np.random.default_rng(1)
    for tensor in (source, target):
        _map_rows(graph, tensor, np.sort(rng.integers(0, tiles, messages)))
    places = rng.permutation(messages)
    data = _data(source)
    elements = (places[:, None] * words + np.arange(words)).ravel()
    return graph, source, source.flatten().select(elements), target, data, data[places]


def _data(tensor: Tensor) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 1 << 32, tensor.shape, np.uint32)


def _row(
    name: str, graph: pc.Graph, source: Tensor, view: Tensor, target: Tensor, data: np.ndarray, expected: np.ndarray, goal_: Goal | None, smoke: bool
) -> Row:
    graph.create_host_write("source", source)
    graph.create_host_read("target", target)
    nbytes = expected.size * 4
    rounds = 1 if smoke else max(1, ROUND_BYTES // nbytes)
    engine = pc.Engine(graph, program.Repeat(rounds, program.Copy(view, target)), options={"engine.threads": 1})
    engine.write_tensor("source", data)
    engine.run()
    check_equal(name, engine.read_tensor("target"), expected)
    here = np.ones(expected.size, np.uint32)
    there = np.zeros_like(here)

    def copy() -> None:
        for _ in range(rounds):
            np.copyto(there, here)

    copy()
    return compare(name, engine.run, copy, unit="ms", per=rounds, goal=goal_, smoke=smoke)
