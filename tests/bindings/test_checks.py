"""debug.check of codelets in C++: is every mistake found, at its line, and nothing else?"""

import ctypes
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import popcore as pc
from popcore import FLOAT, HALF, INT, UNSIGNED_INT, errors, program
from popcore.bindings.toolchain import CHECK_RULES
from popcore.bindings.unit import DEVICE_RULES, compile_all, open_unit
from tests.bindings.vertex import CODELETS

X = np.arange(1, 7, dtype=np.float32)


@pytest.fixture(scope="module", autouse=True)
def compiled():
    """The file's types, all in one library for each kind of check."""
    unit = open_unit(CODELETS / "checked.cpp")
    for check in ("bounds", "full"):
        compile_all([unit.find(name) for name in unit.names()], (*DEVICE_RULES, *CHECK_RULES[check]))


def run(graph, codelet, check, tile=2, **fields):
    """Run one vertex; a field is given as its type and shape, with or without values. Returns what the last one holds, if it is all written."""
    graph.add_codelets(CODELETS / "checked.cpp")
    made = {}
    for name, (dtype, shape, *values) in fields.items():
        made[name] = graph.add_variable(dtype, shape, name=name, tile=0)
        if values:
            graph.set_initial_value(made[name], values[0])
    cs = graph.add_compute_set("work")
    graph.add_vertex(cs, codelet, made, tile=tile)
    last = list(made.values())[-1]
    graph.create_host_read("last", last)
    engine = pc.Engine(graph, program.Execute(cs), options={"debug.check": check})
    engine.run()
    return engine.read_tensor("last")


def test_nothing_is_watched_between_calls(graph):
    """
    An engine's memory may be something else when the next call begins: the library's own, for one.
    """
    run(graph, "Sorted", "full", x=(FLOAT, (6,), X), out=(FLOAT, (6,)))
    unit = open_unit(CODELETS / "checked.cpp").variant((*DEVICE_RULES, *CHECK_RULES["full"]))
    path = unit._folder / unit._record.drivers["Sorted"]
    symbols = dict(
        line.split()[::-2] for line in subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout.splitlines() if len(line.split()) == 3
    )
    base = next(int(line.split("-")[0], 16) for line in Path("/proc/self/maps").read_text().splitlines() if line.endswith(path.name))
    arena, nbytes = (ctypes.c_size_t * 2).from_address(base + int(symbols["_ZN7popcore5watchE"], 16))
    assert arena
    assert nbytes == 0


@pytest.mark.parametrize("check", ["bounds", "full"])
@pytest.mark.parametrize(
    ("codelet", "at", "fields", "says"),
    [
        ("Reads", 40, {"x": (FLOAT, (6,), X)}, r"index x\[40\] is outside its 6 elements"),
        ("Reads", -1, {"x": (FLOAT, (6,), X)}, r"index x\[-1\] is outside its 6 elements"),
        ("Reads", 5, {"x": (FLOAT, (6,), X)}, None),
        ("Rows", 4, {"rows": (FLOAT, (2, 3))}, r"index rows\[3\] is outside its 3 elements"),
        ("Rows", 3, {"rows": (FLOAT, (2, 3))}, None),
    ],
)
def test_an_index_outside_of_its_field(graph, check, codelet, at, fields, says):
    """
    Is told with field, index, size and line; the last one inside is fine.
    """
    if says is None:
        run(graph, codelet, check, **fields, at=(INT, (), at))
        return
    with pytest.raises(errors.VertexError, match=f"(?s){codelet}.*tile 2.*'work'.*{says}.*checked.cpp") as caught:
        run(graph, codelet, check, **fields, at=(INT, (), at))
    assert isinstance(caught.value.__cause__, IndexError)
    if codelet == "Reads":
        assert caught.value.line == 12


@pytest.mark.parametrize("codelet", ["Pointer", "Sorted", "Wide"])
def test_pointers_and_wide_accesses(graph, codelet):
    """
    An address may be taken outside; reads and writes through pointers count, of two elements or by memcpy too.
    """
    assert run(graph, codelet, "full", x=(FLOAT, (6,), X), out=(FLOAT, (6,))).tolist() == (X + (codelet == "Wide")).tolist()


@pytest.mark.parametrize("codelet", ["Pointer", "Sorted", "Wide"])
def test_what_pointers_read_must_be_written(graph, codelet):
    """
    The variable is named, though the vertex reads a copy of it on another tile.
    """
    with pytest.raises(errors.UninitialisedReadError, match=f"(?s){codelet}.*elements? 0( to .)? of 'x' .test_checks.py.*checked.cpp"):
        run(graph, codelet, "full", x=(FLOAT, (6,)), out=(FLOAT, (6,)))


def test_an_output_is_undefined_until_it_is_written(graph):
    """
    Whatever it held before.
    """
    with pytest.raises(errors.UninitialisedReadError, match="element 4 of 'out'"):
        run(graph, "First", "full", out=(FLOAT, (6,), X), at=(INT, (), 4))


def test_an_output_that_is_written_first(graph):
    """
    Is no mistake to read.
    """
    run(graph, "First", "full", out=(FLOAT, (6,)), at=(INT, (), 6))


@pytest.mark.parametrize(
    ("codelet", "field", "code", "says"),
    [
        ("Halves<1>", {"out": (HALF, (24,))}, "shared-word", "worker 4.*element 4 of 'out'.*worker 5"),
        ("Halves<2>", {"out": (HALF, (24,))}, None, ""),
        ("Neighbours<false>", {"x": (INT, (6,), range(6))}, "worker-race", "of 'x'"),
        ("Neighbours<true>", {"x": (INT, (6,), range(6))}, None, ""),
    ],
)
def test_workers_that_race(graph, codelet, field, code, says):
    """
    Those that write into one word, or read what another one writes; a word each is fine.
    """
    if code is None:
        run(graph, codelet, "full", **field)
        return
    with pytest.raises(errors.WorkerRaceError, match=f"(?s){says}.*checked.cpp") as caught:
        run(graph, codelet, "full", **field)
    assert caught.value.code == code


def test_workers_that_wait_for_each_other(graph):
    """
    Are in an order that the check does not know: no race is reported.
    """
    assert run(graph, "Waits", "full", flags=(UNSIGNED_INT, (6,), [0] * 6), out=(INT, (6,))).tolist() == list(range(6))


def test_engines_at_once(device):
    """
    Each is checked against its own memory: one finds its mistake, the others nothing.
    """

    def job(written):
        at = (FLOAT, (6,), X) if written else (FLOAT, (6,))
        try:
            return [run(pc.Graph(device.target), "Sorted", "full", x=at, out=(FLOAT, (6,))).tolist() for _ in range(20)] == [X.tolist()] * 20
        except errors.UninitialisedReadError:
            return "found"

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(job, (True, False, True))) == [True, "found", True]


def test_a_library_with_its_own_driver_is_refused(graph):
    """
    The compiler puts no calls into it that tell of its writes.
    """
    graph.add_codelets(CODELETS / "plain.c")
    x, y = graph.add_variable(FLOAT, (4,), tile=0), graph.add_variable(FLOAT, (4,), tile=0)
    cs = graph.add_compute_set()
    graph.add_vertex(cs, "ScaleAdd", {"x": x, "y": y}, tile=0)
    with pytest.raises(errors.OptionError, match=r"(?s)ScaleAdd.*its own driver.*try:"):
        pc.Engine(graph, program.Execute(cs), options={"debug.check": "full"})
