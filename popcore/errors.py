"""Every error popcore raises on purpose.

::

    PopcoreError
    ├── GraphError                 a call that builds a graph or program was given something wrong
    │   ├── ElementTypeError       an element type that does not exist or does not fit
    │   ├── ShapeError             a shape, index or size that does not fit
    │   ├── TileMappingError       a tile that does not exist, a mapping of the wrong size
    │   ├── UnknownNameError       a codelet, field, handle, device or system that nobody declared
    │   ├── GraphConnectionError       an edge between a tensor and a vertex field that cannot be
    │   ├── ValueRangeError        a value that the element type cannot hold
    │   ├── CodeletError           a codelet that cannot be compiled, with the user's line
    │   └── ControlProgramError    a program that cannot be: a predicate of the wrong shape, recursion
    ├── OptionError                an option that does not exist, or a value it cannot take
    ├── CompileError               the graph cannot become an Executable
    │   ├── VerifyError            several mistakes at once; ``errors`` lists each
    │   ├── UnmappedError          elements that live on no tile
    │   ├── RaceError              two vertices of one compute set meet in one element
    │   └── OutOfTileMemoryError   a tile needs more bytes than its SRAM has
    ├── ExecutableFileError        a file that is no Executable of this version, or a damaged one
    ├── StateFileError             a file that is no state of this engine, or a damaged one
    └── EngineError                something went wrong while running
        ├── StreamError            a stream that is not connected, or connected wrongly
        ├── HostTransferError      a host array that does not fit the tensor it is for
        ├── VertexError            a codelet raised: which vertex, tile and line
        │   ├── FloatingPointVertexError   a result that the floating-point behaviour stops at
        │   ├── VertexCrashError   a C++ codelet ended the process that it ran in
        │   ├── WorkerRaceError    two workers of a vertex meet in one element or word
        │   └── MisalignedAccessError  an access at an address that is no multiple of its size
        ├── UninitialisedReadError a vertex, a branch or the host read what nothing wrote
        ├── FindingsError          a run went on after what its checks found; ``findings`` lists each
        ├── NonFiniteError         a vertex made the first NaN, infinity or saturated half
        ├── ScheduleError          another order of what has none gave another result
        ├── MachineError           a part of the machine failed, see ``popcore.faults``
        │   ├── MemoryParityError  a word of tile memory is not what was written
        │   ├── TileLostError      a tile does not answer
        │   ├── IpuLostError       an IPU does not answer
        │   ├── LinkDownError      an IPU-Link carries nothing
        │   ├── TransferError      less than a whole transfer arrived
        │   └── HostTimeoutError   the host's callback took too long
        └── ProgramError           the program stopped itself (ErrorProgram, AbortOnCondition)

Each message names the user's object, where it was made and the amounts, and ends in ``try: ...``.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any


def near_matches(name: object, known: Iterable[str], otherwise: str) -> str:
    """A hint for a name that is not ``known``: up to three that are spelt like it, else ``otherwise``."""
    near = difflib.get_close_matches(str(name), list(known), n=3, cutoff=0.5)
    return " or ".join(map(repr, near)) or otherwise


class PopcoreError(Exception):
    """Root of every error popcore raises on purpose.

    Args:
        message: What is wrong: the user's object, where it was made, the amounts.
        hint: What to do about it; the message ends in ``try: `` and this.
        facts: Kept as attributes, for tools.
    """

    hint = "see docs/errors.md"

    def __init__(self, message: str, hint: str | None = None, **facts: Any) -> None:
        self.message = message
        self.hint = hint or type(self).hint
        self.__dict__.update(facts)
        super().__init__(f"{message}\ntry: {self.hint}")

    def __reduce__(self) -> tuple[Any, ...]:
        # Subclasses take keyword-only facts, so the default pickling would lose them.
        return _restore, (type(self), self.args, self.__dict__)


def _restore(kind: type[PopcoreError], args: tuple[Any, ...], facts: dict[str, Any]) -> PopcoreError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(facts)
    return error


class GraphError(PopcoreError):
    """A call that builds a graph or a program was given something that cannot be."""

    hint = "check the arguments of the call that the traceback shows"


class ElementTypeError(GraphError):
    """An element type that does not exist, or that does not fit where it was used."""

    hint = "cast with the element type the other side has"


class ShapeError(GraphError):
    """A shape, index or number of elements that does not fit."""

    hint = "compare the shapes in the message; reshape or slice one of them"


class TileMappingError(GraphError):
    """A tile that the target does not have, or a mapping that does not cover what it maps."""

    hint = "use a tile below target.num_tiles"


class UnknownNameError(GraphError):
    """A name that nothing was declared under: a codelet, field, handle, device or system."""

    hint = "check the spelling"


class GraphConnectionError(GraphError):
    """A tensor and a vertex field that cannot be connected, or are connected twice or never."""

    hint = "connect each field once, with the element type and rank it declares"


class ValueRangeError(GraphError):
    """A value that the element type it is for cannot hold."""

    hint = "choose a wider element type or another value"


class CodeletError(GraphError):
    """A codelet that cannot be compiled for a tile. Names the user's file, line and what is not supported."""

    hint = "write the line with loops over scalars and views, which is what a tile can do"


