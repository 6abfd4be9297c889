"""What many expressions of FLOAT and HALF do: compute in FLOAT, and round to the type of the result once."""

from __future__ import annotations

from popcore.ops.popops.expr import Cast, Expr, PlaceHolder
from popcore.types import FLOAT, ElementType


def wide(k: int, dtype: ElementType) -> Expr:
    """Operand ``k``, a tensor of ``dtype``, in FLOAT."""
    return PlaceHolder(k) if dtype is FLOAT else Cast(PlaceHolder(k), FLOAT)


def rounded(e: Expr, dtype: ElementType) -> Expr:
    """``e``, which is FLOAT, as ``dtype``."""
    return e if dtype is FLOAT else Cast(e, dtype)
