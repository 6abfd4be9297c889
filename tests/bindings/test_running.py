"""What happens while codelets run: prints, faults, time limits, waiting workers, variables of their own."""

import gc
import io
from pathlib import Path

import numpy as np
import pytest

import popcore as pc
from popcore import FLOAT, errors, program
from popcore.bindings import library
from popcore.bindings.cache import work_folder
from popcore.bindings.unit import open_unit
from tests.bindings.vertex import CODELETS, Built, run

FILES = ("running.cpp", "waiting.cpp")
i32 = np.int32


@pytest.fixture(scope="module", autouse=True)
def limit():
    """A short time limit, for what is loaded while these tests run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POPCORE_CALL_SECONDS", "0.5")
        yield


def test_printf(engine_class):
    """
    Lines go where those of Python codelets go, named by tile and worker.
    """
    built = Built("running.cpp", "Talk", {"x": np.float32([1, 2.5, 3])})
    engine = engine_class(built.graph, built.program)
    stream = io.StringIO()
    engine.set_print_stream(stream)
    engine.run()
    assert stream.getvalue() == "[0.3.1] worker 1 sees 2.5 of three\n[0.3.0] worker 0 sees 1.0 of three\n"


@pytest.mark.parametrize(
    ("x", "cause", "says"),
    [
        ([1], AssertionError, r"two are needed"),
        ([0, 1], ZeroDivisionError, "division by zero"),
        ([-7, 1], RuntimeError, r"abort\(\)"),
        ([-8, 1], RuntimeError, "outside of memory"),
    ],
)
def test_faults(engine_class, x, cause, says):
    """
    What would end the process ends the run: codelet, vertex, tile and compute set are named. The next run works.
    """
    built = Built("running.cpp", "Careful", {"x": np.array(x, i32), "out": i32(0)})
    for _ in range(2):
        with pytest.raises(errors.VertexError, match=says) as caught:
            built.run(engine_class)
        assert isinstance(caught.value.__cause__, cause)
        for part in ("Careful", "vertex 0", "tile 3", "'cs'", "running.cpp:"):
            assert part in str(caught.value)
    assert Built("running.cpp", "Careful", {"x": i32([50, 1]), "out": i32(0)}).run(engine_class)["out"] == 2


def test_assertions_name_their_line(engine_class):
    """
    A failed assert is reported with its file and line.
    """
    line = next(n for n, text in enumerate((CODELETS / "running.cpp").read_text(encoding="utf-8").splitlines(), 1) if "assert(" in text)
    with pytest.raises(errors.VertexError) as caught:
        Built("running.cpp", "Careful", {"x": i32([1]), "out": i32(0)}).run(engine_class)
    assert caught.value.line == line
    assert caught.value.file.endswith("running.cpp")


def test_a_call_without_end_is_stopped(engine_class):
    """
    A codelet that never returns is stopped after its time, and named.
    """
    with pytest.raises(errors.VertexError, match=r"Endless[\s\S]*TimeoutError"):
        Built("running.cpp", "Endless", {"x": np.uint32([1, 1])}).run(engine_class)


def test_a_library_stays_where_it_is(tmp_path):
    """
    Signal handlers lead into a library until the process ends, so it is not unloaded with the last object that knows it.
    """
    native = open_unit(CODELETS / "running.cpp").find("Careful")
    native.driver()
    built = work_folder() / native.unit._record.drivers["Careful"]
    (tmp_path / "again.so").write_bytes(built.read_bytes())
    library.load.__wrapped__(tmp_path, "again.so")
    gc.collect()
    assert "again.so" in Path("/proc/self/maps").read_text(encoding="utf-8")


def test_workers_that_wait_for_ever_are_stopped(engine_class):
    """
    The time limit holds for workers on threads too, and names the codelet.
    """
    with pytest.raises(errors.VertexError, match=r"Deadlock[\s\S]*workers that wait for each other"):
        Built("waiting.cpp", "Deadlock", {"arrived": np.zeros(7, np.uint32)}).run(engine_class)


def test_workers_that_wait_for_each_other():
    """
    A barrier among the six workers: they are threads where the source has what waiting needs.
    """
    x = np.arange(6, dtype=np.int32)
    found = run("waiting.cpp", "Barrier", {"arrived": np.zeros(6, np.uint32), "x": x, "y": np.zeros(6, np.int32)})
    assert np.array_equal(found["y"], 2 * np.roll(x, -1) + 2 * np.roll(x, 1))


def test_variables_outside_of_vertices_are_the_tiles_own(engine_class):
    """
    Globals and statics are per tile, shared by the codelets of a file, and start over with an engine and when one is loaded.
    """
    graph = pc.Graph(pc.Device("M2000", num_ipus=1, tiles_per_ipu=8).target)
    graph.add_codelets(CODELETS / "globals.cpp")
    fill, look = graph.add_compute_set("fill"), graph.add_compute_set("look")
    out = graph.add_variable(FLOAT, (3, 6), name="out", tile=0)
    graph.set_initial_value(out, np.zeros((3, 6)))
    for i in range(3):
        if i < 2:
            graph.add_vertex(fill, "Fill", {"start": 10.0 * (i + 1)}, tile=i)
        graph.add_vertex(look, "Look", {"out": out[i]}, tile=i)
    graph.create_host_read("out", out)
    both = program.Sequence(program.Execute(fill), program.Execute(look))
    for again in range(3):
        if again < 2:
            engine = engine_class(graph, program.Repeat(2, both))
        else:
            engine.load()
        engine.run()
        assert engine.read_tensor("out").tolist() == [[10, 11, 12, 13, 102, 2], [20, 21, 22, 23, 102, 2], [0, 0, 0, 0, 100, 2]]
