"""Scatter and the general gather. Both engines, against loops over windows."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import popcore as pc
from popcore import errors, program
from popcore.ops import popops
from popcore.types import FLOAT, HALF, INT
from tests.ops.popops.runs import mapped, new_graph, run, values

DRAWN = settings(deadline=None, max_examples=12, suppress_health_check=list(HealthCheck))


@st.composite
def windows(draw):
    """A shape, dimensions that are indexed, the size of a window, and how many windows, as a shape."""
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    dims = draw(st.lists(st.integers(0, len(shape) - 1), unique=True, min_size=1, max_size=len(shape)))
    whole = draw(st.booleans())
    sizes = [1 if d in dims and whole else n if whole else draw(st.integers(1, n)) for d, n in enumerate(shape)]
    return shape, dims, sizes, tuple(draw(st.lists(st.integers(1, 3), max_size=2)))


def places(shape, dims, sizes, outer):
    """Vectors of indices inside."""
    rng = np.random.default_rng(len(shape))
    return np.stack([rng.integers(0, shape[d] - sizes[d] + 1, outer) for d in dims], -1).astype(np.int32)


def starts(at, dims, rank):
    for row in at.reshape(-1, len(dims)):
        yield [int(row[dims.index(d)]) if d in dims else 0 for d in range(rank)]


@DRAWN
@given(st.data(), windows())
def test_gather_of_windows(data, drawn):
    """
    With the vectors of indices along any dimension, and some dimensions of one entry left out.
    """
    shape, dims, sizes, outer = drawn
    graph, prog = new_graph(), program.Sequence()
    t, view, see = data.draw(mapped(graph, HALF, shape))
    where = data.draw(st.integers(0, len(outer)))
    at = places(shape, dims, sizes, outer)
    indices = graph.add_variable(INT, np.moveaxis(at, -1, where).shape, "linear")
    gone = [d for d, n in enumerate(sizes) if n == 1 and d % 2]
    kept = [n for d, n in enumerate(sizes) if d not in gone]
    offset_dims = [len(outer) + i for i in range(len(kept))]
    out = popops.gather(graph, view, indices, where, offset_dims, sizes, gone, dims, prog)
    x = values(HALF, t.shape)
    found = run(graph, prog, {t: x, indices: np.moveaxis(at, -1, where)}, {"out": out})["out"]
    wanted = np.stack([see(x)[tuple(slice(b, b + n) for b, n in zip(s, sizes, strict=True))] for s in starts(at, dims, len(shape))])
    np.testing.assert_array_equal(found, wanted.reshape((*outer, *kept)))


def test_gather_puts_windows_where_they_are_wanted():
    """
    The example of the documentation, and offset dimensions in front.
    """
    graph, prog = new_graph(), program.Sequence()
    t = graph.add_constant(INT, (3, 3), np.arange(1, 10), tile=0)
    two = graph.add_constant(INT, (2, 2), [1, 1, 2, 1], tile=0)
    rows = graph.add_constant(INT, (2,), [2, 0], tile=0)
    reads = {"points": popops.gather(graph, t, two, 1, [], [1, 1], [0, 1], [0, 1], prog), "rows": popops.gather(graph, t, rows, 1, [0], [1, 3], [0], [0], prog)}
    found = run(graph, prog, {}, reads)
    assert found["points"].tolist() == [5, 8]
    np.testing.assert_array_equal(found["rows"], np.arange(1, 10).reshape(3, 3)[[2, 0]].T)


@DRAWN
@given(st.data(), windows(), st.booleans())
def test_scatter_of_windows(data, drawn, add):
    """
    Written or added, windows apart from each other; those outside are skipped.
    """
    shape, dims, sizes, outer = drawn
    graph, prog = new_graph(), program.Sequence()
    t, view, see = data.draw(mapped(graph, FLOAT, shape))
    at = places(shape, dims, sizes, outer)
    at = at if add else at[tuple(slice(0, 1) for _ in outer)]
    outer = at.shape[:-1]
    inserted = [d for d, n in enumerate(sizes) if n == 1 and d % 2]
    kept = [n for d, n in enumerate(sizes) if d not in inserted]
    indices = graph.add_variable(INT, at.shape, "linear")
    updates = graph.add_variable(FLOAT, (*outer, *kept), "linear")
    compute = (lambda g, old, new, p: popops.add(g, old, new, p)) if add else None
    window = list(range(len(outer), len(outer) + len(kept)))
    popops.scatter(graph, view, indices, updates, len(outer), window, inserted, dims, prog, update_computation=compute)
    x, y = values(FLOAT, t.shape), values(FLOAT, updates.shape, 1)
    found = run(graph, prog, {t: x, indices: at, updates: y}, {"t": t})["t"]
    blocks = y.reshape((-1, *sizes))
    for s, block in zip(starts(at, dims, len(shape)), blocks, strict=True):
        part = see(x)[tuple(slice(b, b + n) for b, n in zip(s, sizes, strict=True))]
        part[...] = part + block if add else block
    np.testing.assert_array_equal(found, x)


def test_scatter_of_elements_into_a_large_vector():
    """
    Over many tiles; indices outside, negative ones among them, are skipped.
    """
    graph, prog = new_graph(64), program.Sequence()
    t = graph.add_variable(FLOAT, (40_000,), "linear")
    indices, updates = graph.add_variable(INT, (200, 1), "linear"), graph.add_variable(FLOAT, (200,), "linear")
    popops.scatter(graph, t, indices, updates, 1, [], [0], [0], prog)
    rng = np.random.default_rng(0)
    at = rng.permutation(40_000)[:200].astype(np.int32)
    at[:3] = -1, 40_000, 2**31 - 1
    x, y = rng.normal(size=40_000).astype(np.float32), rng.normal(size=200).astype(np.float32)
    found = run(graph, prog, {t: x, indices: at[:, None], updates: y}, {"t": t}, (pc.Engine,))["t"]
    x[at[3:]] = y[3:]
    np.testing.assert_array_equal(found, x)


def test_mistakes():
    """
    Refused at the call.
    """
    graph, prog = new_graph(), program.Sequence()
    t, indices, s = graph.add_variable(FLOAT, (4, 3), "linear"), graph.add_variable(INT, (2, 1), "linear"), graph.add_variable(FLOAT, (2, 3), "linear")
    go = lambda *a, **k: popops.scatter(graph, *a, prog, **k)  # noqa: E731
    for kind, call in (
        (errors.ShapeError, lambda: go(t, indices, s, 1, [1], [], [0])),
        (errors.ShapeError, lambda: go(t, indices, s, 1, [1], [0], [0, 1])),
        (errors.ShapeError, lambda: go(t, indices, s, 3, [1], [0], [0])),
        (errors.ShapeError, lambda: go(t[:, :2], indices, s, 1, [1], [0], [0])),
        (errors.ElementTypeError, lambda: go(t, s, s, 1, [1], [0], [0])),
        (errors.ElementTypeError, lambda: go(t, indices, popops.cast(graph, s, HALF, program.Sequence()), 1, [1], [0], [0])),
        (errors.GraphError, lambda: go(t[0].broadcast(4, 0), indices, s, 1, [], [0], [0])),
        (errors.ShapeError, lambda: popops.gather(graph, t, indices, 1, [1], [1, 5], [0], [0], prog)),
        (errors.ShapeError, lambda: popops.gather(graph, t, indices, 1, [1], [2, 3], [0], [0], prog)),
        (errors.ShapeError, lambda: popops.gather(graph, t, indices, 1, [1], [1, 3], [0], [0, 1], prog)),
        (errors.ShapeError, lambda: popops.gather(graph, t, indices, 1, [5], [1, 3], [0], [0], prog)),
        (errors.GraphError, lambda: popops.gather(graph, t, indices, 1, [5], [1, 3], prog)),
    ):
        with pytest.raises(kind, match="try: "):
            call()
    assert not prog.programs
