"""Images: faults, prints, threads, what linking costs, and the arena under them."""

import dataclasses
import mmap
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from popcore.engine import device, jobs, linker
from popcore.engine.device import Arena
from popcore.errors import EngineError
from popcore.executable.opcodes import Op, PhaseFlag
from popcore.kernels import status
from tests.counting import python_calls
from tests.engine.machine import HALT, TILE_BYTES, executable, finish, image, use_drivers

WORDS = TILE_BYTES // 4


@pytest.fixture(autouse=True)
def _drivers(monkeypatch):
    use_drivers(monkeypatch)


def test_a_fault_names_the_first_vertex_whatever_the_number_of_threads(monkeypatch):
    monkeypatch.setattr(jobs, "THREAD_COST", 0)
    made = executable([(Op.NOP,), (Op.RUN, 0), HALT], phases=[(0, 0, 0, 2)], batches=[(0, 0, 4, 0, 2, 10), (0, 0, 4, 4, 1, 18)],
                      tiles=[0, 1, 2, 3], rows=[0, 1, 16, 1, 32, 1])  # fmt: skip
    for threads in (1, 2, 3):
        linked, memory = image(made, threads)
        memory[8 + 0 * WORDS] = 99  # second batch, tile 0
        memory[4 + 2 * WORDS] = memory[0 + 3 * WORDS] = 99  # first batch, tile 2 row 1; tile 3 row 0
        outcome = finish(linked)
        assert (outcome.kind, outcome.pc, outcome.phase) == ("fault", 1, 0)
        fault = outcome.fault
        assert (fault.batch, fault.position, fault.vertex, fault.tile, fault.codelet) == (0, 5, 15, 2, 0)
        assert (fault.site, fault.values, fault.exception) == (3, (99,), None)
        memory[:] = 0
        assert finish(linked).kind == "halt"  # nothing of the fault is left
        linked.close()


