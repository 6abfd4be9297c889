"""Expressions of lowered code, looked at for what they cost: the calls of operations of the dialect."""

from __future__ import annotations

import ast

import numpy as np

from popcore.codelet import Codelet, Field
from popcore.dialect.lowered import LoweredFunction
from popcore.estimate import issue
from popcore.estimate.places import Places
from popcore.estimate.regions import Number, Unknown, combined, constant, size
from popcore.estimate.values import Linear, Value, View, common, integer, kind_of, kind_of_constant

_FUNCTIONS_OF_FLOATS = (
    "sqrt", "exp", "exp2", "log", "log2", "log10", "log1p", "expm1", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
    "erf", "erfc", "cbrt", "sigmoid", "gelu_erf", "floor", "ceil", "trunc", "fabs", "copysign", "fmod", "fpow", "atan2", "hypot", "rint",
)  # fmt: skip
_ASKS = ("isnan", "isinf", "isfinite")


class Expressions(Places):
    """``value`` looks at an expression. ``names``: the variables of the function at hand."""

    def __init__(self, codelet: Codelet) -> None:
        super().__init__()
        self.codelet = codelet
        self.fields: dict[str, Value] = {f.name: Value("view", view=_view_of(f)) for f in codelet.fields}
        self.used: set[str] = set()  # fields whose pointer is loaded
        self.function: LoweredFunction
        self.names: dict[str, Value] = {}

    def value(self, node: ast.expr) -> Value:
        match node:
            case ast.Constant(value=bool() | int() as number):
                return integer(int(number))
            case ast.Name(id=name):
                return self._name(name)
            case ast.Attribute(attr=name) if name in self.fields:
                return self._field(name)
            case ast.Tuple(elts=elements):
                return Value("tuple", members=tuple(self.value(e) for e in elements))
            case ast.BoolOp(op=operator, values=values):
                made = self.value(values[0])
                for other in values[1:]:
                    made = self._both(operator, made, self.value(other))
                return made
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self.chosen(test, body, orelse)
            case ast.Call(func=ast.Name(id=name), args=arguments) if name in self.function.calls:
                return self.call(self.function.calls[name], arguments[1:])
            case ast.Call(func=ast.Name(id=name), args=arguments) if name.startswith("_pc_"):
                return self._operation(name.removeprefix("_pc_"), arguments)
        raise Unknown(ast.dump(node)[:80])

    def call(self, index: int, arguments: list[ast.expr]) -> Value:
        raise NotImplementedError

    def _name(self, name: str) -> Value:
        if name in self.names:
            return self.names[name]
        if name not in self.function.constants:
            raise Unknown(name)
        value = self.function.constants[name]
        if isinstance(value, np.ndarray):
            view = View("", "vector", kind_of_constant(value), value.dtype.itemsize, (constant(len(value)),))
            return self.names.setdefault(name, Value("view", view=view))
        return self.names.setdefault(name, Value(kind_of_constant(np.asarray(value)), operation=("constant", ())))

    def _field(self, name: str) -> Value:
        found = self.fields[name]
        if name not in self.used and found.view is not None and found.view.shape != "scalar":
            self.used.add(name)
            self.main(0, issue.OF_FIELD)
        return found

    def chosen(self, test: ast.expr, first: ast.expr, second: ast.expr) -> Value:
        """One of two values, both computed."""
        match test:
            case ast.Call(func=ast.Name(id=name), args=[left, right]) if name in ("_pc_lt", "_pc_le", "_pc_gt", "_pc_ge"):
                operands = self.value(left), self.value(right)
                one, other = self.value(first), self.value(second)
                if {id(one), id(other)} == {id(o) for o in operands}:
                    return self.apply("max" if (name in ("_pc_gt", "_pc_ge")) == (operands[0] is one) else "min", *operands)
        condition = self.value(test)
        if condition.number is not None and condition.number.kind == "constant":
            return self.value(first if condition.number.parts[0] else second)
        one = self.value(first)
        if condition.level < self.level:
            return self._one_of(one, second)
        other = self.value(second)
        made = self.apply("select", condition, one, other, kind=common(one, other))
        if condition.operation is not None and common(*condition.operation[1]) in issue.VECTOR and made.kind in ("int", "bool"):
            self.main(made.level, 1)  # the condition comes from the other pipeline
        made.number = combined("select", condition.number, one.number, other.number)
        return made

    def _one_of(self, one: Value, second: ast.expr) -> Value:
        """One of two values of which the same is taken in all rounds: a compiler makes two loops of it, and either computes one."""
        draft = self.draft_at(self.level)
        items, words = len(draft.items), draft.words
        other = self.value(second)
        del draft.items[items:]
        draft.words = words
        return Value(common(one, other), max(one.level, other.level))

    def _both(self, operator: ast.boolop, left: Value, right: Value) -> Value:
        made = self.apply("and" if isinstance(operator, ast.And) else "or", left, right, kind="bool")
        made.number = combined("both" if isinstance(operator, ast.And) else "either", left.number, right.number)
        return made

    # -- operations --

    def _operation(self, name: str, arguments: list[ast.expr]) -> Value:
        if name in ("floordiv", "mod", "pow", "step"):
            arguments = arguments[2:]  # context and site
        elif name in ("fail", "print"):
            return Value("none")
        values = [self.value(a) for a in arguments]
        if (method := getattr(self, f"_on_{name}", None)) is not None:
            found: Value = method(*values)
            return found
        if name.startswith("as_"):
            return self._as(name.removeprefix("as_"), values[0])
        if name in _FUNCTIONS_OF_FLOATS:
            if name == "rint" and values[0].kind in ("int", "bool"):
                return values[0]
            return self.apply(name, *values, kind="f16" if all(v.kind != "f32" for v in values) and any(v.kind == "f16" for v in values) else "f32")
        if name in _ASKS:
            return self.apply(name, *values, kind="bool")
        if name == "truediv" and all(v.kind in ("int", "bool") for v in values):
            return self.apply(name, *values, kind="f32")
        return self.apply(name, *values)

    def _as(self, code: str, value: Value) -> Value:
        kind = {"float": "f32", "half": "f16", "bool": "bool"}.get(code, "int")
        if kind == "bool" and value.kind in ("f32", "f16"):
            return self.apply("ne", value, kind="bool")
        return self.converted(value, kind)

    def _on_kept(self, value: Value) -> Value:
        return value

    _on_pos = _on_index = _on_step = _on_kept

    def _on_len(self, of: Value) -> Value:
        if of.members:
            return integer(len(of.members))
        return self._size(of, 0)

    def _on_size(self, of: Value) -> Value:
        made = self._size(of, 0)
        return self.apply("mul", made, self._size(of, 1)) if _view(of).shape == "matrix" else made

    def _on_shape(self, of: Value) -> Value:
        return Value("tuple", members=tuple(self._size(of, d) for d in range(2 if _view(of).shape == "matrix" else 1)))

    def _size(self, of: Value, dimension: int) -> Value:
        key = ("size", id(of), dimension)
        if (found := self.known(key)) is None:
            number = _view(of).sizes[dimension]
            found = integer(number.parts[0]) if number is not None and number.kind == "constant" else Value("int", of.level, number)
            self.draft_at(of.level).known[key] = found
        return found

    def _on_load(self, place: Value) -> Value:
        return self.load(_view(place), place, Linear(0))

    def _on_store(self, place: Value, value: Value) -> Value:
        self.converted(value, _view(place).kind)
        self.store(_view(place), place, Linear(0))
        return Value("none")

    def _on_get(self, of: Value, index: Value) -> Value:
        if of.members:
            if index.number is None:
                raise Unknown("a tuple's index")
            return of.members[int(index.number.parts[0])]
        view = _view(of)
        index.uses += 1
        if view.shape == "vector":
            return self.load(view, of, index.as_linear)
        return self._row(of, index)

    def _row(self, of: Value, index: Value) -> Value:
        """A row of a matrix, a vector of a list."""
        key = ("row", id(of), id(index))
        if (found := self.known(key)) is not None:
            return found
        view, level = _view(of), max(of.level, index.level)
        listed = view.shape == "list"
        self.main(level, issue.OF_FIELD if listed else 1)
        length = size(view.field, 0, index.number) if listed and index.number is not None else None if listed else view.sizes[1]
        made = Value("view", level, view=View(view.field, "vector", view.kind, view.nbytes, (length,)))
        self.draft_at(level).known[key] = made
        return made

    def _on_get2(self, of: Value, row: Value, column: Value) -> Value:
        return self.load(_view(of), of, self._cell(of, row, column))

    def _cell(self, of: Value, row: Value, column: Value) -> Linear:
        return self.apply("mul", row, self._size(of, 1)).as_linear.plus(column.as_linear)

    def _on_set(self, of: Value, index: Value, value: Value) -> Value:
        index.uses += 1
        self.converted(value, _view(of).kind)
        self.store(_view(of), of, index.as_linear)
        return Value("none")

    def _on_set2(self, of: Value, row: Value, column: Value, value: Value) -> Value:
        self.converted(value, _view(of).kind)
        self.store(_view(of), of, self._cell(of, row, column))
        return Value("none")

    def _on_slice(self, of: Value, low: Value, high: Value) -> Value:
        return self._between(of, low, high.number)

    def _on_slice_from(self, of: Value, low: Value) -> Value:
        return self._between(of, low, _view(of).sizes[0])

    def _between(self, of: Value, low: Value, high: Number | None) -> Value:
        view, level = _view(of), max(of.level, low.level)
        self.main(level, 2)
        length = combined("clamped", low.number, high, view.sizes[0])
        shift = low.number.parts[0] if low.number is not None and low.number.kind == "constant" else 0
        made = View(view.field, view.shape, view.kind, view.nbytes, (length, *view.sizes[1:]), view.shift + (shift if view.shape == "vector" else 0))
        return Value("view", level, view=made)


def _view(value: Value) -> View:
    if value.view is None:
        raise Unknown(f"a view was expected, not {value.kind}")
    return value.view


def _view_of(field: Field) -> View:
    dimensions = {"scalar": 0, "vector": 1, "matrix": 2, "list": 1}[field.shape]
    return View(field.name, field.shape, kind_of(field.dtype), field.dtype.nbytes, tuple(size(field.name, d) for d in range(dimensions)))
