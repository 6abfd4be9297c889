"""Codelets that are wrong, each next to one that is almost the same and right: are all found, with code and sites, and no other?

Among them are cases I1 (workers that write parts of one word) and I10 (a variable, and an Output, that are read before they are written).

Every field has 6 elements, or two rows of 3. Of ``x`` and ``rows`` the last element, or the last row, is written only where a case says so.
"""

import linecache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import popcore as pc
from popcore import INT, Output, Vertex, errors, program
from popcore.bindings.unit import DEVICE_RULES, compile_all, open_unit
from popcore.codelet import codelet_of
from popcore.native import Build
from tests.cases.defects import codelets

SOURCE = Path(__file__).with_name("codelets.cpp")
N = 6
SIZES = {"HalvesApart": 12, "BytesApart": 24}


class Case(NamedTuple):
    """A codelet, and a k for which it is wrong and one for which it is right."""

    codelet: str
    wrong: int
    right: int
    error: type
    code: str
    says: str
    written: int = N  # elements that something wrote
    languages: str = "python c++"


OUTSIDE, UNDEFINED, RACE = (errors.VertexError, "out-of-bounds"), (errors.UninitialisedReadError, "uninitialised-read"), (errors.WorkerRaceError, "worker-race")
WORD = (errors.WorkerRaceError, "shared-word")
MISALIGNED, DEEP = (errors.MisalignedAccessError, "misaligned"), (errors.VertexError, "stack-overflow")

CASES = [
    Case("ReadAt", N, N - 1, *OUTSIDE, r"\[6\] is outside its 6 elements"),
    Case("ReadAt", -N - 1, -N, *OUTSIDE, r"\[-7\] is outside its 6 elements", languages="python"),
    Case("ReadAt", -1, 0, *OUTSIDE, r"\[-1\] is outside its 6 elements", languages="c++"),
    Case("ReadAt", 5, 4, *UNDEFINED, "element 5 of 'x'", 5),
    Case("WriteAt", N, N - 1, *OUTSIDE, r"\[6\] is outside its 6 elements"),
    Case("WriteAt", 1 << 30, 0, *OUTSIDE, r"\[1073741824\] is outside"),
    Case("AddAt", N, N - 1, *OUTSIDE, r"\[6\] is outside its 6 elements"),
    Case("AddAt", 3, 2, *UNDEFINED, "element 3 of 'y'", 3),
    Case("RowAt", 2, 1, *OUTSIDE, r"\[2\] is outside its 2 elements"),
    Case("RowAt", 1, 0, *UNDEFINED, "element 3 of 'rows'", 3),
    Case("InRowAt", 3, 2, *OUTSIDE, r"\[3\] is outside its 3 elements"),
    Case("InRowAt", 2, 1, *UNDEFINED, "element 5 of 'rows'", 5),
    Case("WriteThenRead", 2, 3, *UNDEFINED, "element 2 of 'y'"),
    Case("ScalarBeforeWrite", 0, 1, *UNDEFINED, "element 0 of 'y'"),
    Case("Asserts", 3, 2, errors.VertexError, "raised", "AssertionError"),
    Case("HalvesApart", 1, 2, *WORD, "element 4 of 'y' .*; worker 5 writes another part"),
    Case("BytesApart", 2, 4, *WORD, "element 8 of 'y' .*; worker 5 writes another part"),
    Case("BytesApart", 0, 4, *RACE, "worker 5 at element 0 of 'y'"),
    Case("FloatsApart", 0, 1, *RACE, "worker 5 at element 0 of 'y'"),
    Case("FloatsApart", 2, 1, *OUTSIDE, r"\[10\] is outside its 6 elements"),
    Case("ReadsNeighbour", 1, 0, *RACE, "worker 5 at element 5 of 'y'"),
    Case("ReadsNeighbour", 5, 6, *RACE, "element 4 of 'y'"),
    Case("OneForAll", 0, 5, *RACE, "worker 5 at element 0 of 'y'"),
    Case("RowOfMatrix", 2, 1, *OUTSIDE, r"\[2, 1\] is outside its 2 rows of 3", languages="python"),
    Case("ColumnOfMatrix", 3, 2, *OUTSIDE, r"\[1, 3\] is outside its 2 rows of 3", languages="python"),
    Case("ColumnOfMatrix", 1, 0, *UNDEFINED, "element 4 of 'm'", 4, languages="python"),
    Case("PartAt", 3, 2, *OUTSIDE, r"\[3\] is outside its 3 elements", languages="python"),
    Case("PartAt", 2, 1, *UNDEFINED, "element 3 of 'x'", 3, languages="python"),
    Case("Sums", 5, 4, *UNDEFINED, "element 4 of 'x'", 4, languages="python"),
    Case("Points", 4, 3, *UNDEFINED, "element 4 of 'x'", 4, languages="c++"),
    Case("Copies", 4, 3, *UNDEFINED, "element 3 of 'x'", 3, languages="c++"),
    Case("Wide", 2, 0, *UNDEFINED, "element 3 of 'x'", 3, languages="c++"),
    Case("LastOf", 1, 0, *UNDEFINED, "element 5 of 'rows'", 5, languages="c++"),
    Case("Wide", 1, 2, *MISALIGNED, "8 bytes at elements 1 to 2 of 'x'", languages="c++"),
    Case("Deep", 1 << 30, 50, *DEEP, "the stack is full", languages="c++"),
]
EACH = [pytest.param(language, case, id=f"{language} {case.codelet} {case.wrong}") for case in CASES for language in case.languages.split()]


