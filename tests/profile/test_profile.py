"""Profile: cycles add up, carry their configuration, and keep wall time apart."""

import dataclasses

import numpy as np
import pytest

import popcore as pc
from popcore import FLOAT, program
from tests.codelets import Axpy, Timed


@pytest.fixture
def profile(graph):
    """Ten rounds of an exchange and a compute set on eight tiles."""
    x, y = (graph.add_variable(FLOAT, (8, 64), name=n) for n in "xy")
    cs = graph.add_compute_set("axpy")
    for i in range(8):
        graph.set_tile_mapping(x[i], i)
        graph.set_tile_mapping(y[i], i)
        graph.add_vertex(cs, Axpy, {"x": x[i], "y": y[i - 1], "k": 0.5}, tile=i)
    fifo = graph.add_host_to_device_fifo("in", FLOAT, 512)
    engine = pc.Engine(graph, program.Sequence(program.Copy(fifo, y), program.Repeat(10, program.Execute(cs), name="rounds")))
    engine.connect_stream("in", np.zeros(512, np.float32))
    engine.run()
    return engine.profile()


def test_kinds_and_steps_add_up(profile):
    """
    The total is the sum of its kinds, and of its steps.
    """
    assert profile.total_cycles == sum(profile.cycles_by_kind.values()) == sum(s.cycles for s in profile.steps)
    assert set(profile.cycles_by_kind) == {"compute", "exchange", "sync", "control", "host"}
    assert all(profile.cycles_by_kind[k] > 0 for k in profile.cycles_by_kind)


def test_device_seconds_are_cycles_by_the_clock(profile):
    """
    Nothing but the target's clock stands between them.
    """
    assert profile.device_seconds == profile.total_cycles / profile.target.clock_hz


def test_codelets_count_vertices_and_executions(profile):
    """
    Vertices of the graph, and executions over all rounds.
    """
    assert profile.codelets["Axpy"].vertices == 8
    assert profile.codelets["Axpy"].executions == 80


def test_bytes_are_those_moved(profile):
    """
    A row of 256 bytes to each of eight tiles, ten times; 2,048 bytes from the host, once.
    """
    assert profile.bytes.exchange == 10 * 8 * 256
    assert profile.bytes.host == 2048
    assert profile.bytes.ipu_links == profile.bytes.streaming_memory == 0


def test_a_profile_is_frozen_and_names_its_configuration(profile):
    """
    No number leaves without target, options and versions.
    """
    with pytest.raises(dataclasses.FrozenInstanceError):
        profile.total_cycles = 0
    assert profile.target.num_tiles == 8
    assert "debug.compute" in profile.options
    assert {"popcore", "numpy", "numba"} <= set(profile.versions)


def test_the_summary_names_what_matters(profile):
    """
    Machine, cycles, kinds, the longest step, the codelet, the fullest tile, wall time apart.
    """
    text = profile.summary()
    for part in ("M2000", f"{profile.total_cycles:,} cycles", "exchange", "axpy", "Axpy", "fullest is tile", "wall time"):
        assert part in text
    assert len(text.splitlines()) < 40


@pytest.mark.parametrize(("elements", "workers"), [(100, 1), (40, 6), (40, 7)])
def test_a_codelet_may_say_its_cycles(graph, elements, workers):
    """
    ``cycles(self)`` sees the sizes of the fields; six vertices of a tile run side by side, the seventh after.
    """
    cs = graph.add_compute_set("timed")
    for _ in range(workers):
        graph.add_vertex(cs, Timed, {"x": graph.add_variable(FLOAT, (elements,), tile=0)}, tile=0)
    engine = pc.Engine(graph, program.Execute(cs))
    engine.run()
    rounds = -(-workers // 6)
    assert engine.profile().cycles_by_kind["compute"] == rounds * (6 * (10 + 2 * elements) + 6)


def test_an_estimate_wins_over_what_the_codelet_says(graph):
    """
    ``set_perf_estimate`` is the last word.
    """
    cs = graph.add_compute_set("timed")
    v = graph.add_vertex(cs, Timed, {"x": graph.add_variable(FLOAT, (5,), tile=0)}, tile=0)
    graph.set_perf_estimate(v, 1000)
    engine = pc.Engine(graph, program.Execute(cs))
    engine.run()
    assert engine.profile().cycles_by_kind["compute"] == 6006


def test_the_slowest_tile_decides(graph):
    """
    Cycles of a compute set are those of its busiest tile, not a sum.
    """
    cs = graph.add_compute_set("uneven")
    for tile, elements in ((0, 10), (1, 50), (2, 20)):
        graph.add_vertex(cs, Timed, {"x": graph.add_variable(FLOAT, (elements,), tile=tile)}, tile=tile)
    engine = pc.Engine(graph, program.Execute(cs))
    engine.run()
    assert engine.profile().cycles_by_kind["compute"] == 6 * 110 + 6


def test_links_add_up_over_executions_and_replicas():
    """
    Each replica has the bundles of its own IPUs; collectives use those between them.
    """
    graph = pc.Graph(pc.Device("POD16", num_ipus=8, tiles_per_ipu=4), replication_factor=2)
    x, y = (graph.add_variable(FLOAT, (100,), name=name, tile=tile) for name, tile in (("x", 0), ("y", 5)))
    prog = program.Sequence(program.Repeat(3, program.Copy(x, y)), program.CrossReplicaCopy(y, y, {0: 1, 1: 0}))
    engine = pc.Engine(graph, prog)
    engine.run()
    profile = engine.profile()
    found = {(link.kind, link.source, link.target): link.bytes for link in profile.links}
    assert (found["rung", 0, 1], found["rung", 4, 5]) == (1200, 1200)
    assert found["rail", 0, 2] == found["rail", 2, 0] == 100, "a quarter of the copy between replicas"
    assert profile.links[0].busy_seconds == max(link.busy_seconds for link in profile.links)
    assert "bundles of 8 IPUs used; busiest is" in profile.summary()
