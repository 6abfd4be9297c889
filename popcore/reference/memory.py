"""The memory of a ReferenceEngine: for every variable one flat array, for each replica. There are no tiles."""

from __future__ import annotations

import numpy as np

from popcore.graph import Graph, Tensor
from popcore.graph.regions import Regions
from popcore.types import UNSIGNED_INT, Array, ElementType, as_element_type


class Memory:
    """Values of all elements of a graph.

    Attributes:
        arrays: By variable id: ``[replicas, elements]``, in the element type's host dtype.
    """

    def __init__(self, graph: Graph, replicas: int) -> None:
        self.replicas = replicas
        self._initial = [(v.id, v.dtype, v.numel, v.initial, v.has_initial) for v in graph.variables]
        self._numbered = [t.regions() for t in graph.replica_indices]
        self.arrays: dict[int, Array] = {}
        self.load()

    def load(self) -> None:
        """Everything as it is when an engine loads: initial values where there are any, 0 elsewhere."""
        for number, dtype, elements, initial, has_initial in self._initial:
            array = np.zeros((self.replicas, elements), dtype.numpy)
            if initial is not None:
                given = slice(None) if has_initial is None else has_initial
                array[:, given] = initial[given]
            self.arrays[number] = array
        for regions in self._numbered:
            self.write(regions, as_element_type(UNSIGNED_INT), np.repeat(np.arange(self.replicas, dtype=np.uint32)[:, None], regions.numel, axis=1))

    def read(self, regions: Regions, dtype: ElementType) -> Array:
        """A copy of the elements in ``regions``, ``[replicas, elements]``, seen as ``dtype``."""
        out = np.empty((self.replicas, regions.numel), dtype.numpy)
        at = 0
        for variable, start, length in zip(regions.var.tolist(), regions.start.tolist(), regions.length.tolist(), strict=True):
            out[:, at : at + length] = self.arrays[variable].view(dtype.numpy)[:, start : start + length]
            at += length
        return out

    def write(self, regions: Regions, dtype: ElementType, values: Array) -> None:
        """Write ``values``, ``[replicas, elements]``; where an element appears twice the last value stays."""
        at = 0
        for variable, start, length in zip(regions.var.tolist(), regions.start.tolist(), regions.length.tolist(), strict=True):
            self.arrays[variable].view(dtype.numpy)[:, start : start + length] = values[:, at : at + length]
            at += length

    def read_tensor(self, tensor: Tensor) -> Array:
        """``[replicas, *shape]``."""
        return self.read(tensor.regions(), tensor.dtype).reshape((self.replicas, *tensor.shape))

    def write_tensor(self, tensor: Tensor, values: Array) -> None:
        self.write(tensor.regions(), tensor.dtype, values.reshape((self.replicas, tensor.num_elements)))
