"""Fully connected layers: the products that one will need. After ``poplin/FullyConnected.hpp``."""

from __future__ import annotations

from dataclasses import dataclass

from popcore.ops.poplin.params import Options
from popcore.ops.poplin.preplan import MatMulParams
from popcore.types import DTypeLike


@dataclass(frozen=True)
class FullyConnectedParams:
    """A layer of ``[num_groups, batch_size, input_size]`` to ``[num_groups, batch_size, output_size]``; each group has weights of its own."""

    num_groups: int
    batch_size: int
    input_size: int
    output_size: int


def get_mat_mul_pre_plan_parameters(
    parameters: FullyConnectedParams, matmul_options: Options, dtype: DTypeLike, inference_only: bool
) -> list[tuple[MatMulParams, dict[str, object]]]:
    """The products of a layer, each with its options: of the forward pass, and unless ``inference_only`` of the two backward ones.

    They are ``matmul_options`` with ``fullyConnectedPass`` set. ``preplan`` makes their plans ahead.
    """
    groups, batch, inputs, outputs = parameters.num_groups, parameters.batch_size, parameters.input_size, parameters.output_size
    passes = {"INFERENCE_FWD" if inference_only else "TRAINING_FWD": (batch, inputs, outputs)}
    if not inference_only:
        passes |= {"TRAINING_BWD": (batch, outputs, inputs), "TRAINING_WU": (inputs, batch, outputs)}
    return [
        (MatMulParams(dtype, dtype, (groups, m, k), (groups, k, n)), {**dict(matmul_options or {}), "fullyConnectedPass": which})
        for which, (m, k, n) in passes.items()
    ]
