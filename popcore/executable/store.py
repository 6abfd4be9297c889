"""Executables as files: one zip of a msgpack header and NumPy arrays, checksummed. Nothing in it is ever executed.

Codelets are code, so the file holds their names and fingerprints only; whoever loads it passes the classes, or the C++ files.
Built-in codelets are found by name. What was generated of an expression is generated again: the file holds the expression as data.
"""

from __future__ import annotations

import dataclasses
import io
import math
import os
from collections.abc import Iterable, Iterator
from tokenize import TokenError
from typing import Any

import msgspec
import numpy as np

from popcore import archive
from popcore.codelet import Codelet, codelet_of, native_codelet
from popcore.codelets.built_in import BUILT_IN
from popcore.codelets.described import Generated, describe, regenerate
from popcore.errors import CodeletError, ElementTypeError, ExecutableFileError, ValueRangeError
from popcore.executable.check import check_tables
from popcore.executable.executable import CollectiveCall, Costs, Counting, Decision, Executable, Handle, MemoryMap, RemoteBuffer, Shadow, Stream, Yield
from popcore.native import fingerprint
from popcore.target import Target
from popcore.types import Array, ElementType, as_element_type

FORMAT = "popcore executable"
VERSION = 5
_ARRAYS = (
    "code",
    "entries",
    "switches",
    "phases",
    "groups",
    "words",
    "spans",
    "batches",
    "tiles",
    "rows",
    "vertex_ids",
    "initial",
    "initial_bytes",
    "replica_index",
    "collective_spans",
)
_COSTS = ("cycles", "link_bytes", "exchange_bytes", "host_bytes", "remote_bytes", "label", "head", "worker_codelet", "origins", "links")
_MEMORY = ("tile_base", "tile_bytes")
_SHADOW = ("places", "ended")
_COUNTING = ("steps", "vertices", "workers")


