"""Do collectives over the IPUs of a replica have the bits of their schedule, whoever runs them, and leave each share where it belongs?"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import popcore as pc
from popcore import BOOL, FLOAT, HALF, INT, errors
from popcore.executable.schedules import ALGORITHMS, chunk_bounds, rings_of
from popcore.ops import gcl
from popcore.program import Sequence
from popcore.reference.rings import Around, Ring
from tests.ops.gcl.collectives import OPERATORS, bits, data

ADD = gcl.CollectiveOperator.ADD


def built(ipus, ranks, n, dtype, tiles=3, replicas=1):
    """A graph with a tensor of so many rows, each spread over the tiles of its IPUs."""
    graph = pc.Graph(pc.Device("POD16", num_ipus=ipus * replicas, tiles_per_ipu=tiles).target, replication_factor=replicas)
    x = graph.add_variable(dtype, (ranks, n), name="x")
    each = ipus // ranks * tiles
    for rank in range(ranks):
        for tile in range(each):
            graph.set_tile_mapping(x[rank, n * tile // each : n * (tile + 1) // each], rank * each + tile)
    graph.create_host_write("x", x)
    return graph, x


def run(engine_class, graph, prog, values):
    engine = engine_class(graph, prog)
    engine.write_tensor("x", values)
    engine.run()
    return engine


def wanted(target, method, values, operator, partials=None):
    """What the schedule gives step by step."""
    ranks = len(values)
    rings, inner = rings_of(ALGORITHMS[method], target, list(range(ranks)), 1)
    around = Around(rings, inner, method, operator, partials or pc.types.as_element_type(values.dtype), 0)
    return np.stack(Ring(list(values), around).all_reduce())


@settings(deadline=None, max_examples=25)
@given(st.data())
def test_an_all_reduce_has_the_bits_of_its_schedule(draws):
    """
    Drawn: method, ranks, sizes, types, operators, partials; run by the reference, which runs the same copies and vertices as an Engine.
    """
    method, ranks = draws.draw(st.sampled_from(list(ALGORITHMS))), draws.draw(st.sampled_from([1, 2, 3, 4, 5, 8]))
    dtype = draws.draw(st.sampled_from([FLOAT, HALF, INT, BOOL]))
    operator = draws.draw(st.sampled_from([o for o in OPERATORS[dtype] if o is not gcl.CollectiveOperator.LOCAL]))
    n = draws.draw(st.sampled_from([1, ranks - 1, ranks, ranks + 1, 2 * ranks + 3, 50]))
    wide = dtype is HALF and draws.draw(st.booleans())
    graph, x = built(ranks, ranks, n, dtype)
    prog = Sequence()
    made = gcl.all_reduce_within_replica(graph, x, operator, prog, options={"method": method, "partialsType": "float" if wide else "half"})
    graph.create_host_read("y", made)
    values = data(dtype, ranks, n, operator=operator)
    found = run(pc.ReferenceEngine, graph, prog, values).read_tensor("y")
    assert bits(found) == bits(wanted(graph.target, method, values, operator, FLOAT if wide else None))


@pytest.mark.parametrize("method", ALGORITHMS)
def test_engines_agree(engine_class, method):
    """
    Six IPUs: rungs and rails, a chunk that is short.
    """
    values = data(FLOAT, 6, 29)
    graph, x = built(6, 6, 29, FLOAT)
    prog = Sequence()
    gcl.all_reduce_in_place_within_replica(graph, x, gcl.CollectiveOperator.MEAN, prog, options={"method": method})
    graph.create_host_read("y", x)
    found = run(engine_class, graph, prog, values).read_tensor("y")
    assert bits(found) == bits(wanted(graph.target, method, values, gcl.CollectiveOperator.MEAN))


def test_a_row_of_the_result_lies_where_its_rank_is(engine_class):
    """
    Each IPU has a share after the reduce-scatter, and everything after the all-gather; together the shares are the sum.
    """
    graph, x = built(4, 4, 10, INT)
    prog = Sequence()
    chunks = gcl.reduce_scatter_within_replica(graph, x, ADD, prog)
    gathered = gcl.all_gather_within_replica(graph, chunks, prog)
    graph.create_host_read("shares", gcl.concat_chunks(graph, chunks))
    graph.create_host_read("y", gathered)
    values = data(INT, 4, 10)
    engine = run(engine_class, graph, prog, values)
    total = values.sum(0, dtype=np.int32)
    assert np.array_equal(engine.read_tensor("shares"), total)
    assert np.array_equal(engine.read_tensor("y"), np.tile(total, (4, 1)))
    for ipu, chunk in enumerate(chunks.chunks):
        begin, end = chunk_bounds(10, 4, ipu)
        assert (chunk.index, chunk.offset, chunk.tensor.num_elements) == (ipu, 0, end - begin)
        for tensor in (chunk.tensor, gathered[ipu]):
            assert set(graph.tile_intervals(tensor)[2] // 3) <= {ipu}


def test_ranks_of_several_ipus_use_the_links_of_each(engine_class):
    """
    Two ranks of two IPUs: the part on each is reduced for itself, and concat_chunks puts the parts back in order.
    """
    graph, x = built(4, 2, 21, INT)
    prog = Sequence()
    chunks = gcl.reduce_scatter_within_replica(graph, x, ADD, prog)
    graph.create_host_read("shares", gcl.concat_chunks(graph, chunks))
    graph.create_host_read("y", gcl.all_gather_within_replica(graph, chunks, prog))
    values = data(INT, 2, 21)
    engine = run(engine_class, graph, prog, values)
    assert [(c.index, c.offset) for c in chunks.chunks] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert [set(graph.tile_intervals(c.tensor)[2] // 3) for c in chunks.chunks] == [{0}, {1}, {2}, {3}]
    assert np.array_equal(engine.read_tensor("shares"), values.sum(0, dtype=np.int32))
    assert np.array_equal(engine.read_tensor("y"), np.tile(values.sum(0, dtype=np.int32), (2, 1)))


def test_several_tensors_go_in_the_same_steps(engine_class):
    """
    Of two types: as many copies as if there were one of each.
    """
    graph, x = built(4, 4, 9, FLOAT)
    others = [graph.clone(x, name="a"), graph.add_variable(INT, (4, 3), name="b")]
    for rank in range(4):
        graph.set_tile_mapping(others[1][rank], rank * 3)
    for name, each in zip("ab", others, strict=True):
        graph.create_host_write(name, each)
    together, alone = Sequence(), Sequence()
    made = gcl.all_reduce_within_replica(graph, [x, *others], ADD, together)
    gcl.all_reduce_in_place_within_replica(graph, graph.clone(x), ADD, alone)
    assert len(together.programs) == 2 * len(alone.programs)
    for name, each in zip("xab", made, strict=True):
        graph.create_host_read(name, each)
    engine = engine_class(graph, together)
    given = {name: data(each.dtype, 4, each.shape[1], seed) for seed, (name, each) in enumerate(zip("xab", [x, *others], strict=True))}
    for name, values in given.items():
        engine.write_tensor(name, values)
    engine.run()
    for name, values in given.items():
        np.testing.assert_allclose(engine.read_tensor(name)[3], values.sum(0, dtype=values.dtype), rtol=1e-4, atol=1e-3)


def test_every_replica_reduces_for_itself():
    graph, x = built(2, 2, 5, INT, replicas=3)
    prog = Sequence()
    gcl.all_reduce_in_place_within_replica(graph, x, ADD, prog)
    graph.create_host_read("y", x)
    values = np.arange(30, dtype=np.int32).reshape(3, 2, 5)
    assert np.array_equal(run(pc.Engine, graph, prog, values).read_tensor("y"), np.repeat(values.sum(1, keepdims=True), 2, axis=1))


def test_bytes_that_cross_are_those_of_a_ring():
    """
    2(p - 1)/p of the data from each IPU, counted by the copies themselves; and by link.
    """
    graph, x = built(4, 4, 1000, FLOAT)
    prog = Sequence()
    gcl.all_reduce_in_place_within_replica(graph, x, ADD, prog, options={"method": "clockwise_ring"})
    profile = run(pc.Engine, graph, prog, data(FLOAT, 4, 1000)).profile()
    assert profile.bytes.ipu_links == 2 * 3 * 1000 * 4
    assert sum(link.bytes for link in profile.links) == 2 * 3 * 1000 * 4, "every hop is one link long"
    assert {(link.kind, link.source, link.target) for link in profile.links} == {("rail", 0, 2), ("rung", 2, 3), ("rail", 3, 1), ("rung", 1, 0)}


def test_operands_that_do_not_fit_are_named():
    """
    A first dimension that is no number of ranks, a row elsewhere, rows laid out differently, other types.
    """
    graph, x = built(4, 4, 8, FLOAT)
    prog = Sequence()
    with pytest.raises(errors.ShapeError, match=r"'x'.*4 IPUs"):
        gcl.all_reduce_within_replica(graph, x[:3], ADD, prog)
    with pytest.raises(errors.TileMappingError, match="not all on IPU 0"):
        gcl.all_reduce_within_replica(graph, x.reverse(0), ADD, prog)
    crooked = graph.add_variable(FLOAT, (2, 8), name="crooked")
    graph.set_tile_mapping(crooked[0], 0)
    graph.set_tile_mapping(crooked[1], 11)
    with pytest.raises(errors.TileMappingError, match=r"crooked.*row 1 lies"):
        gcl.reduce_scatter_within_replica(graph, crooked, ADD, prog)
    with pytest.raises(errors.ElementTypeError, match="LOGICAL_AND"):
        gcl.all_reduce_within_replica(graph, x, gcl.CollectiveOperator.LOGICAL_AND, prog)
    with pytest.raises(errors.ShapeError, match="destination"):
        gcl.all_reduce_to_destination_within_replica(graph, [x, x], [x], ADD, prog)
    chunks = gcl.reduce_scatter_within_replica(graph, x, ADD, prog)
    wrong = gcl.Chunks(x, (chunks.chunks[0], *chunks.chunks[:3]))
    with pytest.raises(errors.ShapeError, match="share of rank"):
        gcl.all_gather_within_replica(graph, gcl.Chunks(x, (gcl.Chunk(x[0], 0, 0), *wrong.chunks[1:])), prog)
