"""Turn what the machine reports (numbers) into what a user reads (names and lines)."""

from __future__ import annotations

from typing import Any

import numpy as np

from popcore.codelet import Codelet, NativeCodelet
from popcore.debug import Site
from popcore.dialect import lower
from popcore.engine.device import Arena
from popcore.engine.outcome import Crash, Fault, Finding, PrintRecord, vertex_at
from popcore.engine.shadow import ShadowMemory
from popcore.errors import EngineError, UninitialisedReadError, VertexCrashError, WorkerRaceError
from popcore.executable import Executable
from popcore.executable.opcodes import Batch, Phase
from popcore.kernels.behaviour import TRAP_KINDS
from popcore.program.printing import Place, floating_point_fault, native_fault, site_exception, vertex_fault, vertex_line


def print_text(executable: Executable, record: PrintRecord, check: str) -> str:
    """What a codelet's ``print`` shows; ``check`` as its driver was compiled with."""
    codelet = executable.codelets[executable.batches[record.batch, Batch.CODELET]]
    if isinstance(codelet, NativeCodelet):
        from popcore.bindings import calls

        return calls.print_text(record.values)
    return lower(codelet, check != "off").sites[record.site].message(record.values)


def vertex_error(executable: Executable, phase: int, fault: Fault, check: str, shadow: ShadowMemory | None, arena: Arena) -> EngineError:
    """The error of a codelet that raised: which vertex, tile, compute set, file and line. Its cause is what was raised."""
    codelet = executable.codelets[fault.codelet]
    vertex = int(executable.vertex_ids[fault.vertex])
    place = Place(
        codelet.name,
        vertex,
        fault.tile,
        executable.phase_names[phase],
        fault.worker if codelet.workers > 1 else None,
        fault.replica if executable.replicas > 1 else None,
    )
    if (kind := TRAP_KINDS.get(fault.site)) is not None:
        where = _where(fault.exception, *codelet.site) if fault.exception is not None else None
        return floating_point_fault(place, kind, fault.values, f"{where[0]}:{where[1]}" if where else "")
    if shadow is not None and fault.values and isinstance(fault.values[0], Finding):
        at = int(fault.values[1]) - arena.address - fault.replica * arena.stride
        return _found(place, _site(codelet, fault, check), fault.values, shadow.describe(phase, at))
    if fault.exception is not None:
        if not isinstance(fault.exception, Exception):
            raise fault.exception  # Ctrl-C, or a debugger that was left
        return vertex_fault(place, fault.exception, *_where(fault.exception, codelet.site.file, codelet.site.line))
    if isinstance(codelet, NativeCodelet):
        from popcore.bindings import calls

        told = fault.told
        native = calls.NativeFault(told.exception, told.text, told.file, told.line) if told is not None else calls.fault_of(fault.values)
        return native_fault(place, native, codelet.site)
    site = lower(codelet, check != "off").sites[fault.site]
    return vertex_fault(place, site_exception(site, fault.values), site.file, site.line, fault.values)


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


def _site(codelet: Codelet, fault: Fault, check: str) -> Site:
    """The line that a finding is about."""
    if isinstance(codelet, NativeCodelet):
        if fault.told is not None:
            return Site(fault.told.file, fault.told.line) if fault.told.file else codelet.site
        from popcore.bindings import calls

        return Site(*(calls.line_of(fault.values) or codelet.site))
    site = lower(codelet, check != "off").sites[fault.site]
    return Site(site.file, site.line)


def _found(place: Place, site: Site, values: tuple[Any, ...], what: str) -> EngineError:
    """The error of something that the full check found. ``what``: the element, with its variable."""
    facts: dict[str, Any] = {
        "codelet": place.codelet,
        "tile": place.tile,
        "vertex": place.vertex,
        "compute_set": place.compute_set,
        "file": site.file,
        "line": site.line,
    }
    at = f"  at {site.file}:{site.line}"
    if values[0] == Finding.UNDEFINED:
        return UninitialisedReadError(f"{vertex_line(place)}\n  reads {what}, which nothing has written\n{at}", code="uninitialised-read", **facts)
    other = f"worker {values[3] - 1}" if values[3] else "more than one other worker"
    if values[0] == Finding.SHARED_WORD:
        doing, code = f"writes {what}; {other} writes another part of the same 4-byte word", "shared-word"
    else:
        doing, code = f"meets {other} at {what}, which one of them writes", "worker-race"
    return WorkerRaceError(f"{vertex_line(place)}\n  {doing}\n{at}", code=code, other_worker=values[3] - 1, **facts)


def _where(error: BaseException, file: str, line: int) -> tuple[str, int]:
    """The innermost line of the user's file that an exception passed."""
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file:
            line = trace.tb_lineno
        trace = trace.tb_next
    return file, line
