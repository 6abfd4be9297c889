"""Rounding to HALF: its rules, and whether stochastic rounding is fair."""

import numpy as np
import pytest

from popcore.dialect import rounding
from popcore.kernels.behaviour import DIV0, INV, OFLO, Arithmetic
from popcore.kernels.randomness import key_of_call, random_bits

F = np.float32
STOCHASTIC = Arithmetic(stochastic=True)


@pytest.fixture(autouse=True)
def _quiet():
    """As the interpreter runs codelets."""
    with np.errstate(all="ignore"):
        yield


@pytest.mark.parametrize(
    ("rule", "wanted"),
    [
        ("saturate", [65504, 65504, 65504, -65504, np.nan, np.nan]), ("nan", [65504, np.nan, np.nan, np.nan, np.nan, np.nan]),
        ("ieee", [65504, np.inf, np.inf, -np.inf, np.inf, np.nan]),
    ],
)  # fmt: skip
def test_the_three_rules(rule, wanted):
    """
    Of what rounds to the greatest half, and of what does not.
    """
    with rounding.using(Arithmetic(rule)):
        found = [rounding.narrow(F(x)) for x in (65519, 65520, 1e30, -1e30, np.inf, np.nan)]
    np.testing.assert_array_equal(found, np.float16(wanted))


def test_a_function_of_a_half_saturates_where_it_is_infinite():
    """
    exp(100.0) is too large; an infinite operand is no number.
    """
    assert rounding.narrow_result(F(np.inf)) == 65504
    assert np.isnan(rounding.operand(np.float16(np.inf)))


def stochastically(x, count=20_000, seed=1):
    """``x`` rounded many times, as float64."""
    with rounding.using(STOCHASTIC):
        rounding.begin(key_of_call(seed, "", 1, 0, 0, 0, 0))
        return np.array([float(rounding.narrow(F(x))) for _ in range(count)])


@pytest.mark.parametrize("x", [1.0003, -0.1, 3.14159, 2047.3, 6.1e-5, 5e-6, 1e-7, 4e-8])
def test_the_mean_is_the_number(x):
    """
    Also of halves that are denormal: within five standard errors; and only the two neighbours appear.
    """
    x = float(F(x))
    found = stochastically(x)
    values = np.unique(found)
    assert len(values) == 2
    assert values[0] < x < values[1]
    step = values[1] - values[0]
    share = (x - values[0]) / step
    assert abs(found.mean() - x) < 5 * step * np.sqrt(share * (1 - share) / len(found))


@pytest.mark.parametrize("x", [0.0, -0.0, 1.0, -2048.0, 65504.0, 2.0**-24, -(2.0**-14)])
def test_what_a_half_holds_is_never_changed(x):
    """
    Exactly, with its sign.
    """
    found = stochastically(x, 200)
    assert (found == x).all()
    assert (np.signbit(found) == np.signbit(x)).all()


def test_what_is_below_half_of_the_least_half_is_zero():
    """
    From 2^-25 on it may be the least; hardware cuts off what is smaller.
    """
    assert not stochastically(0.99 * 2.0**-25, 1000).any()
    assert set(stochastically(2.0**-25, 1000)) == {0.0, 2.0**-24}


def test_random_bits_are_even():
    """
    Each bit of each position is set about half of the time, for other keys and counters; neighbours are not alike.
    """
    keys = [key_of_call(5, "", 1, 0, tile, 0, 0) for tile in range(64)]
    words = np.array([[random_bits(key, n) for n in range(256)] for key in keys], np.uint32)
    bits = (words[..., None] >> np.arange(32, dtype=np.uint32)) & 1
    n = words.size
    assert np.abs(bits.mean((0, 1)) - 0.5).max() < 5 * 0.5 / np.sqrt(n)
    assert np.abs(bits.mean((0, 2)) - 0.5).max() < 6 * 0.5 / np.sqrt(64 * 32)
    for one, other in ((words[:, 1:], words[:, :-1]), (words[1:], words[:-1])):
        same = ((one ^ other)[..., None] >> np.arange(32, dtype=np.uint32)) & 1
        assert abs(same.mean() - 0.5) < 5 * 0.5 / np.sqrt(same.size)


def test_keys_depend_on_each_of_their_parts():
    """
    Seed, codelet, phase, replica, tile, vertex, worker.
    """
    base = (1, "a", 1, 0, 0, 0, 0)
    others = [(2, "a", 1, 0, 0, 0, 0), (1, "b", 1, 0, 0, 0, 0), *((*base[:i], base[i] + 1, *base[i + 1 :]) for i in range(2, 7))]
    assert len({key_of_call(*each) for each in (base, *others)}) == 8


def test_what_stops_and_what_does_not():
    """
    Only what is asked for; an infinity that came in is no overflow.
    """
    inf, nan = F(np.inf), F(np.nan)
    with rounding.using(Arithmetic(traps=OFLO | DIV0)):
        rounding.check(nan, F(0), F(0))
        rounding.check(inf, inf, F(1), additive=True)
        for result, pole, kind in ((inf, False, OFLO), (-inf, True, DIV0)):
            with pytest.raises(rounding.Trap) as caught:
                rounding.check(result, F(1), F(2), pole=pole)
            assert caught.value.kind == kind
    with rounding.using(Arithmetic(traps=INV)):
        for result, operands in ((nan, (F(0), F(0))), (inf, (inf, F(1)))):
            with pytest.raises(rounding.Trap):
                rounding.check(result, *operands, additive=True)
        rounding.check(inf, F(1), F(2))
