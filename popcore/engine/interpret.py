"""Codelets as Python: drivers for the machine that call the interpreter on views of tile memory."""

from __future__ import annotations

import builtins
import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from popcore.codelet import Codelet, Field, NativeCodelet
from popcore.dialect import Lowered, interpret, make_view, rounding
from popcore.dialect.interpret import OPERATIONS
from popcore.engine.counters import counted_codelets
from popcore.engine.device import Arena
from popcore.engine.guarded import Guard, continuing
from popcore.engine.outcome import Finding, vertex_at
from popcore.executable.executable import Executable
from popcore.executable.opcodes import ROW_WORDS
from popcore.kernels import abi
from popcore.kernels.behaviour import DEFAULT, TRAP_SITES, Arithmetic
from popcore.kernels.randomness import key_of_call
from popcore.native import PLAIN, Build, drivers, executed_form
from popcore.types import Array

_DRIVER = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 8)


class Interpreter:
    """Drivers of all codelets of an Executable, with the C interface that compiled ones have. Those in C++ run as they are.

    Args:
        seed: Of stochastic rounding.
        note: ``kernels.findings.note``, for a build that collects.

    Attributes:
        arithmetic: What codelets in Python compute by.
    """

    def __init__(self, executable: Executable, arena: Arena, build: Build = PLAIN, seed: int = 1, note: Callable[[int, int], int] | None = None) -> None:
        self.executable, self.build, self.seed, self.note = executable, build, seed, note
        self.memory, self.address, self.stride = arena.memory, arena.address, arena.stride
        self.tile_base = np.ascontiguousarray(executable.memory.tile_base, np.int64)
        self.tiles = executable.tiles.tolist()
        self.exception: BaseException | None = None
        self.arithmetic = DEFAULT
        self._callbacks: dict[int, Any] = {}
        self._counted = set(counted_codelets(executable))

    def address_of(self, number: int, arithmetic: Arithmetic) -> int:
        """The driver of a codelet of the Executable; it lives as long as this object. One in Python computes by ``self.arithmetic``."""
        codelet = self.executable.codelets[number]
        if isinstance(codelet, NativeCodelet):
            (native,) = drivers([codelet], arithmetic, self.build, {codelet} if number in self._counted else ())
            return native
        if number not in self._callbacks:
            self._callbacks[number] = _DRIVER(_Driver(self, executed_form(codelet, self.build.checks, number in self._counted)))
        return ctypes.cast(self._callbacks[number], ctypes.c_void_p).value or 0

    def key(self, aux: Array, memory: int, position: int, identity: str, worker: int) -> int:
        """The key of a call of ``compute``, as compiled drivers make it."""
        index, tile = vertex_at(self.executable, int(aux[abi.AUX_BATCH]), position)
        replica = (memory - self.address) // self.stride
        return key_of_call(self.seed, identity, int(aux[abi.AUX_PHASE]), replica, tile, int(self.executable.vertex_ids[index]), worker)

    def take_exception(self) -> BaseException | None:
        """The exception that ended the phase, once."""
        taken, self.exception = self.exception, None
        return taken


