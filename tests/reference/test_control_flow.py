"""Does control flow run what it says, as often as it says, on each engine?"""

import numpy as np
import pytest

from popcore import BOOL, FLOAT, INT, UNSIGNED_INT, errors, program
from tests.small_codelets import AddTo, Below, Counter


@pytest.fixture
def parts(graph):
    """A counter that starts at 7 and a program that adds 1 to it, read as "n"."""
    n = graph.add_variable(UNSIGNED_INT, (), name="n", tile=0)
    graph.set_initial_value(n, 7)
    compute_set = graph.add_compute_set("count")
    one = graph.add_constant(UNSIGNED_INT, (1,), 1, tile=0)
    graph.add_vertex(compute_set, AddTo[UNSIGNED_INT], {"x": one, "y": n.reshape((1,))}, tile=0)
    graph.create_host_read("n", n)
    return n, program.Execute(compute_set)


def after(engine_class, graph, prog, runs=1):
    """What "n" holds after running ``prog``."""
    engine = engine_class(graph, prog)
    for _ in range(runs):
        engine.run()
    return int(engine.read_tensor("n"))


def constant(graph, dtype, value):
    """A scalar constant on tile 0."""
    return graph.add_constant(dtype, (), value, tile=0)


def test_nothing_runs_in_empty_programs(engine_class, graph, parts):
    """
    Known trap F3: the counter stays 7.
    """
    _, step = parts
    nothing, yes, no = program.Sequence(), constant(graph, BOOL, True), constant(graph, BOOL, False)
    prog = program.Sequence(
        nothing,
        program.Repeat(0, step),
        program.RepeatWhileTrue(nothing, no, step),
        program.RepeatWhileFalse(nothing, yes, step),
        program.If(yes, nothing),
        program.If(no, nothing, nothing),
        program.If(no, step),
        program.Switch(constant(graph, INT, 3), {2: step}),
        program.Repeat(5, nothing),
    )
    assert after(engine_class, graph, prog) == 7


def test_the_condition_of_a_loop_runs_once_more_than_its_body(engine_class, graph, parts):
    """
    Known trap F3: it runs before each test, so exactly once where the body never does.
    """
    _, step = parts
    assert after(engine_class, graph, program.RepeatWhileTrue(step, constant(graph, BOOL, False), program.Sequence())) == 8


@pytest.mark.parametrize("trips", [0, 1, 2, 3])
def test_a_loop_that_swaps(engine_class, graph, trips):
    """
    Known trap F4: after an odd number of trips the two have changed places, after none they have not.
    """
    a, b, spare = (graph.add_variable(FLOAT, (3,), name=n, tile=0) for n in ("a", "b", "spare"))
    graph.set_initial_value(a, [1, 2, 3])
    graph.set_initial_value(b, [4, 5, 6])
    graph.create_host_read("a", a)
    graph.create_host_read("b", b)
    swap = program.Sequence(program.Copy(a, spare), program.Copy(b, a), program.Copy(spare, b))
    engine = engine_class(graph, program.Repeat(trips, swap))
    engine.run()
    expected = ([1, 2, 3], [4, 5, 6])
    assert (engine.read_tensor("a").tolist(), engine.read_tensor("b").tolist()) == (expected if trips % 2 == 0 else expected[::-1])


def test_loops_stop_on_their_predicate(engine_class, graph, parts):
    """
    While n is below 12.
    """
    n, step = parts
    below, going = graph.add_compute_set("below"), graph.add_variable(BOOL, (), name="going", tile=0)
    signed = n.reinterpret(INT)
    graph.add_vertex(below, Below, {"x": signed, "limit": constant(graph, INT, 12), "flag": going}, tile=0)
    assert after(engine_class, graph, program.RepeatWhileTrue(program.Execute(below), going, step)) == 12


def test_an_integer_predicate_is_true_unless_zero(engine_class, graph, parts):
    """
    Minus one is true.
    """
    _, step = parts
    prog = program.Sequence(
        program.If(constant(graph, INT, -1), step),
        program.If(constant(graph, UNSIGNED_INT, 0), step),
        program.RepeatWhileFalse(program.Sequence(), constant(graph, UNSIGNED_INT, 2), step),
    )
    assert after(engine_class, graph, prog) == 8


@pytest.mark.parametrize(("value", "expected"), [(-5, 8), (0, 10), (3, 107), (2**31 - 1, 107)])
def test_a_switch_takes_the_case_or_the_default(engine_class, graph, parts, value, expected):
    """
    Known trap F7: a value without a case takes the default.
    """
    _, step = parts
    default = program.Repeat(100, step)
    prog = program.Switch(constant(graph, INT, value), {-5: step, 0: program.Repeat(3, step)}, default)
    assert after(engine_class, graph, prog) == expected


