"""Turn what the machine reports (numbers) into what a user reads (names and lines)."""

from __future__ import annotations

from popcore.codelet import NativeCodelet
from popcore.dialect import lower
from popcore.engine.outcome import Fault, PrintRecord
from popcore.errors import VertexError
from popcore.executable import Executable
from popcore.executable.opcodes import Batch
from popcore.program.printing import Place, native_fault, site_exception, vertex_fault


def print_text(executable: Executable, record: PrintRecord) -> str:
    """What a codelet's ``print`` shows."""
    codelet = executable.codelets[executable.batches[record.batch, Batch.CODELET]]
    if isinstance(codelet, NativeCodelet):
        from popcore.bindings import calls

        return calls.print_text(record.values)
    return lower(codelet).sites[record.site].message(record.values)


def vertex_error(executable: Executable, phase: int, fault: Fault) -> VertexError:
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
    if fault.exception is not None:
        if not isinstance(fault.exception, Exception):
            raise fault.exception  # Ctrl-C, or a debugger that was left
        return vertex_fault(place, fault.exception, *_where(fault.exception, codelet.site.file, codelet.site.line))
    if isinstance(codelet, NativeCodelet):
        from popcore.bindings import calls

        return native_fault(place, calls.fault_of(fault.values), codelet.site)
    site = lower(codelet).sites[fault.site]
    return vertex_fault(place, site_exception(site, fault.values), site.file, site.line, fault.values)


def _where(error: BaseException, file: str, line: int) -> tuple[str, int]:
    """The innermost line of the user's file that an exception passed."""
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file:
            line = trace.tb_lineno
        trace = trace.tb_next
    return file, line
