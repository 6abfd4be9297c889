"""Codelets that are wrong, each next to one that is almost the same and right: are all found, with code and sites, and no other?

Every field has 6 elements, or two rows of 3. Of ``x`` and ``rows`` the last element, or the last row, is written only where a case says so.
"""

import linecache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import popcore as pc
from popcore import errors, program
from popcore.bindings.toolchain import CHECK_RULES
from popcore.bindings.unit import DEVICE_RULES, compile_all, open_unit
from popcore.codelet import codelet_of
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
]
EACH = [pytest.param(language, case, id=f"{language} {case.codelet} {case.wrong}") for case in CASES for language in case.languages.split()]


@pytest.fixture(scope="module", autouse=True)
def compiled():
    """The C++ codelets, all in one library."""
    unit = open_unit(SOURCE)
    compile_all([unit.find(name) for name in unit.names()], (*DEVICE_RULES, *CHECK_RULES["full"]))


def run(graph, language, case, k):
    """Run one vertex with the full check."""
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
    pc.Engine(graph, program.Execute(cs), options={"debug.check": "full"}).run()


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
