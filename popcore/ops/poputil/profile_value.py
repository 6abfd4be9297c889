"""to_profile_value: what an op's argument looks like in a report. After ``poputil/DebugInfo.hpp``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from popcore.graph import ComputeSet, Tensor
from popcore.types import ElementType


def to_profile_value(value: Any) -> Any:
    """``value`` as numbers, texts, lists and dictionaries, which JSON can hold; of anything else its text.

    A tensor becomes its shape, type and variables; nothing of a graph is kept alive by it.
    """
    if value is None:
        return "<nullptr>"
    if isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Tensor):
        return {"shape": list(value.shape), "type": value.dtype.poplar_name, "name": value.name, "variables": [v.id for v in value.variables()]}
    if isinstance(value, ElementType):
        return value.poplar_name
    if isinstance(value, ComputeSet):
        return {"id": value.id, "name": value.name}
    if isinstance(value, Mapping):
        return {str(k): to_profile_value(v) for k, v in value.items()}
    if isinstance(value, tuple | list):
        return [to_profile_value(v) for v in value]
    return str(value)
