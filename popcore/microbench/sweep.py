"""A benchmark over a range of sizes, and what it measured: as a table, as CSV and as a plot."""

from __future__ import annotations

import csv
import importlib.util
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from popcore.errors import OptionError
from popcore.target import Target

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True)
class Sweep:
    """One benchmark.

    Attributes:
        over: What is varied, and its unit.
        unit: Of what is measured.
        values: The sizes that make sense on a target; none where it lacks what is measured.
        measure: (target, size) to a number, from modelled cycles alone: the same on every computer.
    """

    name: str
    over: str
    unit: str
    values: Callable[[Target], Iterable[int]]
    measure: Callable[[Target, int], float]


@dataclass(frozen=True)
class Point:
    """One measurement."""

    suite: str
    benchmark: str
    over: str
    size: int
    value: float
    unit: str


@dataclass(frozen=True)
class Results:
    """What some suites measured on a target."""

    target: Target
    points: Sequence[Point]

    def of(self, benchmark: str) -> dict[int, float]:
        """The values of one benchmark by size."""
        return {p.size: p.value for p in self.points if p.benchmark == benchmark}

    def table(self) -> Table:
        """A Rich table, one row for each point."""
        from rich.table import Table

        made = Table(title=str(self.target), title_justify="left", title_style="bold", box=None, header_style="bold", pad_edge=False)
        for header, right in (("benchmark", False), ("over", False), ("size", True), ("value", True), ("unit", False)):
            made.add_column(header, justify="right" if right else "left", overflow="fold")
        last = ""
        for p in self.points:
            new = p.benchmark != last
            made.add_row(p.benchmark if new else "", p.over if new else "", f"{p.size:,}", f"{p.value:,.4g}", p.unit)
            last = p.benchmark
        return made

    def csv(self) -> str:
        """Comma-separated, with a header; each line says which system it is of."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(("system", "ipus", "tiles_per_ipu", "suite", "benchmark", "over", "size", "value", "unit"))
        for p in self.points:
            writer.writerow(
                (self.target.name, self.target.num_ipus, self.target.tiles_per_ipu, p.suite, p.benchmark, p.over, p.size, repr(float(p.value)), p.unit)
            )
        return text.getvalue()

    def html(self) -> str:
        """A page with a plot for each unit, on logarithmic axes; it needs nothing else to be shown.

        Raises:
            OptionError: Plotly is not installed.
        """
        if importlib.util.find_spec("plotly") is None:
            raise OptionError("a plot needs the package plotly, which is not installed", "pip install 'popcore[report]'")
        import plotly.graph_objects as plots
        from plotly.subplots import make_subplots

        panels = list(dict.fromkeys((p.suite, p.over, p.unit) for p in self.points))
        figure = make_subplots(rows=max(len(panels), 1), cols=1, subplot_titles=[suite for suite, _, _ in panels])
        for row, panel in enumerate(panels, 1):
            of_panel = [p for p in self.points if (p.suite, p.over, p.unit) == panel]
            for name in dict.fromkeys(p.benchmark for p in of_panel):
                line = [p for p in of_panel if p.benchmark == name]
                figure.add_trace(plots.Scatter(x=[p.size for p in line], y=[p.value for p in line], name=name, mode="lines+markers"), row=row, col=1)
            figure.update_xaxes(type="log", title=panel[1], row=row, col=1)
            figure.update_yaxes(type="log", title=panel[2], row=row, col=1)
        figure.update_layout(height=380 * max(len(panels), 1), title=f"popcore, modelled: {self.target}")
        made: str = figure.to_html(full_html=True, include_plotlyjs=True)
        return made


def powers(least: int, most: int, factor: int = 4) -> list[int]:
    """``least``, times ``factor`` and so on, and ``most`` itself; nothing if there is nothing between."""
    made, size = [], least
    while size < most:
        made.append(size)
        size *= factor
    return [*made, most] if least <= most else []


def room(target: Target, most: int) -> int:
    """``most`` bytes, or the largest power of two that takes no more than a quarter of one IPU's memory."""
    return min(most, 1 << (target.tiles_per_ipu * target.bytes_per_tile // 4).bit_length() - 1)
