"""Graph functions: one copy of some steps, called for several tensors."""

import numpy as np
import pytest

from popcore import errors, program
from popcore.ops import popops
from popcore.ops.poputil import graphfn
from popcore.types import FLOAT
from tests.ops.popops.runs import new_graph, run


@pytest.mark.parametrize("inlined", [False, True])
def test_arguments_go_in_and_come_out(inlined):
    """
    Of each kind; the steps are there once, unless inlined.
    """
    graph, prog = new_graph(), program.Sequence()
    a, b, c, d = (graph.add_variable(FLOAT, (3,), "linear") for _ in range(4))

    def body(params, steps):
        popops.add_in_place(graph, params[1], params[0], steps)
        popops.map_with_output(graph, popops.expr.Square(popops.expr._1), [params[0]], params[2], steps)
        params[3] = popops.neg(graph, params[0], steps)

    signature = [graphfn.input(a), graphfn.inout(b), graphfn.output(c), graphfn.created("made")]
    function = graphfn.VoidFunction(graph, signature, body, inlined, "body")
    sets = len(graph.compute_sets)
    first, second = [a, b, c, None], [c, d, a, None]
    function(first, prog)
    function(second, prog)
    assert len(graph.compute_sets) == sets
    writes = {t: np.arange(3, dtype=np.float32) + k for k, t in enumerate((a, b, c, d))}
    found = run(graph, prog, writes, {"a": a, "b": b, "c": c, "d": d, "one": first[3], "two": second[3]})
    x = np.arange(3, dtype=np.float32)
    for name, wanted in {"b": 2 * x + 1, "c": x**2, "one": -x, "d": x + 3 + x**2, "two": -(x**2), "a": x**4}.items():
        np.testing.assert_array_equal(found[name], wanted, err_msg=name)


def test_functions_that_return():
    """
    A program, or a tensor.
    """
    graph, prog = new_graph(), program.Sequence()
    a, b = (graph.add_variable(FLOAT, (2,), "linear") for _ in range(2))

    def doubled(params):
        steps = program.Sequence()
        popops.add_in_place(graph, params[0], params[0], steps)
        return steps

    double = graphfn.ProgramFunction(graph, [graphfn.inout(a)], doubled)
    plus = graphfn.TensorFunction(graph, [graphfn.input(a), graphfn.input(b)], lambda p, steps: popops.add(graph, p[0], p[1], steps))
    prog.add(double([a]))
    out = plus([a, b], prog)
    found = run(graph, prog, {a: np.ones(2, np.float32), b: np.full(2, 5, np.float32)}, {"out": out, "a": a})
    assert (found["out"].tolist(), found["a"].tolist()) == ([7, 7], [2, 2])
    with pytest.raises(errors.GraphError):
        double([a, b])
    with pytest.raises(errors.GraphError, match="made"):
        graphfn.VoidFunction(graph, [graphfn.created("made")], lambda params, steps: None)
