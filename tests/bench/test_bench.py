"""The benchmarks: do they run, are their rows whole, and is a wrong answer noticed? Nothing here is about how fast anything is."""

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import popcore
from bench import compare, harness

ROOT = Path(__file__).parents[2]
FIELDS = ["name", "value", "unit", "baseline", "ratio", "target", "met"]


def run_bench(*arguments):
    """``python -m bench`` with the popcore of this process, and warnings as errors."""
    where = os.pathsep.join([str(Path(popcore.__file__).parents[1]), str(ROOT)])
    command = [sys.executable, "-P", "-W", "error", "-m", "bench", *arguments]
    return subprocess.run(command, env={**os.environ, "PYTHONPATH": where}, cwd=ROOT, capture_output=True, text=True, check=False)


def test_smoke_runs_of_two_write_whole_rows(tmp_path):
    """
    The file that a later run is held against has these fields and no others.
    """
    file = tmp_path / "rows.json"
    done = run_bench("vm", "vertex", "--smoke", "--json", str(file))
    assert done.returncode == 0, done.stderr[-3000:]
    rows = json.loads(file.read_text())
    assert all(list(row) == FIELDS for row in rows)
    assert {row["name"].split("/")[0] for row in rows} == {"vm", "vertex"}
    assert all(row["met"] is None for row in rows), "a small size says nothing about a target"
    assert all(row["name"] in done.stdout for row in rows)


def test_an_unknown_name_is_refused():
    """
    The message lists the names there are.
    """
    done = run_bench("verticle")
    assert done.returncode == 2
    assert "vertex" in done.stderr


@pytest.mark.parametrize(
    ("row", "target", "met"),
    [
        (harness.Row("a", 9.0, "ns", goal=harness.Goal(10, 3)), 10, True),
        (harness.Row("a", 11.0, "ns", goal=harness.Goal(10, 3)), 10, False),
        (harness.Row("a", 5.0, "ms", 4.0, 0.8, harness.Goal(0.7, 1.0, more_is_better=True)), 0.7, True),
        (harness.Row("a", 5.0, "ms", 3.0, 0.6, harness.Goal(0.7, more_is_better=True)), 0.7, False),
        (harness.Row("a", 5.0, "ms", 3.0, 0.6), None, None),
    ],
)
def test_a_target_is_about_the_ratio_where_there_is_one(row, target, met):
    """
    Else about the value; without a target nothing is met or missed.
    """
    made = row.as_dict()
    assert list(made) == FIELDS
    assert (made["target"], made["met"]) == (target, met)
    assert not (row.met is False and row.moonshot_met)


def test_actions_take_turns():
    """
    All run equally often, in turn, so that what slows the machine down slows all of them.
    """
    order = []
    times = harness.interleave([lambda: order.append("a"), lambda: order.append("b")], smoke=True)
    assert order == ["a", "b"]
    assert [len(t) for t in times] == [1, 1]


def test_the_ratio_is_taken_round_by_round():
    """
    One round that took ten times as long for both changes nothing.
    """
    row = harness.compared("a", [1.0, 10.0, 1.0], [2.0, 20.0, 2.0], unit="ms", per=10)
    assert (row.value, row.baseline, row.ratio) == (100.0, 200.0, 2.0)


def test_a_wrong_answer_is_noticed():
    """
    With how much of it is wrong, where, and what it should have been.
    """
    harness.check_equal("sums", np.arange(3), [0, 1, 2])
    with pytest.raises(harness.WrongAnswer, match="sums: 1 of 3 elements are wrong, the first is 2: 5, not 2"):
        harness.check_equal("sums", [0, 1, 5], np.arange(3))
    with pytest.raises(harness.WrongAnswer, match="shape"):
        harness.check_equal("sums", [0, 1], np.arange(3))


def test_a_program_that_fails_is_a_wrong_answer():
    """
    What it wrote to stderr is in the message.
    """
    with pytest.raises(harness.WrongAnswer, match="no luck"):
        harness.run_python(["-c", "raise SystemExit('no luck')"])


def test_comparing_two_files():
    """
    By ratio where both have one, else by value; better is above 1 either way.
    """
    rows = itertools.starmap(
        lambda *fields: dict(zip(FIELDS, fields, strict=True)), [("a", 4.0, "ns", None, None, 10, True), ("b", 2.0, "ms", 4.0, 2.0, 1, True)]
    )
    old = list(rows)
    new = [{**old[0], "value": 2.0}, {**old[1], "value": 9.0, "ratio": 3.0}, {**old[0], "name": "c"}]
    assert compare.changes(old, new) == [("a", 4.0, 2.0, 2.0), ("b", 2.0, 3.0, 1.5), ("c", None, 4.0, None)]
