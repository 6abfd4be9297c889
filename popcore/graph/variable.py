"""Variable: elements that live on tiles; what tensors are views of."""

from __future__ import annotations

from typing import Any

import numpy as np

from popcore.debug import Site
from popcore.graph.mapping import TileMapping
from popcore.graph.regions import SHIFT
from popcore.types import Array, ElementType


class Variables(list["Variable"]):
    """The variables of a graph; ``variables[v.id] is v``."""

    def __init__(self, graph: Any) -> None:
        super().__init__()
        self.graph = graph  # the Graph (any, since graph.py stands on this file)


class Variable:
    """Elements in row-major order, each on a tile or nowhere yet.

    Attributes:
        initial: What the elements hold when an engine loads: flat, C order, or None. Where ``has_initial`` is an
            array, only elements for which it is True have one; where it is None, all do.
        hidden: popcore made it, for vertex state and literals; its size may change with ``Graph.finalise``.
    """

    __slots__ = ("base", "constant", "dtype", "has_initial", "hidden", "home", "id", "initial", "mapping", "name", "numel", "shape", "site")

    def __init__(
        self, home: Variables, dtype: ElementType, shape: tuple[int, ...], name: str, site: Site, *, constant: bool = False, hidden: bool = False
    ) -> None:
        self.home = home
        self.id = len(home)
        self.base = self.id << SHIFT  # id of the first element
        self.dtype = dtype
        self.resize(shape)
        self.name = name or f"variable {self.id}"
        self.site = site
        self.constant = constant
        self.hidden = hidden
        self.initial: Array | None = None
        self.has_initial: Array | None = None
        self.mapping = TileMapping()
        home.append(self)

    def resize(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.numel = 1
        for n in shape:
            self.numel *= n

    def set_initial(self, places: Array | slice, values: Array) -> None:
        """Give the elements at ``places`` initial values; ``values`` has one for each, in the host's dtype."""
        if self.initial is None:
            self.initial = np.zeros(self.numel, self.dtype.numpy)
            self.has_initial = np.zeros(self.numel, bool)
        elif not self.initial.flags.writeable:
            self.initial = self.initial.copy()
        self.initial[places] = values
        if self.has_initial is not None:
            self.has_initial[places] = True
            if self.has_initial.all():
                self.has_initial = None

    def __str__(self) -> str:
        return f"{self.name!r} ({self.site})"

    def __repr__(self) -> str:
        kind = "constant" if self.constant else "variable"
        return f"<{kind} {self.name!r} {self.dtype!r}{list(self.shape)}>"
