"""Do collectives have the bits of a ring that is run step by step, and its bytes, and are they right?"""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from popcore import BOOL, FLOAT, HALF, INT, LONGLONG, SHORT, UNSIGNED_CHAR, errors
from popcore.engine.collectives import Reduction, perform
from popcore.executable import CollectiveCall
from popcore.executable.schedules import ALGORITHMS, CollectiveOperator, choose, chunk_bounds, members_of, result_elements
from popcore.reference.rings import Ring, exchange_rows

NUMBERS = [o for o in CollectiveOperator if not o.name.startswith("LOGICAL")]
EXACT = [o for o in NUMBERS if o is not CollectiveOperator.MEAN]
OPERATORS = {FLOAT: NUMBERS, HALF: NUMBERS, INT: EXACT, SHORT: EXACT, LONGLONG: EXACT, UNSIGNED_CHAR: EXACT}
OPERATORS[BOOL] = [CollectiveOperator.LOGICAL_AND, CollectiveOperator.LOGICAL_OR, CollectiveOperator.LOCAL]
SIZES = [1, 2, 3, 5, 7, 8, 16, 64]


def call(kind, dtype, n, p, method="ring", operator=CollectiveOperator.ADD, group_type="all", ring=None, root=0):
    """A collective, as the compiler would have it."""
    results = result_elements(kind, n, p)
    return CollectiveCall("c", kind, operator.value, method, dtype, n, results, 0, group_type, p, root, tuple(ring or range(p)), 0, 0, 0, 0, 0)


def data(dtype, replicas, n, seed=0):
    """Values whose sums depend on their order."""
    rng = np.random.default_rng(seed)
    if dtype is BOOL:
        return rng.random((replicas, n)) < 0.8
    if dtype.is_floating:
        return (rng.standard_normal((replicas, n)) * 10.0 ** rng.integers(-3, 3, (replicas, n))).astype(dtype.numpy)
    limits = np.iinfo(dtype.numpy)
    return rng.integers(limits.min, limits.max, (replicas, n), dtype.numpy, endpoint=True)


def done(made, values, threads=1):
    """The result of a collective, [replicas, elements]; of an all-reduce in place, in rows that lie in a larger array."""
    arena = np.zeros((len(values), max(made.elements, made.result_elements) + 3), values.dtype)
    source, result = arena[:, : made.elements], arena[:, : made.result_elements]
    if made.kind != "all_reduce":
        result = np.full((len(values), made.result_elements), 1, values.dtype)
    source[:] = values
    perform(made, source, result, threads)
    return result.copy()


