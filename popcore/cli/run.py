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
@click.option("--check", metavar="LEVEL", type=click.Choice(["off", "bounds", "full"]), help="Check what codelets do to memory: off, bounds or full.")
@click.option("--collect", is_flag=True, help="With --check: go on after what is found, and tell all at the end of a run.")
@click.option("--first-nan", is_flag=True, help="Stop at the vertex that makes the first NaN, infinity or half of 65504.")
@click.option("--schedule-seed", metavar="N", type=click.IntRange(min=0), help="Run what has no order on a device in an order of this seed. 0: the usual one.")
def run(
    file: Path,
    arguments: tuple[str, ...],
    device: str | None,
    threads: int | None,
    check: str | None,
    collect: bool,
    first_nan: bool,
    schedule_seed: int | None,
) -> None:
    """Run the program FILE, with ARGUMENTS as its own.

    As `python FILE` does, but what is given here wins over what the program asks for.
    """
    if device is not None:
        try:
            find_system(device)
        except UnknownNameError as error:
            raise click.BadParameter(str(error), param_hint="--device") from None
        os.environ["POPCORE_DEVICE"] = device
    wanted = {
        "engine.threads": threads, "debug.check": check, "debug.check.collect": collect or None, "debug.first_nan": first_nan or None,
        "debug.schedule_seed": schedule_seed,
    }  # fmt: skip
    if given := {key: value for key, value in wanted.items() if value is not None}:
        os.environ[_OPTIONS] = json.dumps({**_given_options(), **given})
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
