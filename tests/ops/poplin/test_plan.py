"""The planner: do plans cover the product, stay within tiles and memory, and cost what the compiled program costs?"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import popcore as pc
from popcore import program
from popcore.ops import poplin
from popcore.ops.poplin.blocks import Blocks
from popcore.ops.poplin.cost import product_cycles
from popcore.ops.poplin.plan import cuts, new_plan
from popcore.ops.poplin.problem import Problem
from popcore.types import FLOAT, HALF
from tests.counting import python_calls

sizes = st.integers(0, 90)


def target(tiles=1472):
    return pc.Device("M2000", num_ipus=1, tiles_per_ipu=tiles).target


@given(st.integers(0, 3), sizes, sizes, sizes, st.sampled_from([FLOAT, HALF]), st.booleans(), st.integers(1, 40), st.sampled_from([0.0, 0.001, 0.01, 0.6]))
@settings(deadline=None)
def test_a_plan_covers_the_product_and_no_tile_has_two_parts_of_a_group(groups, m, k, n, dtype, sums, tiles, proportion):
    problem = Problem(groups, m, k, n, dtype)
    made = new_plan(target(tiles), problem, sums, proportion)
    assert made == new_plan(target(tiles), problem, sums, proportion)
    for c, length in ((made.batch_cuts, m), (made.k_cuts, k), (made.n_cuts, n)):
        assert c[0] == 0
        assert c[-1] == length
        assert np.all(np.diff(c) > 0) or length == 0
    assert made.tiles <= tiles
    if made.fits and m and n and k and groups:
        assert made.temporary_bytes <= proportion * target(1).bytes_per_tile
    part, group, i, j = np.indices((made.k_parts, groups, made.batch_parts, made.n_parts)).reshape(4, -1)
    tile = made.tile(group, i, j, part)
    for g in range(groups):
        of_group = tile[group == g]
        assert np.unique(of_group).size == of_group.size
        assert np.all(of_group < tiles)


@given(st.integers(0, 40), st.integers(1, 9), st.integers(1, 5))
def test_cuts_are_whole_grains_as_equal_as_can_be(length, parts, grain):
    grains = -(-length // grain)
    parts = min(parts, max(1, grains))
    made = cuts(length, parts, grain)
    assert made[0] == 0
    assert made[-1] == length
    assert np.all(made[:-1] % grain == 0)
    in_grains = -(-np.diff(made) // grain)
    assert in_grains.max() - in_grains.min() <= 1


@given(st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=3), min_size=1, max_size=4), st.integers(0, 9))
@settings(deadline=None)
def test_block_order_and_back(parts, empty):
    """
    Is each block one run, in rows, and does ``view`` undo ``tensor``?
    """
    cut = [np.cumsum([0, *p]) for p in parts]
    if empty < len(cut):
        cut[empty] = np.zeros(2, np.int64)
    blocks = Blocks(tuple(cut))
    graph = pc.Graph(target(4))
    flat = graph.add_variable(FLOAT, (blocks.numel,))
    shaped = blocks.tensor(flat)
    assert shaped.shape == blocks.shape
    back = blocks.view(shaped)
    assert back.num_elements == blocks.numel
    if blocks.numel:
        assert back.simple == flat.simple
        places = (shaped.regions().element_ids() - flat.regions().ids[0]).reshape(blocks.shape)
        for block in np.ndindex(*(len(c) - 1 for c in cut)):
            here = places[tuple(slice(c[i], c[i + 1]) for c, i in zip(cut, block, strict=True))].ravel()
            assert np.array_equal(here, blocks.start[block] + np.arange(here.size))


def test_operands_that_were_created_are_not_rearranged():
    graph, prog = pc.Graph(target(32)), program.Sequence()
    a = poplin.create_mat_mul_input_lhs(graph, FLOAT, (40, 64), (64, 48), name="a")
    b = poplin.create_mat_mul_input_rhs(graph, FLOAT, (40, 64), (64, 48), name="b")
    before = len(graph.variables)
    poplin.mat_mul(graph, a, b, prog)
    kinds = {type(p).__name__ for p in prog.programs}
    assert kinds == {"Execute"}
    assert len(graph.variables) - before <= 2  # the result, and partials if k is split


def test_a_transposed_operand_is_rearranged_once():
    graph, prog = pc.Graph(target(32)), program.Sequence()
    a, b = graph.add_variable(FLOAT, (64, 40), "linear"), graph.add_variable(FLOAT, (48, 64), "linear")
    poplin.mat_mul(graph, a.transpose(), b.transpose(), prog)
    assert [type(p).__name__ for p in prog.programs].count("Copy") == 2


@pytest.mark.parametrize("dtype", [FLOAT, HALF])
def test_planned_cycles_are_those_of_the_compiled_program(dtype):
    graph, prog = pc.Graph(target(64)), program.Sequence()
    shapes = (96, 128), (128, 64)
    a = poplin.create_mat_mul_input_lhs(graph, dtype, *shapes, name="a")
    b = poplin.create_mat_mul_input_rhs(graph, dtype, *shapes, name="b")
    graph.create_host_write("a", a)
    graph.create_host_write("b", b)
    graph.create_host_read("c", poplin.mat_mul(graph, a, b, prog))
    engine = pc.Engine(graph, prog)
    engine.write_tensor("a", np.zeros(a.shape, dtype.numpy))
    engine.write_tensor("b", np.zeros(b.shape, dtype.numpy))
    engine.run()
    found = engine.profile().cycles_by_kind
    planned = new_plan(graph.target, Problem(1, 96, 128, 64, dtype), dtype is HALF, 0.6)
    assert sum(found.values()) == pytest.approx(planned.cycles, rel=0.2)


def test_the_product_unit_is_charged_as_measured():
    """Multiplications a cycle of many rows: 32 of HALF, twice as many where the chip has units for sums in HALF too; 16 of FLOAT, half on a GC2."""
    rows, depth, columns = 6 * 1000, 640, 64
    work = rows * depth * columns
    for chip, dtype, partials, rate in (
        ("M2000", HALF, FLOAT, 32), ("M2000", HALF, HALF, 64), ("M2000", FLOAT, FLOAT, 16), ("C2", HALF, FLOAT, 32), ("C2", HALF, HALF, 32), ("C2", FLOAT, FLOAT, 8),
    ):  # fmt: skip
        cycles = product_cycles(pc.Device(chip, num_ipus=1).target, dtype, rows, depth, columns, partials)
        assert work / cycles == pytest.approx(rate, rel=0.03)


def test_pairs_of_tiles_take_the_same_part_of_the_right_operand():
    """So that what they receive of it counts once: neighbours differ in the part of the left one, and begin at an even tile."""
    made = new_plan(target(), Problem(1, 2048, 2048, 2048, HALF), True, 0.6)
    assert made.batch_parts % 2 == 0
    assert made.first_tile % 2 == 0
    part, i, j = np.indices((made.k_parts, made.batch_parts, made.n_parts)).reshape(3, -1)
    tile = made.tile(np.zeros_like(i), i, j, part)
    assert np.array_equal(tile, ((part * made.n_parts + j) * made.batch_parts + i + made.first_tile) % made.num_tiles)


def test_few_rows_to_stream_take_as_long_as_loading_what_the_unit_holds():
    """PopLibs' estimate of a pass of 16 x 16 past which four rows go: 64 cycles for its weights, 6 and a share of 19 for control, 6 x 26 for a row of a worker."""
    half = [product_cycles(target(), HALF, 4, depth, 16, HALF) for depth in (160, 176)]
    assert half[1] - half[0] == 64 + 6 + 19 + 6 * 26 + 15 + 6 * 3


def test_a_report_says_what_is_done_where():
    graph = pc.Graph(target())
    text = poplin.mat_mul_report_plan(graph, FLOAT, FLOAT, (4096, 4096), (4096, 4096))
    assert "[4096, 4096] @ [4096, 4096] of FLOAT" in text
    assert "of 1472" in text
    assert "serial steps over k 1\n" not in text  # a tile cannot hold it in one go
    assert "3 groups" in poplin.mat_mul_grouped_report_plan(graph, HALF, FLOAT, (3, 4, 5), (3, 5, 6))


def test_building_a_large_product_takes_no_more_steps_than_a_small_one():
    """Vertices are added in whole arrays: a product of 500 times the size is little more than plans that are weighed."""

    def build(n):
        graph, prog = pc.Graph(target()), program.Sequence()
        a, b = (make(graph, FLOAT, (n, n), (n, n)) for make in (poplin.create_mat_mul_input_lhs, poplin.create_mat_mul_input_rhs))
        poplin.mat_mul(graph, a, b, prog)

    build(512)  # the codelets are compiled
    assert python_calls(lambda: build(4096)) < 2 * python_calls(lambda: build(512))
