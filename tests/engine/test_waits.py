"""What does a stream's callback cost in modelled cycles: begin where nothing was prefetched, end always, and nothing for an array?"""

import numpy as np
import pytest

import popcore as pc
from popcore import INT, program

BEGIN, END = 78_000, 83_500  # LP-5, LP-6


class Numbers(program.StreamCallback):
    """Prefetches if it may."""

    def prefetch(self, buffer):
        return True

    def fetch(self, buffer):
        return


@pytest.fixture
def moves(graph):
    """A Copy in and a Copy out, four times."""
    x = graph.add_variable(INT, (8,), name="x", tile=1)
    into, out = graph.add_host_to_device_fifo("in", INT, 8), graph.add_device_to_host_fifo("out", INT, 8)
    return graph, program.Repeat(4, program.Sequence(program.Copy(into, x), program.Copy(x, out)))


def host_cycles(moves, into, out, **options):
    """Cycles of kind host of one run."""
    engine = pc.Engine(*moves, options=options)
    engine.connect_stream("in", into)
    engine.connect_stream("out", out)
    engine.run()
    profile = engine.profile()
    assert sum(step.cycles_by_kind["host"] for step in profile.steps) == profile.cycles_by_kind["host"]
    assert profile.total_cycles == sum(profile.cycles_by_kind.values())
    return profile.cycles_by_kind["host"]


def test_a_callback_is_waited_for_and_an_array_is_not(moves):
    """
    Each of four transfers in waits for its data and for the answer; each out for the answer.
    """
    array = np.zeros(8, np.int32)
    ready = host_cycles(moves, array, array)
    assert host_cycles(moves, lambda b: None, array) == ready + 4 * (BEGIN + END)
    assert host_cycles(moves, array, lambda b: None) == ready + 4 * END


def test_prefetching_hides_the_wait_for_data(moves):
    """
    All but the first transfer find theirs; with prefetch off none does.
    """
    array = np.zeros(8, np.int32)
    ready = host_cycles(moves, array, array)
    assert host_cycles(moves, Numbers(), array) == ready + BEGIN + 4 * END
    assert host_cycles(moves, Numbers(), array, **{"exchange.enablePrefetch": False}) == ready + 4 * (BEGIN + END)


def test_a_second_run_finds_what_the_first_prefetched(moves):
    """
    And forgetting the profile forgets the waits.
    """
    engine = pc.Engine(*moves)
    engine.connect_stream("in", Numbers())
    engine.connect_stream("out", np.zeros(8, np.int32))
    engine.run()
    first = engine.profile().cycles_by_kind["host"]
    engine.reset_profile()
    engine.run()
    assert engine.profile().cycles_by_kind["host"] == first - BEGIN


def test_a_cycle_count_sees_the_wait(graph):
    """
    What the device waits passes on its clock.
    """
    x = graph.add_variable(INT, (8,), name="x", tile=1)
    into = graph.add_host_to_device_fifo("in", INT, 8)
    moved = program.Sequence(program.Copy(into, x))
    count = program.cycle_count(graph, moved, 0)
    graph.create_host_read("cycles", count)
    engine = pc.Engine(graph, moved)
    seen = []
    for endpoint in (np.zeros(8, np.int32), lambda b: None):
        engine.connect_stream("in", endpoint)
        engine.run()
        low, high = (int(word) for word in engine.read_tensor("cycles"))
        seen.append(low + (high << 32))
    assert seen[1] - seen[0] == BEGIN + END


def test_replicas_wait_together():
    """
    One transfer of all replicas is one wait.
    """
    graph = pc.Graph(pc.Device("M2000", num_ipus=4, tiles_per_ipu=8).target, replication_factor=4)
    x = graph.add_variable(INT, (8,), name="x", tile=1)
    into = graph.add_host_to_device_fifo("in", INT, 8)
    engine = pc.Engine(graph, program.Copy(into, x))
    waits = []
    for endpoint in (np.zeros(32, np.int32), lambda b: None):
        engine.reset_profile()
        engine.connect_stream("in", endpoint)
        engine.run()
        waits.append(engine.profile().cycles_by_kind["host"])
    assert waits[1] - waits[0] == BEGIN + END
