"""The wheel holds the tree: every source file in its place, and nothing else."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KEPT = {".py", ".typed", ".h", ".hpp", ""}  # some headers have no suffix
PLACES = {"popcore": "popcore", "kernels": "popcore/kernels", "bindings": "popcore/bindings"}


def tree():
    """Where each file of the checkout should be in the wheel."""
    for top, place in PLACES.items():
        for folder, folders, files in os.walk(ROOT / top):
            folders[:] = [f for f in folders if f != "__pycache__" and not (Path(folder) / f).is_symlink()]
            inside = Path(folder).relative_to(ROOT / top)
            yield from ((Path(place) / inside / f).as_posix() for f in files if Path(f).suffix in KEPT)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel: the one CI built, or one built here from a copy of the checkout."""
    if given := os.environ.get("POPCORE_WHEEL"):
        return Path(given)
    copy = tmp_path_factory.mktemp("source") / "popcore"
    shutil.copytree(ROOT, copy, symlinks=True, ignore=shutil.ignore_patterns(".git", ".venv", "__pycache__", "build", "*.egg-info", ".*_cache", ".hypothesis"))
    out = tmp_path_factory.mktemp("wheel")
    code = f"from setuptools import build_meta; print(build_meta.build_wheel({str(out)!r}))"
    built = subprocess.run([sys.executable, "-W", "ignore", "-c", code], cwd=copy, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr[-2000:]
    return next(out.glob("*.whl"))


def test_the_wheel_holds_the_tree(wheel):
    """
    Nothing is forgotten, nothing stale comes along, and no top-level package but popcore is installed.
    """
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert packed == set(tree())
    assert "popcore/py.typed" in packed
