"""``popcore bench``: microbenchmarks of the modelled machine."""

from __future__ import annotations

from pathlib import Path

import click

from popcore.errors import PopcoreError

_SUITES = ("memory", "exchange", "links", "host", "products", "collectives")  # a test holds them against popcore.microbench, which is slow to import


@click.command()
@click.option("--device", metavar="NAME", required=True, help="The machine, as in `popcore info`.")
@click.option("--suite", "suites", multiple=True, type=click.Choice(_SUITES), help="May be given several times; all suites unless given.")
@click.option("--csv", "csv_file", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="Write the points here too.")
@click.option("--plot", "plot_file", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="Write plots here, a page of HTML. Needs plotly.")
def bench(device: str, suites: tuple[str, ...], csv_file: Path | None, plot_file: Path | None) -> None:
    """Print what an IPU would take, as modelled: latencies, bandwidths and rates by size.

    The numbers are the same on every computer: nothing is timed here.
    """
    from rich.console import Console

    from popcore import Device, microbench
    from popcore.files import write_text

    console = Console()
    try:
        with console.status("") as status:
            results = microbench.run(Device(device), *suites, report=status.update)
        console.print(results.table())
        for file, text in ((csv_file, results.csv), (plot_file, results.html)):
            if file is not None:
                write_text(file, text())
                console.print(f"wrote {file}", markup=False, highlight=False, soft_wrap=True)
    except (PopcoreError, OSError) as error:
        raise click.ClickException(str(error)) from None
