"""What a product costs on the modelled machine, as its planner and its vertices count it.

The structure is that of PopLibs' estimators for the product unit (AMP): weights are loaded a pass at a time, and all
workers then stream their rows past them. All arguments may be arrays.
"""

from __future__ import annotations

import numpy as np

from popcore.ops.poplin.problem import Problem
from popcore.target import Target
from popcore.types import Array, ElementType

SUPERVISOR = 134 + 45  # start of the supervisor's code, its loop over passes, launch and completion: TS-AMP rows
PASS = 7  # one pass of it, besides loading weights
WORKER = 30  # a worker's cycles of one pass with three rows
SHORT_WORKER = (24, 33)  # and with one or two
# A convolution of more than one kernel element: PopLibs' estimator of the n x 1 vertex.
KERNEL_SUPERVISOR = 101 + 45  # in place of SUPERVISOR
KERNEL_ROW = 15  # and for each row of the kernel
KERNEL_ELEMENT = 20  # each element of it
KERNEL_PASS = 15  # each pass, in place of PASS
KERNEL_WORKER = 19  # and a worker's cycles more
# A depthwise one: PopLibs' estimator of the vertical multiply-accumulate vertex, with FLOAT sums.
CHANNELWISE_SUPERVISOR = 61 + 14 + 26 + 32 + 24 + 45
CHANNELWISE_OUTPUT = 7 + 5 + 3  # a worker's cycles for each output of four channels,
CHANNELWISE_ELEMENT = 2  # and for each kernel element of it
CHANNELWISE_WIDTH = 4
# Pooling: PopLibs' estimator of its vertices. A worker's cycles to begin, for each kernel element, and of each vector of each result there.
POOL_SUPERVISOR = 13 + 45
POOL_WORKER = 62
POOL_ITEM = 23 + 1 + 13
POOL_VECTOR = (3, 5)  # forward, of a gradient that compares


def pass_shape(target: Target, dtype: ElementType) -> tuple[int, int]:
    """(k, n) of the weights that the product unit holds at once, with FLOAT sums."""
    half = dtype.kind == "half"
    units = target.fp16_in_fp32_out_conv_units_per_tile if half else target.fp32_in_fp32_out_conv_units_per_tile
    return target.get_weights_per_conv_unit(dtype), units


def product_cycles(target: Target, dtype: ElementType, rows: Array, depth: Array, columns: Array) -> Array:
    """Cycles of a tile for ``[rows, depth] @ [depth, columns]``; the columns of the second matrix are the weights."""
    made: Array = SUPERVISOR + _passes(target, dtype, depth, columns) * (PASS + _load(target, dtype) + target.num_worker_contexts * _worker(target, rows))
    return made


def work_cycles(target: Target, problem: Problem, rows: Array, kernel: tuple[Array, ...], depth: Array, columns: Array) -> Array:
    """Cycles of a tile for its part of ``problem``: so many rows, kernel elements of each dimension, k and columns."""
    if not problem.windows:
        return product_cycles(target, problem.dtype, rows, depth, columns)
    rows = -(-np.asarray(rows) // problem.apart)
    elements = np.prod(np.broadcast_arrays(*kernel), axis=0)
    if problem.channelwise:
        each = -(-rows // target.num_worker_contexts)
        worker = each * -(-np.asarray(columns) // CHANNELWISE_WIDTH) * (CHANNELWISE_OUTPUT + CHANNELWISE_ELEMENT * elements)
        made: Array = CHANNELWISE_SUPERVISOR + target.num_worker_contexts * worker
        return made
    inner = np.asarray(kernel[-1]) if problem.fused else 1
    outer = elements // np.maximum(inner, 1)
    passes = outer * _passes(target, problem.dtype, inner * np.asarray(depth), columns)
    each_pass = KERNEL_PASS + _load(target, problem.dtype) + target.num_worker_contexts * (KERNEL_WORKER + _worker(target, rows))
    long = KERNEL_SUPERVISOR + (elements // np.maximum(kernel[-1], 1)) * KERNEL_ROW + outer * KERNEL_ELEMENT + passes * each_pass
    chosen: Array = np.where(elements > 1, long, product_cycles(target, problem.dtype, rows, depth, columns))
    return chosen


def pool_cycles(target: Target, problem: Problem, rows: Array, kernel: tuple[Array, ...], columns: Array, compares: bool) -> Array:
    """Cycles of a tile for pooling: so many results of so many channels, from so many kernel elements of each dimension."""
    each = -(-np.asarray(rows) // target.num_worker_contexts)
    met = -(-each // problem.apart)
    vectors = -(-np.asarray(columns) // target.get_vector_width(problem.dtype))
    elements = np.prod(np.broadcast_arrays(*kernel), axis=0)
    worker = POOL_WORKER + (each + elements * met * POOL_VECTOR[compares]) * vectors + elements * POOL_ITEM
    made: Array = POOL_SUPERVISOR + target.num_worker_contexts * worker
    return made


def _passes(target: Target, dtype: ElementType, depth: Array, columns: Array) -> Array:
    per_pass, units = pass_shape(target, dtype)
    made: Array = -(-np.asarray(depth) // per_pass) * -(-np.asarray(columns) // units)
    return made


def _load(target: Target, dtype: ElementType) -> int:
    """Cycles for the weights of a pass."""
    per_pass, units = pass_shape(target, dtype)
    return -(-per_pass * units * dtype.nbytes // target.conv_unit_coeff_load_bytes_per_cycle)


def _worker(target: Target, rows: Array) -> Array:
    """A worker's cycles of a pass in which a tile has so many rows."""
    each = -(-np.asarray(rows) // target.num_worker_contexts)
    loop = target.conv_unit_max_pipeline_depth
    made: Array = np.where(each >= 3, WORKER + loop * (each - 3), np.where(each == 2, SHORT_WORKER[1], SHORT_WORKER[0]))
    return made


def sum_cycles(target: Target, parts: Array, elements: Array) -> Array:
    """Cycles of a tile for adding ``parts`` times ``elements`` FLOAT partials: six workers, a vector of two at a time."""
    each = -(-np.asarray(elements) // target.num_worker_contexts)
    made: Array = target.num_worker_contexts * (30 + (np.asarray(parts) + 1) * -(-each // target.float_vector_width))
    return made
