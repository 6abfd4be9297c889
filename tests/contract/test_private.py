"""Nothing in the repository names a machine it was written on."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
PRIVATE = re.compile("|".join(["/" + name + "/" for name in ("home", "root", "work", "Users")] + ["/" + "tmp/[a-z]"]))
SKIPPED = {".git", ".venv", "__pycache__", "build", "dist", ".hypothesis", ".mypy_cache", ".pytest_cache", ".ruff_cache"}


def texts():
    """Every file that git keeps, or would keep."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode == 0:
        return [ROOT / name for name in listed.stdout.splitlines()]
    return [p for p in ROOT.rglob("*") if not SKIPPED & set(p.relative_to(ROOT).parts)]


def test_no_file_holds_a_private_path():
    """
    Paths of one machine help nobody and tell too much.
    """
    found = []
    for path in texts():
        if path.is_file() and not path.is_symlink() and path.suffix not in (".png", ".npz"):
            for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
                if PRIVATE.search(line):
                    found.append(f"{path.relative_to(ROOT)}:{number} {line.strip()[:80]}")
    assert not found, "\n".join(found)