def done_in_place(made, values, threads=1):
    """An all-reduce by native code, of elements that lie in pieces here and there, the last ones first."""
    item = values.itemsize
    cuts = sorted({0, made.elements, made.elements // 3, made.elements // 3 + 1, made.elements * 2 // 3} & set(range(made.elements + 1)))
    spans = np.array([(item * (2 * made.elements - b), item * (b - a)) for a, b in itertools.pairwise(cuts)], np.int64).reshape(-1, 2)
    memory = np.full((len(values), item * (2 * made.elements + 3)), 255, np.uint8)
    for (at, nbytes), first in zip(spans.tolist(), cuts, strict=False):
        memory[:, at : at + nbytes] = values[:, first : first + nbytes // item].copy().view(np.uint8)
    untouched = memory.copy()
    reduction = Reduction(made, spans, memory, threads)
    reduction.run()
    found = np.empty_like(values)
    for (at, nbytes), first in zip(spans.tolist(), cuts, strict=False):
        found[:, first : first + nbytes // item] = memory[:, at : at + nbytes].copy().view(values.dtype)
        memory[:, at : at + nbytes] = untouched[:, at : at + nbytes]
    assert np.array_equal(memory, untouched), "something beside the tensor was written"
    return found


def bits(values):
    """Bytes, all NaNs made one: which one an operation gives is not defined."""
    made = values.copy()
    if made.dtype.kind == "f":
        made[np.isnan(made)] = np.nan
    return made.tobytes()


def literal(made, values):
    """The same step by step."""
    out = np.zeros((len(values), made.result_elements), values.dtype)
    for members in members_of(made.group_type, made.group_size, len(values)):
        rows = exchange_rows(made.kind, [values[m] for m in members], made.ring, made.method, CollectiveOperator(made.operator), made.root)
        for member, row in zip(members, rows, strict=True):
            out[member, : row.size] = row
    return out


@pytest.mark.parametrize("method", ALGORITHMS)
@pytest.mark.parametrize("p", SIZES)
def test_every_size_has_the_bits_of_the_ring(method, p):
    """
    Also tensors shorter than the ring, empty ones, and a last chunk that is short.
    """
    for n in (0, 1, p - 1, p, p + 1, 2 * p + 3, 1000):
        values = data(FLOAT, p, n)
        for kind in ("all_reduce", "reduce_scatter"):
            made = call(kind, FLOAT, n, p, method)
            wanted = bits(literal(made, values))
            assert bits(done(made, values)) == wanted, (kind, n)
            assert kind == "reduce_scatter" or bits(done_in_place(made, values)) == wanted, n
        if n:
            exact = data(INT, p, n)
            assert np.array_equal(done(call("all_reduce", INT, n, p, method), exact)[p - 1], exact.sum(0, dtype=np.int32))


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_any_type_operator_and_group_has_the_bits_of_the_ring(draws):
    """
    Drawn: every operator of every element type, any ring order, groups of both kinds.
    """
    dtype = draws.draw(st.sampled_from(list(OPERATORS)))
    operator, method = draws.draw(st.sampled_from(OPERATORS[dtype])), draws.draw(st.sampled_from(list(ALGORITHMS)))
    p, groups = draws.draw(st.sampled_from([1, 2, 3, 5, 8])), draws.draw(st.sampled_from([1, 2, 3]))
    n = draws.draw(st.sampled_from([0, 1, p - 1, p, p + 1, 2 * p + 3, 200]))
    ring = draws.draw(st.permutations(range(p)))
    kind = draws.draw(st.sampled_from(["all_reduce", "reduce_scatter"]))
    group_type = "all" if groups == 1 else draws.draw(st.sampled_from(["consecutive", "orthogonal"]))
    values = data(dtype, p * groups, n, draws.draw(st.integers(0, 99)))
    made = call(kind, dtype, n, p, method, operator, group_type, ring)
    found, wanted = done(made, values), literal(made, values)
    assert bits(found) == bits(wanted)
    if kind == "all_reduce":
        assert bits(done_in_place(made, values)) == bits(wanted)
    if operator is CollectiveOperator.MAX and kind == "all_reduce":
        assert np.array_equal(found[0], values[list(members_of(group_type, p, p * groups)[0])].max(0))


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_change_no_bit(threads):
    """
    Large data is cut into blocks, which threads share.
    """
    values = data(FLOAT, 5, 250_001)
    for method in ALGORITHMS:
        made = call("all_reduce", FLOAT, 250_001, 5, method, ring=[0, 2, 4, 3, 1])
        wanted = bits(literal(made, values))
        assert bits(done(made, values, threads)) == wanted
        assert bits(done_in_place(made, values, threads)) == wanted


def test_without_native_code_the_bits_are_the_same(monkeypatch):
    """
    POPCORE_FALLBACK=1 leaves Numba's internals alone.
    """
    monkeypatch.setenv("POPCORE_FALLBACK", "1")
    for n in (1, 100):
        values = data(HALF, 3, n)
        made = call("all_reduce", HALF, n, 3, "meet_in_middle_ring")
        assert bits(done_in_place(made, values)) == bits(literal(made, values))


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
    ring = Ring(list(data(FLOAT, p, n)), range(p), method, CollectiveOperator.ADD)
    ring.all_reduce()
    assert ring.elements_sent == 2 * (p - 1) * n


def test_chunks_are_rounded_up():
    """
    10 elements over 64 replicas: one each for ten of them, none for the others.
    """
    assert [chunk_bounds(10, 64, rank) for rank in (0, 9, 10, 63)] == [(0, 1), (9, 10), (10, 10), (10, 10)]
    assert [chunk_bounds(11, 4, rank) for rank in range(4)] == [(0, 3), (3, 6), (6, 9), (9, 11)]


def test_auto_chooses_by_size():
    """
    As the old PopLibs sources do: two replicas a ring, little data or many replicas meet in the middle, else both ways.
    """
    assert choose("auto", 2, 1 << 20, 1).name == choose("auto", 16, 1 << 20, 2).name == "ring"
    assert choose("auto", 16, 1000, 1).name == "meet_in_middle_ring"
    assert choose("auto", 16, 1 << 20, 1).name == "bidirectional_ring_pair"
    assert choose("auto", 17, 1 << 20, 1).name == "meet_in_middle_ring"
    assert choose("clockwise_ring", 16, 0, 1).name == "ring"


@pytest.mark.parametrize(("method", "what"), [("quad_directional_ring", "not available"), ("spiral", "does not exist")])
def test_other_methods_are_refused(method, what):
    with pytest.raises(errors.OptionError, match=f"(?s){what}.*'ring'"):
        choose(method, 8, 100, 1)
