"""C++ codelets in a process of their own: whatever they do to it is an error, and all else is as without."""

import gc
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import popcore as pc
from popcore import FLOAT, INT, errors, faults, program
from tests.engine.resumable import CASES, CODELETS, Case
from tests.processes import python
from tests.test_pages import linux

pytestmark = linux
ISOLATED = {"debug.isolate": True}


def crashing(address=(0, 0), **options):
    """A vertex on tile 2, whose way to end is told by the host. Others of its codelet are on tiles 1 and 3, and do nothing."""
    case = Case(**options)
    case.graph.add_codelets(CODELETS / "crashing.cpp")
    vertices = []
    for tile in (1, 2, 3):
        how, x = case.variable(f"how{tile}", INT, 0, tile=0), case.variable(f"x{tile}", INT, [0, 0, 0], tile=tile)
        vertices.append(("Crash", {"how": how, "x": x}, tile))
    step = case.graph.add_compute_set("fragile")
    for codelet, fields, tile in vertices:
        vertex = case.graph.add_vertex(step, codelet, fields, tile=tile)
        case.graph.set_field_size(vertex["address"], 2)
        case.graph.set_initial_value(vertex["address"], address)
    case.programs = [program.Execute(step)]
    return case


@pytest.fixture(scope="module")
def engine():
    """One engine for all ways to end: each has to leave it usable."""
    return crashing(**ISOLATED).engine()[0]


ENDS = {  # of the process: exit code, signal
    "exit": (3, 3, None, r"called exit\(3\)"),
    "_exit": (4, 0, None, r"called exit\(0\)"),
    "SIGKILL": (9, None, signal.SIGKILL, r"died of SIGKILL"),
    "SIGTERM": (11, None, signal.SIGTERM, r"died of SIGTERM"),
}


@pytest.mark.parametrize("end", ENDS)
def test_a_codelet_that_ends_its_process_is_named(engine, end):
    """
    Codelet, vertex, tile, compute set and file; how the process ended. The engine can be read, and run again.
    """
    how, exit_code, number, match = ENDS[end]
    engine.load()
    engine.write_tensor("how2", how)
    with pytest.raises(
        errors.VertexCrashError, match=rf"(?s)codelet Crash \(vertex 1 on tile 2, compute set 'fragile'\).*{match}.*at .*crashing\.cpp:\d+"
    ) as caught:
        engine.run()
    assert (caught.value.exit_code, caught.value.signal) == (exit_code, number)
    assert engine.read_tensor("x2")[0] == 1, "what it wrote before it ended is there"
    engine.write_tensor("how2", 0)
    engine.run()
    assert [engine.read_tensor(f"x{tile}")[0] for tile in (1, 2, 3)] == [2, 2, 1]


@pytest.mark.parametrize(
    ("how", "kind", "match"),
    [
        (1, "RuntimeError", "an access outside of memory"),
        (2, "RuntimeError", r"abort\(\)"),
        (5, "RecursionError", "the stack is full"),
        (6, "RuntimeError", "an exception left compute: of its own"),
        (7, "RuntimeError", r"abort\(\)"),
        (8, "RuntimeError", r"abort\(\)"),
        (10, "AssertionError", r"assert\(x\[0\] < 0\) failed"),
        (12, "ZeroDivisionError", "integer division by zero"),
        (13, "RuntimeError", r"abort\(\)"),
    ],
)
def test_what_is_noticed_without_is_noticed_the_same(engine, how, kind, match):
    """
    Texts that lie in the other process arrive; the engine goes on, after heap corruption too.
    """
    engine.load()
    engine.write_tensor("how2", how)
    with pytest.raises(errors.VertexError, match=rf"(?s)codelet Crash \(vertex 1 on tile 2, compute set 'fragile'\)\n  raised {kind}: {match}"):
        engine.run()
    engine.write_tensor("how2", 0)
    engine.run()
    assert engine.read_tensor("x2")[0] == 2


@pytest.mark.parametrize("name", CASES)
def test_the_bits_are_the_same(name, tmp_path):
    """
    All that a run can depend on, host callbacks and saved states included: states go from one kind of engine to the other.
    """
    found = []
    for first, second in ((False, False), (True, True), (True, False), (False, True)):
        case = CASES[name]()
        engine, _ = case.engine(**{"debug.isolate": first})
        for index in case.before:
            engine.run(index)
        engine.save_state(tmp_path / "s")
        other, filled = case.engine(**{"debug.isolate": second})
        other.load_state(tmp_path / "s")
        for index in case.after:
            other.run(index)
        found.append(case.found(other, filled))
    for each in found[1:]:
        assert [key for key, values in found[0].items() if each[key].tobytes() != values.tobytes()] == []


