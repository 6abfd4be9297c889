"""Turn what the machine reports (numbers) into what a user reads (names and lines)."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from popcore.codelet import Codelet, NativeCodelet
from popcore.debug import Site
from popcore.dialect import lower
from popcore.engine.device import Arena
from popcore.engine.fields import spans_of
from popcore.engine.outcome import Crash, Fault, Finding, PrintRecord, vertex_at
from popcore.engine.places import Places
from popcore.errors import EngineError, MisalignedAccessError, UninitialisedReadError, VertexCrashError, WorkerRaceError
from popcore.executable import Executable
from popcore.executable.opcodes import Batch, Phase
from popcore.kernels.abi import NO_SITE
from popcore.kernels.behaviour import TRAP_KINDS
from popcore.program.printing import Place, floating_point_fault, native_fault, site_exception, vertex_fault, vertex_line


def print_text(executable: Executable, record: PrintRecord, checks: bool) -> str:
    """What a codelet's ``print`` shows; ``checks`` as its driver was compiled with."""
    codelet = executable.codelets[executable.batches[record.batch, Batch.CODELET]]
    if isinstance(codelet, NativeCodelet):
        from popcore.bindings import calls

        return calls.print_text(record.values)
    return lower(codelet, checks).sites[record.site].message(record.values)


def place_of(executable: Executable, phase: int, codelet: Codelet, vertex: int, tile: int, worker: int, replica: int) -> Place:
    """A vertex as messages name it; ``vertex`` is an index over all vertices."""
    number = int(executable.vertex_ids[vertex])
    shown = worker if codelet.workers > 1 else None
    return Place(codelet.name, number, tile, executable.phase_names[phase], shown, replica if executable.replicas > 1 else None)


def vertex_error(executable: Executable, phase: int, fault: Fault, checks: bool, places: Places, arena: Arena) -> EngineError:
    """The error of a codelet that raised: which vertex, tile, compute set, file and line. Its cause is what was raised."""
    codelet = executable.codelets[fault.codelet]
    place = place_of(executable, phase, codelet, fault.vertex, fault.tile, fault.worker, fault.replica)
    if (kind := TRAP_KINDS.get(fault.site)) is not None:
        where = _where(fault.exception, *codelet.site) if fault.exception is not None else None
        return floating_point_fault(place, kind, fault.values, f"{where[0]}:{where[1]}" if where else "")
    if fault.values and isinstance(fault.values[0], Finding):
        first = int(fault.values[4]) - arena.address - fault.replica * arena.stride
        what, facts = places.describe(phase, first, first + int(fault.values[5]) - 1)
        return _found(place, _sites(codelet, fault, checks), fault.values, what, facts)
    if fault.exception is not None:
        if not isinstance(fault.exception, Exception):
            raise fault.exception  # Ctrl-C, or a debugger that was left
        text = str(fault.exception) if isinstance(fault.exception, IndexError) else ""
        more, facts = _connected(executable, phase, fault, codelet, places, text)
        return vertex_fault(place, fault.exception, *_where(fault.exception, codelet.site.file, codelet.site.line), (), more, facts)
    if isinstance(codelet, NativeCodelet):
        from popcore.bindings import calls

        told = fault.told
        native = calls.NativeFault(told.exception, told.text, told.file, told.line) if told is not None else calls.fault_of(fault.values)
        return native_fault(place, native, codelet.site, *_connected(executable, phase, fault, codelet, places, native.text))
    site = lower(codelet, checks).sites[fault.site]
    cause = site_exception(site, fault.values)
    more, facts = _connected(executable, phase, fault, codelet, places, str(cause) if isinstance(cause, IndexError) else "")
    return vertex_fault(place, cause, site.file, site.line, fault.values, more, facts)


