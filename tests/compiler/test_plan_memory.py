"""``plan_memory`` and ``find_lives``: what lives together never shares a byte, the dead make room, the limit is tight."""

import itertools

import numpy as np
import pytest

import popcore as pc
from popcore import FLOAT, errors, program
from tests.codelets import CopyVector


def tile_use(exe, tile=0):
    return int(exe.memory.by_category["variables"][tile])


def chain(graph, links, elements):
    """x -> t0 -> t1 -> ... -> y, every link on tile 0."""
    x = graph.add_variable(FLOAT, (elements,), name="x", tile=1)
    y = graph.add_variable(FLOAT, (elements,), name="y", tile=1)
    temporaries = [graph.add_variable(FLOAT, (elements,), name=f"t{i}", tile=0) for i in range(links)]
    graph.create_host_write("x", x)
    graph.create_host_read("y", y)
    everything = [x, *temporaries, y]
    return program.Sequence(*(program.Copy(a, b) for a, b in itertools.pairwise(everything)))


def test_a_chain_of_temporaries_needs_two_of_them(graph):
    """
    Each link is dead once the next is written, so ten take the room of two, and the data still comes through.
    """
    exe = pc.compile_graph(graph, chain(graph, 10, 1000))
    assert tile_use(exe) == 2 * 4000
    engine = pc.Engine(exe)
    engine.write_tensor("x", np.arange(1000, dtype=np.float32))
    engine.run()
    assert np.array_equal(engine.read_tensor("y"), np.arange(1000, dtype=np.float32))


def test_outputs_of_vertices_end_a_life_too(graph):
    """
    A variable that a compute set writes as a whole was dead before.
    """
    a, b, c = (graph.add_variable(FLOAT, (100,), name=n, tile=0) for n in "abc")
    x, y = (graph.add_variable(FLOAT, (100,), name=n, tile=1) for n in "xy")
    graph.create_host_read("x", x)
    graph.create_host_write("y", y)
    sets = []
    for source, target in ((y, a), (a, b), (b, c), (c, x)):
        cs = graph.add_compute_set(f"to {target.name}")
        graph.add_vertex(cs, CopyVector, {"src": source, "dst": target}, tile=0)
        sets.append(program.Execute(cs))
    assert tile_use(pc.compile_graph(graph, program.Sequence(*sets))) == 2 * 400


def test_what_a_run_leaves_to_the_next_keeps_its_memory(graph):
    """
    Read before written: the value comes from the run before, so nothing may lie on it.
    """
    state, other = (graph.add_variable(FLOAT, (100,), name=n, tile=0) for n in ("state", "other"))
    x = graph.add_variable(FLOAT, (100,), name="x", tile=1)
    graph.create_host_write("x", x)
    prog = program.Sequence(program.Copy(state, x), program.Copy(x, other), program.Copy(other, state))
    assert tile_use(pc.compile_graph(graph, prog)) == 2 * 400


def test_a_loop_carries_lives_backwards(graph):
    """
    What the second round reads of the first is alive all through the loop.
    """
    a, b = (graph.add_variable(FLOAT, (100,), name=n, tile=0) for n in "ab")
    x, y = (graph.add_variable(FLOAT, (100,), name=n, tile=1) for n in "xy")
    graph.create_host_write("x", x)
    graph.create_host_read("y", y)
    body = program.Sequence(program.Copy(a, y), program.Copy(x, b), program.Copy(b, y))
    prog = program.Sequence(program.Copy(x, a), program.Repeat(3, body))
    assert tile_use(pc.compile_graph(graph, prog)) == 2 * 400


def test_write_undef_ends_a_life(graph):
    """
    After WriteUndef another variable may use the bytes even if the program wraps around.
    """
    a, b = (graph.add_variable(FLOAT, (100,), name=n, tile=0) for n in "ab")
    x = graph.add_variable(FLOAT, (100,), name="x", tile=1)
    graph.create_host_write("x", x)
    half = program.Sequence(program.Copy(x[0:50], a[0:50]), program.Copy(a[0:50], x[50:100]))  # a is never written as a whole
    rest = program.Sequence(program.Copy(x, b), program.Copy(b, x))
    assert tile_use(pc.compile_graph(graph, program.Sequence(half, rest))) == 2 * 400
    ended = program.Sequence(program.WriteUndef(a), half, program.WriteUndef(a), rest)
    assert tile_use(pc.compile_graph(graph, ended)) == 400


def test_the_limit_is_tight(graph):
    """
    The largest variable that fits compiles; eight bytes more are refused, with the tile, the bytes and the tenant.
    """

    def compiled(elements):
        fresh = pc.Graph(graph.target)
        big = fresh.add_variable(FLOAT, (elements,), name="big", tile=3)
        fresh.create_host_read("big", big)
        return pc.compile_graph(fresh, program.Sequence())

    overhead = sum(int(sizes[3]) for name, sizes in compiled(2).memory.by_category.items() if name != "variables")
    most = (graph.target.bytes_per_tile - overhead) // 8 * 2
    compiled(most)
    with pytest.raises(errors.OutOfTileMemoryError, match=r"(?s)tile 3 needs.*638,976 B.*big.*try: map 'big") as caught:
        compiled(most + 2)
    assert caught.value.needed - caught.value.available == 8 - (graph.target.bytes_per_tile - overhead) % 8


def test_too_much_can_be_allowed(graph):
    """
    With ``debug.allowOutOfMemory`` the profile of a graph that does not fit can be read.
    """
    big = graph.add_variable(FLOAT, (200_000,), name="big", tile=3)
    graph.create_host_read("big", big)
    engine = pc.Engine(graph, program.Sequence(), options={"debug.allowOutOfMemory": True})
    engine.run()
    assert engine.profile().memory.total[3] > 800_000
