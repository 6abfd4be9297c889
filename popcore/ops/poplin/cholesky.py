"""Cholesky factors of symmetric positive definite matrices, one or many at once, in blocks. After ``poplin/Cholesky.hpp``.

Options of all of them: ``blockSize`` (64: rows of a block), and those of ``mat_mul``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from popcore.codelets.solve import CholeskyBlock
from popcore.errors import ShapeError
from popcore.graph import Graph, Tensor
from popcore.ops import poputil
from popcore.ops.poplin.mat_mul import create_mat_mul_grouped_output, mat_mul_grouped_acc
from popcore.ops.poplin.params import Options, floating
from popcore.ops.poplin.planned import typed
from popcore.ops.poplin.triangular import Shape, arranged, block_size, grouped, half, mask_in_place, solve_lower
from popcore.ops.popops import common
from popcore.program import Copy, Execute, Sequence
from popcore.types import FLOAT, DTypeLike, ElementType


def create_cholesky_input(graph: Graph, dtype: DTypeLike, shape: Shape, lower: bool, name: str = "", options: Options = None) -> Tensor:
    """A tensor of ``shape`` ([..., n, n]) spread over tiles for ``cholesky``.

    Raises: ShapeError, ElementTypeError, OptionError
    """
    step = common.joined(name, "create_cholesky_input")
    _check(step, tuple(shape))
    rest = block_size(step, options)[1]
    whole = (int(np.prod(tuple(shape)[:-2])), shape[-1], shape[-1])
    return create_mat_mul_grouped_output(graph, dtype, whole, whole, name, rest).reshape(tuple(shape))


def cholesky(graph: Graph, a: Tensor, lower: bool, prog: Sequence, name: str = "", options: Options = None) -> Tensor:
    """A new tensor: lower triangular L with ``L L^T = a``, or upper triangular U with ``U^T U = a``, and 0 elsewhere.

    Args:
        a: [..., n, n]. Only the triangle that is asked for is read.

    Sums are FLOAT within a block and rounded to the type of ``a`` after each. NaN where ``a`` is not positive definite.
    Raises: ShapeError, ElementTypeError, OptionError
    """
    step = common.joined(name, "cholesky")
    common.require_tensors(step, a)
    made = poputil.duplicate(graph, a, prog, f"{step}/out")
    cholesky_in_place(graph, made, lower, prog, name, options)
    return made


def cholesky_in_place(graph: Graph, a: Tensor, lower: bool, prog: Sequence, name: str = "", options: Options = None) -> None:
    """The same, written to ``a``. Raises: also GraphError, where ``a`` cannot be written."""
    step = common.joined(name, "cholesky")
    common.require_tensors(step, a)
    _check(step, a.shape)
    floating(a.dtype, step)
    common.require_writeable(step, a)
    block, rest = block_size(step, options)
    if not a.num_elements:
        return
    whole = grouped(a)
    _factor(graph, whole if lower else whole.dim_shuffle([0, 2, 1]), prog, step, block, rest)
    mask_in_place(graph, a, lower, prog, f"{step}/mask")


def _factor(graph: Graph, a: Tensor, prog: Sequence, step: str, block: int, options: dict[str, Any]) -> None:
    """The lower triangles of ``a`` [groups, n, n] become those of its factors."""
    n = a.shape[1]
    if n <= block:
        _factor_block(graph, a, prog, step)
        return
    cut = half(n, block)
    above, left, below = a[:, :cut, :cut], a[:, cut:, :cut], a[:, cut:, cut:]
    _factor(graph, above, prog, step, block, options)
    solve_lower(graph, above, left.dim_shuffle([0, 2, 1]), False, prog, step, block, options)
    mat_mul_grouped_acc(graph, below, -1.0, left, left.dim_shuffle([0, 2, 1]), prog, step, options)
    _factor(graph, below, prog, step, block, options)


def _factor_block(graph: Graph, a: Tensor, prog: Sequence, step: str) -> None:
    groups, n, _ = a.shape
    tiles = np.arange(groups) % graph.target.num_tiles
    kept = arranged(graph, a, tiles, prog, f"{step}/block")
    cs = graph.add_compute_set(f"{step}/factor")
    size = np.full(groups, n)
    cycles = np.full(groups, _factor_cycles(a.dtype, n))
    graph.add_vertices(cs, typed(CholeskyBlock, a.dtype), {"a": (kept.flatten(), np.arange(groups) * n * n, size, size)}, tiles, cycles)
    prog.add(Sequence(Execute(cs, name=f"{step}/factor"), Copy(kept, a, name=f"{step}/factor")))


def _factor_cycles(dtype: ElementType, n: int) -> int:
    """Of a block: PopLibs' ``Cholesky`` (lib/poplin/poplinCycleEstimators.cpp)."""
    return n**3 + 102 * n * n + 101 * n + 102 if dtype is FLOAT else n**3 // 2 + 795 * n * n // 4 + 191 * n // 2 + 426


def _check(step: str, shape: tuple[int, ...]) -> None:
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise ShapeError(f"{step} of shape {list(shape)}", "[..., n, n]")
