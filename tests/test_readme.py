"""The README: its Python runs as it stands, its commands exist, its links lead somewhere."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import popcore
from popcore.cli import main

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
README = PAGES[0].read_text(encoding="utf-8")


def blocks(language):
    """The fenced blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("code", blocks("python"))
def test_its_python_runs(code, tmp_path):
    """
    Pasted into a file and run, warnings being errors.
    """
    file = tmp_path / "pasted.py"
    file.write_text(code, encoding="utf-8")
    where = str(Path(popcore.__file__).parents[1])
    done = subprocess.run([sys.executable, "-W", "error", str(file)], env={**os.environ, "PYTHONPATH": where}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "cycles" in done.stdout


def test_its_commands_exist():
    """
    Every ``popcore`` and ``make`` command shown is one.
    """
    lines = [line.split("#")[0].split() for block in blocks("sh") for line in block.splitlines()]
    for words in lines:
        if words[0] == "popcore":
            assert CliRunner().invoke(main, [words[1], "--help"]).exit_code == 0
            assert all(w in CliRunner().invoke(main, [words[1], "--help"]).output for w in words if w.startswith("--"))
        elif words[0] == "make":
            assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert {words[0] for words in lines} >= {"popcore", "make"}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    """
    Files that a page links to or names are in the repository.
    """
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (page.parent / target).exists(), target
    for target in re.findall(r"`((?:popcore|docs|tests|kernels|examples)/[\w/]+\.(?:py|md))`", text):
        assert (ROOT / target).exists() or "NAME" in target, target
