"""Does lowering freeze what it should, name places, and give the same fingerprint everywhere?"""

import inspect
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from popcore.codelet import Output, Vertex, codelet_of
from popcore.dialect import FaultSite, interpret, lower, make_view
from popcore.types import FLOAT, HALF
from tests.dialect import samples


def test_globals_are_frozen_when_the_codelet_is_lowered(monkeypatch: pytest.MonkeyPatch) -> None:
    codelet = codelet_of(samples.Constant)
    before = lower(codelet)
    monkeypatch.setattr(samples, "RATE", 0.75)
    assert lower(codelet) is before
    after = lower(codelet_of(samples.Constant))
    assert before.fingerprint != after.fingerprint
    assert [_constant(lowered) for lowered in (before, after)] == [np.float32(0.1), np.float32(0.75)]


RATES = [0.5, 2.0]


class FirstRate(Vertex):
    out: Output[FLOAT]

    def compute(self) -> None:
        self.out = RATES[0]


@pytest.mark.parametrize("change", ["the name", "the table"])
def test_the_checked_form_sees_what_the_plain_one_saw(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rates = [0.5, 2.0]
    monkeypatch.setitem(globals(), "RATES", rates)
    codelet = codelet_of(FirstRate)
    plain = lower(codelet)
    if change == "the name":
        monkeypatch.setitem(globals(), "RATES", [7.0, 7.0])
    else:
        rates[0] = 7.0
    checked = lower(codelet, checks=True)
    assert [_constant(lowered) for lowered in (plain, checked)] == [0.5, 0.5]
    assert _constant(lower(codelet_of(FirstRate), checks=True)) == 7.0


def _constant(lowered: Any) -> Any:
    out = np.zeros((), np.float32)
    interpret(lowered)({"out": make_view(lowered.codelet.fields[0], out)}, object(), None)  # type: ignore[arg-type]
    return out[()]


def test_a_fingerprint_tells_types_and_checks_apart() -> None:
    codelets = [codelet_of(samples.Everything, (t,)) for t in (FLOAT, HALF)]
    fingerprints = {lower(c, checks).fingerprint for c in codelets for checks in (False, True)}
    assert len(fingerprints) == 4


@pytest.mark.parametrize("seed", ["0", "7"])
def test_a_fingerprint_is_the_same_in_every_process(seed: str) -> None:
    program = (
        "import sys; from popcore.codelet import codelet_of; from popcore.dialect import lower; from popcore.types import FLOAT;"
        "from tests.dialect import samples; print(lower(codelet_of(samples.Everything, (FLOAT,))).fingerprint, 'numba' in sys.modules)"
    )
    environment = os.environ | {"PYTHONHASHSEED": seed}
    found = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True, cwd=os.getcwd())
    assert found.stdout.split() == [lower(codelet_of(samples.Everything, (FLOAT,))).fingerprint, "False"]


def test_sites_name_the_users_lines() -> None:
    lowered = lower(codelet_of(samples.Everything, (FLOAT,)))
    lines = inspect.getsource(samples).splitlines()
    shown = {(s.kind, s.exception) for s in lowered.sites}
    assert {("raise", "ValueError"), ("assert", "AssertionError"), ("print", "")} <= shown
    for site in lowered.sites:
        assert site.file == samples.__file__
        expected = {"raise": ("raise", "%", "**", "zip("), "assert": ("assert",), "print": ("print",)}[site.kind]
        assert any(word in lines[site.line - 1] for word in expected)


def test_a_message_shows_values_with_their_formats() -> None:
    site = FaultSite("print", "file.py", 1, "", ("x ", None, " of ", None), (".2f", ""))
    assert site.message((np.float32(0.125), 3)) == "x 0.12 of 3"
    assert FaultSite("print", "file.py", 1, "", (None,), ("d",)).message((np.float32(0.5),)) == "0.5"