def test_a_tensor_used_twice_in_a_body(engine_class, graph, parts):
    """
    Known trap F6: and constants there too.
    """
    n, step = parts
    other = graph.add_variable(UNSIGNED_INT, (3,), name="other", tile=1)
    graph.create_host_read("other", other)
    k = graph.add_constant(UNSIGNED_INT, (1,), 99, tile=2)
    body = program.Sequence(program.Copy(n, other[0:1]), step, program.Copy(n, other[1:2]), program.Copy(k, other[2:3]))
    engine = engine_class(graph, program.Repeat(3, body))
    engine.run()
    assert engine.read_tensor("other").tolist() == [9, 10, 99]


def test_functions_share_their_body(engine_class, graph, parts):
    """
    Called from several places, in loops, through each other.
    """
    _, step = parts
    inner = graph.add_function(program.Sequence(step, step))
    outer = graph.add_function(program.Sequence(program.Call(inner), step))
    prog = program.Sequence(program.Call(inner), program.Repeat(3, program.Call(outer)))
    assert after(engine_class, graph, prog) == 7 + 2 + 9


def test_nesting_is_no_limit(engine_class, graph, parts):
    """
    Known trap F8: 5,000 deep.
    """
    _, step = parts
    deep = step
    for _ in range(5000):
        deep = program.Sequence(deep)
    assert after(engine_class, graph, deep) == 8


def test_nested_loops_multiply(engine_class, graph, parts):
    """
    A body inside ten loops of two.
    """
    _, step = parts
    nest = step
    for _ in range(10):
        nest = program.Repeat(2, nest)
    assert after(engine_class, graph, nest) == 7 + 1024


def test_state_lives_on_between_runs(engine_class, graph):
    """
    Initial values are applied when the engine is made, not by run; vertex state lives on too.
    """
    n = graph.add_variable(UNSIGNED_INT, (), name="n", tile=0)
    graph.set_initial_value(n, 5)
    compute_set = graph.add_compute_set("count")
    vertex = graph.add_vertex(compute_set, Counter, {"x": n}, tile=0)
    graph.set_initial_value(vertex["calls"], 10)
    graph.create_host_read("n", n)
    assert after(engine_class, graph, program.Execute(compute_set), runs=3) == 5 + 11 + 12 + 13


def test_programs_of_one_engine_share_memory(engine_class, graph, parts):
    """
    And are run by number.
    """
    _, step = parts
    engine = engine_class(graph, [step, program.Repeat(10, step)])
    engine.run(1)
    engine.run(0)
    engine.run()
    assert engine.read_tensor("n") == 19
    for wrong in (2, -1):
        with pytest.raises(errors.EngineError, match="2 programs"):
            engine.run(wrong)


def test_what_is_built_later_is_not_seen(engine_class, graph, parts):
    """
    The graph stays editable; an engine runs what was there when it was made, a new one sees more.
    """
    _, step = parts
    prog = program.Sequence(step)
    engine = engine_class(graph, prog)
    prog.add(program.Repeat(10, step))
    graph.create_host_write("later", graph.add_variable(FLOAT, (3,), name="later", tile=0))
    engine.run()
    assert engine.read_tensor("n") == 8
    with pytest.raises(errors.UnknownNameError):
        engine.write_tensor("later", np.zeros(3, np.float32))
    assert after(engine_class, graph, prog) == 18


def test_a_program_stops_itself(engine_class, graph, parts):
    """
    With the user's message and tensor; memory can be read after.
    """
    n, step = parts
    for stop, words in [
        (program.ErrorProgram("bad n", n), r"(?s)test_control_flow\.py:\d+: bad n.*9"),
        (program.Abort("enough"), "enough"),
        (program.Abort(), "stopped itself"),
        (program.AbortOnCondition(n, "n is not zero"), "n is not zero"),
    ]:
        engine = engine_class(graph, program.Sequence(step, step, stop, step))
        with pytest.raises(errors.ProgramError, match=words):
            engine.run()
        assert engine.read_tensor("n") == 9


def test_a_condition_that_does_not_hold_aborts_nothing(engine_class, graph, parts):
    """
    The program goes on.
    """
    _, step = parts
    assert after(engine_class, graph, program.Sequence(program.AbortOnCondition(constant(graph, BOOL, False), "no"), step)) == 8


def test_hints_change_nothing(engine_class, graph, parts):
    """
    Sync, AssumeEqualAcrossReplicas; and WriteUndef of something else.
    """
    n, step = parts
    other = graph.add_variable(FLOAT, (3,), name="other", tile=0)
    prog = program.Sequence(program.Sync(), step, program.WriteUndef(other), program.AssumeEqualAcrossReplicas(n), program.Sync("global"))
    assert after(engine_class, graph, prog) == 8


def test_a_measured_sequence_still_runs(engine_class, graph, parts):
    """
    cycle_count changes what is measured in nothing.
    """
    _, step = parts
    prog = program.Sequence(step, step)
    graph.create_host_read("cycles", program.cycle_count(graph, prog, 0))
    engine = engine_class(graph, prog)
    engine.run()
    assert engine.read_tensor("n") == 9
    assert engine.read_tensor("cycles").shape == (2,)


def test_an_engine_takes_programs_only(engine_class, graph):
    """
    A compute set is no program.
    """
    with pytest.raises(errors.GraphError, match="not a program"):
        engine_class(graph, [graph.add_compute_set("cs")])
