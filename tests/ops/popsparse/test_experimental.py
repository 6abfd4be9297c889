"""Block-sparse products and softmax: both engines, against NumPy."""

import numpy as np
import pytest

from popcore import errors, program
from popcore.ops.popsparse import experimental as bs
from popcore.types import FLOAT, HALF, INT
from tests.ops.popops.runs import new_graph, run, values
from tests.ops.popsparse.matrices import whole

NONE, UPPER, LOWER = bs.SubBlockMask.NONE, bs.SubBlockMask.ZERO_UPPER_TRIANGLE, bs.SubBlockMask.ZERO_LOWER_TRIANGLE


def masks(groups, rows, columns, seed=0):
    return (np.random.default_rng(seed).random((groups, rows, columns)) < 0.6).astype(np.uint8)


def expand(blocks, mask, sides):
    """The dense matrices of the groups."""
    h, w = sides
    out, each = [], iter(np.asarray(blocks, np.float64).reshape(-1, h, w))
    for group in mask:
        dense = np.zeros((group.shape[0] * h, group.shape[1] * w))
        for r, c in np.argwhere(group):
            dense[r * h : (r + 1) * h, c * w : (c + 1) * w] = next(each)
        out.append(dense)
    return out


def collect(dense, mask, sides):
    """The opposite."""
    h, w = sides
    return np.concatenate([d[r * h : (r + 1) * h, c * w : (c + 1) * w].reshape(1, -1) for d, g in zip(dense, mask, strict=True) for r, c in np.argwhere(g)])


def outside(shape, rule):
    rows, columns = np.indices(shape)
    return (columns > rows) & (rule is UPPER) | (columns < rows) & (rule is LOWER)


@pytest.mark.parametrize(("transpose", "groups", "dtype", "passes"), [(False, 1, FLOAT, 1), (True, 2, HALF, 1), (False, 2, FLOAT, 3), (True, 1, FLOAT, 1)])
def test_dense_times_sparse(transpose, groups, dtype, passes):
    """
    Groups, the sparse operand transposed, rows in several passes.
    """
    dim, size = (12, 24, 32), (4, 8, 16)
    mask = masks(groups, 2, 3) if transpose else masks(groups, 3, 2)
    sides = (16, 8) if transpose else (8, 16)
    params = bs.BSMatMulParams.for_dense_sparse(dim, size, mask.reshape(-1), transpose, dtype, FLOAT, FLOAT, groups)
    graph, prog = new_graph(), program.Sequence()
    a, b = bs.create_bs_mat_mul_input_lhs(graph, params), bs.create_bs_mat_mul_input_rhs(graph, params)
    assert b.shape == (mask.sum(), 128)
    out = bs.bs_mat_mul(graph, params, prog, a, b, {"numberOfPass": passes})
    x, y = whole(0, a.shape, dtype), whole(1, b.shape, dtype)
    found = run(graph, prog, {a: x, b: y}, {"out": out})["out"]
    right = expand(y, mask, sides)
    wanted = [x[12 * g : 12 * g + 12] @ (right[g].T if transpose else right[g]) for g in range(groups)]
    np.testing.assert_array_equal(found, np.concatenate(wanted))


@pytest.mark.parametrize(("rule", "dtype"), [(NONE, FLOAT), (UPPER, HALF), (LOWER, FLOAT)])
def test_dense_times_dense_where_there_are_blocks(rule, dtype):
    """
    Only the blocks of the mask, triangles of them zeroed.
    """
    dim, size, groups = (24, 12, 32), (8, 4, 8), 2
    mask = masks(groups, 3, 4)
    params = bs.BSMatMulParams.for_dense_dense(dim, size, mask.reshape(-1), dtype, dtype, FLOAT, rule, groups)
    graph, prog = new_graph(), program.Sequence()
    a, b = bs.create_bs_mat_mul_input_lhs(graph, params), bs.create_bs_mat_mul_input_rhs(graph, params)
    out = bs.bs_mat_mul(graph, params, prog, a, b)
    x, y = whole(0, a.shape, dtype), whole(1, b.shape, dtype)
    found = run(graph, prog, {a: x, b: y}, {"out": out})["out"]
    products = [x[24 * g : 24 * g + 24].astype(np.float64) @ y[12 * g : 12 * g + 12] for g in range(groups)]
    wanted = collect([np.where(outside(p.shape, rule), 0, p) for p in products], mask, (8, 8))
    np.testing.assert_array_equal(found, wanted.astype(dtype.numpy))


