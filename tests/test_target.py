"""Machines: the numbers agree with what is published, any count makes a target, names are found however they are written."""

import dataclasses
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from popcore.errors import ElementTypeError, TileMappingError, UnknownNameError, ValueRangeError
from popcore.machines import CHIPS, SYSTEMS, find_system
from popcore.target import BOW, GC2, GC200, Device, Target, systems
from popcore.types import ELEMENT_TYPES, FLOAT, HALF, INT, UNSIGNED_LONGLONG

devices = st.builds(Device, st.sampled_from(systems()), st.integers(1, 300), st.integers(1, 2000))


def test_the_systems_are_listed():
    """
    The names of the nine machines, each once.
    """
    assert set(systems()) == {"C2", "M2000", "BOW-2000", "POD16", "POD64", "POD128", "POD256", "BOW-POD16", "BOW-POD64"}
    assert len(systems()) == 9


# system, IPUs, tiles and half PFLOP/s as the datasheets print them; a C2 by the sum of JIA's figures for a chip
PUBLISHED = [
    ("C2", 2, 2432, 0.249),
    ("M2000", 4, 5_888, 1.0),
    ("BOW-2000", 4, 5_888, 1.394),
    ("POD16", 16, 23_552, 4.0),
    ("BOW-POD16", 16, 23_552, 5.6),
    ("POD64", 64, 94_208, 16.0),
    ("BOW-POD64", 64, 94_208, 22.3),
]


@pytest.mark.parametrize(("name", "ipus", "tiles", "petaflops"), PUBLISHED)
def test_totals_are_the_published_ones(name, ipus, tiles, petaflops):
    """
    Units, widths, tiles and clock multiply to the totals on the datasheet, within their rounding.
    """
    target = Device(name).target
    assert (target.num_ipus, target.num_tiles) == (ipus, tiles)
    assert target.num_ipus * target.chip.peak_half_flops / 1e15 == pytest.approx(petaflops, rel=0.005)


def test_a_chip_is_as_published():
    """
    Memory, clock, float peak and exchange of the three chips.
    """
    assert [c.bytes_per_tile for c in (GC2, GC200, BOW)] == [256 * 1024, 638_976, 638_976]
    assert [c.clock_hz for c in (GC2, GC200, BOW)] == [1_600_000_000, 1_325_000_000, 1_850_000_000]
    assert [c.peak_float_flops / 1e12 for c in (GC2, GC200, BOW)] == pytest.approx([31.1, 62.4, 87.2], rel=0.005)
    exchange = [c.tiles * c.exchange_bytes_per_cycle * c.clock_hz / 1e12 for c in (GC2, GC200, BOW)]
    assert exchange == pytest.approx([7.78, 7.8, 10.9], rel=0.005)


@pytest.mark.parametrize("chip", CHIPS, ids=lambda c: c.name)
def test_a_chip_fits_together(chip):
    """
    Regions follow each other without a gap and hold whole memory elements; the links add up.
    """
    for before, after in zip(chip.memory_regions, chip.memory_regions[1:], strict=False):
        assert before.address + before.nbytes == after.address
    assert all(r.nbytes % chip.memory_element_bytes == 0 for r in chip.memory_regions)
    assert chip.links_to_partner + chip.links_to_cross + 2 * chip.links_to_rail == chip.links


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda s: s.name)
def test_a_system_fits_together(system):
    """
    A machine's IPUs divide the system's, and a link domain is never larger than 64.
    """
    assert system.num_ipus % system.ipus_per_machine == 0
    assert system.ipus_per_machine <= system.link_domain <= 64
    assert system.host_bytes_per_second_per_ipu <= system.host_bytes_per_second


@pytest.mark.parametrize(
    ("written", "name", "ipus"),
    [
        ("M2000", "M2000", 4), ("IPU-M2000", "M2000", 4), ("m2000", "M2000", 4), ("Bow-2000", "BOW-2000", 4), ("bow2000", "BOW-2000", 4),
        ("Bow Pod64", "BOW-POD64", 64), ("IPU-POD64", "POD64", 64), ("pod_16", "POD16", 16), ("GC200", "M2000", 1), ("gc2", "C2", 1),
        ("Bow", "BOW-2000", 1), ("ipu2", "M2000", 1), ("ipu1", "C2", 1), ("C2", "C2", 2),
    ],
)  # fmt: skip
def test_a_name_is_found_however_it_is_written(written, name, ipus):
    """
    Case, dashes, spaces and a leading IPU do not matter; a chip means one IPU of its machine.
    """
    target = Device(written).target
    assert (target.name, target.num_ipus) == (name, ipus)


@pytest.mark.parametrize(("wrong", "near"), [("M200", "M2000"), ("BOW-POD46", "BOW-POD64"), ("POD-65", "POD64"), ("GC-20", "GC200")])
def test_an_unknown_name_gives_near_ones(wrong, near):
    """
    A typing mistake is answered with what was probably meant.
    """
    with pytest.raises(UnknownNameError, match=f"(?s){wrong}.*try:.*{near}"):
        Device(wrong)


@pytest.mark.parametrize("wrong", ["", "Frontier", None, 64])
def test_a_name_like_no_other_gives_the_list(wrong):
    """
    Where nothing is near, all names are given.
    """
    with pytest.raises(UnknownNameError, match=r"(?s)try: one of C2, M2000"):
        Device(wrong)


