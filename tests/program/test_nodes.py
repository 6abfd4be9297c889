"""Are mistakes in programs refused at the call, with the user's line and objects?"""

import numpy as np
import pytest

from popcore import BOOL, FLOAT, HALF, INT, UNSIGNED_INT, errors, program


def here():
    """This file, as messages name it."""
    return r"test_nodes\.py:\d+"


@pytest.fixture
def x(graph):
    """A variable on tile 0."""
    return graph.add_variable(FLOAT, (3, 4), name="x", tile=0)


@pytest.fixture
def flag(graph):
    """A predicate."""
    return graph.add_variable(BOOL, (), name="flag", tile=0)


def test_a_copy_keeps_its_ends_and_line(graph, x):
    """
    Engines read these.
    """
    y = graph.add_variable(FLOAT, (3, 4), name="y", tile=0)
    copy = program.Copy(x, y, name="move", dont_outline=True)
    assert (copy.kind, copy.src, copy.dst, copy.name) == ("tensor", x, y, "move")
    assert copy.site.file == __file__
    assert "move" in repr(copy)


def test_a_copy_of_another_element_type_names_both(graph, x):
    """
    Nothing is converted on the way.
    """
    with pytest.raises(errors.ElementTypeError, match=rf"(?s){here()}.*'x' \(3, 4\) FLOAT.*'y' \(3, 4\) HALF"):
        program.Copy(x, graph.add_variable(HALF, (3, 4), name="y"))


def test_a_copy_of_another_count_names_both(graph, x):
    """
    The message shows names, shapes and counts.
    """
    with pytest.raises(errors.ShapeError, match=rf"(?s){here()}.*'x' \(3, 4\).*'y' \(5,\).*12 elements to 5.*try: "):
        program.Copy(x, graph.add_variable(FLOAT, (5,), name="y"))


def test_a_copy_between_shapes_needs_a_flat_side(graph, x):
    """
    (3, 4) to (4, 3) could mean two things; to (12,) only one.
    """
    y = graph.add_variable(FLOAT, (4, 3), name="y")
    with pytest.raises(errors.ShapeError, match="the shapes differ"):
        program.Copy(x, y)
    program.Copy(x, y.flatten())
    program.Copy(x.flatten(), y)
    one = graph.add_variable(FLOAT, (), name="one")
    program.Copy(x[0:1, 0:1], one)


def test_a_copy_into_a_constant_is_refused(graph, x):
    """
    Constants are for reading.
    """
    constant = graph.add_constant(FLOAT, (3, 4), 1.0, name="k")
    with pytest.raises(errors.ControlProgramError, match="constant 'k'"):
        program.Copy(x, constant)
    program.Copy(constant, x)


def test_a_copy_into_aliases_is_refused(graph, x):
    """
    Two values cannot meet in one element; reading one twice is fine.
    """
    row = graph.add_variable(FLOAT, (1, 4), name="row")
    with pytest.raises(errors.ControlProgramError, match="more than once"):
        program.Copy(x, row.broadcast(3, 0))
    program.Copy(row.broadcast(3, 0), x)


def test_a_copy_between_graphs_is_refused(device, x):
    """
    A tensor of another graph has the same look and is elsewhere.
    """
    import popcore as pc

    other = pc.Graph(device.target).add_variable(FLOAT, (3, 4), name="other")
    with pytest.raises(errors.GraphError, match="different graphs"):
        program.Copy(x, other)


def test_a_stream_copy_moves_exactly_its_count(graph, x):
    """
    Also in the right direction, and with the right type.
    """
    stream = graph.add_host_to_device_fifo("in", FLOAT, 12)
    assert program.Copy(stream, x).kind == "stream_in"
    with pytest.raises(errors.ShapeError, match=r"'in' moves 12 elements.*has 4"):
        program.Copy(stream, x[0])
    with pytest.raises(errors.ControlProgramError, match="host to device"):
        program.Copy(x, stream)
    with pytest.raises(errors.ElementTypeError, match=r"(?s)'in'.*FLOAT.*INT"):
        program.Copy(stream, graph.add_variable(INT, (12,), name="i"))


def test_a_remote_copy_moves_whole_rows(graph, x):
    """
    Rows are an int, ints or a tensor; the tensor has as many elements as they have.
    """
    store = graph.add_remote_buffer("store", FLOAT, 4, repeats=5)
    assert program.Copy(store, x[0], 4).rows == (4,)
    assert program.Copy(x, store, [0, 2, 1]).rows == (0, 2, 1)
    index = graph.add_variable(UNSIGNED_INT, (3,), name="index")
    assert program.Copy(store, x, index).rows is index
    with pytest.raises(errors.ValueRangeError, match="5: it has 5 rows"):
        program.Copy(store, x[0], 5)
    with pytest.raises(errors.ControlProgramError, match="no offset"):
        program.Copy(store, x[0])
    with pytest.raises(errors.ShapeError, match="3 rows of 4"):
        program.Copy(store, x[0:2], index)
    with pytest.raises(errors.ControlProgramError, match="FLOAT"):
        program.Copy(store, x, x[0, 0:3])
    with pytest.raises(errors.ControlProgramError, match="neither side is a remote buffer"):
        program.Copy(x[0], x[1], 1)


@pytest.mark.parametrize("ends", [(1, 2), ("x", None), (None, None)])
def test_a_copy_of_something_else_is_refused(ends):
    """
    Neither side is a tensor.
    """
    with pytest.raises(errors.GraphError, match="one side is a tensor"):
        program.Copy(*ends)


