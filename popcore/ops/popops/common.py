"""What the operations share: steps of a program, checks, options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from popcore.errors import ControlProgramError, GraphError, OptionError, near_matches
from popcore.graph import ComputeSet, Graph, Tensor
from popcore.program import Copy, Execute, Sequence

Options = Mapping[str, Any]


def joined(name: str, op: str) -> str:
    """The name of a step: the user's, then the operation's."""
    return f"{name}/{op}" if name else op


def compute_set_of(graph: Graph, prog: Sequence | ComputeSet, name: str) -> ComputeSet:
    """A new compute set that ``prog`` executes as its next step; ``prog`` itself where it is one."""
    if isinstance(prog, ComputeSet):
        return prog
    made = graph.add_compute_set(name)
    sequence_of(prog, name).add(Execute(made, name=name))
    return made


def sequence_of(prog: Any, name: str) -> Sequence:
    """Raises: ControlProgramError where ``prog`` is no Sequence."""
    if not isinstance(prog, Sequence):
        raise ControlProgramError(f"{name} is to be added to {prog!r:.60}", "pass a program.Sequence")
    return prog


def copy(prog: Sequence | ComputeSet, source: Tensor, target: Tensor, name: str) -> None:
    """A step that copies; a compute set cannot hold one."""
    if target.num_elements:
        sequence_of(prog, name).add(Copy(source, target, name=name))


def require_tensors(what: str, *tensors: Any) -> None:
    for t in tensors:
        if not isinstance(t, Tensor):
            raise GraphError(f"{what} is given {t!r:.60}, which is no tensor", "graph.add_variable or graph.add_constant")


def require_writeable(what: str, t: Tensor) -> None:
    """Raises: GraphError where an element is there twice or constant."""
    if not t.is_parallel_writeable:
        reason = "it is constant" if t.contains_constant else "it shows an element twice"
        raise GraphError(f"{what} cannot write {t!r}: {reason}", "the operation that gives a new tensor, or a copy: poputil.duplicate")


def read_options(what: str, options: Options | None, known: Mapping[str, Iterable[Any]]) -> dict[str, Any]:
    """Options as text, each one of those allowed; ``known`` names them, the first value of each is its default.

    Raises: OptionError, with near matches.
    """
    found = {name: next(iter(allowed)) for name, allowed in known.items()}
    for name, value in (options or {}).items():
        if name not in known:
            raise OptionError(f"{what} has no option {name!r}", near_matches(name, known, f"one of {', '.join(known) or 'none'}"))
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if text not in known[name]:
            raise OptionError(f"option {name!r} of {what} is {value!r}", f"one of {', '.join(map(str, known[name]))}")
        found[name] = text
    return found
