"""The command ``popcore``: one subcommand a file, each thin: parse, call, print."""

from __future__ import annotations

import click

from popcore import __version__
from popcore.cli.bench import bench
from popcore.cli.doctor import doctor
from popcore.cli.info import info
from popcore.cli.run import run


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="popcore")
def main() -> None:
    """Emulate Graphcore IPUs."""


for _command in (run, info, bench, doctor):
    main.add_command(_command)
