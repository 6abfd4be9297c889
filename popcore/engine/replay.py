"""Runs one vertex once more, as Python, to find the line that stored a number that is none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from popcore.codelet import Codelet
from popcore.debug import Site
from popcore.dialect import environment, interpret, lower, make_view, rounding
from popcore.dialect.interpret import OPERATIONS
from popcore.kernels.behaviour import LARGEST, Arithmetic
from popcore.types import Array


class _Found(Exception):
    """A store of such a number."""

    def __init__(self, site: int) -> None:
        super().__init__(site)
        self.site = site


class _Context:
    """Prints nothing; what fails ends the search."""

    def fail(self, site: int, values: Sequence[Any]) -> None:
        raise RuntimeError("it failed")

    def print(self, site: int, values: Sequence[Any]) -> None: ...


def first_store(
    codelet: Codelet, fields: Sequence[Sequence[Array]], rows: Sequence[int], arithmetic: Arithmetic, key: Callable[[str, int], int], ieee: bool
) -> tuple[Site, int] | None:
    """The line, and the worker, that first stores NaN, an infinity or the largest half where something else was.

    Args:
        fields: Of each field what it held, of lists the pieces. They are changed.
        rows: Of each field, if it is a matrix.
        key: Of the random bits of a codelet's identity and a worker.
    """
    lowered, several = lower(codelet, True), codelet.workers > 1
    compute = interpret(lowered, {**OPERATIONS, **{name: _looking(OPERATIONS[name]) for name in ("store_checked", "set_checked", "set2_checked")}})
    views = {}
    for field, pieces, count in zip(codelet.fields, fields, rows, strict=True):
        value: Array | list[Array] = list(pieces) if field.shape == "list" else pieces[0]
        if field.shape == "matrix":
            value = pieces[0].reshape(count, pieces[0].size // count if count else 0)
        views[field.name] = make_view(field, value)
    for worker in reversed(range(codelet.workers)):
        rounding.begin(key(lowered.identity, worker))
        try:
            with environment.denormals(flush=not ieee), rounding.using(arithmetic):
                compute(views, _Context(), worker if several else None)
        except _Found as found:
            site = lowered.sites[found.site]
            return Site(site.file, site.line), worker
        except (ArithmeticError, LookupError, RuntimeError, rounding.Trap):
            return None
    return None


def _looking(plain: Callable[..., Any]) -> Callable[..., Any]:
    """A store that is looked at."""

    def operation(context: Any, site: int, view: Any, *rest: Any) -> Any:
        before = view.array.copy()
        result = plain(context, site, view, *rest)
        if view.array.dtype.kind == "f" and (_wrong(view.array) & ~_wrong(before)).any():
            raise _Found(site)
        return result

    return operation


def _wrong(values: Array) -> Array:
    found: Array = ~np.isfinite(values)
    return found | (np.abs(values) == LARGEST) if values.dtype == np.float16 else found
