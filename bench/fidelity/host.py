"""Between host and device: streams with a callback, as Jia et al. 2019 and the tutorials measured them."""

from __future__ import annotations

import numpy as np

import popcore as pc
from bench.fidelity.figures import Family, Figure
from bench.fidelity.programs import graph_of
from popcore import FLOAT, program
from popcore.microbench.programs import spread
from popcore.profile import Profile


def _streamed(figure: Figure, ipus: int, tiles: int, words: int) -> Profile:
    """One transfer to so many tiles of each of so many IPUs, its data made by a callback."""
    graph = graph_of(figure, ipus)
    per_ipu = graph.target.tiles_per_ipu
    where = np.concatenate([ipu * per_ipu + np.arange(tiles) for ipu in range(ipus)])
    data = spread(graph, "data", where, words).flatten()
    stream = graph.add_host_to_device_fifo("stream", FLOAT, data.num_elements)
    engine = pc.Engine(graph, program.Copy(stream, data))
    engine.connect_stream("stream", lambda buffer: None)
    engine.run()
    return engine.profile()


def latency(figure: Figure) -> float:
    """us of 4 B to each of n tiles."""
    return _streamed(figure, 1, figure.number(r"(\d+) tiles?"), 1).device_seconds * 1e6


def bandwidth(figure: Figure) -> float:
    """GB/s of a large stream."""
    ipus = figure.number(r"(\d+) IPUs", 1)
    profile = _streamed(figure, ipus, figure.number(r", (\d+) tiles", 1216), figure.number(r"(\d+) KB per tile") * 250)
    return profile.bytes.host / profile.device_seconds / 1e9


def device_side(figure: Figure) -> float:
    """Cycles of a word's transfer without the waits, to wait for data, or to wait for the answer."""
    graph = graph_of(figure)
    tile = figure.number(r"tile (\d+)")
    data = spread(graph, "data", [tile], 1).flatten()
    stream = graph.add_host_to_device_fifo("stream", FLOAT, 1)
    back = graph.add_device_to_host_fifo("back", FLOAT, 1)
    seen = {}
    for name, steps, into, out in (
        ("Mid", program.Copy(stream, data), np.zeros(1, np.float32), None),
        ("Begin", program.Copy(stream, data), lambda buffer: None, None),
        ("End", program.Copy(data, back), None, lambda buffer: None),
    ):
        engine = pc.Engine(graph, steps)
        for handle, endpoint in (("stream", into), ("back", out)):
            if endpoint is not None:
                engine.connect_stream(handle, endpoint)
        engine.run()
        seen[name] = engine.profile().total_cycles
    part = next(name for name in seen if f"StreamCopy{name}" in figure.benchmark)
    mid, end = seen["Mid"], seen["End"] - seen["Mid"]
    return {"Mid": mid, "End": end, "Begin": seen["Begin"] - mid - end}[part]


FAMILIES = (
    Family("host", r"J-HOSTL2?", latency),
    Family("host", r"J-HOSTB-\w+", bandwidth),
    Family("host", r"LP-[456]", device_side),
)