class ControlProgramError(GraphError):
    """A program that cannot be: a predicate of the wrong type or shape, a function that calls itself."""

    hint = "use a BOOL or integer scalar as the predicate"


class OptionError(PopcoreError):
    """An option that does not exist, or a value that it cannot take."""

    hint = "popcore.options() lists the options"


class CompileError(PopcoreError):
    """The graph and its programs cannot become an Executable."""


class VerifyError(CompileError):
    """Several mistakes were found; ``errors`` holds each of them."""

    def __init__(self, errors: Sequence[PopcoreError]) -> None:
        self.errors = tuple(errors)
        shown = "\n".join(f"{i + 1}. {e.message.splitlines()[0]}" for i, e in enumerate(self.errors[:8]))
        more = f"\n... and {len(self.errors) - 8} more" if len(self.errors) > 8 else ""
        super().__init__(f"{len(self.errors)} mistakes in the graph:\n{shown}{more}", self.errors[0].hint)


class UnmappedError(CompileError):
    """Elements of a variable that a program uses live on no tile."""

    hint = "graph.set_tile_mapping(tensor, tile) or poputil.map_tensor_linearly(graph, tensor)"


class RaceError(CompileError):
    """Two edges of one compute set meet in one element, and one of them writes it."""

    hint = "write to separate variables, or use two compute sets"


class OutOfTileMemoryError(CompileError):
    """A tile would have to hold more bytes than its SRAM has.

    Raised by the ``plan_memory`` pass; nothing has been allocated yet.
    To fix it: map the largest variables over more tiles, end a variable's life earlier with
    ``WriteUndef``, or choose a target with larger tiles.
    """

    def __init__(self, *, tile: int, needed: int, available: int, largest: Sequence[tuple[str, int]], region: str = "memory") -> None:
        rows = "\n".join(f"  {size:>12,} B  {name}" for name, size in largest[:4])
        super().__init__(
            f"tile {tile} needs {needed:,} B of {region} and has {available:,} B: {needed - available:,} B too many\n"
            f"largest tenants there:\n{rows}",
            f"map {largest[0][0]!r} over more tiles, or end its life earlier with WriteUndef",
            tile=tile, needed=needed, available=available, largest=tuple(largest), region=region,
        )  # fmt: skip


class ExecutableFileError(PopcoreError):
    """A file that is not an Executable, one of another version, or a damaged one."""

    hint = "compile the graph again and save it"


class StateFileError(PopcoreError):
    """A file that is no state of an engine, one of another version or of another program, or a damaged one. The engine is as it was."""

    hint = "a state that engine.save_state() wrote for the same graph, programs and options"


class EngineError(PopcoreError):
    """Something went wrong while an engine ran; the engine can still be read."""


class StreamError(EngineError):
    """A stream that the program uses is not connected, or a connection that does not fit it."""

    hint = "engine.connect_stream(handle, array_or_callback) before engine.run()"


