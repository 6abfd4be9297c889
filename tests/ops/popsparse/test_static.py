"""Sparse products of a known pattern: both engines, against NumPy's dense products. Numbers are whole, so that sums are exact."""

import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import popcore as pc
from popcore import errors, program
from popcore.ops import poplin, popops, popsparse
from popcore.ops.popsparse import static_
from popcore.types import FLOAT, HALF, INT
from tests.ops.popops.runs import mapped, new_graph, run
from tests.ops.popsparse.matrices import as_format, sparse, to_dense, whole

DRAWN = settings(deadline=None, max_examples=15, suppress_health_check=list(HealthCheck))
PARAMS = static_.MatMulParams


@DRAWN
@given(
    st.data(), st.integers(0, 1 << 16), st.integers(0, 9), st.integers(0, 9), st.integers(0, 9), st.sampled_from([1, 1, 4]), st.sampled_from([0.0, 0.3, 1.0]),
    st.sampled_from(["coo", "csr", "csc"]), st.sampled_from([FLOAT, HALF]), st.booleans(), st.booleans(), st.booleans(),
)  # fmt: skip
def test_products(data, seed, m, k, n, side, density, fmt, dtype, on_right, flip, flip_dense):
    """
    Any sizes, formats, blocks and types; sparse on either side, either operand transposed, the dense one any view on any tiles.
    """
    _, dense, matrix = sparse(seed, m, k, side, density, fmt)
    graph, prog = new_graph(), program.Sequence()
    m, k = dense.shape
    if on_right:
        params = PARAMS.create_for_dense_sparse(1, n, m, k)
        s = static_.create_dense_sparse_mat_mul_rhs(graph, dtype, params, matrix)
        shape = (n, k if flip else m)
    else:
        params = PARAMS.create_for_sparse_dense(1, m, k, n)
        s = static_.create_sparse_dense_mat_mul_lhs(graph, dtype, params, matrix)
        shape = (m if flip else k, n)
    t, view, see = data.draw(mapped(graph, dtype, shape[::-1] if flip_dense else shape))
    if on_right:
        out = static_.dense_sparse_mat_mul(graph, view, s, prog, flip_dense, flip)
    else:
        out = static_.sparse_dense_mat_mul(graph, s, view, prog, flip, flip_dense)
    values = static_.Partitioner(params, dtype, graph.target).create_sparsity_data_impl(matrix).nz_values
    assert values.shape == s.get_nz_values_tensor().shape
    x = whole(seed, t.shape, dtype)
    found = run(graph, prog, {s.nz_values: values, t: x}, {"out": out})["out"]
    left = dense.T if flip else dense
    right = see(x).T.astype(np.float64) if flip_dense else see(x).astype(np.float64)
    np.testing.assert_array_equal(found, (right @ left if on_right else left @ right).astype(dtype.numpy))


@pytest.mark.parametrize(("side", "sizes"), [(8, (5, 3, 40)), (16, (2, 3, 7)), (1, (30, 40, 33))])
def test_operands_made_for_a_product(side, sizes):
    """
    Dense operands as created, of one group; batch and columns split over tiles as well as rows.
    """
    m, k, n = sizes
    _, dense, matrix = sparse(3, m, k, side, 0.5, "csr")
    graph, prog = new_graph(36), program.Sequence()
    left, right = PARAMS.create_for_sparse_dense(1, *dense.shape, n), PARAMS.create_for_dense_sparse(1, n, *dense.shape)
    a = static_.create_sparse_dense_mat_mul_lhs(graph, FLOAT, left, matrix)
    b = static_.create_dense_sparse_mat_mul_rhs(graph, FLOAT, right, matrix)
    x = static_.create_sparse_dense_mat_mul_rhs(graph, FLOAT, left, matrix)
    z = static_.create_dense_sparse_mat_mul_lhs(graph, FLOAT, right, matrix)
    reads = {"y": static_.sparse_dense_mat_mul(graph, a, x, prog), "w": static_.dense_sparse_mat_mul(graph, z, b, prog)}
    writes = {x: whole(0, x.shape, FLOAT), z: whole(1, z.shape, FLOAT)}
    for t, params in ((a, left), (b, right)):
        writes[t.nz_values] = static_.Partitioner(params, FLOAT, graph.target).create_sparsity_data_impl(matrix).nz_values
    found = run(graph, prog, writes, reads)
    np.testing.assert_array_equal(found["y"], (dense @ writes[x][0])[None])
    np.testing.assert_array_equal(found["w"], (writes[z][0] @ dense)[None])


