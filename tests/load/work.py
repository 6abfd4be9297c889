"""What the load tests do again and again: a graph with everything, compiled, run, saved and dropped."""

from __future__ import annotations

import gc
import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import popcore as pc
from popcore import FLOAT, errors, program
from tests.codelets import Axpy, SumRows

CODELETS = [Axpy, SumRows]
COMMAND = [sys.executable, "-m", "tests.load.work"]


def build(number: int = 0) -> tuple[pc.Graph, program.Program]:
    """A graph and program with copies, vertices, a loop, a stream, a remote buffer; ``number`` makes them differ."""
    graph = pc.Graph(pc.Device("M2000", num_ipus=1, tiles_per_ipu=4).target)
    x = graph.add_variable(FLOAT, (8, 64), name="x", mapping="linear")
    out = graph.add_variable(FLOAT, (), name="out", tile=1)
    cs = graph.add_compute_set("step")
    graph.add_vertex(cs, SumRows, {"rows": x[2:5], "out": out}, tile=1)
    graph.add_vertex(cs, Axpy, {"x": x[7], "y": x[1], "k": float(number % 7)}, tile=3)
    stream, far = graph.add_host_to_device_fifo("in", FLOAT, 64), graph.add_remote_buffer("far", FLOAT, 64, repeats=4)
    graph.create_host_read("x", x)
    graph.create_host_read("out", out)
    graph.create_host_write("x", x)
    body = program.Sequence(program.Copy(stream, x[0]), program.Copy(x[0], x[1]), program.Execute(cs), program.Copy(x[7], far, 2))
    return graph, program.Sequence(program.Repeat(5, body))


def run(number: int = 0, threads: int = 1) -> bytes:
    """Make an engine, run it, and give what it computed."""
    graph, prog = build(number)
    engine = pc.Engine(graph, prog, options={"engine.threads": threads})
    engine.connect_stream("in", np.arange(64, dtype=np.float32) + number)
    engine.write_tensor("x", np.ones((8, 64), np.float32))
    engine.run()
    assert engine.profile().total_cycles > 0
    return engine.read_tensor("x").tobytes() + engine.read_tensor("out").tobytes()


def resident_bytes() -> int:
    """Of this process, now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def growth(engines: int, warm: int) -> tuple[int, int, int, int]:
    """Resident bytes, threads and open files left by ``engines`` engines after ``warm`` others.

    Returns: resident bytes before and after, threads more, open files more.
    """
    for number in range(warm):
        run(number, 1 + number % 2)
    gc.collect()
    before, threads, files = resident_bytes(), threading.active_count(), _open_files()
    for number in range(engines):
        run(number, 1 + number % 2)
    gc.collect()
    return before, resident_bytes(), threading.active_count() - threads, _open_files() - files


def _open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@contextmanager
def disk_full(after: int) -> Iterator[None]:
    """No file grows beyond so many bytes, as on a disk that is full: writing more is an OSError."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (after, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def share_a_cold_cache(folder: Path, processes: int) -> str:
    """What each of so many processes computes that fill one empty cache at once; then one more must find all of it there."""
    environment = os.environ | {"POPCORE_CACHE_DIR": str(folder)}
    started = [subprocess.Popen([*COMMAND, "once"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(processes)]
    results = [process.communicate(timeout=600) for process in started]
    assert not any(process.returncode for process in started), results
    last = subprocess.run([*COMMAND, "once"], env=environment, capture_output=True, text=True, check=True)
    assert {result for result, _ in results} == {last.stdout}
    assert "Numba False" in last.stderr
    assert not [name for name in os.listdir(folder) if name.startswith(".")]
    return last.stdout


def interrupted(folder: Path, number: signal.Signals, times: int) -> int:
    """Send a signal to ``again_and_again`` at a random moment, so many times, and look at what it leaves. Returns how often all was well.

    A SIGINT that arrives while Python drops an engine is lost, as in any finaliser: then another one is sent, as somebody would.
    """
    luck, fine, said = random.Random(int(number)), 0, ""
    for _ in range(times):
        process = subprocess.Popen([*COMMAND, "save", str(folder)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        time.sleep(luck.random() * 0.4)
        for _ in range(5):
            process.send_signal(number)
            try:
                _, said = process.communicate(timeout=15)
                break
            except subprocess.TimeoutExpired:
                continue
        assert process.returncode in (-number, 130), said
        if number == signal.SIGINT:  # Python tidies up
            assert "KeyboardInterrupt" in said
            assert sorted(os.listdir(folder)) == ["executable", "state"]
        engine = pc.Engine(pc.Executable.load(folder / "executable", codelets=CODELETS))
        engine.connect_stream("in", np.arange(64, dtype=np.float32))
        try:
            engine.load_state(folder / "state")
        except errors.StateFileError as error:
            if "another program" not in error.message:  # of the Executable before: the signal came between the two
                raise
        fine += 1
    return fine


def again_and_again(folder: Path) -> None:
    """Until a signal comes: build, compile, run, save an Executable and a state under the same names. Says when it has begun."""
    number = 0
    while True:
        graph, prog = build(number)
        executable = pc.compile_graph(graph, prog)
        executable.save(folder / "executable")
        engine = pc.Engine(executable, options={"engine.threads": 2})
        engine.connect_stream("in", np.arange(64, dtype=np.float32))
        engine.run()
        engine.save_state(folder / "state")
        number += 1
        if number == 1:
            print("begun", flush=True)


def for_ever() -> None:
    """A program that never ends, on two threads."""
    graph, _ = build()
    going = graph.add_constant(pc.BOOL, (), True, tile=0)
    step = program.Execute(graph.compute_sets[0])
    engine = pc.Engine(graph, program.RepeatWhileTrue(program.Sequence(), going, step), options={"engine.threads": 2})
    print("begun", flush=True)
    engine.run()


if __name__ == "__main__":
    what, *arguments = sys.argv[1:]
    if what == "save":
        again_and_again(Path(arguments[0]))
    elif what == "loop":
        for_ever()
    else:
        began = time.monotonic()
        sys.stdout.write(run(3).hex())
        print(f"{time.monotonic() - began:.2f} s, Numba {'numba' in sys.modules}", file=sys.stderr)