def test_prints_and_checks_arrive():
    """
    A codelet's prints, and what the full check finds, with the line.
    """
    import io

    case = Case(**{"debug.check": "full", **ISOLATED})
    case.graph.add_codelets("""
        #include <poplar/Vertex.hpp>
        class Looks : public poplar::Vertex {
        public:
          poplar::Input<poplar::Vector<float>> x;
          poplar::Output<float> y;
          bool compute() {
            printf("looking at %u", x.size());
            *y = x[0];
            return true;
          }
        };
    """)
    x, y = case.graph.add_variable(FLOAT, (3,), name="never", tile=0), case.variable("y", FLOAT, 0.0)
    case.programs = [case.step(("Looks", {"x": x, "y": y}, 2))]
    engine, _ = case.engine()
    shown = io.StringIO()
    engine.set_print_stream(shown)
    with pytest.raises(errors.UninitialisedReadError, match=r"(?s)codelet Looks.*element 0 of .*never.*at .*source-.*:\d+") as caught:
        engine.run()
    assert shown.getvalue() == "[0.2.0] looking at 3\n"
    assert caught.value.tile == 2


def test_variables_outside_of_vertices_live_on_until_a_crash(engine):
    """
    From run to run, and not past a crash or a load.
    """
    engine.load()
    counts = []
    for how in (0, 0, 3, 0):
        engine.write_tensor("how2", how)
        if how:
            with pytest.raises(errors.VertexCrashError):
                engine.run()
            continue
        engine.run()
        counts.append(engine.read_tensor("x1")[1])
    assert counts == [1, 2, 1]


def test_faults_can_be_injected_there():
    """
    Steps that are looked at one by one run in the other process, too.
    """
    engine = crashing(**ISOLATED).engine()[0]
    engine.write_tensor("how3", 4)
    with faults.inject(engine, [faults.DeadTile(0, at=7)]), pytest.raises(errors.VertexCrashError, match="vertex 2 on tile 3"):
        engine.run()


def test_python_codelets_need_no_process():
    """
    They cannot crash; so nothing is forked for a graph without C++.
    """
    gc.collect()
    before = set(children())
    case = CASES["training"]()
    engine, _ = case.engine(**ISOLATED)
    engine.run()
    assert set(children()) <= before


def children():
    """Processes whose parent this is."""
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()


def test_an_engine_that_is_dropped_ends_its_process(engine):
    """
    And leaves no file open, nor a zombie.
    """
    gc.collect()
    processes, files = len(children()), len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        crashing(**ISOLATED).engine()[0].run()
    gc.collect()
    assert len(children()) == processes
    assert len(os.listdir("/proc/self/fd")) == files


def test_in_a_thread_beside_others():
    """
    The engine runs in a thread while another one is busy.
    """
    case = crashing(**ISOLATED)
    stop = threading.Event()
    busy = threading.Thread(target=lambda: [time.sleep(0) for _ in iter(stop.is_set, True)])
    busy.start()
    engine = case.engine()[0]
    runs = threading.Thread(target=lambda: [engine.run() for _ in range(20)])
    runs.start()
    runs.join()
    stop.set()
    busy.join()
    assert engine.read_tensor("x1")[0] == 20


SLOW = """
import sys
from tests.engine.test_isolated import ISOLATED, Case
from popcore import INT, program
case = Case(**ISOLATED)
case.graph.add_codelets('''
    #include <poplar/Vertex.hpp>
    class Slow : public poplar::Vertex {
    public:
      poplar::InOut<poplar::Vector<int>> x;
      bool compute() { for (volatile int i = 0; i < 20000000; ++i) {} x[0] += 1; return true; }
    };
''')
x = case.variable("x", INT, [0])
case.programs = [program.Repeat(1000, case.step(("Slow", {"x": x}, 0)))]
engine = case.engine()[0]
print("running", flush=True)
try:
    engine.run()
except KeyboardInterrupt:
    done = int(engine.read_tensor("x")[0])
    case.programs = [case.programs[0].body]
    print("stopped", 0 < done < 1000, flush=True)
"""


def start(text):
    child = subprocess.Popen(**python("-c", text, stdout=subprocess.PIPE, start_new_session=True))
    assert child.stdout.readline() == b"running\n"
    time.sleep(0.4)
    return child


def members(group):
    """Processes of a group that run; not those that ended and wait for somebody to ask how."""
    found = []
    for each in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, its = each.read_text().rpartition(")")[2].split()[:3]
        except OSError:  # it ended meanwhile
            continue
        if int(its) == group and state != "Z":
            found.append(each.parent.name)
    return found


def test_ctrl_c_stops_the_run():
    """
    A signal to the whole group, as a terminal sends it: KeyboardInterrupt, the engine can be read, and no process stays.
    """
    with start(SLOW) as child:
        os.killpg(child.pid, signal.SIGINT)
        assert child.stdout.readline() == b"stopped True\n"
        assert child.wait() == 0
    assert not members(child.pid)


