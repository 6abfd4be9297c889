"""The inverse of a matrix and the logarithm of its determinant, from its QR factors. PopLibs has neither under a name of its own."""

from __future__ import annotations

import numpy as np

from popcore.errors import ElementTypeError, ShapeError
from popcore.graph import Graph, Tensor, concat
from popcore.ops import popops, poputil
from popcore.ops.poplin.experimental import create_qr_factorization_matrices, qr_factorization
from popcore.ops.poplin.triangular import triangular_solve
from popcore.ops.popops import common
from popcore.ops.popops.expr import Abs, Log, _1
from popcore.program import Sequence
from popcore.types import FLOAT


def matrix_inverse(graph: Graph, a: Tensor, prog: Sequence, name: str = "") -> Tensor:
    """A new tensor: the inverse of ``a`` [n, n], FLOAT. A singular matrix gives infinities and NaN.

    a = Q R, so the inverse is X with R X = Q^T; reflections need no exchange of rows.
    Raises: ShapeError, ElementTypeError: another tensor.
    Costs: see ``experimental.qr_factorization``; then a triangular solve of n right sides.
    """
    step = common.joined(name, "matrix_inverse")
    r, q = _factors(graph, a, prog, step)
    return triangular_solve(graph, r, q.transpose(), True, False, False, prog, step)


def log_abs_det(graph: Graph, a: Tensor, prog: Sequence, name: str = "") -> Tensor:
    """A scalar: the natural logarithm of the magnitude of the determinant of ``a`` [n, n], FLOAT.

    The sum of the logarithms of R's diagonal, which neither overflows nor vanishes where the determinant would. Minus infinity where a
    diagonal element is 0; 0 where n is 0.
    Raises: ShapeError, ElementTypeError: another tensor.
    """
    step = common.joined(name, "log_abs_det")
    r, _ = _factors(graph, a, prog, step)
    n = a.shape[0]
    diagonal = concat([r[i, i : i + 1] for i in range(n)]) if n else r.flatten()
    logs = popops.map(graph, Log(Abs(_1)), [diagonal], prog, step)
    return popops.reduce(graph, logs, [0], popops.Operation.ADD, prog, step)


def _factors(graph: Graph, a: Tensor, prog: Sequence, step: str) -> tuple[Tensor, Tensor]:
    """R and Q of a copy of ``a``."""
    common.require_tensors(step, a)
    if a.rank != 2 or a.shape[0] != a.shape[1]:
        raise ShapeError(f"{step} of {a!r}", "a square matrix")
    if a.dtype is not FLOAT:
        raise ElementTypeError(f"{step} of {a!r}", "cast it to FLOAT")
    n = a.shape[0]
    r, q = create_qr_factorization_matrices(graph, FLOAT, n, n, step)
    one = graph.add_constant(FLOAT, (n, n), np.eye(n, dtype=np.float32), name=f"{step}/one")
    poputil.map_tensor_linearly(graph, one)
    common.copy(prog, a, r, step)
    common.copy(prog, one, q, step)
    qr_factorization(graph, r, q, prog, step)
    return r, q
