"""Drawn views: a tensor and, beside it, the NumPy array of the element ids it should show."""

import math

import numpy as np
from hypothesis import strategies as st

from popcore.graph import Graph, concat
from popcore.target import Device
from popcore.types import FLOAT

SMALL = st.integers(0, 4)


def small_graph(tiles=8, ipus=1):
    """A graph for a machine of a few tiles."""
    return Graph(Device("M2000", num_ipus=ipus, tiles_per_ipu=tiles).target)


def whole(graph, shape, name=""):
    """A new variable and the ids of its elements."""
    t = graph.add_variable(FLOAT, shape, name=name)
    return t, t.variable.base + np.arange(math.prod(shape), dtype=np.int64).reshape(shape)


def _slice(draw, t, a):
    dim = draw(st.integers(0, t.rank - 1))
    begin = draw(st.integers(0, t.shape[dim]))
    end = draw(st.integers(begin, t.shape[dim]))
    return t.slice(begin, end, dim), a[(slice(None),) * dim + (slice(begin, end),)]


def _index(draw, t, a):
    keys = []
    for n in t.shape[: draw(st.integers(1, t.rank))]:
        if n and draw(st.booleans()):
            keys.append(draw(st.integers(-n, n - 1)))
        else:
            keys.append(slice(draw(st.integers(-n - 1, n + 1)), draw(st.integers(-n - 1, n + 1)), draw(st.sampled_from([None, 1, 2, -1, -2]))))
    key = keys[0] if len(keys) == 1 else tuple(keys)
    return t[key], a[key]


def _reshape(draw, t, a):
    rest, shape = t.num_elements, []
    while rest > 1 and len(shape) < 3:
        d = draw(st.sampled_from([n for n in range(1, rest + 1) if rest % n == 0]))
        shape.append(d)
        rest //= d
    if rest != 1:
        shape.append(rest)
    if draw(st.booleans()):
        shape.insert(draw(st.integers(0, len(shape))), 1)
    return t.reshape(shape), a.reshape(shape)


def _shuffle(draw, t, a):
    order = draw(st.permutations(range(t.rank)))
    return t.dim_shuffle(order), a.transpose(order)


def _reverse(draw, t, a):
    dim = draw(st.integers(0, t.rank - 1))
    return t.reverse(dim), np.flip(a, dim)


def _broadcast(draw, t, a):
    dim, n = draw(st.integers(0, t.rank - 1)), draw(st.integers(0, 3))
    return t.broadcast(n, dim), np.concatenate([a] * n, dim) if n else np.take(a, [], dim)


def _upsample(draw, t, a):
    dim, n = draw(st.integers(0, t.rank - 1)), draw(st.integers(0, 3))
    return t.upsample(n, dim), np.repeat(a, n, dim)


def _sub_sample(draw, t, a):
    dim, n = draw(st.integers(0, t.rank - 1)), draw(st.integers(1, 3))
    return t.sub_sample(n, dim), a[(slice(None),) * dim + (slice(None, None, n),)]


def _expand(draw, t, a):
    dim = draw(st.integers(0, t.rank))
    return t.expand([dim]), np.expand_dims(a, dim)


def _squeeze(draw, t, a):
    return t.squeeze(), a.squeeze()


def _concat_self(draw, t, a):
    dim = draw(st.integers(0, t.rank - 1))
    return concat([t, t.reverse(dim), t], dim), np.concatenate([a, np.flip(a, dim), a], dim)


def _flatten(draw, t, a):
    begin = draw(st.integers(0, t.rank))
    end = draw(st.integers(begin, t.rank))
    return t.flatten(begin, end), a.reshape((*a.shape[:begin], math.prod(a.shape[begin:end]), *a.shape[end:]))


_OPERATIONS = [_slice, _index, _reshape, _shuffle, _reverse, _broadcast, _upsample, _sub_sample, _expand, _squeeze, _concat_self, _flatten]
_SCALAR_TOO = {_reshape, _expand, _squeeze, _flatten, _shuffle}


@st.composite
def views(draw, graph=None, max_steps=5):
    """(tensor, array of ids) after up to ``max_steps`` view operations on one variable or on several."""
    graph = graph or small_graph()
    shape = tuple(draw(st.lists(SMALL, min_size=0, max_size=3)))
    t, a = whole(graph, shape, "first")
    if shape and draw(st.booleans()):
        other, b = whole(graph, shape, "second")
        dim = draw(st.integers(0, len(shape) - 1))
        t, a = concat([t, other], dim), np.concatenate([a, b], dim)
    for _ in range(draw(st.integers(0, max_steps))):
        operation = draw(st.sampled_from(_OPERATIONS))
        if (t.rank == 0 and operation not in _SCALAR_TOO) or t.num_elements > 500 or t.rank > 5:
            continue
        t, a = operation(draw, t, a)
    return t, a
