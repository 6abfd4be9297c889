"""How tensors, codelet prints and aborts look on the host. Every engine uses these, so that they agree to the letter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from popcore.dialect.lowered import FaultSite
from popcore.errors import ProgramError, VertexError
from popcore.types import Array

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


def vertex_fault(site: FaultSite, values: Sequence[Any], vertex: str, tile: int) -> VertexError:
    """The error of a codelet that raised.

    Args:
        site: Where it raised.
        values: The run-time values of its message.
        vertex: The vertex, its codelet and compute set, in words.
    """
    text = site.message(values)
    return VertexError(
        f"{vertex} on tile {tile} raised {site.exception}{f': {text}' if text else ''}\n  {site.file}:{site.line}",
        vertex=vertex, tile=tile, file=site.file, line=site.line, exception=site.exception,
    )  # fmt: skip
