"""Known traps, group F: loops, branches, functions, deep programs, options."""

import numpy as np
import pytest

from popcore import BOOL, FLOAT, INT, UNSIGNED_INT, Engine, ReferenceEngine, errors, program
from popcore.program import Call, Copy, Execute, If, Repeat, RepeatWhileFalse, RepeatWhileTrue, Sequence, Switch
from tests.cases.codelets import AddTo, Below, Count, Refuse


@pytest.fixture
def counter(bench):
    """A counter that starts at 7; ``step(by, name)`` gives a program that adds ``by``."""
    x = bench.variable("x", 7, INT)

    def step(by, name="step"):
        compute_set = bench.graph.add_compute_set(name)
        bench.vertex(Count, {"x": x, "by": by}, compute_set=compute_set)
        return Execute(compute_set)

    step.x = x
    return step


NOTHING = {
    "Repeat of 0": lambda step, true, false: Repeat(0, step),
    "empty Sequence": lambda step, true, false: Sequence(),
    "empty Repeat": lambda step, true, false: Repeat(1000, Sequence()),
    "RepeatWhileTrue settled": lambda step, true, false: RepeatWhileTrue(Sequence(), false, step),
    "RepeatWhileFalse settled": lambda step, true, false: RepeatWhileFalse(Sequence(), true, step),
    "If without branches": lambda step, true, false: If(true, Sequence(), Sequence()),
    "If without an else": lambda step, true, false: If(false, step),
    "Switch without cases": lambda step, true, false: Switch(false.reinterpret("unsigned char"), {}),
    "Call of nothing": lambda step, true, false: Call(true.graph.add_function(Sequence())),
}


@pytest.mark.parametrize("kind", NOTHING)
def test_f3_a_program_with_nothing_to_do_changes_nothing(any_engine, bench, counter, kind):
    """Case F3: the counter stays at 7, and what follows still runs."""
    true, false = bench.variable("true", True, BOOL), bench.variable("false", False, BOOL)
    nothing = NOTHING[kind](counter(1), true, false)
    engine = any_engine(bench.graph, [nothing, Sequence(nothing, counter(10, "after"))])
    engine.run(0)
    assert engine.read_tensor("x") == 7
    engine.run(1)
    assert engine.read_tensor("x") == 17


@pytest.mark.parametrize(("loop", "settled"), [(RepeatWhileTrue, False), (RepeatWhileFalse, True)])
def test_f3_the_condition_of_a_settled_loop_runs_once(any_engine, bench, counter, loop, settled):
    """Case F3: the body does not run."""
    done = bench.variable("done", settled, BOOL)
    assert bench.run(any_engine, loop(counter(1), done, counter(100, "body"))).read_tensor("x") == 8


def test_f3_the_condition_runs_once_more_than_the_body(any_engine, bench, counter):
    """Case F3: from 7, three bodies of 10 up to 37 and four conditions of 0."""
    conditions, flag = bench.variable("conditions", 0, INT), bench.variable("flag", False, BOOL)
    condition = bench.graph.add_compute_set("condition")
    bench.vertex(Count, {"x": conditions, "by": 1}, compute_set=condition)
    bench.vertex(Below, {"x": counter.x, "limit": 37, "flag": flag}, compute_set=condition)
    engine = bench.run(any_engine, RepeatWhileTrue(Execute(condition), flag, counter(10)))
    assert (engine.read_tensor("x"), engine.read_tensor("conditions")) == (37, 4)


@pytest.mark.parametrize("trips", [0, 1, 2, 3])
def test_f4_a_loop_that_swaps_two_tensors_leaves_them_by_its_trips(any_engine, bench, trips):
    """Case F4: none leaves them as they were."""
    a, b = bench.variable("a", [1.0, 2.0], FLOAT), bench.variable("b", [3.0, 4.0], FLOAT, tile=1)
    c = bench.graph.add_variable(FLOAT, (2,), name="c", tile=2)
    engine = bench.run(any_engine, Repeat(trips, Sequence(Copy(a, c), Copy(b, a), Copy(c, b))))
    found = [engine.read_tensor("a").tolist(), engine.read_tensor("b").tolist()]
    assert found == ([[1, 2], [3, 4]], [[3, 4], [1, 2]])[trips % 2]


