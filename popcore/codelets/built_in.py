"""The codelets that the op libraries use, by name, so that a saved Executable finds them. Generated ones: see ``described``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from popcore.codelets import arg_extreme, iota, mat_mul, reduce, slices

BUILT_IN: Mapping[str, Any] = {
    cls.__name__: cls
    for cls in (
        arg_extreme.ArgMaxRow,
        arg_extreme.ArgMinRow,
        iota.Iota,
        mat_mul.MatMulAddBlock,
        mat_mul.MatMulAddParts,
        mat_mul.MatMulBlock,
        mat_mul.MatMulSumParts,
        mat_mul.MatMulZero,
        *reduce.CODELETS.values(),
        slices.DynamicSlice,
        slices.DynamicUpdate,
        slices.MultiSlice,
        slices.MultiUpdate,
        slices.MultiUpdateAdd,
        slices.MultiUpdateMax,
        slices.MultiUpdateMul,
    )
}
