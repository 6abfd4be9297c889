"""Does what the host does with each engine that can run a case, and says where they differ."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import popcore as pc
from popcore import errors
from popcore.engine import jobs, linker
from tests.fuzz.case import Case, Feed
from tests.fuzz.vertices import POOL

Seen = dict[str, "bytes | str"]


def bits(array: np.ndarray) -> bytes:
    """An array's bytes, all NaNs made one: which NaN an operation gives is not defined."""
    made = np.array(array)
    if made.dtype.kind == "f":
        made[np.isnan(made)] = np.nan
    return made.tobytes()


def observed(engine: Any, case: Case) -> Seen:
    """Everything the host sees of an engine that does what a case's script says.

    Of several replicas each takes the next transfer of a stream, so that they may come to disagree: that is seen too.
    """
    seen: Seen = {}
    prints = io.StringIO()
    engine.set_print_tensor_stream(prints)
    results = {name: values.copy() for name, values in case.outputs.items()}
    for name, (how, values) in case.inputs.items():
        feed = Feed(values)
        engine.connect_stream(name, {"array": values.copy(), "function": feed.fetch, "callback": feed}[how])
    for name, values in results.items():
        engine.connect_stream(name, values)
    for number, (action, *arguments) in enumerate(case.script):
        if action == "write":
            engine.write_tensor(*arguments)
        elif action == "row":
            handle, row, values = arguments
            engine.copy_to_remote_buffer(values, handle, row)
        elif action == "load":
            engine.load()
        else:
            try:
                engine.run(*arguments)
            except errors.ProgramError as error:  # the program stopped itself; its memory can be read
                seen[f"end of action {number}"] = f"{type(error).__name__}: {error}"
            seen |= {f"{name} after action {number}": bits(engine.read_tensor(name)) for name in case.graph.host_reads}
            seen |= {f"{name} after action {number}": bits(values) for name, values in results.items()}
    for name, remote in case.graph.remotes.items():
        for replica in range(case.replicas):
            seen |= {f"row {r} of {name}, replica {replica}": bits(engine.copy_from_remote_buffer(name, r, replica=replica)) for r in range(remote.repeats)}
    seen["prints"] = prints.getvalue()
    return seen


def differences(a: Seen, b: Seen) -> dict[str, tuple[Any, Any]]:
    """What is not the same in both."""
    return {name: (a.get(name), b.get(name)) for name in {**a, **b} if a.get(name) != b.get(name)}


@contextmanager
def small_phases_count(fused: bool) -> Iterator[None]:
    """Phases that move a few bytes, as all do here, are cut among threads, and fused, as if they were large: who makes and runs an engine must be inside."""
    with mock.patch.multiple(jobs, THREAD_COST=0, INTERVAL_BYTES=16, IMBALANCE=1e9 if fused else jobs.IMBALANCE), mock.patch.object(linker, "THREAD_COST", 0):
        yield


def engines(case: Case, folder: Path) -> Iterator[tuple[str, Any]]:
    """All the ways to run a case that must not differ from the reference, each with its name; ``folder`` is for files."""
    compiled = pc.compile_graph(case.graph, case.programs)
    one = pc.Engine(compiled, options={"engine.threads": 1})
    yield "1 thread", one
    one.load()
    yield "1 thread, loaded again", one
    with small_phases_count(fused=True):
        yield "2 threads, tiles fused", pc.Engine(compiled, options={"engine.threads": 2})
    with small_phases_count(fused=False):
        yield "2 threads, tiles not fused", pc.Engine(compiled, options={"engine.threads": 2, "engine.fuseTiles": False})
    compiled.save(folder / "executable")
    yield "from a file", pc.Engine(pc.Executable.load(folder / "executable", codelets=[*POOL, *case.needs]), options={"engine.threads": 1})
    yield "checked in full", pc.Engine(case.graph, case.programs, options={"engine.threads": 2, "debug.check": "full"})


def compare(case: Case, folder: Path) -> dict[str, dict[str, tuple[Any, Any]]]:
    """By engine, what is not as the reference says; and whether two compiles, and a saved Executable saved again, are the same bytes."""
    expected = observed(pc.ReferenceEngine(case.graph, case.programs), case)
    if any(name.startswith("end of") for name in expected):
        case.features.add("a run that ends early")
    found = {}
    again = {"compiled again": pc.compile_graph(case.graph, case.programs)}
    for name, engine in engines(case, folder):
        found[name] = differences(expected, observed(engine, case))
        if name == "from a file":
            again["loaded and saved"] = engine.executable
    first = (folder / "executable").read_bytes()
    for name, executable in again.items():
        executable.save(folder / "other")
        found[name] = {} if (folder / "other").read_bytes() == first else {"bytes of the file": (len(first), (folder / "other").stat().st_size)}
    return {name: each for name, each in found.items() if each}
