"""Runs a codelet both ways for tests: its native driver on a buffer that stands for tiles, and as Python."""

import ctypes
from dataclasses import dataclass, field
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from popcore.codelet import Codelet, codelet_of
from popcore.dialect import Lowered, interpret, lower, make_view
from popcore.kernels import abi
from popcore.kernels.compile import compile_driver

_DRIVER = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 3, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)


class Failed(Exception):
    """What a codelet raised: exception name, message and worker."""


@dataclass
class Outcome:
    """What a run left: the fields, what failed first (or None), what was printed."""

    fields: dict[str, Any]
    failure: str | None = None
    position: int = -1
    printed: list[str] = field(default_factory=list)


class Driver:
    """A codelet, lowered and compiled and loaded."""

    def __init__(self, cls: Any, dtypes: tuple[Any, ...] = (), checks: bool = False) -> None:
        self.codelet: Codelet = codelet_of(cls, dtypes)
        self.lowered: Lowered = lower(self.codelet, checks)
        self.object = compile_driver(self.lowered, "driver")
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        machine = llvm.Target.from_default_triple().create_target_machine()
        self.engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
        self.engine.add_object_file(llvm.ObjectFileRef.from_data(self.object))
        self.engine.finalize_object()
        self.call = _DRIVER(self.engine.get_function_address("driver"))
        self.run_python = interpret(self.lowered)

    def native(self, *vertices: dict[str, Any], tiles: int = 1, times: int = 1) -> Outcome:
        """Run vertices with these fields, equal on each of ``tiles`` tiles; the fields of the last tile come back."""
        memory, rows, places = self._lay_out(vertices)
        arena = np.concatenate([memory] * tiles)
        bases = np.arange(tiles, dtype=np.int64) * len(memory)
        order = np.arange(tiles, dtype=np.int32)
        block, records = np.zeros(abi.AUX_WORDS, np.uint64), np.zeros(4096, np.uint64)
        block[abi.AUX_PRINT_BUFFER], block[abi.AUX_PRINT_CAPACITY] = records.ctypes.data, len(records)
        code = 0
        for _ in range(times):
            code = self.call(arena.ctypes.data, bases.ctypes.data, order.ctypes.data, 0, tiles, rows.ctypes.data, len(vertices), block.ctypes.data)
        last = arena[(tiles - 1) * len(memory) :]
        found = [{name: _read(last, place) for name, place in each.items()} for each in places]
        outcome = Outcome(found[0] if len(found) == 1 else {str(i): f for i, f in enumerate(found)})
        if code:
            outcome.position = code - 1
            outcome.failure = self._message(int(block[abi.AUX_SITE]), block[2:], int(block[abi.AUX_TAGS]), int(block[abi.AUX_COUNT]))
        used = int(block[abi.AUX_PRINT_USED])
        while used and len(records):
            size = int(records[0])
            if not size:
                break
            outcome.printed.append(self._message(int(records[4]), records[6:], int(records[5]), size - abi.RECORD_VALUES))
            records = records[size:]
        return outcome

    def python(self, **fields: Any) -> Outcome:
        """Run one vertex as Python."""
        kept = {f.name: _copied(f, fields[f.name]) for f in self.codelet.fields}
        outcome = Outcome(kept)
        driver = self

        class Context:
            def fail(self, site: int, values: Any) -> None:
                raise Failed(driver._text(site, values))

            def print(self, site: int, values: Any) -> None:
                outcome.printed.append(driver._text(site, values))

        views = {f.name: make_view(f, kept[f.name]) for f in self.codelet.fields}
        try:
            for worker in reversed(range(self.codelet.workers)):
                self.run_python(views, Context(), worker if self.codelet.workers > 1 else None)
        except Failed as failed:
            outcome.failure = str(failed)
        return outcome

    def agree(self, **fields: Any) -> Outcome:
        """Run one vertex both ways; assert that all bits are equal, and give the outcome."""
        native, python = self.native(fields), self.python(**fields)
        assert native.failure == python.failure
        assert native.printed == python.printed
        for name, value in python.fields.items():
            assert same_bits(native.fields[name], value), f"{name}: {_difference(native.fields[name], value)}"
        return native

    def _text(self, site: int, values: Any) -> str:
        return f"{self.lowered.sites[site].exception}:{self.lowered.sites[site].message(values)}"

    def _message(self, site: int, words: Any, tags: int, count: int) -> str:
        return self._text(site, [decoded(int(words[i]), tags >> 4 * i & 15) for i in range(count)])

    def _lay_out(self, vertices: Any) -> Any:
        memory, rows, pieces, places = bytearray(), [], [], []
        words = sum(abi.ROW_WORDS[f.shape] for f in self.codelet.fields) * len(vertices)

        def place(array: Any) -> tuple[int, Any]:
            memory.extend(bytes(-len(memory) % 8))
            memory.extend(array.tobytes())
            return len(memory) - array.nbytes, array

        for vertex in vertices:
            kept = {}
            for f in self.codelet.fields:
                value = _copied(f, vertex[f.name])
                if f.shape == "list":
                    kept[f.name] = [place(piece) for piece in value]
                    rows += [words + len(pieces), len(value)]
                    for offset, piece in kept[f.name]:
                        pieces += [offset, len(piece)]
                else:
                    kept[f.name] = place(value)
                    rows += [kept[f.name][0], *value.shape]
            places.append(kept)
        memory.extend(bytes(-len(memory) % 64))
        return np.frombuffer(bytes(memory), np.uint8), np.array(rows + pieces, np.int32), places


def _copied(f: Any, value: Any) -> Any:
    dtype = np.uint8 if f.dtype.kind == "quarter" else f.dtype.numpy
    if f.shape == "list":
        return [np.array(v, dtype) for v in value]
    return np.array(value, dtype).reshape(() if f.shape == "scalar" else np.shape(value))


def _read(memory: Any, place: Any) -> Any:
    if isinstance(place, list):
        return [_read(memory, each) for each in place]
    offset, array = place
    return np.frombuffer(memory[offset : offset + array.nbytes].tobytes(), array.dtype).reshape(array.shape)


def same_bits(left: Any, right: Any) -> bool:
    """Whether arrays are equal in every bit, but that any NaN equals any other."""
    if isinstance(left, list):
        return all(same_bits(a, b) for a, b in zip(left, right, strict=True))
    if left.dtype.kind != "f":
        return np.array_equal(left, right)
    both = np.isnan(left) & np.isnan(right)
    whole = f"u{left.dtype.itemsize}"
    return bool(np.all(both | (np.ascontiguousarray(left).view(whole) == np.ascontiguousarray(right).view(whole))))


def _difference(native: Any, python: Any) -> str:
    if isinstance(native, list):
        return f"native {native}, python {python}"
    wrong = np.argwhere((native != python) & ~((native != native) & (python != python)))
    return "; ".join(f"at {tuple(w)} native {native[tuple(w)]!r}, python {python[tuple(w)]!r}" for w in wrong[:4].tolist()) or "signs of zeros"


def decoded(word: int, tag: int) -> Any:
    """A value that a driver passed on."""
    if tag in (abi.TAG_FLOAT, abi.TAG_HALF):
        value = np.uint32(word).view(np.float32)
        return value if tag == abi.TAG_FLOAT else np.float16(value)
    if tag == abi.TAG_INT:
        return word - (1 << 64) if word >> 63 else word
    return bool(word) if tag == abi.TAG_BOOL else np.uint64(word)
