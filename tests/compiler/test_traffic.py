"""Does the model see what an exchange carries: pairs that receive the same, how far words go, and what crosses between IPUs?"""

import numpy as np
import pytest

import popcore as pc
from popcore import FLOAT, program


def cycles(system, source, target, words, ipus=1, same=False):
    """Cycles and bytes on links of a copy from tiles to tiles, ``words`` of each; ``same``: all receive what the one tile sends."""
    graph = pc.Graph(pc.Device(system, num_ipus=ipus).target)
    made = []
    for name, tiles in (("source", source), ("target", target)):
        made.append(graph.add_variable(FLOAT, (len(tiles), words), name=name))
        graph.map_intervals(made[-1], np.arange(len(tiles)) * words, np.full(len(tiles), words), np.array(tiles))
    data = made[0].broadcast(len(target), 0) if same else made[0]
    engine = pc.Engine(graph, program.Copy(data, made[1]), options={"debug.compute": False})
    engine.run()
    return engine.profile().total_cycles, engine.profile().bytes.ipu_links


def test_an_aligned_pair_receives_the_same_at_twice_the_width():
    """
    Two tiles that are no pair do not, nor do different words, nor two messages that one pair sends at once in more than its own time.
    """
    pair, apart = (cycles("C2", [0], tiles, 1000, same=True)[0] for tiles in ([2, 3], [1, 2]))
    assert apart - pair == 500
    assert cycles("C2", [0, 1], [2, 3], 1000)[0] == apart
    assert cycles("C2", [0], [1], 1000, same=True)[0] == cycles("C2", range(6), [1, 2, 3, 4, 5, 0], 1000)[0] - 4 == apart  # the last two are an island away
    assert cycles("C2", [0], [1, 2, 3], 1000, same=True)[0] == pair
    assert cycles("C2", [0], [1, 3], 1000, same=True)[0] == apart  # tile 3 is alone


def test_words_that_stay_near_arrive_sooner():
    """
    Two cycles an island of four tiles, at either end; columns of 19 islands on a GC2 and of 23 on the others.
    """
    near, island, far = (cycles("C2", [0], [tile], 1)[0] for tile in (1, 4, 75))
    assert (island - near, far - near) == (2, 36)
    assert cycles("C2", [75], [74], 1)[0] == 264  # J-PERM-1216
    assert cycles("M2000", [0], [91], 1)[0] - cycles("M2000", [0], [1], 1)[0] == 44


def test_what_an_ipu_receives_crosses_once():
    """
    And once over what several routes share: IPU 4 lies behind IPU 2 on its rail.
    """
    tiles = pc.Device("C2").target.tiles_per_ipu
    one, many = (cycles("C2", [0], [2 * tiles + t for t in range(n)], 100, ipus=6, same=True) for n in (1, 50))
    assert one == many
    behind = cycles("C2", [0], [4 * tiles], 100, ipus=6)
    assert cycles("C2", [0], [2 * tiles, 4 * tiles], 100, ipus=6, same=True) == behind
    assert behind[1] == 400


def test_exchange_between_ipus_is_a_phase_of_its_own():
    """
    After the one inside; its last word takes the links' latency.
    """
    tiles = pc.Device("C2").target.tiles_per_ipu
    inside, across = cycles("C2", [0], [1], 5000)[0], cycles("C2", [0], [tiles], 5000, ipus=2)[0]
    both = cycles("C2", [0, 1], [1, tiles], 5000, ipus=2)[0]
    assert both == inside + across
    assert across == pytest.approx(5000 + 0.63e-6 * 1.6e9, abs=2)


@pytest.mark.parametrize(
    ("system", "ipus", "gb_per_second"), [("C2", 1, 5.86), ("C2", 2, 11.72), ("C2", 4, 13.8), ("C2", 8, 27.6), ("M2000", 4, 12.5), ("POD16", 8, 25)]
)
def test_ipus_share_ways_to_the_host(system, ipus, gb_per_second):
    """
    Each has its own lanes, and four of them one way to the host.
    """
    graph = pc.Graph(pc.Device(system, num_ipus=ipus).target)
    data = graph.add_variable(FLOAT, (ipus * 1_000_000,), mapping="linear", name="data")
    stream = graph.add_host_to_device_fifo("in", FLOAT, data.num_elements)
    engine = pc.Engine(graph, program.Copy(stream, data), options={"debug.compute": False})
    engine.connect_stream("in", np.zeros(data.num_elements, np.float32))
    engine.run()
    assert 4e6 * ipus / engine.profile().device_seconds / 1e9 == pytest.approx(gb_per_second, rel=0.01)
