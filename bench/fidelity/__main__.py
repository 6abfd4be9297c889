"""``python -m bench.fidelity [--family F] [--figures CSV] [--json FILE] [--report FILE]``: hold the model against published figures."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from bench.fidelity import exchange, halo, host, links, poplibs, products, report, stencil, summary, tile, training, tutorials
from bench.fidelity.figures import PUBLISHED, Family, Figure, Result, read
from popcore.files import write_text

_MODULES = (exchange, links, host, tile, products, poplibs, stencil, halo, tutorials, training)
FAMILIES: tuple[Family, ...] = tuple(family for module in _MODULES for family in module.FAMILIES)
"""Every family; a row belongs to the first that has it."""


def results(figures: list[Figure], names: tuple[str, ...], console: Console) -> Iterator[Result]:
    """What is modelled for each row that a family has, as it comes; what cannot be understood is said."""
    for figure in figures:
        family = next((f for f in FAMILIES if f.has(figure)), None)
        if family is None or (names and family.name not in names):
            continue
        try:
            yield Result(figure, family.name, float(family.run(figure)))
        except LookupError as error:
            console.print(f"[yellow]{figure.id}: {error}[/yellow]")


def rows_table(found: list[Result]) -> Table:
    made = Table(title="modelled against published", title_style="dim")
    for header in ("row", "family", "use", "published", "modelled", "unit", "error"):
        made.add_column(header, justify="right" if header in ("published", "modelled", "error") else "left", no_wrap=True)
    for r in found:
        made.add_row(r.figure.id, r.family, r.figure.use, f"{r.figure.value:.6g}", f"{r.modelled:.6g}", r.figure.unit[:14], f"{100 * r.relative_error:+.1f} %")
    return made


def summary_table(found: list[Result], figures: list[Figure]) -> Table:
    made = Table(title="by family", title_style="dim", caption=summary.coverage(found, figures))
    for header in summary.HEADERS:
        made.add_column(header, justify="left" if header in ("family", "use") else "right", no_wrap=True)
    for row in summary.rows(found):
        made.add_row(*row)
    return made


@click.command()
@click.option("--family", "names", multiple=True, type=click.Choice(tuple(dict.fromkeys(f.name for f in FAMILIES))), help="Only this family; may be repeated.")
@click.option("--figures", "path", default=PUBLISHED, type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Another CSV of the same columns.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write the results there, as JSON.")
@click.option("--report", "page", type=click.Path(dir_okay=False, path_type=Path), help="Draw modelled against published there, as HTML.")
@click.option("--note", is_flag=True, help="Renew the table in docs/model.md.")
def main(names: tuple[str, ...], path: Path, json_file: Path | None, page: Path | None, note: bool) -> None:
    """Run a program for each published figure and print what the model says beside it.

    Modelled cycles, the same on every computer.
    """
    if page is not None:
        report.check()
    figures = read(path)
    found = list(results(figures, names, Console(stderr=True)))
    output = Console()
    if not output.is_terminal:
        output = Console(width=160)
    output.print(rows_table(found))
    output.print(summary_table(found, figures))
    if json_file is not None:
        write_text(json_file, json.dumps([r.as_dict() for r in found], indent=1) + "\n")
    if page is not None:
        report.write(page, found, figures)
    if note:
        summary.write(summary.markdown(found, figures))


if __name__ == "__main__":
    main()
