"""Does each kind of Copy move the right elements, on each engine?"""

import numpy as np
import pytest

from popcore import FLOAT, HALF, INT, UNSIGNED_INT, errors, program


def variable(graph, dtype, shape, name, values=None, tile=0):
    """A variable with a host read, and initial values if given."""
    made = graph.add_variable(dtype, shape, name=name, tile=tile)
    if values is not None:
        graph.set_initial_value(made, values)
    graph.create_host_read(name, made)
    return made


def ran(engine_class, graph, *programs):
    """An engine that ran these once."""
    engine = engine_class(graph, program.Sequence(*programs))
    engine.run()
    return engine


def test_overlapping_copies_read_before_they_write(engine_class, graph):
    """
    Known trap B15: the old values arrive, in both directions.
    """
    x = variable(graph, INT, (10,), "x", range(10))
    y = variable(graph, INT, (10,), "y", range(10))
    engine = ran(engine_class, graph, program.Copy(x[0:5], x[3:8]), program.Copy(y[3:8], y[0:5]))
    assert engine.read_tensor("x").tolist() == [0, 1, 2, 0, 1, 2, 3, 4, 8, 9]
    assert engine.read_tensor("y").tolist() == [3, 4, 5, 6, 7, 5, 6, 7, 8, 9]


def test_a_reversed_copy_onto_itself(engine_class, graph):
    """
    Every element has to be read first.
    """
    x = variable(graph, HALF, (7,), "x", range(7))
    assert ran(engine_class, graph, program.Copy(x, x.reverse(0))).read_tensor("x").tolist() == [6, 5, 4, 3, 2, 1, 0]


def test_a_copy_between_views_keeps_their_order(engine_class, graph):
    """
    Where elements live changes no value.
    """
    x = variable(graph, INT, (3, 4), "x", np.arange(12).reshape(3, 4))
    y = variable(graph, INT, (4, 3), "y")
    for r in range(3):
        graph.set_tile_mapping(x[r], r + 1)
        graph.set_tile_mapping(y.transpose()[r], 5 - r)
    assert np.array_equal(ran(engine_class, graph, program.Copy(x.transpose(), y)).read_tensor("y"), np.arange(12).reshape(3, 4).T)


def test_a_broadcast_is_copied_out(engine_class, graph):
    """
    The source may show an element many times.
    """
    row = variable(graph, FLOAT, (1, 3), "row", [[1, 2, 3]])
    y = variable(graph, FLOAT, (4, 3), "y", tile=3)
    assert ran(engine_class, graph, program.Copy(row.broadcast(4, 0), y)).read_tensor("y").tolist() == [[1, 2, 3]] * 4


def test_a_copy_of_nothing(engine_class, graph):
    """
    Zero elements are a tensor too.
    """
    x, y = variable(graph, FLOAT, (0, 3), "x"), variable(graph, FLOAT, (0,), "y")
    assert ran(engine_class, graph, program.Copy(x, y)).read_tensor("y").shape == (0,)


def test_bits_are_not_values(engine_class, graph):
    """
    Reinterpret shows the same bits as another type.
    """
    x = variable(graph, FLOAT, (2,), "x", [1.0, -2.0])
    y = variable(graph, UNSIGNED_INT, (2,), "y", tile=1)
    assert ran(engine_class, graph, program.Copy(x.reinterpret(UNSIGNED_INT), y)).read_tensor("y").tolist() == [0x3F800000, 0xC0000000]


def test_initial_values_and_nothing_else(engine_class, graph):
    """
    What has no initial value is 0; a part of a variable may have some.
    """
    x = variable(graph, FLOAT, (5,), "x")
    graph.set_initial_value(x[1:3], [1.5, 2.5])
    k = graph.add_constant(FLOAT, (2, 2), [[1, 2], [3, 4]], tile=2)
    graph.create_host_read("k", k)
    engine = ran(engine_class, graph)
    assert engine.read_tensor("x").tolist() == [0, 1.5, 2.5, 0, 0]
    assert engine.read_tensor("k").tolist() == [[1, 2], [3, 4]]


def test_remote_rows_come_and_go(engine_class, graph):
    """
    Fixed rows, several at once, and rows that a tensor names.
    """
    x = variable(graph, INT, (3, 2), "x", [[1, 2], [3, 4], [5, 6]])
    y = variable(graph, INT, (2, 2), "y")
    index = variable(graph, UNSIGNED_INT, (2,), "index", [3, 0])
    store = graph.add_remote_buffer("store", INT, 2, repeats=4)
    engine = ran(engine_class, graph, program.Copy(x, store, [0, 2, 3]), program.Copy(store, y, index))
    assert engine.read_tensor("y").tolist() == [[5, 6], [1, 2]]
    assert engine.copy_from_remote_buffer("store", 1).tolist() == [0, 0]
    engine.copy_to_remote_buffer(np.array([7, 8], np.int32), "store", 3)
    engine.run()
    assert engine.read_tensor("y").tolist() == [[5, 6], [1, 2]]  # the program stored row 3 again
    assert engine.copy_from_remote_buffer("store", 3).tolist() == [5, 6]


def test_stores_and_loads_of_one_row_keep_their_order(engine_class, graph):
    """
    Known trap G5: store, store, load, store, load.
    """
    a, b, c = (variable(graph, INT, (1,), n, [v]) for n, v in (("a", 1), ("b", 2), ("c", 3)))
    t0, t1 = variable(graph, INT, (1,), "t0"), variable(graph, INT, (1,), "t1")
    store = graph.add_remote_buffer("store", INT, 1, repeats=2)
    ends = [(a, store, 0), (b, store, 1), (store, t0, 0), (c, store, 0), (store, t1, 0)]
    engine = ran(engine_class, graph, *(program.Copy(*e) for e in ends))
    assert (engine.read_tensor("t0").tolist(), engine.read_tensor("t1").tolist()) == ([1], [3])


def test_a_row_that_is_not_there(engine_class, graph):
    """
    Known at run time only.
    """
    index = variable(graph, INT, (), "index", -1)
    x = variable(graph, FLOAT, (2,), "x")
    store = graph.add_remote_buffer("store", FLOAT, 2, repeats=4)
    engine = engine_class(graph, program.Copy(store, x, index))
    with pytest.raises(errors.EngineError, match="row -1 of remote buffer 'store'"):
        engine.run()
