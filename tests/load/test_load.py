"""Does popcore stay whole under many engines, threads and processes, on full disks, and when it is interrupted?"""

import errno
import os
import signal
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import popcore as pc
from popcore import files
from popcore.bindings import cache
from popcore.kernels import objects
from tests.load.work import COMMAND, build, disk_full, growth, interrupted, run, share_a_cold_cache


def test_engines_leave_nothing_behind():
    """
    Memory within 5 %, no thread and no open file more, after so many engines have come and gone.
    """
    before, after, threads, opened = growth(40, 15)
    assert after <= 1.05 * before, f"{before:,} bytes, then {after:,}"
    assert threads <= 0
    assert opened <= 0


def test_engines_in_threads():
    """
    Eight engines in eight threads, of two threads each, compute what they compute alone.
    """
    expected = [run(number) for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(2):
            assert list(pool.map(run, range(8), [2] * 8)) == expected


def test_processes_share_a_cold_cache(tmp_path):
    """
    Two at once fill one empty cache, and agree; a third finds all of it. ``python -m tests.load`` has four.
    """
    assert share_a_cold_cache(tmp_path / "cache", 2) == run(3).hex()


@pytest.mark.parametrize("after", [0, 100, 700])
def test_a_full_disk_leaves_what_was_there(after, tmp_path):
    """
    Executable, state, report: the file of before is there, whole, and nothing else.
    """
    graph, prog = build()
    executable = pc.compile_graph(graph, prog)
    engine = pc.Engine(executable, options={"engine.threads": 1})
    writers = {"executable": executable.save, "state": engine.save_state, "report": lambda path: files.write_text(path, "x" * 5000)}
    for name, write in writers.items():
        (tmp_path / name).write_bytes(b"old")
        with disk_full(after), pytest.raises(OSError, match="File too large"):
            write(tmp_path / name)
        assert (tmp_path / name).read_bytes() == b"old"
    assert sorted(os.listdir(tmp_path)) == sorted(writers)


def test_a_cache_on_a_full_disk_is_said_and_done_without(tmp_path, caplog):
    """
    What cannot be kept is compiled again another time.
    """
    tmp_path.chmod(0o700)
    store = objects.Cache(tmp_path)
    assert store.put("key", b"old")
    with disk_full(50):
        assert not store.put("key", b"code" * 1000)
        cache.keep(tmp_path / "unit.record", b"{}" * 1000)
    assert store.get("key") == b"old"
    assert sorted(os.listdir(tmp_path)) == ["key"]
    assert "is not kept" in caplog.text
    assert "cannot keep" in caplog.text


@pytest.mark.parametrize("failing", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_disk_that_fails_at_the_end(failing, tmp_path, monkeypatch):
    """
    Some file systems tell only when the file is flushed.
    """

    def fails(_):
        raise OSError(failing, os.strerror(failing))

    (tmp_path / "file").write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", fails)
    graph, prog = build()
    executable = pc.compile_graph(graph, prog)
    with pytest.raises(OSError, match=os.strerror(failing)):
        executable.save(tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_interrupted_at_any_moment(number, tmp_path):
    """
    While it compiles, runs or saves: it ends at once, and every file is whole; SIGINT, after which Python tidies up, leaves no scraps.
    """
    assert interrupted(tmp_path, number, 3) == 3


def test_a_run_without_end_is_interrupted():
    """
    On two threads, both in native code.
    """
    process = subprocess.Popen([*COMMAND, "loop"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "begun\n"
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode in (-signal.SIGINT, 130)
    assert said.count("KeyboardInterrupt") == 1


def test_an_interrupted_engine_runs_again():
    """
    Its threads are parked, not stuck.
    """
    graph, prog = build()
    going = graph.add_constant(pc.BOOL, (), True, tile=0)
    engine = pc.Engine(graph, [pc.program.RepeatWhileTrue(pc.program.Sequence(), going, pc.program.Execute(graph.compute_sets[0])), prog])
    engine.connect_stream("in", np.ones(64, np.float32))
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        engine.run(0)
    timer.join()
    engine.load()
    engine.run(1)
    again = pc.Engine(engine.executable)
    again.connect_stream("in", np.ones(64, np.float32))
    again.run(1)
    assert engine.read_tensor("x").tobytes() == again.read_tensor("x").tobytes()
