"""The machine's instructions: each alone, nested, and against a walk in Python."""

import os
import subprocess
import sys

import numpy as np
import pytest

from popcore.executable.opcodes import Op
from tests.engine.machine import HALT, executable, finish, image, table, use_drivers


@pytest.fixture(autouse=True)
def _drivers(monkeypatch):
    use_drivers(monkeypatch)


def run(code, memory=(), **other):
    """Run to the end; returns the counts, and the memory."""
    linked, words = image(executable(code, codelets=(), **other))
    words[: len(memory)] = memory
    outcome = finish(linked)
    assert outcome.kind == "halt"
    return linked.counts.tolist(), words


def test_loops_nest_and_none_rounds_skip_the_body():
    code = [(Op.REPEAT, 0, 3, 7), (Op.REPEAT, 1, 4, 4), (Op.NOP,), (Op.END, 1, 2), (Op.REPEAT, 1, 0, 6), (Op.NOP,), (Op.END, 0, 1), HALT]
    assert run(code)[0] == [1, 3, 12, 12, 3, 0, 3, 1]


@pytest.mark.parametrize("width", [1, 2, 4, 8])
def test_a_branch_looks_at_all_bytes_of_its_predicate_and_no_more(width):
    code = [(Op.BRANCH, 8, width, 3), (Op.NOP,), HALT, HALT]
    linked, words = image(executable(code, codelets=()))
    place = words.view(np.uint8)
    place[:8] = place[8 + width : 24] = 0xFF
    assert (finish(linked).pc, linked.counts.tolist()) == (3, [1, 0, 0, 1])
    place[8 + width - 1] = 0x80
    assert finish(linked).pc == 2


