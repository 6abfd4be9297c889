"""What is known of a value of a codelet before it runs: its type, where it is computed, and, of an index, how it changes with loops."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from popcore.estimate.regions import Number, constant
from popcore.types import ElementType

RANK = {"bool": 0, "int": 1, "f16": 2, "f32": 3}


@dataclass(frozen=True)
class Linear:
    """``constant`` + the sum of ``terms``, values times whole numbers."""

    constant: int
    terms: tuple[tuple[Value, int], ...] = ()

    def plus(self, other: Linear, times: int = 1) -> Linear:
        made = dict(self.terms)
        for value, factor in other.terms:
            made[value] = made.get(value, 0) + times * factor
        return Linear(self.constant + times * other.constant, tuple((v, f) for v, f in made.items() if f))

    def times(self, factor: int) -> Linear:
        return Linear(self.constant * factor, tuple((v, f * factor) for v, f in self.terms if factor))

    @property
    def level(self) -> int:
        return max((value.level for value, _ in self.terms), default=0)

    def steps(self, level: int) -> list[tuple[Value, int]]:
        """The terms that change in the loop at ``level``."""
        return [(value, factor) for value, factor in self.terms if value.level >= level]


@dataclass(eq=False)
class View:
    """Where elements are: a field, a part of one, or a table of constants."""

    field: str  # "" for a table
    shape: str  # "scalar", "vector", "matrix" or "list"
    kind: str
    nbytes: int
    sizes: tuple[Number | None, ...]
    shift: int = 0  # elements from where memory is aligned, as far as that is known


@dataclass(eq=False)
class Value:
    """A value; equal to itself alone."""

    kind: str  # "f32", "f16", "int", "bool", "view", "tuple" or "none"
    level: int = 0  # loops around where it is computed
    number: Number | None = None
    linear: Linear | None = None  # of an integer that is more than a value of its own
    regular: bool = False  # an integer that grows by as much in each round: an address can follow it
    view: View | None = None
    members: tuple[Value, ...] = ()
    operation: tuple[str, tuple[Value, ...]] | None = None
    uses: int = field(default=0, repr=False)

    @property
    def as_linear(self) -> Linear:
        if self.linear is not None:
            return self.linear
        if self.number is not None and self.number.kind == "constant":
            return Linear(int(self.number.parts[0]))
        return Linear(0, ((self, 1),))


def integer(value: int) -> Value:
    return Value("int", number=constant(value), linear=Linear(value))


def kind_of(dtype: ElementType) -> str:
    """The kind of what is read from a field."""
    return {"float": "f32", "half": "f16", "bool": "bool"}.get(dtype.kind, "int")


def kind_of_constant(value: Any) -> str:
    """The kind of a number that is kept beside the code, or of the members of a table."""
    kind, width = value.dtype.kind, value.dtype.itemsize
    return {"f": "f16" if width == 2 else "f32", "b": "bool"}.get(kind, "int")


def common(*values: Value) -> str:
    return max((v.kind for v in values), key=lambda kind: RANK.get(kind, 3))
