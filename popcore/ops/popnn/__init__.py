"""Functions of neural networks: non-linearities, softmax, losses, normalisation, pooling. After PopLibs' popnn, in snake_case."""

from popcore.ops.popnn import bn, gn, gru, in_, ln, lstm, named, pooling
from popcore.ops.popnn.extremes import arg_max, arg_min, max_and_arg_max, min_and_arg_min, top_k
from popcore.ops.popnn.loss import LossType, calc_accuracy, calc_loss
from popcore.ops.popnn.named import *  # noqa: F403
from popcore.ops.popnn.non_linearity import NonLinearityType, non_linearity, non_linearity_in_place, non_linearity_input_gradient
from popcore.ops.popnn.pooling import PoolingType, PoolParams
from popcore.ops.popnn.softmax import log_softmax, log_softmax_in_place, softmax, softmax_in_place
from popcore.ops.popnn.spatial_softmax import spatial_soft_max_2d

__all__ = [
    "LossType",
    "NonLinearityType",
    "PoolParams",
    "PoolingType",
    "arg_max",
    "arg_min",
    "bn",
    "calc_accuracy",
    "calc_loss",
    "gn",
    "gru",
    "in_",
    "ln",
    "log_softmax",
    "log_softmax_in_place",
    "lstm",
    "max_and_arg_max",
    "min_and_arg_min",
    "non_linearity",
    "non_linearity_in_place",
    "non_linearity_input_gradient",
    "pooling",
    "softmax",
    "softmax_in_place",
    "spatial_soft_max_2d",
    "top_k",
]
__all__ += named.__all__
