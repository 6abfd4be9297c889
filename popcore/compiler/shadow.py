"""What the full check needs beside the program: planes of shadow behind the arena, and the variable at each byte of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from popcore.compiler.ir import Code, Layout, MemoryPlan
from popcore.compiler.placing import byte_runs
from popcore.executable import Shadow, no_shadow
from popcore.graph import Graph

_LINE = 64  # bytes: a plane starts as the arena does


def make_shadow(graph: Graph, code: Code, layout: Layout, memory: MemoryPlan, options: Mapping[str, Any]) -> Shadow:
    """The shadow of a placed program; without planes of it where only the names of variables are wanted, and none at all without either."""
    planes = options["debug.check"] == "full"
    if options["debug.check"] == "off" and not options["debug.first_nan"]:
        return no_shadow()
    variable = layout.slab_variable[layout.run_slab]
    width = layout.element_bytes[variable]
    first = layout.start - np.array([v.base for v in graph.variables], np.int64)[variable]
    places = np.stack([memory.address[layout.run_slab] + layout.run_offset, (layout.end - layout.start) * width, variable, first, width], 1)
    ended = [np.column_stack([np.full(len(runs), i), runs]) for i, regions in enumerate(code.ended) if len(runs := byte_runs(regions, layout, memory))]
    return Shadow(
        distance=-(-memory.arena_bytes // _LINE) * _LINE * planes,
        variables=tuple(f"{v.name!r} ({v.site})" for v in graph.variables),
        places=places[np.argsort(places[:, 0], kind="stable")].astype(np.int64),
        ended=np.concatenate([np.zeros((0, 3), np.int64), *ended]),
    )
