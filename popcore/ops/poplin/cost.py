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
KERNEL_SUPERVISOR = 103 + 36 + 54 + 17 + 45  # in place of SUPERVISOR
KERNEL_ZERO = 23 + 6 * 5  # each group of columns at first, besides zeros for its sums, a vector of two at a time
KERNEL_GROUP = 14  # each group of k, and in it each of columns
KERNEL_ROW = 14  # in that each row of the kernel,
KERNEL_ELEMENT = 12  # each element of it
KERNEL_HEIGHTS = (1, 18), (2, 49), (4, 63)  # each pass, in place of PASS, by kernel elements in it
KERNEL_WORKER = 17, 18  # a worker's cycles of a pass, with sums of FLOAT and of HALF,
KERNEL_PIECE = 39 - 3 * 8, 28 - 3 * 4  # and of each row of the field in it, besides those that its results take, of FLOAT and of HALF
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


def work_cycles(
    target: Target, problem: Problem, rows: Array, kernel: tuple[Array, ...], depth: Array, columns: Array, met: Array | None = None, width: Array | int = 1
) -> Array:
    """Cycles of a tile for its part of ``problem``: so many rows, kernel elements of each dimension, k and columns.

    Of a product of matrices the unit holds the left one, as PopLibs has it (it swaps the operands of the convolution that it makes of it).

    met: Of the rows, how many meet a kernel element on average; of them ``width`` follow each other in a row of the field.
    """
    if not problem.windows:
        return product_cycles(target, problem.dtype, columns, depth, rows, problem.partials)
    met = rows if met is None else met
    elements = np.prod(np.broadcast_arrays(*kernel), axis=0)
    if problem.channelwise:
        each = -(-np.asarray(met) // target.num_worker_contexts)
        worker = each * -(-np.asarray(columns) // CHANNELWISE_WIDTH) * (CHANNELWISE_OUTPUT + CHANNELWISE_ELEMENT * elements)
        made: Array = CHANNELWISE_SUPERVISOR + target.num_worker_contexts * worker
        return made
    alone = product_cycles(target, problem.dtype, met, elements * depth, columns, problem.partials)
    if problem.single:
        return alone
    zeros = np.asarray(rows) * columns // target.get_vector_width(problem.partials)
    chosen: Array = np.where(elements > 1, zeros + _window_cycles(target, problem, met, width, kernel, np.asarray(depth), np.asarray(columns)), alone)
    return chosen


def _window_cycles(target: Target, problem: Problem, met: Array, width: Array | int, kernel: tuple[Array, ...], depth: Array, columns: Array) -> Array:
    """``work_cycles`` of a kernel of more than one element: the best of the ways to share a pass between k and neighbours along the kernel."""
    elements = np.prod(np.broadcast_arrays(*kernel), axis=0)
    fused = np.prod(np.broadcast_arrays(1, *kernel[problem.rank - problem.fused :]), axis=0)
    inner = np.maximum(fused, np.maximum.reduce(np.broadcast_arrays(*kernel)))  # a pass takes its elements from rows that may lie apart
    per_pass, units = pass_shape(target, problem.dtype, problem.partials)
    workers, load = target.num_worker_contexts, _load(target, problem.dtype, units)
    across, passes = -(-columns // max(units, per_pass)), -(-columns // units)
    worker = KERNEL_WORKER[problem.partials is HALF] + _pieces(target, problem.dtype, met, width)
    ways = []
    for height, fixed in KERNEL_HEIGHTS:
        positions = elements // np.maximum(inner, 1) * -(-inner // height)
        each_pass = positions * (fixed + load + workers * worker)
        control = KERNEL_GROUP + across * (KERNEL_GROUP + elements // np.maximum(kernel[-1], 1) * KERNEL_ROW + positions * KERNEL_ELEMENT)
        ways.append(-(-depth * height // per_pass) * (control + passes * each_pass))
    made: Array = KERNEL_SUPERVISOR + across * KERNEL_ZERO + np.minimum.reduce(ways)
    return made


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


def _pieces(target: Target, dtype: ElementType, rows: Array, width: Array | int) -> Array:
    """A worker's cycles of a pass over ``rows`` of which ``width`` at a time follow each other: what it has of each row of the field is begun anew."""
    rows, across = np.asarray(rows), np.asarray(np.maximum(width, 1))
    each = -(-rows // target.num_worker_contexts)
    row, piece = (FLOAT_ROW, KERNEL_PIECE[0]) if dtype is FLOAT else (target.conv_unit_max_pipeline_depth, KERNEL_PIECE[1])
    made: Array = np.zeros(np.broadcast_shapes(rows.shape, across.shape), np.int64)
    for worker in range(target.num_worker_contexts):
        begin, end = np.minimum(worker * each, rows), np.minimum((worker + 1) * each, rows)
        pieces = np.where(end > begin, (end - 1) // across - begin // across + 1, 0)
        made = np.maximum(made, pieces * piece + (end - begin) * row)
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
