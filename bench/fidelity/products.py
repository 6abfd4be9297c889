"""Products, dense and sparse, convolutions and layers, by poplin, popsparse and popnn."""

from __future__ import annotations

import re
from functools import cache

import numpy as np

import popcore as pc
from bench.fidelity.figures import Family, Figure
from bench.fidelity.programs import graph_of, library_call, modelled, system_of
from popcore import FLOAT, HALF, program
from popcore.ops import poplin, popops, popsparse
from popcore.ops.poplin import ConvParams, InputTransform, OutputTransform
from popcore.ops.popsparse import dynamic, static_
from popcore.profile import Profile
from popcore.types import ElementType

PAPER = "BOW-2000"
"""Where the rows of PopSparse are run, which name GC200 and Bow. Its benchmark takes the clock from the device it finds. The fastest row, 239 TFLOP/s,
is 96 % of what the product units of a GC200 do; but a seventh of that product's time goes to exchange, as its operands have to reach 1,472 tiles."""


@cache
def _product(system: str, dtype: ElementType, m: int, k: int, n: int) -> Profile:
    """[m, k] @ [k, n], its operands as PopSparse's benchmark has them: created for it, with sums of HALF in HALF, as what it measured is faster than with FLOAT."""
    graph, steps = pc.Graph(pc.Device(system, num_ipus=1).target), program.Sequence()
    options = {"partialsType": "half"}
    a = poplin.create_mat_mul_input_lhs(graph, dtype, (m, k), (k, n), options=options)
    b = poplin.create_mat_mul_input_rhs(graph, dtype, (m, k), (k, n), options=options)
    poplin.mat_mul(graph, a, b, steps, options=options)
    return modelled(graph, steps)


def dense(figure: Figure) -> float:
    """TFLOP/s of [m, k] @ [k, n]."""
    size = figure.number(r"m=k=(\d+)")
    n = figure.number(r"\bn=(\d+)")
    dtype = HALF if "FP16" in figure.benchmark else FLOAT
    return 2 * size * size * n / _product(PAPER, dtype, size, size, n).device_seconds / 1e12


def square(figure: Figure) -> float:
    """TFLOP/s of the largest square product that the row speaks of, in FLOAT."""
    n = figure.number(r"n up to (\d+)")
    return 2 * n**3 / _product(system_of(figure), FLOAT, n, n, n).device_seconds / 1e12


def _sizes(figure: Figure) -> list[int]:
    """The numbers in the name of a benchmark of PopLibs."""
    return [int(n) for n in re.search(r"_(\d+(?:[x_]\d+)+)", figure.benchmark).group(1).replace("_", "x").split("x")]  # type: ignore[union-attr]


def benchmark_gemm(figure: Figure) -> float:
    """Cycles of alpha A B + beta C in HALF with A [m, k] and B [k, n], both factors 1: what PopLibs' tool for it runs unless told otherwise."""
    m, k, n = _sizes(figure)
    graph, steps = graph_of(figure), program.Sequence()
    a, b = (make(graph, HALF, (m, k), (k, n)) for make in (poplin.create_mat_mul_input_lhs, poplin.create_mat_mul_input_rhs))
    made = poplin.mat_mul(graph, a, b, steps)
    popops.scaled_add_to(graph, graph.clone(made, "c"), 1.0, made, 1.0, steps)
    return modelled(graph, steps).total_cycles


def benchmark_layer(figure: Figure) -> float:
    """Cycles of a fully connected layer in HALF, [batch, inputs] @ [inputs, outputs] or a group of them, and of both gradients.

    What PopLibs' tool runs unless told otherwise: the gradient of the weights is added to them, and those of the forward pass serve all three.
    """
    *lead, m, k, n = _sizes(figure)
    groups = lead[0] if lead else 1
    graph, steps = graph_of(figure), program.Sequence()
    forward, backward = ((groups, m, k), (groups, k, n)), ((groups, m, n), (groups, n, k))
    acts, weights = (make(graph, HALF, *forward) for make in (poplin.create_mat_mul_grouped_input_lhs, poplin.create_mat_mul_grouped_input_rhs))
    deltas = poplin.create_mat_mul_grouped_input_lhs(graph, HALF, *backward)
    poplin.mat_mul_grouped(graph, acts, weights, steps)
    poplin.mat_mul_grouped(graph, deltas, weights.dim_shuffle([0, 2, 1]), steps)
    poplin.mat_mul_grouped_acc(graph, weights, -0.5, acts.dim_shuffle([0, 2, 1]), deltas, steps)
    return modelled(graph, steps).total_cycles