class HostTransferError(EngineError):
    """A host array does not fit the tensor it is written to or read from."""

    hint = "pass an array with the tensor's shape and element type"


class VertexError(EngineError):
    """A codelet raised an exception. Names the codelet, vertex, tile, compute set, file and line."""

    hint = "run with POPCORE_INTERPRET=1 and a debugger to stop in the codelet"


class FloatingPointVertexError(VertexError, FloatingPointError):
    """A vertex computed what the floating-point behaviour stops at: an invalid result, a division by zero, an overflow.

    ``exception`` is "inv", "div0" or "oflo"; ``values`` are the operands and the result, where they are known.
    """

    hint = "look at the values; set_floating_point_behaviour decides which of these stop a run"


class VertexCrashError(VertexError):
    """A C++ codelet ended the process that it ran in: by exit() or a signal. See the option debug.isolate.

    ``signal`` and ``exit_code`` say how; one of them is None. Variables of C++ codelets outside of their vertices have started over.
    """

    hint = "look at calls that end a process, and at pointers"


class WorkerRaceError(VertexError):
    """Two workers of one MultiVertex meet in one element, or write parts of one word, which is stored as a whole."""

    hint = "let each worker write elements of its own, whole words of 4 bytes; split work by multiples of 4 bytes"


class UninitialisedReadError(EngineError):
    """A vertex, a branch or the host read an element that nothing had written."""

    hint = "write the variable first, or give it an initial value"


class MisalignedAccessError(VertexError):
    """A codelet in C++ accessed memory at an address that is no multiple of the access's size, where a tile stops."""

    hint = "ask for the alignment in the field's type, Vector<float, VectorLayout::ONE_PTR, 8>, or access single elements"


class FindingsError(EngineError):
    """What the checks of a run found that went on to its end: the option ``debug.check.collect``.

    ``findings`` holds an error for each, as the run would have stopped at; ``lost`` says how many more there were.
    """

    hint = "read the first one first: others may follow from it"

    def __init__(self, findings: Sequence[PopcoreError], lost: int = 0) -> None:
        self.findings, self.lost = tuple(findings), lost
        shown = "\n".join(
            f"{i + 1}. [{e.__dict__.get('code', '')}] " + ": ".join(map(str.strip, e.message.splitlines()[:2])) for i, e in enumerate(self.findings[:8])
        )
        more = f"\n... and {len(self.findings) - 8} more, in .findings" if len(self.findings) > 8 else ""
        more += f"\n... and {lost:,} that there was no room for" if lost else ""
        super().__init__(f"the checks found {len(self.findings)}:\n{shown}{more}")


class NonFiniteError(EngineError):
    """A vertex wrote the first NaN, infinity, or half of 65504: the option ``debug.first_nan``. Says what its inputs were."""

    hint = "look at the line, and at the inputs that it names; set_floating_point_behaviour can stop at the operation itself"


class ScheduleError(EngineError):
    """Another order of what has none on a device gave another result: see ``popcore.testing.fuzz_schedules``."""

    hint = "debug.schedule_seed with this seed runs the same order again"


class MachineError(EngineError):
    """A part of the emulated machine failed: a fault that was injected. Names the part and the step of the program."""

    hint = "load the last saved state into an engine without the fault, and run on"


class MemoryParityError(MachineError):
    """A word of tile memory is not what was written there, and was about to be read."""


class TileLostError(MachineError):
    """A tile did not come to a barrier."""


class IpuLostError(MachineError):
    """An IPU did not come to a barrier, or was lost in a collective."""


class LinkDownError(MachineError):
    """A step sends over an IPU-Link that carries nothing. Routes are fixed when a graph is compiled."""


class TransferError(MachineError):
    """Less than a whole transfer to or from a remote buffer arrived."""


class HostTimeoutError(MachineError):
    """The host took longer over a stream's callback than the option target.hostSyncTimeout allows."""

    hint = "answer sooner, or raise the option target.hostSyncTimeout"


class ProgramError(EngineError):
    """The program stopped itself: ErrorProgram, AbortOnCondition."""

    hint = "read the tensor that the message shows"
