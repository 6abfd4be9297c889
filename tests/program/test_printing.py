"""Do tensors print the same wherever they print?"""

import numpy as np
import pytest

from popcore.program.printing import format_tensor, print_line, print_tensor, stopped


@pytest.mark.parametrize(("values", "text"), [
    (np.float32(1.5), "1.5"),
    (np.array([1, 1.5, 0.1], np.float32), "[1. , 1.5, 0.1]"),
    (np.arange(6, dtype=np.int32).reshape(2, 3), "[[0, 1, 2],\n [3, 4, 5]]"),
    (np.array([True, False]), "[ True, False]"),
    (np.zeros((0, 2), np.float16), "[]"),
    (np.array([np.nan, -np.inf], np.float16), "[ nan, -inf]"),
])  # fmt: skip
def test_values_are_a_bracketed_list(values, text):
    """
    With the digits that tell a number from its neighbours in its own type.
    """
    assert format_tensor(np.asarray(values)) == text


def test_the_user_s_print_options_have_no_say():
    """
    Two engines in one process agree even if one runs inside np.printoptions.
    """
    values = np.array([1 / 3, 1e-9], np.float32)
    plain = format_tensor(values)
    with np.printoptions(precision=1, suppress=True, threshold=1, floatmode="fixed"):
        assert format_tensor(values) == plain


def test_long_tensors_are_cut():
    """
    A million elements are no help on a terminal.
    """
    assert format_tensor(np.arange(1001)) == "[   0,    1,    2, ...,  998,  999, 1000]"
    assert format_tensor(np.arange(1000)).count(",") == 999


def test_a_title_comes_first():
    """
    On a line of its own.
    """
    assert print_tensor("x", np.array([1, 2])) == "x:\n[1, 2]\n"
    assert print_tensor("x", np.array([1]), replica=3) == "x (replica 3):\n[1]\n"


def test_a_codelet_s_print_says_where():
    """
    IPU, tile, worker.
    """
    assert print_line(1, 203, 5, "hello") == "[1.203.5] hello\n"


def test_an_abort_shows_its_tensor():
    """
    And the line that made the program.
    """
    assert "main.py:3: too hot\n[1, 2]" in str(stopped("too hot", "main.py:3", np.array([1, 2])))
