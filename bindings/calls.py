"""Calling drivers: one vertex on arrays of the host, and what drivers leave when a vertex gives up or prints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from popcore.bindings.codelet_abi import ffi
from popcore.bindings.library import number
from popcore.bindings.unit import NativeField, NativeType
from popcore.types import Array

NATIVE_SITE = 2**64 - 2
"""Site of faults and prints of compiled codelets, which say by themselves what they are."""

AUX_WORDS = number("AUX_WORDS")
_COUNT, _VALUES, _WORKER, _BUFFER, _CAPACITY, _USED, _PHASE = (
    number(f"AUX_{word}") for word in ("COUNT", "VALUES", "WORKER", "PRINT_BUFFER", "PRINT_CAPACITY", "PRINT_USED", "PHASE")
)
_RECORD_WORKER, _RECORD_VALUES = 3, 6
_PRINT_WORDS = 1 << 14
_ALIGNMENT = 64
_KINDS = ("AssertionError", "RuntimeError", "TimeoutError", "RuntimeError", "RuntimeError")


@dataclass(frozen=True)
class NativeFault:
    """Why a vertex gave up."""

    exception: str  # the Python exception that comes nearest
    text: str
    file: str  # "" where the codelet's own place has to do
    line: int
    worker: int = 0


def fault_of(values: Sequence[int], worker: int = 0) -> NativeFault:
    """A fault by the values that its driver left: kind, text, file, line; addresses stay good until the thread's next fault.

    Drivers written by hand leave values of their own.
    """
    if len(values) != 4 or not 0 <= int(values[0]) < len(_KINDS):
        shown = ", ".join(map(str, values))
        return NativeFault("RuntimeError", f"the driver gave up{': ' if shown else ''}{shown}", "", 0, worker)
    kind, text, file, line = (int(v) for v in values)
    shown = _string(text)
    if kind == 1 and "zero" in shown:
        return NativeFault("ZeroDivisionError", shown, "", 0, worker)
    if kind == 0:
        shown = f"assert({shown}) failed"
    elif kind == 2:
        shown = "compute did not return in the time that one call may take; workers that wait for each other, or a loop without end"
    elif kind == 3:
        shown = f"an exception left compute: {shown}"
    return NativeFault(_KINDS[kind], shown, _string(file), line, worker)


def _string(address: int) -> str:
    return bytes(ffi.string(ffi.cast("char *", address))).decode("utf-8", "replace") if address else ""


def print_text(values: Sequence[int]) -> str:
    """The text of a print record: its length in bytes, then the bytes in 64-bit words. The newline at its end is the record's."""
    words = np.array([v & (2**64 - 1) for v in values[1:]], np.uint64)
    return words.tobytes()[: int(values[0])].decode("utf-8", "replace").removesuffix("\n")


class Caller:
    """Runs single vertices of one type on arrays, through the driver that engines use."""

    def __init__(self, native: NativeType) -> None:
        self.native = native
        address, _ = native.driver()
        self._driver = ffi.cast("popcore_driver", address)

    def forget(self) -> None:
        """Start over with variables outside of vertices."""
        self.native.unit.forget(0)

    def run(self, arrays: Sequence[Any], tile: int, phase: int = 0) -> tuple[NativeFault | None, list[tuple[int, str]]]:
        """Run one vertex.

        Args:
            arrays: For each field a writable array, for a list field a list of those; they are changed in place.

        Returns: why it gave up, and the lines it printed, each with its worker.
        """
        row: list[int] = []
        tail: list[int] = []
        places: list[tuple[Array, int]] = []
        used = 0

        def place(array: Array, field: NativeField) -> int:
            nonlocal used
            step = max(field.align, _ALIGNMENT)
            used = -(-used // step) * step
            places.append((array, used))
            used += array.nbytes
            return places[-1][1]

        table_at = sum(1 if f.shape == "scalar" else 2 for f in self.native.fields)
        for field, value in zip(self.native.fields, arrays, strict=True):
            if field.shape == "list":
                row += [table_at + len(tail), len(value)]
                for each in value:
                    tail += [place(each, field), each.size]
            else:
                row.append(place(value, field))
                if field.shape == "vector":
                    row.append(value.size)
        memory = _aligned(used)
        for array, at in places:
            memory[at : at + array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        fault, prints = self._call(memory, np.array(row + tail, np.int32), tile, phase)
        for array, at in places:
            array[...] = memory[at : at + array.nbytes].view(array.dtype).reshape(array.shape)
        return fault, prints

    def _call(self, memory: Array, rows: Array, tile: int, phase: int) -> tuple[NativeFault | None, list[tuple[int, str]]]:
        aux, buffer = np.zeros(AUX_WORDS, np.uint64), np.zeros(_PRINT_WORDS, np.uint64)
        aux[_BUFFER], aux[_CAPACITY], aux[_PHASE] = buffer.ctypes.data, _PRINT_WORDS, phase
        # Variables outside of vertices are kept per memory and tile; all calls use memory 0, so the base makes up for it.
        base, tiles = np.zeros(tile + 1, np.int64), np.array([tile], np.int32)
        base[tile] = memory.ctypes.data
        words = [ffi.from_buffer(f"{kind}[]", array) for kind, array in (("int64_t", base), ("int32_t", tiles), ("int32_t", rows), ("uint64_t", aux))]
        done = self._driver(ffi.NULL, words[0], words[1], 0, 1, words[2], 1, words[3])
        fault = fault_of(aux[_VALUES : _VALUES + min(int(aux[_COUNT]), 8)].tolist(), int(aux[_WORKER])) if done else None
        prints: list[tuple[int, str]] = []
        at = 0
        while at < int(aux[_USED]):
            record = buffer[at : at + int(buffer[at])]
            prints.append((int(record[_RECORD_WORKER]), print_text(record[_RECORD_VALUES:].tolist())))
            at += len(record)
        return fault, sorted(prints, key=lambda line: -line[0])  # workers run from the last to the first, or side by side


def _aligned(nbytes: int) -> Array:
    whole = np.zeros(nbytes + 2 * _ALIGNMENT, np.uint8)
    start = -whole.ctypes.data % _ALIGNMENT
    made: Array = whole[start : start + nbytes + _ALIGNMENT]
    return made
