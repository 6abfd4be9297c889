"""Products of matrices: do both engines give what NumPy gives, for any size, type, mapping and view?"""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import popcore as pc
from popcore import errors, poputil, program
from popcore.ops import poplin
from popcore.types import FLOAT, HALF, INT

SIZES = [0, 1, 2, 3, 4, 5, 8, 9, 16, 17, 21]


def new(tiles=8, ipus=1):
    return pc.Graph(pc.Device("M2000", num_ipus=ipus, tiles_per_ipu=tiles).target)


@dataclass
class Operand:
    """A tensor to multiply, and how the host gives it values."""

    tensor: pc.Tensor
    whole: pc.Tensor
    view: object  # the same view of a NumPy array


VIEWS = {
    "plain": lambda g, d, s, r: (g.add_variable(d, s), lambda t: t),
    "transposed": lambda g, d, s, r: (g.add_variable(d, (*s[:-2], s[-1], s[-2])), lambda t: t.transpose() if t.ndim == 2 else t.transpose(0, 2, 1)),
    "slice": lambda g, d, s, r: (g.add_variable(d, (*s[:-2], s[-2] + 2, s[-1] + 1)), lambda t: t[..., 1:-1, 1:]),
    "strided": lambda g, d, s, r: (g.add_variable(d, (*s[:-1], 2 * s[-1])), lambda t: t[..., ::2]),
    "reversed": lambda g, d, s, r: (g.add_variable(d, s), lambda t: t[..., ::-1, :]),
}


def operand(graph, dtype, shape, view, mapping, name, created):
    """A tensor of ``shape`` that is ``view`` of a variable, mapped as asked."""
    if view == "created":
        made = created(graph, dtype, name)
        return Operand(made, made, lambda t: t)
    whole, cut = VIEWS[view](graph, dtype, shape, None)
    if mapping == "linear":
        poputil.map_tensor_linearly(graph, whole, 1, 1)
    else:
        graph.set_tile_mapping(whole, mapping % graph.target.num_tiles)
    tensor = cut(whole) if view != "transposed" else whole.transpose() if whole.rank == 2 else whole.dim_shuffle([0, 2, 1])
    return Operand(tensor, whole, cut)


def run(engine, graph, prog, writes, reads):
    made = engine(graph, prog)
    for name, values in writes.items():
        made.write_tensor(name, values)
    made.run()
    return [made.read_tensor(name) for name in reads]


cases = st.fixed_dictionaries(
    {
        "tiles": st.integers(1, 8),
        "sizes": st.tuples(*[st.sampled_from(SIZES)] * 3),
        "groups": st.sampled_from([None, None, None, 0, 1, 3]),
        "dtype": st.sampled_from([FLOAT, HALF]),
        "output": st.sampled_from([None, FLOAT, HALF]),
        "views": st.tuples(*[st.sampled_from(["created", *VIEWS])] * 2),
        "mapping": st.sampled_from(["linear", 0, 5]),
        "proportion": st.sampled_from([0.6, 0.0005]),
        "partials": st.sampled_from(["float", "half"]),
        "seed": st.integers(0, 99),
    }
)


def operands(case, graph):
    m, k, n = case["sizes"]
    lead = () if case["groups"] is None else (case["groups"],)
    options = {"availableMemoryProportion": case["proportion"], "partialsType": case["partials"]}
    kind = "" if case["groups"] is None else "grouped_"
    made = []
    for side, shape, view in (("lhs", (*lead, m, k), case["views"][0]), ("rhs", (*lead, k, n), case["views"][1])):

        def created(graph, dtype, name, side=side):
            create = getattr(poplin, f"create_mat_mul_{kind}input_{side}")
            return create(graph, dtype, (*lead, m, k), (*lead, k, n), name=name, options=options)

        made.append(operand(graph, case["dtype"], shape, view, case["mapping"], side, created))
    return made, kind, options


def values(case, *made):
    rng = np.random.default_rng(case["seed"])
    return [rng.standard_normal(o.whole.shape).astype(case["dtype"].numpy) for o in made]


def expected(a, b, left, right):
    """In double precision, and how far off a sum in FLOAT may be."""
    x, y = a.view(left).astype(np.float64), b.view(right).astype(np.float64)
    return x @ y, np.abs(x) @ np.abs(y)


def close(case, got, wanted, size):
    """``size``: of the sum of magnitudes; where sums are HALF each of 16 products and each part of them is off by what a rounding may be."""
    step = np.finfo(got.dtype).eps
    rounded = 2**-11 * (case["sizes"][1] / 16 + 2) * (case["partials"] == "half" and case["dtype"] is HALF)
    np.testing.assert_array_less(np.abs(got.astype(np.float64) - wanted), (1e-5 + rounded) * size + step * np.abs(wanted) + 1e-7)


