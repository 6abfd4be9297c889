"""Microbenchmarks of the modelled machine: what each measures, and how it is told."""

import csv
import io
import os
import sys
from itertools import pairwise

import pytest
from click.testing import CliRunner

import popcore as pc
from popcore import microbench
from popcore.cli import bench, main
from popcore.errors import OptionError, UnknownNameError
from popcore.microbench.sweep import Point, Results, powers


@pytest.fixture(scope="module")
def results():
    """Every suite on two small IPUs."""
    return microbench.run(pc.Device("BOW-2000", num_ipus=2, tiles_per_ipu=64))


def test_every_benchmark_measures(results):
    """
    Something above zero, for each of its sizes.
    """
    for name, sweeps in microbench.SUITES.items():
        for sweep in sweeps:
            found = [p for p in results.points if (p.suite, p.benchmark) == (name, sweep.name)]
            assert [p.size for p in found] == list(sweep.values(results.target))
            assert found
            assert all(p.value > 0 for p in found)


@pytest.mark.parametrize("name", ["gather", "scatter", "broadcast", "all-to-all", "all-reduce by bytes"])
def test_more_takes_longer(results, name):
    """
    The time of a pattern grows with the tiles, or bytes, that take part.
    """
    values = list(results.of(name).values())
    assert all(a <= b for a, b in pairwise(values))
    assert values[0] < values[-1]


def test_pair_of_tiles_comes_near_the_width_of_the_exchange(results):
    """
    A large message moves 4 bytes a cycle, less what starting it takes.
    """
    peak = results.target.exchange_bytes_per_cycle * results.target.clock_hz / 1e9
    assert 0.97 * peak < results.of("bandwidth of a pair")[65_536] <= peak


@pytest.mark.parametrize(("name", "least"), [("AMP half, sums of half", 0.9), ("AMP half, sums of float", 0.9), ("AMP float", 0.6)])
def test_product_unit_comes_near_its_peak(results, name, least):
    """
    Many rows hide what loading weights takes. In FLOAT every second pass here writes zeros first, which takes as long again as its products.
    """
    target = results.target
    units = {
        "AMP half, sums of half": target.fp16_in_fp16_out_conv_units_per_tile,
        "AMP half, sums of float": target.fp16_in_fp32_out_conv_units_per_tile,
        "AMP float": target.fp32_in_fp32_out_conv_units_per_tile,
    }[name]
    peak = 2 * units * target.get_vector_width(pc.FLOAT if name == "AMP float" else pc.HALF)
    assert least * peak < results.of(name)[2048] <= peak


def test_chain_of_loads_is_no_faster_for_being_long(results):
    """
    One worker issues every sixth cycle, and a load waits for the one before.
    """
    values = results.of("pointer chase")
    assert values[4096] >= results.target.num_worker_contexts
    assert values[16] > values[4096] > 0.9 * values[1024]


def test_what_a_machine_lacks_is_left_out():
    """
    One IPU has no links to measure and a C2 no Streaming Memory; the rest is there.
    """
    results = microbench.run(pc.Device("C2", num_ipus=1, tiles_per_ipu=4), "links", "collectives", "host")
    assert {p.benchmark for p in results.points} == {"host to device", "device to host"}


def test_unknown_suite_is_named():
    """
    With those that are spelt like it.
    """
    with pytest.raises(UnknownNameError, match="no suite 'exchagne'") as info:
        microbench.run(pc.Device("C2"), "exchagne")
    assert "exchange" in info.value.hint


def test_csv_holds_every_point(results):
    """
    Numbers in full, and on each line the system.
    """
    rows = list(csv.DictReader(io.StringIO(results.csv())))
    assert [(r["suite"], r["benchmark"], int(r["size"]), float(r["value"])) for r in rows] == [(p.suite, p.benchmark, p.size, p.value) for p in results.points]
    assert {(r["system"], r["ipus"], r["tiles_per_ipu"]) for r in rows} == {("BOW-2000", "2", "64")}


def test_sizes_grow_by_a_factor_up_to_the_last():
    """
    The last one is always there, once.
    """
    assert powers(1, 64) == [1, 4, 16, 64]
    assert powers(2, 9, 2) == [2, 4, 8, 9]
    assert powers(3, 2) == []


def test_plot_is_a_page_of_its_own(results):
    """
    One panel for each unit.
    """
    pytest.importorskip("plotly")
    page = results.html()
    assert page.count("xaxis") >= len({(p.suite, p.over, p.unit) for p in results.points})
    assert "<html" in page


def test_plot_says_what_it_needs(results, monkeypatch):
    """
    Without Plotly: the package and how to get it.
    """
    monkeypatch.setitem(sys.modules, "plotly", None)
    with pytest.raises(OptionError, match="plotly"):
        results.html()


@pytest.fixture
def two_points(monkeypatch):
    """The command without measuring."""
    points = [Point("exchange", "gather", "tiles", 4, 0.125, "us"), Point("exchange", "gather", "tiles", 16, 1.0, "us")]
    monkeypatch.setattr(microbench, "run", lambda device, *suites, report: Results(device.target, points))
    monkeypatch.setenv("COLUMNS", "100")
    return lambda *arguments: CliRunner().invoke(main, ("bench", *arguments))


def test_command_prints_and_writes(two_points, tmp_path):
    """
    A table, and the same as CSV where it is asked for.
    """
    file = tmp_path / "points.csv"
    result = two_points("--device", "BOW-2000", "--suite", "exchange", "--csv", str(file))
    assert result.exit_code == 0
    assert "BOW-2000 (4 x BOW, 1472 tiles each)" in result.output
    assert "0.125" in result.output
    assert file.read_text().count("\n") == 3


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--device", "BOW-200"), "BOW-2000"),
        (("--device", "C2", "--suite", "nothing"), "nothing"),
        (("--device", "C2", "--csv", os.path.join("no", "such", "folder.csv")), "No such file"),
    ],
)
def test_command_refuses(two_points, arguments, said):
    """
    One line that says what is wrong; no traceback.
    """
    result = two_points(*arguments)
    assert result.exit_code
    assert said in result.output
    assert "Traceback" not in result.output


def test_command_knows_all_suites():
    """
    Those that the package has.
    """
    assert list(sys.modules[bench.callback.__module__]._SUITES) == list(microbench.SUITES)
