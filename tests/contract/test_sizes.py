"""Files and functions stay small enough to be read in one go."""

import ast
import statistics
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("popcore", "kernels", "bindings", "bench")


def sources():
    """Every Python file of the source folders once, links left out."""
    return [p for top in FOLDERS for p in sorted((ROOT / top).rglob("*.py")) if not any(q.is_symlink() for q in (p, *p.parents) if q != ROOT)]


def lines(path):
    """How many lines a file has."""
    return len(path.read_text(encoding="utf-8").splitlines())


def test_no_file_is_long():
    """
    None over 600 lines, nine in ten under 400, and half of those that hold anything under 200.
    """
    sizes = {str(p.relative_to(ROOT)): lines(p) for p in sources()}
    assert not {name: n for name, n in sizes.items() if n > 600}
    longish = {name: n for name, n in sizes.items() if n >= 400}
    assert len(longish) <= len(sizes) / 10, longish
    assert statistics.median(n for n in sizes.values() if n > 5) <= 200


def test_no_function_is_long():
    """
    None over 60 lines, docstring included.
    """
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name} ({node.end_lineno - node.lineno + 1} lines)"
        for path in sources()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.end_lineno - node.lineno + 1 > 60
    ]
    assert not found, "\n".join(found)


def test_every_file_says_what_it_is():
    """
    A file's first line is a sentence about it.
    """
    silent = [str(p.relative_to(ROOT)) for p in sources() if lines(p) and not ast.get_docstring(ast.parse(p.read_text(encoding="utf-8")))]
    assert not silent
