"""Errors: the tree is as drawn, each can be pickled and says what to try, and the page about them is up to date."""

import inspect
import pickle
import re
import runpy
from pathlib import Path

import pytest

from popcore import errors

ROOT = Path(__file__).parents[2]
KINDS = [kind for kind in vars(errors).values() if inspect.isclass(kind) and issubclass(kind, errors.PopcoreError)]


def example(kind):
    """An error of this kind, made as popcore makes it."""
    if kind is errors.OutOfTileMemoryError:
        return kind(tile=3, needed=800_000, available=638_976, largest=[("big", 800_000)])
    if kind is errors.VerifyError:
        return kind([errors.UnmappedError("'a' is mapped nowhere"), errors.RaceError("'b' is written twice")])
    if kind is errors.FindingsError:
        return kind([errors.WorkerRaceError("two of them", code="worker-race"), errors.UninitialisedReadError("'b' is read")], lost=3)
    return kind("the message", tile=7)


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_survives_pickling_with_its_facts(kind):
    """
    Test runners and process pools send errors between processes: nothing may be lost.
    """
    error = example(kind)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert str(again) == str(error)
    assert {k: str(v) for k, v in vars(again).items()} == {k: str(v) for k, v in vars(error).items()}


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_ends_in_what_to_try(kind):
    """
    The last line says what to do, the whole fits a screen, and the class says what it means.
    """
    lines = str(example(kind)).splitlines()
    assert lines[-1].startswith("try: ")
    assert len(lines[-1]) > len("try: ")
    assert len(lines) < 12
    assert inspect.getdoc(kind)


def test_a_long_list_of_mistakes_is_cut():
    """
    A hundred mistakes are counted, not printed.
    """
    message = str(errors.VerifyError([errors.RaceError(f"race {i}") for i in range(100)]))
    assert "100 mistakes" in message
    assert "and 92 more" in message
    assert len(message.splitlines()) < 12


def test_the_tree_is_as_drawn():
    """
    The picture in the docstring shows every class, under the class it derives from.
    """
    drawn, stack = {}, []
    for line in errors.__doc__.splitlines():
        if (found := re.match(r"^([\s│├└─]*)([A-Z]\w*Error)\b", line)) and line.startswith("    "):
            depth = len(found[1]) // 4
            stack[depth - 1 :] = [found[2]]
            drawn[found[2]] = stack[depth - 2] if depth > 1 else "Exception"
    assert drawn == {kind.__name__: kind.__base__.__name__ for kind in KINDS}


def test_the_page_is_up_to_date():
    """
    docs/errors.md is what docs/make_errors.py writes.
    """
    made = runpy.run_path(str(ROOT / "docs" / "make_errors.py"))["render"]()
    assert (ROOT / "docs" / "errors.md").read_text(encoding="utf-8") == made, "run: python docs/make_errors.py"
