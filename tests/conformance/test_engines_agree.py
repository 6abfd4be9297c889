"""Do all engines do the same with any graph and program, bit for bit?"""

from unittest import mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import popcore as pc
from tests.fuzz.choices import FromHypothesis
from tests.fuzz.compare import compare, differences, observed
from tests.fuzz.draw import draw_case
from tests.fuzz.run import explain, run

REPEATABLE = settings(deadline=None, max_examples=25, suppress_health_check=list(HealthCheck))
PROGRAMS, PARTS = 200, 4


@st.composite
def cases(draw, depth=3):
    """The programs of ``tests.fuzz``, drawn by Hypothesis: it shrinks what fails, and keeps it for the next run."""
    return draw_case(FromHypothesis(lambda bound: draw(st.integers(0, bound - 1))), depth)


@pytest.mark.parametrize("part", range(PARTS))
def test_engines_agree_on_drawn_programs(part, tmp_path):
    """
    The same ones each time: the first of those that ``python -m tests.fuzz`` compares.
    """
    each = PROGRAMS // PARTS
    summary = run(range(part * each, (part + 1) * each), 0, tmp_path)
    assert summary.programs == each
    assert not summary.failed, explain(0, summary.failed[0], tmp_path)


@REPEATABLE
@given(case=cases())
def test_engines_agree_on_other_programs(case, tmp_path_factory):
    """
    Others each time, outside of CI.
    """
    assert not compare(case, tmp_path_factory.mktemp("case")), case


@settings(REPEATABLE, max_examples=10)
@given(cases(depth=1))
def test_interpreted_codelets_agree(case):
    """
    POPCORE_INTERPRET=1, with which a debugger stops in codelets.
    """
    expected = observed(pc.ReferenceEngine(case.graph, case.programs), case)
    with mock.patch.dict("os.environ", POPCORE_INTERPRET="1"):
        found = observed(pc.Engine(case.graph, case.programs), case)
    assert not differences(expected, found), case
