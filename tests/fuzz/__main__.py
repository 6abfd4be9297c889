"""``python -m tests.fuzz [--programs N] [--seed S] [--only K]``: random programs, on which all engines must agree bit for bit.

Each program is run by the reference; compiled, on one thread and on two, with tiles fused and not, after loading anew, with all
checks on; and from a saved Executable. Codelets are compiled into an empty cache first; another process then runs a part of the programs
from that cache alone.
The programs run in a process of their own: one that crashes or never ends is counted, and the next one begins after it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click

from tests.fuzz.choices import Drawn
from tests.fuzz.run import Summary, check, explain, name_of

EVERY = 500
"""Programs between two lines of progress."""


@click.command()
@click.option("--programs", default=10_000, show_default=True, help="How many.")
@click.option("--seed", default=0, show_default=True, help="Another seed, other programs.")
@click.option("--only", type=int, help="Run this one program, show it whole, and make it small if it fails.")
@click.option("--minutes", type=float, default=float("inf"), help="Stop after so many, however many programs were compared by then.")
@click.option("--again", default=200, show_default=True, help="How many of them another process runs from the cache.")
def main(programs: int, seed: int, only: int | None, minutes: float, again: int) -> None:
    """Compare the engines on random programs. Exit code 1: they differ somewhere, or something failed."""
    with tempfile.TemporaryDirectory(prefix="popcore-fuzz-") as scratch:
        if only is not None:
            sys.exit(_show(seed, only, Path(scratch)))
        environment = os.environ | {"POPCORE_CACHE_DIR": str(Path(scratch, "cache"))}
        failed = _all(programs, seed, time.monotonic() + 60 * minutes, environment)
        if again and not failed:
            failed = _from_the_cache(min(again, programs), seed, environment)
        for number in failed[:3]:
            print(f"\n{_explained(seed, number, environment)}", flush=True)
    sys.exit(bool(failed))


def _all(programs: int, seed: int, until: float, environment: dict[str, str]) -> list[int]:
    """Run all of them, or those that there is time for, and print what they have. Returns those that failed."""
    total, began, done = Summary(), time.monotonic(), 0
    while done < programs and time.monotonic() < until:
        for line in _worker(seed, done, programs, environment):
            total.add(line["number"], line["features"], line["kind"])
            done = line["number"] + 1
            if done % EVERY == 0:
                print(f"{done:,} programs, {len(total.failed)} failed, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
            if time.monotonic() > until:
                break
        else:
            if done == programs:
                break
            print(f"it was program {done} of seed {seed}", file=sys.stderr, flush=True)
            total.add(done, (), "crash")
            done += 1
    print(f"{total}\n{time.monotonic() - began:.0f} s", flush=True)
    return total.failed


def _from_the_cache(programs: int, seed: int, environment: dict[str, str]) -> list[int]:
    """The first of them in a process that finds every codelet in the cache. Returns those that failed, or compiled."""
    lines = list(_worker(seed, 0, programs, environment))
    failed = [line["number"] for line in lines if line["kind"] or line["compiled"]] + list(range(len(lines), programs))
    print(
        f"{len(lines):,} of them from the cache, in another process: " + (f"{failed} differ, fail or compile" if failed else "0 differences, nothing compiled")
    )
    return failed


def _worker(seed: int, first: int, last: int, environment: dict[str, str]):
    """What a process of its own says of programs, one by one; it ends early if it crashes."""
    command = [sys.executable, "-m", "tests.fuzz.worker", *map(str, (seed, first, last))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        try:
            yield from map(json.loads, process.stdout)
        except GeneratorExit:  # there is no more time
            process.terminate()
            raise
    if process.returncode:
        print(f"the process of programs from {first} on ended with {process.returncode}", file=sys.stderr, flush=True)


def _explained(seed: int, number: int, environment: dict[str, str]) -> str:
    """What ``--only`` says, of a process that may crash."""
    command = [sys.executable, "-m", "tests.fuzz", "--seed", str(seed), "--only", str(number)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False).stdout or f"program {number} of seed {seed}: no word of it"


def _show(seed: int, number: int, folder: Path) -> bool:
    """Print one program and what came of it. Returns whether it failed."""
    outcome = check(Drawn(name_of(seed, number)), folder)
    print(outcome.case, f"\n{outcome.text}", flush=True)
    if outcome.kind:
        print(f"\n{explain(seed, number, folder)}")
    return bool(outcome.kind)


if __name__ == "__main__":
    main()
