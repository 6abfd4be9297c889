"""The list of cases is true: each has a test in every file that README.md names for it."""

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROWS = re.findall(
    r"^\| ((?:[A-J]\d+(?:, )?)+) \| (.*) \|$", HERE.joinpath("README.md").read_text(encoding="utf-8").partition("## What is not there")[0], re.MULTILINE
)
CASES = [(case, file) for cases, files in ROWS for case in cases.split(", ") for file in re.findall(r"`([^`]+)`", files)]


@pytest.mark.parametrize(("case", "file"), CASES)
def test_the_case_is_there(case, file):
    """
    By the name of a test, or in what a test says of itself.
    """
    text = HERE.joinpath(file).resolve().read_text(encoding="utf-8")
    assert re.search(rf"def test_(\w+_)?{case.lower()}_|\b[Cc]ases? [^\n]*\b{case}\b", text)


def test_no_case_is_there_twice():
    """
    All 82 of them once.
    """
    names = [case for cases, _ in ROWS for case in cases.split(", ")]
    assert len(names) == len(set(names)) == 82
