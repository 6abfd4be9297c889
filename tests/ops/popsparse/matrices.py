"""What the tests of popsparse share: drawn sparse matrices with small whole numbers, which all sums hold exactly."""

import numpy as np

from popcore.ops import popsparse


def sparse(seed, m, k, side=1, density=0.3, fmt="coo"):
    """(mask of elements, dense array, matrix in a format), m and k in blocks of ``side``."""
    rng = np.random.default_rng(seed)
    grid = rng.random((m, k)) < density
    mask = np.kron(grid, np.ones((side, side), bool)) if grid.size else np.zeros((m * side, k * side), bool)
    dense = np.where(mask, rng.integers(-8, 9, mask.shape), 0).astype(np.float64)
    return mask, dense, as_format(dense, grid, side, fmt)


def as_format(dense, grid, side, fmt):
    """The blocks of ``dense`` that ``grid`` names."""
    rows, columns = np.nonzero(grid) if fmt != "csc" else np.nonzero(grid.T)[::-1]
    values = np.array([dense[r * side : (r + 1) * side, c * side : (c + 1) * side] for r, c in zip(rows, columns, strict=True)]).reshape(-1)
    area = side * side
    if fmt == "csr":
        starts = np.concatenate(([0], np.cumsum(grid.sum(axis=1)))) * area
        return popsparse.CSRMatrix(*dense.shape, values, columns * side, starts, (side, side))
    if fmt == "csc":
        starts = np.concatenate(([0], np.cumsum(grid.sum(axis=0)))) * area
        return popsparse.CSCMatrix(*dense.shape, values, starts, rows * side, (side, side))
    order = np.random.default_rng(1).permutation(rows.size)
    values = values.reshape(-1, area)[order].reshape(-1)
    return popsparse.COOMatrix(*dense.shape, values, columns[order] * side, rows[order] * side, (side, side))


def to_dense(matrix, shape):
    """From any format, by its definition."""
    h, w = matrix.block_dimensions
    out = np.zeros(shape)
    values = np.asarray(matrix.nz_values).reshape(-1, h, w)
    rows, columns = np.asarray(matrix.row_indices), np.asarray(matrix.column_indices)
    if isinstance(matrix, popsparse.CSRMatrix):
        rows = np.repeat(np.arange(shape[0] // h) * h, np.diff(rows) // (h * w))
    elif isinstance(matrix, popsparse.CSCMatrix):
        columns = np.repeat(np.arange(shape[1] // w) * w, np.diff(columns) // (h * w))
    for value, r, c in zip(values, rows, columns, strict=True):
        out[r : r + h, c : c + w] = value
    return out


def whole(seed, shape, dtype):
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype.numpy)
