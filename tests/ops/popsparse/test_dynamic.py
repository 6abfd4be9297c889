"""Sparse products whose pattern changes from run to run: both engines, against NumPy. Numbers are whole, so that sums are exact."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import popcore as pc
from popcore import errors, program
from popcore.ops import popsparse
from popcore.ops.popsparse import dynamic
from popcore.types import FLOAT, HALF, INT, UNSIGNED_INT
from tests.ops.popops.runs import mapped, new_graph
from tests.ops.popsparse.matrices import sparse, to_dense, whole

DRAWN = settings(deadline=None, max_examples=12, suppress_health_check=list(HealthCheck))
FORMATS = ("coo", "csr", "csc")


def kind(side):
    return dynamic.SparsityParams(block_dimensions=(side, side))


def run_twice(graph, prog, writes, reads):
    """What both engines hold after each of two runs of one engine; ``writes`` gives the arrays of a run."""
    for i, t in enumerate(writes[0]):
        graph.create_host_write(f"write {i}", t)
    for name, t in reads.items():
        graph.create_host_read(name, t)
    found = []
    for engine in (pc.ReferenceEngine(graph, prog), pc.Engine(graph, prog)):
        each = []
        for arrays in writes:
            for i, array in enumerate(arrays.values()):
                engine.write_tensor(f"write {i}", array)
            engine.run()
            each.append({name: engine.read_tensor(name) for name in reads})
        found.append(each)
    for a, b in zip(*found, strict=True):
        for name in reads:
            np.testing.assert_array_equal(a[name], b[name], err_msg=name)
    return found[1]


@DRAWN
@given(
    st.data(), st.integers(0, 1 << 16), st.integers(1, 9), st.integers(1, 9), st.integers(0, 9), st.sampled_from([1, 1, 4]), st.sampled_from([FLOAT, HALF]),
    st.booleans(), st.booleans(),
)  # fmt: skip
def test_products(data, seed, m, k, n, side, dtype, flip, flip_dense):
    """
    Any sizes, blocks and types; either operand transposed, the dense one any view on any tiles; another pattern in the second run.
    """
    graph, prog = new_graph(), program.Sequence()
    params = dynamic.MatMulParams.create_with_nz_ratio(kind(side), 1.0, 1, m * side, k * side, n)
    s = dynamic.create_sparse_dense_mat_mul_lhs(graph, dtype, params)
    shape = (m * side if flip else k * side, n)
    t, view, see = data.draw(mapped(graph, dtype, shape[::-1] if flip_dense else shape))
    out = dynamic.sparse_dense_mat_mul(graph, s, view, prog, flip, flip_dense)
    partitioner = dynamic.Partitioner(params, dtype, graph.target)
    x = whole(seed, t.shape, dtype)
    matrices = [sparse(seed + i, m, k, side, density, FORMATS[i]) for i, density in enumerate((0.3, 0.8))]
    each = [partitioner.create_sparsity_data_impl(matrix) for _, _, matrix in matrices]
    found = run_twice(graph, prog, [{s.meta_info: d.meta_info, s.nz_values: d.nz_values, t: x} for d in each], {"out": out})
    right = see(x).T.astype(np.float64) if flip_dense else see(x).astype(np.float64)
    for got, (_, dense, _) in zip(found, matrices, strict=True):
        np.testing.assert_array_equal(got["out"], ((dense.T if flip else dense) @ right).astype(dtype.numpy))


@pytest.mark.parametrize(
    ("sizes", "side", "dtype", "tiles"), [((20, 30, 7), 1, FLOAT, 6), ((2, 6, 40), 8, FLOAT, 9), ((4, 2, 33), 16, HALF, 4), ((16, 5, 1), 4, HALF, 30)]
)
def test_a_layer_forward_and_backward(sizes, side, dtype, tiles):
    """
    Activations, their gradient, and that of the weights where there are any; rows looked up in the weights and added to.
    """
    m, k, batch = sizes
    graph, prog = new_graph(tiles), program.Sequence()
    params = dynamic.FullyConnectedParams.create_with_nz_ratio(kind(side), 0.7, batch, 1, k * side, m * side)
    w = dynamic.create_fully_connected_weights(graph, dtype, params)
    x = dynamic.create_fully_connected_input(graph, dtype, params)
    dy = graph.add_variable(dtype, (batch, m * side), "linear")
    indices, scale = dynamic.create_indices_tensor(graph, params, 6), graph.add_variable(FLOAT, (), tile=1)
    slices = dynamic.create_slice_tensor(graph, dtype, params, 6)
    reads = {"y": dynamic.fully_connected_fwd(graph, w, x, params, prog), "dx": dynamic.fully_connected_grad_a(graph, w, dy, params, prog)}
    reads["dw"] = dynamic.fully_connected_sparse_grad_w(graph, w.get_meta_info_tensor(), dy, x, params, prog)
    reads["rows"] = dynamic.embedding_slice(graph, w, indices, prog, params)
    dynamic.embedding_update_add(graph, w, slices, indices, scale, prog, params)
    reads["w"] = w.get_nz_values_tensor()
    partitioner = dynamic.Partitioner(params, dtype, graph.target)
    matrices = [sparse(i, m, k, side, density) for i, density in enumerate((0.4, 0.2))]
    data = [partitioner.create_sparsity_data_impl(matrix) for _, _, matrix in matrices]
    at = np.array([0, m * side - 1, 1, 1, 2**32 - 1, m * side], np.uint32)  # twice the same, and none
    dense_writes = {x: whole(1, x.shape, dtype), dy: whole(2, dy.shape, dtype), indices: at, scale: np.float32(2), slices: whole(3, slices.shape, dtype)}
    found = run_twice(graph, prog, [{w.meta_info: d.meta_info, w.nz_values: d.nz_values, **dense_writes} for d in data], reads)
    for got, d, (mask, dense, _) in zip(found, data, matrices, strict=True):
        a, g, u = (dense_writes[t].astype(np.float64) for t in (x, dy, slices))
        np.testing.assert_array_equal(got["y"], (a @ dense.T).astype(dtype.numpy))
        np.testing.assert_array_equal(got["dx"], (g @ dense).astype(dtype.numpy))
        np.testing.assert_array_equal(got["rows"], np.concatenate([dense[at[:4]], np.zeros((2, k * side))]))
        back = {name: partitioner.sparsity_data_impl_to_csr_matrix(dynamic.SparsityDataImpl(d.meta_info, got[name])) for name in ("dw", "w")}
        np.testing.assert_array_equal(to_dense(back["dw"], dense.shape), np.where(mask, g.T @ a, 0).astype(dtype.numpy))
        wanted = dense.copy()
        np.add.at(wanted, at[:4], 2 * u[:4])
        np.testing.assert_array_equal(to_dense(back["w"], dense.shape), np.where(mask, wanted, 0))


@given(st.integers(0, 1 << 16), st.sampled_from([1, 4]), st.sampled_from(FORMATS))
@settings(max_examples=15)
def test_a_partitioner_gives_back_what_it_got(seed, side, fmt):
    """
    In all three formats, on many tiles.
    """
    params = dynamic.MatMulParams.create_with_nz_ratio(kind(side), 0.5, 1, 40 * side, 50 * side, 8)
    partitioner = dynamic.Partitioner(params, FLOAT, new_graph(60).target)
    _, dense, matrix = sparse(seed, 40, 50, side, 0.3, fmt)
    data = partitioner.create_sparsity_data_impl(matrix)
    for other in FORMATS:
        np.testing.assert_array_equal(to_dense(getattr(partitioner, f"sparsity_data_impl_to_{other}_matrix")(data), dense.shape), dense)
    starts = partitioner.get_plan_partitions()
    assert [s[0] for s in starts] == [0, 0, 0]
    assert data.meta_info.size == len(starts[0]) * len(starts[1]) * partitioner.get_meta_info_bucket_elements()


@pytest.mark.parametrize(("ratio", "batch"), [(0.1, 64), (0.002, 1)])
def test_random_patterns_fit_into_buckets(ratio, batch):
    """
    As many values as planned for, anywhere: none of a thousand buckets is too full, of large and of small ones.
    """
    params = dynamic.MatMulParams.create_with_nz_ratio(kind(1), ratio, 1, 1024, 1024, batch)
    partitioner = dynamic.Partitioner(params, FLOAT, pc.Device("M2000", num_ipus=1).target)
    for seed in range(5):
        at = np.sort(np.random.default_rng(seed).choice(1024 * 1024, params.num_non_zero_values, replace=False))
        partitioner.create_sparsity_data_impl(popsparse.COOMatrix(1024, 1024, np.ones(at.size), at % 1024, at // 1024))


def test_too_many_values_are_refused_with_the_amounts():
    """
    In all, and in one bucket, where the error says which option would do; with that it does.
    """
    target = new_graph(16).target
    params = dynamic.MatMulParams.create_with_nz_ratio(kind(1), 0.05, 1, 64, 64, 8)
    with pytest.raises(errors.ShapeError, match="256 non-zero values, planned for at most 205"):
        dynamic.Partitioner(params, FLOAT, target).create_sparsity_data_impl(
            popsparse.COOMatrix(64, 64, np.ones(256), np.arange(256) % 64, np.arange(256) // 64)
        )
    crowded = popsparse.COOMatrix(64, 64, np.ones(128), np.arange(128) % 64, np.arange(128) // 64)
    with pytest.raises(
        errors.ShapeError, match=r"(?s)rows 0 to \d+, .* have 128 non-zero blocks, .* room for \d+ \(1 of \d+ .*OversizeProportion of"
    ) as caught:
        dynamic.Partitioner(params, FLOAT, target).create_sparsity_data_impl(crowded)
    proportion = float(str(caught.value).split("OversizeProportion of ")[1].split()[0])
    roomy = dynamic.Partitioner(params, FLOAT, target, {"metaInfoBucketOversizeProportion": proportion})
    assert roomy.create_sparsity_data_impl(crowded).nz_values.sum() == 128


def test_dense_gradients_of_weights_are_cut_to_fit():
    """
    One part where there is room; then output channels first, by divisors.
    """
    graph = new_graph(2)
    params = dynamic.FullyConnectedParams.create_with_nz_ratio(kind(4), 0.1, 4, 1, 96, 120)
    splits = dynamic.fully_connected_dense_grad_w_serial_splits
    assert splits(graph, FLOAT, params) == (1, 1, 1)
    share = 4 * 96 * 120 / (graph.target.bytes_per_tile * 2)
    assert splits(graph, FLOAT, params, {"availableMemoryProportion": share / 4.9}) == (1, 1, 5)
    assert splits(graph, FLOAT, params, {"availableMemoryProportion": share / 59.9}) == (1, 2, 30)
    assert splits(graph, FLOAT, params, {"availableMemoryProportion": 0}) == (1, 24, 30)


def test_mistakes():
    """
    Sizes, types, operands, options: refused at the call.
    """
    graph, prog = new_graph(), program.Sequence()
    params = dynamic.FullyConnectedParams.create_with_nz_ratio(kind(1), 0.5, 3, 1, 6, 4)
    w = dynamic.create_fully_connected_weights(graph, FLOAT, params)
    x, dy = graph.add_variable(FLOAT, (3, 6), "linear"), graph.add_variable(FLOAT, (3, 4), "linear")
    indices = graph.add_variable(UNSIGNED_INT, (2,), "linear")
    short = graph.add_variable(UNSIGNED_INT, (2,), "linear")
    partitioner = dynamic.Partitioner(params, FLOAT, graph.target)
    for kind_of, call in (
        (errors.ShapeError, lambda: dynamic.SparsityParams(block_dimensions=(4, 8))),
        (errors.ValueRangeError, lambda: dynamic.MatMulParams.create_with_nz_ratio(kind(1), 1.1, 1, 4, 6, 2)),
        (errors.ValueRangeError, lambda: dynamic.MatMulParams.create_with_num_non_zero_values(kind(1), 25, 1, 4, 6, 2)),
        (errors.ShapeError, lambda: dynamic.MatMulParams.create_with_nz_ratio(kind(4), 0.5, 1, 4, 6, 2)),
        (errors.ShapeError, lambda: dynamic.MatMulParams.create_with_nz_ratio(kind(1), 0.5, 2, 4, 6, 2)),
        (errors.ElementTypeError, lambda: dynamic.create_fully_connected_weights(graph, INT, params)),
        (errors.OptionError, lambda: dynamic.create_fully_connected_weights(graph, FLOAT, params, options={"doGradApass": True})),
        (errors.OptionError, lambda: dynamic.create_fully_connected_weights(graph, FLOAT, params, options={"doGradAPass": "maybe"})),
        (errors.ShapeError, lambda: dynamic.fully_connected_fwd(graph, w, dy, params, prog)),
        (errors.ShapeError, lambda: dynamic.fully_connected_grad_a(graph, w, x, params, prog)),
        (errors.GraphError, lambda: dynamic.fully_connected_fwd(graph, x, x, params, prog)),
        (errors.ShapeError, lambda: dynamic.fully_connected_sparse_grad_w(graph, short, dy, x, params, prog)),
        (errors.ElementTypeError, lambda: dynamic.embedding_slice(graph, w, x[0], prog, params)),
        (errors.ShapeError, lambda: dynamic.embedding_update_add(graph, w, x, indices, 1.0, prog, params)),
        (errors.ShapeError, lambda: partitioner.create_sparsity_data_impl(sparse(0, 6, 4)[2])),
        (errors.ShapeError, lambda: partitioner.create_sparsity_data_impl(sparse(0, 1, 1, 4)[2])),
        (errors.ShapeError, lambda: partitioner.sparsity_data_impl_to_coo_matrix(dynamic.SparsityDataImpl(np.zeros(3), np.zeros(3)))),
    ):
        with pytest.raises(kind_of, match="try: "):
            call()
    assert not prog.programs
