"""Lowering: control flow becomes flat code, and sharing never multiplies it."""

import pytest

import popcore as pc
from popcore import BOOL, FLOAT, INT, program
from popcore.executable.opcodes import Op


@pytest.fixture
def copy(graph):
    """A small copy between two mapped variables."""
    a, b = (graph.add_variable(FLOAT, (4,), name=n, tile=0) for n in "ab")
    return program.Copy(a, b)


def ops(graph, *programs):
    return [Op(op).name for op in pc.compile_graph(graph, list(programs)).code[:, 0]]


def test_each_program_ends_in_a_halt(graph, copy):
    """
    Several programs lie one after the other.
    """
    assert ops(graph, copy, program.Sequence()) == ["RUN", "HALT", "HALT"]


def test_one_node_used_twice_is_one_phase(graph, copy):
    """
    The same copy in two places is planned once.
    """
    exe = pc.compile_graph(graph, program.Sequence(copy, program.Repeat(3, copy)))
    assert len(exe.phases) == 1


def test_sharing_in_fifteen_levels_stays_small(graph, copy):
    """
    A program that stands eight times in itself, fifteen levels deep, runs 2**48 copies and is a few instructions long.
    """
    prog = program.Sequence(*[copy] * 8)
    for _ in range(15):
        prog = program.Sequence(*[prog] * 8)
    exe = pc.compile_graph(graph, prog)
    assert len(exe.code) < 400
    engine = pc.Engine(exe, options={"debug.compute": False})
    engine.run()
    assert engine.profile().steps[0].executions == 8**16


def test_loops_have_slots_of_their_own(graph, copy):
    """
    Nested loops count apart; a count of 0 leaves at once.
    """
    exe = pc.compile_graph(graph, program.Repeat(2, program.Repeat(0, copy)))
    assert exe.loop_slots == 2
    assert exe.code[:2, 1:].tolist() == [[0, 2, 5], [1, 0, 4]]


def test_functions_are_emitted_once(graph, copy):
    """
    A function called from two places is one subroutine, however its calls nest.
    """
    inner = graph.add_function(copy)
    outer = graph.add_function(program.Sequence(program.Call(inner), program.Call(inner)))
    exe = pc.compile_graph(graph, program.Sequence(program.Call(outer), program.Call(inner)))
    assert (exe.code[:, 0] == Op.RUN).sum() == 1
    assert (exe.code[:, 0] == Op.RETURN).sum() == 2
    assert exe.call_depth == 2


def test_switches_know_their_cases_and_default(graph, copy):
    """
    The table has the number of cases, the default, and a row a case.
    """
    control = graph.add_variable(INT, (), name="control", tile=0)
    exe = pc.compile_graph(graph, program.Switch(control, {7: copy, -1: program.Sequence()}, program.Repeat(2, copy)))
    assert exe.switches[:, 0].tolist() == [2, 7, -1]
    assert [Op(exe.code[pc_, 0]).name for pc_ in exe.switches[:, 1]] == ["REPEAT", "RUN", "JUMP"]


def test_predicates_are_tested_where_they_live(graph, copy):
    """
    A branch holds the arena address of its predicate, and its width.
    """
    going = graph.add_variable(BOOL, (), name="going", tile=3)
    exe = pc.compile_graph(graph, program.RepeatWhileTrue(program.Sequence(), going, copy))
    _, address, width, _ = exe.code[exe.code[:, 0] == Op.BRANCH][0]
    assert width == 1
    assert exe.memory.tile_base[3] <= address < exe.memory.tile_base[3] + exe.memory.tile_bytes[3]
