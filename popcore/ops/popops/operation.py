"""What a reduction does: the operations, and what may go with them."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from typing import Any

from popcore.errors import ElementTypeError, GraphError
from popcore.graph import Tensor
from popcore.graph.values import limits
from popcore.types import BOOL, FLOAT, ElementType


class Operation(enum.Enum):
    """How a reduction joins elements."""

    ADD = "Add"
    MUL = "Mul"
    MIN = "Min"
    MAX = "Max"
    LOGICAL_AND = "LogicalAnd"
    LOGICAL_OR = "LogicalOr"
    SQUARE_ADD = "SquareAdd"
    LOG_ADD = "LogAdd"

    @property
    def of_partials(self) -> Operation:
        """What joins the results of parts."""
        return Operation.ADD if self is Operation.SQUARE_ADD else self

    def identity(self, dtype: ElementType) -> Any:
        """The result for no elements at all."""
        match self:
            case Operation.ADD | Operation.SQUARE_ADD | Operation.LOGICAL_OR:
                return 0
            case Operation.MUL | Operation.LOGICAL_AND:
                return 1
            case Operation.MIN:
                return _greatest(dtype) if dtype.is_floating else limits(dtype)[1]
            case Operation.MAX:
                return -_greatest(dtype) if dtype.is_floating else limits(dtype)[0]
            case Operation.LOG_ADD:
                return -_greatest(dtype)


def _greatest(dtype: ElementType) -> float:
    """Infinity; of HALF, whose arithmetic has none on a device, the greatest number."""
    return 65504.0 if dtype.kind == "half" else math.inf


@dataclass(frozen=True)
class ReduceParams:
    """An operation, and what happens to its result.

    update: Join the result with what the output holds rather than replace it.
    scale: A FLOAT tensor of one element that the result is multiplied by first; of ADD and SQUARE_ADD only.
    """

    op: Operation
    update: bool = False
    scale: Tensor | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.op, Operation):
            raise GraphError(f"ReduceParams({self.op!r})", "popops.Operation.ADD, MAX, ...")
        if self.scale is None:
            return
        if self.op not in (Operation.ADD, Operation.SQUARE_ADD):
            raise GraphError(f"a reduction by {self.op.name} with a scale", "a scale goes with ADD and SQUARE_ADD")
        if not isinstance(self.scale, Tensor) or self.scale.num_elements != 1 or self.scale.dtype is not FLOAT:
            raise ElementTypeError(f"the scale of a reduction is {self.scale!r}", "a FLOAT tensor of one element")


def as_params(what: ReduceParams | Operation) -> ReduceParams:
    """An Operation alone has no update and no scale."""
    return what if isinstance(what, ReduceParams) else ReduceParams(what)


def check_types(op: Operation, data: ElementType, out: ElementType, scaled: bool, what: str) -> None:
    """Raises: ElementTypeError where ``op`` cannot reduce ``data`` to ``out``."""
    if op in (Operation.LOGICAL_AND, Operation.LOGICAL_OR):
        fits, hint = data is BOOL and out is BOOL, "BOOL in and out"
    elif op in (Operation.MIN, Operation.MAX):
        fits, hint = data is out and data.kind in ("float", "half", "int", "uint"), "one type in and out, not BOOL"
    elif op is Operation.LOG_ADD:
        fits, hint = data.kind in ("float", "half") and out.kind in ("float", "half"), "FLOAT or HALF"
    else:
        floats = data.kind in ("float", "half") and out.kind in ("float", "half")
        fits, hint = (
            floats or (data is out and data.is_integral and not scaled),
            "FLOAT or HALF in and out, or one integer type without a scale; cast BOOL first",
        )
    if not fits:
        raise ElementTypeError(f"{what}: {op.name} of {data!r} to {out!r}{' with a scale' if scaled else ''}", hint)
