"""Known traps about products, convolutions and pooling."""

import numpy as np
import pytest

import popcore as pc
from popcore import errors, program
from popcore.ops import poplin
from popcore.ops.popnn import PoolingType, PoolParams, pooling
from popcore.types import FLOAT, HALF


def new(tiles=4):
    return pc.Graph(pc.Device("M2000", num_ipus=1, tiles_per_ipu=tiles).target)


def test_a10_more_convolutions_than_tiles(any_engine):
    """Case A10: nine independent ones on four tiles are all placed and right."""
    graph, prog = new(), program.Sequence()
    params = poplin.ConvParams(FLOAT, 1, (5, 5), (3, 3), 2, 2)
    for i in range(9):
        data, weights = poplin.create_input(graph, params), poplin.create_weights(graph, params)
        graph.create_host_read(f"out {i}", poplin.convolution(graph, data, weights, params, False, prog))
        graph.set_initial_value(data, np.full(data.shape, i, np.float32))
        graph.set_initial_value(weights, np.ones(weights.shape, np.float32))
    engine = any_engine(graph, prog)
    engine.run()
    for i in range(9):
        assert np.array_equal(engine.read_tensor(f"out {i}"), np.full((1, 2, 3, 3), 18 * i))


def test_b10_a_result_that_shows_an_element_twice_is_refused():
    """Case B10: before the run, not by luck."""
    graph, prog = new(), program.Sequence()
    x = graph.add_variable(FLOAT, (1, 4), "linear")
    with pytest.raises(errors.GraphError, match="twice"):
        poplin.mat_mul_with_output(graph, graph.add_variable(FLOAT, (2, 3), "linear"), graph.add_variable(FLOAT, (3, 4), "linear"), x.broadcast(2, 0), prog)


def test_b15_a_product_may_overwrite_its_operand(any_engine):
    """Case B15: what it reads is what was there before."""
    graph, prog = new(), program.Sequence()
    a = graph.add_variable(FLOAT, (8, 8), "linear", name="a")
    poplin.mat_mul_with_output(graph, a, a, a, prog)
    graph.create_host_read("a", a)
    values = np.arange(64, dtype=np.float32).reshape(8, 8) % 7
    graph.set_initial_value(a, values)
    engine = any_engine(graph, prog)
    engine.run()
    assert np.array_equal(engine.read_tensor("a"), values @ values)


def test_d1_sums_of_half_are_in_float(any_engine):
    """Case D1: 8192 and ninety-nine ones are 8291, which HALF rounds to 8288; as a product, a convolution and a pooled sum."""
    graph, prog = new(), program.Sequence()
    row = np.ones((1, 100), np.float16)
    row[0, 0] = 8192
    x = graph.add_constant(HALF, (1, 100), row, tile=0)
    one = graph.add_constant(HALF, (100, 1), 1.0, tile=1)
    params = poplin.ConvParams(HALF, 1, (100,), (100,), 1, 1)
    for name, out in (
        ("product", poplin.mat_mul(graph, x, one, prog)),
        ("convolution", poplin.convolution(graph, x.expand([0]), one.reshape(1, 1, 1, 100), params, False, prog)),
        ("pool", pooling.pool(graph, PoolParams(PoolingType.SUM, (100,), (100,), (1,), (0,), (0,), 1, 1, HALF), x.expand([0]), prog)),
    ):
        graph.create_host_read(name, out)
    engine = any_engine(graph, prog)
    engine.run()
    assert [float(engine.read_tensor(n).ravel()[0]) for n in ("product", "convolution", "pool")] == [8288.0] * 3


def test_j5_products_that_do_not_fit_are_refused_and_the_tenants_named():
    """Case J5: 64 results of 40 kB, all alive, on four tiles."""
    graph, prog = new(), program.Sequence()
    inputs = [graph.add_variable(FLOAT, (100, 100), "linear", name=f"input {i}") for i in range(8)]
    for i, a in enumerate(inputs):
        graph.create_host_write(f"input {i}", a)
        for j, b in enumerate(inputs):
            graph.create_host_read(f"{i} x {j}", poplin.mat_mul(graph, a, b, prog, name=f"product {i} {j}"))
    with pytest.raises(errors.OutOfTileMemoryError, match="product") as caught:
        pc.compile_graph(graph, [prog])
    assert caught.value.needed > caught.value.available
