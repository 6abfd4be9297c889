"""``popcore doctor``: what a bug report needs, and whether a small program runs here."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import sys
import tempfile
from pathlib import Path

import click

from popcore import __version__

_PACKAGES = ("numba", "llvmlite", "numpy", "cffi", "ml-dtypes", "msgspec", "platformdirs", "click", "rich")


@click.command()
def doctor() -> None:
    """Print versions and settings, then run a small program and check its result. Exit code 1: something is wrong."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column()
    table.add_column(overflow="fold")
    for what, value in (*_versions(), *_machine(), *_settings()):
        table.add_row(what, value)
    console = Console()
    console.print(table)
    problems = [*_cache_problems(), *_run_problems()]
    for problem in problems:
        console.print(f"problem: {problem}", markup=False, highlight=False, soft_wrap=True)
    if problems:
        sys.exit(1)
    console.print("a small program ran and gave the right result")


def _versions() -> list[tuple[str, str]]:
    rows = [("popcore", __version__), ("Python", f"{platform.python_version()} ({platform.python_implementation()})")]
    for package in _PACKAGES:
        try:
            rows.append((package, importlib.metadata.version(package)))
        except importlib.metadata.PackageNotFoundError:
            rows.append((package, "not installed"))
    return rows


def _machine() -> list[tuple[str, str]]:
    compiler = next((found for name in ("c++", "g++", "clang++") if (found := shutil.which(name))), None)
    return [
        ("system", platform.platform()),
        ("CPU", f"{_cpu_name()}, {len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count()} cores usable"),
        ("C++ compiler", compiler or "none found; only codelets written in C++ need one"),
    ]


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:  # not Linux
        lines = []
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.processor() or platform.machine())


def _settings() -> list[tuple[str, str]]:
    from popcore.native import cache_folder

    names = sorted(n for n in os.environ if n.startswith(("POPCORE_", "POPLAR_", "NUMBA_")))
    return [("cache", str(cache_folder())), *((name, os.environ[name]) for name in names)]


def _cache_problems() -> list[str]:
    from popcore.native import cache_folder

    folder = cache_folder()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return []
    except OSError as error:
        return [f"the cache folder {folder} cannot be written: {error.strerror}. Set POPCORE_CACHE_DIR to one that can"]


def _run_problems() -> list[str]:
    import numpy as np

    import popcore as pc

    class Triple(pc.Vertex):
        x: pc.InOut[pc.Vector[pc.FLOAT]]

        def compute(self) -> None:
            for i in range(len(self.x)):
                self.x[i] = 3.0 * self.x[i]

    try:
        device = pc.Device("M2000", num_ipus=1, tiles_per_ipu=4)
        graph = pc.Graph(device.target)
        x = graph.add_variable(pc.FLOAT, (8,), name="x")
        step = graph.add_compute_set("triple")
        for tile in range(4):
            graph.set_tile_mapping(x[2 * tile : 2 * tile + 2], tile)
            graph.add_vertex(step, Triple, {"x": x[2 * tile : 2 * tile + 2]}, tile=tile)
        graph.create_host_write("x", x)
        graph.create_host_read("x", x)
        engine = pc.Engine(graph, pc.program.Execute(step), device=device)
        engine.write_tensor("x", np.arange(8, dtype=np.float32))
        engine.run()
        if not np.array_equal(engine.read_tensor("x"), 3 * np.arange(8, dtype=np.float32)):
            return [f"a small program gave {engine.read_tensor('x').tolist()}"]
    except Exception as error:  # whatever it is, the report is what the user came for
        return [f"a small program failed: {type(error).__name__}: {error}"]
    return []
