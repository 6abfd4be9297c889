"""Do collectives have the bits of a ring that is run step by step, and its bytes, and are they right?"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from popcore import BOOL, FLOAT, HALF, INT, LONGLONG, UNSIGNED_CHAR, errors
from popcore.executable.schedules import ALGORITHMS, CollectiveOperator, choose, chunk_bounds
from popcore.reference.rings import Ring
from popcore.topology import Wiring
from tests.ops.gcl.collectives import OPERATORS, SIZES, Case, around, bits, call, counts, data, done, done_in_place, literal, require_right, sets_of, types

CASES = st.builds(
    lambda method, p, n, kinds, operator, group_type, inner: Case(
        method, p, counts(p)[n % len(counts(p))], *kinds, OPERATORS[kinds[0]][operator % len(OPERATORS[kinds[0]])], group_type,
        sets_of(p)[inner % len(sets_of(p))] if ALGORITHMS[method].levels == 2 else p,
    ),
    method=st.sampled_from(list(ALGORITHMS)),
    p=st.sampled_from(SIZES[:-1]),
    n=st.integers(0, 6),
    kinds=st.sampled_from([each for each in types() if each[0] in (FLOAT, HALF, INT, UNSIGNED_CHAR, LONGLONG, BOOL)]),
    operator=st.integers(0, 6),
    group_type=st.sampled_from(["all", "consecutive", "orthogonal", "none"]),
    inner=st.integers(0, 6),
)  # fmt: skip


@settings(deadline=None, max_examples=120)
@given(CASES, st.integers(0, 99))
def test_every_method_has_the_bits_of_its_steps(case, seed):
    """
    Drawn from the matrix of methods, sizes, types, operators and groups, any order of the ring; and against NumPy. All of the matrix:
    ``python -m tests.ops.gcl.exhaustive``.
    """
    case.check(seed)


@pytest.mark.parametrize("method", ALGORITHMS)
@pytest.mark.parametrize("p", [3, 8, 64])
def test_every_size_has_the_bits_of_the_ring(method, p):
    """
    Also tensors shorter than the ring, empty ones, and a last chunk that is short.
    """
    for n in (0, 1, p - 1, p, p + 1, 2 * p + 3):
        Case(method, p, n, FLOAT, FLOAT, CollectiveOperator.ADD, "all", sets_of(p)[1] if ALGORITHMS[method].levels == 2 else p).check()


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_change_no_bit(threads):
    """
    Large data is cut into blocks, which threads share.
    """
    values = data(FLOAT, 6, 100_001)
    for method, algorithm in ALGORITHMS.items():
        made = call("all_reduce", FLOAT, 100_001, 6, method, rings=[[0, 2, 4, 5, 3, 1]] * len(algorithm.lanes), inner=2)
        wanted = bits(literal(made, values))
        assert bits(done(made, values, threads)) == wanted
        assert bits(done_in_place(made, values, threads)) == wanted


def test_without_native_code_the_bits_are_the_same(monkeypatch):
    """
    POPCORE_FALLBACK=1 leaves Numba's internals alone.
    """
    monkeypatch.setenv("POPCORE_FALLBACK", "1")
    for n in (1, 100):
        for partials in (HALF, FLOAT):
            values = data(HALF, 4, n)
            made = call("all_reduce", HALF, n, 4, "two_level", inner=2, partials=partials)
            assert bits(done_in_place(made, values)) == bits(literal(made, values))


def test_float_partials_are_rounded_once():
    """
    64 halves of 0.1: per hop the sum is off by much more than a rounding, in float by less.
    """
    values = np.full((64, 40), 0.1, np.float16)
    per_hop, once = (done_in_place(call("all_reduce", HALF, 40, 64, partials=partials), values)[5, 7] for partials in (HALF, FLOAT))
    exact = 64 * float(np.float16(0.1))
    assert once == np.float16(exact)
    assert abs(per_hop - exact) > 5 * abs(once - exact)
    mean = call("all_reduce", HALF, 40, 64, operator=CollectiveOperator.MEAN, partials=FLOAT)
    assert (done(mean, values) == np.float16(0.1)).all()


@pytest.mark.parametrize("operator", [CollectiveOperator.MIN, CollectiveOperator.MAX])
def test_a_nan_stays_and_zeros_keep_their_sign(operator):
    """
    Every pair of special values.
    """
    special = np.array([0.0, -0.0, 1.0, -np.inf, np.inf, np.nan], np.float32)
    values = np.stack([np.repeat(special, 6), np.tile(special, 6)])
    made = call("all_reduce", FLOAT, 36, 2, operator=operator)
    assert bits(done(made, values)) == bits(done_in_place(made, values)) == bits(literal(made, values))
    assert np.isnan(done(made, values)[0][5::6]).all()


@pytest.mark.parametrize("kind", ["all_gather", "all_to_all", "broadcast"])
@pytest.mark.parametrize("group_type", ["consecutive", "orthogonal"])
def test_moves_bring_each_what_is_its(kind, group_type):
    """
    Nothing is computed; every group for itself.
    """
    values = data(INT, 6, 12)
    made = call(kind, INT, 12, 3, group_type=group_type, root=2 * (kind == "broadcast"))
    found = done(made, values)
    assert np.array_equal(found, literal(made, values))
    first = values[[0, 1, 2] if group_type == "consecutive" else [0, 2, 4]]
    wanted = {"all_gather": first.ravel(), "all_to_all": first.reshape(3, 3, 4)[:, 0].ravel(), "broadcast": first[2]}[kind]
    assert np.array_equal(found[0], wanted)


@pytest.mark.parametrize("method", ALGORITHMS)
@pytest.mark.parametrize(("p", "n"), [(2, 1000), (3, 1), (5, 13), (8, 43), (16, 16)])
def test_a_ring_sends_each_chunk_to_everybody_twice(method, p, n):
    """
    Bytes on links are 2(p - 1)/p of the data a replica, whatever the way round and however long the chunks.
    """
    for inner in sets_of(p):
        ring = Ring(list(data(FLOAT, p, n)), around(call("all_reduce", FLOAT, n, p, method, inner=inner)))
        ring.all_reduce()
        assert ring.elements_sent == 2 * (p - 1) * n


def test_the_check_against_numpy_finds_a_wrong_sum():
    """
    One element that is off by one part in a thousand, or an order of rows that is not that of the ranks.
    """
    values = data(FLOAT, 4, 10)
    made = call("reduce_scatter", FLOAT, 10, 4)
    right = literal(made, values)
    require_right(made, values, right)
    wrong = right.copy()
    wrong[1, 0] *= 1.001
    for found in (wrong, right[::-1]):
        with pytest.raises(AssertionError):
            require_right(made, values, found)


def test_chunks_are_rounded_up():
    """
    10 elements over 64 replicas: one each for ten of them, none for the others.
    """
    assert [chunk_bounds(10, 64, rank) for rank in (0, 9, 10, 63)] == [(0, 1), (9, 10), (10, 10), (10, 10)]
    assert [chunk_bounds(11, 4, rank) for rank in range(4)] == [(0, 3), (3, 6), (6, 9), (9, 11)]


MB = 1 << 20
OPEN, TORUS = Wiring(), Wiring(closed=True, twisted=True)


@pytest.mark.parametrize(
    ("kind", "p", "nbytes", "wiring", "method"),
    [
        ("all_reduce", 2, MB, OPEN, "ring"),
        ("all_reduce", 16, MB, Wiring(ipus_each=2), "ring"),
        ("all_reduce", 16, MB, Wiring(ipus_each=4, closed=True), "meet_in_middle_ring"),
        ("all_reduce", 4, MB, OPEN, "meet_in_middle_ring"),
        ("all_reduce", 4, 2 * MB, OPEN, "bidirectional_ring_pair"),
        ("all_gather", 4, MB, OPEN, "bidirectional_ring_pair"),
        ("all_reduce", 8, 4 * MB, OPEN, "meet_in_middle_ring"),
        ("all_reduce", 16, 38 * MB, OPEN, "bidirectional_ring_pair"),
        ("all_reduce", 17, 38 * MB, OPEN, "meet_in_middle_ring"),
        ("all_reduce", 64, 196_608 * 64 - 4, TORUS, "meet_in_middle_ring"),
        ("all_reduce", 64, 196_608 * 64, TORUS, "quad_directional_ring"),
        ("all_gather", 64, 196_608, TORUS, "quad_directional_ring"),
        ("all_gather", 64, 196_604, TORUS, "meet_in_middle_ring"),
        ("all_reduce", 128, 4, Wiring(domains=2, closed=True, twisted=True), "two_level"),
    ],
)
def test_auto_chooses_by_size(kind, p, nbytes, wiring, method):
    """
    With the thresholds of the public PopLibs sources.
    """
    assert choose("auto", kind, p, nbytes, wiring).name == method


def test_methods_are_asked_for_by_name():
    assert choose("clockwise_ring", "all_reduce", 16, 0, OPEN).name == "ring"
    for method, what in (("broadcast", "not available"), ("spiral", "does not exist")):
        with pytest.raises(errors.OptionError, match=f"(?s){what}.*'ring'"):
            choose(method, "all_reduce", 8, 100, OPEN)
