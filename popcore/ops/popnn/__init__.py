"""Functions of neural networks: non-linearities, softmax, losses, normalisation. After PopLibs' popnn, in snake_case."""

from popcore.ops.popnn.extremes import arg_max, arg_min, max_and_arg_max, min_and_arg_min, top_k
from popcore.ops.popnn.loss import LossType, calc_accuracy, calc_loss
from popcore.ops.popnn.non_linearity import NonLinearityType, non_linearity, non_linearity_in_place, non_linearity_input_gradient
from popcore.ops.popnn.norms import BATCH, LAYER, Norm, norm_gradients, norm_param_gradients, norm_statistics, norm_whiten, normalise
from popcore.ops.popnn.softmax import log_softmax, log_softmax_in_place, softmax, softmax_in_place

__all__ = [
    "BATCH",
    "LAYER",
    "LossType",
    "NonLinearityType",
    "Norm",
    "arg_max",
    "arg_min",
    "calc_accuracy",
    "calc_loss",
    "log_softmax",
    "log_softmax_in_place",
    "max_and_arg_max",
    "min_and_arg_min",
    "non_linearity",
    "non_linearity_in_place",
    "non_linearity_input_gradient",
    "norm_gradients",
    "norm_param_gradients",
    "norm_statistics",
    "norm_whiten",
    "normalise",
    "softmax",
    "softmax_in_place",
    "top_k",
]
