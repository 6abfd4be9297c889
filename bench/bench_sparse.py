"""Products of sparse and dense matrices over 1,472 tiles, exchange included, against scipy.sparse where that is installed, else NumPy's dense product; each on
one thread.

Where the pattern is dynamic each tile is sent all of its part of the dense operand, needed or not: at 1% that is 19 MB between tiles and 4 MB of partial sums for 5 million
operations, and moving them is what takes the time. Of a matrix of five elements a row, times one vector, SciPy goes through 16 MB in order; here each row's elements are
on its tile, and what they meet is brought there first, a few words from each of many tiles.

What is timed: a run of the product, operands on the tiles. What is not: building (a row of its own), compiling, the host.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import popcore as pc
from bench.harness import Goal, Row, WrongAnswer, compare
from popcore import FLOAT, program
from popcore.ops import popsparse
from popcore.ops.popsparse import dynamic, static_

try:
    import scipy.sparse as scipy_sparse
except ImportError:  # SciPy comes with scikit-learn, which tests and examples use
    scipy_sparse = None

GOAL = Goal(0.2, 1.0, True)
Product = tuple[pc.Engine, float, Callable[[], np.ndarray]]


def rows(smoke: bool) -> Iterator[Row]:
    size, side = (64, 8) if smoke else (2048, 512)
    poisson = _poisson(side)
    yield from _rows(f"poisson {side}x{side} @ vector", _static(poisson, 1, smoke), poisson, 1, smoke)
    for block, density, batch in ((1, 0.1, 64), (1, 0.01, 64), (16, 0.1, 256)):
        matrix = _random(size, block, density)
        name = f"{size}x{size}, {density:.0%} in blocks of {block}, @ {batch} columns"
        yield from _rows(f"static {name}", _static(matrix, batch, smoke), matrix, batch, smoke)
        yield from _rows(f"dynamic {name}", _dynamic(matrix, batch, smoke), matrix, batch, smoke)


def _rows(name: str, product: Product, matrix: Any, batch: int, smoke: bool) -> Iterator[Row]:
    engine, build, result = product
    x = _dense(matrix.num_columns, batch)
    other = _other(matrix)
    engine.run()
    if not np.allclose(result(), other @ x, rtol=1e-3, atol=1e-3):
        raise WrongAnswer(name)
    yield compare(f"sparse/{name}", engine.run, lambda: other @ x, unit="ms", goal=GOAL, smoke=smoke)
    yield Row(f"sparse/{name}, build", build, "s")


def _poisson(side: int) -> popsparse.CSRMatrix:
    """The five-point stencil on a square."""
    at = np.arange(side * side).reshape(side, side)
    pairs = [(at, at, 4.0), *((a, b, -1.0) for p, q in ((at[1:], at[:-1]), (at[:, 1:], at[:, :-1])) for a, b in ((p, q), (q, p)))]
    row, column = (np.concatenate([p[i].ravel() for p in pairs]) for i in range(2))
    value = np.concatenate([np.full(a.size, v, np.float32) for a, _, v in pairs])
    order = np.lexsort((column, row))
    starts = np.searchsorted(row[order], np.arange(at.size + 1))
    return popsparse.CSRMatrix(at.size, at.size, value[order], column[order], starts)


def _random(size: int, block: int, density: float) -> popsparse.CSRMatrix:
    rng = np.random.default_rng(0)
    mask = rng.random((size // block, size // block)) < density
    values = rng.standard_normal(int(mask.sum()) * block * block).astype(np.float32)
    starts = np.concatenate(([0], np.cumsum(mask.sum(axis=1)))) * block * block
    return popsparse.CSRMatrix(size, size, values, np.nonzero(mask)[1] * block, starts, (block, block))


def _dense(rows_of: int, columns: int) -> np.ndarray:
    return np.random.default_rng(1).standard_normal((rows_of, columns)).astype(np.float32)


def _other(matrix: popsparse.CSRMatrix) -> Any:
    """The same matrix for the baseline."""
    h, w = matrix.block_dimensions
    shape = matrix.num_rows, matrix.num_columns
    columns, starts = matrix.column_indices // w, matrix.row_indices // (h * w)
    if scipy_sparse is not None:
        if h == 1:
            return scipy_sparse.csr_matrix((matrix.nz_values, columns, starts), shape=shape)
        return scipy_sparse.bsr_matrix((matrix.nz_values.reshape(-1, h, w), columns, starts), shape=shape)
    dense = np.zeros((shape[0] // h, shape[1] // w, h, w), np.float32)
    dense[np.repeat(np.arange(shape[0] // h), np.diff(starts)), columns] = matrix.nz_values.reshape(-1, h, w)
    return dense.transpose(0, 2, 1, 3).reshape(shape)


def _static(matrix: popsparse.CSRMatrix, batch: int, smoke: bool) -> Product:
    device, graph, prog = _graph(smoke)
    began = time.perf_counter()
    params = static_.MatMulParams.create_for_sparse_dense(1, matrix.num_rows, matrix.num_columns, batch)
    s = static_.create_sparse_dense_mat_mul_lhs(graph, FLOAT, params, matrix)
    x = static_.create_sparse_dense_mat_mul_rhs(graph, FLOAT, params, matrix)
    y = static_.sparse_dense_mat_mul(graph, s, x, prog)
    build = time.perf_counter() - began
    values = static_.Partitioner(params, FLOAT, graph.target).create_sparsity_data_impl(matrix).nz_values
    return _engine(device, graph, prog, {s.nz_values: values, x[0]: _dense(matrix.num_columns, batch)}, y[0], build)


def _dynamic(matrix: popsparse.CSRMatrix, batch: int, smoke: bool) -> Product:
    device, graph, prog = _graph(smoke)
    began = time.perf_counter()
    kind = dynamic.SparsityParams(block_dimensions=matrix.block_dimensions)
    params = dynamic.MatMulParams.create_with_num_non_zero_values(kind, matrix.nz_values.size, 1, matrix.num_rows, matrix.num_columns, batch)
    s = dynamic.create_sparse_dense_mat_mul_lhs(graph, FLOAT, params)
    x = dynamic.create_sparse_dense_mat_mul_rhs(graph, FLOAT, params)
    y = dynamic.sparse_dense_mat_mul(graph, s, x, prog)
    build = time.perf_counter() - began
    data = dynamic.Partitioner(params, FLOAT, graph.target).create_sparsity_data_impl(matrix)
    return _engine(device, graph, prog, {s.meta_info: data.meta_info, s.nz_values: data.nz_values, x[0]: _dense(matrix.num_columns, batch)}, y[0], build)


def _graph(smoke: bool) -> tuple[pc.Device, pc.Graph, program.Sequence]:
    device = pc.Device("M2000", num_ipus=1, tiles_per_ipu=8 if smoke else 1472)
    return device, pc.Graph(device.target), program.Sequence()


def _engine(device: pc.Device, graph: pc.Graph, prog: program.Sequence, writes: dict[Any, np.ndarray], out: Any, build: float) -> Product:
    for i, t in enumerate(writes):
        graph.create_host_write(str(i), t)
    graph.create_host_read("out", out)
    engine = pc.Engine(graph, prog, device=device, options={"engine.threads": 1})
    for i, values in enumerate(writes.values()):
        engine.write_tensor(str(i), values)
    return engine, build, lambda: engine.read_tensor("out")
