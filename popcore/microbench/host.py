"""To and from the host, and to and from Streaming Memory, by bytes of all tiles of one IPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from popcore.graph import Graph
from popcore.microbench.programs import modelled
from popcore.microbench.sweep import Sweep, powers, room
from popcore.program import Copy
from popcore.target import Target
from popcore.types import UNSIGNED_INT


def _bandwidth(way: str) -> Callable[[Target, int], float]:
    def measure(target: Target, nbytes: int) -> float:
        """GB/s"""
        graph, words = Graph(target.with_ipus(1)), nbytes // 4
        data = graph.add_variable(UNSIGNED_INT, (words,), mapping="linear", name="data")
        if "host" in way:
            make = graph.add_host_to_device_fifo if way == "host to device" else graph.add_device_to_host_fifo
            other: Any = make("stream", UNSIGNED_INT, words)
        else:
            other = graph.add_remote_buffer("rows", UNSIGNED_INT, words)
        copy = Copy(other, data) if way in ("host to device", "Streaming Memory read") else Copy(data, other)
        return nbytes / modelled(graph, copy).device_seconds / 1e9

    return measure


def _sizes(target: Target) -> list[int]:
    return powers(1 << 10, room(target, 1 << 26), 16)


def _with_memory(target: Target) -> list[int]:
    return _sizes(target) if target.system.streaming_bytes else []


SWEEPS = (
    *(Sweep(way, "bytes", "GB/s", _sizes, _bandwidth(way)) for way in ("host to device", "device to host")),
    *(Sweep(way, "bytes", "GB/s", _with_memory, _bandwidth(way)) for way in ("Streaming Memory read", "Streaming Memory write")),
)
