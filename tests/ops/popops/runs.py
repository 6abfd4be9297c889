"""What the tests of popops share: drawn tensors, and one graph run by both engines."""

import itertools

import numpy as np
from hypothesis import strategies as st

import popcore as pc
from popcore.types import BOOL, FLOAT, HALF, INT, UNSIGNED_INT

TILES = 6
DTYPES = (FLOAT, HALF, INT, UNSIGNED_INT, BOOL)


def new_graph(tiles=TILES):
    """An empty graph on one IPU of few tiles."""
    return pc.Graph(pc.Device("M2000", num_ipus=1, tiles_per_ipu=tiles).target)


def values(dtype, shape, seed=0):
    """Small numbers that all types hold exactly."""
    rng = np.random.default_rng(seed)
    if dtype is BOOL:
        return np.asarray(rng.integers(0, 2, shape)).astype(bool)
    if dtype.is_integral:
        return np.asarray(rng.integers(0 if dtype.kind == "uint" else -20, 20, shape)).astype(dtype.numpy)
    return np.asarray(rng.integers(-40, 40, shape) / 8).astype(dtype.numpy)


def run(graph, prog, writes, reads, engines=(pc.ReferenceEngine, pc.Engine), options=None):
    """What the tensors ``reads`` hold after ``prog``; both engines must agree bit for bit, NaNs aside.

    writes: Tensor to array; reads: name to tensor.
    """
    for i, t in enumerate(writes):
        graph.create_host_write(f"write {i}", t)
    for name, t in reads.items():
        graph.create_host_read(name, t)
    found = []
    for kind in engines:
        engine = kind(graph, prog, options=options)
        for i, array in enumerate(writes.values()):
            engine.write_tensor(f"write {i}", array)
        engine.run()
        found.append({name: engine.read_tensor(name) for name in reads})
    for other in found[1:]:
        for name, array in other.items():
            np.testing.assert_array_equal(array, found[0][name], err_msg=name)
    return found[-1]


@st.composite
def mapped(draw, graph, dtype, shape, name=""):
    """A variable and a view of ``shape`` of it: mapped somehow, seen somehow. Returns (variable, view, view of an array of the variable)."""
    kind = draw(st.sampled_from(["plain", "transposed", "reversed", "sliced"]))
    inner = {"transposed": shape[::-1], "sliced": tuple(n + 2 for n in shape)}.get(kind, shape)
    t = graph.add_variable(dtype, inner, name=name)
    numel = t.num_elements
    how = draw(st.sampled_from(["linear", "one tile", "scattered", "rows"]))
    if how == "one tile" or not numel:
        graph.set_tile_mapping(t, draw(st.integers(0, TILES - 1)))
    elif how == "linear":
        pc.poputil.map_tensor_linearly(graph, t, 1, 1)
    elif how == "rows" and t.rank:
        for i in range(inner[0]):
            graph.set_tile_mapping(t[i], i % TILES)
    else:
        cuts = sorted({0, numel, *draw(st.lists(st.integers(0, numel), max_size=5))})
        for i, (a, b) in enumerate(itertools.pairwise(cuts)):
            graph.set_tile_mapping(t.flatten()[a:b], (5 * i + 2) % TILES)
    views = {
        "plain": lambda x: x,
        "transposed": lambda x: x.dim_shuffle(list(range(x.rank))[::-1]) if hasattr(x, "dim_shuffle") else x.transpose(),
        "reversed": lambda x: x.reverse(0) if hasattr(x, "reverse") else x[::-1],
        "sliced": lambda x: x[tuple(slice(1, n - 1) for n in inner)],
    }
    see = views[kind] if shape or kind == "sliced" else views["plain"]
    return t, (t if not shape else see(t)), (see if shape else views["plain"])


def shapes(max_rank=3, max_side=5, least=0):
    """Small shapes; one in some is empty."""
    return st.lists(st.integers(least, max_side), min_size=0, max_size=max_rank).map(tuple)
