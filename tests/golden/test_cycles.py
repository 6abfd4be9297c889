"""Do programs of every kind take the modelled cycles that are written down?"""

import json

import pytest

from bench import golden


@pytest.fixture(scope="module")
def written():
    return json.loads(golden.CYCLES.read_text(encoding="utf-8"))


def test_every_program_is_written_down(written):
    """
    And nothing else is.
    """
    assert list(written) == list(golden.PROGRAMS)
    assert len(written) >= 20


@pytest.mark.parametrize("name", golden.PROGRAMS)
def test_cycles_are_those_written_down(written, name):
    """
    By kind. Where a change of the model is meant: ``python -m bench.golden``, and look at what the file's diff says.
    """
    assert golden.cycles_of(name) == written[name]
