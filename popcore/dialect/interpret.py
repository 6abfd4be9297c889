"""Runs a lowered codelet as plain Python, so that a debugger stops at the user's lines."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from popcore.codelet import Field
from popcore.dialect import arithmetic, mathematics
from popcore.dialect.lowered import Lowered
from popcore.dialect.views import ListView, MatrixView, ScalarBox, VectorView
from popcore.types import Array

View = ScalarBox | VectorView | MatrixView | ListView


class Context(Protocol):
    """Who runs the codelet: told of what fails and what is printed. ``site`` is an index of ``Lowered.sites``."""

    def fail(self, site: int, values: Sequence[Any]) -> Any:
        """Must raise."""

    def print(self, site: int, values: Sequence[Any]) -> None: ...


class Fault(Exception):
    """What a codelet raises after it told its context, which should not have returned."""


def make_view(field: Field, value: Array | list[Array]) -> View:
    """The view of a field over its memory: an array of the field's rank, or a list of 1-D arrays. FP8 as uint8."""
    if field.shape == "list":
        return ListView(list(value), field.writes)
    kind: Any = {"scalar": ScalarBox, "vector": VectorView, "matrix": MatrixView}[field.shape]
    array = np.asarray(value)
    if field.dtype.kind == "quarter":
        array = array.view(np.uint8)
    view: View = kind(array.reshape(()) if field.shape == "scalar" else array, field.writes)
    return view


def interpret(lowered: Lowered, operations: Mapping[str, Callable[..., Any]] | None = None) -> Callable[[Mapping[str, View], Context, int | None], None]:
    """A function that runs ``compute`` once: ``run(views by field name, context, worker or None)``.

    ``operations``: in place of ``OPERATIONS``.
    """
    known = OPERATIONS if operations is None else operations
    made: list[Any] = []
    for function in lowered.functions:
        names = {operation: known[operation.removeprefix("_pc_")] for operation in function.operations}
        scope = {"__builtins__": {}, "_pc_Fault": Fault, **names}
        scope.update({name: VectorView(v, False) if isinstance(v, np.ndarray) else v for name, v in function.constants.items()})
        made.append(types.FunctionType(function.code, scope, function.name))
    for function, python in zip(lowered.functions, made, strict=True):
        python.__globals__.update({name: made[index] for name, index in function.calls.items()})
    compute, names_of_fields = made[0], [f.name for f in lowered.codelet.fields]

    def run(views: Mapping[str, View], context: Context, worker: int | None = None) -> None:
        vertex = types.SimpleNamespace(**{name: views[name] for name in names_of_fields})
        arguments = (context, vertex) if worker is None else (context, vertex, worker)
        with np.errstate(all="ignore"):
            compute(*arguments)

    return run


# -- operations on views --


def _load(box: ScalarBox) -> Any:
    return box.load()


def _store(box: ScalarBox, value: Any) -> None:
    box.store(value)


def _load_checked(context: Context, site: int, box: ScalarBox) -> Any:
    return box.load()


def _store_checked(context: Context, site: int, box: ScalarBox, value: Any) -> None:
    box.store(value)


def _get(view: Any, index: Any) -> Any:
    return view[arithmetic.as_index(index)]


def _get2(view: Any, row: Any, column: Any) -> Any:
    return view[arithmetic.as_index(row), arithmetic.as_index(column)]


def _set(view: Any, index: Any, value: Any) -> None:
    view[arithmetic.as_index(index)] = value


def _set2(view: Any, row: Any, column: Any, value: Any) -> None:
    view[arithmetic.as_index(row), arithmetic.as_index(column)] = value


def _inside(index: int, count: int) -> bool:
    return -count <= index < count


def _get_checked(context: Context, site: int, view: Any, index: Any) -> Any:
    if not _inside(index := arithmetic.as_index(index), len(view)):
        context.fail(site, (index, len(view)))
    return view[index]


def _set_checked(context: Context, site: int, view: Any, index: Any, value: Any) -> None:
    if not _inside(index := arithmetic.as_index(index), len(view)):
        context.fail(site, (index, len(view)))
    view[index] = value


def _check2(context: Context, site: int, view: Any, row: Any, column: Any) -> tuple[int, int]:
    row, column = arithmetic.as_index(row), arithmetic.as_index(column)
    rows, columns = view.shape
    if not (_inside(row, rows) and _inside(column, columns)):
        context.fail(site, (row, column, rows, columns))
    return row, column


def _get2_checked(context: Context, site: int, view: Any, row: Any, column: Any) -> Any:
    return view[_check2(context, site, view, row, column)]


def _set2_checked(context: Context, site: int, view: Any, row: Any, column: Any, value: Any) -> None:
    view[_check2(context, site, view, row, column)] = value


def _slice(view: Any, low: Any, high: Any) -> Any:
    return view.part(arithmetic.as_index(low), arithmetic.as_index(high))


def _slice_from(view: Any, low: Any) -> Any:
    return view.part(arithmetic.as_index(low), None)


OPERATIONS: dict[str, Callable[..., Any]] = {
    **arithmetic.OPERATIONS,
    **mathematics.OPERATIONS,
    "load": _load, "store": _store, "get": _get, "get2": _get2, "set": _set, "set2": _set2, "slice": _slice, "slice_from": _slice_from,
    "load_checked": _load_checked, "store_checked": _store_checked, "get_checked": _get_checked, "set_checked": _set_checked, "get2_checked": _get2_checked, "set2_checked": _set2_checked,
    "len": len, "range": range, "shape": lambda view: view.shape, "size": lambda view: view.size,
    "fail": lambda context, site, *values: context.fail(site, values),
    "print": lambda context, site, *values: context.print(site, values),
    "spend": lambda context, amount: context.spend(amount),
}  # fmt: skip
