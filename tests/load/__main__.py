"""``python -m tests.load [--engines N]``: the load tests at full size, with figures. Ends with an error where something is not as it should be."""

from __future__ import annotations

import signal
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click

from tests.load.work import growth, interrupted, run, share_a_cold_cache


@click.command()
@click.option("--engines", default=1000, show_default=True, help="That are created, run and dropped.")
@click.option("--processes", default=4, show_default=True, help="That share one cold cache.")
@click.option("--signals", default=20, show_default=True, help="SIGINTs, and as many SIGTERMs.")
def main(engines: int, processes: int, signals: int) -> None:
    """Engines one after the other, in threads, in processes; and interrupted."""
    began = time.monotonic()

    def told(what: str) -> None:
        print(f"{what} ({time.monotonic() - began:.0f} s)", flush=True)

    before, after, threads, files = growth(engines, 100)
    told(f"{engines:,} engines: {before:,} bytes resident before, {after:,} after ({100 * (after / before - 1):+.2f} %), {threads:+} threads, {files:+} files")
    assert after <= 1.05 * before
    assert max(threads, files) <= 0
    expected = [run(number) for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(10):
            assert list(pool.map(run, range(8), [2] * 8)) == expected
    told("8 engines in 8 threads, ten times: what they compute alone")
    with tempfile.TemporaryDirectory() as scratch:
        share_a_cold_cache(Path(scratch, "cache"), processes)
        told(f"{processes} processes with one cold cache: equal results, and the next one compiled nothing")
        for number in (signal.SIGINT, signal.SIGTERM):
            folder = Path(scratch, number.name)
            folder.mkdir()
            told(f"{interrupted(folder, number, signals)} x {number.name} at random moments: ended at once, every file whole")


if __name__ == "__main__":
    main()
