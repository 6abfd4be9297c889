"""Exchange on one chip, and between the IPUs of a C2 system: latency and bandwidth by pattern.

Rows of Jia et al. 2019, chapter 4. Their letters: a is one chip, b two chips of a board, c across boards over a direct link, d over an indirect one; e, f
and g like those, but the first chip takes part on both sides, as it does in all chips of 4 (h), 8 (i) and 16 (j).
"""

from __future__ import annotations

import numpy as np

import popcore as pc
from bench.fidelity.figures import Family, Figure
from bench.fidelity.programs import graph_of, microseconds, modelled
from popcore import concat, program
from popcore.microbench.programs import spread

_PARTNER = {"b": 1, "c": 2, "d": 3}  # of IPU 0
_PAIRS = {"e": 1, "f": 2, "g": 3}  # IPU 0 and which
_SYSTEM = {"h": 4, "i": 8, "j": 16}  # IPUs
_LARGE = 25_600  # words: 100 KiB, what the bandwidth rows send


def _letter(figure: Figure) -> str:
    return figure.id.rsplit("-", 1)[-1]


def _away(figure: Figure) -> tuple[int, int]:
    """How many IPUs the system of a row has, and which IPU is the other end; (1, 0) on one chip."""
    partner = _PARTNER.get(_letter(figure), 0)
    return (4 if partner > 1 else 2, partner) if partner else (1, 0)


def point_to_point(figure: Figure) -> float:
    """One word from one tile to another."""
    ipus, partner = _away(figure)
    graph = graph_of(figure, ipus)
    tiles = graph.target.tiles_per_ipu
    source, target = (0, partner * tiles) if partner else np.random.default_rng(0).choice(tiles, 2, replace=False).tolist()
    return microseconds(graph, program.Copy(spread(graph, "source", [source], 1), spread(graph, "target", [target], 1)))


def permutation(figure: Figure) -> float:
    """n words at once, each from a tile of its own to a tile of its own, drawn at random."""
    ipus, partner = _away(figure)
    graph = graph_of(figure, ipus)
    tiles = graph.target.tiles_per_ipu
    count = figure.number(r"(?:n=)?(\d+)(?: random| transfers|$)")
    source = np.random.default_rng(1).permutation(tiles)[:count]
    target = np.roll(source, 1) + partner * tiles  # no tile sends to itself
    return microseconds(graph, program.Copy(spread(graph, "source", source, 1), spread(graph, "target", target, 1)))


def random_traffic(figure: Figure) -> float:
    """Every tile of some IPUs sends a word to any tile of them, drawn at random: some get several, others none."""
    ipus = list(range(figure.number(r"(\d+) IPUs")))
    if len(ipus) == 2 and "across boards" in figure.conditions:
        ipus[1] = _PARTNER["c" if "direct" in figure.conditions.replace("no direct", "").replace("indirect", "") else "d"]
    graph = graph_of(figure, 4 if max(ipus) > 1 and len(ipus) == 2 else len(ipus))
    tiles = graph.target.tiles_per_ipu
    source = np.concatenate([ipu * tiles + np.arange(tiles) for ipu in ipus])
    drawn = source[np.random.default_rng(2).integers(0, len(source), len(source))]
    return microseconds(graph, program.Copy(spread(graph, "source", source, 1), spread(graph, "target", drawn, 1)))