@pytest.mark.parametrize(
    ("dtype", "width"), [("int8", -1), ("uint8", 1), ("int16", -2), ("uint16", 2), ("int32", -4), ("uint32", 4), ("int64", -8), ("bool", 1)]
)
def test_a_switch_finds_its_case_in_every_integer_type(dtype, width):
    values = [0, 1] if dtype == "bool" else sorted({int(np.iinfo(dtype).min), 0, 7, int(np.iinfo(dtype).max)})
    switches = table([(0, 0), (len(values), 1), *[(v, 2 + i) for i, v in enumerate(values)]], 2)
    code = [(Op.SWITCH, 16, width, 1)] + [HALT] * 7
    linked, words = image(executable(code, switches=switches, codelets=()))
    for i, value in enumerate(values):
        words.view(dtype)[16 // np.dtype(dtype).itemsize] = value
        assert finish(linked).pc == 2 + i
    if dtype != "bool":
        words.view(dtype)[16 // np.dtype(dtype).itemsize] = 5
        assert finish(linked).pc == 1


def test_calls_return_to_their_caller_at_any_depth():
    code = [(Op.CALL, 3), (Op.CALL, 5), HALT, (Op.CALL, 5), (Op.RETURN,), (Op.REPEAT, 0, 10, 8), (Op.NOP,), (Op.END, 0, 6), (Op.RETURN,)]
    counts, _ = run(code, call_depth=2)
    assert counts == [1, 1, 1, 1, 1, 2, 20, 20, 2]


def test_a_yield_goes_on_behind_itself():
    linked, _ = image(executable([(Op.REPEAT, 0, 2, 3), (Op.YIELD, 5), (Op.END, 0, 1), HALT], codelets=()))
    first = finish(linked)
    assert (first.kind, first.pc, first.yield_index) == ("yield", 2, 5)
    assert finish(linked, first.pc).kind == "yield"
    assert finish(linked, first.pc).kind == "halt"


def test_a_poll_loses_nothing():
    rounds = 200_000_000
    linked, _ = image(executable([(Op.REPEAT, 0, rounds, 2), (Op.END, 0, 1), HALT], codelets=()))
    outcome, polls = linked.run(0), 0
    while outcome.kind == "poll":
        outcome, polls = linked.run(outcome.pc), polls + 1
    assert outcome.kind == "halt"
    assert polls >= 1
    assert linked.counts.tolist() == [1, rounds, 1]


def test_a_phase_copies_before_its_vertices_and_batches_come_in_order():
    code = [(Op.REPEAT, 0, 5, 4), (Op.RUN, 0), (Op.RUN, 1), (Op.END, 0, 1), HALT]
    made = executable(code, phases=[(0, 1, 0, 1), (1, 2, 1, 2)], groups=[(0, 0, 1, 2), (0, 1, 1, 2)], words=[(0, 1024), (1024, 0)],
                      batches=[(0, 0, 1, 0, 1), (0, 1, 1, 0, 1)], tiles=[1, 0], rows=[0, 2])  # fmt: skip
    linked, words = image(made)
    assert finish(linked).kind == "halt"
    assert words[:3].tolist() == [10, 10, 0]  # there and back, plus one on each side, five times
    assert words[1024:1027].tolist() == [9, 9, 0]


def random_code(draw, depth=0):
    """A list of nested items: ("nop",), ("repeat", rounds, body), ("if", predicate word, then, else)."""
    items = []
    for _ in range(draw.integers(1, 4)):
        kind = draw.integers(0, 3) if depth < 3 else 0
        if kind == 0:
            items.append(("nop",))
        elif kind == 1:
            items.append(("repeat", int(draw.integers(0, 4)), random_code(draw, depth + 1)))
        else:
            items.append(("if", int(draw.integers(0, 8)), random_code(draw, depth + 1), random_code(draw, depth + 1)))
    return items


def emit(items, code, counts, memory, times, slot=0):
    """Instructions of ``items``, and how often each should run."""
    for item in items:
        if item[0] == "nop":
            code.append((Op.NOP, 0, 0, 0))
            counts.append(times)
        elif item[0] == "repeat":
            at = len(code)
            code.append(None)
            counts.append(times)
            emit(item[2], code, counts, memory, times * item[1], slot + 1)
            code.append((Op.END, slot, at + 1, 0))
            counts.append(times * item[1])
            code[at] = (Op.REPEAT, slot, item[1], len(code))
        else:
            taken = bool(memory[item[1]])
            at = len(code)
            code.append(None)
            counts.append(times)
            emit(item[2], code, counts, memory, times * taken, slot)
            jump = len(code)
            code.append(None)
            counts.append(times * taken)
            code[at] = (Op.BRANCH, 4 * item[1], 4, len(code))
            emit(item[3], code, counts, memory, times * (not taken), slot)
            code[jump] = (Op.JUMP, len(code), 0, 0)


@pytest.mark.parametrize("seed", range(10))
def test_any_structure_runs_as_often_as_it_says(seed):
    draw = np.random.default_rng(seed)
    memory = draw.integers(0, 2, 8)
    code, counts = [], []
    emit(random_code(draw), code, counts, memory, 1)
    assert run([*code, HALT], memory)[0] == [*counts, 1]


FALLBACK = """
import os
import os
import subprocess
import sys

import numpy as np
from popcore.codelet import InOut, Input, Vector, Vertex, codelet_of
from popcore.types import FLOAT
from tests.engine.machine import *

class Scale(Vertex):
    x: InOut[Vector[FLOAT]]
    k: Input[FLOAT]

    def compute(self):
        for i in range(len(self.x)):
            self.x[i] = self.x[i] * self.k + i / 3

code = [(Op.REPEAT, 0, 20, 4), (Op.RUN, 0), (Op.CALL, 5), (Op.END, 0, 1), HALT, (Op.SWITCH, 4096, 4, 0), (Op.NOP,), (Op.RETURN,)]
made = executable(code, phases=[(0, 1, 0, 1)], groups=[(0, 0, 1, 2)], words=[(0, 1024)], batches=[(0, 0, 4, 0, 1)], tiles=range(4),
                  rows=[16, 9, 8], codelets=(codelet_of(Scale),), switches=table([(1, 6), (7, 7)], 2))
linked, words = image(made)
floats = words.view(np.float32)
floats.reshape(-1, 1024)[:4, :13] = np.arange(13)
words[:2] = 7
assert finish(linked).kind == "halt"
print(linked.counts.tolist(), words[:2048].tolist())
"""


def test_the_fallback_and_the_interpreter_give_what_the_machine_gives(tmp_path):
    seen = []
    for extra in ({}, {"POPCORE_FALLBACK": "1"}):
        script = tmp_path / "script.py"
        script.write_text(FALLBACK)
        made = subprocess.run([sys.executable, script], env={**os.environ, "PYTHONPATH": os.getcwd(), **extra}, capture_output=True, text=True, check=False)
        assert made.returncode == 0, made.stderr
        seen.append(made.stdout)
    assert seen[0] == seen[1]
