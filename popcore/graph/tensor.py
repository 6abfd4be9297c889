"""Tensor: a view of elements of a graph's variables. Making one costs under a microsecond and copies nothing.

A view of one variable is affine (an offset and a stride a dimension) as long as strides can say what it is; what
they cannot say, as after ``concat``, is kept as ``Regions``. Tensors are immutable.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, SupportsIndex

import numpy as np

from popcore.errors import ElementTypeError, ShapeError
from popcore.graph import views
from popcore.graph.regions import Regions, affine_regions, any_overlap, one_run
from popcore.graph.variable import Variable, Variables
from popcore.types import Array, DTypeLike, ElementType, as_element_type

Shape = tuple[int, ...]


class Interval(NamedTuple):
    """A half-open range of elements, [begin, end)."""

    begin: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.begin


class Tensor:
    """A view: shape, element type, and which elements. Made by ``Graph.add_variable`` and by the methods below.

    Attributes:
        variable, offset, strides: What an affine view is made of, in elements; ``variable`` is None for others.
    """

    __slots__ = ("_regions", "_table", "dtype", "offset", "shape", "strides", "variable")

    variable: Variable | None
    dtype: ElementType
    shape: Shape
    offset: int
    strides: Shape
    _regions: Regions  # only where variable is None
    _table: Variables  # likewise

    # What it is

    @property
    def graph(self) -> Any:
        """The graph whose variables these are; of a virtual graph's tensor, the graph it is a part of."""
        return self._variables().graph

    @property
    def element_type(self) -> ElementType:
        return self.dtype

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def num_elements(self) -> int:
        return math.prod(self.shape)

    numel = num_elements

    def dim(self, i: int) -> int:
        """Elements along dimension ``i``."""
        return self.shape[self._dim(i)]

    @property
    def is_affine(self) -> bool:
        return self.variable is not None

    @property
    def simple(self) -> tuple[int, int, int] | None:
        """(variable's id, first element, elements) where this is one run of neighbours or empty, else None."""
        variable = self.variable
        if variable is None:
            return None
        step = 1
        for n, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if n == 0:
                return variable.id, 0, 0
            if n != 1:
                if stride != step:
                    return (variable.id, 0, 0) if 0 in self.shape else None
                step *= n
        return variable.id, self.offset, step

    def regions(self) -> Regions:
        """Its elements in flattened order, as runs. Costs: nothing for one run, else linear in the runs."""
        variable = self.variable
        if variable is None:
            return self._regions
        if (simple := self.simple) is not None:
            return one_run(variable.base + simple[1], simple[2])
        return affine_regions(variable.base + self.offset, self.shape, self.strides)

    @property
    def name(self) -> str:
        """The variable's name; of a view of several, their names."""
        if self.variable is not None:
            return self.variable.name
        names = [v.name for v in self.variables()]
        return " + ".join(names[:3]) + (f" + {len(names) - 3} more" if len(names) > 3 else "")

    def variables(self) -> list[Variable]:
        """The variables it shows, each once, in order of their ids."""
        if self.variable is not None:
            return [self.variable]
        return [self._table[i] for i in np.unique(self._regions.var)]

    # Questions

    @property
    def is_contiguous(self) -> bool:
        """Whether it is one run of neighbours in one variable."""
        return self.simple is not None

    @property
    def contains_aliases(self) -> bool:
        """Whether an element appears twice."""
        if self.variable is not None and not views.strides_may_alias(self.shape, self.strides):
            return False
        if self.variable is not None and any(s == 0 and n > 1 for n, s in zip(self.shape, self.strides, strict=True)):
            return 0 not in self.shape
        r = self.regions()
        return any_overlap(r.ids, r.length)

    @property
    def contains_constant(self) -> bool:
        return any(v.constant for v in self.variables())

    @property
    def is_parallel_writeable(self) -> bool:
        """Whether a vertex or a Copy may write all of it at once: no element twice, no constant."""
        return not self.contains_constant and not self.contains_aliases

    def intersects_with(self, other: Tensor) -> bool:
        """Whether an element of one is also in the other."""
        if self.variable is not None and other.variable is not None and self.variable is not other.variable:
            return False
        a, b = self.regions(), other.regions()
        a_ids, a_length = views.union(a)
        b_ids, b_length = views.union(b)
        return any_overlap(np.concatenate((a_ids, b_ids)), np.concatenate((a_length, b_length)))

    def get_contiguous_regions(self) -> list[Interval]:
        """The parts of the flattened view that are each one run of neighbours."""
        r = self.regions()
        return [Interval(b, e) for b, e in zip(r.begins.tolist(), r.ends.tolist(), strict=True)]

    def get_var_regions(self) -> list[tuple[int, Interval]]:
        """The runs in order, as (variable's id, elements of it)."""
        r = self.regions()
        return [(v, Interval(s, s + n)) for v, s, n in zip(r.var.tolist(), r.start.tolist(), r.length.tolist(), strict=True)]

    def get_constant_value(self) -> Any:
        """The value of a constant of one element; None if this is none."""
        v = self.variable
        if v is None or not v.constant or self.num_elements != 1 or v.initial is None:
            return None
        return v.initial[self.offset].item()

    @property
    def shape_string(self) -> str:
        return "[" + ", ".join(map(str, self.shape)) + "]"

    def __repr__(self) -> str:
        kind = "constant" if self.variable is not None and self.variable.constant else "tensor"
        place = "" if self.variable is not None and self.num_elements == self.variable.numel else " view"
        return f"<{kind}{place} {self.name!r} {self.dtype!r}{self.shape_string}>"

    def __len__(self) -> int:
        if not self.shape:
            raise ShapeError(f"{self!r} is a scalar and has no length", "use num_elements")
        return self.shape[0]

    def __bool__(self) -> bool:
        return True  # a view of no elements is a tensor too

    def __iter__(self) -> Iterator[Tensor]:
        return (self[i] for i in range(len(self)))

    # Parts

    def __getitem__(self, key: Any) -> Tensor:
        """``t[i]``, ``t[a:b]``, ``t[a:b:step]``, ``t[i, a:b, ...]`` as NumPy's basic indexing, and ``t[Interval(a, b)]``."""
        variable = self.variable
        shape = self.shape
        kind = key.__class__
        if variable is not None and shape:
            n = shape[0]
            if kind is int and -n <= key < n:
                if key < 0:
                    key += n
                strides = self.strides
                t = _new(Tensor)
                t.variable, t.dtype, t.offset, t.shape, t.strides = variable, self.dtype, self.offset + key * strides[0], shape[1:], strides[1:]
                return t
            if kind is slice and key.step is None:
                begin, end, _ = key.indices(n)
                if end <= begin:  # an empty view begins where this one does, so that no offset ever leaves its variable
                    begin = end = 0
                strides = self.strides
                t = _new(Tensor)
                t.variable, t.dtype, t.offset, t.strides = variable, self.dtype, self.offset + begin * strides[0], strides
                t.shape = (end - begin, *shape[1:])
                return t
            if kind is tuple and len(key) <= len(shape):
                offset, strides = self.offset, self.strides
                for k, n, stride in zip(key, shape, strides, strict=False):
                    if k.__class__ is not int or not -n <= k < n:
                        break
                    offset += (k if k >= 0 else k + n) * stride
                else:
                    return self._affine(offset, shape[len(key) :], strides[len(key) :])
        return self._basic_index(key)

    def _basic_index(self, key: Any) -> Tensor:
        if isinstance(key, Interval):
            return self.slice(*key)
        keys = list(key) if isinstance(key, tuple) else [key]
        if keys.count(Ellipsis) > 1 or len(keys) - keys.count(Ellipsis) > self.rank:
            raise ShapeError(f"{len(keys)} indices for {self!r}", f"at most {self.rank}")
        if Ellipsis in keys:
            at = keys.index(Ellipsis)
            keys[at : at + 1] = [slice(None)] * (self.rank - len(keys) + 1)
        result, dim = self, 0
        for k in keys:
            if isinstance(k, slice):
                begin, end, step = k.indices(result.shape[dim])
                if step > 0:
                    result = result._cut(begin, max(begin, end), dim).sub_sample(step, dim)
                else:
                    count = max(0, -(-(begin - end) // -step))
                    low = begin + (count - 1) * step if count else 0
                    result = result._cut(low, begin + 1 if count else 0, dim).sub_sample(-step, dim).reverse(dim)
                dim += 1
            else:
                result = result._drop(self._whole(k, "an index"), dim)
        return result

    def _drop(self, i: int, dim: int) -> Tensor:
        n = self.shape[dim]
        if not -n <= i < n:
            raise ShapeError(f"index {i} of dimension {dim} of {self!r}, which has {n} elements there", f"0 to {n - 1}")
        part = self._cut(i % n, i % n + 1, dim)
        if part.variable is not None:
            return part._affine(part.offset, part.shape[:dim] + part.shape[dim + 1 :], part.strides[:dim] + part.strides[dim + 1 :])
        return part._runs(part._regions, part.shape[:dim] + part.shape[dim + 1 :])

    def _cut(self, begin: int, end: int, dim: int) -> Tensor:
        if begin == end:
            begin = end = 0
        shape = (*self.shape[:dim], end - begin, *self.shape[dim + 1 :])
        if self.variable is not None:
            return self._affine(self.offset + begin * self.strides[dim], shape, self.strides)
        if dim == 0:  # one range of the flattened view, however many elements
            block = math.prod(self.shape[1:])
            if not shape[0] * block:
                return self._runs(one_run(0, 0), shape)
            return self._runs(self._regions.select(np.array([begin * block]), np.array([shape[0] * block])), shape)
        return self._reordered(dim + 1, lambda a: a[..., begin:end])

    def slice(self, begin: Any, end: Any = None, dim: int = 0) -> Tensor:
        """``slice(a, b, dim)``: elements a to b of one dimension; ``slice((a, b), dim=d)`` the same; ``slice([a...], [b...])``: of each dimension.

        Raises:
            ShapeError: a range that is not within the dimension; nothing is cut off silently.
        """
        if end is None:
            if not (isinstance(begin, tuple) and len(begin) == 2):
                raise ShapeError(f"slice({begin!r}) of {self!r} has no end", "slice(begin, end, dim)")
            begin, end = begin
        if isinstance(begin, Sequence):
            if len(begin) != len(end) or len(begin) > self.rank:
                raise ShapeError(f"slice of {self!r} with {len(begin)} begins and {len(end)} ends", f"{self.rank} of each")
            result = self
            for d, (b, e) in enumerate(zip(begin, end, strict=True)):
                result = result.slice(b, e, d)
            return result
        dim = self._dim(dim)
        begin, end = self._whole(begin, "a slice's begin"), self._whole(end, "a slice's end")
        if not 0 <= begin <= end <= self.shape[dim]:
            raise ShapeError(
                f"slice [{begin}, {end}) of dimension {dim} of {self!r}, which has {self.shape[dim]} elements there", "0 <= begin <= end <= the dimension"
            )
        return self._cut(begin, end, dim)

    def slices(self, parts: Sequence[Any], dim: int = 0) -> list[Tensor]:
        """One slice for each interval, index (a slice of one element), or list of intervals (concatenated)."""
        made = []
        for part in parts:
            if isinstance(part, (int, np.integer)):
                made.append(self.slice(int(part), int(part) + 1, dim))
            elif len(part) == 2 and all(isinstance(p, (int, np.integer)) for p in part):
                made.append(self.slice(int(part[0]), int(part[1]), dim))
            else:
                made.append(concat([self.slice(b, e, dim) for b, e in part], dim))
        return made

    def index(self, indices: Sequence[int]) -> Tensor:
        """Drop the first dimensions, one for each index."""
        return self[tuple(indices)]

    # Other shapes and orders

    def reshape(self, *shape: Any) -> Tensor:
        """The same elements in the same order; one dimension may be -1. Takes a tuple or numbers."""
        new = list(_shape_of(shape))
        if new.count(-1) == 1:
            rest = math.prod(n for n in new if n != -1)
            new[new.index(-1)] = self.num_elements // rest if rest else 0
        if any(n < 0 for n in new) or math.prod(new) != self.num_elements:
            raise ShapeError(f"{self!r} has {self.num_elements} elements and cannot be reshaped to {_shape_of(shape)}", "keep the number of elements")
        made = tuple(new)
        if self.variable is None:
            return self._runs(self._regions, made)
        strides = views.reshaped_strides(self.shape, self.strides, made)
        return self._affine(self.offset, made, strides) if strides is not None else self._runs(self.regions(), made)

    def flatten(self, begin: int = 0, end: int | None = None) -> Tensor:
        """Dimensions ``begin`` to ``end`` as one."""
        end = self.rank if end is None else end
        self._check_range(begin, end)
        return self.reshape((*self.shape[:begin], math.prod(self.shape[begin:end]), *self.shape[end:]))

    def reshape_partial(self, begin: int, end: int, shape: Sequence[int]) -> Tensor:
        """Dimensions ``begin`` to ``end`` reshaped to ``shape``."""
        self._check_range(begin, end)
        return self.reshape((*self.shape[:begin], *shape, *self.shape[end:]))

    def dim_shuffle(self, permutation: Sequence[int]) -> Tensor:
        """Dimension ``i`` of the result is dimension ``permutation[i]``."""
        p = tuple(permutation)
        if sorted(p) != list(range(self.rank)):
            raise ShapeError(f"dim_shuffle({list(p)}) of {self!r}", f"each of 0 to {self.rank - 1} once")
        if self.variable is not None:
            return self._affine(self.offset, tuple(self.shape[d] for d in p), tuple(self.strides[d] for d in p))
        moved = self.rank
        while moved and p[moved - 1] == moved - 1:
            moved -= 1
        return self._reordered(moved, lambda a: a.transpose(p[:moved]))

    def dim_shuffle_partial(self, source: Sequence[int], destination: Sequence[int]) -> Tensor:
        """Dimension ``source[i]`` goes to ``destination[i]``; the others keep their order."""
        src, dst = [self._dim(d) for d in source], [self._dim(d) for d in destination]
        if len(src) != len(dst) or len(set(src)) != len(src) or len(set(dst)) != len(dst):
            raise ShapeError(f"dim_shuffle_partial({list(source)}, {list(destination)}) of {self!r}", "as many sources as destinations, each once")
        placed = dict(zip(dst, src, strict=True))
        rest = iter([d for d in range(self.rank) if d not in src])
        return self.dim_shuffle([placed[d] if d in placed else next(rest) for d in range(self.rank)])

    def dim_roll(self, dim: int, new_dim: int = 0) -> Tensor:
        """Move one dimension to ``new_dim``."""
        return self.dim_shuffle_partial([dim], [new_dim])

    def transpose(self) -> Tensor:
        """Swap the two dimensions of a matrix."""
        if self.rank != 2:
            raise ShapeError(f"transpose of {self!r}, which has rank {self.rank}", "dim_shuffle takes any rank")
        return self.dim_shuffle((1, 0))

    def reverse(self, dim: int = 0) -> Tensor:
        """Dimension ``dim`` from its end to its beginning."""
        dim = self._dim(dim)
        if self.variable is not None:
            strides = (*self.strides[:dim], -self.strides[dim], *self.strides[dim + 1 :])
            return self._affine(self.offset + max(0, self.shape[dim] - 1) * self.strides[dim], self.shape, strides)
        return self._reordered(dim + 1, lambda a: a[..., ::-1])

    def broadcast(self, n: int, dim: int) -> Tensor:
        """The view ``n`` times over along ``dim``: that dimension becomes n times as long, its elements aliases."""
        dim, n = self._dim(dim), self._count(n, "broadcast")
        if self.variable is not None and (self.shape[dim] == 1 or n == 1):
            strides = self.strides if n == 1 else (*self.strides[:dim], 0, *self.strides[dim + 1 :])
            return self._affine(self.offset, (*self.shape[:dim], n * self.shape[dim], *self.shape[dim + 1 :]), strides)
        regions, _ = views.reordered(self.regions(), self.shape, dim, lambda a: np.repeat(a[..., None], n, axis=-1))
        return self._runs(regions, (*self.shape[:dim], n * self.shape[dim], *self.shape[dim + 1 :]))

    def expand(self, dims: Sequence[int]) -> Tensor:
        """Insert dimensions of one element before the dimensions listed, which are positions in this shape."""
        where = [operator.index(d) for d in dims]
        if any(not 0 <= d <= self.rank for d in where):
            raise ShapeError(f"expand({list(dims)}) of {self!r}", f"positions 0 to {self.rank}")
        shape: list[int] = []
        for d in range(self.rank + 1):
            shape += [1] * where.count(d) + list(self.shape[d : d + 1])
        return self.reshape(tuple(shape))

    def squeeze(self, dims: Sequence[int] | None = None) -> Tensor:
        """Leave out dimensions of one element: those listed, or all."""
        chosen = [d for d, n in enumerate(self.shape) if n == 1] if dims is None else [self._dim(d) for d in dims]
        if any(self.shape[d] != 1 for d in chosen):
            raise ShapeError(f"squeeze({list(chosen)}) of {self!r}", "list dimensions of one element only")
        return self.reshape(tuple(n for d, n in enumerate(self.shape) if d not in chosen))

    def sub_sample(self, stride: int, dim: int = 0) -> Tensor:
        """Every ``stride``-th entry of ``dim``, from the first on."""
        dim = self._dim(dim)
        if stride < 1:
            raise ShapeError(f"sub_sample({stride}, {dim}) of {self!r}", "a stride of 1 or more")
        if stride == 1:
            return self
        if self.variable is not None:
            strides = (*self.strides[:dim], self.strides[dim] * stride, *self.strides[dim + 1 :])
            return self._affine(self.offset, (*self.shape[:dim], -(-self.shape[dim] // stride), *self.shape[dim + 1 :]), strides)
        return self._reordered(dim + 1, lambda a: a[..., ::stride])

    def upsample(self, scale: int, dim: int = 0) -> Tensor:
        """Each entry of ``dim`` ``scale`` times, one after the other."""
        dim, scale = self._dim(dim), self._count(scale, "upsample")
        spread = self.expand([dim + 1])
        if spread.variable is None:
            return self._reordered(dim + 1, lambda a: np.repeat(a, scale, axis=dim))
        return spread.broadcast(scale, dim + 1).flatten(dim, dim + 2)

    def select(self, places: Array, lengths: Array | None = None) -> Tensor:
        """Elements of the flattened view, in the order of ``places``, int[n]; a vector. Costs: linear in n.

        lengths  of each place, so many elements from there on, int[n], 1 or more; one where it is left out
        """
        first = np.asarray(places, np.int64)
        count = np.ones(first.shape, np.int64) if lengths is None else np.asarray(lengths, np.int64)
        if first.ndim != 1 or count.shape != first.shape:
            raise ShapeError(f"select of {self!r}: places of shape {first.shape}, lengths of shape {count.shape}", "vectors of the same size")
        bad = np.flatnonzero((first < 0) | (count < 1) | (first + count > self.num_elements))
        if bad.size:
            place, length = int(first[bad[0]]), int(count[bad[0]])
            what = f"element {place}" if length == 1 else f"{length} elements from {place} on"
            raise ShapeError(f"select of {self!r}: {what}", f"a vector of 0 to {self.num_elements - 1}")
        if not first.size:
            return self._runs(one_run(0, 0), (0,))
        return self._runs(self.regions().select(first, count), (int(count.sum()),))

    def reinterpret(self, dtype: DTypeLike) -> Tensor:
        """The same bits as another element type of the same width."""
        new = as_element_type(dtype)
        if new.nbytes != self.dtype.nbytes:
            raise ElementTypeError(f"{self!r} as {new!r}: {self.dtype.nbytes} bytes an element against {new.nbytes}", "an element type of the same width")
        t = self._affine(self.offset, self.shape, self.strides) if self.variable is not None else self._runs(self._regions, self.shape)
        t.dtype = new
        return t

    # Inside

    def _affine(self, offset: int, shape: Shape, strides: Shape) -> Tensor:
        t = _new(Tensor)
        t.variable, t.dtype, t.offset, t.shape, t.strides = self.variable, self.dtype, offset, shape, strides
        return t

    def _runs(self, regions: Regions, shape: Shape) -> Tensor:
        return from_regions(self._variables(), self.dtype, shape, regions, self)

    def _reordered(self, leading: int, order: Any) -> Tensor:
        regions, shape = views.reordered(self.regions(), self.shape, leading, order)
        return self._runs(regions, shape)

    def _variables(self) -> Variables:
        return self.variable.home if self.variable is not None else self._table

    def _dim(self, dim: int) -> int:
        if not -self.rank <= dim < self.rank:
            raise ShapeError(f"dimension {dim} of {self!r}, which has rank {self.rank}", f"0 to {self.rank - 1}" if self.rank else "a scalar has no dimensions")
        return dim % self.rank

    def _check_range(self, begin: int, end: int) -> None:
        if not 0 <= begin <= end <= self.rank:
            raise ShapeError(f"dimensions {begin} to {end} of {self!r}, which has rank {self.rank}", "0 <= begin <= end <= rank")

    def _count(self, n: SupportsIndex, what: str) -> int:
        count = self._whole(n, f"the count of {what}")
        if count < 0:
            raise ShapeError(f"{what} of {self!r} {count} times", "0 or more")
        return count

    def _whole(self, i: Any, what: str) -> int:
        if isinstance(i, (bool, np.bool_)) or not hasattr(i, "__index__"):
            raise ShapeError(f"{what} of {self!r} is {i!r}", "a whole number")
        return operator.index(i)


_new = object.__new__


def affine_tensor(variable: Variable, dtype: ElementType, shape: Shape, offset: int, strides: Shape) -> Tensor:
    """An affine view of a variable."""
    t = _new(Tensor)
    t.variable, t.dtype, t.offset, t.shape, t.strides = variable, dtype, offset, shape, strides
    return t


def whole(variable: Variable) -> Tensor:
    """All of a variable."""
    return affine_tensor(variable, variable.dtype, variable.shape, 0, views.row_major(variable.shape))


def from_regions(table: Variables, dtype: ElementType, shape: Shape, regions: Regions, like: Tensor | None = None) -> Tensor:
    """A view of runs; affine where it is one run. A view of no elements becomes one of a variable that ``like`` shows."""
    if len(regions) == 1:
        return affine_tensor(table[int(regions.var[0])], dtype, shape, int(regions.start[0]), views.row_major(shape))
    if not len(regions):
        variable = like.variables()[0] if like is not None else table[0]
        return affine_tensor(variable, dtype, shape, 0, views.row_major(shape))
    t = _new(Tensor)
    t.variable, t.dtype, t.shape, t.offset, t.strides = None, dtype, shape, 0, ()
    t._regions, t._table = regions, table
    return t


def concat(tensors: Sequence[Tensor] | Tensor, other: Tensor | int | None = None, dim: int = 0) -> Tensor:
    """Views one after the other along ``dim``: ``concat([a, b, c], dim=d)``, ``concat([a, b], d)``, ``concat(a, b, d)``.

    Raises:
        ShapeError: shapes that differ in another dimension, or nothing to join.
        ElementTypeError: element types that differ.
    """
    if isinstance(other, int):
        dim = other
    parts = [tensors, other] if isinstance(tensors, Tensor) and isinstance(other, Tensor) else list(tensors)
    if not parts or not all(isinstance(p, Tensor) for p in parts):
        raise ShapeError(f"concat of {parts!r}", "a list of at least one tensor")
    first = parts[0]
    dim = first._dim(dim)
    for p in parts[1:]:
        if p.dtype is not first.dtype:
            raise ElementTypeError(f"concat of {first!r} and {p!r}", "reinterpret or cast one of them")
        if p.rank != first.rank or any(d != dim and p.shape[d] != first.shape[d] for d in range(first.rank)):
            raise ShapeError(f"concat of {first!r} and {p!r} along dimension {dim}", "the same shape but for that dimension")
    shape = (*first.shape[:dim], sum(p.shape[dim] for p in parts), *first.shape[dim + 1 :])
    filled = [p for p in parts if p.num_elements]
    if len(filled) <= 1:
        chosen = filled[0] if filled else first
        return chosen._runs(chosen.regions(), shape) if not filled else chosen
    rows = math.prod(shape[:dim])
    regions = views.joined([p.regions() for p in filled], [p.num_elements // rows for p in filled], rows)
    return from_regions(first._variables(), first.dtype, shape, regions)


def append(a: Tensor, b: Tensor, dim: int = 0) -> Tensor:
    """``b``, which lacks dimension ``dim``, as one more entry of ``a`` along it."""
    return concat([a, b.expand([dim])], dim)


def _shape_of(shape: tuple[Any, ...]) -> Shape:
    given = shape[0] if len(shape) == 1 and isinstance(shape[0], (Sequence, np.ndarray)) else shape
    return tuple(operator.index(n) for n in given)
