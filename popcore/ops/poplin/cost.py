"""What a product costs on the modelled machine, as its planner and its vertices count it.

The structure is that of PopLibs' estimators for the product unit (AMP): weights are loaded a pass at a time, and all
workers then stream their rows past them. All arguments may be arrays.
"""

from __future__ import annotations

import numpy as np

from popcore.target import Target
from popcore.types import Array, ElementType

SUPERVISOR = 134 + 45  # start of the supervisor's code, its loop over passes, launch and completion: TS-AMP rows
PASS = 7  # one pass of it, besides loading weights
WORKER = 30  # a worker's cycles of one pass with three rows
SHORT_WORKER = (24, 33)  # and with one or two


def pass_shape(target: Target, dtype: ElementType) -> tuple[int, int]:
    """(k, n) of the weights that the product unit holds at once, with FLOAT sums."""
    half = dtype.kind == "half"
    units = target.fp16_in_fp32_out_conv_units_per_tile if half else target.fp32_in_fp32_out_conv_units_per_tile
    return target.get_weights_per_conv_unit(dtype), units


def product_cycles(target: Target, dtype: ElementType, rows: Array, depth: Array, columns: Array) -> Array:
    """Cycles of a tile for ``[rows, depth] @ [depth, columns]``; the columns of the second matrix are the weights."""
    per_pass, units = pass_shape(target, dtype)
    passes = -(-np.asarray(depth) // per_pass) * -(-np.asarray(columns) // units)
    load = -(-per_pass * units * dtype.nbytes // target.conv_unit_coeff_load_bytes_per_cycle)
    each = -(-np.asarray(rows) // target.num_worker_contexts)
    loop = target.conv_unit_max_pipeline_depth
    worker = np.where(each >= 3, WORKER + loop * (each - 3), np.where(each == 2, SHORT_WORKER[1], SHORT_WORKER[0]))
    made: Array = SUPERVISOR + passes * (PASS + load + target.num_worker_contexts * worker)
    return made


def sum_cycles(target: Target, parts: Array, elements: Array) -> Array:
    """Cycles of a tile for adding ``parts`` times ``elements`` FLOAT partials: six workers, a vector of two at a time."""
    each = -(-np.asarray(elements) // target.num_worker_contexts)
    made: Array = target.num_worker_contexts * (30 + (np.asarray(parts) + 1) * -(-each // target.float_vector_width))
    return made