@given(cases)
@settings(deadline=None, max_examples=60)
def test_products_are_those_of_numpy_in_both_engines(case):
    graph, prog = new(case["tiles"]), program.Sequence()
    (a, b), kind, options = operands(case, graph)
    product = poplin.mat_mul_grouped if kind else poplin.mat_mul
    out = product(graph, a.tensor, b.tensor, prog, output_type=case["output"], name="product", options=options)
    assert (out.shape, out.dtype) == ((*a.tensor.shape[:-1], b.tensor.shape[-1]), case["output"] or case["dtype"])
    graph.get_tile_mapping(out, require_complete=True)
    for name, t in (("a", a.whole), ("b", b.whole)):
        graph.create_host_write(name, t)
    graph.create_host_read("out", out)
    left, right = values(case, a, b)
    (fast,), (slow,) = (run(e, graph, prog, {"a": left, "b": right}, ["out"]) for e in (pc.Engine, pc.ReferenceEngine))
    assert fast.tobytes() == slow.tobytes()
    close(case, fast, *expected(a, b, left, right))


@given(cases, st.sampled_from(["number", "float", "half"]), st.sampled_from([FLOAT, HALF]))
@settings(deadline=None, max_examples=40)
def test_a_product_is_added_wherever_the_sum_lies(case, factor, sum_type):
    graph, prog = new(case["tiles"]), program.Sequence()
    (a, b), kind, options = operands(case, graph)
    shape = (*a.tensor.shape[:-1], b.tensor.shape[-1])
    view = case["views"][0] if case["views"][0] != "created" else "plain"
    c = operand(graph, sum_type, shape, view, case["mapping"], "c", None)
    k = -1.5
    if factor != "number":
        k = graph.add_constant(FLOAT if factor == "float" else HALF, (), -1.5, tile=0)
    add = poplin.mat_mul_grouped_acc if kind else poplin.mat_mul_acc
    add(graph, c.tensor, k, a.tensor, b.tensor, prog, options=options)
    for name, t in (("a", a.whole), ("b", b.whole), ("c", c.whole)):
        graph.create_host_write(name, t)
    graph.create_host_read("out", c.whole)
    left, right = values(case, a, b)
    before = np.random.default_rng(1).standard_normal(c.whole.shape).astype(sum_type.numpy)
    writes = {"a": left, "b": right, "c": before}
    (fast,), (slow,) = (run(e, graph, prog, writes, ["out"]) for e in (pc.Engine, pc.ReferenceEngine))
    assert fast.tobytes() == slow.tobytes()
    wanted, size = expected(a, b, left, right)
    close(case, c.view(fast), c.view(before).astype(np.float64) - 1.5 * wanted, 1.5 * size + np.abs(c.view(before)))
    untouched = np.ones(before.shape, bool)
    c.view(untouched)[...] = False
    assert np.array_equal(fast[untouched], before[untouched])


@pytest.mark.parametrize(("rows", "k"), [(5, 32), (6, 37), (1, 70), (4, 3)])
def test_sums_of_half_are_rounded_after_every_16_of_k(rows, k, engine_class):
    """On one tile, whose sum is one: is it what NumPy gets that way, bit for bit? With sums in FLOAT it is something else."""
    graph, prog = new(1), program.Sequence()
    a, b = graph.add_variable(HALF, (rows, k), "linear"), graph.add_variable(HALF, (k, 9), "linear")
    graph.create_host_write("a", a)
    graph.create_host_write("b", b)
    graph.create_host_read("out", poplin.mat_mul(graph, a, b, prog, options={"partialsType": "half"}))
    graph.create_host_read("float", poplin.mat_mul(graph, a, b, prog))
    rng = np.random.default_rng(k)
    x, y = (rng.standard_normal(t.shape).astype(np.float16) for t in (a, b))
    got, other = run(engine_class, graph, prog, {"a": x, "b": y}, ["out", "float"])
    wanted = np.zeros((rows, 9), np.float16)
    for first in range(0, k, 16):
        total = wanted.astype(np.float32)
        for i in range(first, min(k, first + 16)):
            total += x[:, i, None].astype(np.float32) * y[i].astype(np.float32)
        wanted = total.astype(np.float16)
    assert got.tobytes() == wanted.tobytes()
    assert (other.tobytes() == got.tobytes()) == (k <= 16)


def test_sums_of_float_stay_so_whatever_partials_are_wanted():
    text = poplin.mat_mul_report_plan(new(), FLOAT, FLOAT, (8, 8), (8, 8), options={"partialsType": "half"})
    assert "sums in FLOAT" in text
    assert "sums in HALF" in poplin.mat_mul_report_plan(new(), HALF, FLOAT, (8, 8), (8, 8), options={"partialsType": "HALF"})


def test_a_result_may_overlap_its_operands(engine_class):
    graph, prog = new(), program.Sequence()
    a = graph.add_variable(FLOAT, (12, 12), name="a")
    poputil.map_tensor_linearly(graph, a)
    poplin.mat_mul_with_output(graph, a, a.transpose(), a, prog)
    graph.create_host_write("a", a)
    graph.create_host_read("a", a)
    x = np.random.default_rng(0).standard_normal((12, 12)).astype(np.float32)
    (got,) = run(engine_class, graph, prog, {"a": x}, ["a"])
    np.testing.assert_allclose(got, x @ x.T, rtol=1e-5, atol=1e-5)


