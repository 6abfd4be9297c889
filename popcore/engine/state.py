"""The state of an engine as a file: all that a run changes and the next one sees, so that another process goes on bit for bit.

One zip (``popcore.archive``): a msgpack header, and raw bytes of memory. Of memory only pages that are not zero are written, from where
they lie to the file; a file is read through and checked before anything of the engine changes.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec
import numpy as np

from popcore import archive
from popcore.engine.statics import Statics, check_statics, place_statics
from popcore.engine.stepping import Parts
from popcore.errors import PopcoreError, StateFileError
from popcore.kernels.behaviour import ALL
from popcore.pages import Pages
from popcore.program.streams import Position
from popcore.types import Array

FORMAT = "popcore state"
VERSION = 1
DECIDING = ("prng.seed", "target.floatingPoint")
"""Options on which results depend: a state goes on under the same ones only."""

_BLOCK = 16 << 20  # bytes that are looked at at a time
_LIMIT = 1 << 48


class _Stream(msgspec.Struct, forbid_unknown_fields=True):
    handle: str
    replicas: tuple[int, ...]
    elements: int
    cursor: int


class _Header(msgspec.Struct, forbid_unknown_fields=True):
    format: str
    version: int
    executable: dict[str, str]  # digests of its parts
    options: dict[str, bool | int | float | str]
    behaviour: int
    compute_sets: int  # run since loading
    runs: int
    areas: dict[str, int]  # of memory, with their bytes
    streams: list[_Stream]
    statics: list[Statics]
    digests: dict[str, str]  # of each entry


@dataclass(frozen=True)
class Machine:
    """What a state is of. ``counts``: executions of each instruction."""

    parts: Parts
    fingerprints: dict[str, str]
    counts: Array

    def areas(self) -> dict[str, Pages]:
        """All memory, by the names of its entries."""
        return {"tiles": self.parts.arena.pages, **{f"remote{i}": rows.pages for i, rows in enumerate(self.parts.host.remotes.values())}}

    def counters(self) -> dict[str, Array]:
        counted = self.parts.image.counters
        return {"counts": self.counts, "waited": self.parts.waited, "taken": counted.taken, "totals": counted.totals}


def save(machine: Machine, runs: int, path: str | os.PathLike[str]) -> None:
    """Write a state, whole or not at all.

    Raises:
        OSError: the file cannot be written.
        EngineError: C++ codelets keep addresses in variables outside of vertices.
    """
    positions = machine.parts.host.streams.positions()
    with archive.writing(path) as out:
        for name, pages in machine.areas().items():
            ranges: list[tuple[int, int]] = []
            with out.stream(f"{name}/bytes") as append:
                for start, content in _not_zero(pages):
                    append(content)
                    ranges.append((start, len(content)))
            out.put(f"{name}/ranges", np.array(ranges, "<i8").tobytes())
        for name, counters in machine.counters().items():
            out.put(name, counters.astype("<i8").tobytes())
        for i, position in enumerate(positions):
            out.put(f"stream{i}", position.data)
        kept = machine.parts.image.statics()
        for i, each in enumerate(kept):
            out.put(f"statics{i}", each.values)
        header = _Header(
            format=FORMAT,
            version=VERSION,
            executable=machine.fingerprints,
            options={name: machine.parts.options[name] for name in DECIDING},
            behaviour=machine.parts.host.behaviour,
            compute_sets=machine.parts.image.sequence,
            runs=runs,
            areas={name: pages.memory.size for name, pages in machine.areas().items()},
            streams=[_Stream(p.handle, p.replicas, p.elements, p.cursor) for p in positions],
            statics=[each.what for each in kept],
            digests=out.digests,
        )
        out.finish(msgspec.msgpack.encode(header))


def load(machine: Machine, path: str | os.PathLike[str]) -> int:
    """Bring a machine into the state of a file; where that is refused the machine is as it was.

    Returns: the runs of the state.

    Raises:
        StateFileError: no such file, damaged, of another version, or the state of something else; what differs is named.
        StreamError: something else is connected than when the state was saved.
    """
    shown = os.fspath(path)
    with archive.reading(path, "state of an engine", StateFileError) as file:
        header = _decode(shown, file.header())
        file.expect(header.digests)
        _check_same(shown, header, machine)
        ranges = {name: _check_area(shown, file, header, name, pages) for name, pages in machine.areas().items()}
        counters = {name: _numbers(shown, file, header, array.shape, name) for name, array in machine.counters().items()}
        positions = _positions(shown, file, header, machine)
        statics = check_statics(shown, machine.parts.executable, header.statics, lambda name, most: file.read(name, _digest(shown, header, name), most))
        try:
            for name, pages in machine.areas().items():
                pages.clear()
                file.pieces(f"{name}/bytes", (pages.memory[start : start + nbytes].data for start, nbytes in ranges[name].tolist()))
        except BaseException as error:  # it was read before, so the disk has failed, or somebody writes to the file
            for pages in machine.areas().values():
                pages.clear()
            raise _damaged(shown, "it cannot be read any more; the engine has lost its data, load() starts over") from error
    machine.parts.image.forget()
    place_statics(machine.parts.executable, machine.parts.image.memories(), statics)
    for name, array in machine.counters().items():
        array[...] = counters[name]
    machine.parts.host.streams.resume(positions)
    machine.parts.host.behaviour = header.behaviour
    machine.parts.image.behave(header.behaviour)
    machine.parts.image.sequence = header.compute_sets
    return header.runs


def _not_zero(pages: Pages) -> Iterator[tuple[int, memoryview]]:
    """First byte and content of runs of pages that are not all zero."""
    for first, last in pages.used():
        for start in range(first, last, _BLOCK):
            block = pages.memory[start : min(start + _BLOCK, last)]
            whole = len(block) // mmap.PAGESIZE * mmap.PAGESIZE
            held = block[:whole].view(np.uint64).reshape(-1, mmap.PAGESIZE // 8).any(axis=1)
            held = np.append(held, block[whole:].any())
            for begin, end in np.flatnonzero(np.diff(held, prepend=False, append=False)).reshape(-1, 2).tolist():
                content = block[begin * mmap.PAGESIZE : end * mmap.PAGESIZE]
                yield start + begin * mmap.PAGESIZE, content.data


def _decode(shown: str, encoded: bytes) -> _Header:
    try:
        plain = msgspec.msgpack.decode(encoded)
        if not isinstance(plain, dict) or plain.get("format") != FORMAT:
            raise StateFileError(f"{shown!r} is no state of an engine")
        if plain.get("version") != VERSION:
            raise StateFileError(f"{shown!r} has format version {plain.get('version')}, this popcore reads version {VERSION}")
        return msgspec.convert(plain, _Header)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise StateFileError(f"{shown!r} has a damaged header: {error}") from error


def _check_same(shown: str, header: _Header, machine: Machine) -> None:
    """That the state is of this machine, and has numbers that can be."""
    if header.executable != machine.fingerprints:
        names = [name for name, digest in machine.fingerprints.items() if header.executable.get(name) != digest]
        raise StateFileError(f"{shown!r} is the state of another program: its {' and '.join(names)} differ{'s' * (len(names) == 1)} from this engine's")
    for name in DECIDING:
        if header.options.get(name) != machine.parts.options[name]:
            theirs = header.options.get(name)
            raise StateFileError(
                f"{shown!r} was saved with the option {name}={theirs!r}, this engine has {machine.parts.options[name]!r}", f"options={{{name!r}: {theirs!r}}}"
            )
    if header.areas != {name: pages.memory.size for name, pages in machine.areas().items()}:
        raise _damaged(shown, "its memory is not that of the program")
    if header.behaviour & ~ALL or not 0 <= header.compute_sets < _LIMIT or not 0 <= header.runs < _LIMIT:
        raise _damaged(shown, "it has absurd numbers")


def _digest(shown: str, header: _Header, name: str) -> str:
    if name not in header.digests:
        raise _damaged(shown, f"it has no {name}")
    return header.digests[name]


def _check_area(shown: str, file: archive.Reader, header: _Header, name: str, pages: Pages) -> Array:
    """int64[k, 2]: first byte and bytes of each range of an area. Its content was read through."""
    content = file.read(f"{name}/ranges", _digest(shown, header, f"{name}/ranges"), 16 * (pages.memory.size // mmap.PAGESIZE + 2))
    if len(content) % 16:
        raise _damaged(shown, f"{name}/ranges is no table")
    ranges = np.frombuffer(content, "<i8").reshape(-1, 2)
    start, nbytes = ranges[:, 0], ranges[:, 1]
    small = bool(((ranges >= 0) & (ranges < _LIMIT)).all())
    if not small or (nbytes == 0).any() or (start[1:] < (start + nbytes)[:-1]).any() or int((start + nbytes).max(initial=0)) > pages.memory.size:
        raise _damaged(shown, f"{name}/ranges leave the memory")
    if file.length(f"{name}/bytes") != int(nbytes.sum()):
        raise _damaged(shown, f"{name}/bytes has not as many as its ranges")
    file.verify(f"{name}/bytes", _digest(shown, header, f"{name}/bytes"))
    return ranges


def _numbers(shown: str, file: archive.Reader, header: _Header, shape: tuple[int, ...], name: str) -> Array:
    nbytes = 8 * int(np.prod(shape))
    content = file.read(name, _digest(shown, header, name), nbytes)
    if len(content) != nbytes:
        raise _damaged(shown, f"{name} are not those of the program")
    found: Array = np.frombuffer(content, "<i8").reshape(shape)
    if (found < 0).any() or (found >= _LIMIT).any():
        raise _damaged(shown, f"{name} are absurd")
    return found


def _positions(shown: str, file: archive.Reader, header: _Header, machine: Machine) -> list[Position]:
    known, replicas = {s.name for s in machine.parts.executable.streams}, machine.parts.executable.replicas
    places = [(s.handle, replica) for s in header.streams for replica in s.replicas]
    if len(set(places)) < len(places) or any(handle not in known or replica not in range(replicas) for handle, replica in places):
        raise _damaged(shown, "it has streams that the program has not")
    found = [
        Position(s.handle, s.replicas, s.elements, s.cursor, file.read(f"stream{i}", _digest(shown, header, f"stream{i}")))
        for i, s in enumerate(header.streams)
    ]
    machine.parts.host.streams.check_positions(found)
    return found


def _damaged(shown: str, what: str) -> PopcoreError:
    return StateFileError(f"{shown!r} is damaged: {what}")
