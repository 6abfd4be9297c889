"""What products of sparse matrices are told before they see one: sizes, kind of sparsity, options. Checked at the call."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from popcore.errors import ElementTypeError, GraphError, OptionError, ShapeError, ValueRangeError, near_matches
from popcore.graph import Tensor
from popcore.ops.popsparse.formats import Sides, sides_of
from popcore.types import DTypeLike, ElementType, as_element_type

Options = Mapping[str, Any] | None
_PROPORTIONS = {"availableMemoryProportion": 0.6, "metaInfoBucketOversizeProportion": 0.3}
_SWITCHES = ("doGradAPass", "doGradWPass", "sharedBuckets", "verboseLogging")


class SparsityType(enum.Enum):
    """Non-zero elements, or blocks of them."""

    ELEMENT = 0
    BLOCK = 1


class SparsityStructure(enum.Enum):
    """Anywhere."""

    UNSTRUCTURED = 0


@dataclass(frozen=True)
class SparsityParams:
    """The kind of sparsity; blocks of one element are elements, whatever ``type`` says, as in PopLibs."""

    type: SparsityType = SparsityType.ELEMENT
    structure: SparsityStructure = SparsityStructure.UNSTRUCTURED
    block_dimensions: Sequence[int] = (1, 1)

    def __post_init__(self) -> None:
        sides = sides_of(self.block_dimensions, "SparsityParams")
        object.__setattr__(self, "block_dimensions", sides)
        object.__setattr__(self, "type", SparsityType.ELEMENT if sides == (1, 1) else SparsityType.BLOCK)

    @property
    def sides(self) -> Sides:
        return self.block_dimensions[0], self.block_dimensions[1]


@dataclass(frozen=True)
class Settings:
    """Options as read."""

    memory: float  # of a tile's memory, that temporaries may take
    oversize: float  # of a bucket, beyond an even share


def read_options(options: Options, what: str) -> Settings:
    """Raises: OptionError: a name or a value that does not exist."""
    given = dict(options or {})
    names = (*_PROPORTIONS, *_SWITCHES, "partialsType")
    for name, value in given.items():
        if name not in names:
            raise OptionError(f"{what} has no option {name!r}", near_matches(name, names, ", ".join(names)))
        if name in _SWITCHES and str(value).lower() not in ("true", "false"):
            raise OptionError(f"option {name!r} of {what} is {value!r}", "true or false")
    if str(given.get("partialsType", "float")).lower() != "float":
        raise OptionError(f"option 'partialsType' of {what} is {given['partialsType']!r}", "'float': sums are always FLOAT here")
    found = {}
    for name, default in _PROPORTIONS.items():
        try:
            found[name] = float(given.get(name, default))
        except (TypeError, ValueError):
            found[name] = -1.0
        if not 0 <= found[name] <= (1 if name == "availableMemoryProportion" else 1e6):
            raise OptionError(f"option {name!r} of {what} is {given[name]!r}", "a proportion")
    return Settings(found["availableMemoryProportion"], found["metaInfoBucketOversizeProportion"])


@dataclass(frozen=True)
class Sizes:
    """``[m, k]``, sparse, times ``[k, n]``; checked."""

    m: int
    k: int
    n: int

    def __post_init__(self) -> None:
        if min(self.m, self.k, self.n) < 0:
            raise ShapeError(f"a product of [{self.m}, {self.k}] and [{self.k}, {self.n}]", "sizes of 0 or more")


def one_group(groups: int, what: str) -> None:
    """Raises: ShapeError: PopLibs plans one group only, and so does this."""
    if groups != 1:
        raise ShapeError(f"{what}: {groups} groups", "1 group; one product for each")


def non_zeros(sides: Sides, rows: int, columns: int, count: float, what: str) -> int:
    """A number of non-zero values, of whole blocks.

    Raises: ShapeError: sizes that blocks do not divide. ValueRangeError: more values than elements.
    """
    if rows % sides[0] or columns % sides[1]:
        raise ShapeError(f"{what}: [{rows}, {columns}] in blocks of {list(sides)}", "sizes that blocks divide")
    if not 0 <= count <= rows * columns:
        raise ValueRangeError(f"{what}: {count} non-zero values of {rows * columns} elements", "a ratio from 0 to 1")
    area = sides[0] * sides[1]
    return -(-round(count) // area) * area


def ratio(nz_ratio: float, what: str) -> float:
    if not 0 <= nz_ratio <= 1:
        raise ValueRangeError(f"{what}: a ratio of non-zero values of {nz_ratio}", "0 to 1")
    return nz_ratio


def floating(dtype: DTypeLike, what: str) -> ElementType:
    """Raises: ElementTypeError: neither FLOAT nor HALF."""
    element = as_element_type(dtype)
    if element.kind not in ("float", "half"):
        raise ElementTypeError(f"{what} of {element!r}", "FLOAT or HALF")
    return element


def dense_operand(t: Any, shape: tuple[int, int], dtype: ElementType, transposed: bool, what: str) -> Tensor:
    """A dense operand as a matrix, transposed if asked for; it may have a leading dimension of one group.

    Args:
        shape: What the product needs, after transposing; -1 for any size.
    """
    if not isinstance(t, Tensor):
        raise GraphError(f"{what} is given {t!r:.60}, which is no tensor", "a tensor of the graph")
    flat = t[0] if t.rank == 3 and t.shape[0] == 1 else t
    if flat.rank == 2 and transposed:
        flat = flat.dim_shuffle([1, 0])
    wanted = tuple(n if n >= 0 else a for n, a in zip(shape, flat.shape, strict=False))
    if flat.shape != wanted:
        shown = ", ".join("any" if n < 0 else str(n) for n in (shape[::-1] if transposed else shape))
        raise ShapeError(f"{what}: the dense operand is {t!r}", f"[{shown}], or that with a leading dimension of 1")
    if t.dtype is not dtype:
        raise ElementTypeError(f"{what}: {t!r} with a sparse operand of {dtype!r}", "cast one of them")
    return flat


def shaped_like(result: Tensor, operand: Tensor) -> Tensor:
    """The result with a dimension of one group where the operand has one."""
    return result.expand([0]) if operand.rank == 3 else result
