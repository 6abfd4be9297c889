"""What a product costs on the modelled machine, as its planner and its vertices count it.

The structure is that of PopLibs' estimators for the product unit (AMP): weights are loaded a pass at a time, and all
workers then stream their rows past them. All arguments may be arrays.
"""

from __future__ import annotations

import numpy as np

from popcore.codelets.operations import FLOAT_TYPE
from popcore.ops.poplin.problem import Problem
from popcore.target import Target
from popcore.types import FLOAT, HALF, Array, ElementType

SUPERVISOR = 74 + 45  # the supervisor's code around its loops, launch and completion: TS-AMP rows
NEXT_DEPTH = 15  # for each pass's depth of k beyond the first
GROUP = 19  # each group of columns, at each depth
PASS = 6  # one pass, besides loading weights
# Of a worker in a pass of one row, of two, of three; where a pass is the first of its sums, which are zeros, and where there are sums already.
HALF_WORKER = (25, 34, 30), (26, 35, 31)
HALF_STATE = (7, 3)  # which those leave out: what a worker sets up once, and at each further depth
FLOAT_WORKER = (49, 48, 48), (47, 46, 46)  # and the zeros of FLOAT_ZERO
FLOAT_ROW = 8  # cycles of a row in a pass of FLOAT; of HALF they are as many as the unit's pipeline is deep
NARROW_WORKER = (41, 42, 43), (39, 40, 41)  # of HALF sums where there are no more units for them than for FLOAT ones; and the zeros of NARROW_ZERO
NARROW_ZERO = 2
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
# Sums of partials: PopLibs' estimator of its reduction of one input, whose partials do not lie in interleaved memory.
SUM_SUPERVISOR, SUM_WORKER = 33, 20
SUM_BYTES = 16  # of partials, that a loop takes of each part in two cycles,
SUM_LOOP = (8, 10)  # and cycles beside those: of FLOAT and HALF partials, one less where the result is HALF
CAST_WORKER = 26  # of one part that changes its type only
# Pooling: PopLibs' estimator of its vertices. A worker's cycles to begin, for each kernel element, and of each vector of each result there.
POOL_SUPERVISOR = 13 + 45
POOL_WORKER = 62
POOL_ITEM = 23 + 1 + 13
POOL_VECTOR = (3, 5)  # forward, of a gradient that compares


def pass_shape(target: Target, dtype: ElementType, partials: ElementType = FLOAT_TYPE) -> tuple[int, int]:
    """How much the product unit holds at once: of k, and of the channels or rows of a result.

    PopLibs counts twice the units for FLOAT, each row of which takes twice as long as one of HALF.
    """
    if dtype is FLOAT:
        return target.get_weights_per_conv_unit(dtype), 2 * target.fp32_in_fp32_out_conv_units_per_tile
    units = target.fp16_in_fp16_out_conv_units_per_tile if partials is HALF else target.fp16_in_fp32_out_conv_units_per_tile
    return target.get_weights_per_conv_unit(dtype), units