@pytest.mark.parametrize("trips", [0, 1, 2, 3])
def test_f4_one_copy_swaps_through_views(any_engine, bench, trips):
    """Case F4: a' = b and b' = a in one step, all read before any is written."""
    x = bench.variable("x", [1, 2, 3, 4], INT)
    bench.graph.set_tile_mapping(x[2:], 1)
    swapped = x.reshape(2, 2).reverse(0)
    engine = bench.run(any_engine, Repeat(trips, Copy(swapped, x.reshape(2, 2))))
    assert engine.read_tensor("x").tolist() == ([1, 2, 3, 4], [3, 4, 1, 2])[trips % 2]


def test_f6_an_outer_tensor_used_twice_in_a_body_lives_once(any_engine, bench):
    """Case F6: and a constant in the body keeps its value in each round."""
    x, y = bench.variable("x", [1, 2], INT), bench.variable("y", [0, 0], INT)
    k = bench.graph.add_constant(INT, (2,), [10, 20], name="k", tile=1)
    first, second = bench.graph.add_compute_set("first"), bench.graph.add_compute_set("second")
    bench.vertex(AddTo[INT], {"x": x, "y": y}, compute_set=first)
    bench.vertex(AddTo[INT], {"x": k, "y": x}, compute_set=second)
    engine = bench.run(any_engine, Repeat(3, Sequence(Execute(first), Execute(second))))
    assert engine.read_tensor("x").tolist() == [31, 62]
    assert engine.read_tensor("y").tolist() == [1 + 11 + 21, 2 + 22 + 42]


def test_f6_variables_whose_lives_do_not_meet_share_memory(bench):
    """Case F6: a tensor is counted once however often a body uses it, and two short-lived ones together."""
    graph = bench.graph
    ends = bench.variable("ends", np.zeros(1000), FLOAT)
    a, b = (graph.add_variable(FLOAT, (1000,), name=n, tile=0) for n in "ab")
    body = Sequence(Copy(ends, a), Copy(a, ends), Copy(a, ends), Copy(ends, b), Copy(b, ends))
    engine = Engine(graph, Repeat(2, body))
    assert engine.profile().memory.by_category["variables"][0] == 2 * 4000


@pytest.fixture
def lives(bench):
    """Variables that the host cannot reach, and programs: "use" another's memory, if it is shared; "set" and "get" what must live on."""
    graph, zeros, seen = bench.graph, bench.variable("zeros", [0, 0], INT), bench.variable("seen", [5, 5], INT)
    kept, short = (graph.add_variable(INT, (2,), name=name, tile=0) for name in ("kept", "short"))
    flag = graph.add_variable(INT, (), name="flag", tile=0)
    found, given = bench.variable("found", [0, 0], INT), bench.variable("given", [1, 2], INT)
    one = graph.add_constant(INT, (), 1, tile=0)
    use = Sequence(Copy(zeros, short), Copy(short, seen))
    return {
        "use": use,
        "set": Copy(given, kept),
        "get": Copy(kept, found),
        "set flag": Copy(one, flag),
        "if flag": If(flag, Copy(given, found)),
        "swap": Copy(kept.reverse(0), kept),
    }


@pytest.mark.parametrize("order", [("use", "set", "get"), ("get", "use", "set"), ("set", "get", "use"), ("get", "set", "use")])
def test_f6_what_one_program_leaves_to_another_is_not_overwritten(any_engine, bench, lives, order):
    """Case F6: whatever the order the programs are given in, their short-lived variables go elsewhere."""
    engine = any_engine(bench.graph, [lives[name] for name in order])
    for name in ("set", "use", "get"):
        engine.run(order.index(name))
    assert engine.read_tensor("found").tolist() == [1, 2]


@pytest.mark.parametrize("order", [("use", "set flag", "if flag"), ("if flag", "use", "set flag"), ("set flag", "if flag", "use")])
def test_f6_a_predicate_that_one_program_leaves_to_another_is_not_overwritten(any_engine, bench, lives, order):
    """Case F6: a branch reads memory as a Copy does."""
    engine = any_engine(bench.graph, [Sequence(lives[name]) for name in order])
    for name in ("set flag", "use", "if flag"):
        engine.run(order.index(name))
    assert engine.read_tensor("found").tolist() == [1, 2]


