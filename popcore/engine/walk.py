"""Count how often each instruction would be executed, without executing any: for ``debug.compute: False``."""

from __future__ import annotations

import numpy as np

from popcore.errors import EngineError
from popcore.executable import Executable
from popcore.executable.opcodes import Op
from popcore.types import Array


def walk_counts(executable: Executable, program: int) -> Array:
    """int64[instructions] of one run of a program.

    Raises:
        EngineError: the program branches on data, which nobody computed.
    """
    counts = np.zeros(len(executable.code), np.int64)
    rows = executable.code.tolist()
    pending = {int(executable.entries[program]): 1}
    while pending:  # lowest first: callers mostly lie before what they call, so that calls add up before a body is walked
        entry = min(pending)
        for callee, times in _walk_one(executable, rows, entry, pending.pop(entry), counts).items():
            pending[callee] = pending.get(callee, 0) + times
    return counts


def _walk_one(executable: Executable, rows: list[list[int]], pc: int, times: int, counts: Array) -> dict[int, int]:
    """Walk from ``pc`` to its HALT or RETURN. Returns: how often each subroutine is called."""
    calls: dict[int, int] = {}
    outer: list[int] = []
    while True:
        op, a, b, c = rows[pc]
        counts[pc] += times
        if op in (Op.HALT, Op.RETURN):
            return calls
        if op == Op.CALL:
            calls[a] = calls.get(a, 0) + times
        elif op == Op.REPEAT:
            if b == 0:
                pc = c
                continue
            outer.append(times)
            times *= b
        elif op == Op.END:
            times = outer.pop()
        elif op in (Op.BRANCH, Op.SWITCH):
            label = executable.costs.labels[executable.costs.label[pc]]
            raise EngineError(
                f"the program branches on data at instruction {pc} ({label}), and with debug.compute off no data exists",
                "run it with debug.compute on, or replace RepeatWhile, If and Switch by Repeat",
            )
        elif op == Op.JUMP:
            pc = a
            continue
        pc += 1
