"""Draws variables, their maps, their data, and views of them."""

from __future__ import annotations

import itertools

import numpy as np

import popcore as pc
from popcore import (
    BOOL,
    CHAR,
    FLOAT,
    HALF,
    INT,
    LONGLONG,
    QUARTER_F143,
    SHORT,
    SIGNED_CHAR,
    UNSIGNED_CHAR,
    UNSIGNED_INT,
    UNSIGNED_LONGLONG,
    UNSIGNED_SHORT,
    ElementType,
    poputil,
)
from popcore.graph import Tensor, concat
from tests.fuzz.case import Case
from tests.fuzz.choices import Choices

COMMON = [FLOAT, HALF, INT, UNSIGNED_INT, BOOL, UNSIGNED_CHAR, SHORT, LONGLONG]
DTYPES = [*COMMON, *COMMON, CHAR, SIGNED_CHAR, UNSIGNED_SHORT, UNSIGNED_LONGLONG, QUARTER_F143]
SPECIAL = [0.0, -0.0, 1.0, -1.5, 0.1, 3e-8, 6e4, np.inf, -np.inf, np.nan]


class Drawing:
    """One case being drawn, by ``choose``."""

    def __init__(self, choose: Choices) -> None:
        self.choose = choose
        tiles, ipus, replicas = choose.between(1, 8), choose.of([1, 1, 1, 2]), choose.of([1, 1, 1, 1, 2, 3, 4])
        device = pc.Device("M2000", num_ipus=ipus * replicas, tiles_per_ipu=tiles)
        self.graph = pc.Graph(device.target, replication_factor=replicas)
        self.tiles = self.graph.target.num_tiles
        self.case = Case(self.graph, replicas)
        self.replicas, self.ipus = replicas, ipus
        self.random = np.random.default_rng(choose.below(1 << 16))
        self.pool: list[Tensor] = []  # variables that live as long as the engine: the host reads them
        self.names = 0
        if ipus > 1:
            self.note("several IPUs")
        if replicas > 1:
            self.note("replicas")

    def note(self, feature: str) -> None:
        """The case has this feature."""
        self.case.features.add(feature)

    # Data

    def values(self, dtype: ElementType, shape: tuple[int, ...]) -> np.ndarray:
        """Random values, special ones among them."""
        count = int(np.prod(shape))
        if dtype.is_floating:
            made = np.where(self.random.random(count) < 0.3, self.random.choice(SPECIAL, count), self.random.standard_normal(count) * 4)
            return made.astype(dtype.numpy).reshape(shape)
        if dtype is BOOL:
            return self.random.integers(0, 2, count).astype(bool).reshape(shape)
        limits = np.iinfo(dtype.numpy)
        wide = self.random.integers(limits.min, limits.max, count, dtype=dtype.numpy, endpoint=True)
        return np.where(self.random.random(count) < 0.5, wide, self.random.integers(0, 4, count, dtype=dtype.numpy)).astype(dtype.numpy).reshape(shape)

    def dtype(self) -> ElementType:
        return self.choose.of(DTYPES)

    def shape(self) -> tuple[int, ...]:
        """Small, with dimensions of 0 and 1 among them; sometimes larger."""
        if self.choose.once_in(3):
            return (self.choose.between(8, 70), self.choose.of([1, 3, 4, 16]))
        return self.small_shape()

    def small_shape(self) -> tuple[int, ...]:
        return tuple(self.choose.several(0, 7, 3))

    def tile(self) -> int:
        return self.choose.below(self.tiles)

    def name(self, kind: str) -> str:
        self.names += 1
        return f"{kind}{self.names}"

    def map(self, tensor: Tensor) -> None:
        """Map it: to one tile, evenly, in turn, or cut into random parts."""
        how = self.choose.below(4)
        n, flat = tensor.num_elements, tensor.flatten()
        if how == 0 or n < 2:
            self.graph.set_tile_mapping(tensor, self.tile())
        elif how == 1:
            self.note("map: linear")
            poputil.map_tensor_linearly(self.graph, tensor)
        elif how == 2:
            self.note("map: in turn")
            for at, low in enumerate(range(0, n, -(-n // 7))):
                self.graph.set_tile_mapping(flat[low : min(low + -(-n // 7), n)], at % self.tiles)
        else:
            self.note("map: random parts")
            for low, high in itertools.pairwise(sorted({0, n, *self.choose.several(0, n, 5)})):
                self.graph.set_tile_mapping(flat[low:high], self.tile())

    def variable(self, dtype: ElementType, shape: tuple[int, ...] | None = None) -> Tensor:
        """A new variable that the host writes and reads."""
        shape = self.shape() if shape is None else shape
        name = self.name("v")
        made = self.graph.add_variable(dtype, shape, name=name)
        self.map(made)
        if self.choose.once_in(2):
            self.graph.set_initial_value(made, self.values(dtype, shape))
        else:
            self.note("host write")
            self.graph.create_host_write(name, made)
            apart = self.replicas > 1 and self.choose.once_in(2)
            self.case.script.append(("write", name, self.values(dtype, (self.replicas, *shape) if apart else shape)))
        self.graph.create_host_read(name, made)
        self.pool.append(made)
        self.note(f"type: {dtype!r}")
        if not made.num_elements:
            self.note("an empty tensor")
        return made

    def constant(self, dtype: ElementType, shape: tuple[int, ...]) -> Tensor:
        self.note("constant")
        made = self.graph.add_constant(dtype, shape, self.values(dtype, shape), name=self.name("k"))
        self.map(made)
        return made

    def scalar(self, dtype: ElementType) -> Tensor:
        """One element of something."""
        flat = self.source(dtype).flatten()
        return flat[self.choose.below(flat.num_elements)] if flat.num_elements else self.variable(dtype, ())

    def control(self, dtype: ElementType) -> Tensor:
        """A scalar that decides. Of several replicas mostly one that they have alike: where they part the run ends."""
        if self.replicas == 1 or self.choose.once_in(6):
            return self.scalar(dtype)
        made = self.graph.add_variable(dtype, (), name=self.name("c"), tile=self.tile())
        self.graph.set_initial_value(made, self.values(dtype, ()))
        return made

    # Views

    def of(self, dtype: ElementType) -> Tensor:
        """A variable of this type: one there is, or a new one."""
        there = [t for t in self.pool if t.dtype is dtype]
        return self.choose.of(there) if there and self.choose.below(4) else self.variable(dtype)

    def view(self, t: Tensor, may_alias: bool) -> Tensor:
        """Up to three steps away from ``t``."""
        for _ in range(self.choose.between(0, 3)):
            t = self.step(t, may_alias)
        return t

    def step(self, t: Tensor, may_alias: bool) -> Tensor:
        """One step; where it makes no sense ``t`` itself."""
        names = list(_STEPS)
        how = self.choose.of(names)
        dim = self.choose.below(t.rank) if t.rank else 0
        made = _STEPS[how](self, t, dim) if t.rank else t.flatten()
        if made is t or not (may_alias or made.is_parallel_writeable):
            return t
        self.note(f"view: {how}")
        return made

    def _slice(self, t: Tensor, dim: int) -> Tensor:
        low = self.choose.between(0, t.dim(dim))
        return t.slice(low, self.choose.between(low, t.dim(dim)), dim)

    def _shuffle(self, t: Tensor, dim: int) -> Tensor:
        return t.dim_shuffle(self.choose.shuffled(range(t.rank)))

    def _reshape(self, t: Tensor, dim: int) -> Tensor:
        factors = [f for f in (2, 3, 4, 5, 7) if t.num_elements and t.num_elements % f == 0]
        return t.reshape((self.choose.of(factors), -1)) if factors else t

    def _index(self, t: Tensor, dim: int) -> Tensor:
        return t[self.choose.below(t.dim(0))] if t.dim(0) else t

    def _concat(self, t: Tensor, dim: int) -> Tensor:
        return concat(self.choose.shuffled([t.flatten(), self.of(t.dtype).flatten()]))

    def _join(self, t: Tensor, dim: int) -> Tensor:
        """Two parts of it the other way round."""
        cut = self.choose.between(0, t.dim(dim))
        return concat([t.slice(cut, t.dim(dim), dim), t.slice(0, cut, dim)], dim=dim)

    def _broadcast(self, t: Tensor, dim: int) -> Tensor:
        return t.broadcast(self.choose.between(0, 3), dim) if t.num_elements < 100 else t

    def _upsample(self, t: Tensor, dim: int) -> Tensor:
        return t.upsample(self.choose.between(1, 3), dim) if t.num_elements < 100 else t

    def source(self, dtype: ElementType) -> Tensor:
        """Something to read."""
        return self.constant(dtype, self.small_shape()) if self.choose.once_in(8) else self.view(self.of(dtype), True)

    def target(self, dtype: ElementType) -> Tensor:
        """Something to write."""
        return self.view(self.of(dtype), False)

    def sized(self, dtype: ElementType, count: int) -> Tensor:
        """Something to read, of rank 1 and ``count`` elements."""
        flat = self.source(dtype).flatten()
        if not flat.num_elements:
            return self.variable(dtype, (count,))
        flat = concat([flat] * -(-count // flat.num_elements)) if count > flat.num_elements else flat
        low = self.choose.between(0, flat.num_elements - count)
        return flat[low : low + count]

    def element(self, dtype: ElementType) -> Tensor:
        """One element to write."""
        flat = self.target(dtype).flatten()
        return flat[self.choose.below(flat.num_elements)] if flat.num_elements else self.variable(dtype, ())

    def part(self, dtype: ElementType) -> Tensor:
        """Something to read that has each element once."""
        return self.view(self.of(dtype), False)


_STEPS = {
    "slice": Drawing._slice,
    "flatten": lambda self, t, dim: t.flatten(),
    "reverse": lambda self, t, dim: t.reverse(dim),
    "shuffle": Drawing._shuffle,
    "sub_sample": lambda self, t, dim: t.sub_sample(self.choose.between(1, 3), dim),
    "reshape": Drawing._reshape,
    "index": Drawing._index,
    "expand": lambda self, t, dim: t.expand([dim]),
    "transpose": lambda self, t, dim: t.transpose() if t.rank == 2 else t,
    "squeeze": lambda self, t, dim: t.squeeze(),
    "concat": Drawing._concat,
    "join": Drawing._join,
    "broadcast": Drawing._broadcast,
    "upsample": Drawing._upsample,
    "roll": lambda self, t, dim: t.dim_roll(dim, 0),
}
