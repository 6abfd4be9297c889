"""Executables made by hand, to test the machine without a compiler: tables with defaults, and drivers in a few lines."""

import dataclasses

import numpy as np

from popcore.codelet import Field
from popcore.engine import linker
from popcore.engine.device import Arena
from popcore.executable.executable import Costs, Executable, MemoryMap
from popcore.executable.opcodes import Op
from popcore.kernels import abi, native, objects
from popcore.kernels.native import load32, load64, store32, store64
from popcore.types import INT

TILE_BYTES = 4096


class Named(str):
    """A codelet that is only a name and its fields."""

    fields = (Field("x", "inout", "vector", INT),)


def increment(memory, tile_base, tiles, begin, end, rows, count, aux):
    """A driver: int32 elements of a vector field, one more each; a vertex whose first element is 99 raises it."""
    for k in range(begin, end):
        base = memory + load64(tile_base + 8 * load32(tiles + 4 * k))
        for row in range(count):
            offset, elements = load32(rows + 8 * row), load32(rows + 8 * row + 4)
            if load32(base + offset) == 99:
                store64(aux + 8 * abi.AUX_SITE, 3)
                store64(aux + 8 * abi.AUX_COUNT, 1)
                store64(aux + 8 * abi.AUX_VALUES, 99)
                store64(aux + 8 * abi.AUX_TAGS, abi.TAG_INT)
                return 1 + k * count + row
            for i in range(elements):
                store32(base + offset + 4 * i, load32(base + offset + 4 * i) + 1)
    return 0


def say(memory, tile_base, tiles, begin, end, rows, count, aux):
    """A driver: each vertex prints its first element."""
    for k in range(begin, end):
        tile = load32(tiles + 4 * k)
        for row in range(count):
            used = load64(aux + 8 * abi.AUX_PRINT_USED)
            if used + 7 > load64(aux + 8 * abi.AUX_PRINT_CAPACITY):
                store64(aux + 8 * abi.AUX_PRINT_LOST, load64(aux + 8 * abi.AUX_PRINT_LOST) + 1)
                continue
            record = load64(aux + 8 * abi.AUX_PRINT_BUFFER) + 8 * used
            store64(record, 7)
            store64(record + 8, k * count + row)
            store64(record + 16, tile)
            store64(record + 24, 0)
            store64(record + 32, 5)
            store64(record + 40, abi.TAG_INT)
            store64(record + 48, load32(memory + load64(tile_base + 8 * tile) + load32(rows + 8 * row)))
            store64(aux + 8 * abi.AUX_PRINT_USED, used + 7)
    return 0


def use_drivers(monkeypatch):
    """Link ``increment`` for codelet "increment" and ``say`` for "say", in place of what would be compiled."""
    cache = objects.Cache(None)

    def driver(codelet):
        function = {"increment": increment, "say": say}[codelet]
        symbol = f"test_{codelet}"
        (address,) = objects.load(cache, symbol, (symbol,), lambda: native.compile_object({symbol: function}))
        return address

    monkeypatch.setattr(linker, "drivers", lambda codelets, arithmetic, check, counted: [driver(codelet) for codelet in codelets])
    monkeypatch.setattr(linker, "may_print", lambda codelet: codelet == "say")


def table(rows, width):
    return np.array(rows, np.int64).reshape(-1, width)


def executable(code, *, phases=(), groups=(), words=(), spans=(), batches=(), tiles=(), rows=(), tiles_count=4, **other):
    """An Executable of ``tiles_count`` tiles of 4 KiB, then a staging area of one more. Short rows are filled with zeros."""
    fill = lambda given, width: table([list(row) + [0] * (width - len(row)) for row in given], width)  # noqa: E731
    code = fill(code, 4)
    costs = Costs(**{f.name: () if "tuple" in str(f.type) else np.zeros(0, np.int64) for f in dataclasses.fields(Costs)})  # the machine has no use for them
    base = np.arange(tiles_count, dtype=np.int64) * TILE_BYTES
    memory = MemoryMap(base, np.full(tiles_count, TILE_BYTES), tiles_count * TILE_BYTES, TILE_BYTES, (tiles_count + 1) * TILE_BYTES, {})
    made = {
        "target": None, "options": {}, "code": code, "entries": np.zeros(1, np.int64), "switches": table([], 2), "loop_slots": 4, "call_depth": 4,
        "phases": fill(phases, 6), "groups": fill(groups, 12), "words": np.array(words, np.uint32).ravel(), "spans": table(spans, 3),
        "batches": fill(batches, 8), "tiles": np.array(tiles, np.int32), "rows": np.array(rows, np.int32).ravel(), "vertex_ids": np.zeros(0, np.int32), "phase_names": (),
        "codelets": (Named("increment"), Named("say")), "memory": memory, "initial": table([], 3), "initial_bytes": np.zeros(0, np.uint8), "reads": (), "writes": (),
        "streams": (), "streams_of": (), "remotes": (), "yields": (), "costs": costs,
    }  # fmt: skip
    return Executable(**(made | other))


def image(made, threads=1):
    """The Executable in a new arena; returns the image and its memory as int32."""
    arena = Arena(made.memory.arena_bytes)
    return linker.Image(made, arena, threads), arena.memory.view(np.int32)


def finish(linked, pc=0):
    """Run to something that is not a poll."""
    while (outcome := linked.run(pc)).kind == "poll":
        pc = outcome.pc
    return outcome


HALT = (Op.HALT,)
