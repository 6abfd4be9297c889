"""For tests of programs: whether a result depends on an order that a device does not promise."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from popcore.engine.engine import Engine
from popcore.errors import ScheduleError
from popcore.types import Array

__all__ = ["fuzz_schedules"]


def fuzz_schedules(run: Callable[[dict[str, Any]], Engine | Mapping[str, Array]], seeds: Iterable[int] = range(1, 17)) -> None:
    """Run a program in the usual order, then in that of each seed, and compare bit by bit.

    Args:
        run: Makes an engine with the options that it is given, runs it, and returns it; its host reads are compared. Or returns what is to be
            compared, arrays by name. Called once for each seed: everything that it starts from has to be the same.
        seeds: Of ``debug.schedule_seed``.

    Raises: ScheduleError: names the first seed that gives another result, and the first array and element that differ. Whatever ``run``
        raises, with a note of the seed.
    """
    wanted = _results(run({}))
    for seed in seeds:
        got = _results(run({"debug.schedule_seed": seed}))
        for name, values in wanted.items():
            _compare(seed, name, values, got[name])


def _results(made: Engine | Mapping[str, Array]) -> dict[str, Array]:
    if isinstance(made, Engine):
        return {handle.name: made.read_tensor(handle.name) for handle in made.executable.reads}
    return {name: np.ascontiguousarray(values) for name, values in made.items()}


def _compare(seed: int, name: str, wanted: Array, got: Array) -> None:
    bits = [np.ascontiguousarray(values).reshape(-1).view(f"V{values.itemsize}") for values in (wanted, got)]
    different = np.flatnonzero(bits[0] != bits[1])
    if len(different):
        at = int(different[0])
        where = tuple(int(i) for i in np.unravel_index(at, wanted.shape))
        raise ScheduleError(
            f"with debug.schedule_seed {seed}, {name!r} differs in {len(different):,} of {wanted.size:,} elements, "
            f"first at {where}: {wanted.reshape(-1)[at]} in the usual order, {got.reshape(-1)[at]} in this one",
            f"options={{'debug.schedule_seed': {seed}}} runs the same order again; debug.check 'full' may name the vertex",
            seed=seed, name=name, index=where,
        )  # fmt: skip
