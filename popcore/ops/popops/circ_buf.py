"""CircBuf: the tensors of the last steps. After ``popops/CircBuf.hpp``."""

from __future__ import annotations

import math
from collections.abc import Sequence as Items

from popcore.errors import ShapeError, ValueRangeError
from popcore.graph import Graph, Tensor
from popcore.ops.popops import common
from popcore.ops.popops.expr import Const, PlaceHolder
from popcore.ops.popops.mapping import map as map_elements
from popcore.ops.popops.mapping import map_in_place
from popcore.ops.popops.slicing import create_sliceable_tensor, dynamic_slice, dynamic_update, get_slice_mapping
from popcore.program import Sequence
from popcore.types import UNSIGNED_INT, DTypeLike


class CircBuf:
    """Keeps the last ``size`` tensors of ``shape`` that were added.

    Raises: ValueRangeError: no room for a tensor.
    """

    def __init__(self, graph: Graph, dtype: DTypeLike, size: int, shape: Items[int], name: str = "") -> None:
        if size < 1:
            raise ValueRangeError(f"a CircBuf of {size} tensors", "1 or more")
        self.graph, self._size, self.shape, self.name = graph, size, tuple(shape), common.joined(name, "CircBuf")
        self._kept = create_sliceable_tensor(graph, dtype, (size, max(1, math.prod(self.shape))), [0], [1], name=self.name)
        self._index = graph.add_variable(UNSIGNED_INT, (1,), name=f"{self.name}/index", tile=0)
        graph.set_initial_value(self._index, 0)

    def add(self, t: Tensor, prog: Sequence, name: str = "") -> None:
        """Add a step that appends ``t``, in place of the oldest one if there is no room.

        Raises: ShapeError: another shape or type.
        """
        step = common.joined(name, self.name)
        common.require_tensors(step, t)
        if t.shape != self.shape or t.dtype is not self._kept.dtype:
            raise ShapeError(f"{step}: {t!r} is added", f"{list(self.shape)} of {self._kept.dtype!r}")
        map_in_place(self.graph, (PlaceHolder(1) + Const(1, UNSIGNED_INT)) % Const(self._size, UNSIGNED_INT), [self._index], prog, step)
        if t.num_elements:
            dynamic_update(self.graph, self._kept, t.reshape((1, t.num_elements)), self._index, [0], [1], prog, step)

    def prev(self, i: int, prog: Sequence, name: str = "") -> Tensor:
        """A new tensor with what was added ``i`` tensors before the last.

        Raises: ValueRangeError: more tensors back than are kept.
        """
        step = common.joined(name, self.name)
        if not 0 <= i < self._size:
            raise ValueRangeError(f"{step}: {i} tensors back of {self._size}", f"0 to {self._size - 1}")
        back = (PlaceHolder(1) + Const(self._size - i, UNSIGNED_INT)) % Const(self._size, UNSIGNED_INT)
        at = map_elements(self.graph, back, [self._index], prog, step)
        made = dynamic_slice(self.graph, self._kept, at, [0], [1], prog, step)
        return made.flatten().slice(0, math.prod(self.shape)).reshape(self.shape)

    def get_index(self) -> Tensor:
        """Where the last tensor is, (1,) of UNSIGNED_INT."""
        return self._index

    def size(self) -> int:
        return self._size

    def get_tile_mapping(self) -> list[list[tuple[int, int]]]:
        """The tile mapping of what ``prev`` gives: for each tile its (begin, end)."""
        return get_slice_mapping(self.graph, self._kept, [0], [1])
