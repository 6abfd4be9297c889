"""popsparse::dynamic: products with a sparse matrix whose pattern may change from run to run.

The device has room for so many non-zero values; the host sends meta-information and values, both made by ``Partitioner``, whenever it likes. A bucket that is
too full is refused, with the amounts; PopLibs would pass the rest on from tile to tile, at a cost in each product. Options:
``availableMemoryProportion`` (0.6), ``metaInfoBucketOversizeProportion`` (0.3: room in a bucket beyond an even share; that for the spread of a
random pattern comes on top), ``partialsType`` ("float"), ``doGradAPass``, ``doGradWPass``, ``sharedBuckets`` (one set of buckets serves all passes). A
``cache`` is taken for PopLibs' sake: plans are remembered anyway.
"""

from popcore.ops.popsparse.buckets import SparseTensor
from popcore.ops.popsparse.embedding import create_indices_tensor, create_slice_tensor, embedding_slice, embedding_update_add
from popcore.ops.popsparse.fully_connected import (
    FullyConnectedParams,
    create_fully_connected_input,
    create_fully_connected_weights,
    fully_connected_dense_grad_w_serial_splits,
    fully_connected_fwd,
    fully_connected_grad_a,
    fully_connected_sparse_grad_w,
)
from popcore.ops.popsparse.mat_mul import MatMulParams, create_sparse_dense_mat_mul_lhs, create_sparse_dense_mat_mul_rhs, sparse_dense_mat_mul
from popcore.ops.popsparse.params import SparsityParams, SparsityStructure, SparsityType
from popcore.ops.popsparse.partitioner import Partitioner, SparsityDataImpl

__all__ = [
    "FullyConnectedParams",
    "MatMulParams",
    "Partitioner",
    "SparseTensor",
    "SparsityDataImpl",
    "SparsityParams",
    "SparsityStructure",
    "SparsityType",
    "create_fully_connected_input",
    "create_fully_connected_weights",
    "create_indices_tensor",
    "create_slice_tensor",
    "create_sparse_dense_mat_mul_lhs",
    "create_sparse_dense_mat_mul_rhs",
    "embedding_slice",
    "embedding_update_add",
    "fully_connected_dense_grad_w_serial_splits",
    "fully_connected_fwd",
    "fully_connected_grad_a",
    "fully_connected_sparse_grad_w",
    "sparse_dense_mat_mul",
]
