"""How many partial sums are added at a time: many of them in stages, so that no tile receives from very many. After PopLibs' plan of its reductions."""

from __future__ import annotations

from functools import cache

import numpy as np

from popcore.types import Array

TWO, THREE = 16, 125  # partial sums from which on there are so many stages: PopLibs chose them by benchmark
MOST = 3


@cache
def stages(parts: int) -> tuple[int, ...]:
    """How many sums each stage adds up into one, the last stage the rest of them: of their product there are ``parts`` or more."""
    left, made = parts, []
    for wanted in _kept(parts, 3 if parts >= THREE else 2 if parts >= TWO else 1)[0]:
        made.append(-(-left // wanted))
        left = -(-left // made[-1])
    return (*made, left)


def _kept(parts: int, count: int) -> tuple[tuple[int, ...], float]:
    """How many sums are left after each of ``count`` stages but the last, so that a tile receives few messages; and how many those are."""
    if count == 1:
        return (), parts
    down = int(parts ** ((count - 1) / count))
    choices = [(then, (then, *rest), cost + parts / then) for then in (down, down + 1) for rest, cost in (_kept(then, count - 1),)]
    _, kept, cost = min(choices, key=lambda c: (c[2], -c[0]))
    return kept, cost


def stage_table(parts: Array) -> Array:
    """int64[parts, MOST]: ``stages`` of each, 1 where there are fewer."""
    kinds, of = np.unique(parts, return_inverse=True)
    table = np.ones((kinds.size, MOST), np.int64)
    for row, count in zip(table, kinds.tolist(), strict=True):
        row[: len(stages(count))] = stages(count)
    return table[of.reshape(-1)]