def test_the_process_ends_with_its_parent():
    """
    Of a parent that is killed nothing stays behind.
    """
    with start(SLOW) as child:
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
    for _ in range(100):
        if not members(child.pid):
            return
        time.sleep(0.1)
    os.killpg(child.pid, signal.SIGKILL)
    pytest.fail("the other process is still there")


def test_with_a_debugger_it_is_refused(monkeypatch):
    """
    ``POPCORE_INTERPRET=1`` is for stopping in codelets.
    """
    case = crashing()
    monkeypatch.setenv("POPCORE_INTERPRET", "1")
    with pytest.raises(errors.OptionError, match=r"debug\.isolate.*as Python"):
        case.engine(**ISOLATED)


def test_what_is_not_noticed_without(tmp_path):
    """
    The same exit() takes the whole process along: what isolation is for.
    """
    text = "from tests.engine.test_isolated import crashing\ne = crashing().engine()[0]\ne.write_tensor('how2', 3)\nprint('running', flush=True)\ne.run()\n"
    with start(text) as child:
        assert child.wait() == 3


def test_c_codelets_are_named_without_a_vertex(tmp_path):
    """
    A driver made by hand does not say which vertex it is at.
    """
    (tmp_path / "leaves.c").write_text("""
        #include <popcore/codelet_abi.h>
        #include <stdlib.h>
        static int64_t run(uint8_t *mem, const int64_t *base, const int32_t *tiles, int64_t t0, int64_t t1, const int32_t *rows, int64_t nrows, uint64_t *aux) {
          exit(9);
        }
        static const popcore_field fields[] = {{"x", "int", POPCORE_INOUT, POPCORE_SCALAR, 0, 0}};
        const popcore_type popcore_types[] = {{"Leaves", fields, run, 1, 1, 0, 0}};
        const int32_t popcore_type_count = 1;
        const int32_t popcore_abi_version = POPCORE_ABI_VERSION;
    """)
    case = Case(**ISOLATED)
    case.graph.add_codelets(tmp_path / "leaves.c")
    case.programs = [program.Sequence(case.step(("Leaves", {"x": case.variable("x", INT, 0)}, 2), name="there"))]
    with pytest.raises(errors.VertexCrashError, match=r"codelet Leaves \(compute set 'there'\)\n  called exit\(9\)") as caught:
        case.engine()[0].run()
    assert (caught.value.tile, caught.value.exit_code) == (-1, 9)


def test_a_stray_pointer_hurts_nobody_else():
    """
    A codelet that writes to an address where the user's process has an array changes it in its own copy alone.
    """
    for isolated, found in ((True, 7), (False, 99)):
        mine = np.full(4096, 7, np.int32)
        where = mine.ctypes.data
        engine = crashing(((where & 0xFFFFFFFF), where >> 32), **{"debug.isolate": isolated}).engine()[0]
        engine.write_tensor("how2", 14)
        engine.run()
        assert mine[0] == found
        assert engine.read_tensor("x2")[0] == 1


def test_a_process_that_somebody_kills_between_runs(engine):
    """
    No vertex is blamed that had not begun.
    """
    engine.load()
    engine.run()
    os.kill(engine.parts("a test").image._child._process, signal.SIGKILL)
    with pytest.raises(errors.VertexCrashError, match=r"died of SIGKILL.*before any vertex began"):
        engine.run()
    engine.run()
    assert engine.read_tensor("x1")[0] == 2


def test_a_forked_copy_is_refused(engine):
    """
    It would share the tiles' memory with the engine in the parent.
    """
    engine.load()
    engine.run()
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            engine.run()
        except errors.EngineError as error:
            os.write(writing, error.message.encode())
        os._exit(0)
    os.close(writing)
    os.waitpid(process, 0)
    with os.fdopen(reading, "rb") as told:
        assert b"was made in another process" in told.read()
    engine.run()
    assert engine.read_tensor("x1")[0] == 2


def test_memory_is_freed_when_it_is_cleared():
    """
    Shared memory, too: what load() clears goes back, and what a state writes is what is there.
    """
    from popcore.pages import Pages, zeros

    made = Pages(64 << 20, "a test", shared=True)
    made.memory[10_000_000] = 3
    assert [(first <= 10_000_000 < last, last - first < 4 << 20) for first, last in made.used()] == [(True, True)]
    made.clear()
    assert not made.memory.any()
    assert not np.any(zeros((3, 5), np.int64, shared=True))
    assert zeros((0, 5), np.int64, shared=True).shape == (0, 5)


def test_options_say_what_it_is():
    assert "process of their own" in pc.options()["debug.isolate"]


@pytest.mark.parametrize("option", [{"debug.first_nan": True}, {"debug.check": "bounds", "debug.check.collect": True}])
def test_what_looks_into_the_process_is_refused(option):
    """
    A watcher of phases, and tables of findings, whose lines only that process knows.
    """
    with pytest.raises(errors.OptionError, match=r"(?s)debug.isolate is on, and debug.first_nan or debug.check.collect.*try:"):
        crashing(**ISOLATED, **option).engine()