def test_prints_come_by_tile_and_vertex_and_lost_ones_are_counted(monkeypatch):
    monkeypatch.setattr(jobs, "THREAD_COST", 0)
    made = executable([(Op.RUN, 0), (Op.RUN, 0), HALT], phases=[(0, 0, 0, 2)], batches=[(1, 0, 4, 0, 2, 0), (0, 0, 4, 4, 2, 8)],
                      tiles=[0, 1, 2, 3], rows=[0, 1, 16, 1, 32, 1, 48, 1])  # fmt: skip
    for threads in (1, 3):
        linked, memory = image(made, threads)
        memory[:: WORDS // 4] = np.arange(20)
        outcome = linked.run(0)
        assert (outcome.kind, outcome.pc, outcome.prints_lost) == ("prints", 1, 0)
        assert [(p.tile, p.vertex, p.values) for p in outcome.prints[::2]] == [(t, 2 * t, (4 * t,)) for t in range(4)]
        assert {(p.batch, p.site, p.worker) for p in outcome.prints} == {(0, 5, 0)}
        assert len(linked.run(outcome.pc).prints) == 8
        assert linked.run(2).kind == "halt"
        linked.close()
    monkeypatch.setattr(linker, "PRINT_WORDS", 25)
    linked, _ = image(made)
    outcome = linked.run(0)
    assert (len(outcome.prints), outcome.prints_lost) == (3, 5)


def test_one_phase_for_the_host_leaves_the_counts_alone():
    made = executable([HALT], phases=[(0, 0, 0, 1)], batches=[(0, 0, 1, 0, 1)], tiles=[2], rows=[8, 2])
    linked, memory = image(made)
    assert linked.run_phase(0).kind == "halt"
    assert memory[2 * WORDS : 2 * WORDS + 5].tolist() == [0, 0, 1, 1, 0]
    assert linked.counts.tolist() == [0]
    assert linked.run(0).kind == "halt"
    assert linked.counts.tolist() == [1]


def random_program(seed, tiles=64):
    """Large phases of several batches and kinds of copies, and what NumPy makes of them."""
    draw = np.random.default_rng(seed)
    lists = [np.sort(draw.choice(tiles, draw.integers(1, tiles), replace=False)) for _ in range(4)]
    batches, begin = [], 0
    for chosen in lists:
        batches.append((0, begin, len(chosen), 4 * len(batches), 2, 0, 512))
        begin += len(chosen)
    rows = [(0, 64), (256, 64), (512, 100), (912, 3), (924, 1), (928, 20), (2048, 40), (2208, 1)]  # the last two: on what copies write
    numbers = np.sort(draw.choice(tiles * 8, 200, replace=False))
    sources = draw.integers(0, tiles * 8, 200)
    pairs = np.stack([sources // 8 * WORDS + 256 + sources % 8 * 32, numbers // 8 * WORDS + 512 + numbers % 8 * 32], axis=1)
    spans = [(t * TILE_BYTES + 1025, t * TILE_BYTES + 3333, 77) for t in range(tiles)]
    groups = [(0, 0, 200, 32), (1, 0, tiles), (2, 0, tiles, 5, 300, 875, 2, 8, 5, 0, WORDS)]
    phases = [(0, 3, 0, 4, 1 << 22, 0), (0, 1, 0, 0, 1 << 22, 0), (0, 3, 0, 4, 1 << 22, PhaseFlag.FUSABLE)]
    code = [(Op.REPEAT, 0, 3, 5), (Op.RUN, 0), (Op.RUN, 1), (Op.RUN, 2), (Op.END, 0, 1), HALT]
    return executable(code, phases=phases, groups=groups, words=pairs, spans=spans, batches=batches, tiles=np.concatenate(lists), rows=rows, tiles_count=tiles)


@pytest.mark.parametrize("seed", range(4))
def test_any_number_of_threads_gives_the_same_memory(seed, monkeypatch):
    made, seen = random_program(seed), []
    monkeypatch.setattr(linker, "STREAM_BYTES", 0)
    for threads in (1, 2, 3, 5):
        linked, memory = image(made, threads)
        memory[:] = np.arange(len(memory)) * 1000
        assert finish(linked).kind == "halt"
        seen.append(memory.copy())
        linked.close()
    for other in seen[1:]:
        np.testing.assert_array_equal(other, seen[0])


def counting_program(rounds):
    """Each round copies every tile's counter to its neighbour and counts; what was copied says how far the neighbour was."""
    tiles = 8
    words = [(t * WORDS, (t - 1) % tiles * WORDS + 64) for t in range(1, tiles)] + [(0, (tiles - 1) * WORDS + 64)]
    words.sort(key=lambda pair: pair[1])
    code = [(Op.REPEAT, 0, rounds, 4), (Op.RUN, 0), (Op.RUN, 1), (Op.END, 0, 1), HALT]
    phases = [(0, 1, 0, 1, 1 << 20), (0, 0, 1, 2, 1 << 20)]
    return executable(code, phases=phases, groups=[(0, 0, tiles, 1)], words=words, batches=[(0, 0, tiles, 0, 1), (0, 0, tiles, 2, 1)],
                      tiles=range(tiles), rows=[0, 1, 128, 1], tiles_count=tiles)  # fmt: skip


def check_counts(memory, rounds):
    counts = memory.reshape(-1, WORDS)[:8, [0, 32, 64]] - 100
    assert counts.tolist() == [[rounds, rounds, rounds - 1]] * 8


@pytest.mark.parametrize("threads", [2, 3, 5])
def test_each_segment_is_done_once_whoever_does_it(threads, monkeypatch):
    monkeypatch.setattr(jobs, "THREAD_COST", 0)
    linked, memory = image(counting_program(20_000), threads)
    memory[:] = 100  # 99 would be a fault
    for times in range(1, 4):
        finish(linked)
        check_counts(memory, 20_000 * times)
    linked.close()


def test_a_worker_that_never_comes_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(jobs, "THREAD_COST", 0)
    linked, memory = image(counting_program(100), 4)
    memory[:] = 100
    lines = linked._sync[status.SYNC_THREADS :]
    lines[status.THREAD_AWAKE : 4 * status.LINE_WORDS : status.LINE_WORDS] = 1  # they are not even there
    finish(linked)
    check_counts(memory, 100)


def test_a_fused_phase_runs_an_intervals_copies_before_its_vertices(monkeypatch):
    monkeypatch.setattr(jobs, "INTERVAL_BYTES", 1 << 10)
    tiles = 32
    words = np.array([(0, t * WORDS) for t in range(1, tiles)])
    made = executable([(Op.RUN, 0), HALT], phases=[(0, 1, 0, 1, 1 << 20, PhaseFlag.FUSABLE)], groups=[(0, 0, tiles - 1, 4)], words=words,
                      batches=[(0, 0, tiles - 1, 0, 1, 0, 1 << 14)], tiles=range(1, tiles), rows=[0, 4], tiles_count=tiles)  # fmt: skip
    for threads in (1, 2):
        planned = jobs.plan_jobs(made, made.groups, threads)
        assert planned.range_of.tolist() == [0]
        kinds = [planned.table[a:b, 0].tolist() for a, b in planned.ranges[0]]
        assert all(len(kind) > 2 and kind == [0, 1] * (len(kind) // 2) for kind in kinds)
        linked, memory = image(made, threads)
        memory[:4] = 7
        assert finish(linked).kind == "halt"
        assert (memory.reshape(-1, WORDS)[1:tiles, :4] == 8).all()
        linked.close()


def test_a_copy_over_a_tiles_end_is_not_fused():
    words = [(0, 2 * WORDS - 2)]
    made = executable([HALT], phases=[(0, 1, 0, 1, 1 << 22, PhaseFlag.FUSABLE)], groups=[(0, 0, 1, 4)], words=words,
                      batches=[(0, 0, 4, 0, 1, 0, 1 << 20)], tiles=range(4), rows=[0, 4])  # fmt: skip
    assert (jobs.plan_jobs(made, made.groups, 2).table[:, 0] == 2).sum() == 2  # a barrier for each thread


def test_work_on_few_tiles_is_shared_evenly():
    tiles = 1000
    made = executable([HALT], phases=[(0, 0, 0, 2, 1 << 22)], batches=[(0, 0, 300, 0, 1, 0, 100), (0, 300, 1, 0, 1, 0, 100)],
                      tiles=[*range(300), 999], rows=[0, 4], tiles_count=tiles)  # fmt: skip
    planned = jobs.plan_jobs(made, made.groups, 2)
    work = [sum(row[3] - row[2] for row in planned.table[a:b].tolist()) for a, b in planned.ranges[0]]
    assert work in ([150, 151], [151, 150])


def test_linking_many_tiles_or_many_phases_takes_no_more_steps():
    tiles = 94_208
    made = executable([HALT], phases=[(0, 0, 0, 4, 1 << 27)], batches=[(0, 0, tiles, 0, 6, 0, 256)] * 4, tiles=range(tiles), rows=[0] * 12)
    big = dataclasses.replace(made, memory=dataclasses.replace(made.memory, tile_base=np.arange(tiles) * 64, arena_bytes=64 * tiles))
    count = 100_000
    groups = [(0, 0, 4, 1)] * count
    phases = np.zeros((count, 6), np.int64)
    phases[:, 0] = phases[:, 2] = np.arange(count)
    phases[:, 1] = phases[:, 3] = np.arange(count) + 1
    phases[:, 4] = 1 << 20
    many = executable([HALT], phases=phases, groups=groups, words=[(0, 1024 * t + 8) for t in range(4)], batches=[(0, 0, 4, 0, 1)] * count,
                      tiles=range(4), rows=[0, 4])  # fmt: skip
    finish(image(made)[0])  # the drivers are compiled
    few = python_calls(lambda: linker.Image(made, Arena(made.memory.arena_bytes), 2))
    for each in (big, many):
        assert python_calls(lambda each=each: linker.Image(each, Arena(each.memory.arena_bytes), 2)) < few + 100


def test_an_image_runs_in_one_thread_at_a_time():
    linked, _ = image(executable([(Op.JUMP, 0)]))
    started = threading.Event()

    def run():
        started.set()
        linked.run(0)

    other = threading.Thread(target=run)
    other.start()
    started.wait()
    time.sleep(0.02)
    with pytest.raises(EngineError, match="another thread"):
        linked.run(0)
    other.join()


def test_a_damaged_executable_is_an_error():
    linked, _ = image(executable([(77,)]))
    with pytest.raises(EngineError, match="no instruction has the number 77"):
        linked.run(0)
    linked, _ = image(executable([(Op.CALL, 0)]))
    with pytest.raises(EngineError, match="deeper"):
        linked.run(0)


def test_workers_use_no_processor_between_runs(monkeypatch):
    monkeypatch.setattr(jobs, "THREAD_COST", 0)
    linked, _ = image(executable([(Op.RUN, 0), HALT], phases=[(0, 0, 0, 1)], batches=[(0, 0, 4, 0, 1)], tiles=range(4), rows=[0, 0]), 3)
    finish(linked)
    time.sleep(0.05)
    before = os.times()
    time.sleep(0.3)
    after = os.times()
    assert after.user - before.user + after.system - before.system < 0.1
    finish(linked)  # they wake again
    assert linked.counts.tolist() == [2, 2]
    linked.close()
    assert not [t for t in threading.enumerate() if t.name.startswith("popcore-")]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_process_starts_workers_of_its_own(monkeypatch):
    monkeypatch.setattr(jobs, "THREAD_COST", 0)
    linked, _ = image(executable([(Op.RUN, 0), HALT], phases=[(0, 0, 0, 1)], batches=[(0, 0, 4, 0, 1)], tiles=range(4), rows=[0, 0]), 2)
    finish(linked)
    child = os.fork()
    if child == 0:
        os._exit(0 if finish(linked).kind == "halt" else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    linked.close()


def test_control_c_ends_an_endless_program():
    script = (
        "import sys; from tests.engine.machine import *\n"
        "linked, _ = image(executable([(Op.JUMP, 0)], codelets=()))\n"
        "try:\n    print('ready', flush=True)\n    finish(linked)\nexcept KeyboardInterrupt:\n    sys.exit(7)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        child.send_signal(signal.SIGINT)
        assert child.wait(60) == 7


def test_an_arena_costs_nothing_until_it_is_touched():
    with Arena(60 << 30) as arena:
        assert arena.address % 64 == 0
        arena.memory[-1] = 5
        arena.clear()
        assert arena.memory[-1] == 0
        arena.write_initial(np.array([(3, 1, 2)]), np.arange(5, dtype=np.uint8))
        assert arena.memory[:6].tolist() == [0, 0, 0, 1, 2, 0]
    assert len(arena.memory) == 0


@pytest.mark.parametrize("missing", ["MAP_PRIVATE", "MAP_ANONYMOUS", "MADV_HUGEPAGE", "MADV_DONTNEED"])
def test_an_arena_without_the_systems_help(missing, monkeypatch):
    monkeypatch.delattr(mmap, missing)
    arena = Arena(8 << 20)
    assert arena.address % 64 == 0
    assert len(arena.memory) == 8 << 20
    arena.memory[:] = 1
    arena.clear()
    assert not arena.memory.any()
    arena.close()


def test_memory_that_the_machine_does_not_have_is_an_error(monkeypatch):
    monkeypatch.delattr(mmap, "MAP_PRIVATE")
    monkeypatch.setattr(device.np, "zeros", lambda *_: (_ for _ in ()).throw(MemoryError))
    with pytest.raises(EngineError, match="64,000 B"):
        Arena(64_000)
