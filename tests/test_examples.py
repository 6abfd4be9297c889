"""Every example runs, as a user would run it."""

import functools
import os
import subprocess
import sys
from pathlib import Path

import pytest

import popcore

EXAMPLES = {p.stem: p for p in sorted((Path(__file__).parents[1] / "examples").glob("*.py"))}


@functools.cache
def run(name):
    """Run an example in a process of its own, warnings being errors, with the popcore that this process has."""
    where = str(Path(popcore.__file__).parents[1])
    command = [sys.executable, "-W", "error", str(EXAMPLES[name])]
    return subprocess.run(command, env={**os.environ, "PYTHONPATH": where}, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs(name):
    """
    It ends well, warns of nothing and says something.
    """
    done = run(name)
    assert done.returncode == 0, done.stderr[-3000:]
    assert not done.stderr
    assert done.stdout.strip()


def test_the_pod64_learns_the_digits():
    """
    The main example: 64 replicas agree, and what they learned recognises images they never saw.
    """
    shown = dict(line.split(" ", 1) for line in run("digits_pod64").stdout.splitlines() if line.startswith(("accuracy", "modelled device")))
    assert float(shown["accuracy"]) > 0.85
    assert "64 IPUs" in run("digits_pod64").stdout


def test_the_digits_are_recognised():
    """
    The accuracy is what nearest neighbours reach on these images, and it says what an IPU would take.
    """
    shown = dict(line.split(" ", 1) for line in run("digits_knn").stdout.splitlines() if line.startswith(("accuracy", "modelled")))
    assert float(shown["accuracy"]) > 0.95
    assert shown["modelled"].startswith("device time")
