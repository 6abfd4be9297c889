"""``popcore run``: run a Python program as it is, on another machine or with other options."""

from __future__ import annotations

import json
import os
import runpy
import sys
from pathlib import Path
from typing import Any

import click

from popcore.errors import UnknownNameError
from popcore.machines import find_system

_OPTIONS = "POPCORE_ENGINE_OPTIONS"


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.option("--device", metavar="NAME", help="The machine that every pc.Device(...) of the program becomes; counts it gives are kept.")
@click.option("--threads", metavar="N", type=click.IntRange(min=1), help="Host threads that execute tiles. Results are the same for any number.")
def run(file: Path, arguments: tuple[str, ...], device: str | None, threads: int | None) -> None:
    """Run the program FILE, with ARGUMENTS as its own.

    As `python FILE` does, but what is given here wins over what the program asks for.
    """
    if device is not None:
        try:
            find_system(device)
        except UnknownNameError as error:
            raise click.BadParameter(str(error), param_hint="--device") from None
        os.environ["POPCORE_DEVICE"] = device
    if threads is not None:
        os.environ[_OPTIONS] = json.dumps({**_given_options(), "engine.threads": threads})
    sys.argv = [str(file), *arguments]
    sys.path.insert(0, str(file.resolve().parent))
    runpy.run_path(str(file), run_name="__main__")


def _given_options() -> dict[str, Any]:
    """What the environment already says; a value that is no JSON object is left for the engine to refuse."""
    try:
        given = json.loads(os.environ.get(_OPTIONS) or "{}")
    except json.JSONDecodeError as error:
        raise click.UsageError(f"{_OPTIONS} is not JSON: {error}") from None
    if not isinstance(given, dict):
        raise click.UsageError(f"{_OPTIONS} is {given!r}, not a JSON object")
    return given