@given(st.integers(0, 1 << 16), st.sampled_from([1, 4, 8]), st.sampled_from(["coo", "csr", "csc"]), st.booleans())
@example(0, 1, "coo", True)
@settings(max_examples=20)
def test_a_partitioner_gives_back_what_it_got(seed, side, fmt, on_right):
    """
    In all three formats.
    """
    _, dense, matrix = sparse(seed, 5, 7, side, 0.4, fmt)
    target = new_graph().target
    params = PARAMS.create_for_dense_sparse(1, 3, *dense.shape) if on_right else PARAMS.create_for_sparse_dense(1, *dense.shape, 3)
    partitioner = static_.Partitioner(params, FLOAT, target)
    data = partitioner.create_sparsity_data_impl(matrix)
    for fmt in ("coo", "csr", "csc"):
        np.testing.assert_array_equal(to_dense(getattr(partitioner, f"sparsity_data_impl_to_{fmt}_matrix")(data), dense.shape), dense)


def test_a_stencil_moves_halos_only():
    """
    Of a square matrix with neighbours in a row, each tile gets a few elements from others, however large it is; work is shared out evenly.
    """
    size = 4096
    dense_grid = np.eye(size, dtype=bool) | np.eye(size, k=1, dtype=bool) | np.eye(size, k=-1, dtype=bool)
    matrix = as_format(dense_grid.astype(np.float32), dense_grid, 1, "csr")
    device = pc.Device("M2000", num_ipus=1, tiles_per_ipu=64)
    graph, prog = pc.Graph(device.target), program.Sequence()
    params = PARAMS.create_for_sparse_dense(1, size, size, 1)
    s = static_.create_sparse_dense_mat_mul_lhs(graph, FLOAT, params, matrix)
    x = static_.create_sparse_dense_mat_mul_rhs(graph, FLOAT, params, matrix)
    y = static_.sparse_dense_mat_mul(graph, s, x, prog)
    assert graph.get_tile_mapping(x[0]) == graph.get_tile_mapping(y[0])
    held = [sum(e - b for b, e in m) for m in graph.get_tile_mapping(s.nz_values)]
    assert max(held) <= 1.1 * sum(held) / 64
    engine = pc.Engine(graph, prog, device=device)
    engine.run()
    assert engine.profile().bytes.exchange <= 64 * 2 * 8


def test_a_graph_convolution():
    """
    Two layers, relu(A (X W)), over a graph in which a few nodes have most of the neighbours, some none: as NumPy has it.
    """
    rng = np.random.default_rng(0)
    nodes, features = 150, (9, 16, 5)
    adjacency = rng.random((nodes, nodes)) < 0.6 / (1 + np.arange(nodes))[:, None]
    dense = adjacency / np.maximum(adjacency.sum(axis=1, keepdims=True), 1)
    matrix = as_format(dense, adjacency, 1, "csr")
    graph, prog = new_graph(12), program.Sequence()
    params = PARAMS.create_for_sparse_dense(1, nodes, nodes, 16)
    a = static_.create_sparse_dense_mat_mul_lhs(graph, FLOAT, params, matrix)
    x = graph.add_variable(FLOAT, (nodes, features[0]), "linear")
    writes = {x: rng.standard_normal(x.shape).astype(np.float32)}
    writes[a.nz_values] = static_.Partitioner(params, FLOAT, graph.target).create_sparsity_data_impl(matrix).nz_values
    hidden, wanted = x, writes[x].astype(np.float64)
    for size in itertools.pairwise(features):
        w = graph.add_variable(FLOAT, size, "linear")
        writes[w] = rng.standard_normal(size).astype(np.float32)
        hidden = popops.relu(graph, static_.sparse_dense_mat_mul(graph, a, poplin.mat_mul(graph, hidden, w, prog), prog), prog)
        wanted = np.maximum(dense @ (wanted @ writes[w]), 0)
    np.testing.assert_allclose(run(graph, prog, writes, {"out": hidden})["out"], wanted, rtol=1e-4, atol=1e-5)