def test_a_result_stays_where_it_is_mapped(engine_class):
    graph, prog = new(), program.Sequence()
    a, b = graph.add_variable(FLOAT, (2, 9, 8), tile=1), graph.add_variable(FLOAT, (2, 8, 7), tile=2)
    out = graph.add_variable(FLOAT, (2, 9, 7), tile=3)
    poplin.mat_mul_grouped_with_output(graph, a, b, out, prog)
    for name, t in (("a", a), ("b", b)):
        graph.create_host_write(name, t)
    graph.create_host_read("out", out)
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal(a.shape).astype(np.float32), rng.standard_normal(b.shape).astype(np.float32)
    (got,) = run(engine_class, graph, prog, {"a": x, "b": y}, ["out"])
    np.testing.assert_allclose(got, x @ y, rtol=1e-5, atol=1e-5)
    assert graph.get_tile_mapping(out)[3] == [(0, 126)]


def test_on_part_of_a_machine(engine_class):
    graph, prog = new(8, ipus=2), program.Sequence()
    stage = graph.create_virtual_graph(8, 16)
    x = graph.add_variable(FLOAT, (16, 40), name="x")
    poputil.map_tensor_linearly(graph, x)
    w = poplin.create_mat_mul_input_rhs(stage, FLOAT, (16, 40), (40, 24), name="w")
    y = poplin.mat_mul(stage, x, w, prog)
    for t in (w, y):
        used = [tile for tile, parts in enumerate(graph.get_tile_mapping(t, require_complete=True)) if parts]
        assert min(used) >= 8
    for name, t in (("x", x), ("w", w)):
        graph.create_host_write(name, t)
    graph.create_host_read("y", y)
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal(x.shape).astype(np.float32), rng.standard_normal(w.shape).astype(np.float32)
    (got,) = run(engine_class, graph, prog, {"x": a, "w": b}, ["y"])
    np.testing.assert_allclose(got, a @ b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ((2, 3), (4, 5), r"'left' FLOAT\[2, 3\].*'right' FLOAT\[4, 5\].*k is 3 and 4"),
        ((2, 3), (3,), "rank 2"),
        ((1, 2, 3), (1, 3, 4), "rank 2"),
    ],
)
def test_operands_that_do_not_fit_are_named(a, b, message):
    graph = new()
    left, right = graph.add_variable(FLOAT, a, name="left", tile=0), graph.add_variable(FLOAT, b, name="right", tile=0)
    with pytest.raises(errors.ShapeError, match=message):
        poplin.mat_mul(graph, left, right, program.Sequence())


def test_types_options_and_results_are_checked():
    graph, prog = new(), program.Sequence()
    a, h, i = (graph.add_variable(d, (4, 4), name=d.__name__, tile=0) for d in (FLOAT, HALF, INT))
    with pytest.raises(errors.ElementTypeError, match=r"'FLOAT' .* is FLOAT, .*'HALF' .* is HALF"):
        poplin.mat_mul(graph, a, h, prog)
    with pytest.raises(errors.ElementTypeError, match="mat_mul of INT"):
        poplin.mat_mul(graph, i, i, prog)
    with pytest.raises(errors.ElementTypeError, match="INT"):
        poplin.mat_mul(graph, a, a, prog, output_type=INT)
    with pytest.raises(errors.OptionError, match="availableMemoryProporton") as caught:
        poplin.mat_mul(graph, a, a, prog, options={"availableMemoryProporton": 0.1})
    assert "availableMemoryProportion" in caught.value.hint
    for options in ({"availableMemoryProportion": 2}, {"partialsType": "double"}, {"fullyConnectedPass": "FORWARD"}):
        with pytest.raises(errors.OptionError, match=next(iter(options))):
            poplin.mat_mul(graph, a, a, prog, options=options)
    with pytest.raises(errors.ShapeError, match=r"is \[4, 4\], .* is \[3, 4\]"):
        poplin.mat_mul_acc(graph, a[:3], 1.0, a, a, prog)
    with pytest.raises(errors.GraphError, match="cannot be written"):
        poplin.mat_mul_with_output(graph, a, a, a[0:1].broadcast(4, 0), prog)
    with pytest.raises(errors.ShapeError, match="factor"):
        poplin.mat_mul_acc(graph, a, a[0], a, a, prog)
    with pytest.raises(errors.GraphError, match="b is 3"):
        poplin.mat_mul(graph, a, 3, prog)
    with pytest.raises(errors.TileMappingError, match="'nowhere'"):
        poplin.mat_mul_acc(graph, graph.add_variable(FLOAT, (4, 4), name="nowhere"), 1.0, a, a, prog)
