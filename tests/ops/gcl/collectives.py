"""Collectives for tests: one at a time, as the compiler would have it; what it must give by NumPy, and step by step; the matrix of all."""

import itertools
from dataclasses import dataclass

import numpy as np

from popcore import (
    BOOL,
    CHAR,
    FLOAT,
    HALF,
    INT,
    LONGLONG,
    SHORT,
    UNSIGNED_CHAR,
    UNSIGNED_INT,
    UNSIGNED_LONGLONG,
    UNSIGNED_SHORT,
)  # fmt: skip
from popcore.dialect import rounding
from popcore.engine.collectives import Reduction, perform
from popcore.executable import CollectiveCall
from popcore.executable.schedules import ALGORITHMS, CollectiveOperator, chunk_bounds, members_of, result_elements
from popcore.kernels.behaviour import Arithmetic
from popcore.reference.rings import Around, exchange_rows

NUMBERS = [o for o in CollectiveOperator if not o.name.startswith("LOGICAL")]
EXACT = [o for o in NUMBERS if o is not CollectiveOperator.MEAN]
INTEGERS = (INT, UNSIGNED_INT, SHORT, UNSIGNED_SHORT, CHAR, UNSIGNED_CHAR, LONGLONG, UNSIGNED_LONGLONG)
OPERATORS = {FLOAT: NUMBERS, HALF: NUMBERS, **dict.fromkeys(INTEGERS, EXACT)}
OPERATORS[BOOL] = [CollectiveOperator.LOGICAL_AND, CollectiveOperator.LOGICAL_OR, CollectiveOperator.LOCAL]
SIZES = [1, 2, 3, 5, 7, 8, 16, 64]


def call(kind, dtype, n, p, method="ring", operator=CollectiveOperator.ADD, group_type="all", rings=None, root=0, inner=None, partials=None):
    """A collective, as the compiler would have it."""
    results, algorithm = result_elements(kind, n, p), ALGORITHMS[method]
    rings = tuple(tuple(ring) for ring in rings or [range(p)] * len(algorithm.lanes))
    inner = (inner or p) if algorithm.levels == 2 else p
    return CollectiveCall(
        "c", kind, operator.value, method, dtype, n, results, 0, group_type, p, root, rings, inner, partials or dtype, 0, 0, 0, 0, 0
    )  # fmt: skip


def sets_of(p):
    """How many replicas a set of a group may have."""
    return [q for q in range(1, p + 1) if p % q == 0]


def data(dtype, replicas, n, seed=0, operator=CollectiveOperator.ADD):
    """Values whose sums depend on their order, and neither overflow nor vanish."""
    rng = np.random.default_rng(seed)
    if dtype is BOOL:
        return rng.random((replicas, n)) < 0.8
    if dtype.is_floating:
        if operator is CollectiveOperator.MUL:
            return (rng.uniform(0.9, 1.1, (replicas, n)) * rng.choice([-1, 1], (replicas, n))).astype(dtype.numpy)
        return (rng.standard_normal((replicas, n)) * 10.0 ** rng.integers(-3, 3 if dtype is FLOAT else 1, (replicas, n))).astype(dtype.numpy)
    limits = np.iinfo(dtype.numpy)
    return rng.integers(limits.min, limits.max, (replicas, n), dtype.numpy, endpoint=True)


def done(made, values, threads=1):
    """The result of a collective, [replicas, elements]; of an all-reduce in place, in rows that lie in a larger array."""
    arena = np.zeros((len(values), max(made.elements, made.result_elements) + 3), values.dtype)
    source, result = arena[:, : made.elements], arena[:, : made.result_elements]
    if made.kind != "all_reduce":
        result = np.full((len(values), made.result_elements), 1, values.dtype)
    source[:] = values
    perform(made, source, result, threads, "ieee")
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
    reduction = Reduction(made, spans, memory, threads, "ieee")
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


def around(made):
    return Around(made.rings, made.inner, made.method, CollectiveOperator(made.operator), made.partials, made.root)


def literal(made, values):
    """The same step by step."""
    out = np.zeros((len(values), made.result_elements), values.dtype)
    for members in members_of(made.group_type, made.group_size, len(values)):
        with rounding.using(Arithmetic("ieee")):
            rows = exchange_rows(made.kind, [values[m] for m in members], around(made))
        for member, row in zip(members, rows, strict=True):
            out[member, : row.size] = row
    return out


