"""Calls of PopLibs that take more or fewer tensors before the program."""

from __future__ import annotations

from collections.abc import Sequence as Items
from typing import Any

from popcore.errors import GraphError
from popcore.graph import Tensor
from popcore.ops.popops import common
from popcore.program import Sequence


def tensors_and_program(step: str, arguments: Items[Any], counts: tuple[int, ...]) -> tuple[list[Tensor], Sequence]:
    """The tensors among ``arguments``, and the program that ends them. Raises: GraphError: not one of ``counts`` tensors and a program."""
    if len(arguments) - 1 not in counts:
        wanted = " or ".join(f"{n} tensors and a program" for n in counts)
        raise GraphError(f"{step} is given {len(arguments)} arguments after the gradients", wanted)
    *tensors, prog = arguments
    common.require_tensors(step, *tensors)
    return tensors, common.sequence_of(prog, step)
