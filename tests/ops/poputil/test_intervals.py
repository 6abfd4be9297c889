"""Intervals: are all elements shared out, in order, in whole grains and as equally as can be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import popcore as pc
from popcore import errors, poputil


@st.composite
def disjoint(draw):
    cuts = sorted(draw(st.sets(st.integers(0, 200), max_size=12)))
    return list(zip(cuts[::2], cuts[1::2], strict=False))


@given(disjoint(), st.integers(1, 8), st.integers(1, 8), st.integers(0, 20))
def test_splitting_keeps_every_element_in_order_and_whole_grains(regions, grain, parts, least):
    made = poputil.split_regions(regions, grain, parts, least)
    assert [i for p in made for b, e in p for i in range(b, e)] == [i for b, e in regions for i in range(b, e)]
    sizes = [sum(e - b for b, e in p) for p in made]
    assert len(made) <= parts
    assert all(sizes)
    assert all(s % grain == 0 for s in sizes[:-1])
    if len(sizes) > 1:
        assert max(sizes) - min(sizes) < 2 * grain
        assert min(sizes[:-1]) >= least


def test_splitting_uses_no_more_parts_than_the_fullest_makes_necessary():
    assert poputil.split_regions([(0, 10), (15, 20), (33, 60)], 4, 8, 6) == [[(0, 8)], [(8, 10), (15, 20), (33, 38)], [(38, 50)], [(50, 60)]]
    assert poputil.split_regions([(0, 9)], 1, 6) == [[(0, 1)], [(1, 3)], [(3, 5)], [(5, 7)], [(7, 9)]]
    assert poputil.split_regions([], 4, 3) == []
    assert poputil.split_regions([(0, 40)], 4, 2, max_elements_per_partition=8) == [[(i, i + 8)] for i in range(0, 40, 8)]
    assert poputil.split_regions([(0, 20)], 4, 1, max_elements_per_region=9) == [[(0, 8), (8, 16), (16, 20)]]


@given(st.lists(disjoint().filter(bool), max_size=4), st.integers(1, 4), st.integers(1, 6))
def test_splitting_sequences_keeps_them_apart(sequences, grain, parts):
    made = poputil.split_regions(sequences, grain, parts)
    assert [i for p in made for s in p for b, e in s for i in range(b, e)] == [i for s in sequences for b, e in s for i in range(b, e)]
    assert sum(len(p) for p in made) <= len(sequences) + parts


def test_workers_of_a_tile_share_regions():
    target = pc.Device("M2000", num_ipus=1).target
    made = poputil.split_regions_between_workers(target, [(0, 100)], 2)
    assert [sum(e - b for b, e in p) for p in made] == [16, 16, 18, 16, 16, 18]
    for n in (65_535, 65_550, (1 << 20) + 1):
        assert sum(e - b for p in poputil.split_regions_between_workers(target, [(0, n)], 4) for b, e in p) == n


def test_a_grain_of_nothing_is_refused():
    with pytest.raises(errors.ValueRangeError, match="grain_size 0"):
        poputil.split_regions([(0, 1)], 0, 3)


@given(disjoint())
def test_merging_joins_neighbours(regions):
    halves = [(b, (b + e) // 2) for b, e in regions] + [((b + e) // 2, e) for b, e in regions]
    assert poputil.merge_adjacent_regions(halves) == poputil.merge_adjacent_regions(regions)
    assert poputil.interval_sequence_num_elements([halves]) == sum(e - b for b, e in regions)
    assert poputil.flatten_intervals([halves, regions]) == [*halves, *regions]


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.data())
def test_flattening_an_index_and_back(shape, data):
    index = [data.draw(st.integers(0, n - 1)) for n in shape]
    assert poputil.unflatten_index(shape, poputil.flatten_index(shape, index)) == tuple(index)


def test_an_index_that_is_none_is_refused():
    with pytest.raises(errors.ShapeError):
        poputil.unflatten_index((2, 3), 6)
    with pytest.raises(errors.ShapeError):
        poputil.flatten_index((2, 3), [1])


@given(st.permutations(range(6)), st.lists(st.integers(1, 4), min_size=6, max_size=6))
def test_unshuffling_undoes_a_shuffle(order, sizes):
    begins = [sum(sizes[:i]) for i in range(6)]
    intervals = [(begins[i], begins[i] + sizes[i]) for i in order]
    shuffled = [e for b, n in intervals for e in range(b, n)]
    undone = [shuffled[i] for b, e in poputil.calculate_unshuffling_intervals(intervals) for i in range(b, e)]
    assert undone == list(range(sum(sizes)))


@given(st.integers(0, 100), st.integers(1, 9))
def test_a_balanced_partition_differs_by_one(upper, count):
    made = poputil.balanced_partition(upper, count)
    assert (sum(made), len(made), sorted(made, reverse=True)) == (upper, count, made)
    assert max(made) - min(made) <= 1