_NUMPY = {
    "add": lambda rows: rows.sum(0), "square_add": lambda rows: (rows * rows).sum(0), "mean": lambda rows: rows.mean(0),
    "mul": lambda rows: rows.prod(0), "min": lambda rows: rows.min(0), "max": lambda rows: rows.max(0),
    "logical_and": lambda rows: rows.all(0), "logical_or": lambda rows: rows.any(0),
}  # fmt: skip


def require_right(made, values, found):
    """``found`` against NumPy: exact for integers, flags and choices; within the rounding of p operations for sums and products."""
    wide = values.astype(np.float64) if made.dtype.is_floating else values
    for members in members_of(made.group_type, made.group_size, len(values)):
        rows = wide[list(members)]
        total = None if made.operator == "local" else _NUMPY[made.operator](rows)
        for rank, member in enumerate(members):
            begin, end = chunk_bounds(made.elements, made.group_size, rank) if made.kind == "reduce_scatter" else (0, made.elements)
            wanted = (wide[member] if total is None else total)[begin:end]
            row = found[member]
            assert not row[end - begin :].any(), "what is missing of a chunk is not zero"
            if not made.dtype.is_floating or made.operator in ("min", "max", "local"):
                assert np.array_equal(row[: end - begin], wanted.astype(values.dtype)), made
                continue
            size = np.abs(rows if made.operator != "square_add" else rows * rows)[:, begin:end]
            step = float(np.finfo(made.dtype.numpy).eps) * (made.group_size + 1)
            allowed = step * (size.sum(0) if made.operator != "mul" else np.abs(wanted)) + float(np.finfo(made.dtype.numpy).tiny)
            assert (np.abs(row[: end - begin].astype(np.float64) - wanted) <= allowed).all(), made


@dataclass(frozen=True)
class Case:
    """One entry of the matrix."""

    method: str
    p: int
    n: int
    dtype: object
    partials: object
    operator: CollectiveOperator
    group_type: str
    inner: int

    def check(self, seed=0):
        """The fast ways, bit for bit what the steps give, and right."""
        replicas = self.p * (1 if self.group_type == "all" else 3 if self.group_type == "none" else 2)
        size = 1 if self.group_type == "none" else self.p
        values = data(self.dtype, replicas, self.n, seed, self.operator)
        rng = np.random.default_rng(seed)
        rings = [rng.permutation(size).tolist() for _ in ALGORITHMS[self.method].lanes] if size == self.p and self.inner == self.p else None
        reduced, scattered = (
            call(kind, self.dtype, self.n, size, self.method, self.operator, self.group_type, rings, 0, self.inner if size > 1 else 1, self.partials)
            for kind in ("all_reduce", "reduce_scatter")
        )
        wanted = literal(reduced, values)
        require_right(reduced, values, wanted)
        assert bits(done(reduced, values)) == bits(wanted), self
        assert bits(done_in_place(reduced, values)) == bits(wanted), self
        assert bits(done(scattered, values)) == bits(shares(scattered, wanted)), self


def shares(made, reduced):
    """What a reduce-scatter gives where an all-reduce gives ``reduced``: to each its chunk of that."""
    out = np.zeros((len(reduced), made.result_elements), reduced.dtype)
    for members in members_of(made.group_type, made.group_size, len(reduced)):
        for rank, member in enumerate(members):
            begin, end = chunk_bounds(made.elements, made.group_size, rank)
            out[member, : end - begin] = reduced[member, begin:end]
    return out


def counts(p):
    return sorted({0, 1, p - 1, p, p + 1, 2 * p + 3, 1000})


def types():
    """Element types and the types of their partial sums."""
    return [*((dtype, dtype) for dtype in OPERATORS), (HALF, FLOAT)]


def every_case(sizes=tuple(SIZES)):
    """The whole matrix. Groups of one replica and those of 64 are there once: the first have one way, the second one place."""
    for p in sizes:
        for method, n, (dtype, partials) in itertools.product(ALGORITHMS, counts(p), types()):
            for operator in OPERATORS[dtype]:
                for group_type in ("all", "consecutive", "orthogonal") if p < 64 else ("all",):
                    for inner in sets_of(p) if ALGORITHMS[method].levels == 2 else (p,):
                        yield Case(method, p, n, dtype, partials, operator, group_type, inner)
    for n, (dtype, partials) in itertools.product(counts(1), types()):
        for operator in OPERATORS[dtype]:
            yield Case("ring", 1, n, dtype, partials, operator, "none", 1)
