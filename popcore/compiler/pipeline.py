"""``compile_graph``: the passes in order, and what each hands to the next."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from popcore.codelet import Codelet
from popcore.compiler.ir import Code, ComputeStep
from popcore.compiler.options import resolve_options
from popcore.compiler.passes.batch_vertices import batch_vertices
from popcore.compiler.passes.emit import emit
from popcore.compiler.passes.lay_out import lay_out
from popcore.compiler.passes.liveness import find_lives
from popcore.compiler.passes.lower import lower_programs
from popcore.compiler.passes.plan_exchange import plan_exchange
from popcore.compiler.passes.plan_memory import plan_memory
from popcore.compiler.passes.verify import verify
from popcore.compiler.progress import Progress
from popcore.errors import GraphError
from popcore.executable import Executable
from popcore.graph import Graph
from popcore.program import Program

PASSES = ("verify", "lower", "lay_out", "plan_exchange", "find_lives", "plan_memory", "batch_vertices", "emit")
"""The passes, in order; ``progress`` is told of each."""


def compile_graph(
    graph: Graph,
    programs: Program | Sequence[Program],
    options: Mapping[str, Any] | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Executable:
    """Compile a graph and its programs for the graph's target.

    Args:
        programs: One, or several; ``engine.run(i)`` runs the i-th.
        options: Engine options, see ``popcore.options()``. Those are kept in the Executable.
        progress: Called with the name of each pass, its number and the number of passes; by default a bar is
            shown on a terminal when a compile takes over two seconds.

    Returns: equal graphs and programs give equal Executables, byte for byte.

    Raises:
        CompileError: see ``popcore.errors``; what is wrong with the graph.
        OptionError: an unknown option, or a value that it cannot have.
    """
    resolved = resolve_options(options)
    listed = [programs] if isinstance(programs, Program) else list(programs)
    for program in listed:
        if not isinstance(program, Program):
            raise GraphError(f"compile_graph is given {program!r}, not a program", "pass popcore.program.Sequence(...), or a list of programs")
    with _telling(progress, bool(resolved["engine.progress"])) as tell:
        return _compile(graph.variables.graph, listed, resolved, tell)


@contextmanager
def _telling(progress: Callable[[str, int, int], None] | None, shown: bool) -> Iterator[Callable[[str], None]]:
    if progress is not None:
        yield lambda name: progress(name, PASSES.index(name), len(PASSES))
        return
    with Progress(len(PASSES), shown) as bar:
        yield lambda name: bar.tell(name, PASSES.index(name))


def _compile(graph: Graph, programs: Sequence[Program], options: dict[str, Any], tell: Callable[[str], None]) -> Executable:
    tell("verify")
    graph.finalise()
    used = verify(graph, programs)
    tell("lower")
    code = lower_programs(graph, programs, shadowed=options["debug.check"] == "full")
    tell("lay_out")
    layout = lay_out(graph, used)
    tell("plan_exchange")
    plans = plan_exchange(code.steps, layout)
    tell("find_lives")
    lives = find_lives(graph, code, used)
    tell("plan_memory")
    codelets = _codelets(code)
    memory = plan_memory(graph, code, layout, lives, plans, codelets, bool(options["debug.allowOutOfMemory"]))
    tell("batch_vertices")
    tables, ranges = batch_vertices(code.steps, plans, layout, memory, codelets)
    tell("emit")
    return emit(graph, code, layout, plans, memory, codelets, tables, ranges, options)


def _codelets(code: Code) -> tuple[Codelet, ...]:
    """The codelets that compute sets use, in order of first use."""
    found: dict[Codelet, None] = {}
    for step in code.steps:
        if isinstance(step, ComputeStep):
            found.update(dict.fromkeys(step.compute_set.groups))
    return tuple(found)
