"""A whole process whose code was compiled before: fifty codelets, and a first program. From before its start until its end.

A cache is filled in a new folder by a first run, which also checks the answers; the programs check them each time.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator

from bench.harness import Goal, Row, measure, run_program


def rows(smoke: bool) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as cache:
        yield _row("warm_start/50 codelets", "fifty_codelets", ("2" if smoke else "50",), cache, Goal(1, 0.3), smoke)
        yield _row("warm_start/first hour", "first_hour", (), cache, Goal(0.6), smoke)


def _row(name: str, program: str, arguments: tuple[str, ...], cache: str, goal: Goal, smoke: bool) -> Row:
    run_program(program, *arguments, cache=cache)
    warm = [*arguments, "warm"]
    run_program(program, *warm, cache=cache)
    return measure(name, lambda: run_program(program, *warm, cache=cache), unit="s", goal=goal, smoke=smoke)
