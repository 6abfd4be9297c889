"""Turn what the machine reports (numbers) into what a user reads (names and lines)."""

from __future__ import annotations

import builtins

from popcore.dialect import lower
from popcore.engine.outcome import Fault, PrintRecord
from popcore.errors import VertexError
from popcore.executable import Executable
from popcore.executable.opcodes import Batch


def print_text(executable: Executable, record: PrintRecord) -> str:
    """What a codelet's ``print`` shows."""
    codelet = executable.codelets[executable.batches[record.batch, Batch.CODELET]]
    return lower(codelet).sites[record.site].message(record.values)


def vertex_error(executable: Executable, phase: int, fault: Fault) -> VertexError:
    """The error of a codelet that raised: which vertex, tile, compute set, file and line. Its cause is what was raised."""
    codelet = executable.codelets[fault.codelet]
    row = fault.position % max(int(executable.batches[fault.batch, Batch.ROWS_COUNT]), 1)
    if fault.exception is not None:
        cause, (file, line) = fault.exception, _where(fault.exception, codelet.site.file, codelet.site.line)
        text = str(cause)
    else:
        site = lower(codelet).sites[fault.site]
        file, line, text = site.file, site.line, site.message(fault.values)
        cause = getattr(builtins, site.exception, RuntimeError)(text)
    worker = f", worker {fault.worker}" if codelet.workers > 1 else ""
    where = executable.phase_names[phase]
    error = VertexError(
        f"{type(cause).__name__}{': ' if text else ''}{text}\n"
        f"  raised by codelet {codelet.name} at {file}:{line}\n"
        f"  its vertex {row} on tile {fault.tile}{worker}, in compute set {where!r}",
        codelet=codelet.name, tile=fault.tile, vertex=row, compute_set=where, file=file, line=line, values=fault.values,
    )  # fmt: skip
    error.__cause__ = cause
    return error


def _where(error: BaseException, file: str, line: int) -> tuple[str, int]:
    """The innermost line of the user's file that an exception passed."""
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file:
            line = trace.tb_lineno
        trace = trace.tb_next
    return file, line
