"""Sparse matrices on the host: COO, CSR and CSC, of elements or of blocks. After ``popsparse/SparseStorageFormats.hpp``.

Indices count elements, also those of blocks, which begin at multiples of the block's size; where a row or column begins counts values. Values of a block are
next to each other in row-major order, in all three formats.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from popcore.errors import ShapeError
from popcore.types import Array

BLOCK_SIDES = (1, 4, 8, 16)
Sides: TypeAlias = tuple[int, int]


@dataclass(eq=False)
class _Stored:
    num_rows: int
    num_columns: int
    nz_values: Any
    column_indices: Any
    row_indices: Any
    block_dimensions: Sequence[int] = (1, 1)


class COOMatrix(_Stored):
    """Row and column of each non-zero element or block, in any order."""


class CSRMatrix(_Stored):
    """Column of each non-zero element or block, rows one after the other; ``row_indices``: where the values of each row begin, and where the last one ends."""


class CSCMatrix(_Stored):
    """Row of each non-zero element or block, columns one after the other; ``column_indices``: where the values of each column begin, and where the last one ends."""


Matrix: TypeAlias = COOMatrix | CSRMatrix | CSCMatrix


@dataclass(frozen=True, eq=False)
class Blocks:
    """Non-zero blocks (elements are blocks of one) sorted by row, then column.

    rows, columns  int64[n]  in blocks
    values         [n, height, width]
    """

    shape: Sides  # in elements
    sides: Sides  # of a block
    rows: Array
    columns: Array
    values: Array

    @property
    def grid(self) -> Sides:
        """Rows and columns, in blocks."""
        return self.shape[0] // self.sides[0], self.shape[1] // self.sides[1]


def sides_of(block_dimensions: Sequence[int], what: str) -> Sides:
    """Raises: ShapeError: sides that PopLibs has not either."""
    sides = tuple(int(n) for n in block_dimensions)
    if len(sides) != 2 or sides[0] != sides[1] or sides[0] not in BLOCK_SIDES:
        raise ShapeError(f"{what}: blocks of {list(block_dimensions)}", "[1, 1], [4, 4], [8, 8] or [16, 16]")
    return sides[0], sides[1]


def read(matrix: Matrix, what: str, sides: Sides | None = None) -> Blocks:
    """The blocks of a matrix in any format.

    Raises: ShapeError: indices outside of the matrix, not where a block can begin, or there twice; values that are not as many.
    """
    own = sides_of(matrix.block_dimensions, what) if sides is None else (int(matrix.block_dimensions[0]), int(matrix.block_dimensions[1]))
    if sides is not None and own != sides:
        raise ShapeError(f"{what}: the matrix has blocks of {list(own)}", f"blocks of {list(sides)}, as planned")
    shape = int(matrix.num_rows), int(matrix.num_columns)
    if shape[0] % own[0] or shape[1] % own[1]:
        raise ShapeError(f"{what}: {list(shape)} in blocks of {list(own)}", "whole blocks")
    values, area = np.asarray(matrix.nz_values).reshape(-1), own[0] * own[1]
    if values.size % area:
        raise ShapeError(f"{what}: {values.size} values in blocks of {area}", "whole blocks")
    count = values.size // area
    rows, columns = np.asarray(matrix.row_indices, np.int64).reshape(-1), np.asarray(matrix.column_indices, np.int64).reshape(-1)
    if isinstance(matrix, CSRMatrix):
        rows = _expanded(rows, shape[0] // own[0], area, count, own[0], what)
    elif isinstance(matrix, CSCMatrix):
        columns = _expanded(columns, shape[1] // own[1], area, count, own[1], what)
    if rows.size != count or columns.size != count:
        raise ShapeError(f"{what}: {rows.size} rows and {columns.size} columns of {count} blocks", "one of each for each block")
    for name, at, side, size in (("row", rows, own[0], shape[0]), ("column", columns, own[1], shape[1])):
        bad = np.flatnonzero((at < 0) | (at >= size) | (at % side != 0))
        if bad.size:
            raise ShapeError(f"{what}: {name} index {at[bad[0]]} of block {bad[0]}", f"multiples of {side} below {size}")
    rows, columns = rows // own[0], columns // own[1]
    order = np.lexsort((columns, rows))
    rows, columns = rows[order], columns[order]
    twice = np.flatnonzero((np.diff(rows) == 0) & (np.diff(columns) == 0))
    if twice.size:
        raise ShapeError(f"{what}: row {rows[twice[0]] * own[0]}, column {columns[twice[0]] * own[1]} is there twice", "each once, values added up")
    return Blocks(shape, own, rows, columns, values.reshape(count, *own)[order])


def to_coo(blocks: Blocks) -> COOMatrix:
    h, w = blocks.sides
    return COOMatrix(*blocks.shape, blocks.values.reshape(-1), blocks.columns * w, blocks.rows * h, blocks.sides)


def to_csr(blocks: Blocks) -> CSRMatrix:
    starts = np.searchsorted(blocks.rows, np.arange(blocks.grid[0] + 1)) * blocks.sides[0] * blocks.sides[1]
    return CSRMatrix(*blocks.shape, blocks.values.reshape(-1), blocks.columns * blocks.sides[1], starts, blocks.sides)


def to_csc(blocks: Blocks) -> CSCMatrix:
    order = np.lexsort((blocks.rows, blocks.columns))
    starts = np.searchsorted(blocks.columns[order], np.arange(blocks.grid[1] + 1)) * blocks.sides[0] * blocks.sides[1]
    return CSCMatrix(*blocks.shape, blocks.values[order].reshape(-1), starts, blocks.rows[order] * blocks.sides[0], blocks.sides)


def _expanded(starts: Array, lines: int, area: int, count: int, side: int, what: str) -> Array:
    """The line of each block, in elements, from where lines begin."""
    if starts.size != lines + 1 or (starts.size and (starts[0] != 0 or starts[-1] != count * area)) or np.any(np.diff(starts) < 0) or np.any(starts % area):
        raise ShapeError(
            f"{what}: {starts.size} line starts of {lines} lines with {count * area} values", f"ascending from 0 to {count * area}, {lines + 1} of them"
        )
    return np.repeat(np.arange(lines) * side, np.diff(starts) // area)