def test_f6_what_a_round_leaves_to_the_next_is_not_overwritten(any_engine, bench, lives):
    """Case F6: read before it is written in the body, with another variable's life before that, also in a function."""
    use = Call(bench.graph.add_function(lives["use"]))
    loop = Repeat(3, Sequence(lives["use"], lives["get"], use, lives["swap"], use))
    assert bench.run(any_engine, lives["set"], loop).read_tensor("found").tolist() == [1, 2]


def test_f6_what_a_branch_wrote_in_the_first_round_is_there_in_the_last(any_engine, bench, lives):
    """Case F6: a variable that only one way through the body writes."""
    flag = bench.variable("first", True, BOOL)
    no = bench.graph.add_constant(BOOL, (), False, tile=0)
    loop = Repeat(3, Sequence(lives["use"], If(flag, Sequence(lives["set"], Copy(no, flag))), lives["use"], lives["get"]))
    assert bench.run(any_engine, loop).read_tensor("found").tolist() == [1, 2]


BAD = {
    "If of (2,)": (lambda t: If(t["pair"], Sequence()), r"'pair' \(2,\).*not a scalar"),
    "If of FLOAT": (lambda t: If(t["float"], Sequence()), r"'float' \(\) FLOAT.*neither BOOL nor an integer"),
    "RepeatWhileTrue of (1,)": (lambda t: RepeatWhileTrue(Sequence(), t["one"], Sequence()), r"'one' \(1,\).*not a scalar"),
    "RepeatWhileFalse of FLOAT": (lambda t: RepeatWhileFalse(Sequence(), t["float"], Sequence()), "neither BOOL nor an integer"),
    "Switch of (2,)": (lambda t: Switch(t["pair"], {}), "not a scalar"),
    "Switch of FLOAT": (lambda t: Switch(t["float"], {}), "no integer"),
    "AbortOnCondition of FLOAT": (lambda t: program.AbortOnCondition(t["float"]), "neither BOOL nor an integer"),
}


@pytest.mark.parametrize("kind", BAD)
def test_f7_a_predicate_that_is_no_scalar_or_no_integer_is_refused(graph, kind):
    """Case F7: at the call, naming tensor, shape and type."""
    shapes = {"pair": (BOOL, (2,)), "one": (BOOL, (1,)), "float": (FLOAT, ())}
    tensors = {name: graph.add_variable(dtype, shape, name=name, tile=0) for name, (dtype, shape) in shapes.items()}
    make, says = BAD[kind]
    with pytest.raises(errors.ControlProgramError, match=rf"(?s)test_control_flow\.py:\d+.*{says}.*try:"):
        make(tensors)


@pytest.mark.parametrize(("value", "expected"), [(3, 8), (-1, 9), (4, 107), (0, 107), (-(2**31), 107)])
def test_f7_a_switch_without_the_case_runs_its_default(any_engine, bench, counter, value, expected):
    """Case F7: and each case by its own value, negative ones too."""
    control = bench.variable("control", value, INT, tile=5)
    switch = Switch(control, {3: counter(1), -1: counter(2, "minus one")}, counter(100, "default"))
    assert bench.run(any_engine, switch).read_tensor("x") == expected


def test_f7_a_switch_on_a_large_unsigned_number_finds_its_case(any_engine, bench, counter):
    """Case F7: 2^32 - 1 is not -1."""
    control = bench.variable("control", 2**32 - 1, UNSIGNED_INT)
    assert bench.run(any_engine, Switch(control, {2**32 - 1: counter(1)}, counter(100, "default"))).read_tensor("x") == 8


def nested(kind, flag, inner):
    """``inner`` within one more program of a kind."""
    return {
        "Sequence": lambda: Sequence(inner),
        "Repeat": lambda: Repeat(1, inner),
        "If": lambda: If(flag, inner),
        "else": lambda: If(flag.graph.add_constant(BOOL, (), False, tile=0), Sequence(), inner),
        "Switch": lambda: Switch(flag.reinterpret("unsigned char"), {1: inner}),
        "Call": lambda: Call(flag.graph.add_function(inner)),
    }[kind]()


@pytest.mark.parametrize("kind", ["Sequence", "Repeat", "If", "Switch", "Call"])
@pytest.mark.parametrize("engine_class", [ReferenceEngine, Engine])
def test_f8_a_program_5000_deep_runs(engine_class, bench, counter, kind):
    """Case F8: nothing recurses, whatever the nest is made of."""
    flag, prog = bench.variable("flag", True, BOOL), counter(1)
    for _ in range(5000):
        prog = nested(kind, flag, prog)
    assert bench.run(engine_class, prog).read_tensor("x") == 8
    assert program.text(prog).count("\n") > 5000


