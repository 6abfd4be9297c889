"""The three forms of every element-wise function: to a new tensor, in place, to a given output. Made here once for all operations."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from popcore.codelets.operations import BinaryOpType, TernaryOpType, UnaryOpType
from popcore.graph import ComputeSet, Graph, Tensor
from popcore.ops.popops import common
from popcore.ops.popops.expr import BinaryOp as BinaryExpr
from popcore.ops.popops.expr import Expr, Parameter, PlaceHolder
from popcore.ops.popops.expr import TernaryOp as TernaryExpr
from popcore.ops.popops.expr import UnaryOp as UnaryExpr
from popcore.ops.popops.mapping import map as map_elements
from popcore.ops.popops.mapping import map_in_place, map_with_output
from popcore.program import Sequence

Where = Sequence | ComputeSet
"""A program that gets a step, or a compute set that gets the vertices."""
Scalar = bool | int | float | np.number[Any] | np.bool_
TensorOrNumber = Tensor | Scalar


class Unary(Protocol):
    """A function of one tensor that gives a new one."""

    def __call__(self, graph: Graph, a: Tensor, prog: Where, name: str = "", options: common.Options | None = None) -> Tensor: ...


class UnaryInPlace(Protocol):
    """A function of one tensor that overwrites it."""

    def __call__(self, graph: Graph, a: Tensor, prog: Where, name: str = "", options: common.Options | None = None) -> None: ...


class UnaryWithOutput(Protocol):
    """A function of one tensor that writes another."""

    def __call__(self, graph: Graph, a: Tensor, out: Tensor, prog: Where, name: str = "", options: common.Options | None = None) -> None: ...


class Binary(Protocol):
    """A function of two tensors, one of which may be a number, that gives a new one."""

    def __call__(self, graph: Graph, a: TensorOrNumber, b: TensorOrNumber, prog: Where, name: str = "", options: common.Options | None = None) -> Tensor: ...


class BinaryInPlace(Protocol):
    """A function of two tensors, the second of which may be a number, that overwrites the first."""

    def __call__(self, graph: Graph, a: Tensor, b: TensorOrNumber, prog: Where, name: str = "", options: common.Options | None = None) -> None: ...


class BinaryWithOutput(Protocol):
    """A function of two tensors, one of which may be a number, that writes a third."""

    def __call__(
        self, graph: Graph, a: TensorOrNumber, b: TensorOrNumber, out: Tensor, prog: Where, name: str = "", options: common.Options | None = None
    ) -> None: ...


class Ternary(Protocol):
    """A function of three tensors, some of which may be numbers, that gives a new one."""

    def __call__(
        self, graph: Graph, a: TensorOrNumber, b: TensorOrNumber, c: TensorOrNumber, prog: Where, name: str = "", options: common.Options | None = None
    ) -> Tensor: ...


class TernaryInPlace(Protocol):
    """A function of three tensors that overwrites the first; the others may be numbers."""

    def __call__(
        self, graph: Graph, a: Tensor, b: TensorOrNumber, c: TensorOrNumber, prog: Where, name: str = "", options: common.Options | None = None
    ) -> None: ...


class TernaryWithOutput(Protocol):
    """A function of three tensors, some of which may be numbers, that writes a fourth."""

    def __call__(
        self, graph: Graph, a: TensorOrNumber, b: TensorOrNumber, c: TensorOrNumber, out: Tensor, prog: Where, name: str = "",
        options: common.Options | None = None,
    ) -> None: ...  # fmt: skip


def unary(op: UnaryOpType, meaning: str) -> tuple[Unary, UnaryInPlace, UnaryWithOutput]:
    """The forms of an operation of one operand; ``meaning`` is the first line of their documentation."""
    expression = UnaryExpr(PlaceHolder(1), op)

    def new(graph: Graph, a: Tensor, prog: Where, name: str = "", options: common.Options | None = None) -> Tensor:
        return map_elements(graph, expression, [a], prog, name, options)

    def in_place(graph: Graph, a: Tensor, prog: Where, name: str = "", options: common.Options | None = None) -> None:
        map_in_place(graph, expression, [a], prog, name, options)

    def with_output(graph: Graph, a: Tensor, out: Tensor, prog: Where, name: str = "", options: common.Options | None = None) -> None:
        map_with_output(graph, expression, [a], out, prog, name, options)

    _describe(op.value, meaning, new, in_place, with_output)
    return new, in_place, with_output


def binary(op: BinaryOpType, meaning: str) -> tuple[Binary, BinaryInPlace, BinaryWithOutput]:
    """The same for two operands."""

    def parts(*operands: Any) -> tuple[Expr, list[Tensor]]:
        made, tensors = _operands(op.value, operands)
        return BinaryExpr(made[0], made[1], op), tensors

    def new(graph: Graph, a: TensorOrNumber, b: TensorOrNumber, prog: Where, name: str = "", options: common.Options | None = None) -> Tensor:
        return map_elements(graph, *parts(a, b), prog, name, options)

    def in_place(graph: Graph, a: Tensor, b: TensorOrNumber, prog: Where, name: str = "", options: common.Options | None = None) -> None:
        common.require_tensors(f"{op.value}_in_place", a)
        map_in_place(graph, *parts(a, b), prog, name, options)

    def with_output(
        graph: Graph, a: TensorOrNumber, b: TensorOrNumber, out: Tensor, prog: Where, name: str = "", options: common.Options | None = None
    ) -> None:
        expression, tensors = parts(a, b)
        map_with_output(graph, expression, tensors, out, prog, name, options)

    _describe(op.value, meaning, new, in_place, with_output)
    return new, in_place, with_output


def ternary(op: TernaryOpType, meaning: str) -> tuple[Ternary, TernaryInPlace, TernaryWithOutput]:
    """The same for three operands."""

    def parts(*operands: Any) -> tuple[Expr, list[Tensor]]:
        made, tensors = _operands(op.value, operands)
        return TernaryExpr(made[0], made[1], made[2], op), tensors

    def new(
        graph: Graph, a: TensorOrNumber, b: TensorOrNumber, c: TensorOrNumber, prog: Where, name: str = "", options: common.Options | None = None
    ) -> Tensor:
        return map_elements(graph, *parts(a, b, c), prog, name, options)

    def in_place(graph: Graph, a: Tensor, b: TensorOrNumber, c: TensorOrNumber, prog: Where, name: str = "", options: common.Options | None = None) -> None:
        common.require_tensors(f"{op.value}_in_place", a)
        map_in_place(graph, *parts(a, b, c), prog, name, options)

    def with_output(
        graph: Graph, a: TensorOrNumber, b: TensorOrNumber, c: TensorOrNumber, out: Tensor, prog: Where, name: str = "",
        options: common.Options | None = None,
    ) -> None:  # fmt: skip
        expression, tensors = parts(a, b, c)
        map_with_output(graph, expression, tensors, out, prog, name, options)

    _describe(op.value, meaning, new, in_place, with_output)
    return new, in_place, with_output


def _operands(what: str, given: tuple[Any, ...]) -> tuple[list[Expr], list[Tensor]]:
    """Tensors as placeholders, numbers as parameters. Raises: GraphError where there is no tensor."""
    tensors = [g for g in given if isinstance(g, Tensor)]
    if not tensors:
        common.require_tensors(what, *given)
    made: list[Expr] = []
    for g in given:
        made.append(PlaceHolder(1 + sum(isinstance(e, PlaceHolder) for e in made)) if isinstance(g, Tensor) else Parameter(g))
    return made, tensors


def _describe(name: str, meaning: str, new: Any, in_place: Any, with_output: Any) -> None:
    for function, suffix, form in (
        (new, "", "Returns: a new tensor. See ``map``."),
        (in_place, "_in_place", "The result is written to the first operand. See ``map_in_place``."),
        (with_output, "_with_output", "The result is written to ``out``. See ``map_with_output``."),
    ):
        function.__name__ = function.__qualname__ = name + suffix
        function.__module__ = "popcore.ops.popops"
        function.__doc__ = f"{meaning}\n\n{form}"