def test_mistakes():
    """
    Indices, sizes, sides, types and options: refused at the call, which says what was wrong.
    """
    graph, prog = new_graph(), program.Sequence()
    _, _, matrix = sparse(0, 4, 6)
    params = PARAMS.create_for_sparse_dense(1, 4, 6, 2)
    s = static_.create_sparse_dense_mat_mul_lhs(graph, FLOAT, params, matrix)
    x, whole_numbers = graph.add_variable(FLOAT, (6, 2), "linear"), graph.add_variable(INT, (6, 2), "linear")

    def create(*fields, block=(1, 1), kind=popsparse.COOMatrix):
        return lambda: static_.create_sparse_dense_mat_mul_lhs(graph, FLOAT, params, kind(*fields, block))

    partitioner = static_.Partitioner(params, FLOAT, graph.target)
    for kind, call in (
        (errors.ShapeError, create(4, 6, [1.0], [6], [0])),
        (errors.ShapeError, create(4, 6, [1.0], [0], [-1])),
        (errors.ShapeError, create(4, 6, [1.0, 2.0], [1, 1], [2, 2])),
        (errors.ShapeError, create(4, 6, [1.0, 2.0], [1], [2])),
        (errors.ShapeError, create(5, 6, [1.0], [1], [2])),
        (errors.ShapeError, create(4, 6, [1.0] * 4, [0], [0], block=(2, 2))),
        (errors.ShapeError, create(4, 6, [1.0] * 16, [0], [0], block=(4, 4))),
        (errors.ShapeError, create(4, 6, [1.0], [1], [0, 1, 1], kind=popsparse.CSRMatrix)),
        (errors.ShapeError, create(4, 6, [1.0], [1], [0, 1, 0, 1, 1], kind=popsparse.CSRMatrix)),
        (errors.ShapeError, lambda: PARAMS.create_for_sparse_dense(2, 4, 6, 2)),
        (errors.GraphError, lambda: static_.create_dense_sparse_mat_mul_rhs(graph, FLOAT, params, matrix)),
        (errors.ElementTypeError, lambda: static_.create_sparse_dense_mat_mul_lhs(graph, INT, params, matrix)),
        (errors.OptionError, lambda: static_.create_sparse_dense_mat_mul_lhs(graph, FLOAT, params, matrix, options={"availableMemoryProportio": 1})),
        (errors.OptionError, lambda: static_.create_sparse_dense_mat_mul_lhs(graph, FLOAT, params, matrix, options={"partialsType": "half"})),
        (errors.ShapeError, lambda: static_.sparse_dense_mat_mul(graph, s, x, prog, True)),
        (errors.ShapeError, lambda: static_.sparse_dense_mat_mul(graph, s, x[0], prog)),
        (errors.ElementTypeError, lambda: static_.sparse_dense_mat_mul(graph, s, whole_numbers, prog)),
        (errors.GraphError, lambda: static_.sparse_dense_mat_mul(graph, x, x, prog)),
        (errors.GraphError, lambda: partitioner.sparsity_data_impl_to_coo_matrix(static_.SparsityDataImpl(np.zeros(3)))),
    ):
        with pytest.raises(kind, match="try: "):
            call()
    assert not prog.programs
