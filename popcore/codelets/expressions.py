"""Vertex classes for expressions: Python source in the language of codelets, one class for each expression and element types."""

from __future__ import annotations

import hashlib
import linecache
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from popcore import codelet, types
from popcore.codelets import functions
from popcore.codelets.operations import KIND_LETTERS, ROWS, BinaryOpType, OpType
from popcore.dialect import elementary
from popcore.types import ElementType

_NAMESPACE = {
    "math": math,
    "float16": np.float16,
    "sigmoid": elementary.sigmoid,
    "gelu_erf": elementary.gelu_erf,
    **{name: getattr(functions, name) for name in ("round_half_away", "divide", "remainder", "popcount", "count_leading_zeros")},
    **{name: getattr(codelet, name) for name in ("Vertex", "Input", "Output", "InOut", "Vector")},
    **{t.__name__: t for t in types.ELEMENT_TYPES},
}
"""What generated source may name."""
_made_of: dict[type[codelet.Vertex], tuple[Typed, Signature]] = {}  # these classes are kept for good

_PROLOGUE_UNARY, _PROLOGUE_BINARY, _PROLOGUE_IN_PLACE = 17, 29, 55  # worker cycles before the first element, after PopLibs' estimators
_CAST_COST = (4, 2)  # cycles, elements


@dataclass(frozen=True, slots=True)
class Handed:
    """A number that vertices are handed in a field of their own."""

    value: Any


@dataclass(frozen=True, slots=True)
class Typed:
    """A part of an expression with its element type.

    what: The operation; "cast"; a placeholder's number; the value of a constant, as NumPy holds it; or a number handed to the vertices.
    """

    dtype: ElementType
    what: Any
    operands: tuple[Typed, ...] = ()

    @property
    def key(self) -> str:
        """What it computes, as text: equal for equal parts."""
        if isinstance(self.what, OpType):
            name = self.what.value
        elif isinstance(self.what, str | int):
            name = f"_{self.what}" if isinstance(self.what, int) else self.what
        elif isinstance(self.what, Handed):
            name = f"handed {id(self.what)}"
        else:
            name = f"const {self.what.dtype} {self.what.tobytes().hex()}"
        inner = f"({', '.join(o.key for o in self.operands)})" if self.operands else ""
        return f"{name}{inner}: {self.dtype!r}"


@dataclass(frozen=True, slots=True)
class Signature:
    """What a generated class is connected to.

    scalars: Of each placeholder, whether it is one element for all.
    in_place: The placeholder whose elements are overwritten; 0 for none.
    """

    dtypes: tuple[ElementType, ...]
    scalars: tuple[bool, ...]
    out: ElementType
    in_place: int = 0


def leaves(typed: Typed) -> list[Typed]:
    """Its placeholders and numbers, in order."""
    return [leaf for o in typed.operands for leaf in leaves(o)] if typed.operands else [typed]


def vertex_class(expression: Typed, signature: Signature) -> type[codelet.Vertex]:
    """The class whose vertices compute ``expression`` of ``in1``, ``in2``, ... into ``out``; always the same for the same arguments."""
    made = _made(_title(expression), _Writer(expression, signature).source())
    _made_of.setdefault(made, (expression, signature))
    return made


def made_of(cls: type[codelet.Vertex]) -> tuple[Typed, Signature] | None:
    """What ``vertex_class`` made a class of; None for a class of other origin."""
    return _made_of.get(cls)


def handed(expression: Typed) -> dict[str, Any]:
    """The numbers that vertices of the class are handed: field, value."""
    found = dict.fromkeys(leaf.key for leaf in leaves(expression) if isinstance(leaf.what, Handed))
    values = {leaf.key: leaf.what.value for leaf in leaves(expression) if isinstance(leaf.what, Handed)}
    return {f"p{i}": values[key] for i, key in enumerate(found)}


def source_of(cls: type[codelet.Vertex]) -> str:
    """The source of a generated class."""
    return "".join(linecache.getlines(_file_of(cls.__qualname__)))


@cache
def _made(title: str, source: str) -> type[codelet.Vertex]:
    digest = hashlib.blake2b(source.encode(), digest_size=4).hexdigest()
    name = f"Map_{title}_{digest}"
    text = source.replace("class Map(", f"class {name}(")
    file = _file_of(name)
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    namespace: dict[str, Any] = {**_NAMESPACE, "__name__": __name__}
    exec(compile(text, file, "exec"), namespace)
    made: type[codelet.Vertex] = namespace[name]
    made.__name__ = f"popops::{name}"  # a name that no class of the user has
    return made


