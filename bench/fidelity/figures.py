"""Published figures as rows, and what a program's model says beside them."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

PUBLISHED = Path(__file__).parent / "published_figures.csv"
COLUMNS = ("id", "source", "year", "url", "device", "benchmark", "conditions", "value", "unit", "note", "confidence", "use")


@dataclass(frozen=True)
class Figure:
    """One published number. ``use``: "calibrate" (a constant of the model may be read from it) or "test" (never)."""

    id: str
    device: str
    benchmark: str
    conditions: str
    value: float
    unit: str
    use: str
    source: str

    def number(self, pattern: str, default: int | None = None) -> int:
        """The number that ``pattern`` finds in the conditions: its group, or that one of its groups that there is.

        Raises: LookupError where there is none, and no default.
        """
        found = re.search(pattern, self.conditions)
        if found is None:
            if default is None:
                raise LookupError(f"row {self.id}: the conditions {self.conditions!r} name no {pattern!r}")
            return default
        return int(found.group(found.lastindex or 1).replace(",", ""))


@dataclass(frozen=True)
class Result:
    """A figure, and what was modelled for it."""

    figure: Figure
    family: str
    modelled: float

    @property
    def relative_error(self) -> float:
        return self.modelled / self.figure.value - 1

    def as_dict(self) -> dict[str, Any]:
        f = self.figure
        return {
            "id": f.id,
            "family": self.family,
            "use": f.use,
            "published": f.value,
            "modelled": self.modelled,
            "unit": f.unit,
            "relative_error": self.relative_error,
        }


@dataclass(frozen=True)
class Family:
    """Rows of one kind, and the program that reproduces one.

    matches: a regular expression for ids.
    run: gives the modelled number in the row's unit; raises LookupError for a row whose conditions it does not understand.
    """

    name: str
    matches: str
    run: Callable[[Figure], float]

    def has(self, figure: Figure) -> bool:
        return re.fullmatch(self.matches, figure.id) is not None


def read(path: Path = PUBLISHED) -> list[Figure]:
    """The rows of a CSV with the columns of ``published_figures.csv``.

    Raises: ValueError for other columns, or a value that is no number.
    """
    with open(path, newline="", encoding="utf-8") as file:
        rows = csv.DictReader(file)
        if missing := set(COLUMNS) - set(rows.fieldnames or ()):
            raise ValueError(f"{path} has no column {', '.join(sorted(missing))}; the columns are {', '.join(COLUMNS)}")
        kept = ("id", "device", "benchmark", "conditions", "unit", "use", "source")
        return [Figure(value=float(row["value"]), **{name: row[name] for name in kept}) for row in rows]


def within(results: Iterable[Result], bound: float) -> float:
    """The share of results whose error is at most ``bound``; 1 of none."""
    errors = [abs(r.relative_error) for r in results]
    return sum(e <= bound for e in errors) / len(errors) if errors else 1.0


def median_error(results: Sequence[Result]) -> float:
    return median(abs(r.relative_error) for r in results)
