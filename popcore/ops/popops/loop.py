"""counted_loop, counted_for_loop: loops whose body sees a counter."""

from __future__ import annotations

from collections.abc import Callable
from typing import overload

from popcore.codelets.operations import INT_TYPE
from popcore.errors import ControlProgramError, ElementTypeError
from popcore.graph import Graph, Tensor
from popcore.graph.values import as_elements
from popcore.ops.popops import common
from popcore.ops.popops.binary import add_in_place
from popcore.ops.popops.expr import Gt, Lt, PlaceHolder
from popcore.ops.popops.fill import fill
from popcore.ops.popops.mapping import map as map_elements
from popcore.program import Program, Repeat, RepeatWhileTrue, Sequence
from popcore.types import INT, UNSIGNED_INT

Body = Callable[[Tensor], Program]
"""Given the counter, an UNSIGNED_INT or INT scalar that it must not write, what a round does."""


@overload
def counted_loop(graph: Graph, count: int, body: Body, /, *, name: str = "") -> Program: ...
@overload
def counted_loop(graph: Graph, begin: int, end: int, step: int, body: Body, /, *, name: str = "") -> Program: ...
def counted_loop(graph: Graph, *arguments: int | Body, name: str = "") -> Program:
    """``(graph, begin, end, step, body)`` or ``(graph, count, body)``: a program that runs the body with each of ``range(begin, end, step)``.

    Raises: ControlProgramError: a step of 0, or no round at all: Poplar's loops have at least one.
    """
    step_name = common.joined(name, "counted_loop")
    *numbers, body = arguments
    if len(numbers) not in (1, 3) or not all(isinstance(n, int) and not isinstance(n, bool) for n in numbers) or not callable(body):
        raise ControlProgramError(f"{step_name} is given {arguments!r:.80}", "(graph, count, body) or (graph, begin, end, step, body)")
    whole = [n for n in numbers if isinstance(n, int)]
    begin, end, step = whole if len(whole) == 3 else (0, whole[0], 1)
    if step == 0 or not range(begin, end, step):
        raise ControlProgramError(f"{step_name} from {begin} to {end} by {step} has no round", "begin below end and a step above 0, or the reverse")
    rounds = range(begin, end, step)
    dtype = UNSIGNED_INT if min(begin, rounds[-1], rounds[-1] + step) >= 0 else INT
    counter = graph.add_variable(dtype, (), name=f"{step_name}/counter", tile=0)
    made = Sequence(name=step_name)
    fill(graph, counter, made, begin, step_name)
    inside = Sequence(body(counter))
    add_in_place(graph, counter, graph.add_constant(INT, (), step, tile=0).reinterpret(dtype), inside, step_name)
    made.add(Repeat(len(rounds), inside, name=step_name))
    return made


def counted_for_loop(graph: Graph, counter: Tensor, start: int, limit: Tensor, step: int, body: Program, name: str = "") -> Program:
    """A program that runs ``body`` with ``counter`` at ``start``, ``start + step``, ... while it is below ``limit`` (above, for a negative step).

    Args:
        counter, limit: INT or UNSIGNED_INT scalars of one type; ``limit`` is read each round.

    Raises: ControlProgramError: a step of 0. ElementTypeError: other tensors.
    """
    step_name = common.joined(name, "counted_for_loop")
    common.require_tensors(step_name, counter, limit)
    if counter.dtype is not limit.dtype or counter.dtype not in (INT, UNSIGNED_INT) or counter.num_elements != 1 or limit.num_elements != 1:
        raise ElementTypeError(f"{step_name} of {counter!r} to {limit!r}", "two INT or two UNSIGNED_INT scalars")
    if step == 0:
        raise ControlProgramError(f"{step_name} by 0 never ends", "a step above or below 0")
    made, test = Sequence(name=step_name), Sequence()
    fill(graph, counter, made, start, step_name)
    going = (Lt if step > 0 else Gt)(PlaceHolder(1), PlaceHolder(2))
    predicate = map_elements(graph, going, [counter.reshape(()), limit.reshape(())], test, step_name)
    inside = Sequence(body)
    as_elements(step, INT_TYPE, f"the step of {step_name}")
    add_in_place(graph, counter, graph.add_constant(INT, (), step, tile=0).reinterpret(counter.dtype), inside, step_name)
    made.add(RepeatWhileTrue(test, predicate, inside, name=step_name))
    return made
