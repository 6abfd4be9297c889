"""One element of each row."""

import numpy as np
import pytest

from popcore import errors, program
from popcore.ops import popops
from popcore.types import FLOAT, HALF, INT, UNSIGNED_INT
from tests.ops.popops.runs import new_graph, run, values


@pytest.mark.parametrize("dtype", [FLOAT, HALF], ids=repr)
@pytest.mark.parametrize("columns", [1, 4, 65])
def test_select_and_update(dtype, columns):
    """
    A masked row gives 0 and stays; an index outside gives NaN, and makes the row NaN.
    """
    graph, prog = new_graph(), program.Sequence()
    t, at = graph.add_variable(dtype, (columns, 5), "linear").transpose(), graph.add_variable(UNSIGNED_INT, (5,), "linear")
    out = popops.select_scalar_from_rows(graph, t, at, prog)
    popops.update_scalar_in_rows(graph, t, at, prog)
    x, index = values(dtype, (5, columns)), np.array([0, popops.MASKED_LABEL_CODE, columns - 1, columns, 2**31], np.uint32)
    found = run(graph, prog, {t: x, at: index}, {"out": out, "t": t})
    nan = np.float16("nan")
    np.testing.assert_array_equal(found["out"], np.array([x[0, 0], 0, x[2, -1], nan, nan], dtype.numpy))
    x[[0, 2], [0, columns - 1]] -= 1
    x[3:] = nan
    np.testing.assert_array_equal(found["t"], x)


def test_mistakes():
    """
    Shapes and types.
    """
    graph, prog = new_graph(), program.Sequence()
    t, at = graph.add_variable(FLOAT, (4, 3), "linear"), graph.add_variable(UNSIGNED_INT, (4,), "linear")
    for kind, call in (
        (errors.ShapeError, lambda: popops.select_scalar_from_rows(graph, t, at[:3], prog)),
        (errors.ElementTypeError, lambda: popops.select_scalar_from_rows(graph, t, at.reinterpret(INT), prog)),
        (errors.ElementTypeError, lambda: popops.update_scalar_in_rows(graph, t.reinterpret(INT), at, prog)),
        (errors.GraphError, lambda: popops.update_scalar_in_rows(graph, t[:1].broadcast(4, 0), at, prog)),
    ):
        with pytest.raises(kind, match="try: "):
            call()
    assert not prog.programs
