"""``python -m bench.compare OLD NEW``: two files of ``python -m bench --json``, row by row.

Ratios survive another machine and another day, values do not; so where a row has a ratio, that is what is compared.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

NOISE = 1.3  # two runs of the same code on a shared machine differ by up to this factor


def changes(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[tuple[str, float | None, float | None, float | None]]:
    """For each row of either: name, what it was, what it is, and how many times better it became."""
    before, after = ({row["name"]: row for row in rows} for rows in (old, new))
    found = []
    for name in dict.fromkeys([*before, *after]):
        pair = [before.get(name), after.get(name)]
        by_ratio = all(row is None or row["ratio"] is not None for row in pair)
        was, now = (None if row is None else row["ratio" if by_ratio else "value"] for row in pair)
        better = None if not was or not now else (now / was if by_ratio else was / now)
        found.append((name, was, now, better))
    return found


@click.command()
@click.argument("old", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("new", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def main(old: Path, new: Path) -> None:
    """Compare two files of results; a change within noise is not coloured."""
    table = Table()
    for header in ("name", "was", "is", "times better"):
        table.add_column(header, justify="left" if header == "name" else "right")
    for name, was, now, better in changes(*(json.loads(path.read_text(encoding="utf-8")) for path in (old, new))):
        colour = "" if better is None or 1 / NOISE < better < NOISE else "green" if better > 1 else "red"
        shown = ["" if v is None else f"{v:.3g}" for v in (was, now, better)]
        table.add_row(name, *shown, style=colour)
    Console().print(table)


if __name__ == "__main__":
    main()