def test_f8_a_sequence_of_a_million_copies_runs(bench):
    """Case F8: in the order they stand in."""
    a, b, c = (bench.variable(name, value, INT) for name, value in (("a", 1), ("b", 2), ("c", 3)))
    rotate = [Copy(a, c), Copy(b, a), Copy(c, b)]
    engine = bench.run(Engine, *(rotate * 333_334)[:1_000_000])
    assert [int(engine.read_tensor(name)) for name in "abc"] == [2, 1, 2]


@pytest.mark.parametrize("engine_class", [ReferenceEngine, Engine])
def test_f8_a_function_that_calls_itself_is_refused(engine_class, bench, counter):
    """Case F8: when the engine is made, with the way back to itself."""
    body = Sequence(counter(1), name="body")
    body.add(Call(bench.graph.add_function(body), name="again"))
    with pytest.raises(errors.ControlProgramError, match=r"(?s)calls itself.*'body'.*'again'.*test_control_flow\.py:\d+.*try:"):
        engine_class(bench.graph, body)


@pytest.mark.parametrize("engine_class", [ReferenceEngine, Engine])
def test_f8_two_functions_that_call_each_other_are_refused(engine_class, bench):
    """Case F8: a circle of two."""
    ping, pong = Sequence(name="ping"), Sequence(name="pong")
    ping.add(Call(bench.graph.add_function(pong)))
    pong.add(Call(bench.graph.add_function(ping)))
    with pytest.raises(errors.ControlProgramError, match=r"(?s)calls itself.*'ping'.*'pong'"):
        engine_class(bench.graph, ping)


def test_f8_a_sequence_added_to_itself_is_added_as_it_is(any_engine, bench, counter):
    """Case F8: no circle, twice the steps."""
    twice = Sequence(counter(1), counter(10, "ten"))
    twice.add(twice)
    assert bench.run(any_engine, twice).read_tensor("x") == 7 + 22


def test_f8_a_function_called_from_several_places_is_kept_once(bench, counter):
    """Case F8: the second call adds one instruction."""
    function = bench.graph.add_function(Sequence([counter(1)] * 50))
    once, twice = (Engine(bench.graph, Sequence([Call(function)] * n)) for n in (1, 2))
    assert len(twice.executable.code) == len(once.executable.code) + 1
    twice.run()
    assert twice.read_tensor("x") == 107


def test_f8_a_run_after_one_that_failed_within_a_function_starts_over(any_engine, bench):
    """Case F8: calls that an error left behind are forgotten."""
    x = bench.variable("x", 10, INT)
    bench.vertex(Refuse, {"x": x, "limit": 5})
    inner = bench.graph.add_function(Execute(bench.compute_set))
    engine = any_engine(bench.graph, Call(bench.graph.add_function(Call(inner))))
    for _ in range(3):
        with pytest.raises(errors.VertexError, match="too large"):
            engine.run()
    engine.write_tensor("x", np.int32(0))
    engine.run()
    assert engine.read_tensor("x") == 1


@pytest.mark.parametrize(
    ("given", "near"),
    [
        ("target.workerStackSizeInBytes", ""),
        ("debug.instument", r"debug\.instrument"),
        ("engine.thread", r"engine\.threads"),
        ("Debug.compute", r"debug\.compute"),
    ],
)
def test_f12_an_option_that_does_not_exist_is_refused_with_near_ones(bench, given, near):
    """Case F12: the message has both names."""
    with pytest.raises(errors.OptionError, match=rf"(?s)'{given}'.*try:.*{near}"):
        Engine(bench.graph, Sequence(), options={given: "1024"})


@pytest.mark.parametrize(("key", "value"), [("engine.threads", "many"), ("engine.threads", -1), ("debug.compute", "perhaps"), ("engine.threads", 1.5)])
def test_f12_a_value_that_an_option_cannot_have_is_refused(bench, key, value):
    """Case F12: the message names option and value."""
    with pytest.raises(errors.OptionError, match=rf"(?s){key}.*{value}.*try:"):
        Engine(bench.graph, Sequence(), options={key: value})
