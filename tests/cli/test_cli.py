"""The command line: what each command prints, and what it says to a mistake."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import popcore
from popcore.cli import main
from popcore.target import systems


@pytest.fixture
def popcore_command(monkeypatch):
    """Invoke the command in this process; what it does to the process is undone."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    for name in ("POPCORE_DEVICE", "POPCORE_ENGINE_OPTIONS"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("COLUMNS", "100")
    return lambda *arguments: CliRunner().invoke(main, arguments)


@pytest.fixture
def script(tmp_path):
    """A program that prints what it was given."""
    (tmp_path / "beside.py").write_text("VALUE = 7\n")
    file = tmp_path / "program.py"
    file.write_text(
        "import os, sys, beside\nimport popcore as pc\n"
        "print(__name__, sys.argv[1:], pc.Device('M2000', tiles_per_ipu=3).target, beside.VALUE)\n"
        "print(os.environ.get('POPCORE_ENGINE_OPTIONS'))\n"
    )
    return file


def test_info_lists_every_system(popcore_command):
    """
    A line for each.
    """
    result = popcore_command("info")
    assert result.exit_code == 0
    assert [line.split()[0] for line in result.output.splitlines()[1:]] == list(systems())


@pytest.mark.parametrize("name", [*systems(), "gc200"])
def test_info_shows_one_system(popcore_command, name):
    """
    Tiles, clock and memory of any of them; a chip is one IPU.
    """
    result = popcore_command("info", name)
    assert result.exit_code == 0
    assert f"{popcore.Device(name).target.num_tiles:,}" in result.output
    assert "KiB" in result.output


def test_info_fits_a_narrow_terminal(popcore_command, monkeypatch):
    """
    Nothing is cut at 80 columns.
    """
    monkeypatch.setenv("COLUMNS", "80")
    assert "…" not in popcore_command("info").output


def test_info_of_an_unknown_system_gives_near_names(popcore_command):
    """
    Usage error 2, with what was probably meant.
    """
    result = popcore_command("info", "bow-po64")
    assert result.exit_code == 2
    assert "BOW-POD64" in result.output


def test_run_is_python_file(popcore_command, script):
    """
    Arguments, the name __main__ and modules beside the file are as with `python FILE`.
    """
    result = popcore_command("run", str(script), "--fast", "x")
    assert result.exit_code == 0, result.output
    assert result.output.splitlines()[0] == "__main__ ['--fast', 'x'] M2000 (4 x GC200, 3 tiles each) 7"


def test_run_puts_another_device_in_place(popcore_command, script):
    """
    The program says M2000 and gets a C2; its own count of tiles stays.
    """
    assert "C2 (2 x GC2, 3 tiles each)" in popcore_command("run", "--device", "c2", str(script)).output


def test_run_passes_threads_on_beside_other_options(popcore_command, script, monkeypatch):
    """
    What the environment already says is kept.
    """
    monkeypatch.setenv("POPCORE_ENGINE_OPTIONS", '{"debug.compute": false}')
    result = popcore_command("run", "--threads", "2", str(script))
    assert json.loads(result.output.splitlines()[1]) == {"debug.compute": False, "engine.threads": 2}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [(["--device", "M200"], "M2000"), (["--threads", "0"], "--threads"), (["--threads", "two"], "two")],
)
def test_run_refuses_what_cannot_be(popcore_command, script, arguments, says):
    """
    Before the program starts.
    """
    result = popcore_command("run", *arguments, str(script))
    assert result.exit_code == 2
    assert says in result.output
    assert "__main__" not in result.output


def test_run_passes_checks_on(popcore_command, script):
    """
    Each becomes its engine option; what is not given is left to the program.
    """
    result = popcore_command("run", "--check", "full", "--collect", "--first-nan", "--schedule-seed", "7", str(script))
    wanted = {"debug.check": "full", "debug.check.collect": True, "debug.first_nan": True, "debug.schedule_seed": 7}
    assert json.loads(result.output.splitlines()[1]) == wanted
    assert "--check" in popcore_command("run", "--check", "all", str(script)).output


@pytest.mark.parametrize("given", ["{", "[1]"])
def test_run_refuses_options_that_are_none(popcore_command, script, monkeypatch, given):
    """
    A broken environment variable is named.
    """
    monkeypatch.setenv("POPCORE_ENGINE_OPTIONS", given)
    result = popcore_command("run", "--threads", "2", str(script))
    assert result.exit_code == 2
    assert "POPCORE_ENGINE_OPTIONS" in result.output


def test_run_of_a_missing_file(popcore_command, tmp_path):
    """
    Said plainly.
    """
    result = popcore_command("run", str(tmp_path / "gone.py"))
    assert result.exit_code == 2
    assert "does not exist" in result.output


def test_an_exit_code_arrives(popcore_command, tmp_path):
    """
    What the program exits with, the command does.
    """
    file = tmp_path / "exits.py"
    file.write_text("raise SystemExit(3)\n")
    assert popcore_command("run", str(file)).exit_code == 3


def test_doctor_is_content(popcore_command, monkeypatch, tmp_path):
    """
    Versions, settings, and a small program that runs.
    """
    monkeypatch.setenv("POPCORE_CACHE_DIR", str(tmp_path / "cache"))
    result = popcore_command("doctor")
    assert result.exit_code == 0, result.output
    assert all(word in result.output for word in ("numba", "numpy", "CPU", str(tmp_path), "right result"))


def test_doctor_finds_a_cache_that_cannot_be_written(popcore_command, monkeypatch, tmp_path):
    """
    Said with the way out; exit code 1.
    """
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("POPCORE_CACHE_DIR", str(tmp_path / "file"))
    monkeypatch.setattr(sys.modules["popcore.cli.doctor"], "_run_problems", list)
    result = popcore_command("doctor")
    assert result.exit_code == 1
    assert "POPCORE_CACHE_DIR" in result.output.replace("\n", " ")


def test_the_module_is_the_command():
    """
    ``python -m popcore`` as ``popcore``, and its version.
    """
    where = str(Path(popcore.__file__).parents[1])
    done = subprocess.run([sys.executable, "-m", "popcore", "--version"], env={**os.environ, "PYTHONPATH": where}, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"popcore, version {popcore.__version__}"
