"""How tensors, codelet prints and aborts look on the host. Every engine uses these, so that they agree to the letter."""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from popcore.debug import Site
from popcore.dialect.lowered import FaultSite
from popcore.errors import FloatingPointVertexError, ProgramError, VertexError
from popcore.kernels.behaviour import ALL, DIV0, INV, OFLO
from popcore.types import Array

if TYPE_CHECKING:
    from popcore.bindings.calls import NativeFault

_SUMMARISE_ABOVE = 1000
_EDGE = 3


def format_tensor(values: Array) -> str:
    """``values`` as a nested bracketed list; above 1,000 elements only 3 at each end of a dimension are shown.

    Floats are written with as many digits as tell them from their neighbours. NumPy's own print options have no say.
    """
    with np.printoptions(sign="-", floatmode="unique", suppress=False, nanstr="nan", infstr="inf", formatter=None, legacy=False):
        return np.array2string(values, separator=", ", threshold=_SUMMARISE_ABOVE, edgeitems=_EDGE, max_line_width=100, precision=None)


def print_tensor(title: str, values: Array, replica: int | None = None) -> str:
    """What PrintTensor prints, ending in a newline: a title line, then the values.

    ``replica`` is given where a graph is replicated; each replica prints its own.
    """
    where = "" if replica is None else f" (replica {replica})"
    return f"{title}{where}:\n{format_tensor(values)}\n"


def print_line(ipu: int, tile: int, worker: int, text: str) -> str:
    """What a codelet's print shows, ending in a newline; ``tile`` counts within its IPU."""
    return f"[{ipu}.{tile}.{worker}] {text}\n"


def stopped(message: str, site: str, values: Array | None = None) -> ProgramError:
    """The error of ErrorProgram, Abort and AbortOnCondition.

    Args:
        site: The user's line that made the program.
        values: The tensor to show.
    """
    shown = "" if values is None else f"\n{format_tensor(values)}"
    return ProgramError(f"the program stopped itself at {site}: {message or 'no message'}{shown}", "look at what leads to that line", values=values)


def parted(where: str, values: Sequence[Any], ways: Sequence[tuple[int | None, str]] = ()) -> ProgramError:
    """The error where a scalar that decides where the program goes is not the same on all replicas.

    Args:
        values: One of each replica.
        ways: ``parting.ways_of`` the program that tests it.
    """
    other = [replica for replica, value in enumerate(values) if value != values[0]]
    shown = ", ".join(f"{values[replica]!r} on replica {replica}" for replica in (0, *other[:4]))
    more = f" and {len(other) - 4} more" if len(other) > 4 else ""
    return ProgramError(
        f"replicas would part ways at {where}: it is {shown}{more}{_who_waits(values, dict(ways))}",
        "make it equal on all replicas, as an all-reduce does", values=tuple(values),
    )  # fmt: skip


def _who_waits(values: Sequence[Any], ways: dict[int | None, str]) -> str:
    """Which replicas would wait where for which others; nothing where all ways are free of meetings."""
    groups: dict[str, list[int]] = {}
    for replica, value in enumerate(values):
        groups.setdefault(ways.get(int(value), ways.get(None, "")), []).append(replica)
    lines = [
        f"\n  {_replicas(group)} would wait at {place} for {_replicas([r for r in range(len(values)) if r not in group])}"
        for place, group in groups.items() if place
    ]  # fmt: skip
    free = f"\n  {_replicas(groups[''])} would meet nobody there" if lines and "" in groups else ""
    return "".join(lines[:4]) + (f"\n  ... and {len(lines) - 4} more" if len(lines) > 4 else "") + free


def _replicas(which: Sequence[int]) -> str:
    shown = ", ".join(map(str, which[:4])) + (f" and {len(which) - 4} more" if len(which) > 4 else "")
    return f"replica{'s' * (len(which) > 1)} {shown}"


def unequal(where: str, values: Sequence[Array]) -> ProgramError | None:
    """The error where a promise that all replicas hold the same does not hold; None where it does."""
    other = [replica for replica, value in enumerate(values) if value.tobytes() != values[0].tobytes()]
    if not other:
        return None
    return ProgramError(f"{where}: replica{'s' * (len(other) > 1)} {str(other[:8])[1:-1]} and replica 0", "make it equal on all replicas first")


