"""popops: element-wise operations, expressions, reductions and what goes with them. After PopLibs' popops, in snake_case."""

from popcore.ops.popops import binary, embedding, expr, rearrange, ternary, unary
from popcore.ops.popops.binary import *  # noqa: F403
from popcore.ops.popops.cast import cast, cast_with_output, check_accuracy_when_cast
from popcore.ops.popops.circ_buf import CircBuf
from popcore.ops.popops.codelets import add_codelets
from popcore.ops.popops.embedding import SlicePlan
from popcore.ops.popops.encoding import MASKED_LABEL_CODE, encode_one_hot
from popcore.ops.popops.expr import BinaryOpType, TernaryOpType, UnaryOpType
from popcore.ops.popops.fill import fill, iota, zero
from popcore.ops.popops.gather import create_gather_input, gather
from popcore.ops.popops.host import IndicesAndTensor, create_host_sliceable_tensor, create_host_transferable_tensor
from popcore.ops.popops.image import create_normalise_image_input, normalise_image
from popcore.ops.popops.logic import all_true, has_nan, has_nan_or_inf
from popcore.ops.popops.lookups import (
    grouped_multi_slice,
    grouped_multi_update,
    grouped_multi_update_add,
    grouped_multi_update_max,
    grouped_multi_update_mul,
    multi_slice,
    multi_update,
    multi_update_add,
    multi_update_max,
    multi_update_mul,
)
from popcore.ops.popops.loop import counted_for_loop, counted_loop
from popcore.ops.popops.mapping import map, map_in_place, map_with_output, output_generated_codelet  # noqa: A004  # PopLibs' name
from popcore.ops.popops.operation import Operation, ReduceParams
from popcore.ops.popops.pad import PaddingMapping, PaddingType, pad
from popcore.ops.popops.reduce import SingleReduceOp, reduce, reduce_many, reduce_with_output
from popcore.ops.popops.rows import select_scalar_from_rows, update_scalar_in_rows
from popcore.ops.popops.scaled_add import ScaledAddSpecialisation, scaled_add_to, scaled_subtract_from
from popcore.ops.popops.scatter import scatter
from popcore.ops.popops.sequence_slice import sequence_slice
from popcore.ops.popops.slicing import (
    create_dynamic_slice_output,
    create_grouped_indices_tensor,
    create_grouped_slice_tensor,
    create_grouped_sliceable_tensor,
    create_indices_tensor,
    create_slice_tensor,
    create_sliceable_tensor,
    create_sliceable_tensor_from_slice,
    dynamic_slice,
    dynamic_slice_with_output,
    dynamic_update,
    get_slice_mapping,
)
from popcore.ops.popops.sort import sort, sort_in_place, sort_key_value, sort_key_value_in_place
from popcore.ops.popops.statistics import histogram, histogram_with_output
from popcore.ops.popops.ternary import *  # noqa: F403
from popcore.ops.popops.top_k import SortOrder, TopKParams, create_top_k_input, top_k, top_k_key_value, top_k_with_permutation
from popcore.ops.popops.unary import *  # noqa: F403

__all__ = [
    "MASKED_LABEL_CODE",
    "BinaryOpType",
    "CircBuf",
    "IndicesAndTensor",
    "Operation",
    "PaddingMapping",
    "PaddingType",
    "ReduceParams",
    "ScaledAddSpecialisation",
    "SingleReduceOp",
    "SlicePlan",
    "SortOrder",
    "TernaryOpType",
    "TopKParams",
    "UnaryOpType",
    "add_codelets",
    "all_true",
    "cast",
    "cast_with_output",
    "check_accuracy_when_cast",
    "counted_for_loop",
    "counted_loop",
    "create_dynamic_slice_output",
    "create_gather_input",
    "create_grouped_indices_tensor",
    "create_grouped_slice_tensor",
    "create_grouped_sliceable_tensor",
    "create_host_sliceable_tensor",
    "create_host_transferable_tensor",
    "create_indices_tensor",
    "create_normalise_image_input",
    "create_slice_tensor",
    "create_sliceable_tensor",
    "create_sliceable_tensor_from_slice",
    "create_top_k_input",
    "dynamic_slice",
    "dynamic_slice_with_output",
    "dynamic_update",
    "embedding",
    "encode_one_hot",
    "expr",
    "fill",
    "gather",
    "get_slice_mapping",
    "grouped_multi_slice",
    "grouped_multi_update",
    "grouped_multi_update_add",
    "grouped_multi_update_max",
    "grouped_multi_update_mul",
    "has_nan",
    "has_nan_or_inf",
    "histogram",
    "histogram_with_output",
    "iota",
    "map",
    "map_in_place",
    "map_with_output",
    "multi_slice",
    "multi_update",
    "multi_update_add",
    "multi_update_max",
    "multi_update_mul",
    "normalise_image",
    "output_generated_codelet",
    "pad",
    "rearrange",
    "reduce",
    "reduce_many",
    "reduce_with_output",
    "scaled_add_to",
    "scaled_subtract_from",
    "scatter",
    "select_scalar_from_rows",
    "sequence_slice",
    "sort",
    "sort_in_place",
    "sort_key_value",
    "sort_key_value_in_place",
    "top_k",
    "top_k_key_value",
    "top_k_with_permutation",
    "update_scalar_in_rows",
    "zero",
]
__all__ += binary.__all__
__all__ += ternary.__all__
__all__ += unary.__all__
