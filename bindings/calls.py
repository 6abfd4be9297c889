"""Calling drivers: one vertex on arrays of the host, and what drivers leave when a vertex gives up or prints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from popcore.bindings import diagnose
from popcore.bindings.codelet_abi import ffi
from popcore.bindings.library import number
from popcore.bindings.unit import DEVICE_RULES, NativeField, NativeType
from popcore.types import Array

NATIVE_SITE = 2**64 - 2
"""Site of faults and prints of compiled codelets, which say by themselves what they are."""

TRAP_SITES = (2**64 - 3, 2**64 - 4, 2**64 - 5)
"""Sites of floating-point results that stop the program: an invalid operation, a division by zero, an overflow."""

AUX_WORDS = number("AUX_WORDS")
_SITE, _COUNT, _VALUES, _WORKER, _BUFFER, _CAPACITY, _USED, _PHASE, _STREAMS = (
    number(f"AUX_{word}") for word in ("SITE", "COUNT", "VALUES", "WORKER", "PRINT_BUFFER", "PRINT_CAPACITY", "PRINT_USED", "PHASE", "STREAMS")
)
_RECORD_WORKER, _RECORD_VALUES = 3, 6
_PRINT_WORDS = 1 << 14
_ALIGNMENT = 64
_KINDS = ("AssertionError", "RuntimeError", "TimeoutError", "RuntimeError", "RuntimeError")
_BREAKING = (1, 2, 4)  # of those kinds: signals that a codelet was left by, wherever it was
_OUTSIDE = 5  # the kind after those: an index outside of a field


@dataclass(frozen=True)
class NativeFault:
    """Why a vertex gave up."""

    exception: str  # the Python exception that comes nearest
    text: str
    file: str  # "" where the codelet's own place has to do
    line: int
    worker: int = 0
    site: int = NATIVE_SITE  # another one: a floating-point result that stops the program


@dataclass(frozen=True)
class Call:
    """Which call of a vertex it is: what random bits depend on, and the rules of arithmetic that it is compiled by."""

    tile: int
    vertex: int = 0  # among those of its codelet in the compute set
    phase: int = 0  # compute sets run since loading
    replica: int = 0
    seed: int = 1
    rules: tuple[str, ...] = DEVICE_RULES


def fault_of(values: Sequence[int], worker: int = 0, site: int = NATIVE_SITE) -> NativeFault:
    """A fault by the values that its driver left: kind, text, file, line; addresses stay good until the thread's next fault.

    Drivers written by hand leave values of their own, and a site.
    """
    if site in TRAP_SITES:
        return NativeFault("FloatingPointError", "", "", 0, worker, site)
    if len(values) == 5 and int(values[0]) == _OUTSIDE:
        return _outside(values, worker)
    if len(values) != 4 or not 0 <= int(values[0]) < len(_KINDS):
        shown = ", ".join(map(str, values))
        return NativeFault("RuntimeError", f"the driver gave up{': ' if shown else ''}{shown}", "", 0, worker)
    kind, text, file, line = (int(v) for v in values)
    shown = _string(text)
    if kind == 1 and "zero" in shown:
        return NativeFault("ZeroDivisionError", shown, "", 0, worker)
    if kind == 1 and "stack" in shown:
        return NativeFault("RecursionError", shown, "", 0, worker)
    if kind == 0:
        shown = f"assert({shown}) failed"
    elif kind == 2:
        shown = "compute did not return in the time that one call may take; workers that wait for each other, or a loop without end"
    elif kind == 3:
        shown = f"an exception left compute: {shown}"
    return NativeFault(_KINDS[kind], shown, _string(file), line, worker)


def broke_off(values: Sequence[int]) -> bool:
    """Whether a vertex was left in the middle of anything: its process may hold locks, or memory that is damaged."""
    return len(values) == 4 and int(values[0]) in _BREAKING


def _outside(values: Sequence[int], worker: int) -> NativeFault:
    code, name, count, index = (int(v) for v in values[1:])
    file, line = diagnose.line_of(code) or ("", 0)
    index -= (index >= 1 << 63) << 64
    return NativeFault("IndexError", f"index {_string(name) or 'of a part'}[{index}] is outside its {count} elements", file, line, worker)


def line_of(values: Sequence[int]) -> tuple[str, int] | None:
    """The user's line of what the shadow found: the second of the values that the driver left is where in its code."""
    return diagnose.line_of(int(values[1]))


def line_at(code: int) -> tuple[str, int] | None:
    """The user's line that the code at an address was made of, if it is known."""
    return diagnose.line_of(code) if code else None


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
        self._drivers: dict[tuple[str, ...], Any] = {}

    def _driver(self, rules: tuple[str, ...]) -> Any:
        if rules not in self._drivers:
            self._drivers[rules] = ffi.cast("popcore_driver", self.native.driver(rules))
        return self._drivers[rules]

    def forget(self) -> None:
        """Start over with variables outside of vertices."""
        self.native.unit.forget(0)

    def run(self, arrays: Sequence[Any], call: Call) -> tuple[NativeFault | None, list[tuple[int, str]]]:
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
        fault, prints = self._call(memory, np.array(row + tail, np.int32), call)
        for array, at in places:
            array[...] = memory[at : at + array.nbytes].view(array.dtype).reshape(array.shape)
        return fault, prints

    def _call(self, memory: Array, rows: Array, call: Call) -> tuple[NativeFault | None, list[tuple[int, str]]]:
        aux, buffer = np.zeros(AUX_WORDS, np.uint64), np.zeros(_PRINT_WORDS, np.uint64)
        aux[_BUFFER], aux[_CAPACITY], aux[_PHASE] = buffer.ctypes.data, _PRINT_WORDS, call.phase
        # Variables outside of vertices are kept per memory and tile; all calls use memory 0, so the base makes up for it.
        base, tiles = np.zeros(call.tile + 1, np.int64), np.array([call.tile], np.int32)
        base[call.tile] = memory.ctypes.data
        first, vertex = np.zeros(1, np.int64), np.array([call.vertex], np.int64)
        streams = np.array([call.seed, -call.replica, 1, first.ctypes.data, vertex.ctypes.data], np.int64)
        aux[_STREAMS] = streams.ctypes.data
        words = [ffi.from_buffer(f"{kind}[]", array) for kind, array in (("int64_t", base), ("int32_t", tiles), ("int32_t", rows), ("uint64_t", aux))]
        done = self._driver(call.rules)(ffi.NULL, words[0], words[1], 0, 1, words[2], 1, words[3])
        fault = None
        if done:
            fault = fault_of(aux[_VALUES : _VALUES + min(int(aux[_COUNT]), 8)].tolist(), int(aux[_WORKER]), int(aux[_SITE]))
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
