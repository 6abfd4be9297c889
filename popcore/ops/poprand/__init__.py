"""poprand: random numbers from the generators of the tiles. After PopLibs' poprand, in snake_case."""

from popcore.ops.popops.codelets import add_codelets
from popcore.ops.poprand.distributions import bernoulli, log_uniform, normal, truncated_normal, uniform
from popcore.ops.poprand.dropout import dropout, shaped_dropout
from popcore.ops.poprand.seeds import get_hw_seeds, set_hw_seeds, set_seed

__all__ = [
    "add_codelets",
    "bernoulli",
    "dropout",
    "get_hw_seeds",
    "log_uniform",
    "normal",
    "set_hw_seeds",
    "set_seed",
    "shaped_dropout",
    "truncated_normal",
    "uniform",
]
