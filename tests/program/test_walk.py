"""Does going through programs stay flat however deep, wide or shared they are?"""

import pytest

from popcore import BOOL, FLOAT, INT, errors, program
from popcore.program import walk
from tests.counting import python_calls


def nested(depth, leaf=None):
    """``depth`` Sequences around a leaf."""
    inner = leaf or program.Sync()
    for _ in range(depth):
        inner = program.Sequence(inner)
    return inner


def test_children_come_in_order(graph):
    """
    Of every kind that has any.
    """
    a, b, c = (program.Sequence(name=n) for n in "abc")
    p = graph.add_variable(BOOL, (), name="p")
    i = graph.add_variable(INT, (), name="i")
    assert list(walk.children(program.Sequence(a, b))) == [a, b]
    assert list(walk.children(program.Repeat(2, a))) == [a]
    assert list(walk.children(program.RepeatWhileTrue(a, p, b))) == [a, b]
    assert list(walk.children(program.If(p, a, b))) == [a, b]
    assert list(walk.children(program.Switch(i, {1: a, 2: b}, c))) == [a, b, c]
    assert list(walk.children(program.Call(graph.add_function(a)))) == [a]
    assert list(walk.children(program.Sync())) == []


def test_depth_is_no_limit():
    """
    Known trap F8, four times as deep: walked, checked, written and freed without recursion.
    """
    deep = nested(20_000)
    assert sum(1 for _ in walk.walk(deep)) == 20_001
    walk.check_acyclic(deep)
    del deep


def test_width_is_no_limit(graph):
    """
    Known trap F8: a million steps.
    """
    x, y = (graph.add_variable(FLOAT, (4,), name=n, tile=0) for n in "xy")
    copy = program.Copy(x, y)
    wide = program.Sequence([copy] * 999_999 + [program.Copy(y, x)])
    assert sum(1 for _ in walk.walk(wide)) == 3
    walk.check_acyclic(wide)


def test_a_copy_is_little_work(graph):
    """
    Programs may have a million different steps.
    """
    x, y = (graph.add_variable(FLOAT, (4,), name=n, tile=0) for n in "xy")
    assert python_calls(lambda: [program.Copy(x, y) for _ in range(200)]) / 200 < 25


def test_what_is_shared_is_walked_once():
    """
    Forty doublings would be a million million steps.
    """
    s = program.Sequence(program.Sync())
    for _ in range(40):
        s = program.Sequence(s, s)
    assert sum(1 for _ in walk.walk(s)) == 42
    walk.check_acyclic(s)


def test_a_function_that_calls_itself_is_refused(graph):
    """
    Known trap F8, directly and through another.
    """
    body = program.Sequence(name="body")
    f = graph.add_function(body)
    g = graph.add_function(program.Sequence(program.Call(f, name="inner")))
    body.add(program.Repeat(2, program.Call(g, name="outer")))
    main = program.Sequence(program.Call(f))
    with pytest.raises(errors.ControlProgramError, match=r"(?s)a function calls itself.*'body'.*'outer'.*'inner'.*'body'.*try: "):
        walk.check_acyclic(main)


def test_a_function_called_twice_is_fine(graph):
    """
    Sharing is what functions are for.
    """
    f = graph.add_function(program.Sequence(program.Sync()))
    g = graph.add_function(program.Sequence(program.Call(f), program.Call(f)))
    walk.check_acyclic(program.Sequence(program.Call(f), program.Call(g)))


def test_a_sequence_inside_its_own_part_is_refused():
    """
    ``add(self)`` copies; ``add(Repeat(2, self))`` cannot be.
    """
    s = program.Sequence(name="loop")
    s.add(program.Repeat(2, s))
    with pytest.raises(errors.ControlProgramError, match=r"(?s)contains itself.*'loop'.*Repeat"):
        walk.check_acyclic(s)


def test_an_engine_refuses_what_calls_itself(engine_class, graph):
    """
    At build, whichever engine.
    """
    body = program.Sequence(name="body")
    body.add(program.Call(graph.add_function(body)))
    with pytest.raises(errors.ControlProgramError, match="calls itself"):
        engine_class(graph, body)


def test_streams_used(graph):
    """
    The streams of the programs given, not of the graph.
    """
    x = graph.add_variable(FLOAT, (4,), name="x")
    a, b = (graph.add_host_to_device_fifo(n, FLOAT, 4) for n in "ab")
    graph.add_host_to_device_fifo("c", FLOAT, 4)
    used = walk.streams_used(program.Sequence(program.Copy(b, x), program.Repeat(2, program.Copy(a, x))), program.Copy(b, x))
    assert list(used) == ["b", "a"]