def aggregate(figure: Figure) -> float:
    """GB/s of n tiles that send large messages to n others, or to each other where there are no more."""
    graph = graph_of(figure)
    count = figure.number(r"n=(\d+)")
    first = np.arange(count)
    target = first + count if 2 * count <= graph.target.num_tiles else np.roll(first, 1)
    seconds = microseconds(graph, program.Copy(spread(graph, "source", first, _LARGE // 2), spread(graph, "target", target, _LARGE // 2))) * 1e-6
    return count * _LARGE * 2 / seconds / 1e9


def between_ipus(figure: Figure) -> float:
    """GB/s of transfers from every tile of one IPU to its like on another, or both ways."""
    partner = _PARTNER[_letter(figure)[0]]
    graph, words = graph_of(figure, 4 if partner > 1 else 2), 2_500
    tiles = np.arange(graph.target.tiles_per_ipu)
    here, there = tiles, tiles + partner * len(tiles)
    both = "bidirectional" in figure.conditions
    source, target = (np.concatenate([here, there]), np.concatenate([there, here])) if both else (here, there)
    seconds = microseconds(graph, program.Copy(spread(graph, "source", source, words), spread(graph, "target", target, words))) * 1e-6
    return len(source) * words * 4 / seconds / 1e9


def _one_and_others(figure: Figure) -> tuple[pc.Graph, int, np.ndarray]:
    """A graph, the tile that sends to (or receives from) others, and those: the first ones of its chip, all of another chip, or all that there are.

    The one is the last of the first chip: among the others only where that whole chip takes part, as section 4.2 says, and then it is left out.
    """
    letter = _letter(figure)
    ipus, partner = _away(figure)
    tiles = graph_of(figure).target.tiles_per_ipu
    others = np.arange(tiles) + partner * tiles
    if letter in _PAIRS:
        partner = _PAIRS[letter]
        ipus, others = 4 if partner > 1 else 2, np.concatenate([np.arange(tiles), np.arange(tiles) + partner * tiles])
    elif letter in _SYSTEM:
        ipus, others = _SYSTEM[letter], np.arange(tiles * _SYSTEM[letter])
    elif not partner:
        others = np.arange(figure.number(r"n=(\d+)|(\d+) tiles|-> (\d+)", tiles))
    return graph_of(figure, ipus), tiles - 1, others[others != tiles - 1]


def _broadcast_seconds(figure: Figure, words: int) -> tuple[float, int]:
    graph, one, tiles = _one_and_others(figure)
    source, target = spread(graph, "source", [one], words), spread(graph, "target", tiles, words)
    return microseconds(graph, program.Copy(source.broadcast(len(tiles), 0), target)) * 1e-6, len(tiles)


def broadcast_latency(figure: Figure) -> float:
    return _broadcast_seconds(figure, 1)[0] * 1e6


def broadcast_bandwidth(figure: Figure) -> float:
    """GB/s received in all."""
    seconds, count = _broadcast_seconds(figure, _LARGE)
    return count * _LARGE * 4 / seconds / 1e9


def broadcast_share(figure: Figure) -> float:
    """The percentage of the peak that a message reaches, or the KiB that it takes to reach a percentage."""
    seconds, _ = _broadcast_seconds(figure, _LARGE)
    peak = _LARGE / seconds

    def share(words: int) -> float:
        return words / _broadcast_seconds(figure, words)[0] / peak

    if figure.unit.startswith("%"):
        return 100 * share(256)
    low, high = 1, _LARGE
    while high - low > 8:  # the share grows with the message
        middle = (low + high) // 2
        low, high = (low, middle) if share(middle) >= 0.9 else (middle, high)
    return high * 4 / 1024


def scatter(figure: Figure) -> float:
    """A tile sends each of n others a word of its own."""
    graph, one, tiles = _one_and_others(figure)
    return microseconds(graph, program.Copy(spread(graph, "source", [one], len(tiles)).reshape((len(tiles), 1)), spread(graph, "target", tiles, 1)))


def gather(figure: Figure) -> float:
    """Each of n tiles sends another one a word."""
    graph, one, tiles = _one_and_others(figure)
    return microseconds(graph, program.Copy(spread(graph, "source", tiles, 1), spread(graph, "target", [one], len(tiles)).reshape((len(tiles), 1))))


def one_sided_bandwidth(figure: Figure) -> float:
    """GB/s of a gather or scatter of messages."""
    words = figure.number(r"(\d+) B each") // 4
    graph, center, tiles = _one_and_others(figure)
    one, many = spread(graph, "one", [center], len(tiles) * words).reshape((len(tiles), words)), spread(graph, "many", tiles, words)
    copy = program.Copy(many, one) if "GAB" in figure.id else program.Copy(one, many)
    return len(tiles) * words * 4 / (microseconds(graph, copy) * 1e-6) / 1e9


def all_to_all(figure: Figure) -> float:
    """Each of n tiles, drawn at random as section 4.1.4 draws them, sends each other one a word."""
    graph, count = graph_of(figure), figure.number(r"n=(\d+)")
    tiles = np.random.default_rng(3).permutation(graph.target.tiles_per_ipu)[:count]
    source, target = (spread(graph, name, tiles, count) for name in ("source", "target"))
    sent, received = (concat([part for i in range(count) for part in (t[i][:i], t[i][i + 1 :])]) for t in (source.transpose(), target))
    return microseconds(graph, program.Copy(sent, received))


def transfer_alone(figure: Figure) -> float:
    """ns of one word between tiles, the barrier not counted: in the first column to its nearest or farthest tile, or the most of any two tiles.

    The latter are the farthest of their columns.
    """
    target = graph_of(figure).target
    column = target.tiles_per_ipu // 16
    far = column // 2
    within = {"min": 1, "max": far}[_letter(figure)]
    pairs = [(0, within)] if "COL" in figure.id else [(far + column * other, far) for other in range(1, 16)]
    return max(_nanoseconds(figure, *pair) for pair in pairs)


def _nanoseconds(figure: Figure, sender: int, receiver: int) -> float:
    graph = graph_of(figure)
    profile = modelled(graph, program.Copy(spread(graph, "source", [sender], 1), spread(graph, "target", [receiver], 1)))
    return (profile.total_cycles - profile.cycles_by_kind["sync"]) / graph.target.clock_hz * 1e9


FAMILIES = (
    Family("p2p", r"J-P2PL-[a-d]", point_to_point),
    Family("p2p", r"J-(COL|CHIP)-(min|max)", transfer_alone),
    Family("permutation", r"J-(PERM-\d+|P2PLL-[a-d])", permutation),
    Family("random", r"J-RAND-\d+", random_traffic),
    Family("aggregate", r"J-AGG-\d+", aggregate),
    Family("inter-IPU bandwidth", r"J-IPUBW-[b-d]2?", between_ipus),
    Family("broadcast", r"J-BCL-\w+", broadcast_latency),
    Family("broadcast", r"J-BCB-\w+", broadcast_bandwidth),
    Family("broadcast", r"J-BCS-\d+", broadcast_share),
    Family("scatter", r"J-SCL-\w+", scatter),
    Family("gather", r"J-GAL-\w+", gather),
    Family("gather", r"J-GAB-\w+", one_sided_bandwidth),
    Family("scatter", r"J-SCB-\w+", one_sided_bandwidth),
    Family("all-to-all", r"J-A2A-\d+", all_to_all),
)
