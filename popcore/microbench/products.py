"""The product unit (AMP) of one tile by rows, and square products planned over one IPU by size."""

from __future__ import annotations

from collections.abc import Callable

from popcore.graph import Graph
from popcore.microbench.programs import modelled
from popcore.microbench.sweep import Sweep, powers
from popcore.ops import poplin
from popcore.profile import Profile
from popcore.program import Sequence
from popcore.target import Target
from popcore.types import FLOAT, HALF, DTypeLike


def _product(target: Target, dtype: DTypeLike, m: int, k: int, n: int, partials: str) -> Profile:
    """A product whose result is of the type of its sums, so that none is rounded."""
    graph, steps = Graph(target), Sequence()
    options = {"partialsType": partials}
    a = poplin.create_mat_mul_input_lhs(graph, dtype, (m, k), (k, n), options=options)
    b = poplin.create_mat_mul_input_rhs(graph, dtype, (m, k), (k, n), options=options)
    poplin.mat_mul(graph, a, b, steps, output_type=HALF if partials == "half" else FLOAT, options=options)
    return modelled(graph, steps)


def _amp(dtype: DTypeLike, partials: str) -> Callable[[Target, int], float]:
    def measure(target: Target, rows: int) -> float:
        """FLOP a cycle of a tile that holds [16, 16] and streams so many rows of 16 past it, from the start of the vertex to its end."""
        return 2 * rows * 16 * 16 / _product(target.virtual(1), dtype, 16, 16, rows, partials).cycles_by_kind["compute"]

    return measure


def _gemm(dtype: DTypeLike, partials: str) -> Callable[[Target, int], float]:
    def measure(target: Target, size: int) -> float:
        """TFLOP/s of one IPU for [size, size] by [size, size], its operands where the plan wants them."""
        return float(2 * size**3 / _product(target.with_ipus(1), dtype, size, size, size, partials).device_seconds / 1e12)

    return measure


def _sizes(target: Target) -> list[int]:
    """Three matrices of FLOAT fill at most a third of an IPU."""
    room = target.tiles_per_ipu * target.bytes_per_tile // 3
    return [size for size in powers(64, 4096, 2) if 3 * size * size * 4 <= room]


_KINDS = (("half, sums of half", HALF, "half"), ("half, sums of float", HALF, "float"), ("float", FLOAT, "float"))
SWEEPS = (
    *(Sweep(f"AMP {name}", "rows", "FLOP/cycle", lambda target: powers(16, 2048, 2), _amp(dtype, sums)) for name, dtype, sums in _KINDS),
    *(Sweep(f"GEMM {name}", "rows and columns", "TFLOP/s", _sizes, _gemm(dtype, sums)) for name, dtype, sums in _KINDS),
)