class _Driver:
    """Calls ``compute`` for each vertex; the ``Context`` of the dialect."""

    def __init__(self, owner: Interpreter, lowered: Lowered) -> None:
        self.owner, self.lowered = owner, lowered
        codelet: Codelet = lowered.codelet
        self.fields = codelet.fields
        self.workers: Sequence[int | None] = range(codelet.workers - 1, -1, -1) if codelet.workers > 1 else (None,)
        self.row_words = sum(ROW_WORDS[field.shape] for field in self.fields)
        full, distance = owner.build.check == "full", owner.executable.shadow.distance
        self.guard = Guard(owner.memory, owner.address, distance, codelet.workers > 1) if full else None
        operations = self.guard.operations() if self.guard is not None else OPERATIONS
        self.compute = interpret(lowered, continuing(operations) if owner.note is not None else operations)
        self.aux: Array = np.zeros(0, np.uint64)
        self.position, self.tile, self.worker, self.spent = 0, 0, 0, 0

    def __call__(self, memory: int, tile_base: int, tiles: int, begin: int, end: int, rows: int, count: int, aux: int) -> int:
        owner = self.owner
        self.aux = _words(aux, abi.AUX_WORDS)
        words = _Table(rows)
        try:
            for k in range(begin, end):
                self.tile = owner.tiles[k]
                base = memory - owner.address + int(owner.tile_base[self.tile])
                for row in range(count):
                    if owner.exception is not None:
                        return 0  # the phase is over
                    self.position = k * count + row
                    views = self._views(words, row * self.row_words, base)
                    taken = 0
                    for worker in self._workers_in_order():
                        self.worker, self.spent = worker or 0, 0
                        if owner.arithmetic.stochastic:
                            rounding.begin(owner.key(self.aux, memory, self.position, self.lowered.identity, self.worker))
                        with rounding.using(owner.arithmetic):
                            self.compute(views, self, worker)
                        taken = max(taken, self.spent)
                    if self.lowered.counted and (first := int(self.aux[abi.AUX_COUNTED])):
                        _words(first + 8 * self.position, 1)[0] = taken
        except BaseException as error:  # a callback cannot let anything through, Ctrl-C neither: the engine raises it
            if owner.exception is None:
                self.aux[abi.AUX_WORKER] = self.worker
                owner.exception = error
            if isinstance(error, rounding.Trap):
                self._tell(TRAP_SITES[error.kind], error.values)
            elif not getattr(error, "_pc_told", False):
                self.aux[abi.AUX_SITE], self.aux[abi.AUX_COUNT] = np.uint64(2**64 - 1), 0  # -1: no site of the codelet
            return self.position + 1
        return 0

    def _workers_in_order(self) -> Sequence[int | None]:
        if not self.owner.build.ordered or len(self.workers) == 1:
            return self.workers
        return [int(self.aux[abi.AUX_ORDER]) >> 4 * i & 15 for i in range(len(self.workers))]

    def _views(self, words: _Table, at: int, base: int) -> dict[str, Any]:
        views = {}
        for field in self.fields:
            shape = field.shape
            if shape == "scalar":
                value: Any = self._array(field, base + words[at], 1)
            elif shape == "vector":
                value = self._array(field, base + words[at], words[at + 1])
            elif shape == "matrix":
                value = self._array(field, base + words[at], words[at + 1] * words[at + 2]).reshape(words[at + 1], words[at + 2])
            else:
                first = words[at]
                value = [self._array(field, base + words[i], words[i + 1]) for i in range(first, first + 2 * words[at + 1], 2)]
            views[field.name] = make_view(field, value)
            at += ROW_WORDS[shape]
        return views

    def _array(self, field: Field, start: int, elements: int) -> Array:
        kind = field.dtype
        dtype = np.dtype(np.uint8) if kind.kind == "quarter" else kind.numpy
        if self.guard is not None:
            self.guard.begin(start, elements * kind.nbytes, field.direction == "out")
        return self.owner.memory[start : start + elements * kind.nbytes].view(dtype)

    def fail(self, site: int, values: Sequence[Any]) -> None:
        """Raise what the codelet raised, with its message."""
        where = self.lowered.sites[site]
        self._tell(site, values)
        kind = getattr(builtins, where.exception, RuntimeError)
        error: BaseException = kind(where.message(values)) if issubclass(kind, Exception) else RuntimeError(where.message(values))
        error._pc_told = True  # type: ignore[attr-defined]  # the site is known
        raise error

    def spend(self, amount: int) -> None:
        """Add to what the call of compute has taken."""
        self.spent += int(amount)

    def _tell(self, site: int, values: Sequence[Any]) -> None:
        aux = self.aux
        aux[abi.AUX_SITE], aux[abi.AUX_COUNT] = np.uint64(site & (2**64 - 1)), len(values)
        aux[abi.AUX_TAGS] = _encode(values, aux[abi.AUX_VALUES : abi.AUX_VALUES + abi.MAX_VALUES])

    def found(self, site: int, finding: Finding, at: int, nbytes: int, other: int = 0, other_site: int = 0) -> None:
        """Keep what the full check found, or end the vertex with it, as a compiled driver does."""
        aux = self.aux
        aux[abi.AUX_SITE], aux[abi.AUX_COUNT] = site, 6
        aux[abi.AUX_TAGS] = abi.TAG_FINDING | sum(abi.TAG_INT << 4 * i for i in range(1, 6))
        aux[abi.AUX_VALUES : abi.AUX_VALUES + 6] = int(finding), 0, other, other_site, self.owner.address + at, nbytes
        if self.owner.note is not None:
            self._note(abi.FINDING_KEYS)
            return
        error = RuntimeError(finding.name)
        error._pc_told = True  # type: ignore[attr-defined]  # the site is known
        raise error

    def outside(self, site: int, values: tuple[int, ...]) -> None:
        """Keep that an index was outside."""
        self._tell(site, values)
        self._note(0)

    def _note(self, keys: int) -> None:
        assert self.owner.note is not None
        self.aux[abi.AUX_POSITION], self.aux[abi.AUX_WORKER] = self.position, self.worker
        self.owner.note(int(self.aux.ctypes.data), keys)

    def print(self, site: int, values: Sequence[Any]) -> None:
        """Leave a print record, as a compiled driver does."""
        aux, length = self.aux, abi.RECORD_VALUES + len(values)
        used = int(aux[abi.AUX_PRINT_USED])
        if not aux[abi.AUX_PRINT_BUFFER] or used + length > int(aux[abi.AUX_PRINT_CAPACITY]):
            aux[abi.AUX_PRINT_LOST] += np.uint64(1)
            return
        record = _words(int(aux[abi.AUX_PRINT_BUFFER]) + 8 * used, length)
        record[abi.RECORD_TAGS] = _encode(values, record[abi.RECORD_VALUES :])
        record[: abi.RECORD_TAGS] = (length, self.position, self.tile, self.worker, site)
        aux[abi.AUX_PRINT_USED] = used + length


class _Table:
    """A batch's table at an address: it has no length, and is read one word at a time."""

    def __init__(self, address: int) -> None:
        self.words = ctypes.cast(address, ctypes.POINTER(ctypes.c_int32))

    def __getitem__(self, index: int) -> int:
        return int(self.words[index])


def _words(address: int, count: int) -> Array:
    words: Array = np.ctypeslib.as_array((ctypes.c_uint64 * count).from_address(address))
    return words


def _encode(values: Sequence[Any], words: Array) -> int:
    """Store values as 64-bit patterns; returns their tags."""
    tags = 0
    for i, value in enumerate(values):
        if isinstance(value, bool | np.bool_):
            tag, word = abi.TAG_BOOL, int(value)
        elif isinstance(value, np.float16 | np.float32 | float):
            tag = abi.TAG_HALF if isinstance(value, np.float16) else abi.TAG_FLOAT
            word = int(np.float32(value).view(np.uint32))
        elif isinstance(value, np.uint64):
            tag, word = abi.TAG_UNSIGNED, int(value)
        else:
            tag, word = abi.TAG_INT, int(value) & (2**64 - 1)
        words[i] = np.uint64(word)
        tags |= tag << (4 * i)
    return tags
