"""The part of Graph that makes variables and says where they live."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from popcore.debug import user_site
from popcore.errors import GraphError, ShapeError, TileMappingError
from popcore.graph import cloning, tiles, values
from popcore.graph.cloning import CloneMethod
from popcore.graph.regions import expand
from popcore.graph.tensor import Tensor, concat, whole
from popcore.graph.variable import Variable, Variables
from popcore.graph.vertex import FieldRef, VertexRef
from popcore.target import Target
from popcore.types import Array, DTypeLike, as_element_type

_LINEAR_BYTES = 128  # a tile gets at least so much of a linear mapping: less is not worth the exchange


class Storage:
    """Variables, constants, their mapping and initial values."""

    variables: Variables
    target: Target
    _num_tiles: int
    _translation: Array | None  # of a virtual graph: the whole target's tile for each of its own
    _inverse: Array  # ... and its own for each of the whole target's, -1 where it has none

    def add_variable(self, dtype: DTypeLike, shape: Sequence[int] | int, mapping: Any = None, *, name: str = "", tile: int | None = None) -> Tensor:
        """Elements in row-major order, on no tile yet, holding nothing until something writes them.

        Args:
            mapping: "linear" spreads the elements over the tiles; a list for each tile of (begin, end) as in ``set_tile_mapping``.
            tile: Map all of it there.
        """
        tensor = whole(Variable(self.variables, as_element_type(dtype), self._shape(shape, name), name, user_site()))
        self._map_new(tensor, mapping, tile)
        return tensor

    def add_constant(self, dtype: DTypeLike, shape: Sequence[int] | int, value: Any, *, name: str = "", tile: int | None = None) -> Tensor:
        """Elements that never change: one value for all, or an array of ``shape``.

        Raises: ValueRangeError: a value that ``dtype`` cannot hold.
        Warns: PopcoreWarning: HALF makes zero or infinity of a value.
        """
        element, dims = as_element_type(dtype), self._shape(shape, name)
        numel = int(np.prod(dims, dtype=object))
        initial = values.fitted(value, element, dims, numel, f"constant {name!r}" if name else "a constant")
        made = Variable(self.variables, element, dims, name or f"constant {len(self.variables)}", user_site(), constant=True)
        made.initial = initial
        tensor = whole(made)
        self._map_new(tensor, None, tile)
        return tensor

    def set_initial_value(self, what: Tensor | FieldRef, value: Any) -> None:
        """What a tensor, or a field of a vertex, holds when an engine loads; running again does not restore it.

        Raises: ValueRangeError: a value that the element type cannot hold, naming the place and the range.
        """
        if isinstance(what, FieldRef):
            self._set_field_value(what, value)
            return
        self._own_tensor(what, "set_initial_value")
        if what.contains_constant:
            raise GraphError(f"set_initial_value of {what!r}", "the value of a constant is given when it is made")
        made = values.fitted(value, what.dtype, what.shape, what.num_elements, f"the initial value of {what.name!r}")
        if what.variable is not None and (simple := what.simple) is not None:
            what.variable.set_initial(slice(simple[1], simple[1] + simple[2]), made.view(what.variable.dtype.numpy))
            return
        r = what.regions()
        for variable in what.variables():
            mine = r.var == variable.id
            view = expand(r.begins[mine], r.length[mine])
            variable.set_initial(expand(r.start[mine], r.length[mine]), made[view].view(variable.dtype.numpy))

    def set_tile_mapping(self, what: Tensor | VertexRef, mapping: Any) -> None:
        """Map a tensor, or a vertex, to a tile; or a tensor by a list for each tile of (begin, end) of its flattened view.

        The last mapping of an element wins; a view maps the elements it shows.

        Raises: TileMappingError: a tile that does not exist; a list that does not map each element of the tensor once.
        """
        if mapping.__class__ is int and 0 <= mapping < self._num_tiles and self._translation is None and what.__class__ is Tensor:
            variable = what.variable
            if variable is not None and variable.home is self.variables and len(what.shape) == 1 == what.strides[0]:
                variable.mapping.assign_one(what.offset, what.shape[0], mapping)
                return
        if isinstance(what, VertexRef):
            what.group.set_tile(what.index, self.tile_of(mapping, what))
            return
        self._own_tensor(what, "set_tile_mapping")
        if isinstance(mapping, Sequence) and not isinstance(mapping, str):
            begin, length, tile = tiles.read_lists(what, mapping, self._num_tiles)
            self.map_intervals(what, begin, length, tile)
        else:
            tiles.assign_tile(what, self.tile_of(mapping, what))

    def map_intervals(self, tensor: Tensor, begin: Array, length: Array, tile: Array) -> None:
        """``set_tile_mapping`` from arrays: parts of the flattened view, each to a tile of this graph.

        begin, length, tile  int[n]; lengths > 0

        Raises: TileMappingError: a tile that does not exist, a part outside of the tensor.
        """
        begin, length, tile = np.asarray(begin, np.int64), np.asarray(length, np.int64), np.asarray(tile, np.int32)
        if begin.size and (int(tile.min()) < 0 or int(tile.max()) >= self._num_tiles):
            self.tile_of(int(tile[(tile < 0) | (tile >= self._num_tiles)][0]), tensor)
        if begin.size and (int(begin.min()) < 0 or int((begin + length).max()) > tensor.num_elements or int(length.min()) < 1):
            raise TileMappingError(f"a mapping of {tensor!r} goes past its {tensor.num_elements} elements", "parts of the flattened tensor")
        tiles.assign_intervals(tensor, begin, length, tile if self._translation is None else self._translation[tile])

    def get_tile_mapping(self, tensor: Tensor, require_complete: bool = False) -> list[list[tuple[int, int]]]:
        """For each tile of this graph, the (begin, end) of the flattened view that it holds, in order.

        Raises: TileMappingError: ``require_complete``, and elements are on none of this graph's tiles.
        """
        begin, end, tile = self.tile_intervals(tensor)
        missing = tensor.num_elements - int((end - begin).sum())
        if require_complete and missing:
            raise TileMappingError(f"{missing} of {tensor.num_elements} elements of {tensor!r} are on no tile", "map all of it first")
        return tiles.as_lists(begin, end, tile, self._num_tiles)

    def tile_intervals(self, tensor: Tensor) -> tiles.Mapped:
        """``get_tile_mapping`` as arrays: begin int64, end int64, tile int32, in order of the flattened view."""
        self._own_tensor(tensor, "get_tile_mapping")
        begin, end, tile = tiles.tile_intervals(tensor)
        if self._translation is None:
            return begin, end, tile
        mine = self._inverse[tile]
        here = mine >= 0
        return begin[here], end[here], mine[here]

    def linear_mapping(self, dtype: DTypeLike, numel: int, min_elements: int | None = None, grain: int | None = None) -> tiles.Mapped:
        """Poplar's linear mapping, as (begin, length, tile): by default whole vectors of the type, and at least 128 bytes a tile."""
        element = as_element_type(dtype)
        least = -(-_LINEAR_BYTES // element.nbytes) if min_elements is None else min_elements
        return tiles.linear_intervals(numel, self._num_tiles, least, self.target.get_vector_width(element) if grain is None else grain)

    def clone(
        self, tensor: Tensor, name: str = "", method: CloneMethod | str = CloneMethod.PRESERVE_ORDER_UNLESS_ALIASES, dtype: DTypeLike | None = None
    ) -> Tensor:
        """New elements with the shape, tile mapping and (as ``method`` says) order in memory of ``tensor``."""
        self._own_tensor(tensor, "clone")
        element = tensor.dtype if dtype is None else as_element_type(dtype)
        return cloning.clone(self.variables, tensor, element, name or f"{tensor.name}/clone", cloning.method_of(method))

    def clone_n(self, tensor: Tensor, n: int, name: str = "", method: CloneMethod | str = CloneMethod.PRESERVE_ORDER_UNLESS_ALIASES) -> Tensor:
        """``n`` clones as one tensor with ``n`` as its first dimension."""
        if n < 1:
            raise ShapeError(f"clone_n of {tensor!r} {n} times", "1 or more")
        return concat([self.clone(tensor, f"{name or tensor.name + '/clone'} {i}", method).expand([0]) for i in range(n)])

    def tile_of(self, tile: Any, what: Any) -> int:
        """The tile of the whole target for a tile of this graph. Raises: TileMappingError, naming ``what``, tile and num_tiles."""
        if isinstance(tile, (bool, np.bool_)) or not hasattr(tile, "__index__"):
            raise TileMappingError(f"{what!r} is mapped to tile {tile!r}", "a whole number, or a list for each tile of (begin, end)")
        number = operator.index(tile)
        if not 0 <= number < self._num_tiles:
            raise TileMappingError(
                f"{what!r} is mapped to tile {number}, the target has num_tiles = {self._num_tiles}", f"a tile from 0 to {self._num_tiles - 1}"
            )
        return number if self._translation is None else int(self._translation[number])

    def _map_new(self, tensor: Tensor, mapping: Any, tile: int | None) -> None:
        if isinstance(mapping, str):
            if mapping != "linear":
                raise TileMappingError(f"mapping {mapping!r} of {tensor!r}", "'linear', None, or a list for each tile of (begin, end)")
            self.map_intervals(tensor, *self.linear_mapping(tensor.dtype, tensor.num_elements))
        elif mapping is not None:
            self.set_tile_mapping(tensor, mapping)
        if tile is not None:
            self.set_tile_mapping(tensor, tile)

    def _own_tensor(self, tensor: Any, what: str) -> None:
        if not isinstance(tensor, Tensor):
            raise GraphError(f"{what}: {tensor!r:.80} is no tensor", "pass what add_variable, add_constant or a view of those gave")
        if tensor._variables() is not self.variables:
            raise GraphError(f"{what}: {tensor!r} belongs to another graph", "use tensors of this graph")

    def _set_field_value(self, field: FieldRef, value: Any) -> None:
        raise NotImplementedError  # Graph does

    @staticmethod
    def _shape(shape: Any, name: str) -> tuple[int, ...]:
        given = (shape,) if hasattr(shape, "__index__") else tuple(shape)
        if any(isinstance(n, bool) or not hasattr(n, "__index__") or operator.index(n) < 0 for n in given):
            raise ShapeError(f"shape {given} of {name or 'a tensor'}", "whole numbers of 0 or more; () is a scalar")
        return tuple(operator.index(n) for n in given)