@pytest.mark.parametrize("build", [
    lambda p: program.If(p, program.Sequence()),
    lambda p: program.RepeatWhileTrue(program.Sequence(), p, program.Sequence()),
    lambda p: program.RepeatWhileFalse(program.Sequence(), p, program.Sequence()),
    lambda p: program.AbortOnCondition(p),
])  # fmt: skip
def test_a_predicate_is_a_scalar_of_bool_or_integer(graph, build):
    """
    Known trap F7.
    """
    with pytest.raises(errors.ControlProgramError, match=rf"(?s){here()}.*'p' \(2,\) BOOL: not a scalar"):
        build(graph.add_variable(BOOL, (2,), name="p"))
    with pytest.raises(errors.ControlProgramError, match="neither BOOL nor an integer"):
        build(graph.add_variable(FLOAT, (), name="f"))
    with pytest.raises(errors.GraphError, match="not a tensor"):
        build(True)
    build(graph.add_variable(BOOL, (), name="b"))
    build(graph.add_variable(INT, (3,), name="i")[1])


def test_a_switch_takes_an_integer(graph, flag):
    """
    And each value once, if the type can hold it.
    """
    control = graph.add_variable(UNSIGNED_INT, (), name="c")
    switch = program.Switch(control, {1: program.Sequence()})
    switch.add(2, program.Sequence())
    assert [v for v, _ in switch.cases] == [1, 2]
    with pytest.raises(errors.ControlProgramError, match="twice"):
        switch.add(1, program.Sequence())
    with pytest.raises(errors.ValueRangeError, match="-1"):
        switch.add(-1, program.Sequence())
    with pytest.raises(errors.ControlProgramError, match="no integer"):
        program.Switch(flag, [])


@pytest.mark.parametrize("count", [-1, 2.0, "3", True, None, 1 << 32, np.float32(1)])
def test_a_repeat_count_is_a_natural_number(count):
    """
    Known before the program runs, in 32 bits.
    """
    with pytest.raises(errors.ControlProgramError, match="count of a Repeat"):
        program.Repeat(count, program.Sequence())


def test_a_repeat_takes_numpy_integers():
    """
    What a shape or an arange gives.
    """
    assert program.Repeat(np.int64(3), program.Sequence()).count == 3


def test_what_is_no_program_is_refused(graph):
    """
    A compute set is the usual mistake.
    """
    compute_set = graph.add_compute_set("cs")
    with pytest.raises(errors.ControlProgramError, match=r"Execute\(cs\)"):
        program.Sequence(compute_set)
    with pytest.raises(errors.ControlProgramError, match="body of a Repeat"):
        program.Repeat(1, compute_set)
    with pytest.raises(errors.GraphError, match="not a compute set"):
        program.Execute(program.Sequence())
    with pytest.raises(errors.GraphError, match="not a function"):
        program.Call(program.Sequence())
    with pytest.raises(errors.ControlProgramError, match="not a program"):
        program.Sequence([program.Sequence(), 3])


def test_sequences_are_built_three_ways():
    """
    Programs, one list of them, or nothing and add.
    """
    a, b = program.Sequence(name="a"), program.Sequence(name="b")
    assert program.Sequence(a, b).programs == program.Sequence([a, b]).programs == [a, b]
    s = program.Sequence()
    s.add(a)
    assert s.programs == [a]
    assert s


def test_what_is_added_later_to_a_part_counts():
    """
    A Sequence holds its parts, not copies of them.
    """
    outer, inner = program.Sequence(), program.Sequence()
    outer.add(inner)
    inner.add(program.Sync())
    assert len(outer.programs[0]) == 1


def test_a_sequence_added_to_itself_is_copied():
    """
    Poplar's rule: programs are values there.
    """
    s = program.Sequence(program.Sync())
    s.add(s)
    assert len(s) == 2
    assert s.programs[1].programs == s.programs[:1]


def test_print_tensor_takes_a_title_or_not(x):
    """
    Without one, the variable's name.
    """
    assert program.PrintTensor("t", x).title == "t"
    assert program.PrintTensor(x).title == "x"
    with pytest.raises(errors.GraphError, match="not text"):
        program.PrintTensor(3, x)


def test_sync_kinds():
    """
    An enumeration, or its words.
    """
    assert program.Sync("global").kind is program.Sync(program.SyncType.GLOBAL).kind
    with pytest.raises(errors.ControlProgramError, match=r"SyncType\.EXTERNAL"):
        program.Sync("sometimes")


def test_cross_replica_copy_names_a_sender_for_each(graph, x):
    """
    One replica here, so only {0: 0} will do.
    """
    y = graph.add_variable(FLOAT, (3, 4), name="y")
    assert program.CrossReplicaCopy(x, y, {0: 0}).senders == (0,)
    with pytest.raises(errors.ControlProgramError, match="1 replicas"):
        program.CrossReplicaCopy(x, y, {0: 1})
    with pytest.raises(errors.ControlProgramError, match="1 replicas"):
        program.CrossReplicaCopy(x, y, [0, 0])


def test_cycle_count_wraps_in_place(graph):
    """
    The sequence the caller holds is the measured one.
    """
    s = program.Sequence(program.Sync())
    counter = program.cycle_count(graph, s, 3)
    assert counter.shape == (2,)
    assert counter.dtype is UNSIGNED_INT
    (measured,) = s.programs
    assert isinstance(measured, program.CycleCount)
    assert isinstance(measured.body.programs[0], program.Sync)


def test_nodes_compare_by_identity():
    """
    And hash, so that walks can tell them apart; deep ones too.
    """
    assert program.Sequence() != program.Sequence()
    assert len({program.Sync(), program.Sync()}) == 2
