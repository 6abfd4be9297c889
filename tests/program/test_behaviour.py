"""Floating-point behaviour by program: state of the machine that changes while a program runs."""

import numpy as np
import pytest

import popcore as pc
from popcore import FLOAT, HALF, UNSIGNED_INT, FloatingPointBehaviour, Input, Output, Vertex, errors, program
from popcore.program import text

NOTHING = FloatingPointBehaviour(False, False, False, False, False)
NANOO = FloatingPointBehaviour(False, False, False, False, True)


class Sum(Vertex):
    a: Input[HALF]
    out: Output[HALF]

    def compute(self):
        self.out = self.a + self.a


@pytest.fixture(params=[pc.Engine, pc.ReferenceEngine], ids=["compiled", "reference"])
def engine_class(request):
    return request.param


@pytest.fixture
def graph():
    return pc.Graph(pc.Device("IPU-M2000", num_ipus=1, tiles_per_ipu=4).target)


def asks(graph, count):
    """Programs that each add 60000 to itself, and leave the sum in ``out`` 0, 1, ...: 65504 or NaN."""
    a = graph.add_constant(HALF, (), 60000, tile=0)
    out = graph.add_variable(HALF, (count,), name="out", tile=1)
    graph.create_host_read("out", out)
    found = []
    for i in range(count):
        compute = graph.add_compute_set(f"ask {i}")
        graph.add_vertex(compute, Sum, {"a": a, "out": out[i]}, tile=1)
        found.append(program.Execute(compute))
    return found


def test_a_new_one_has_everything_on_and_can_be_turned_over():
    """
    As in Poplar.
    """
    everything = FloatingPointBehaviour()
    assert (everything.inv, everything.div0, everything.oflo, everything.esr, everything.nanoo) == (True,) * 5
    assert ~everything == NOTHING
    assert FloatingPointBehaviour(nanoo=False) == ~NANOO


def test_it_is_state_of_the_run_and_not_of_the_text(graph, engine_class):
    """
    A function that is called before and after a change adds by the rule of each time; so does a loop.
    """
    first, again, third = asks(graph, 3)
    copy = graph.add_variable(HALF, (2,), name="copy", tile=0)
    graph.create_host_read("copy", copy)
    out = first.compute_set.graph.host_reads["out"]
    function = graph.add_function(first)
    prog = program.Sequence(program.Call(function), program.Copy(out[0], copy[0]))
    pc.set_floating_point_behaviour(graph, prog, NANOO)
    prog.add(program.Call(function))
    prog.add(program.Copy(out[0], copy[1]))
    inside = program.Sequence(again)
    pc.set_floating_point_behaviour(graph, inside, NOTHING)
    prog.add(program.Repeat(2, inside))
    prog.add(third)
    engine = engine_class(graph, prog)
    engine.run()
    np.testing.assert_array_equal(engine.read_tensor("copy"), np.float16([65504, np.nan]))
    np.testing.assert_array_equal(engine.read_tensor("out")[1:], np.float16([65504, 65504]))


def test_it_lasts_until_the_engine_is_loaded(graph, engine_class):
    """
    A later run of another program begins with what the one before left.
    """
    change, (ask,) = program.Sequence(), asks(graph, 1)
    pc.set_floating_point_behaviour(graph, change, NANOO)
    engine = engine_class(graph, [change, ask])
    seen = []
    for step in (1, 0, 1, None, 1):
        engine.load() if step is None else engine.run(step)
        if step == 1:
            seen.append(float(engine.read_tensor("out")[0]))
    np.testing.assert_array_equal(seen, [65504, np.nan, 65504])


def test_what_was_can_be_read_and_comes_back(graph, engine_class):
    """
    ``get_and_modify`` gives a word for each tile, which ``set`` takes.
    """
    before, after, restored = asks(graph, 3)
    prog = program.Sequence()
    pc.set_floating_point_behaviour(graph, prog, NANOO)
    prog.add(before)
    state = pc.get_and_modify_floating_point_behaviour(graph, prog, clear=NANOO, set_=NOTHING)
    graph.create_host_read("state", state)
    prog.add(after)
    pc.set_floating_point_behaviour(graph, prog, state)
    prog.add(restored)
    engine = engine_class(graph, prog)
    engine.run()
    np.testing.assert_array_equal(engine.read_tensor("out"), np.float16([np.nan, 65504, np.nan]))
    assert engine.read_tensor("state").tolist() == [NANOO.bits] * 4


def test_stochastic_rounding_leaves_the_rest(graph, engine_class):
    """
    Turned on and off, NaN on overflow stays on.
    """
    steps = asks(graph, 2)
    prog = program.Sequence()
    pc.set_floating_point_behaviour(graph, prog, NANOO)
    pc.set_stochastic_rounding(graph, prog, True)
    prog.add(steps[0])
    pc.set_stochastic_rounding(graph, prog, False)
    prog.add(steps[1])
    engine = engine_class(graph, prog)
    engine.run()
    assert np.isnan(engine.read_tensor("out")).all()


def test_a_state_that_differs_between_tiles_stops_the_run(graph, engine_class):
    """
    The emulated machine has one for all.
    """
    state = graph.add_variable(UNSIGNED_INT, (4,), name="state", tile=0)
    graph.set_initial_value(state, [0, 0, NANOO.bits, 0])
    prog = program.Sequence()
    pc.set_floating_point_behaviour(graph, prog, state)
    with pytest.raises(errors.ProgramError, match="0x0, 0x10"):
        engine_class(graph, prog).run()


def test_some_tiles_cannot_have_one_of_their_own(graph):
    """
    Refused at the call, with both counts; a virtual graph of all tiles is the whole machine.
    """
    prog = program.Sequence()
    with pytest.raises(errors.TileMappingError, match="2 of 4 tiles"):
        pc.set_floating_point_behaviour(graph.create_virtual_graph(2), prog, NANOO)
    with pytest.raises(errors.TileMappingError, match="2 of 4 tiles"):
        pc.set_stochastic_rounding(graph.create_virtual_graph(2), prog, True)
    pc.set_floating_point_behaviour(graph.create_virtual_graph(4), prog, NANOO)
    assert len(prog) == 1


def test_mistyped_arguments(graph):
    """
    A bool in place of a behaviour, a tensor that holds no state.
    """
    with pytest.raises(errors.GraphError, match="True"):
        pc.set_floating_point_behaviour(graph, program.Sequence(), True)
    with pytest.raises(errors.ElementTypeError, match="FLOAT"):
        pc.set_floating_point_behaviour(graph, program.Sequence(), graph.add_variable(FLOAT, (4,)))


def test_what_it_is_called_in_a_listing(graph):
    """
    Bits that are cleared and set.
    """
    prog = program.Sequence()
    pc.set_stochastic_rounding(graph, prog, True)
    assert "ModifyFloatingPointBehaviour clear 0x8 set 0x8" in text(prog)