def product_cycles(target: Target, dtype: ElementType, rows: Array, depth: Array, held: Array, partials: ElementType = FLOAT_TYPE) -> Array:
    """Cycles of a tile for a product of so many ``rows`` of one operand, which stream past as many as the unit holds at once of ``held`` of the other."""
    per_pass, units = pass_shape(target, dtype, partials)
    depths, groups, passes = -(-np.asarray(depth) // per_pass), -(-np.asarray(held) // max(units, per_pass)), -(-np.asarray(held) // units)
    first, other = (_worker(target, dtype, partials, rows, zeros) for zeros in (True, False))
    once, again = HALF_STATE if dtype is HALF and not _narrow(target, partials) else (0, 0)
    workers, further = target.num_worker_contexts, np.maximum(depths - 1, 0)
    control = SUPERVISOR + workers * once + further * (NEXT_DEPTH + workers * again) + depths * (groups * GROUP + passes * (PASS + _load(target, dtype, units)))
    made: Array = control + workers * passes * (first * np.minimum(depths, 1) + further * other)
    return made


def work_cycles(target: Target, problem: Problem, rows: Array, kernel: tuple[Array, ...], depth: Array, columns: Array) -> Array:
    """Cycles of a tile for its part of ``problem``: so many rows, kernel elements of each dimension, k and columns.

    Of a product of matrices the unit holds the left one, as PopLibs has it (it swaps the operands of the convolution that it makes of it).
    """
    if not problem.windows:
        return product_cycles(target, problem.dtype, columns, depth, rows, problem.partials)
    rows = -(-np.asarray(rows) // problem.apart)
    elements = np.prod(np.broadcast_arrays(*kernel), axis=0)
    if problem.channelwise:
        each = -(-rows // target.num_worker_contexts)
        worker = each * -(-np.asarray(columns) // CHANNELWISE_WIDTH) * (CHANNELWISE_OUTPUT + CHANNELWISE_ELEMENT * elements)
        made: Array = CHANNELWISE_SUPERVISOR + target.num_worker_contexts * worker
        return made
    inner = np.asarray(kernel[-1]) if problem.fused else 1
    outer = elements // np.maximum(inner, 1)
    per_pass, units = pass_shape(target, problem.dtype, problem.partials)
    passes = outer * -(-(inner * np.asarray(depth)) // per_pass) * -(-np.asarray(columns) // units)
    worker = KERNEL_WORKER + _worker(target, problem.dtype, problem.partials, rows, False)
    each_pass = KERNEL_PASS + _load(target, problem.dtype, units) + target.num_worker_contexts * worker
    long = KERNEL_SUPERVISOR + (elements // np.maximum(kernel[-1], 1)) * KERNEL_ROW + outer * KERNEL_ELEMENT + passes * each_pass
    chosen: Array = np.where(elements > 1, long, product_cycles(target, problem.dtype, rows, depth, columns, problem.partials))
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


def _narrow(target: Target, partials: ElementType) -> bool:
    """Whether HALF sums are made by the code for as many units as FLOAT ones have."""
    return partials is HALF and target.fp16_in_fp16_out_conv_units_per_tile == target.fp16_in_fp32_out_conv_units_per_tile


def _load(target: Target, dtype: ElementType, units: int) -> int:
    """Cycles for the weights of a pass: 64 bits at a time, as PopLibs has it where ``use128BitConvUnitLoad`` is not asked for."""
    return -(-target.get_weights_per_conv_unit(dtype) * units * dtype.nbytes * 8 // target.data_path_width)


def _worker(target: Target, dtype: ElementType, partials: ElementType, rows: Array, zeros: bool) -> Array:
    """A worker's cycles of a pass in which a tile has so many rows. ``zeros``: it begins the sums."""
    each = -(-np.asarray(rows) // target.num_worker_contexts)
    row, zero, table = target.conv_unit_max_pipeline_depth, 0, HALF_WORKER
    if dtype is FLOAT:
        row, zero, table = FLOAT_ROW, target.fp32_in_fp32_out_conv_units_per_tile, FLOAT_WORKER
    elif _narrow(target, partials):
        zero, table = NARROW_ZERO, NARROW_WORKER
    one, two, three = table[0 if zeros else 1]
    made: Array = np.where(each >= 3, three + row * (each - 3), np.where(each == 2, two, one)) + zeros * zero * each
    return made


def sum_cycles(target: Target, parts: Array | int, elements: Array, partials: ElementType = FLOAT_TYPE, output: ElementType = FLOAT_TYPE) -> Array:
    """Cycles of a tile for adding ``parts`` times ``elements`` partials: as PopLibs' reduction of one contiguous input, or its cast of one part."""
    workers = target.num_worker_contexts
    loops = -(-np.asarray(elements) // (workers * (SUM_BYTES // partials.nbytes)))  # of the busiest worker
    loop = 2 * (np.asarray(parts) - 1) + SUM_LOOP[partials is HALF] - (output is HALF)
    added = SUM_SUPERVISOR + workers * (SUM_WORKER + loop * loops)
    narrowest = min(target.get_vector_width(partials), target.get_vector_width(output))
    cast = workers * (CAST_WORKER + -(-np.asarray(elements) // (workers * narrowest)))
    made: Array = np.where(np.asarray(parts) > 1, added, cast)
    return made