def test_the_environment_puts_another_machine_in_place(monkeypatch):
    """
    POPCORE_DEVICE wins over the program's name; counts that the program gives stay.
    """
    monkeypatch.setenv("POPCORE_DEVICE", "bow-pod16")
    assert Device("C2").target == Device("BOW-POD16").target
    assert Device("C2", num_ipus=3, tiles_per_ipu=7).target.num_tiles == 21


@settings(deadline=None)
@given(devices)
def test_any_count_makes_a_target(device):
    """
    Odd counts too; what belongs to a tile stays as it is.
    """
    target = device.target
    assert target.num_tiles == target.num_ipus * target.tiles_per_ipu
    assert target.bytes_per_tile == target.chip.bytes_per_tile
    assert target.num_worker_contexts == 6


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "4", True])
@pytest.mark.parametrize("what", ["num_ipus", "tiles_per_ipu"])
def test_a_count_that_is_none_is_refused(what, wrong):
    """
    Counts are whole numbers of one or more.
    """
    with pytest.raises(ValueRangeError, match=what):
        Device("M2000", **{what: wrong})


def test_counts_may_be_numpy_integers():
    """
    They often come out of an array.
    """
    target = Device("M2000", num_ipus=np.int64(2), tiles_per_ipu=np.uint8(9)).target
    assert target.num_tiles == 18
    assert type(target.num_ipus) is int


@settings(deadline=None)
@given(devices)
def test_a_target_is_a_value(device):
    """
    Equal by content, usable as a key, the same after to_dict and pickling.
    """
    target = device.target
    again = Target.from_dict(target.to_dict())
    assert again == target
    assert len({again, target, pickle.loads(pickle.dumps(target))}) == 1
    assert target.with_ipus(target.num_ipus + 1) != target
    with pytest.raises(dataclasses.FrozenInstanceError):
        target.num_ipus = 1


@pytest.mark.parametrize("change", [{"num_ipus": "4"}, {"system": {}}, {"tiles_per_ipu": None}, {"num_ipus": 0}])
def test_a_foreign_dictionary_is_refused(change):
    """
    A dictionary that is no target's says where it is wrong.
    """
    with pytest.raises(ValueRangeError, match=r"num_ipus|system|tiles_per_ipu"):
        Target.from_dict({**Device("M2000").target.to_dict(), **change})


def test_a_virtual_target_counts_what_it_is_given():
    """
    Whole IPUs stay apart, unequal shares become one.
    """
    target = Device("M2000").target
    assert target.virtual(1472) == target.with_ipus(1)
    assert target.virtual(target.num_tiles) == target
    assert (target.virtual([0, 1472, 2944]).num_ipus, target.virtual([0, 1472, 2944]).tiles_per_ipu) == (3, 1)
    assert (target.virtual(range(1000, 2000)).num_ipus, target.virtual(range(1000, 2000)).num_tiles) == (1, 1000)


@settings(deadline=None)
@given(devices, st.data())
def test_a_virtual_target_has_as_many_tiles_as_are_listed(device, data):
    """
    Whatever the tiles.
    """
    tiles = data.draw(st.lists(st.integers(0, device.target.num_tiles - 1), min_size=1, max_size=20, unique=True))
    assert device.target.virtual(tiles).num_tiles == len(tiles)


@pytest.mark.parametrize("wrong", [[], 0, [-1], [8], [1, 1], 9])
def test_a_virtual_target_of_other_tiles_is_refused(wrong):
    """
    Tiles are there, and each is listed once.
    """
    with pytest.raises(TileMappingError, match="tiles 0 to 7"):
        Device("C2", num_ipus=2, tiles_per_ipu=4).target.virtual(wrong)


def test_what_planners_ask():
    """
    The facts about types, vectors, memory and the AMP that Poplar's Target answers.
    """
    mk1, mk2 = Device("C2").target, Device("M2000").target
    assert [mk2.get_type_size(t) for t in (FLOAT, HALF, INT, "bool", UNSIGNED_LONGLONG, np.int16)] == [4, 2, 4, 1, 8, 2]
    assert [mk2.get_vector_width(t) for t in (FLOAT, HALF, INT)] == [2, 4, 1]
    assert (mk2.data_path_width, mk2.atomic_store_granularity, mk2.exchange_bytes_per_cycle, mk2.tiles_per_shared_exchange_bus) == (64, 4, 4, 2)
    assert (mk1.fp16_in_fp16_out_conv_units_per_tile, mk2.fp16_in_fp16_out_conv_units_per_tile) == (8, 16)
    assert (mk2.get_weights_per_conv_unit(HALF), mk2.get_weights_per_conv_unit(FLOAT)) == (16, 8)
    assert (len(mk2.memory_element_offsets), mk2.interleaved_memory_element_index) == (39, 13)
    assert (mk1.target_arch_string, mk2.target_arch_string) == ("ipu1", "ipu2")
    with pytest.raises(ElementTypeError):
        mk2.get_type_size("double")


@pytest.mark.parametrize("dtype", ELEMENT_TYPES, ids=repr)
def test_limits_are_values_of_the_type(dtype):
    """
    A type holds its own limits.
    """
    lowest, highest = Device("M2000").target.get_type_limits(dtype)
    assert (float(dtype.numpy.type(lowest)), float(dtype.numpy.type(highest))) == (float(lowest), float(highest))
    assert lowest < highest


def test_a_device_prints_as_the_call_that_makes_it():
    """
    For a log, or to try again.
    """
    device = Device("bow-2000", num_ipus=1, tiles_per_ipu=8)
    assert eval(repr(device), {"Device": Device}).target == device.target
    assert str(device.target) == "BOW-2000 (1 x BOW, 8 tiles each)"
    assert find_system("GC200")[1] == 1
