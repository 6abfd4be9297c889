"""``python -m bench [NAMES] [--json FILE] [--smoke]``: run benchmarks, print a table, write what a later run can be held against."""

from __future__ import annotations

import importlib
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from bench.harness import Row
from popcore.files import write_text

BENCHES = (
    "import",
    "vm",
    "vertex",
    "pod64_step",
    "exchange",
    "build",
    "compile",
    "warm_start",
    "cpp",
    "gemm",
    "allreduce",
    "scale",
    "random",
    "sparse",
    "conv",
    "lstm",
    "sort",
    "embedding",
    "elementwise",
    "reduce",
    "sanitizer",
    "estimates",
)
"""In the order in which they run; each is ``bench/bench_NAME.py`` with a function ``rows(smoke)``."""


def run(names: tuple[str, ...], smoke: bool, console: Console) -> Iterator[Row]:
    """The rows of some benchmarks, as they come."""
    for name in names:
        began = time.perf_counter()
        console.print(f"[dim]{name} ...[/dim]")
        for row in importlib.import_module(f"bench.bench_{name}").rows(smoke):
            yield replace(row, goal=None) if smoke else row  # a small size says nothing about speed
        console.print(f"[dim]{name}: {time.perf_counter() - began:.1f} s[/dim]")


def table(rows: list[Row]) -> Table:
    """Rows as a table. Where there is a baseline, good and moonshot are about the ratio, else about the value."""
    made = Table(title="ratio: baseline over ours, above 1 ours is faster", title_style="dim")
    for header in ("name", "value", "baseline", "unit", "ratio", "good", "moonshot", "met"):
        made.add_column(header, justify="left" if header in ("name", "unit", "met") else "right", no_wrap=True)
    for row in rows:
        goal, sign = row.goal, "" if row.goal is None else (">= " if row.goal.more_is_better else "<= ")
        met = "" if row.met is None else "[bold green]moonshot[/]" if row.moonshot_met else "[green]yes[/]" if row.met else "[bold red]no[/]"
        made.add_row(
            row.name,
            _number(row.value),
            _number(row.baseline),
            row.unit,
            "" if row.ratio is None else f"{row.ratio:.2f}x",
            "" if goal is None else f"{sign}{goal.good:g}",
            "" if goal is None or goal.moonshot is None else f"{sign}{goal.moonshot:g}",
            met,
        )
    return made


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(BENCHES), metavar="[NAMES]...")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write the rows there, as JSON.")
@click.option("--smoke", is_flag=True, help="Smallest sizes, timed once: shows that all benchmarks run and are right, and nothing about speed.")
def main(names: tuple[str, ...], json_file: Path | None, smoke: bool) -> None:
    """Run the benchmarks NAMES, or all of them.

    Each checks its answer before it times anything, and times ours and its baseline in turn. Wall time of this
    machine, never cycles of the modelled one.
    """
    progress, rows = Console(stderr=True), []
    for row in run(tuple(dict.fromkeys(names)) or BENCHES, smoke, progress):
        rows.append(row)
        if json_file is not None:  # after each row: an interrupted run keeps what it has
            write_text(json_file, json.dumps([r.as_dict() for r in rows], indent=1) + "\n")
    output = Console()
    output.print(table(rows)) if output.is_terminal else Console(width=160).print(table(rows))


if __name__ == "__main__":
    main()