@pytest.fixture(scope="module", autouse=True)
def compiled():
    """The C++ codelets, all in one library for runs that stop and one for those that go on."""
    unit = open_unit(SOURCE)
    for collects in (False, True):
        compile_all([unit.find(name) for name in unit.names()], (*DEVICE_RULES, *Build("full", collects).rules))


def run(graph, language, case, k, collect=False):
    """Run one vertex with the full check, or give an engine that would. Its second program does nothing."""
    if language == "python":
        made = getattr(codelets, case.codelet)
        declared = codelet_of(made).fields
    else:
        graph.add_codelets(SOURCE)
        made = case.codelet
        declared = open_unit(SOURCE).find(made).fields
    shapes = {"scalar": (), "vector": (SIZES.get(case.codelet, N),), "list": (2, 3), "matrix": (2, 3)}
    fields = {}
    for field in declared:
        fields[field.name] = t = graph.add_variable(field.dtype, shapes[field.shape], name=field.name, tile=1)
        if field.name == "k":
            graph.set_initial_value(t, k)
        elif t.shape:
            graph.set_initial_value(t.reshape((t.num_elements,))[: case.written], np.ones(min(case.written, t.num_elements), field.dtype.numpy))
    cs = graph.add_compute_set("work")
    graph.add_vertex(cs, made, fields, tile=1)
    engine = pc.Engine(graph, [program.Execute(cs), program.Sequence()], options={"debug.check": "full", "debug.check.collect": collect})
    if not collect:
        engine.run()
    return engine


@pytest.mark.parametrize(("language", "case"), EACH)
def test_what_is_wrong_is_found(graph, language, case):
    """
    With codelet, tile, compute set, file and line; and with the variable where memory is the matter.
    """
    with pytest.raises(case.error, match=rf"(?s)codelet {case.codelet} \(vertex 0 on tile 1.*'work'.*{case.says}") as caught:
        run(graph, language, case, case.wrong)
    found = caught.value
    assert type(found) is case.error
    assert found.code == case.code
    assert (found.codelet, found.tile, found.vertex, found.compute_set) == (case.codelet, 1, 0, "work")
    assert found.file.endswith("codelets.py" if language == "python" else "codelets.cpp")
    assert "here" in linecache.getline(found.file, found.line)


@pytest.mark.parametrize(("language", "case"), EACH)
def test_what_is_almost_wrong_is_right(graph, language, case):
    """
    The nearest k that is no mistake.
    """
    run(graph, language, case, case.right)


@pytest.mark.parametrize(("language", "case"), EACH)
def test_what_is_wrong_is_collected(graph, language, case):
    """
    By a run that goes on to its end: the first is what another run stops at. What only the codelet's own end can tell ends it as before.
    """
    engine = run(graph, language, case, case.wrong, collect=True)
    if case.code in ("raised", "stack-overflow"):
        with pytest.raises(errors.VertexError, match=case.says):
            engine.run()
        return
    with pytest.raises(errors.FindingsError, match=rf"(?s)1\. \[{case.code}\] codelet {case.codelet}.*{case.says}.*try:") as caught:
        engine.run()
    first = caught.value.findings[0]
    assert type(first) is case.error
    assert first.code == case.code
    assert "here" in linecache.getline(first.file, first.line)
    assert engine.findings == caught.value.findings
    engine.run(1)  # nothing new


def recursive(n):
    return recursive(n - 1) if n > 0 else 0


def nested(n):
    return twice(n) + 1


def twice(n):
    return 2 * n


class Recurses(Vertex):
    y: Output[INT]

    def compute(self):
        self.y = recursive(3)


class Nests(Vertex):
    y: Output[INT]

    def compute(self):
        self.y = nested(3)


def test_recursion_in_python(graph):
    """
    Is refused when the codelet is added, since a tile has no stack for it; functions that call others are fine.
    """
    y, cs = graph.add_variable(INT, (), name="y", tile=0), graph.add_compute_set("work")
    with pytest.raises(errors.CodeletError, match=r"(?s)Recurses.*test_vertices.py.*recursive calls itself.*try:"):
        graph.add_vertex(cs, Recurses, {"y": y}, tile=0)
    graph.add_vertex(cs, Nests, {"y": y}, tile=0)
    graph.create_host_read("y", y)
    engine = pc.Engine(graph, program.Execute(cs), options={"debug.check": "full"})
    engine.run()
    assert engine.read_tensor("y") == 7
