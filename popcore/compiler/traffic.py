"""What an exchange phase carries, counted: words through each pair of tiles, how far they go, and what crosses between IPUs.

The timing model (``cost.py``) turns these counts into cycles.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from popcore.compiler.ir import Moves
from popcore.compiler.links import Flow
from popcore.target import Target
from popcore.types import Array

COLUMNS = 16  # of islands on a chip: JIA figure 2.2 (16 x 19 x 4), HC33 (16 x 23 x 4)
TILES_PER_ISLAND = 4  # the same


@dataclass(frozen=True)
class Traffic:
    """Moves from tile to tile, int64[n] each.

    sender, receiver: tiles.
    words: exchange words, the last one perhaps not full; nbytes: bytes.
    message: a number, from 0 on, of what is sent: the same where a move sends the same from the same place.
    """

    sender: Array
    receiver: Array
    words: Array
    message: Array
    nbytes: Array
    first: Array  # one move of each message, by message

    def __len__(self) -> int:
        return len(self.message)

    def __getitem__(self, which: Array) -> Traffic:
        if which.all():
            return self
        _, first, message = np.unique(self.message[which], return_index=True, return_inverse=True)
        return Traffic(self.sender[which], self.receiver[which], self.words[which], message, self.nbytes[which], first)


def traffic_of(moves: Moves, sender: Array, receiver: Array, width: int) -> Traffic:
    """``width``: bytes of an exchange word."""
    order = np.lexsort((moves.nbytes, moves.source_offset, moves.source))
    new = np.ones(len(order), bool)
    new[1:] = False
    for column in (moves.source, moves.source_offset, moves.nbytes):
        ordered = column[order]
        new[1:] |= ordered[1:] != ordered[:-1]
    message = np.empty(len(order), np.int64)
    message[order] = np.cumsum(new) - 1
    return Traffic(sender, receiver, -(-moves.nbytes // width), message, moves.nbytes, order[new])


def busiest_words(traffic: Traffic, target: Target) -> int:
    """Word times of the busiest tile. What many tiles receive from one place is sent once.

    A message is wide if it stays on its IPU and both tiles of every aligned pair that it goes to have it in the end: such a pair's buses carry
    two words of it at once, and so do those of the pair that sends it. (The way out of a chip is 32 bits wide: RE, the constants of the chip.)
    """
    first, pair = traffic.first, target.chip.tiles_per_exchange_bus
    wide = _goes_to_whole_pairs(traffic, pair) if pair == 2 else np.zeros(len(first), bool)
    wide[traffic.message[leaves_ipu(traffic, target)]] = False
    of_move = wide[traffic.message]
    out = _through(traffic.sender[first], traffic.words[first], wide, pair)
    into = _through(traffic.receiver, np.where(of_move & (traffic.receiver % pair > 0), 0, traffic.words), of_move, pair)
    return max(out, into)


def _goes_to_whole_pairs(traffic: Traffic, pair: int) -> Array:
    """Of each message, whether it goes to whole pairs of tiles; the mate of the tile that sends it may have it beside those. bool[messages]"""
    made = np.zeros(len(traffic.first), bool)
    shared = np.bincount(traffic.message) > 1
    if not shared.any():
        return made
    traffic = traffic[shared[traffic.message]]
    pairs = int(max(traffic.receiver.max(), traffic.sender.max())) // pair + 1
    key, at = np.unique(traffic.message * pairs + traffic.receiver // pair, return_inverse=True)
    even, odd = (np.bincount(at, weights=traffic.receiver % pair == side, minlength=len(key)) for side in range(pair))
    whole = (even == 1) & (odd == 1)
    message = key // pairs
    single = ~whole & (key % pairs != traffic.sender[traffic.first][message] // pair)
    wide = np.bincount(message, weights=whole) > 0
    wide[message[single]] = False
    made[shared] = wide
    return made


def _through(tile: Array, words: Array, wide: Array, pair: int) -> int:
    """Of the busiest pair: the narrow words of its busier tile, and half of the wide ones of both."""
    pairs = int(tile.max()) // pair + 1
    narrow = np.bincount(tile[~wide], weights=words[~wide], minlength=pairs * pair).reshape(pairs, pair).max(axis=1)
    broad = np.bincount(tile[wide] // pair, weights=words[wide], minlength=pairs)
    return int(np.ceil((narrow + broad / pair).max()))


def way(traffic: Traffic, target: Target) -> tuple[Array, Array]:
    """How far each move goes: islands that it passes in the columns of its two ends, and columns to the right from one to the other. int64[n] each.

    The exchange lies in the middle, eight columns above it and eight below, which are numbered there and back. A column's tiles are numbered two by
    two away from the exchange, and on its other half back to it (JIA figure 2.2).
    """
    (from_x, from_island), (to_x, to_island) = (_place(tile % target.tiles_per_ipu, target) for tile in (traffic.sender, traffic.receiver))
    return from_island + to_island, to_x - from_x


def _place(tile: Array, target: Target) -> tuple[Array, Array]:
    """How far to the right each tile's column is, and its island, counted from the exchange."""
    length = target.chip.tiles // COLUMNS
    column, along = np.divmod(tile, length)
    return np.minimum(column, COLUMNS - 1 - column), np.minimum(along, length - 1 - along) // (TILES_PER_ISLAND // 2)


def leaves_ipu(traffic: Traffic, target: Target) -> Array:
    """bool[n]"""
    away: Array = traffic.sender // target.tiles_per_ipu != traffic.receiver // target.tiles_per_ipu
    return away


def flows_between_ipus(traffic: Traffic, target: Target) -> list[Flow]:
    """What crosses links, of traffic that leaves its IPU: each message once for all the IPUs that receive it; and the tiles that send."""
    from_ipu, to_ipu = traffic.sender // target.tiles_per_ipu, traffic.receiver // target.tiles_per_ipu
    key, at = np.unique(traffic.message * target.num_ipus + to_ipu, return_index=True)
    start, nbytes = from_ipu[at], traffic.nbytes[at]
    first = np.flatnonzero(np.diff(key // target.num_ipus, prepend=-1))
    reached = np.zeros((len(first), target.num_ipus), bool)
    reached[np.repeat(np.arange(len(first)), np.diff(np.append(first, len(key)))), key % target.num_ipus] = True
    kinds, which = np.unique(np.column_stack([start[first], np.packbits(reached, axis=1)]), axis=0, return_inverse=True)
    which = which.reshape(-1)
    load = np.bincount(which, weights=nbytes[first])
    senders = np.bincount(np.unique(which * target.num_tiles + traffic.sender[at][first]) // target.num_tiles)
    ends = [tuple(np.flatnonzero(np.unpackbits(kind[1:].astype(np.uint8))[: target.num_ipus]).tolist()) for kind in kinds]
    return [Flow(int(kind[0]), to, float(n), int(tiles)) for kind, to, n, tiles in zip(kinds, ends, load, senders, strict=True)]