def _title(expression: Typed) -> str:
    """The first operations of an expression, from the outermost on."""
    words: list[str] = []
    todo = [expression]
    while todo:
        part = todo.pop(0)
        if isinstance(part.what, OpType) and part.what.value not in words:
            words.append(part.what.value)
        todo += part.operands
    return "_".join(words[:3]) or ("cast" if expression.operands else "copy")


def _file_of(name: str) -> str:
    return f"<popops {name}>"


class _Writer:
    """Writes one class: a line for each part of the expression, equal parts once."""

    def __init__(self, expression: Typed, signature: Signature) -> None:
        self.expression, self.signature = expression, signature
        self.constants: list[str] = []
        self.lines: list[str] = []
        self.names: dict[str, str] = {}
        self.costs: list[tuple[int, int]] = []
        self.handed: list[str] = []
        self.converted: list[str] = []

    def source(self) -> str:
        result = self._name(self.expression)
        used = sorted({int(n[2:]) for n in self.names.values() if n.startswith("in")})
        fields = [f"in{k}: Input[{_field(self.signature, k)}]" for k in used if k != self.signature.in_place]
        fields += [f"p{i}: Input[{dtype}]" for i, dtype in enumerate(self.handed)]
        fields.append(f"out: {'InOut' if self.signature.in_place else 'Output'}[Vector[{self.signature.out!r}]]")
        scalars = [f"in{k} = self.in{k}" for k in used if self.signature.scalars[k - 1]]
        scalars += [f"p{i} = self.p{i}" for i in range(len(self.handed))]
        loads = [f"in{k} = self.{'out' if k == self.signature.in_place else f'in{k}'}[i]" for k in used if not self.signature.scalars[k - 1]]
        body = [f"self.out[i] = {result}"]
        return "\n".join(
            [
                *self.constants,
                "class Map(Vertex):",
                *(f"    {f}" for f in fields),
                "",
                "    def compute(self):",
                *(f"        {s}" for s in (*self.converted, *scalars)),
                "        for i in range(len(self.out)):",
                *(f"            {s}" for s in (*loads, *self.lines, *body)),
                "",
                "    def cycles(self):",
                "        n = len(self.out)",
                f"        return {self._cycles()}",
                "",
            ]
        )

    def _name(self, part: Typed) -> str:
        """The local variable or constant that holds a part; writes its line first if there is none yet."""
        if (known := self.names.get(part.key)) is not None:
            return known
        if isinstance(part.what, int):
            name = f"in{part.what}"
        elif isinstance(part.what, np.ndarray):
            name = f"c{len(self.constants)}"
            self.constants.append(f"{name.upper()} = {_literal(part)}")
            self.converted.append(f"{name} = {name.upper()}")
        elif isinstance(part.what, Handed):
            name = f"p{len(self.handed)}"
            self.handed.append(repr(part.dtype))
        else:
            operands = [self._name(o) for o in part.operands]
            name = f"t{len(self.lines)}"
            self.lines.append(f"{name} = {self._operation(part, operands)}")
        self.names[part.key] = name
        return name

    def _operation(self, part: Typed, operands: Sequence[str]) -> str:
        kind = KIND_LETTERS[part.dtype.kind]
        if part.what == "cast":
            self.costs.append(_CAST_COST)
            return f"{part.dtype!r}({operands[0]})"
        row = ROWS[part.what]
        dtype = part.operands[0].dtype
        letter = KIND_LETTERS[dtype.kind]
        self.costs.append(row.cost.get(letter, (7, 1)))
        mask = f"{(1 << 8 * dtype.nbytes) - 1:#x}"
        text = row.code_of(dtype).format(*operands, T=repr(dtype), mask=mask)
        if dtype.nbytes == 8 and part.what is BinaryOpType.SHIFT_RIGHT and letter == "i":
            text = f"UNSIGNED_LONGLONG({operands[0]}) >> {operands[1]}"
        return f"{part.dtype!r}({text})" if kind in row.rounds else text

    def _cycles(self) -> str:
        arity = len(self.signature.dtypes)
        prologue = _PROLOGUE_IN_PLACE if self.signature.in_place else _PROLOGUE_UNARY if arity < 2 else _PROLOGUE_BINARY
        parts = [f"{cycles} * -(-n // {elements})" for cycles, elements in self.costs or [_CAST_COST]]
        return " + ".join([str(prologue), *parts])


def _field(signature: Signature, k: int) -> str:
    dtype = repr(signature.dtypes[k - 1])
    return dtype if signature.scalars[k - 1] else f"Vector[{dtype}]"


def _literal(part: Typed) -> str:
    value = part.what.item()
    text = f'float("{value}")' if isinstance(value, float) and not math.isfinite(value) else repr(value)
    return f"float16({text})" if part.dtype.kind == "half" else text  # rounded already, whatever the machine does then