@pytest.mark.parametrize(("rule", "dtype"), [(NONE, FLOAT), (UPPER, FLOAT), (LOWER, HALF)])
def test_softmax_and_its_gradient(rule, dtype):
    """
    Over the elements that are there; rows without any are zero; in place the same.
    """
    dim, size, groups = (12, 20), (4, 5), 2
    mask = masks(groups, 3, 4)
    mask[0, 1] = 0  # a row of blocks that has none
    mask[1, 2] = [0, 0, 0, 1]  # one that LOWER leaves and UPPER takes out, but for nothing
    shape = (int(mask.sum()), 20)
    graph, prog = new_graph(), program.Sequence()
    x, g, t = (graph.add_variable(dtype, shape, "linear") for _ in range(3))
    out = bs.bs_softmax(graph, x, dim, size, mask.reshape(-1), rule, groups, prog)
    bs.bs_softmax_in_place(graph, t, dim, size, mask.reshape(-1), rule, groups, prog)
    grad = bs.bs_softmax_grad(graph, out, g, dim, size, mask.reshape(-1), prog)
    data, gradient = values(dtype, shape), values(dtype, shape, 1)
    found = run(graph, prog, {x: data, t: data, g: gradient}, {"out": out, "t": t, "grad": grad})
    np.testing.assert_array_equal(found["t"], found["out"])
    soft, back = [], []
    for each, dy, group in zip(expand(data, mask, size), expand(gradient, mask, size), mask, strict=True):
        there = np.kron(group, np.ones(size, bool)).astype(bool) & ~outside(each.shape, rule)
        e = np.where(there, np.exp(each - np.max(each, axis=1, where=there, initial=-1e30, keepdims=True), where=there, out=np.zeros_like(each)), 0)
        y = e / np.maximum(e.sum(axis=1, keepdims=True), 1e-30)
        soft.append(y)
        back.append(y * (dy - (y * dy).sum(axis=1, keepdims=True)))
    tolerance = 2e-3 if dtype is HALF else 2e-6
    np.testing.assert_allclose(found["out"], collect(soft, mask, size), atol=tolerance)
    np.testing.assert_allclose(found["grad"], collect(back, mask, size), atol=8 * tolerance)


def test_mistakes():
    """
    Sizes, masks, types, options: refused at the call.
    """
    graph, prog = new_graph(), program.Sequence()
    make = bs.BSMatMulParams.for_dense_sparse
    params = make((8, 8, 8), (4, 4, 4), [1, 0, 1, 1], False, FLOAT, FLOAT, FLOAT)
    a, b = bs.create_bs_mat_mul_input_lhs(graph, params), bs.create_bs_mat_mul_input_rhs(graph, params)
    half = graph.add_variable(HALF, (8, 8), "linear")
    for kind, call in (
        (errors.ShapeError, lambda: make((8, 9, 8), (4, 4, 4), [1] * 4, False, FLOAT, FLOAT, FLOAT)),
        (errors.ShapeError, lambda: make((8, 8, 8), (4, 4, 4), [1] * 5, False, FLOAT, FLOAT, FLOAT)),
        (errors.ElementTypeError, lambda: make((8, 8, 8), (4, 4, 4), [1] * 4, False, INT, FLOAT, FLOAT)),
        (errors.ShapeError, lambda: bs.bs_mat_mul(graph, params, prog, a, a)),
        (errors.ElementTypeError, lambda: bs.bs_mat_mul(graph, params, prog, half, b)),
        (errors.OptionError, lambda: bs.bs_mat_mul(graph, params, prog, a, b, {"numberOfPasses": 2})),
        (errors.OptionError, lambda: bs.bs_mat_mul(graph, params, prog, a, b, {"numberOfPass": 0})),
        (errors.ShapeError, lambda: bs.bs_softmax(graph, b, (8, 8), (4, 4), [1] * 4, NONE, 1, prog)),
        (errors.ShapeError, lambda: bs.bs_softmax(graph, b, (8, 9), (4, 4), [1] * 3, NONE, 1, prog)),
    ):
        with pytest.raises(kind, match="try: "):
            call()
    assert not prog.programs
