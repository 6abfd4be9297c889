"""Generated classes as plain data and back, so that a saved Executable holds what they were made of and no code."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from popcore.codelet import Vertex
from popcore.codelets.expressions import Handed, Signature, Typed, made_of, vertex_class
from popcore.codelets.operations import ROWS, operand_count
from popcore.errors import CodeletError, ElementTypeError
from popcore.types import ElementType, as_element_type

_OPERATIONS = {op.value: op for op in ROWS}


class Part(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A part of an expression: an operation, or one of the three other things."""

    dtype: str
    operation: str = ""  # "cast", or the value of an OpType
    operands: tuple[Part, ...] = ()
    placeholder: int = 0
    constant: bool | int | float | None = None
    handed: int | None = None  # which of the numbers that vertices are handed


class Generated(Struct, frozen=True, forbid_unknown_fields=True):
    """What a generated class was made of; see ``expressions.Signature``."""

    expression: Part
    dtypes: tuple[str, ...]
    scalars: tuple[bool, ...]
    out: str
    in_place: int


def describe(cls: type[Vertex]) -> Generated | None:
    """What a class was generated from; None for one that somebody wrote."""
    found = made_of(cls)
    if found is None:
        return None
    expression, signature = found
    dtypes = tuple(t.poplar_name for t in signature.dtypes)
    return Generated(_part(expression, {}), dtypes, signature.scalars, signature.out.poplar_name, signature.in_place)


def _part(typed: Typed, handed: dict[str, int]) -> Part:
    dtype, what = typed.dtype.poplar_name, typed.what
    match what:
        case Handed():
            return Part(dtype, handed=handed.setdefault(typed.key, len(handed)))
        case np.ndarray():
            return Part(dtype, constant=what.item())
        case int():
            return Part(dtype, placeholder=what)
    name = what if isinstance(what, str) else what.value
    return Part(dtype, name, tuple(_part(o, handed) for o in typed.operands))


def regenerate(described: Generated) -> type[Vertex]:
    """The class that ``describe`` described.

    Raises: CodeletError: nothing that could have been described.
    """
    try:
        dtypes = tuple(as_element_type(name) for name in described.dtypes)
        signature = Signature(dtypes, described.scalars, as_element_type(described.out), described.in_place)
        if len(described.scalars) != len(dtypes) or not 0 <= described.in_place <= len(dtypes):
            raise CodeletError(f"{len(dtypes)} operands, {len(described.scalars)} told to be scalars or not, number {described.in_place} in place")
        return vertex_class(_typed(described.expression, dtypes, {}), signature)
    except ElementTypeError as error:
        raise CodeletError(error.message) from error
    except RecursionError:
        raise CodeletError("an expression without end") from None


def _typed(part: Part, dtypes: tuple[ElementType, ...], handed: dict[int, Handed]) -> Typed:
    dtype = as_element_type(part.dtype)
    if part.operation == "cast" and len(part.operands) == 1:
        return Typed(dtype, "cast", (_typed(part.operands[0], dtypes, handed),))
    if (op := _OPERATIONS.get(part.operation)) is not None:
        operands = tuple(_typed(o, dtypes, handed) for o in part.operands)
        if len(operands) == operand_count(op) and ROWS[op].takes(operands[0].dtype):
            return Typed(dtype, op, operands)
    elif part.handed is not None:
        return Typed(dtype, handed.setdefault(part.handed, Handed(None)))
    elif part.constant is not None and type(part.constant) is {"int": int, "uint": int, "bool": bool}.get(dtype.kind, float):
        return Typed(dtype, np.array(dtype(part.constant), dtype.numpy))
    elif 0 < part.placeholder <= len(dtypes) and dtypes[part.placeholder - 1] is dtype:
        return Typed(dtype, part.placeholder)
    raise CodeletError(f"{part!r:.100} is no part of an expression")