class _CodeletRecord(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    types: list[str]
    fingerprint: str
    generated: Generated | None  # what it was made of


class _Header(msgspec.Struct, forbid_unknown_fields=True):
    format: str
    version: int
    target: dict[str, Any]
    options: dict[str, bool | int | float | str]
    loop_slots: int
    call_depth: int
    phase_names: tuple[str, ...]
    codelets: list[_CodeletRecord]
    staging: int
    staging_bytes: int
    arena_bytes: int
    categories: list[str]
    reads: tuple[Handle, ...]
    writes: tuple[Handle, ...]
    streams: tuple[Stream, ...]
    remotes: tuple[RemoteBuffer, ...]
    yields: tuple[Yield, ...]
    streams_of: tuple[tuple[str, ...], ...]
    labels: tuple[str, ...]
    statistics: dict[str, int]
    replicas: int
    collectives: tuple[CollectiveCall, ...]
    decisions: tuple[Decision, ...]
    shadow_distance: int
    shadow_variables: tuple[str, ...]
    digests: dict[str, str]  # blake2b of each array's entry


def save(executable: Executable, path: str | os.PathLike[str]) -> None:
    """Write an Executable to one file, whole or not at all. Equal Executables give equal bytes."""
    with archive.writing(path) as out:
        for name, array in _arrays(executable).items():
            out.put(f"arrays/{name}.npy", _npy(array))
        out.finish(_encoded(_header(executable, out.digests)))


def load(path: str | os.PathLike[str], codelets: Iterable[Any] = ()) -> Executable:
    """Read an Executable that ``save`` wrote.

    Args:
        codelets: The user's Vertex classes that it uses, by which their code is found, generic ones as they are; C++ files as they were
            given to ``add_codelets``, or what ``open_unit`` of them gave where they need flags. Those of popcore's own are found without.

    Raises:
        ExecutableFileError: no such file, another version, or damaged.
        CodeletError: a codelet it uses is not among ``codelets``, or is no longer what it was compiled from.
    """
    with archive.reading(path, "Executable", ExecutableFileError) as file:
        header = _decode_header(path, file.header())
        file.expect(header.digests)
        arrays = {name: _read_array(path, name, file.read(name, digest)) for name, digest in header.digests.items()}
    executable = _assemble(path, header, arrays, _resolve(path, header.codelets, list(codelets)))
    check_tables(executable, os.fspath(path))
    return executable


def fingerprints(executable: Executable) -> dict[str, str]:
    """Digests of the parts of what an Executable does: equal for the same graph and programs, wherever in their files they were made."""
    header = _header(executable, {name: archive.digest(_npy(array)) for name, array in _arrays(executable).items()})
    kept = {"category", "memory", "initial", "initial_bytes", "replica_index"}
    layout = {name: digest for name, digest in header.digests.items() if name.split(".")[0] in kept}
    program = msgspec.structs.replace(
        header,
        target={}, options={}, statistics={}, codelets=[], remotes=(), shadow_variables=(),
        yields=tuple(dataclasses.replace(each, site="", title="") for each in header.yields),
        decisions=tuple(dataclasses.replace(each, where="", ways=()) for each in header.decisions),
    )  # fmt: skip
    encode = msgspec.msgpack.Encoder(enc_hook=_encode, order="sorted").encode
    parts = {
        "target": (header.target, header.replicas),
        "codelets": [(each.name, each.fingerprint) for each in header.codelets],
        "memory": (layout, header.arena_bytes, header.staging, header.staging_bytes, header.shadow_distance),
        "remote buffers": header.remotes,
        "streams": header.streams,
        "program": program,
    }
    return {name: archive.digest(encode(part)) for name, part in parts.items()}


def _arrays(executable: Executable) -> dict[str, Array]:
    made = {name: getattr(executable, name) for name in _ARRAYS}
    made |= {f"costs.{name}": getattr(executable.costs, name) for name in _COSTS}
    made |= {f"memory.{name}": getattr(executable.memory, name) for name in _MEMORY}
    made |= {f"shadow.{name}": getattr(executable.shadow, name) for name in _SHADOW}
    made |= {f"counting.{name}": getattr(executable.counting, name) for name in _COUNTING}
    return made | {f"category.{i}": array for i, array in enumerate(executable.memory.by_category.values())}


def _npy(array: Array) -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array(out, np.ascontiguousarray(array), allow_pickle=False)
    return out.getvalue()


def _encoded(header: _Header) -> bytes:
    return msgspec.msgpack.Encoder(enc_hook=_encode).encode(header)


def _encode(value: Any) -> Any:
    if isinstance(value, ElementType):
        return value.poplar_name
    raise NotImplementedError(f"{type(value).__name__} in the header of an Executable")


def _decode(kind: type, value: Any) -> Any:
    if kind is ElementType and isinstance(value, str):
        return as_element_type(value)
    raise NotImplementedError(f"{kind} in the header of an Executable")


def _header(executable: Executable, digests: dict[str, str]) -> _Header:
    memory = executable.memory
    return _Header(
        format=FORMAT,
        version=VERSION,
        target=executable.target.to_dict(),
        options=dict(executable.options),
        loop_slots=executable.loop_slots,
        call_depth=executable.call_depth,
        phase_names=executable.phase_names,
        codelets=[_CodeletRecord(c.name, [t.poplar_name for _, t in c.types], fingerprint(c), describe(c.cls)) for c in executable.codelets],
        staging=memory.staging,
        staging_bytes=memory.staging_bytes,
        arena_bytes=memory.arena_bytes,
        categories=list(memory.by_category),
        reads=executable.reads,
        writes=executable.writes,
        streams=executable.streams,
        remotes=executable.remotes,
        yields=executable.yields,
        streams_of=executable.streams_of,
        labels=executable.costs.labels,
        statistics=executable.statistics,
        replicas=executable.replicas,
        collectives=executable.collectives,
        decisions=executable.decisions,
        shadow_distance=executable.shadow.distance,
        shadow_variables=executable.shadow.variables,
        digests=digests,
    )


def _decode_header(path: Any, encoded: bytes) -> _Header:
    try:
        plain = msgspec.msgpack.decode(encoded)
        if not isinstance(plain, dict) or plain.get("format") != FORMAT:
            raise ExecutableFileError(f"{os.fspath(path)!r} is no popcore Executable")
        if plain.get("version") != VERSION:
            raise ExecutableFileError(f"{os.fspath(path)!r} has format version {plain.get('version')}, this popcore reads version {VERSION}")
        return msgspec.convert(plain, _Header, dec_hook=_decode)
    except (msgspec.MsgspecError, NotImplementedError, ElementTypeError) as error:
        raise ExecutableFileError(f"{os.fspath(path)!r} has a damaged header: {error}") from error


def _read_array(path: Any, entry: str, content: bytes) -> Array:
    """The array of an entry. Nothing is allocated before its length is known to be what its header says."""
    file = io.BytesIO(content)
    try:
        if np.lib.format.read_magic(file) != (1, 0):
            raise ValueError("it is of a later format")
        shape, by_columns, dtype = np.lib.format.read_array_header_1_0(file)
        if by_columns or dtype.hasobject or math.prod(shape) * dtype.itemsize != len(content) - file.tell() or min(shape, default=0) < 0:
            raise ValueError("it does not have the length that its header says")
        array: Array = np.frombuffer(content, dtype, offset=file.tell()).reshape(shape)
    except (ValueError, TypeError, SyntaxError, MemoryError, TokenError) as error:  # the last four: of a header that is no Python literal
        raise ExecutableFileError(f"{os.fspath(path)!r} is damaged: {entry}: {error}") from error
    return array


def _resolve(path: Any, records: list[_CodeletRecord], given: list[Any]) -> tuple[Codelet, ...]:
    units = [_unit(each) for each in given if not hasattr(each, "__name__")]
    classes = {c.__name__: c for c in given if hasattr(c, "__name__")}
    found: list[Codelet] = []
    for record in records:
        try:
            candidates = list(_candidates(path, record, classes, units))
        except ElementTypeError as error:
            raise ExecutableFileError(f"{os.fspath(path)!r} is damaged: codelet {record.name!r}: {error.message}") from error
        if not candidates:
            plain = record.name.split("<")[0]
            raise CodeletError(
                f"{os.fspath(path)!r} uses codelet {record.name!r}, and no class of that name was passed", f"Executable.load(path, codelets=[{plain}, ...])"
            )
        codelet = next((c for c in candidates if c.name == record.name and fingerprint(c) == record.fingerprint), None)
        if codelet is None:
            raise CodeletError(
                f"{os.fspath(path)!r} was compiled with another codelet {record.name!r} than the one at {candidates[0].site}",
                "compile the graph again, or pass the class as it was",
            )
        found.append(codelet)
    return tuple(found)


def _candidates(path: Any, record: _CodeletRecord, classes: dict[str, Any], units: list[Any]) -> Iterator[Codelet]:
    """What may be the codelet of a record; at most one is, by its fingerprint."""
    yield from (native_codelet(made) for unit in units if (made := unit.find(record.name)) is not None)
    plain, dtypes = record.name.split("<")[0], tuple(as_element_type(t) for t in record.types)
    if record.generated is not None:
        try:
            yield codelet_of(regenerate(record.generated), dtypes)
        except CodeletError as error:
            raise ExecutableFileError(f"{os.fspath(path)!r} has a damaged description of codelet {record.name!r}: {error.message}") from error
    else:
        yield from (codelet_of(known[plain], dtypes) for known in (classes, BUILT_IN) if plain in known)


def _unit(given: Any) -> Any:
    from popcore.bindings.unit import Unit, open_unit  # most Executables have no C++

    return given if isinstance(given, Unit) else open_unit(given)


def _assemble(path: Any, header: _Header, entries: dict[str, Array], codelets: tuple[Codelet, ...]) -> Executable:
    arrays = {name.removeprefix("arrays/").removesuffix(".npy"): array for name, array in entries.items()}
    parts = (("costs", _COSTS), ("memory", _MEMORY), ("shadow", _SHADOW), ("counting", _COUNTING), ("category", range(len(header.categories))))
    wanted = {*_ARRAYS, *(f"{part}.{name}" for part, names in parts for name in names)}
    if missing := sorted(wanted - set(arrays)):
        raise ExecutableFileError(f"{os.fspath(path)!r} is damaged: it has no {missing[0]}")
    try:
        target = Target.from_dict(header.target)
    except ValueRangeError as error:
        raise ExecutableFileError(f"{os.fspath(path)!r} is damaged: {error.message}") from error
    categories = {name: arrays[f"category.{i}"] for i, name in enumerate(header.categories)}
    return Executable(
        target=target,
        options=dict(header.options),
        loop_slots=header.loop_slots,
        call_depth=header.call_depth,
        phase_names=header.phase_names,
        codelets=codelets,
        memory=MemoryMap(arrays["memory.tile_base"], arrays["memory.tile_bytes"], header.staging, header.staging_bytes, header.arena_bytes, categories),
        reads=header.reads,
        writes=header.writes,
        streams=header.streams,
        remotes=header.remotes,
        yields=header.yields,
        streams_of=header.streams_of,
        costs=Costs(labels=header.labels, **{name: arrays[f"costs.{name}"] for name in _COSTS}),
        statistics=header.statistics,
        replicas=header.replicas,
        collectives=header.collectives,
        decisions=header.decisions,
        shadow=Shadow(header.shadow_distance, header.shadow_variables, **{name: arrays[f"shadow.{name}"] for name in _SHADOW}),
        counting=Counting(**{name: arrays[f"counting.{name}"] for name in _COUNTING}),
        **{name: arrays[name] for name in _ARRAYS},
    )
