"""The house is a stack: a file imports bands below its own, never one above, never a neighbour. Reads the imports of every file."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# From the ground up; rooms of one band are neighbours.
BANDS = [
    ("errors", "types", "debug", "archive", "files", "pages", "machines", "target", "topology"),
    ("bindings", "kernels"),
    ("codelet",),
    ("dialect",),
    ("estimate",),
    ("codelets",),
    ("native",),
    ("executable",),
    ("graph",),
    ("program",),
    ("profile",),
    ("compiler",),
    ("ops", "engine", "reference"),
    ("microbench", "faults"),
    ("cli", "testing", "frontends"),
    ("__init__", "__main__"),
]
BAND = {room: i for i, rooms in enumerate(BANDS) for room in rooms}
GROUND = set(BANDS[0])  # small enough to see at a glance; its files may import each other
KERNELS_MAY_IMPORT = {"numpy", "numba", "llvmlite"}
KERNELS_ARE_LOADED_BY = {"engine", "native"}
LAWS = {"kernels.behaviour", "kernels.randomness"}  # what a result is: no code but plain Python, for whoever computes one


def source_files():
    """Every Python file of the three folders, as (path, module name below popcore)."""
    for top, prefix in (("popcore", ""), ("kernels", "kernels."), ("bindings", "bindings.")):
        for path in sorted((ROOT / top).rglob("*.py")):
            inside = path.relative_to(ROOT / top)
            if top == "popcore" and inside.parts[0] in ("kernels", "bindings"):
                continue  # the links
            yield path, prefix + ".".join(inside.with_suffix("").parts)


MODULES = {module.removesuffix(".__init__"): path for path, module in source_files()}


def imports(path, module):
    """(line, what) for each import of a file, "popcore.x.y" for our own."""
    package = ["popcore", *module.split(".")[:-1]]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join([*package[: len(package) - node.level + 1], *([node.module] if node.module else [])]) if node.level else node.module
            for alias in node.names:
                whole = f"{base}.{alias.name}"
                yield node.lineno, whole if whole.removeprefix("popcore.") in MODULES else base


def room_of(module):
    """The room a module below popcore is in."""
    return module.split(".")[0] if module else "__init__"


def faults(path, module):
    """What this file imports and may not."""
    room = room_of(module)
    for line, what in imports(path, module):
        where = f"{path.relative_to(ROOT)}:{line} imports {what}"
        if what.split(".")[0] != "popcore":
            if what.split(".")[0] in ("bench", "tests"):
                yield f"{where}: nothing imports those"
            if room == "kernels" and what.split(".")[0] not in KERNELS_MAY_IMPORT | sys.stdlib_module_names:
                yield f"{where}: kernels know arrays only"
            continue
        other = room_of(what.removeprefix("popcore").removeprefix("."))
        if other == room or (room in GROUND and other in GROUND):
            continue
        if room == "kernels":
            yield f"{where}: kernels do not even stand on the ground"
        elif other == "kernels" and room not in KERNELS_ARE_LOADED_BY and what.removeprefix("popcore.") not in LAWS:
            yield f"{where}: only engine and native load kernels"
        elif BAND[other] >= BAND[room] and not (room == "cli" and other == "__init__"):
            yield f"{where}: {other} is {'a neighbour of' if BAND[other] == BAND[room] else 'above'} {room}"


def test_every_file_is_in_a_room():
    """
    A new folder or file at the top of popcore/ is given its band here.
    """
    assert {room_of(m) for m in MODULES} - {"", "popcore"} <= set(BAND)


@pytest.mark.parametrize(("path", "module"), [pytest.param(*f, id=str(f[0].relative_to(ROOT))) for f in source_files()])
def test_imports_point_down(path, module):
    """
    Data flows one way through the house, so imports point one way too.
    """
    found = list(faults(path, module))
    assert not found, "\n".join(found)


@pytest.mark.parametrize("module", sorted(LAWS))
def test_laws_import_nothing_heavy(module):
    """
    Only what Python brings.
    """
    assert all(what.split(".")[0] in sys.stdlib_module_names for _, what in imports(MODULES[module], module))


def test_a_wrong_import_is_seen(tmp_path):
    """
    The reader of imports itself: relative, renamed and nested imports are all found.
    """
    file = tmp_path / "wrong.py"
    file.write_text("def f():\n    from popcore import engine as e\n    from . import errors\nfrom popcore.compiler.ir import X\nimport popcore.cli\n")
    assert [w for _, w in imports(file, "graph.wrong")] == ["popcore.compiler.ir", "popcore.cli", "popcore.engine", "popcore.graph"]