def behaviour_of(states: Array, where: str) -> int:
    """The machine's floating-point state that a tensor asks for.

    Raises: ProgramError where tiles, or replicas, would differ, or a word is no state.
    """
    found = np.unique(states)
    if len(found) != 1 or int(found[0]) & ~ALL:
        shown = ", ".join(hex(word) for word in found[:4].tolist())
        raise ProgramError(f"the floating-point behaviour at {where} would be {shown}", "one state for all tiles, as get_and_modify_... gave it")
    return int(found[0])


@dataclass(frozen=True)
class Place:
    """A vertex as messages name it."""

    codelet: str
    vertex: int  # among those of its codelet in the compute set, as they were added
    tile: int
    compute_set: str
    worker: int | None = None  # of a MultiVertex
    replica: int | None = None  # where there are several

    @property
    def more(self) -> str:
        worker = "" if self.worker is None else f", worker {self.worker}"
        return worker if self.replica is None else f"{worker}, replica {self.replica}"


def vertex_line(place: Place) -> str:
    """The first line of a message about a vertex."""
    worker = "" if place.worker is None else f", worker {place.worker}"
    worker += "" if place.replica is None else f", replica {place.replica}"
    return f"codelet {place.codelet} (vertex {place.vertex} on tile {place.tile}{worker}, compute set {place.compute_set!r})"


_CODES: dict[type[BaseException], str] = {IndexError: "out-of-bounds", RecursionError: "stack-overflow"}


def vertex_fault(
    place: Place, cause: BaseException, file: str, line: int, values: Sequence[Any] = (), more: str = "", facts: Mapping[str, Any] | None = None
) -> VertexError:
    """The error of a codelet that raised ``cause`` at a line of the user's file, with the run-time values of its message; a line and facts more."""
    text = str(cause)
    error = VertexError(
        f"{vertex_line(place)}\n"
        f"  raised {type(cause).__name__}{': ' if text else ''}{text}\n"
        + (f"  {more}\n" if more else "") + f"  at {file}:{line}",
        code=_CODES.get(type(cause), "raised"),
        codelet=place.codelet, tile=place.tile, vertex=place.vertex, compute_set=place.compute_set, worker=place.worker, file=file, line=line,
        values=tuple(values), **(facts or {}),
    )  # fmt: skip
    error.__cause__ = cause
    return error


_TRAPS = {INV: ("inv", "an invalid operation"), DIV0: ("div0", "a division by zero"), OFLO: ("oflo", "an overflow")}


def floating_point_fault(place: Place, kind: int, values: Sequence[Any], where: str = "") -> FloatingPointVertexError:
    """The error of a result that the floating-point behaviour stops at.

    Args:
        kind: INV, DIV0 or OFLO.
        values: The operands, then the result; none where they are not known.
        where: File and line, where they are known.
    """
    short, words = _TRAPS[kind]
    shown = f": of {', '.join(map(str, values[:-1]))} it made {values[-1]}" if len(values) > 1 else f": {values[0]}" if values else ""
    return FloatingPointVertexError(
        f"codelet {place.codelet} (vertex {place.vertex} on tile {place.tile}{place.more}, compute set {place.compute_set!r})\n"
        f"  stopped at {words} ({short}){shown}" + (f"\n  at {where}" if where else ""),
        codelet=place.codelet, tile=place.tile, vertex=place.vertex, compute_set=place.compute_set, exception=short, values=tuple(values),
    )  # fmt: skip


def native_fault(place: Place, fault: NativeFault, site: Site, more: str = "", facts: Mapping[str, Any] | None = None) -> VertexError:
    """The error of a compiled codelet that gave up; ``site`` is where its class is, for faults that know no line."""
    cause: BaseException = getattr(builtins, fault.exception, RuntimeError)(fault.text)
    return vertex_fault(place, cause, *((fault.file, fault.line) if fault.file else site), (), more, facts)


def site_exception(site: FaultSite, values: Sequence[Any]) -> BaseException:
    """The exception that the user's ``raise`` or ``assert`` makes."""
    made: BaseException = getattr(builtins, site.exception, RuntimeError)(site.message(values))
    return made