def crash_error(executable: Executable, crash: Crash) -> VertexCrashError:
    """The error of a C++ codelet that ended its process."""
    how: dict[str, Any] = {"signal": crash.signal, "exit_code": crash.exit_code, "values": (), "code": "crashed"}
    if crash.batch < 0:
        return VertexCrashError(f"the process of the C++ codelets {crash.how}, before any vertex began", "look for what ended it outside of popcore", **how)
    batch = executable.batches[crash.batch]
    codelet = executable.codelets[batch[Batch.CODELET]]
    phases = executable.phases
    phase = int(np.flatnonzero((phases[:, Phase.BATCH_BEGIN] <= crash.batch) & (crash.batch < phases[:, Phase.BATCH_END]))[0])
    name, (file, line) = executable.phase_names[phase], codelet.site
    vertex = tile = -1
    shown = f"codelet {codelet.name} (compute set {name!r})"
    rows = int(batch[Batch.ROWS_COUNT])
    inside = range(int(batch[Batch.TILES_BEGIN]) * rows, int(batch[Batch.TILES_BEGIN] + batch[Batch.TILES_COUNT]) * rows)
    # Drivers made by hand do not say which vertex they do.
    if isinstance(codelet, NativeCodelet) and not codelet.native.unit.made_by_hand and crash.position in inside:
        index, tile = vertex_at(executable, crash.batch, crash.position)
        vertex = int(executable.vertex_ids[index])
        shown = vertex_line(Place(codelet.name, vertex, tile, name))
    return VertexCrashError(
        f"{shown}\n  {crash.how}\n  at {file}:{line}",
        codelet=codelet.name, tile=tile, vertex=vertex, compute_set=name, file=file, line=line, **how,
    )  # fmt: skip


def _connected(executable: Executable, phase: int, fault: Fault, codelet: Codelet, places: Places, text: str) -> tuple[str, dict[str, Any]]:
    """What a field is connected to of which a message about an index tells; nothing where that is not known."""
    field = re.match(r"index (?:self\.)?(\w+)", text)
    number = next((i for i, each in enumerate(codelet.fields) if field and each.name == field[1]), -1)
    pieces = [span for span in spans_of(executable, fault.batch, fault.position) if span.field == number and span.elements]
    if len(pieces) != 1 or not places.known:
        return "", {}
    last = pieces[0].start + pieces[0].elements * codelet.fields[number].dtype.nbytes - 1
    what, facts = places.describe(phase, pieces[0].start, last)
    return f"{codelet.fields[number].name} is {what}", facts


def _sites(codelet: Codelet, fault: Fault, checks: bool) -> tuple[Site, Site | None]:
    """The line that a finding is about, and that of the other worker if it is known."""
    other = int(fault.values[3])
    if isinstance(codelet, NativeCodelet):
        if fault.told is not None:
            return Site(fault.told.file, fault.told.line) if fault.told.file else codelet.site, None
        from popcore.bindings import calls

        where = calls.line_at(other)
        return Site(*(calls.line_of(fault.values) or codelet.site)), Site(*where) if where else None
    sites = lower(codelet, checks).sites
    found = sites[other - 1] if 0 < other < NO_SITE else None
    return Site(sites[fault.site].file, sites[fault.site].line), Site(found.file, found.line) if found else None


def _found(place: Place, sites: tuple[Site, Site | None], values: tuple[Any, ...], what: str, facts: dict[str, Any]) -> EngineError:
    """The error of something that the full check found. ``what``: the elements, with their variable."""
    (file, line), other_site = sites
    facts = {
        **facts,
        "codelet": place.codelet, "tile": place.tile, "vertex": place.vertex, "compute_set": place.compute_set, "worker": place.worker,
        "file": file, "line": line,
    }  # fmt: skip
    at = f"  at {file}:{line}"
    if values[0] == Finding.UNDEFINED:
        return UninitialisedReadError(f"{vertex_line(place)}\n  reads {what}, which nothing has written\n{at}", code="uninitialised-read", **facts)
    if values[0] == Finding.MISALIGNED:
        how = f"accesses {values[5]} bytes at {what}, whose address is no multiple of that"
        return MisalignedAccessError(f"{vertex_line(place)}\n  {how}\n{at}", code="misaligned", **facts)
    other = f"worker {values[2] - 1}" if values[2] else "more than one other worker"
    if values[0] == Finding.SHARED_WORD:
        doing, code = f"writes {what}; {other} writes another part of the same 4-byte word", "shared-word"
    else:
        doing, code = f"meets {other} at {what}, which one of them writes", "worker-race"
    facts |= {"other_worker": values[2] - 1, "other_file": other_site.file if other_site else None, "other_line": other_site.line if other_site else None}
    at += f", {other} at {other_site.file}:{other_site.line}" if other_site else ""
    return WorkerRaceError(f"{vertex_line(place)}\n  {doing}\n{at}", code=code, **facts)


def _where(error: BaseException, file: str, line: int) -> tuple[str, int]:
    """The innermost line of the user's file that an exception passed."""
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file:
            line = trace.tb_lineno
        trace = trace.tb_next
    return file, line
