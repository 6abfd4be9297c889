"""A graph as text for people."""

from __future__ import annotations

import html as markup
from collections.abc import Iterable
from typing import Any

import numpy as np

from popcore.graph.variable import Variable
from popcore.graph.vertex import VertexGroup


def summary(graph: Any) -> str:
    """One line."""
    shown = [v for v in graph.variables if not v.hidden]
    vertices = sum(cs.num_vertices for cs in graph.compute_sets)
    nbytes = sum(v.numel * v.dtype.nbytes for v in shown)
    return f"<graph for {graph.target.num_tiles} tiles: {len(shown)} variables ({nbytes:,} B), {len(graph.compute_sets)} compute sets, {vertices:,} vertices>"


def dump(graph: Any, limit: int) -> str:
    """Variables and their mapping, compute sets and their vertices, handles."""
    lines = [summary(graph), "variables"]
    lines += _first((_variable(v) for v in graph.variables), len(graph.variables), limit)
    lines.append("compute sets")
    groups = [(cs, g) for cs in graph.compute_sets for g in cs.groups.values()]
    lines += _first((f"  {cs.name}: {_group(g)}" for cs, g in groups), len(groups), limit)
    for title, handles in (("host writes", graph.host_writes), ("host reads", graph.host_reads)):
        if handles:
            lines.append(title)
            lines += _first((f"  {name}: {t!r}" for name, t in handles.items()), len(handles), limit)
    if graph.streams:
        lines.append("streams")
        arrows = ((s, "to device" if s.to_device else "to host") for s in graph.streams.values())
        lines += _first((f"  {s.name}: {s.elements} {s.dtype!r} {way}" for s, way in arrows), len(graph.streams), limit)
    if graph.remotes:
        lines.append("remote buffers")
        lines += _first((f"  {r.name}: {r.repeats} rows of {r.elements} {r.dtype!r}" for r in graph.remotes.values()), len(graph.remotes), limit)
    return "\n".join(lines)


def html(graph: Any) -> str:
    """For notebooks."""
    rows = []
    for v in graph.variables[:20]:
        cells = (v.name, f"{v.dtype!r}", str(v.shape), _mapping(v))
        rows.append("<tr>" + "".join(f"<td>{markup.escape(c)}</td>" for c in cells) + "</tr>")
    more = f"<p>and {len(graph.variables) - 20} more</p>" if len(graph.variables) > 20 else ""
    head = "<tr><th>variable</th><th>type</th><th>shape</th><th>tiles</th></tr>"
    return f"<p>{markup.escape(summary(graph)[1:-1])}</p><table>{head}{''.join(rows)}</table>{more}"


def _variable(v: Variable) -> str:
    kind = ("hidden " if v.hidden else "") + ("constant " if v.constant else "")
    return f"  {kind}{v.name}: {v.dtype!r}{list(v.shape)} on {_mapping(v)}, made at {v.site}"


def _mapping(v: Variable) -> str:
    starts, ends, tiles = v.mapping.intervals()
    if not starts.size:
        return "no tile" if v.numel else "no tile (no elements)"
    used = np.unique(tiles)
    missing = v.numel - int((ends - starts).sum())
    where = f"tile {used[0]}" if used.size == 1 else f"{used.size} tiles ({used[0]} to {used[-1]})"
    return where + (f", {missing} elements on none" if missing else "")


def _group(g: VertexGroup) -> str:
    tiles = g.tile[g.tile >= 0]
    used = np.unique(tiles).size
    unmapped = g.count - tiles.size
    fields = ", ".join(str(c.field) for c in g.columns.values())
    return f"{g.count:,} vertices of {g.codelet.name} on {used} tiles" + (f", {unmapped} unmapped" if unmapped else "") + f" ({fields})"


def _first(lines: Iterable[str], total: int, limit: int) -> list[str]:
    made = [line for _, line in zip(range(limit), lines, strict=False)]
    return made + [f"  ... and {total - limit} more"] * (total > limit)
