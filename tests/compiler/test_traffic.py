"""Does the model see what an exchange carries: pairs that receive the same, how far words go, and what crosses between IPUs?"""

import numpy as np
import pytest

import popcore as pc
from popcore import FLOAT, Output, Vector, Vertex, program


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
    assert cycles("C2", [0], [1], 1000, same=True)[0] == cycles("C2", range(6), [1, 2, 3, 4, 5, 0], 1000)[0] - 8 == apart - 2  # islands
    assert cycles("C2", [0], [1, 2, 3], 1000, same=True)[0] == pair
    assert cycles("C2", [0], [1, 3], 1000, same=True)[0] == apart  # tile 3 is alone


def test_words_that_stay_near_arrive_sooner():
    """
    Two cycles an island of four tiles, at either end: 0, 1, 74 and 75 are one. From column to column 17 or, to the left, 19 all over the chip; the
    first column and the last are opposite. Columns of 19 islands on a GC2 and of 23 on the others.
    """
    near, island, same, far = (cycles("C2", [0], [tile], 1)[0] for tile in (1, 2, 75, 37))
    assert (island - near, same - near, far - near) == (2, 0, 36)
    assert cycles("C2", [37], [38], 1)[0] == near + 72
    opposite, next_to, end = (cycles("C2", [0], [76 * column], 1)[0] for column in (15, 1, 8))
    assert (opposite - near, next_to - near, end - near) == (0, 3, 17)
    assert cycles("C2", [76 * 8], [0], 1)[0] == near + 19
    assert cycles("C2", [646], [37], 1)[0] == 264  # J-PERM-1216, all over a chip
    assert cycles("M2000", [0], [46], 1)[0] - cycles("M2000", [0], [1], 1)[0] == 44


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


def test_every_tile_that_sends_to_another_chip_waits_its_turn():
    """
    One that sends as many words to as many tiles does not: rows J-P2PLL-b and J-SCL-b, 2.5 and 1.4 us.
    """
    tiles = pc.Device("C2").target.tiles_per_ipu
    there = range(tiles, 2 * tiles)
    many, one = (cycles("C2", source, there, 1, ipus=2)[0] for source in (range(tiles), [0] * tiles))
    assert many / 1.6e3 == pytest.approx(2.521, rel=0.25)
    assert one / 1.6e3 == pytest.approx(1.361, rel=0.05)


def test_each_phase_of_an_exchange_begins_with_a_barrier():
    """
    That between chips takes a hop within a rung and one for every four, 15 ns each, there and back, beside the one on the chip.
    """
    for ipus, hops in ((1, 0), (2, 1), (4, 2), (16, 5)):
        graph = pc.Graph(pc.Device("C2", num_ipus=ipus).target)
        tiles = graph.target.num_tiles
        x, y = (graph.add_variable(FLOAT, (2,), name=name) for name in ("x", "y"))
        for t, places in ((x, (0, 1)), (y, (1, tiles - 1))):
            for i, tile in enumerate(places):
                graph.set_tile_mapping(t[i], tile)
        sync = []
        for steps in (program.Copy(x, y), program.Sync(program.SyncType.EXTERNAL)):
            engine = pc.Engine(graph, steps)
            engine.run()
            sync.append(engine.profile().cycles_by_kind["sync"])
        assert sync == [105 * (1 + (ipus > 1)) + 48 * hops, 105 + 48 * hops]


def rearranged(runs, width):
    """Compute cycles of copying so many runs of ``width`` words, with a gap behind each, on one tile."""
    graph = pc.Graph(pc.Device("C2").target)
    x, y = (graph.add_variable(FLOAT, shape, tile=0, name=name) for name, shape in (("x", (runs, width + 1)), ("y", (runs, width))))
    engine = pc.Engine(graph, program.Copy(x[:, :width], y))
    engine.run()
    return engine.profile().cycles_by_kind["compute"]


def test_every_run_of_a_rearrangement_on_a_tile_costs():
    """
    Nine cycles, besides eight bytes a cycle and the launch; rows LB-PH: 282 strips of a row are put back in 4,826 cycles.
    """
    assert rearranged(1, 1000) == 45 + 9 + 500
    assert rearranged(10, 100) == 45 + 90 + 500
    assert rearranged(282, 15) == pytest.approx(4826, rel=0.05)
    graph = pc.Graph(pc.Device("C2").target)
    x, y = (graph.add_variable(FLOAT, (elements,), tile=0, name=name) for name, elements in (("x", 4), ("y", 200)))
    engine = pc.Engine(graph, program.Copy(x.sub_sample(2, 0).upsample(100, 0), y))  # a hundred of the one, then of the other
    engine.run()
    assert engine.profile().cycles_by_kind["compute"] == 45 + 2 * 9 + 100


class Fill(Vertex):
    """Writes its vector."""

    out: Output[Vector[FLOAT]]

    def compute(self) -> None:
        for i in range(len(self.out)):
            self.out[i] = 1.0


def test_what_an_output_held_is_not_fetched():
    """
    On a machine a vertex writes all of it: only what it wrote is put where it belongs. The emulator keeps what a vertex leaves alone.
    """
    graph = pc.Graph(pc.Device("C2").target)
    x = graph.add_variable(FLOAT, (10, 101), tile=0, name="x")
    fill = graph.add_compute_set("fill")
    graph.set_perf_estimate(graph.add_vertex(fill, Fill, {"out": x[:, :100].flatten()}, 0), 0)
    engine = pc.Engine(graph, program.Execute(fill))
    engine.run()
    assert engine.profile().cycles_by_kind["compute"] == 6 + rearranged(10, 100)


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