def _layer(dtype: ElementType, batch: int, field: int, kernel: int, stride: int, inputs: int, outputs: int, groups: int = 1) -> ConvParams:
    pads = (kernel // 2,) * 2
    return ConvParams(
        dtype, batch, (field,) * 2, (kernel,) * 2, inputs // groups, outputs // groups, groups,
        InputTransform(padding_lower=pads, padding_upper=pads), output_transform=OutputTransform(stride=(stride,) * 2),
    )  # fmt: skip


def convolution(figure: Figure) -> float:
    """TFLOP/s of a layer's forward convolution in HALF."""
    kernel, field = figure.number(r" (\d+)x\d+"), figure.number(r"x\d+(?:/\d+)? (\d+)")
    stride, groups = figure.number(r"x\d+/(\d+)", 1), figure.number(r"G=(\d+)", 1)
    inputs, outputs = figure.number(r"(\d+)->"), figure.number(r"->(\d+)")
    params = _layer(HALF, figure.number(r"batch (\d+)"), field, kernel, stride, inputs, outputs, groups)
    graph, steps = graph_of(figure), program.Sequence()
    data, weights = poplin.create_input(graph, params), poplin.create_weights(graph, params)
    out = poplin.convolution(graph, data, weights, params, False, steps)
    flops = 2 * out.num_elements * kernel * kernel * inputs // groups
    return flops / library_call(graph, steps).device_seconds / 1e12


@cache
def _sparse(system: str, known: bool, block: int, dtype: ElementType, size: int, density: float, n: int) -> float:
    """Non-zero FLOP/s of a sparse [size, size] of random blocks times [size, n]."""
    graph, steps = pc.Graph(pc.Device(system, num_ipus=1).target), program.Sequence()
    side = size // block
    mask = np.random.default_rng(0).random((side, side)) < density
    count = int(mask.sum()) * block * block
    if known:
        starts = np.concatenate(([0], np.cumsum(mask.sum(axis=1)))) * block * block
        matrix = popsparse.CSRMatrix(size, size, np.ones(count, np.float32), np.nonzero(mask)[1] * block, starts, (block, block))
        sizes = static_.MatMulParams.create_for_sparse_dense(1, size, size, n)
        s, x = (make(graph, dtype, sizes, matrix) for make in (static_.create_sparse_dense_mat_mul_lhs, static_.create_sparse_dense_mat_mul_rhs))
        static_.sparse_dense_mat_mul(graph, s, x, steps)
    else:
        kind = dynamic.SparsityParams(block_dimensions=(block, block))
        most = dynamic.MatMulParams.create_with_num_non_zero_values(kind, count, 1, size, size, n)
        left, right = (make(graph, dtype, most) for make in (dynamic.create_sparse_dense_mat_mul_lhs, dynamic.create_sparse_dense_mat_mul_rhs))
        dynamic.sparse_dense_mat_mul(graph, left, right, steps)
    return 2 * count * n / modelled(graph, steps).device_seconds


_WIDTHS = (256, 1024, 4096)  # columns of the dense operand that are tried where a row is of the best


def _best_sparse(figure: Figure, text: str, dtype: ElementType) -> float:
    block = int(re.search(r"(?:b=|block )(\d+)", text).group(1))  # type: ignore[union-attr]
    size, density = figure.number(r"m=k=(\d+)"), 1 / figure.number(r"density 1/(\d+)")
    return max(_sparse(PAPER, "static" in text, block, dtype, size, density, n) for n in _WIDTHS)


def sparse(figure: Figure) -> float:
    """TFLOP/s on what is not zero, of the best width."""
    return _best_sparse(figure, figure.benchmark, HALF) / 1e12


def sparse_gain(figure: Figure) -> float:
    """How many times faster than the dense product of as many rows and columns, each at its best width."""
    dtype = HALF if "FP16" in figure.conditions else FLOAT
    size = figure.number(r"m=k=(\d+)")
    full = max(2 * size * size * n / _product(PAPER, dtype, size, size, n).device_seconds for n in _WIDTHS)
    return _best_sparse(figure, figure.conditions, dtype) * figure.number(r"density 1/(\d+)") / full


FAMILIES = (
    Family("dense product", r"PS-D(16|32)-\d+-\d+", dense),
    Family("dense product", r"J-GEMM-32", square),
    Family("convolution", r"J-CONV-.*", convolution),
    Family("sparse product", r"PS-S-.*", sparse),
    Family("sparse product", r"PS-X-.*", sparse_gain),
    Family("PopLibs benchmarks", r"PB-gemm_.*", benchmark_gemm),
    Family("PopLibs benchmarks", r"(PB|PC-3)-(bert_(ffn|kqv|grouped)|fc_layer).*", benchmark_layer),
)
