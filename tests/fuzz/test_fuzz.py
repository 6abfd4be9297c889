"""Does the fuzzer find what is wrong, say it so that it can be seen again, and draw what it claims to?"""

import numpy as np
import pytest
from click.testing import CliRunner

from popcore import program
from popcore.compiler.passes import emit, plan_exchange, plan_memory
from popcore.program.walk import walk
from tests.fuzz.__main__ import main
from tests.fuzz.choices import Drawn, Recorded, shrink
from tests.fuzz.draw import draw_case
from tests.fuzz.run import check, explain


def no_overlap(patch):
    """Copies in one tensor whose source and target meet are not staged."""
    patch.setattr(plan_exchange, "_overlap", lambda moves: False)


def one_memory(patch):
    """Variables that live for a time share memory even where their lives meet."""

    def shared(graph, layout, lives):
        slot = np.arange(len(graph.variables))
        mortal = np.flatnonzero(lives[:, 0] != plan_memory.ALWAYS)
        slot[mortal] = mortal[:1]
        return slot

    patch.setattr(plan_memory, "_share_slots", shared)


def replica_zero(patch):
    """Every replica believes to be the first."""
    patch.setattr(emit, "_replica_words", lambda graph, layout, memory: np.zeros(0, np.int64))


@pytest.mark.parametrize("mistake", [no_overlap, one_memory, replica_zero])
def test_a_mistake_is_found(mistake, monkeypatch, tmp_path):
    """
    A compiler with a mistake in it differs from the reference within the programs that CI runs.
    """
    with monkeypatch.context() as patch:
        mistake(patch)
        number = next(n for n in range(200) if check(Drawn(f"0:{n}"), tmp_path).kind == "differs")
    assert not check(Drawn(f"0:{number}"), tmp_path).kind


def test_what_is_shown_of_a_mistake(monkeypatch, tmp_path):
    """
    How to see it again, what differs, and a program that is smaller than the one that failed first.
    """
    replica_zero(monkeypatch)
    number = next(n for n in range(200) if check(Drawn(f"0:{n}"), tmp_path).kind == "differs")
    text = explain(0, number, tmp_path)
    assert f"again: python -m tests.fuzz --seed 0 --only {number}" in text
    assert "by the reference" in text
    assert len(text) < len(repr(draw_case(Drawn(f"0:{number}"))))


def test_equal_seeds_draw_equal_programs():
    """
    On every machine: no program depends on hashes, sets or the time.
    """
    first, second = (repr(draw_case(Drawn("7:3"))) for _ in range(2))
    assert first == second
    assert first != repr(draw_case(Drawn("7:4")))
    drawn = Drawn("7:3")
    draw_case(drawn)
    assert repr(draw_case(Recorded(drawn.record))) == first


def test_any_record_draws_a_program():
    """
    Shrinking cuts records anywhere; where one ends, zeros, and the plainest program.
    """
    kinds = {type(node) for node in walk(*draw_case(Recorded([])).programs)}
    assert kinds == {program.Sequence, program.Copy}


def test_what_fails_is_made_small():
    """
    Of a hundred choices the two that matter are left, as low as they can be.
    """
    record = [7] * 50 + [40] + [9] * 30 + [12] + [3] * 18
    assert shrink(record, lambda r: any(a > 15 for a in r) and len(r) > 1) in ([20, 0], [0, 20])


def test_programs_have_what_they_should():
    """
    Every feature that is listed turns up in a few hundred programs, so that 10,000 have many of each.
    """
    seen = set().union(*(draw_case(Drawn(f"0:{n}")).features for n in range(250)))
    wanted = {
        "If", "Switch", "Repeat", "RepeatWhileTrue", "RepeatWhileFalse", "Call", "replicas", "several IPUs", "type: HALF", "type: SIGNED_CHAR", "type: BOOL",
        "type: QUARTER_F143", "an empty tensor", "map: random parts", "view: broadcast", "view: reinterpret", "vectors of vectors", "several workers",
        "vertex state", "virtual graph", "add_vertices", "remote buffer", "stream in: callback", "stream out", "WriteUndef", "CrossReplicaCopy",
        "collective: all_reduce", "collective: all_to_all", "op: reduce", "op: sort", "floating-point behaviour", "load between runs", "AbortOnCondition",
    }  # fmt: skip
    assert not wanted - seen


def test_the_command():
    """
    It counts what the programs had, runs them from the cache again, and one of them alone.
    """
    ran = CliRunner().invoke(main, ["--programs", "4", "--again", "1", "--seed", "5"])
    assert ran.exit_code == 0, ran.output
    assert "4 programs: 0 differences" in ran.output
    assert "  type: " in ran.output
    assert "1 of them from the cache, in another process: 0 differences, nothing compiled" in ran.output
    one = CliRunner().invoke(main, ["--seed", "5", "--only", "2"])
    assert one.exit_code == 0, one.output
    assert "program 0" in one.output
