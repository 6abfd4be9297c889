"""What products accept: shapes, element types and options, checked at the call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from popcore.codelets.operations import FLOAT_TYPE
from popcore.errors import ElementTypeError, GraphError, OptionError, ShapeError, near_matches
from popcore.graph import Tensor
from popcore.types import FLOAT, HALF, DTypeLike, ElementType, as_element_type

PASSES = ("NONE", "INFERENCE_FWD", "TRAINING_FWD", "TRAINING_BWD", "TRAINING_WU")
CONV_PASSES = (*PASSES, "FC_INFERENCE_FWD", "FC_TRAINING_FWD", "FC_TRAINING_BWD", "FC_TRAINING_WU")
MEMORY_PROPORTION = 0.6
Options = Mapping[str, Any] | None


@dataclass(frozen=True)
class Settings:
    """What options say of a product's plan: the share of a tile's memory that temporaries may take, and what sums of HALF products are."""

    proportion: float = MEMORY_PROPORTION
    partials: ElementType = FLOAT_TYPE

    def partials_of(self, dtype: ElementType) -> ElementType:
        """What sums of products of ``dtype`` are: those of FLOAT always FLOAT, as the product unit makes them."""
        return self.partials if dtype is HALF else FLOAT_TYPE


@dataclass(frozen=True)
class Sizes:
    """``[groups, m, k] @ [groups, k, n]``"""

    groups: int
    m: int
    k: int
    n: int


def sizes_of(a_shape: Sequence[int], b_shape: Sequence[int], what: str, rank: int) -> Sizes:
    """Raises: ShapeError: other ranks, or sizes that do not fit each other; ``what`` names call and tensors."""
    a, b = tuple(a_shape), tuple(b_shape)
    form = "[m, k] and [k, n]" if rank == 2 else "[groups, m, k] and [groups, k, n]"
    if len(a) != rank or len(b) != rank:
        raise ShapeError(f"{what}: shapes {list(a)} and {list(b)}", f"matrices of rank {rank}: {form}")
    if a[-1] != b[-2] or a[:-2] != b[:-2]:
        raise ShapeError(f"{what}: shapes {list(a)} and {list(b)} do not fit: k is {a[-1]} and {b[-2]}", form)
    return Sizes(a[0] if rank == 3 else 1, a[-2], a[-1], b[-1])


def check_tensors(call: str, rank: int, **tensors: Any) -> Sizes:
    """What ``a`` and ``b`` are; ``c``, where given, has to fit.

    Raises: ShapeError, ElementTypeError, GraphError; they name the tensors.
    """
    for name, t in tensors.items():
        if not isinstance(t, Tensor):
            raise GraphError(f"{call}: {name} is {t!r:.80}, no tensor", "a tensor of the graph")
    a, b = tensors["a"], tensors["b"]
    sizes = sizes_of(a.shape, b.shape, f"{call} of {a!r} and {b!r}", rank)
    floating(a.dtype, call)
    if b.dtype is not a.dtype:
        raise ElementTypeError(f"{call}: {a!r} is {a.dtype!r}, {b!r} is {b.dtype!r}", "cast one of them")
    if "c" in tensors:
        c = tensors["c"]
        wanted = (sizes.m, sizes.n) if rank == 2 else (sizes.groups, sizes.m, sizes.n)
        if c.shape != wanted:
            raise ShapeError(f"{call}: the product of {a!r} and {b!r} is {list(wanted)}, {c!r} is {list(c.shape)}", f"a tensor of {list(wanted)}")
        floating(c.dtype, call)
        if not c.is_parallel_writeable:
            raise GraphError(f"{call}: {c!r} cannot be written, an element of it appears twice or is constant", "graph.add_variable or graph.clone")
    return sizes


def floating(dtype: DTypeLike, call: str) -> ElementType:
    """Raises: ElementTypeError: neither FLOAT nor HALF."""
    element = as_element_type(dtype)
    if element.kind not in ("float", "half"):
        raise ElementTypeError(f"{call} of {element!r}", "FLOAT or HALF; cast the operands")
    return element


def settings_of(options: Options, call: str, pass_name: str = "fullyConnectedPass", passes: tuple[str, ...] = PASSES) -> Settings:
    """The options ``availableMemoryProportion`` and ``partialsType``; the others are checked.

    Raises: OptionError: a name or a value that does not exist.
    """
    given = dict(options or {})
    names = ("availableMemoryProportion", "partialsType", pass_name)
    for name in given:
        if name not in names:
            raise OptionError(f"{call}: there is no option {name!r}", near_matches(name, names, ", ".join(names)))
    partials = str(given.get("partialsType", "float")).lower()
    if partials not in ("float", "half"):
        raise OptionError(f"{call}: partialsType {given['partialsType']!r}", "'float' or 'half'")
    if (which := given.get(pass_name, "NONE")) not in passes:
        raise OptionError(f"{call}: {pass_name} {which!r}", ", ".join(passes))
    value = given.get("availableMemoryProportion", MEMORY_PROPORTION)
    try:
        proportion = float(value)
    except (TypeError, ValueError):
        proportion = -1.0
    if not 0 <= proportion <= 1:
        raise OptionError(f"{call}: availableMemoryProportion {value!r}", "a number from 0 to 1")
    return Settings(proportion, as_element_type(partials))


def factor(k: Any, call: str) -> Any:
    """What a result is multiplied with before it is added: a number, or a scalar tensor.

    Raises: GraphError, ShapeError, ElementTypeError
    """
    if not isinstance(k, Tensor):
        try:
            return float(k)
        except (TypeError, ValueError):
            raise GraphError(f"{call}: the factor k is {k!r:.80}", "a number, or a scalar tensor") from None
    if k.num_elements != 1:
        raise ShapeError(f"{call}: the factor k is {k!r}", "a tensor of one element")
    if k.dtype not in (FLOAT, HALF):
        raise ElementTypeError(f"{call}: the factor k is {k!r}", "FLOAT or HALF")
    return k.reshape(())
